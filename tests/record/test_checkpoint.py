"""A descent that was cut off goes on from its file, and nobody could tell by its numbers."""

import os
import re
import time
from dataclasses import fields

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import costs
from normbench.choices import build, options
from normbench.datasets import make_dataset
from normbench.engine.descent import Histories, SavedDescents, descend
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent
from normbench.record import checkpoint as checkpoints
from normbench.record import provenance
from normbench.record.checkpoint import DescentFile
from normbench.results.store import job_records
from tests import door
from tests.cases import COSTS, names

DESCENT = "ab" * 32
POINTS, FEATURES, CLASSES, ITERATIONS = 40, 3, 3, 20
# The last of them diverge, each at an iteration of its own.
STEP_SIZES = np.array([1e-3, 0.1, 1e20, 1e30, 1e38])


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch):
    """Leave out the wait for the disk, which only a loss of power makes necessary."""
    monkeypatch.setattr(job_records.os, "fsync", lambda _: None)


class StoppedError(Exception):
    """What ends a descent at once, as a kill does."""


class Always(DescentFile):
    """Keeps every iteration."""

    def due(self):
        return True


def problem(cost="multiclass_softmax", points=POINTS, dtype=float):
    rng = np.random.default_rng(points)
    x = rng.standard_normal((points, FEATURES)).astype(dtype)
    return door.problem(COSTS[cost], x, rng.integers(0, CLASSES, points), True, 0.01, CLASSES)


def descended(checkpoint=None, rule=None, progress=None, test=True, **more):
    train = problem(**more)
    start = np.full((len(STEP_SIZES), CLASSES, FEATURES + 1), 0.1, train.points.dtype)
    return descend(
        train,
        problem(points=POINTS + 1, **more) if test else None,
        rule or gradient_descent(),
        start,
        STEP_SIZES,
        door.plan(ITERATIONS),
        progress and (lambda k, *remaining: progress(k)),
        checkpoint and SavedDescents(checkpoint),
    )


def stop_at(last, error=StoppedError):
    """Return what stops a descent once that iteration is done."""

    def progress(k):
        if k == last:
            raise error

    return progress


def cut_off(folder, at=7, error=StoppedError, kind=Always, **more):
    """Descend until an iteration is done; every one before it is kept."""
    with pytest.raises(error):
        descended(kind(folder, DESCENT, 60), progress=stop_at(at, error), **more)


def resumed(folder, **more):
    """Return the histories of the descent that goes on, and the iterations that it made."""
    seen = []
    return descended(DescentFile(folder, DESCENT, 60), progress=seen.append, **more), seen


def same(one, other):
    """Return whether histories are the same to the last bit, and of the same types."""
    names_of = [field.name for field in fields(one) if field.name not in ("shadows", "seconds")]
    pairs = [(getattr(one, name), getattr(other, name)) for name in names_of]
    return all(
        (a is None and b is None) or (a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True))
        for a, b in pairs
    )


DTYPES = (np.float64, np.float32)


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, DTYPES[n % 2]) for n, name in enumerate(names("optimizer"))]
)
def test_a_descent_that_is_cut_off_again_and_again_has_the_same_numbers(tmp_path, name, dtype):
    rule = build("optimizer", options("optimizer", name))
    wanted = descended(rule=rule, dtype=dtype)
    for at in (1, 3, 4, 11, ITERATIONS):
        cut_off(tmp_path, at, rule=rule, dtype=dtype)
    found, seen = resumed(tmp_path, rule=rule, dtype=dtype)
    assert same(found, wanted)
    assert seen == [ITERATIONS]  # the last of its states is before the last evaluation


def test_runs_diverge_before_and_after_the_cut_off(tmp_path):
    """So the test above sees runs that left the stack, and runs that leave it later."""
    ends = descended().diverged_at
    assert {-1} < set(ends)
    assert len(set(ends[ends > 0])) > 1
    for at in range(2, ITERATIONS):
        cut_off(tmp_path, at)
        found, _ = resumed(tmp_path)
        assert same(found, descended())
        checkpoints.remove(tmp_path, DESCENT)


@pytest.mark.parametrize("test", [True, False])
@pytest.mark.parametrize("cost", ["multiclass_perceptron", "least_squares"])
def test_histories_that_are_not_there_are_not_kept(tmp_path, cost, test):
    cut_off(tmp_path, cost=cost, test=test)
    found, seen = resumed(tmp_path, cost=cost, test=test)
    assert seen[0] == 7
    assert same(found, descended(cost=cost, test=test))


def test_ctrl_c_keeps_the_descent_before_its_time(tmp_path):
    cut_off(tmp_path, 7, KeyboardInterrupt, DescentFile)
    found, seen = resumed(tmp_path)
    assert seen[0] == 7
    assert same(found, descended())


def test_ctrl_c_amid_an_iteration_keeps_what_was_before_it(tmp_path, monkeypatch):
    """A run that has just left the stack is in it again, and leaves it once more."""
    first = int(min(end for end in descended().diverged_at if end > 0))
    write = Histories.write

    def struck(self, k, *arguments):
        write(self, k, *arguments)
        if k == first:
            raise KeyboardInterrupt

    monkeypatch.setattr(Histories, "write", struck)
    with pytest.raises(KeyboardInterrupt):
        descended(DescentFile(tmp_path, DESCENT, 60))
    monkeypatch.setattr(Histories, "write", write)
    found, seen = resumed(tmp_path)
    assert seen[0] == first
    assert same(found, descended())


