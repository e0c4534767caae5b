"""Sixty jobs go from one store to another, and all are compared value by value."""

import pytest

from tests import stores
from tests.command.test_grid import LIGHT
from tests.results.stores import everything

JOBS, SHARED = 60, 10
SMALL = ("normalizer=standard", "start=normal", "iterations=2", "step_sizes=[0.1,1]", *LIGHT)


@pytest.mark.long
@pytest.mark.slow
def test_many_jobs_are_the_same_in_the_store_they_come_to(command, tmp_path):
    """Two data sets, two sweeps, of which the second takes some jobs from the first."""
    data = "dataset=iris,wine", "cost=multiclass_softmax"
    for first, last in ((0, JOBS // 4), (JOBS // 4 - SHARED // 2, JOBS // 2)):
        words = (*data, f"seed=range({first},{last})", *SMALL)
        assert command(*words, patience=600).returncode == 0
    (tmp_path / "new").mkdir()
    here, new = stores.of(tmp_path), stores.file(tmp_path / "new")
    assert command("results", "export", "--all", "house.zip").returncode == 0
    for new_ones in (JOBS, 0):
        done = command("results", "import", "house.zip", "--store", new.uri)
        assert done.returncode == 0, done.stderr
        assert f", {new_ones} jobs, " in done.stdout.splitlines()[-2]
    assert everything(new) == everything(here)
    counted = "select count(*) from runs where lifecycle_stage = 'active'"
    assert new.ask(counted) == here.ask(counted) == [(JOBS * 3 + 4,)]
    table = ("results", "table", "--format", "csv")
    assert command(*table).stdout == command(*table, "--store", new.uri).stdout
