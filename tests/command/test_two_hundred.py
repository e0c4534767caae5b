"""Two hundred jobs go from one store to another, and all are compared value by value."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.results.answer import tables
from normbench.results.pages.publishing import publish
from normbench.results.store.runs import load
from tests import door, stores
from tests.results.stores import everything

pytestmark = pytest.mark.slow
SCHEMES = (StandardScaler(), MinMaxScaler(), RobustScaler(), PCASphere())
EXPERIMENTS = ("first-softmax", "second-softmax")
JOBS, SHARED = 200, 20


@pytest.fixture
def laboratory(tmp_path, with_store):
    """A store with 200 jobs; of the first sweep's, the second took 20 in."""
    place = stores.of(tmp_path)
    uri, writer = place.uri, door.writer(place)
    rng = np.random.default_rng(0)
    points = rng.standard_normal((20, 2)), np.arange(20) % 2
    data = make_dataset("two", *points, class_names=["no", "yes"], source="-")
    settings = Settings((0.1, 1.0), iterations=5, theory="none")
    made = [run(Job(data, softmax, scheme, gradient_descent(), settings)) for scheme in SCHEMES]
    for number, sweep in enumerate(("s", "t")):
        parents = {name: writer.start_sweep(name, sweep, {"command": "-"}) for name in EXPERIMENTS}
        jobs = []
        for job in range(number * JOBS // 2, (number + 1) * JOBS // 2):
            name, scheme = EXPERIMENTS[job % 2], job % len(SCHEMES)
            word = type(SCHEMES[scheme]).__name__
            own = {"sweep_id": sweep, "normalizer": word, f"sweep.{sweep}": str(job)}
            params = {"normalizer": word, "seed": job, "iterations": 5}
            tags = own | {"job": f"{sweep}/{job}"}
            record = door.record_of(data, made[scheme], name, parents[name], params, tags)
            jobs.append(writer.write(record))
        if sweep == "s":
            guests = jobs[:SHARED]
        for turn, guest in enumerate(guests if sweep == "t" else ()):
            writer.adopt(guest, f"t/{turn}")
        publish(writer, load(uri, sweep), parents)
        for parent in parents.values():
            writer.log_json(parent, [{"run_id": job, "reused": False} for job in jobs], "jobs.json")
            writer.finish(parent)
    return place


@pytest.mark.long
def test_two_hundred_jobs_are_the_same_in_the_store_they_come_to(laboratory, tmp_path, capsys):
    (tmp_path / "new").mkdir()
    new = stores.file(tmp_path / "new")
    file = str(tmp_path / "house.zip")
    assert main(["export", "--all", file, "--store", laboratory.uri]) == 0
    for new_ones in (JOBS, 0):
        assert main(["import", file, "--store", new.uri]) == 0
        assert f", {new_ones} jobs, " in capsys.readouterr().out.splitlines()[-2]
    assert everything(new) == everything(laboratory)
    counted = "select count(*) from runs where lifecycle_stage = 'active'"
    assert new.ask(counted) == laboratory.ask(counted) == [(JOBS * 3 + 4,)]
    for sweep in "st":
        shown = [tables.markdown(tables.summary(load(one.uri, sweep))) for one in (laboratory, new)]
        assert shown[0] == shown[1]
