"""Two hundred jobs go from a database to a server and back, compared value by value."""

import shutil
import sqlite3
import time

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from normbench.command.results import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.recording import records
from normbench.recording.pages import publish
from normbench.recording.store import Store
from normbench.recording.writer import Writer
from normbench.results import tables
from normbench.results.runs import load
from tests.results.stores import everything

pytestmark = pytest.mark.slow
SCHEMES = (StandardScaler(), MinMaxScaler(), RobustScaler(), PCASphere())
EXPERIMENTS = ("first-softmax", "second-softmax")
JOBS, SHARED = 200, 20


@pytest.fixture
def laboratory(tmp_path, empty_store):
    """The URI of a store with 200 jobs; of the first sweep's, the second took 20 in."""
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    writer = Writer(Store.at(uri, "mlartifacts", tmp_path))
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
            place = records.Place(uri, name, parents[name], params, own | {"job": f"{sweep}/{job}"})
            jobs.append(writer.write(records.of_outcome(place, data, made[scheme])))
        if sweep == "s":
            guests = jobs[:SHARED]
        for place, guest in enumerate(guests if sweep == "t" else ()):
            writer.adopt(guest, f"t/{place}")
        publish(writer, load(uri, sweep), parents)
        for parent in parents.values():
            writer.log_json(parent, [{"run_id": job, "reused": False} for job in jobs], "jobs.json")
            writer.finish(parent)
    return uri


def test_two_hundred_jobs_are_the_same_in_the_store_they_come_to(laboratory, tmp_path, capsys):
    new = f"sqlite:///{tmp_path}/new/mlflow.db"
    (tmp_path / "new").mkdir()
    seconds = [time.monotonic()]
    for words in (["export", "--all", "a.zip", "--store", laboratory], *2 * [["import", "a.zip"]]):
        words = [str(tmp_path / word) if word == "a.zip" else word for word in words]
        assert main([*words, *(["--store", new] if words[0] == "import" else [])]) == 0
        seconds.append(time.monotonic())
    print(np.diff(seconds))
    assert everything(new[10:]) == everything(laboratory[10:])
    print(time.monotonic() - seconds[-1])
    with sqlite3.connect(tmp_path / "new" / "mlflow.db") as connection:
        counted = "select count(*) from runs where lifecycle_stage = 'active'"
        assert connection.execute(counted).fetchone() == (JOBS * 3 + 4,)
    for sweep in "st":
        shown = [tables.markdown(tables.summary(load(uri, sweep))) for uri in (laboratory, new)]
        assert shown[0] == shown[1]
