"""The bounds of what is recorded in a run, and what is made of runs, by hand."""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.store import (
    dataset_inputs,
    filters,
    owner,
    recorded_histories,
    run_checks,
)
from normbench.results.store.run_labels import _count_equal_numbers

COST = names.TRAIN_COST.key
SECONDS = {metric.key: 1.0 for metric in run_checks.JOB_METRICS}


def run(role=names.SCHEME, run_id="1", tags=None, params=None, metrics=None, **info):
    own = {"run_id": run_id, "experiment_id": "7", "run_name": "a", "status": "FINISHED"}
    own |= {"start_time": 1, "end_time": 2, **info}
    data = {"tags": {names.ROLE.key: role, **(tags or {})}, "params": {"iterations": "9"}}
    data |= {"metrics": SECONDS if metrics is None else metrics}
    data["params"] |= params or {}
    return SimpleNamespace(info=SimpleNamespace(**own), data=SimpleNamespace(**data))


def trouble(*given, **more):
    return run_checks._first_trouble(run(*given, **more), {"7": "x", "8": b"x"})


STEP = {"role": names.STEP, "metrics": {names.STEP_SIZE.key: 0.5}}
SIZE = names.STEP_TAG.key
LARGEST = sys.float_info.max
# What a run has, and the words on it; none where it is read. Values of other kinds stand in ODD of
# test_run_checks.py, in a store.
TROUBLES = [
    ({"end_time": None, "run_name": None}, ""),
    ({"run_name": "x" * 8000, "params": {"p": "x" * 6000}, "tags": {"t": "x" * 8000}}, ""),
    ({"run_name": "x" * 8001}, "its name is no text, or too long"),
    ({"experiment_id": "9"}, "the name of its experiment is no text"),
    ({"experiment_id": "8"}, "the name of its experiment is no text"),
    ({"params": {"p": "x" * 6001}}, "its parameter 'p' has 6001 char"),
    ({"params": {"x" * 6001: "p"}}, "has a name of 6001 characters"),
    ({"tags": {"t": "x" * 8001}}, "its tag 't' has 8001 characters"),
    ({"tags": {f"t{n}": "" for n in range(1999)}}, ""),
    ({"tags": {f"t{n}": "" for n in range(2000)}}, "it has 2001 tags"),
    ({"metrics": SECONDS | {f"m{n}": 1 for n in range(1996)}}, ""),
    ({"metrics": SECONDS | {f"m{n}": 1 for n in range(1997)}}, "it has 2001 metrics"),
    ({"metrics": SECONDS | {"m" * 250: 1.0}}, ""),
    ({"metrics": SECONDS | {"m" * 251: 1.0}}, "its metric 'mmmm"),
    ({"metrics": SECONDS | {"m": -LARGEST}}, "its metric 'm' is -1.79769"),
    ({"tags": {names.VERDICT.key: names.FAILED}, "metrics": {}}, ""),
    ({"role": names.SWEEP, "metrics": {}, "tags": {names.JOBS.key: "123456789"}}, ""),
    ({"role": names.SWEEP, "tags": {names.JOBS.key: "1234567890"}}, "its tag jobs is '12345678"),
    ({"role": names.SWEEP, "tags": {names.JOBS.key: "\u00b2"}}, "its tag jobs"),
    (STEP | {"tags": {SIZE: "0.5"}}, ""),
    (STEP | {"tags": {SIZE: "1"}, "metrics": {}}, f"it has no metric {names.STEP_SIZE.key}"),
    (STEP | {"tags": {SIZE: "1"}, "metrics": {names.STEP_SIZE.key: 0.0}}, "step_size is 0.0"),
]


@pytest.mark.parametrize(("given", "words"), TROUBLES)
def test_a_run_is_read_up_to_the_bounds_of_its_values(given, words):
    told = trouble(**given)
    assert words in told
    assert bool(told) == bool(words)
    assert "\n" not in told


def test_steps_of_an_unreadable_job_are_left_out_with_it():
    runs = [
        run(run_id="1", metrics={}),
        run(**STEP, run_id="2", tags={SIZE: "1", names.PARENT.key: "1"}),
        run(run_id="3", tags={names.PARENT.key: "1"}),
        run(**STEP, run_id="4", tags={SIZE: "1", names.PARENT.key: "3"}),
    ]
    kept, notes = run_checks.readable(runs, {"7": "x"})
    assert [each.info.run_id for each in kept] == ["3", "4"]
    assert len(notes) == 1
    assert run_checks.is_named("1", notes)


