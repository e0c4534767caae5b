"""Equal smaller problems: the same histories and weights, and where there is none."""

from dataclasses import replace

import numpy as np
import pytest

from normbench import costs, optimizers
from normbench.engine import smaller
from normbench.engine.smaller import Smaller, smaller_problem
from tests import door
from tests.door import descend

SIZES, RECORDS = (1e-4, 1e-3), 60
RULE = optimizers.gradient_descent()
# The points and features of the smaller problem of each kind.
SHAPES = {"columns": (400, 4), "rows of R": (7, 5), "span": (30, 30)}


@pytest.fixture(autouse=True)
def small_points(monkeypatch):
    """Leave out columns of few points, too, and compute R in several blocks."""
    monkeypatch.setattr(smaller, "MIN_POINT_ENTRIES", 1)
    monkeypatch.setattr(smaller, "MIN_BLOCK_ROWS", 100)


def given(kind, cost=costs.least_squares, l2=0.0, classes=1, beside=0.0, dtype=float):
    """Return a problem that has a smaller one; beside: the weights where it starts."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal({"span": (40, 300)}.get(kind, (410, 5))).astype(dtype)
    if kind == "columns":
        x[:-10, 1] = 0  # at the training points alone
    y = (2 * x[:, 0] + rng.standard_normal(len(x))).astype(dtype)
    is_real = cost is costs.least_squares and classes == 1
    targets = y if is_real else np.sign(y) if classes == 1 else np.digitize(y, [-0.5, 0.5])
    train = door.problem(cost, x[:-10], targets[:-10], not is_real, l2, classes)
    start = np.zeros((2, *train.shape), dtype)
    start[1] = beside
    return Smaller(train, train.held_out(x[-10:], targets[-10:]), start)


def smaller_of(problem, rule, records=RECORDS):
    """Return the smaller problem, or the given one itself."""
    train, test, start, _ = problem
    runs = len(SIZES) * len(start)
    less = smaller_problem(train, test, start, rule, door.plan(records), runs)
    return problem if less.train is train else less


def histories(problem, rule):
    """Return the histories of a problem, with the weights of the given one."""
    start = np.concatenate([problem.start] * len(SIZES))
    sizes = np.repeat(SIZES, len(problem.start))
    made = descend(problem.train, problem.test, rule, start, sizes, door.plan(RECORDS))
    return replace(made, weights=problem.to_given(made.weights))


EACH, MATRIX = np.arange(5.0), np.diag(np.arange(5.0)) + 0.5
THREE = {"cost": costs.multiclass_softmax, "classes": 3}
EQUAL = [
    ("columns", {"cost": costs.softmax}, RULE),
    ("columns", {"cost": costs.softmax, "l2": EACH}, optimizers.adam()),
    ("columns", {**THREE, "dtype": np.float32}, RULE),
    ("rows of R", {"beside": 0.1}, RULE),
    ("rows of R", {"l2": 0.3}, optimizers.adam()),
    ("rows of R", {"l2": EACH}, RULE),
    ("rows of R", {"l2": MATRIX}, optimizers.momentum()),
    ("span", {"beside": 0.0}, RULE),
    ("span", {**THREE, "l2": 0.1}, optimizers.nesterov()),
    ("span", {"cost": costs.softmax, "beside": 0.0}, optimizers.momentum()),
]


@pytest.mark.parametrize(("kind", "settings", "rule"), EQUAL)
def test_a_smaller_problem_has_the_histories_and_weights_of_the_whole(kind, settings, rule):
    whole = given(kind, **settings)
    less = smaller_of(whole, rule)
    assert less.train.points.shape == SHAPES[kind]
    mine, theirs = histories(less, rule), histories(whole, rule)
    near = 1e-4 if settings.get("dtype") else 1e-9
    for name in ("cost", "test_cost", "weights"):
        np.testing.assert_allclose(
            getattr(mine, name), getattr(theirs, name), rtol=near, atol=near, err_msg=name
        )
    np.testing.assert_array_equal(mine.misclassifications, theirs.misclassifications)


def test_a_start_beside_the_points_is_in_their_span():
    rng = np.random.default_rng(4)
    whole = given("span", cost=costs.softmax, l2=0.1)
    whole = whole._replace(start=rng.standard_normal(whole.start.shape))
    less = smaller_of(whole, RULE)
    assert less.train.points.shape == (30, 32)
    np.testing.assert_allclose(less.to_given(less.start), whole.start, atol=1e-13)
    mine, theirs = histories(less, RULE), histories(whole, RULE)
    for name in ("cost", "test_cost", "weights"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-9, atol=1e-9)


NONE = [
    ("columns", {"cost": costs.softmax, "l2": MATRIX}, RULE),
    ("columns", {"cost": costs.softmax, "beside": 0.1}, RULE),
    ("rows of R", {"cost": costs.softmax}, RULE),
    ("rows of R", {"classes": 3}, RULE),
    ("rows of R", {"dtype": np.float32}, RULE),
    ("rows of R", {}, optimizers.newton()),
    ("span", {}, optimizers.adam()),
    ("span", {}, optimizers.newton()),
    ("span", {"l2": np.arange(300.0)}, RULE),
    ("span", {"dtype": np.float32}, RULE),
]


@pytest.mark.parametrize(("kind", "settings", "rule"), NONE)
def test_there_is_none_where_it_would_be_another_problem(kind, settings, rule):
    whole = given(kind, **settings)
    assert smaller_of(whole, rule) is whole


def test_there_is_none_where_it_takes_more_work():
    for kind in ("rows of R", "span"):
        whole = given(kind)
        assert smaller_of(whole, RULE, records=1) is whole
