"""The linear model: values, gradients and Hessians of every cost, plainly and in blocks."""

from dataclasses import FrozenInstanceError, replace

import autograd.numpy as anp
import numpy as np
import pytest

from normbench import costs
from normbench.choices import allow_packages, import_target
from normbench.costs.declaration import declare
from normbench.engine.fast import blocked
from normbench.engine.fast.blocked import Blocked
from normbench.engine.problem import Objective
from tests.cases import COSTS, classifies, formula, tasks
from tests.cases import FEW_CASES as CASES

POINTS, FEATURES, RUNS = 41, 4, 3


ROOTS = np.random.default_rng(8).standard_normal((FEATURES, FEATURES - 1))
MIXED = ROOTS @ ROOTS.T  # a penalty that mixes features, and leaves one direction free


@declare("regression")
def pseudo_huber(scores, targets):
    """Stand in for a user's own cost: smooth, and nothing but autograd."""
    return anp.sum(anp.sqrt(1 + (scores[:, 0] - targets) ** 2) - 1, axis=-1)


def problem(cost, classes, rng, l2=0.0, dtype=np.float64, kind=Blocked):
    """Return an objective and weights `(R, C, N + 1)`, away from every kink."""
    x = rng.standard_normal((POINTS, FEATURES)).astype(dtype)
    if classes > 1:
        targets = rng.integers(0, classes, POINTS)
    elif "binary" in tasks(cost):
        targets = rng.choice([-1.0, 1.0], POINTS).astype(dtype)
    else:
        targets = rng.standard_normal(POINTS).astype(dtype)
    weights = rng.standard_normal((RUNS, classes, FEATURES + 1)).astype(dtype)
    return kind(cost, x, targets, classifies(cost, classes), l2, classes), weights


def costs_at(train, weights):
    return train.evaluate(weights, with_gradient=False).costs


def hessians(train, weights):
    return np.array([train.hessian(one).matrix() for one in weights])


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("l2", [0.0, 0.3, MIXED], ids=["none", "one", "matrix"])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_a_gradient_is_the_difference_quotient_of_the_costs(name, classes, l2, rng):
    train, weights = problem(COSTS[name], classes, rng, l2)
    gradient = train.evaluate(weights).gradient
    step = 1e-6
    for place in np.ndindex(weights.shape[1:]):
        moved = np.zeros(weights.shape)
        moved[(slice(None), *place)] = step
        quotient = (costs_at(train, weights + moved) - costs_at(train, weights - moved)) / (
            2 * step
        )
        # Measured: 5e-9.
        np.testing.assert_allclose(gradient[(slice(None), *place)], quotient, rtol=0, atol=5e-8)


@pytest.mark.parametrize("l2", [0.0, 0.3, MIXED], ids=["none", "one", "matrix"])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_a_hessian_is_the_difference_quotient_of_the_gradients(name, classes, l2, rng):
    train, weights = problem(COSTS[name], classes, rng, l2)
    size = classes * (FEATURES + 1)
    hessian = hessians(train, weights)
    assert hessian.shape == (RUNS, size, size)
    step = 1e-6
    for number in range(size):
        moved = np.zeros((1, size))
        moved[0, number] = step
        moved = moved.reshape(1, *weights.shape[1:])
        up, down = (train.evaluate(weights + sign * moved).gradient for sign in (1, -1))
        quotient = ((up - down) / (2 * step)).reshape(RUNS, size)
        # Measured: 9e-10.
        np.testing.assert_allclose(hessian[:, number], quotient, rtol=0, atol=5e-8)


def gram(x):
    design = np.insert(x, 0, 1, axis=1)
    return design.T @ design / len(x)


def test_least_squares_has_twice_the_gram_matrix_for_its_hessian(rng):
    train, weights = problem(costs.least_squares, 1, rng)
    for hessian in hessians(train, weights):
        np.testing.assert_allclose(hessian, 2 * gram(train.x), rtol=1e-12, atol=1e-14)


def test_softmax_has_a_quarter_of_the_gram_matrix_at_zero(rng):
    train, weights = problem(costs.softmax, 1, rng)
    np.testing.assert_allclose(
        hessians(train, 0 * weights)[0], gram(train.x) / 4, rtol=1e-12, atol=1e-14
    )


def test_multiclass_softmax_has_its_closed_form_at_zero_and_is_flat_under_a_shift(rng):
    classes = 3
    train, weights = problem(costs.multiclass_softmax, classes, rng)
    middle = (np.eye(classes) - 1 / classes) / classes
    wanted = np.kron(middle, gram(train.x))
    np.testing.assert_allclose(hessians(train, 0 * weights)[0], wanted, rtol=1e-12, atol=1e-14)
    for hessian in hessians(train, weights):
        eigenvalues = np.linalg.eigvalsh(hessian)
        assert np.sum(abs(eigenvalues) < 1e-14) == FEATURES + 1  # measured: 3e-17
        # Boehning's bound on the curvature, anywhere.
        assert eigenvalues[-1] <= np.linalg.eigvalsh(gram(train.x))[-1] / 2