def test_what_an_interrupted_recording_left_is_not_read():
    runs = [
        run(run_id="1", status="RUNNING"),
        run(**STEP, run_id="2", tags={names.PARENT.key: "1"}),
        run(run_id="3", status="FAILED"),
        run(**STEP, run_id="4", tags={names.PARENT.key: "3"}, status="RUNNING"),
        run(**STEP, run_id="5", tags={names.PARENT.key: "3"}),
        run(names.SWEEP, run_id="6", status="RUNNING"),
    ]
    kept = run_checks.without_interrupted(runs)
    assert [each.info.run_id for each in kept] == ["3", "5", "6"]


def point(value, step):
    return SimpleNamespace(value=value, step=step)


def test_a_history_is_whole_or_none():
    last = run_checks.MAX_ITERATION - 1
    points = [point(1.0, 0), point(-2, last)]
    assert run_checks.history(points) == points
    for odd in (point(1.0, -1), point(1.0, last + 1), point(float("nan"), 1), point("x", 1)):
        assert run_checks.history([*points, odd]) == ()
    assert last + 1 == 2**40


class Histories:
    """A client that counts what it is asked for."""

    def __init__(self, **values):
        self.values, self.asked = values, []

    def get_metric_history(self, run_id, metric):
        self.asked.append((run_id, metric))
        return [point(value, step) for step, value in enumerate(self.values.get(run_id, ()))]


def row(run_id, role=names.STEP, size="0.1", **columns):
    about = {"run_id": run_id, "experiment": "x", "normalizer": "n", "label": "l", "role": role}
    about |= {"verdict": "v", "parent": "p", names.STEP_TAG.column: size}
    return about | {f"{names.METRICS}{COST}": 1.0} | columns


def test_histories_are_read_once_and_odd_ones_are_named():
    rows = pd.DataFrame([row("a"), row("b"), row("c", **{f"{names.METRICS}{COST}": np.nan})])
    client, cache, left_out = Histories(a=[3.0, 2.0]), {}, []
    for _ in range(2):
        table = recorded_histories.table(client, rows, [COST, "other"], None, cache, left_out)
        assert list(table) == [*recorded_histories.RUN_COLUMNS, "iteration", COST]
        assert table["iteration"].tolist() == [0, 1]
        assert table[COST].tolist() == [3.0, 2.0]
        assert set(table["run_id"]) == {"a"}
        assert set(table["step_size"]) == {"0.1"}
    assert sorted(client.asked) == [("a", COST), ("b", COST)]
    assert len(left_out) == 1
    assert left_out[0].startswith(f"Run b is left out: its history {COST} is not whole")
    nothing = recorded_histories.table(client, rows[2:], [COST], None, {}, [])
    assert list(nothing) == [*recorded_histories.RUN_COLUMNS, "iteration"]
    assert nothing.empty


def test_a_thinned_history_comes_from_the_arrays_of_its_scheme():
    arrays = {
        "step_sizes": np.array([0.01, 1 / 3, 1.0]),
        COST: np.array([[[9.0, 9.0]] * 2, [[3.0, np.nan], [8.0, 8.0]], [[5.0, 4.0]] * 2]),
    }
    asked = []

    def descent(run_id):
        asked.append(run_id)
        return arrays

    thinned = {names.THINNED.column: "true"}
    rows = [row("a", size="0.333333", **thinned), row("b", names.SCHEME, "1", **thinned)]
    rows.append(row("c", **{names.THINNED.column: "false"}))
    client = Histories(c=[7.0])
    table = recorded_histories.table(client, pd.DataFrame(rows), [COST], descent, {}, [])
    assert asked == ["p", "b"]
    assert table[["run_id", "iteration", COST]].to_numpy().tolist() == [
        *(["a", 0, 3.0], ["b", 0, 5.0], ["b", 1, 4.0], ["c", 0, 7.0])
    ]


