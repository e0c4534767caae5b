"""What the one writer leaves of a sweep that stopped."""

import pytest

from normbench.recording.store.writer import Writer
from normbench.results.store.job_records import RunRecord
from tests import stores


@pytest.fixture
def writer(tmp_path, with_store):
    return Writer(stores.of(tmp_path).store)


def test_a_job_cut_off_is_killed_and_not_taken_for_written(writer):
    sweep = writer.start_sweep("data-cost", "s1", {})
    job = RunRecord("standard", {"job": "s1/0", "sweep_id": "s1"})
    scheme = writer._create("data-cost", job, "scheme", sweep)
    assert writer.end_abandoned(lambda tags: tags["sweep_id"] == "s1", "FAILED") == 2
    status = {run: writer.client.get_run(run).info.status for run in (sweep, scheme)}
    assert status == {sweep: "FAILED", scheme: "KILLED"}
    assert not writer.has_ended_job("data-cost", "s1/0")
    assert writer.end_abandoned(lambda tags: True) == 0


def test_a_job_that_differs_beside_its_grid_is_found(writer):
    sweep = writer.start_sweep("data-cost", "s1", {})
    job = RunRecord("standard", {"job": "s1/0", "grid_descent": "g", "descent": "d"})
    writer.finish(writer._create("data-cost", job, "scheme", sweep), "FINISHED")
    assert writer.has_grid("data-cost", "g", "other")
    assert not writer.has_grid("data-cost", "g", "d")
    assert not writer.has_grid("data-cost", "h", "other")
