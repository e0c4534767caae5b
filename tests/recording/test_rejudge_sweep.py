"""A whole sweep judged again: as a new sweep, finished after a cut."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench.command.results import rejudge
from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from normbench.recording.store import records
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import last_sweep_ids, load, sweeps
from normbench.verdicts.convergence import Rules
from tests.command.test_delete import mark_deleted

pytestmark = pytest.mark.commands

NAME = "two-softmax"
WORDS = ("rules.tail=0.5", "rules.variation=0.3")
NEW = Rules(tail=0.5, variation=0.3)
SCHEMES = {"identity": FunctionTransformer, "standard": StandardScaler, "pca_sphere": PCASphere}


def fresh(place, data, rules, name, starts=1):
    start = {"start": "normal" if starts > 1 else "zeros", "starts": starts}
    settings = Settings((0.01, 0.1, 1.0), iterations=20, record=("path", "contours"), **start)
    job = Job(data, softmax, SCHEMES[name](), gradient_descent(), settings, 0.0, rules=rules)
    return records.of_outcome(place, data, run(job))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, empty_store):
    """A store with a sweep of three schemes, and one with a failed job."""
    folder = tmp_path_factory.mktemp("recorded")
    shutil.copy(empty_store, folder / "mlflow.db")
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 60)
    x = (rng.standard_normal((60, 2)) + y[:, None]) * [1.0, 5.0] + [0.0, 5.0]
    data = make_dataset("two", x, y, class_names=["no", "yes"], source="-")
    uri = f"sqlite:///{folder}/mlflow.db"
    writer = Writer(Store.at(uri, "artifacts", folder))
    parent = writer.start_sweep(NAME, "old", {"command": "normbench", "jobs": "4"})
    for number, name in enumerate(SCHEMES):
        place = _place(uri, parent, number, name, Rules())
        writer.write(fresh(place, data, Rules(), name))
    failed = _place(uri, parent, 3, "robust", Rules())
    writer.write(records.of_failure(failed, ValueError("it is broken")))
    writer.finish(parent)
    return folder, data


def _place(uri, parent, number, name, rules):
    told = {f"rules.{key}": value for key, value in vars(rules).items()}
    params = {"normalizer": name, "iterations": 20, "record": ["path", "contours"], **told}
    tags = {"normalizer": name, "sweep_id": "old", "job": f"old/{number}", "descent": name}
    tags |= {"sweep.old": str(number), "fingerprint": f"{name}-{number}"}
    return records.RecordHeader(uri, NAME, parent, params, tags)


@pytest.fixture
def store(recorded, tmp_path, monkeypatch):
    """The URI of a copy of the store, in the working folder."""
    shutil.copytree(recorded[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path}/mlflow.db"


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures out: most of a command's time."""
    monkeypatch.setattr(rejudge, "present", lambda sweep, folder: {})


def finals(sweep):
    rows = sweep.of_role("scheme")
    rows = rows[rows["verdict"] != "failed"]
    columns = [name for name in rows if name.startswith(("metrics.final/", "metrics.train"))]
    columns += ["tags.step_size", "verdict", "label"]
    return rows[columns].set_index("label").sort_index().sort_index(axis="columns")


@pytest.mark.slow
def test_a_sweep_is_judged_as_a_fresh_one_is(store, recorded, capsys):
    assert main(["rejudge", "--store", store, *WORDS]) == 0
    assert last_sweep_ids(store)[1] != "old"
    new, old = load(store, last_sweep_ids(store)[1]), load(store, "old")
    assert list(new.of_role("scheme")["label"]) == list(old.of_role("scheme")["label"])
    found = finals(new)
    assert (found["verdict"] != finals(old)["verdict"]).any()
    for name in SCHEMES:
        record = fresh(_place(store, "", 0, name, NEW), recorded[1], NEW, name)
        assert found.loc[name, "verdict"] == record.scheme.tags["verdict"]
        assert found.loc[name, "tags.step_size"] == record.scheme.tags["step_size"]
        last = {key: value for key, value, _ in record.scheme.metrics}
        for column in found:
            if "seconds" not in column and column.removeprefix("metrics.") in last:
                assert found.loc[name, column] == last[column.removeprefix("metrics.")]
    told = capsys.readouterr().out
    assert "standard" in told
    assert "report" in told


def test_the_first_rules_again_are_the_first_sweep_again(store, undrawn):
    assert main(["rejudge", "--store", store, "old", *WORDS]) == 0
    there = last_sweep_ids(store)[1]
    assert main(["rejudge", "--store", store, there, "rules.tail=0.1", "rules.variation=0.01"]) == 0
    back = last_sweep_ids(store)[1]
    assert len({"old", there, back}) == 3
    first, again = load(store, "old"), load(store, back)
    ids = [set(sweep.of_role("scheme")["run_id"]) for sweep in (first, again)]
    assert ids[0] == ids[1]  # they are there: nothing is made of them anew
    assert finals(first).equals(finals(again))