def test_a_filter_that_finds_nothing_is_answered_by_what_is_recorded():
    runs = [
        {"params": {"dataset": "iris", "cost.l2": "0"}, "tags": {"verdict": "failed"}},
        {"params": {"dataset": "digits"}, "tags": {}},
    ]
    told = filters.remedy("params.dataset = 'x' and params.dataset = 'y'", runs)
    assert told == "params.dataset is digits or iris there"
    assert filters.remedy("params.`datasets` = 'x'", runs) == (
        "no run has params.datasets; did you mean params.dataset"
    )
    assert filters.remedy("tags.zzz = 'x' and params.cost.l2 = '1'", runs) == (
        "no run has tags.zzz; there are verdict; params.cost.l2 is 0 there"
    )
    assert filters.remedy("nonsense", runs) == "write it as in \"params.dataset = 'digits'\""
    assert filters._listed(list("abcdefghijkl"), ", ") == "a, b, c, d, e, f, g, h, i, j, k, l"
    assert filters._listed(list("abcdefghijklm"), ", ").endswith("k, l, ...")


def given(*profiles):
    inputs = [
        SimpleNamespace(dataset=SimpleNamespace(name=f"d{n}", profile=profile, digest="f00"))
        for n, profile in enumerate(profiles)
    ]
    return SimpleNamespace(inputs=SimpleNamespace(dataset_inputs=inputs))


def test_a_data_set_is_told_with_its_sizes():
    whole = '{"train_points": 60, "test_points": 0, "features": 2}'
    assert dataset_inputs.describe(given(whole)) == (
        "d0: 60 train points, 0 test points, 2 features; fingerprint f00"
    )
    assert dataset_inputs.sizes(given(whole, "{}")) == {
        **{"train_points": 60, "test_points": 0, "features": 2}
    }
    for odd in ("{", "[1]", None, '{"features": -1}', '{"features": true}', '{"features": 2.0}'):
        assert dataset_inputs.describe(given(odd)) == "d0: size unknown; fingerprint f00"
        assert dataset_inputs.sizes(given(odd)) == {}
    most = 2**53
    assert dataset_inputs.sizes(given(f'{{"features": {most - 1}}}')) == {"features": most - 1}
    assert dataset_inputs.sizes(given(f'{{"features": {most}}}')) == {}
    assert dataset_inputs.describe(given("{}", "{}")).count("; fingerprint") == 2
    nothing = SimpleNamespace(inputs=None)
    assert (dataset_inputs.describe(nothing), dataset_inputs.sizes(nothing)) == ("", {})
    assert dataset_inputs.entries({"a": 1, "b": None}) == {"a": "1"}


def test_a_sweep_without_a_lock_is_alive_where_its_process_is(tmp_path, monkeypatch):
    here = {names.FOLDER.key: str(tmp_path), names.HOST.key: owner.host()}
    parent = str(os.getppid())
    assert owner.is_alive({}) is None
    assert owner.is_alive(here | {names.PROCESS.key: parent}) is True
    assert owner.is_alive(here | {names.HOST.key: "elsewhere", names.PROCESS.key: parent}) is None
    for number in ("", "x", str(os.getpid()), str(2**22 + 1), "9" * 30):
        assert owner.is_alive(here | {names.PROCESS.key: number}) is False

    def forbidden(process, signal):
        assert signal == 0
        raise PermissionError

    monkeypatch.setattr(os, "kill", forbidden)
    assert owner.is_alive(here | {names.PROCESS.key: parent}) is True


def test_a_lock_that_nobody_holds_ends_a_sweep(tmp_path):
    assert owner.is_locked(tmp_path) is None
    (tmp_path / owner.LOCK).write_text("")
    assert owner.is_locked(tmp_path) is False
    import fcntl

    with (tmp_path / owner.LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert owner.is_locked(tmp_path) is True


def test_equal_numbers_of_a_label_are_counted_from_five_on():
    assert _count_equal_numbers("[50, 50, 50, 50, 10]") == "[50, 50, 50, 50, 10]"
    assert _count_equal_numbers("[50, 50, 50, 50, 50, 10]") == "[5 x 50, 10]"
    assert _count_equal_numbers("[5,5,5,5,5,5]") == "[6 x 5]"
    assert _count_equal_numbers("[50, 5, 5, 5, 5, 50]") == "[50, 5, 5, 5, 5, 50]"
