"""The linear model: values, gradients and Hessians of every cost, whole and in blocks."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest

from normbench import costs
from normbench.choices import allow_packages, import_target
from normbench.costs.declaration import declare
from tests import door
from tests.cases import COSTS, classifies, formula, pairs, tasks
from tests.cases import FEW_CASES as CASES
from tests.engine.textbook import Problem

POINTS, FEATURES, RUNS = 41, 4, 3


ROOTS = np.random.default_rng(8).standard_normal((FEATURES, FEATURES - 1))
MIXED = ROOTS @ ROOTS.T  # a penalty that mixes features, and leaves one direction free


@declare("regression")
def pseudo_huber(scores, targets):
    """Stand in for a user's own cost: smooth, and nothing but autograd."""
    return anp.sum(anp.sqrt(1 + (scores[:, 0] - targets) ** 2) - 1, axis=-1)


def problem(cost, classes, rng, l2=0.0, dtype=np.float64):
    """Return a problem and weights `(R, C, N + 1)`, away from every kink."""
    x = rng.standard_normal((POINTS, FEATURES)).astype(dtype)
    if classes > 1:
        targets = rng.integers(0, classes, POINTS)
    elif "binary" in tasks(cost):
        targets = rng.choice([-1.0, 1.0], POINTS).astype(dtype)
    else:
        targets = rng.standard_normal(POINTS).astype(dtype)
    weights = rng.standard_normal((RUNS, classes, FEATURES + 1)).astype(dtype)
    return door.problem(cost, x, targets, classifies(cost, classes), l2, classes), weights


def hessians(train, weights):
    return np.array([train.hessian(one).matrix() for one in weights])


@pytest.fixture
def rng():
    return np.random.default_rng(5)


PENALTIES = {"none": 0.0, "one": 0.3, "each": np.array([0.1, 0.0, 2.0, 0.5]), "matrix": MIXED}
WAYS = ("whole", "points alone", "blocks", "threads", "autograd")


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("case", "penalty", "dtype", "way"),
    pairs(case=CASES, penalty=PENALTIES, dtype=["float64", "float32"], way=WAYS),
)
def test_costs_and_derivatives_are_those_of_the_textbook(
    case, penalty, dtype, way, rng, monkeypatch
):
    """In every way that they are evaluated; autograd: as a cost of one's own is."""
    name, classes = case
    l2 = PENALTIES[penalty]
    train, weights = problem(COSTS[name], classes, rng, l2, dtype)
    if way in ("points alone", "blocks", "threads"):
        row = np.dtype(dtype).itemsize * (FEATURES + RUNS * classes)
        threads = 3 if way == "threads" else 1
        door.share_work(monkeypatch, 1 if way == "points alone" else 7, row, threads)
    if way == "autograd":
        train = replace(train, cost=formula(COSTS[name]))
    seen = train.evaluate(weights)
    assert seen.gradient.dtype == dtype
    np.testing.assert_array_equal(train.evaluate(weights, with_gradient=False).costs, seen.costs)
    textbook = Problem(
        name, train.points.astype(float), train.targets, np.diag(l2) if np.ndim(l2) == 1 else l2
    )
    # Measured: of float64 and float32.
    near = {"rtol": 1e-12, "atol": 1e-13} if dtype == "float64" else {"rtol": 2e-5, "atol": 5e-6}
    for run, w in enumerate(weights.astype(float)):
        np.testing.assert_allclose(seen.costs[run], textbook.cost(w), **near)
        np.testing.assert_allclose(seen.gradient[run], textbook.gradient(w), **near)
        if train.classify:
            assert seen.misclassifications[run] == textbook.misclassified(w)
    hessian = train.hessian(weights[0]).matrix()
    np.testing.assert_allclose(hessian, textbook.hessian(weights[0].astype(float)), **near)