def test_a_short_descent_writes_nothing(tmp_path):
    descended(DescentFile(tmp_path, DESCENT, 60))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("takes", "later"), [(1.0, 60.0), (10.0, 200.0)])
def test_the_next_saving_is_a_minute_or_twenty_savings_later(tmp_path, monkeypatch, takes, later):
    clock = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])

    def write(file, **parts):
        clock[0] += takes

    monkeypatch.setattr(checkpoints.np, "savez", write)
    file = DescentFile(tmp_path, DESCENT, 60)
    file.save({})
    clock[0] += later - 1
    assert not file.due()
    clock[0] += 1
    assert file.due()


def test_the_seconds_of_a_descent_are_those_of_all_commands(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("normbench.engine.descent.time.perf_counter", lambda: clock[0])

    def tick(k):
        clock[0] += 1
        if k == 7:
            raise StoppedError

    with pytest.raises(StoppedError):
        descended(Always(tmp_path, DESCENT, 60), progress=tick)
    found, seen = resumed(tmp_path)
    assert seen[0] == 7
    assert found.seconds == 7  # the time of iterations 0 to 6; the clock has stopped since


def test_only_the_same_code_and_libraries_go_on(tmp_path, monkeypatch, capsys):
    cut_off(tmp_path)
    monkeypatch.setattr(checkpoints, "code_digest", lambda: "other code")
    found, seen = resumed(tmp_path)
    assert seen[0] == 0
    assert same(found, descended())
    assert "is not gone on from (it is of other code" in capsys.readouterr().err


def test_a_constant_of_the_engine_and_a_library_are_of_the_code(tmp_path, monkeypatch):
    known = provenance.code_digest.__wrapped__()
    assert known == provenance.code_digest()
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "version", lambda name: f"99 of {name}")
        assert provenance.code_digest.__wrapped__() != known
    monkeypatch.setattr(provenance, "PLACES", (*provenance.PLACES, tmp_path))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "new.py").write_text("EXTRA = 1")
    assert provenance.code_digest.__wrapped__() != known


@pytest.mark.parametrize("kind", ["cut off", "a folder", "a pickle"])
def test_what_is_damaged_or_in_the_way_costs_no_more_than_the_iterations(tmp_path, kind, capsys):
    cut_off(tmp_path)
    (file,) = tmp_path.glob("*/*.npz")
    content = file.read_bytes()
    file.unlink()
    if kind == "a folder":
        file.mkdir()
    elif kind == "cut off":
        file.write_bytes(content[: len(content) // 2])
    else:
        np.savez(file, weights=np.array([os.system, "touch pwned"], object))
    found, seen = resumed(tmp_path)
    assert seen[0] == 0
    assert same(found, descended())
    assert re.fullmatch(rf"{file}: is not gone on from \(.+\); .*anew\n", capsys.readouterr().err)


def test_where_nothing_can_be_written_the_job_goes_on(tmp_path, capsys):
    (tmp_path / checkpoints.FOLDER).write_text("a file")
    found = descended(Always(tmp_path, DESCENT, 60))
    assert same(found, descended())
    assert len(capsys.readouterr().err.splitlines()) == 2  # not read, and not written


def test_what_takes_pickle_is_not_written(tmp_path):
    DescentFile(tmp_path, DESCENT, 60).save({"state/0": np.array([{}], object)})
    assert list(tmp_path.iterdir()) == []


def test_two_commands_on_one_descent_do_not_mix(tmp_path):
    """Each writes whole files; whichever was the last is one moment of the one descent."""
    one, other = (Always(tmp_path, DESCENT, 60) for _ in range(2))

    def beside(k):
        if k == 9:
            assert same(descended(other), descended())
            checkpoints.remove(tmp_path, DESCENT)

    assert same(descended(one, progress=beside), descended())
    found, seen = resumed(tmp_path)
    assert seen == [ITERATIONS]
    assert same(found, descended())


def test_old_files_go(tmp_path):
    cut_off(tmp_path)
    (file,) = tmp_path.glob("*/*.npz")
    for days, stays in ((29, True), (31, False)):
        moment = time.time() - days * 86400
        os.utime(file, (moment, moment))
        checkpoints.tidy(tmp_path)
        assert file.exists() == stays


def make_job(kind):
    """Return a new job that is descended on an equal smaller problem."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal({"span": (40, 300)}.get(kind, (410, 5)))
    x[:, :2] *= kind != "columns"  # zeros
    y = x @ rng.standard_normal(x.shape[1])
    data = make_dataset("made", x[:-10], y[:-10], x_test=x[-10:], y_test=y[-10:], source="-")
    settings = Settings((1e-4, 1e-3, 1e6), iterations=200)
    rule = gradient_descent()
    return Job(data, costs.least_squares, FunctionTransformer(), rule, settings)


@pytest.mark.parametrize("kind", ["rows of R", "span", "columns"])
def test_a_job_goes_on_on_its_smaller_problem(tmp_path, kind):
    with pytest.raises(StoppedError):
        run(make_job(kind), stop_at(150), checkpoint=Always(tmp_path, DESCENT, 60))
    seen, file = [], DescentFile(tmp_path, DESCENT, 60)
    found, wanted = run(make_job(kind), seen.append, checkpoint=file), run(make_job(kind))
    assert seen[0] == 150
    assert found.descent_seconds > 0
    for mine, theirs in zip(found.steps, wanted.steps, strict=True):
        assert mine.verdict == theirs.verdict
        assert mine.histories.keys() == theirs.histories.keys()
        for name, history in mine.histories.items():
            np.testing.assert_array_equal(history, theirs.histories[name])
