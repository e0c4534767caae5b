"""Values that normbench never wrote: the run that holds them is left out and named."""

import os
import shutil
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pytest

from normbench.command.results.commands import main
from normbench.results.safe import files
from normbench.results.store import runs, state
from normbench.results.store.errors import ResultsError
from normbench.results.store.run_checks import (
    MAX_NAMED_RUNS,
    arrays,
    first_sentences,
)
from tests import stores

pytestmark = pytest.mark.sqlite("values are put into the file by hand")

BIG, DEEP = "x" * 1_000_000, "[" * 3000 + "]" * 3000
TEXTS = {
    "nan": "nan",
    "null": "null",
    "empty": "",
    "nested brackets": DEEP,
    "a megabyte": BIG,
    "a blob": b"\x00\xff",
    "NUL": "1\0",
    "minus": "-5",
    "digits": "9" * 5000,
    "more than a float": "9" * 400,
    "another digit": "\u00b2",
}
PARAM = "update params set value = ? where key = 'iterations' and run_uuid = (?)"
TAG = "update tags set value = ? where key = '{}' and run_uuid = (?)"
ODD = {f"iterations: {name}": (PARAM, text) for name, text in TEXTS.items()}
ODD |= {f"verdict: {n}": (TAG.format("verdict"), TEXTS[n]) for n in ("a megabyte", "a blob")}
ODD |= {f"role: {name}": (TAG.format("role"), TEXTS[name]) for name in ("nan", "NUL", "a blob")}
SIZES = ("nan", "empty", "a blob", "minus", "more than a float", "another digit")
ODD |= {f"step size: {name}": (TAG.format("step_size"), TEXTS[name]) for name in SIZES}
ODD |= {
    "another tag: a megabyte": (TAG.format("explanation"), BIG),
    "a parameter that is gone": (
        "delete from params where key = 'iterations' and ? is null and run_uuid = (?)",
        None,
    ),
    "metrics: NaN": ("update latest_metrics set is_nan = ?, value = 0 where run_uuid = (?)", 1),
    "metrics: text": ("update latest_metrics set value = ? where run_uuid = (?)", "abc"),
    "metrics: infinite": ("update latest_metrics set value = ? where run_uuid = (?)", 9e999),
    "metrics: largest": (
        "update latest_metrics set value = ? where run_uuid = (?)",
        1.7976931348623157e308,
    ),
    "metrics: gone": ("delete from latest_metrics where ? is null and run_uuid = (?)", None),
    "start: text": ("update runs set start_time = ? where run_uuid = (?)", "abc"),
    "name: a blob": ("update runs set name = ? where run_uuid = (?)", b"\xff"),
    "name: a megabyte": ("update runs set name = ? where run_uuid = (?)", BIG),
}
# Of the sweep alone: in the store that tests share, another one has left deleted runs of a role.
OWN = "select run_uuid from tags where key = 'sweep_id' and value = 'sweep-1'"
OF_ROLE = f"select run_uuid from tags where key = 'role' and run_uuid in ({OWN}) and value ="
SCHEME, STEPS = f"{OF_ROLE} 'scheme' limit 1", f"{OF_ROLE} 'step'"


@pytest.fixture
def store(three, tmp_path, monkeypatch):
    """A copy of a recorded sweep of three schemes."""
    monkeypatch.chdir(tmp_path)
    with (
        closing(sqlite3.connect(three.folder / "mlflow.db")) as source,
        closing(sqlite3.connect(tmp_path / "mlflow.db")) as target,
    ):
        source.backup(target)
    shutil.copytree(three.folder / "mlartifacts", tmp_path / "mlartifacts")
    return stores.file(tmp_path)


def change(store, query, value, run):
    with closing(sqlite3.connect(store.kept.parent / "mlflow.db")) as connection:
        connection.execute(query, (value, run))
        connection.commit()


