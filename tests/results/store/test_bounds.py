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
    looks,
    memory,
    owner,
    recorded_histories,
    run_checks,
)
from normbench.results.store.job_records import JobRecord, RunRecord
from normbench.results.store.run_labels import _count_equal_numbers, labels

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
TROUBLES = {
    "none": ({}, ""),
    "no end": ({"end_time": None}, ""),
    "no name": ({"run_name": None}, ""),
    "a long name": ({"run_name": "x" * 8000}, ""),
    "too long a name": ({"run_name": "x" * 8001}, "its name is no text, or too long"),
    "a name in bytes": ({"run_name": b"x"}, "its name is no text, or too long"),
    "another experiment": ({"experiment_id": "9"}, "the name of its experiment is no text"),
    "bytes of experiment": ({"experiment_id": "8"}, "the name of its experiment is no text"),
    "no start": ({"start_time": None}, "it has no time"),
    "a text as end": ({"end_time": "x"}, "it has no time"),
    "a long parameter": ({"params": {"p": "x" * 6000}}, ""),
    "too long a parameter": ({"params": {"p": "x" * 6001}}, "its parameter 'p' has 6001 char"),
    "too long a key": ({"params": {"x" * 6001: "p"}}, "has a name of 6001 characters"),
    "a long tag": ({"tags": {"t": "x" * 8000}}, ""),
    "too long a tag": ({"tags": {"t": "x" * 8001}}, "its tag 't' has 8001 characters"),
    "a number as tag": ({"tags": {"t": 3}}, "its tag 't' is no text"),
    "a number as key": ({"tags": {3: "t"}}, "its tag 3 is no text"),
    "most tags": ({"tags": {f"t{n}": "" for n in range(1999)}}, ""),
    "too many tags": ({"tags": {f"t{n}": "" for n in range(2000)}}, "it has 2001 tags"),
    "most metrics": ({"metrics": SECONDS | {f"m{n}": 1 for n in range(1996)}}, ""),
    "too many metrics": (
        {"metrics": SECONDS | {f"m{n}": 1 for n in range(1997)}},
        "it has 2001 metrics",
    ),
    "a long metric": ({"metrics": SECONDS | {"m" * 250: 1.0}}, ""),
    "too long a metric": ({"metrics": SECONDS | {"m" * 251: 1.0}}, "its metric 'mmmm"),
    "a metric of no text": ({"metrics": SECONDS | {3: 1.0}}, "its metric 3 is 1.0"),
    "an infinite metric": ({"metrics": SECONDS | {"m": LARGEST}}, "its metric 'm' is 1.79769"),
    "a metric below": ({"metrics": SECONDS | {"m": -LARGEST}}, "its metric 'm' is -1.79769"),
    "another role": ({"role": "x"}, "its tag role is 'x'"),
    "a sweep": ({"role": names.SWEEP, "metrics": {}}, ""),
    "jobs": ({"role": names.SWEEP, "tags": {names.JOBS.key: "123456789"}}, ""),
    "too many jobs": (
        {"role": names.SWEEP, "tags": {names.JOBS.key: "1234567890"}},
        "its tag jobs is '1234567890'",
    ),
    "a digit of jobs": ({"role": names.SWEEP, "tags": {names.JOBS.key: "\u00b2"}}, "its tag jobs"),
    "words of jobs": ({"role": names.SWEEP, "tags": {names.JOBS.key: "x"}}, "its tag jobs is 'x'"),
    "a step": (STEP | {"tags": {SIZE: "0.5"}}, ""),
    "a step without a size": (STEP, f"its tag {SIZE} is not there"),
    "a step without a number": (
        {"role": names.STEP, "tags": {SIZE: "0.5"}, "metrics": {}},
        f"it has no metric {names.STEP_SIZE.key}",
    ),
    "a step of 0": (STEP | {"tags": {SIZE: "0"}}, f"its tag {SIZE} is '0'"),
    "an infinite step": (STEP | {"tags": {SIZE: "inf"}}, f"its tag {SIZE} is 'inf'"),
    "a scheme's step": ({"tags": {SIZE: "nan"}}, f"its tag {SIZE} is 'nan'"),
    "a step's number of 0": (
        {"role": names.STEP, "tags": {SIZE: "1"}, "metrics": {names.STEP_SIZE.key: 0.0}},
        f"its metric {names.STEP_SIZE.key} is 0.0",
    ),
    "a failed job": ({"tags": {names.VERDICT.key: names.FAILED}, "metrics": {}}, ""),
    "a job without seconds": ({"metrics": {}}, f"it has no metric {names.FIT_SECONDS.key}"),
    "a parameter": ({"params": {"iterations": "-1"}}, "its parameter iterations is '-1'"),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_a_run_is_read_up_to_the_bounds_of_its_values(name):
    given, words = TROUBLES[name]
    told = trouble(**given)
    assert words in told
    assert bool(told) == bool(words)
    assert "\n" not in told


def test_long_values_are_abbreviated():
    assert run_checks._abbreviate(None) == "not there"
    assert run_checks._abbreviate("x" * 31) == f"'{'x' * 30}'"
    assert run_checks._abbreviate(b"x" * 31) == f"b'{'x' * 30}'"
    most, more = [0] * 20, [0] * 21
    assert len(repr(most)) == 60
    assert run_checks._abbreviate(most) == repr(most)
    assert run_checks._abbreviate(more) == f"{repr(more)[:30]}..."


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


def test_many_runs_are_counted_after_the_first_ones():
    most = run_checks.MAX_NAMED_RUNS
    notes = [str(n) for n in range(most + 1)]
    assert run_checks.first_sentences(notes[:-1]) == notes[:-1]
    assert run_checks.first_sentences(notes) == [*notes[:-1], "And 1 more runs are left out."]


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


def test_shades_of_a_look_are_lighter_and_darker_in_turn():
    names_ = ["identity", "pca_sphere", "pca_sphere", "pca_sphere", "pca_sphere", "identity"]
    first, base, *shades, black = looks.looks(names_)
    assert (first, base) == (looks.LOOKS["identity"], looks.LOOKS["pca_sphere"])

    def mixed(color, share, target):
        channels = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        numbers = [round(255 * ((1 - share) * c + share * target)) for c in channels]
        return "#{:02x}{:02x}{:02x}".format(*numbers)

    expected = [(0.4, 0.85), (0.4, 0.0), (0.6, 0.85)]
    assert [shade.color for shade in shades] == [mixed(base.color, *pair) for pair in expected]
    assert [shade.line for shade in shades] == ["--", "-.", ":"]
    assert [shade.marker for shade in shades] == ["s", "D", "v"]  # o and ^ are in use
    assert black == looks.Look(mixed("#000000", 0.4, 0.85), "P", "--")
    many = looks.looks(["identity"] * 20)
    assert [look.color for look in many[7::2]] == [mixed("#000000", 0.8, 0.85)] * 7
    assert many[5].color == mixed("#000000", 0.8, 0.85)
    assert len({look.marker for look in many[:12]}) == 12
    assert {look.marker for look in many[12:]} == {"o"}


def test_a_scheme_without_a_look_has_one_by_its_name(monkeypatch):
    others = {name: looks.look(name) for name in map(str, range(40))}
    assert set(others.values()) == set(looks.LOOKS_OF_OTHER_SCHEMES)
    assert looks.look("7") == others["7"]
    twins = [name for name, look in others.items() if look == others["7"]]
    first, second = looks.looks([twins[0], twins[1]])
    assert first == others["7"]
    assert second == looks._shade(first, 1, {first.marker})


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


def test_runs_of_one_normalizer_are_told_apart_by_what_differs():
    def scheme(run_id, normalizer, **settings):
        about = {"run_id": run_id, "role": "scheme", "experiment": "x", "normalizer": normalizer}
        about |= {f"{names.TAGS}normalizer": normalizer, names.SWEEP_ID.column: f"s{run_id}"}
        return about | {names.setting(key): text for key, text in settings.items()}

    table = pd.DataFrame(
        [
            scheme("1", "a", seed="1", theory="full"),
            scheme("2", "a", seed="2", theory="full"),
            scheme("3", "b", seed="2", theory="full"),
            scheme("4", "c", seed="2", theory="full"),
            scheme("5", "c", seed="2", theory="full"),
        ]
    )
    assert labels(table).tolist() == [
        *("a, seed=1", "a, seed=2", "b"),
        *("c, sweep_id=s4, run_id=4", "c, sweep_id=s5, run_id=5"),
    ]


def test_jobs_in_memory_are_runs_with_ids_parents_and_series():
    steps = [RunRecord("s", {"verdict": "v"}, [("c", 3.0, 0), ("c", 2.0, 1), ("d", 7.0, 0)])]
    record = JobRecord(
        *("-", "x", "", {"iterations": "2"}, RunRecord("a", {"t": "u"})),
        steps=steps,
        dataset={"name": "d"},
        arrays={"path": {"weights": np.arange(3)}},
    )
    client = memory.MemoryClient([record, record], {names.COMMAND.key: "normbench"})
    ids = [each.info.run_id for each in client.runs]
    assert ids == ["0", "1", "2", "3", "4"]
    roles = [each.data.tags[names.ROLE.key] for each in client.runs]
    assert roles == ["sweep", "scheme", "step", "scheme", "step"]
    parents = [each.data.tags.get(names.PARENT.key) for each in client.runs]
    assert parents == [None, "0", "1", "0", "3"]
    assert client.runs[2].data.metrics == {"c": 2.0, "d": 7.0}
    assert [(p.step, p.value) for p in client.get_metric_history("2", "c")] == [(0, 3.0), (1, 2.0)]
    assert client.get_metric_history("1", "c") == []
    assert client.runs[1].data.params == {"iterations": "2"}
    assert client.runs[2].data.params == {}
    assert len(client.runs[1].inputs.dataset_inputs) == 1
    assert client.runs[0].inputs.dataset_inputs == []
    now = client.runs[0].info
    assert now.start_time == now.end_time > 1_700_000_000_000
    assert now.start_time < 100_000_000_000_000