def test_what_is_cut_off_is_finished_by_the_same_command(store, monkeypatch, undrawn):
    log, calls = Writer._log_arrays, []

    def cut(self, run_id, arrays):
        calls.append(run_id)
        if len(calls) == 2:  # amid the second job
            raise KeyboardInterrupt
        log(self, run_id, arrays)

    command = ["rejudge", "--store", store, "old", *WORDS]
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_log_arrays", cut)
        assert main(command) == 130
    assert main(command) == 0
    whole = load(store, last_sweep_ids(store)[1])
    schemes = whole.of_role("scheme")
    assert list(schemes["place"]) == [0, 1, 2, 3]
    assert list(whole.of_role("step").groupby("parent").size()) == [3, 3, 3]
    assert set(schemes["status"]) == {"FINISHED", "FAILED"}
    before = set(whole.runs["run_id"])
    assert main(command) == 0  # there already: nothing more is written
    assert set(load(store, whole.sweep_id).runs["run_id"]) == before
    assert list(sweeps(store)["status"]) == ["FINISHED", "FINISHED"]


def test_a_start_that_stands_in_for_another_does_so_after_judging_again(store, undrawn):
    rows = load(store, "old").of_role("scheme").set_index("label")
    Writer(Store.at(store, None, Path.cwd())).tag(
        rows.loc["standard", "run_id"], {"start_stands_in": "true"}
    )
    assert main(["rejudge", "--store", store, "old", *WORDS]) == 0
    tags = load(store, last_sweep_ids(store)[1]).of_role("scheme")["tags.start_stands_in"]
    assert list(tags.dropna()) == ["true"]


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("step_sizes", lambda array: array[:0]),
        ("points", lambda array: np.array("many")),
        ("train/cost", lambda array: array[..., :0]),
        ("follows", lambda array: array.reshape(-1)),
        ("minimum", None),
    ],
)
def test_a_job_whose_arrays_are_damaged_is_named_and_left_out(
    store, tmp_path, undrawn, capsys, name, damaged
):
    file = next(tmp_path.glob("artifacts/**/descent.npz"))
    run_id = file.parents[2].name
    with np.load(file) as packed:
        arrays = dict(packed)
    array = arrays.pop(name)
    np.savez_compressed(file, **arrays, **({name: damaged(array)} if damaged else {}))
    assert main(["rejudge", "--store", store, "old", *WORDS]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"run {run_id} (")
    assert "is damaged, and cannot be judged again (" in line
    assert line.endswith("it is left out")
    old, new = load(store, "old"), load(store, last_sweep_ids(store)[1])
    assert len(new.of_role("scheme")) == len(old.of_role("scheme")) - 1


def test_a_sweep_none_of_whose_jobs_can_be_judged_again_leaves_nothing(
    store, tmp_path, undrawn, monkeypatch, capsys
):
    monkeypatch.setattr(Writer, "remove", mark_deleted)
    for row in as_rows(load(store, "old").of_role("scheme")):
        if row["verdict"] == "failed":
            Writer(Store.at(store, None, tmp_path)).client.delete_run(row["run_id"])
    for file in tmp_path.glob("artifacts/**/descent.npz"):
        file.write_bytes(b"")
    assert main(["rejudge", "--store", store, "old", *WORDS]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "normbench: comparison old: none of its jobs can be judged again"
    )
    assert list(sweeps(store)["sweep"]) == ["old"]


@pytest.mark.parametrize("deleted", ["job", "sweep"])
def test_a_sweep_in_two_experiments_is_judged_where_it_has_jobs(
    store, tmp_path, undrawn, monkeypatch, capsys, deleted
):
    """Of the second experiment, the only job is damaged, or the sweep's own run is deleted."""
    writer = Writer(Store.at(store, None, tmp_path))
    parent = writer.start_sweep("other-cost", "old", {"command": "normbench", "jobs": "4"})
    place = replace(_place(store, parent, 4, "standard", Rules()), experiment="other-cost")
    rng = np.random.default_rng(3)
    points, labels = rng.standard_normal((9, 2)), np.arange(9) % 2
    data = make_dataset("other", points, labels, class_names=["no", "yes"], source="-")
    job = writer.write(fresh(place, data, Rules(), "standard"))
    writer.finish(parent)
    if deleted == "sweep":
        writer.client.delete_run(parent)
        assert main(["rejudge", "--store", store, "old", *WORDS]) == 2
        assert "comparison old: its own run was deleted" in capsys.readouterr().err
        assert list(sweeps(store)["sweep"]) == ["old"]
        return
    next(tmp_path.glob(f"**/{job}/**/descent.npz")).write_bytes(b"")
    assert main(["rejudge", "--store", store, "old", *WORDS]) == 0
    new_sweep = load(store, last_sweep_ids(store)[1])
    assert new_sweep.experiments == [NAME]
    assert set(new_sweep.of_role("sweep")["status"]) == {"FINISHED"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rules.tails=0.2"], "rules.tails=0.2: is no rule; give some of rules.tail"),
        (["rules.tail=2"], "rules.tail=2: must be"),
        (["rules.tail=much"], "rules.tail=much: must be a"),
        (["none", "rules.tail=0.2"], "comparison none: is not in"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(store, capsys, tmp_path, words, said):
    assert main(["rejudge", "--store", store, *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert list(sweeps(store)["sweep"]) == ["old"]
    assert not (tmp_path / "outputs").exists()
