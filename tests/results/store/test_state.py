"""Comparisons in any state: what is said of them, which is shown, and what is listed."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
from filelock import FileLock
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from normbench import names
from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent
from normbench.results.store import comparison_files, runs, state
from normbench.results.store.comparison_files import Comparison, JobEntry, record_file
from normbench.results.store.errors import ResultsError
from tests import door

KEYS = {"standard": "1" * 32, "minmax": "2" * 32}


@pytest.fixture(scope="module")
def records():
    """The records of a job of two schemes, by their keys."""
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((20, 2)), np.arange(20) % 2
    data = make_dataset("two", points, labels, class_names=["no", "yes"], source="-")
    settings = Settings((0.1, 1.0), iterations=2, theory="none")
    found = {}
    for name, scheme in (("standard", StandardScaler()), ("minmax", MinMaxScaler())):
        outcome = run(Job(data, softmax, scheme, gradient_descent(), settings))
        params = {"normalizer": name, "iterations": 2}
        tags = {"normalizer": name}
        found[KEYS[name]] = door.record_of(data, outcome, "two-softmax", params, tags)
    return found


def begin(home, sweep_id, records, count=2, state="running", started="2026-01-01T00:00:00+00:00"):
    """Keep a comparison of two jobs, of which so many are done."""
    keys = [*records][:count] + [None] * (2 - count)
    for key in filter(None, keys):
        records[key].save(record_file(home, key))
    jobs = [JobEntry("two-softmax", key) for key in keys]
    comparison = Comparison(home / sweep_id, "normbench", "", jobs, {}, state, started)
    comparison.write()
    return comparison


def test_what_is_said_follows_from_what_is_done_and_who_is_at_work(tmp_path, records):
    said = {}
    for count in (0, 1, 2):
        for ending in ("running", "stopped", "finished", "failed"):
            said[ending, count] = begin(tmp_path, "a", records, count, ending).predicate
    stopped = "was stopped ({} of 2 jobs done); the same command runs the rest"
    for ending in ("running", "stopped", "failed"):  # nobody is at work
        assert said[ending, 1] == stopped.format(1)
    assert said["running", 2] == said["stopped", 2] == comparison_files.COMPLETE
    assert said["finished", 2] == said["failed", 2] == ""
    comparison = begin(tmp_path, "a", records, 1)
    with FileLock(tmp_path / "a" / comparison_files.LOCK):
        assert comparison.predicate == "is still running (1 of 2 jobs done)"
        told = comparison_files.sentences([comparison])
        assert told == ["This comparison is still running (1 of 2 jobs done)."]


def test_the_last_comparison_with_a_job_is_shown(tmp_path, records, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultsError, match=r"holds no comparison; run normbench first$"):
        state.read(tmp_path)
    (tmp_path / "mlflow.db").touch()
    with pytest.raises(ResultsError, match=r"mlflow\.db may hold results of a version"):
        state.read(tmp_path)
    begin(tmp_path, "b", records, 0, started="2026-01-02T00:00:00+00:00")
    with pytest.raises(ResultsError, match=r"comparison b: has no results yet; it was stopped"):
        state.read(tmp_path)
    begin(tmp_path, "a", records, 2, "finished")
    sweep, notes = state.read(tmp_path)
    assert sweep.sweep_id == "a"
    assert notes == [
        "The last comparison, b, was stopped (0 of 2 jobs done); the same command runs the rest. "
        "Shown is a, the last one that has results."
    ]
    begin(tmp_path, "c", records, 1, "stopped")
    sweep, notes = state.read(tmp_path, ["a", "c"])
    assert sweep.is_query
    assert len(sweep.of_role(names.SCHEME)) == 2  # the job that both have stands once
    assert notes == ["Comparison c was stopped (1 of 2 jobs done); the same command runs the rest."]


@pytest.mark.parametrize("name", ["missing", "it's", "../a", "a/../a", ".", ""])
def test_a_comparison_that_is_not_there_is_told_with_where_it_was_looked_for(tmp_path, name):
    with pytest.raises(ResultsError, match=r"^comparison .*: is not in .*; normbench results list"):
        runs.load(tmp_path, name)


def test_comparisons_are_listed_the_latest_first_with_what_they_lack(tmp_path, records):
    begin(tmp_path, "a", records, 2, "finished")
    begin(tmp_path, "b", records, 1, started="2026-01-02T00:00:00+00:00")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "comparison.json").write_text('{"format": 2}')
    listed = runs.sweeps(tmp_path)
    assert listed["sweep"].tolist() == ["b", "a"]
    assert listed["status"].tolist() == ["KILLED", "FINISHED"]  # nobody runs b any more
    assert listed["jobs"].tolist() == [2, 2]
    assert listed["lacks"].tolist() == ["1", ""]


@pytest.mark.parametrize(
    "lie",
    [
        {"command": 5},
        {"state": "resting"},
        {"started": "yesterday"},
        {"tags": {"commit": None}},
        {"jobs": [{"experiment": ["two"]}]},
        {"jobs": [{"experiment": "two", "key": "../a"}]},
        {"files": {"two": ["/etc/passwd"]}},
        {"files": ["melt.png"]},
    ],
    ids=str,
)
def test_a_file_that_lies_is_no_comparison(tmp_path, records, lie):
    file = begin(tmp_path, "a", records).folder / comparison_files.FILE
    file.write_text(json.dumps({**json.loads(file.read_text()), **lie}))
    with pytest.raises(ValueError, match="is no comparison"):
        Comparison.read(file.parent)
    assert comparison_files.recorded(tmp_path) == []


def test_a_filter_finds_schemes_with_their_steps_and_comparisons(tmp_path, records):
    begin(tmp_path, "a", records, 2, "finished")
    found = runs.load_query(tmp_path, "tags.normalizer = 'minmax' and metrics.final/train_cost < 9")
    assert found.runs["role"].tolist() == ["sweep", "scheme", "step", "step"]
    assert set(found.of_role("scheme")["normalizer"]) == {"minmax"}
    with pytest.raises(ResultsError, match=r"finds no job in .*tags\.normalizer is 'minmax' or"):
        runs.load_query(tmp_path, "tags.normalizer = 'zca'")
    with pytest.raises(ResultsError, match=r"no run has tags\.normalise; did you mean tags\.norm"):
        runs.load_query(tmp_path, "tags.normalise = 'zca'")
    with pytest.raises(ResultsError, match=r"^--where nonsense: is no condition"):
        runs.load_query(tmp_path, "nonsense")


def test_the_order_is_that_of_the_jobs(tmp_path, records):
    begin(tmp_path, "a", dict(reversed(records.items())), 2, "finished")
    sweep = runs.load(tmp_path, "a")
    assert sweep.of_role("scheme")["label"].tolist() == ["minmax", "standard"]
    steps = sweep.of_role("step")
    assert steps["label"].tolist() == ["minmax"] * 2 + ["standard"] * 2
    assert sweep.histories(steps)["iteration"].tolist() == [0, 1, 2] * 4


@pytest.mark.commands
def test_a_comparison_is_deleted_unless_it_is_at_work(tmp_path, records, capsys):
    begin(tmp_path, "a", records, 2)
    words = ["delete", "a", "--folder", str(tmp_path)]
    with FileLock(tmp_path / "a" / comparison_files.LOCK):
        assert main([*words, "--yes"]) == 2
    assert "a: is at work" in capsys.readouterr().err
    assert main(words) == 2  # nobody can be asked
    with redirect_stdout(io.StringIO()) as said:
        assert main([*words, "--yes"]) == 0
    assert said.getvalue() == "deleted a: 2 jobs, with their records and figures\n"
    assert list((tmp_path / "records").iterdir()) == []