@pytest.mark.parametrize("far", [1e4, -1e4])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_far_scores_have_finite_derivatives(name, classes, far, rng):
    train, weights = problem(COSTS[name], classes, rng)
    here = train.evaluate(far * weights)
    assert np.isfinite(here.costs).all()
    assert np.isfinite(here.gradient).all()
    assert np.isfinite(hessians(train, far * weights)).all()


def test_a_cost_of_ones_own_is_any_autograd_function(rng):
    with allow_packages(["tests"]):
        cost = import_target("cost", f"{__name__}.pseudo_huber")
    train, weights = problem(cost, 1, rng)
    residual = (train.points @ weights[0, 0, 1:] + weights[0, 0, 0]) - train.targets
    here = train.evaluate(weights)
    np.testing.assert_allclose(here.costs[0], np.mean(np.sqrt(1 + residual**2) - 1), rtol=1e-13)
    slope = residual / np.sqrt(1 + residual**2)
    wanted = np.insert(train.points, 0, 1, axis=1).T @ slope / POINTS
    np.testing.assert_allclose(here.gradient[0, 0], wanted, rtol=1e-12, atol=1e-15)
    design = np.insert(train.points, 0, 1, axis=1) * ((1 + residual**2) ** -0.75)[:, None]
    np.testing.assert_allclose(hessians(train, weights)[0], design.T @ design / POINTS, rtol=1e-11)


def test_a_diverging_run_warns_of_nothing_in_any_thread(rng, monkeypatch):
    door.share_work(monkeypatch, 7, 8 * (FEATURES + RUNS), 2)
    train, weights = problem(COSTS["least_squares"], 1, rng)
    assert not np.isfinite(train.evaluate(weights * 1e200).costs).any()


@pytest.mark.parametrize("size", [None, 20])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_some_rows_are_a_problem_of_their_own(name, classes, size, rng):
    """Of a size larger than their number they, and the penalty, have their share of it."""
    train, weights = problem(COSTS[name], classes, rng, 0.3)
    rows = np.arange(5, 17)
    alone = replace(train, points=train.points[rows], targets=train.targets[rows])
    expected, share = alone.evaluate(weights), 12 / (size or 12)
    seen = train.evaluate(weights, rows, size=size)
    np.testing.assert_allclose(seen.costs, share * expected.costs, rtol=1e-12)
    np.testing.assert_allclose(seen.gradient, share * expected.gradient, atol=1e-13)
    np.testing.assert_array_equal(seen.misclassifications, expected.misclassifications)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_does_not_choose_the_class_of_a_held_out_point(dtype):
    rounding = np.array([1.0, -1, 1, -1], dtype) * np.finfo(dtype).eps
    x = np.zeros((5, 4), dtype)
    x[:4, 0], x[:4, 1] = 1 + rounding, -1  # whose sum is rounding
    x[4, 2] = 1e-4  # a small score is not rounding
    two = door.problem(costs.softmax, x, np.ones(5, dtype), True)
    slopes = np.array([[[0, 2, 2, 3, 0]]], dtype)
    three = door.problem(costs.multiclass_softmax, x, np.ones(5, int), True, 0.0, 3)
    weights = np.array([[[0, 0, 0, 0, 1], [0, 2, 2, 3, 0], [0, -2, -2, 0, 1]]], dtype)
    for train, numbers in ((two, slopes), (three, weights)):
        held_out = train.held_out(x, train.targets)
        counts = [each.evaluate(numbers).misclassifications[0] for each in (train, held_out)]
        assert counts == [2, 4]
    # Weights that are about to overflow make no score a rounding error.
    large = np.array([[[0, 0, 0, np.finfo(dtype).max / 2, 0]]], dtype)
    assert two.held_out(x, two.targets).evaluate(large).misclassifications == [4]


def test_scores_are_the_bias_and_the_weighted_features(rng):
    made = door.problem(costs.softmax, rng.standard_normal((5, 2)), np.ones(5), True, scores=2)
    scores = made.scores(np.array([[10.0, 1.0, 2.0], [-3.0, 0.0, 4.0]]), np.eye(2))
    assert scores.tolist() == [[11.0, 12.0], [-3.0, 1.0]]