@pytest.mark.parametrize("far", [1e4, -1e4])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_far_scores_have_finite_derivatives(name, classes, far, rng):
    train, weights = problem(COSTS[name], classes, rng)
    here = train.evaluate(far * weights)
    assert np.isfinite(here.costs).all()
    assert np.isfinite(here.gradient).all()
    assert np.isfinite(hessians(train, far * weights)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("points_a_block", [1, 7, POINTS])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_blocks_change_nothing(name, classes, points_a_block, dtype, rng, monkeypatch):
    train, weights = problem(COSTS[name], classes, rng, 0.1, dtype)
    whole = train.evaluate(weights)
    curvature = hessians(train, weights)
    width = np.dtype(dtype).itemsize * (FEATURES + RUNS * classes)
    monkeypatch.setattr(blocked, "BLOCK_BYTES", points_a_block * width)
    parts = train.evaluate(weights)
    tolerance = 20 * np.finfo(dtype).eps  # measured: 2 eps
    np.testing.assert_allclose(parts.costs, whole.costs, rtol=tolerance)
    np.testing.assert_allclose(parts.gradient, whole.gradient, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(hessians(train, weights), curvature, rtol=tolerance, atol=tolerance)
    if train.classify:
        np.testing.assert_array_equal(parts.misclassifications, whole.misclassifications)
    assert parts.gradient.dtype == dtype


@pytest.mark.parametrize("begin", [0, 5])
@pytest.mark.parametrize("points", [1, 2, 7, 10, 11, 40, POINTS])
def test_blocks_are_as_few_as_fit_and_of_one_size(points, begin):
    """Every other part's first block is a half."""
    most = 10
    sizes = {}
    for number in (0, 1):
        spans = blocked.split_span((number, slice(begin, begin + points)), most)
        ends = [begin, *(span.stop for span in spans)]
        assert [span.start for span in spans] == ends[:-1]
        assert ends[-1] == begin + points
        sizes[number] = np.diff(ends)
    assert len(sizes[0]) == np.ceil(points / most)
    assert max(sizes[0]) <= most
    assert max(sizes[0]) - min(sizes[0]) < len(sizes[0])
    assert points == 1 or sizes[1][0] == -(-max(sizes[0]) // 2)
    assert len(blocked.split_span((0, slice(0, points)), 0)) == points


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_autograd_alone_gives_the_same(name, classes, rng):
    """A user's cost goes through autograd, the built-in ones through their fused pass."""
    train, weights = problem(COSTS[name], classes, rng, 0.1)
    other = replace(train, cost=formula(COSTS[name]))
    assert not hasattr(other.cost, "fused")
    here, there = train.evaluate(weights), other.evaluate(weights)
    np.testing.assert_allclose(here.costs, there.costs, rtol=1e-14)  # measured: 4e-16
    np.testing.assert_allclose(here.gradient, there.gradient, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(here.misclassifications, there.misclassifications)
    np.testing.assert_allclose(costs_at(other, weights), here.costs, rtol=1e-14)
    np.testing.assert_array_equal(hessians(train, weights), hessians(other, weights))


def test_a_cost_of_ones_own_is_any_autograd_function(rng):
    with allow_packages(["tests"]):
        cost = import_target("cost", f"{__name__}.pseudo_huber")
    train, weights = problem(cost, 1, rng)
    residual = (train.x @ weights[0, 0, 1:] + weights[0, 0, 0]) - train.targets
    here = train.evaluate(weights)
    np.testing.assert_allclose(here.costs[0], np.mean(np.sqrt(1 + residual**2) - 1), rtol=1e-13)
    slope = residual / np.sqrt(1 + residual**2)
    wanted = np.insert(train.x, 0, 1, axis=1).T @ slope / POINTS
    np.testing.assert_allclose(here.gradient[0, 0], wanted, rtol=1e-12, atol=1e-15)
    design = np.insert(train.x, 0, 1, axis=1) * ((1 + residual**2) ** -0.75)[:, None]
    np.testing.assert_allclose(hessians(train, weights)[0], design.T @ design / POINTS, rtol=1e-11)


def test_the_points_and_weights_are_left_as_they_were(rng):
    for name, classes in CASES:
        train, weights = problem(COSTS[name], classes, rng)
        before = [array.copy() for array in (train.x, train.targets, weights)]
        train.evaluate(weights)
        costs_at(train, weights)
        hessians(train, weights)
        for array, kept in zip((train.x, train.targets, weights), before):
            np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_threads_over_parts_of_the_points_sum_the_same(name, classes, dtype, rng, monkeypatch):
    train, weights = problem(COSTS[name], classes, rng, dtype=dtype)
    alone = train.evaluate(weights)
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: 3)
    assert (
        len(train.thread_spans(len(weights))) == 1
    )  # little work, which several threads make no quicker
    monkeypatch.setattr(blocked, "PARALLEL_WORK", 1)
    assert len(train.thread_spans(len(weights))) == (3 if hasattr(COSTS[name], "fused") else 1)
    together = train.evaluate(weights)
    # Measured: 2e-15 and 8e-7.
    tolerance = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(together.costs, alone.costs, rtol=tolerance)
    np.testing.assert_allclose(together.gradient, alone.gradient, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(together.misclassifications, alone.misclassifications)


def test_a_diverging_run_warns_of_nothing_in_any_thread(rng, monkeypatch):
    monkeypatch.setattr(blocked, "PARALLEL_WORK", 1)
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: 2)
    train, weights = problem(COSTS["least_squares"], 1, rng)
    assert not np.isfinite(train.evaluate(weights * 1e200).costs).any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "l2", [0.0, 0.3, np.array([0.1, 0.0, 2.0, 0.5]), MIXED], ids=["none", "one", "each", "matrix"]
)
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_the_plain_way_gives_what_the_blocks_give(name, classes, l2, dtype, rng, monkeypatch):
    quick, weights = problem(COSTS[name], classes, rng, l2, dtype)
    monkeypatch.setattr(blocked, "BLOCK_BYTES", 500)
    plain = Objective(quick.cost, quick.x, quick.targets, quick.classify, l2, classes)
    assert plain.shape == quick.shape == weights.shape[1:]
    here, there = quick.evaluate(weights), plain.evaluate(weights)
    # Measured: 4e-16 and 3e-7.
    near = {"rtol": 1e-13, "atol": 1e-14} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(there.costs, here.costs, **near)
    np.testing.assert_allclose(there.gradient, here.gradient, **near)
    np.testing.assert_array_equal(there.misclassifications, here.misclassifications)
    np.testing.assert_array_equal(hessians(plain, weights), hessians(quick, weights))


def test_a_penalty_of_each_feature_is_the_one_of_all_where_they_are_equal(rng):
    one, weights = problem(COSTS["softmax"], 1, rng, 0.3)
    each = replace(one, l2=np.full(FEATURES, 0.3))
    here, there = one.evaluate(weights), each.evaluate(weights)
    np.testing.assert_allclose(there.costs, here.costs, rtol=1e-14)
    np.testing.assert_allclose(there.gradient, here.gradient, rtol=1e-14)
    np.testing.assert_allclose(hessians(each, weights), hessians(one, weights), rtol=1e-14)


def test_an_objective_keeps_nothing_from_one_evaluation_to_the_next(rng):
    train, weights = problem(COSTS["softmax"], 1, rng)
    fields = dict(vars(train))
    memory = {}
    here = train.evaluate(weights, workspace=memory)
    assert memory
    assert vars(train) == fields
    there = train.evaluate(weights, workspace=memory)
    np.testing.assert_array_equal(here.gradient, there.gradient)
    with pytest.raises(FrozenInstanceError):
        train.l2 = 1.0


@pytest.mark.parametrize("kind", [Objective, Blocked])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_does_not_choose_the_class_of_a_held_out_point(kind, dtype):
    rounding = np.array([1.0, -1, 1, -1], dtype) * np.finfo(dtype).eps
    x = np.zeros((5, 4), dtype)
    x[:4, 0], x[:4, 1] = 1 + rounding, -1  # whose sum is rounding
    x[4, 2] = 1e-4  # a small score is not rounding
    two = kind(costs.softmax, x, np.ones(5, dtype), True, held_out=True)
    slopes = np.array([[[0, 2, 2, 3, 0]]], dtype)
    assert two.evaluate(slopes, False).misclassifications == [4]
    three = kind(costs.multiclass_softmax, x, np.ones(5, int), True, 0.0, 3, held_out=True)
    weights = np.array([[[0, 0, 0, 0, 1], [0, 2, 2, 3, 0], [0, -2, -2, 0, 1]]], dtype)
    assert three.evaluate(weights, False).misclassifications == [4]
    counts = [
        replace(problem, held_out=False).evaluate(numbers, False).misclassifications[0]
        for problem, numbers in ((two, slopes), (three, weights))
    ]
    assert counts == [2, 2]
    # Weights that are about to overflow make no score a rounding error.
    large = np.array([[[0, 0, 0, np.finfo(dtype).max / 2, 0]]], dtype)
    assert two.evaluate(large, False).misclassifications == [4]