@pytest.mark.commands
@pytest.mark.parametrize("odd", ODD)
def test_a_run_with_such_a_value_is_named_and_the_others_are_shown(odd, store, capsys):
    ((run,),) = store.ask(SCHEME)
    change(store, *ODD[odd], run)
    sweep, notes = state.read(store.uri)
    assert any(f"Run {run} is left out: it" in note for note in notes)
    assert max(map(len, notes)) < 300
    assert len(sweep.of_role("scheme")) == 2
    assert run not in {*sweep.runs["run_id"], *sweep.runs["parent"]}  # nor are its steps shown
    assert main(["table"]) == 0
    said = capsys.readouterr()
    assert f"Run {run} is left out" in said.err
    assert len(said.out) < 10_000


@pytest.mark.parametrize(
    "query",
    [
        "update metrics set is_nan = 1, value = 0",
        "update metrics set value = 1.7976931348623157e308",
        "update metrics set value = 'abc'",
        "update metrics set step = step + 4000000000000000000",
        "delete from metrics",
    ],
)
def test_a_step_whose_history_is_odd_is_named_and_the_others_are_shown(query, store, capsys):
    step = store.ask(STEPS)[0][0]
    change(store, f"{query} where ? is null and run_uuid = (?)", None, step)
    assert main(["table", "--histories", "--all-steps"]) == 0
    assert f"Run {step} is left out: its history" in capsys.readouterr().err


def test_a_store_of_such_runs_alone_is_told(store):
    with closing(sqlite3.connect(store.kept.parent / "mlflow.db")) as connection:
        connection.execute("delete from latest_metrics")
        connection.commit()
    with pytest.raises(ResultsError, match=r"^(Run \w+ is left out: it has no .*){3}"):
        state.read(store.uri)


@pytest.mark.parametrize("text", [b"\xff", "x" * 1_000_000])
def test_sweeps_are_listed_without_one_that_cannot_be_read(text, store):
    query = "select run_uuid from tags where key = 'sweep_id' and value = 'sweep-1'"
    own = {run for (run,) in store.ask(query)}
    every = store.ask("select run_uuid from tags where key = 'role' and value = 'sweep'")
    (run,) = {run for (run,) in every} & own
    assert "sweep-1" in set(runs.sweeps(store.uri)["sweep"])
    change(store, TAG.format("command"), text, run)
    assert "sweep-1" not in set(runs.sweeps(store.uri)["sweep"])
    assert len(runs.load(store.uri, "sweep-1").of_role("scheme")) == 3


def test_of_many_such_runs_the_first_are_named():
    told = first_sentences([f"Run {number} is left out." for number in range(MAX_NAMED_RUNS + 7)])
    assert len(told) == MAX_NAMED_RUNS + 1
    assert told[-1] == "And 7 more runs are left out."


def put_pickle(file):
    np.savez(file, step_sizes=np.array([print], dtype=object))


def put_bomb(file):
    """A hundred bytes for each that it has: the list says so, and nothing is unpacked."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("step_sizes.npy", bytes(1 << 20))


DAMAGED = {
    "a pickle": put_pickle,
    "a bomb": put_bomb,
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a link": lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "nothing": lambda file: file.write_bytes(b""),
    "a text": lambda file: file.write_text("hello"),
    "half of it": lambda file: file.write_bytes(file.read_bytes()[:99]),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_arrays_that_are_damaged_are_told_in_a_line(kind, tmp_path, monkeypatch):
    file = tmp_path / "descent.npz"
    np.savez_compressed(file, step_sizes=np.ones(100))
    assert arrays(file, "1", "descent")["step_sizes"].sum() == 100
    if kind == "a bomb":
        monkeypatch.setattr(files, "MAX_ARRAY_BYTES", 1 << 19)
    DAMAGED[kind](file)
    with pytest.raises(ResultsError, match=r"^run 1: its arrays/descent\.npz is damaged, or not "):
        arrays(file, "1", "descent")
