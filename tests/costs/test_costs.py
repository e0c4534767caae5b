"""Every cost under conf/cost: its formula, its derivative, its count, at every kind of score."""

import numpy as np
import pytest
from autograd.core import make_vjp
from scipy.special import expit
from scipy.special import softmax as probabilities

from normbench import costs
from normbench.costs import count_misclassified
from tests.cases import CASES, COSTS, classifies, formula, tasks

FUSED = [(name, classes) for name, classes in CASES if hasattr(COSTS[name], "fused")]
SCORES = ("random", "tied", "zero", "far", "mixed")
PRECISIONS = (np.float64, np.float32)
# Times the machine epsilon. Measured against the plain formula in float64: 3, in both types.
EPS = 8


def targets_for(name, classes, points, rng, dtype=np.float64):
    if classes > 1:
        return rng.integers(0, classes, points)
    if "binary" in tasks(COSTS[name]):
        return rng.choice([-1.0, 1.0], points).astype(dtype)
    return np.round(2 * rng.standard_normal(points)).astype(dtype)


def scores_for(kind, shape, rng, dtype=np.float64):
    """Return scores `(R, C, p)` of a kind; the small whole numbers of `tied` meet everywhere."""
    made = {
        "random": lambda: 3 * rng.standard_normal(shape),
        "tied": lambda: np.round(rng.standard_normal(shape)),
        "zero": lambda: np.zeros(shape),
        "far": lambda: rng.choice([-1e4, 1e4], shape),
        "mixed": lambda: rng.choice([-1e4, -1.0, 0.0, 1e-20, 1.0, 30.0, 1e4], shape),
    }
    return made[kind]().astype(dtype)


def plain_derivative(cost, scores, targets):
    """Return values and derivative of the plain formula, by autograd, in float64."""
    plain = formula(cost)
    pull_back, values = make_vjp(lambda s: plain(s, targets), scores.astype(np.float64))
    return values, pull_back(np.ones(len(scores)))


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("runs", [1, 4])
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize(("name", "classes"), FUSED)
def test_the_fused_pass_is_the_plain_formula(name, classes, kind, runs, dtype, rng):
    cost = COSTS[name]
    scores = scores_for(kind, (runs, classes, 57), rng, dtype)
    targets = targets_for(name, classes, 57, rng, dtype)
    wanted, derivative = plain_derivative(cost, scores, targets)
    counted = count_misclassified(scores, targets)
    block = scores.copy()
    values, counts = cost.fused(block, targets)
    eps = EPS * np.finfo(dtype).eps
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, wanted, rtol=eps, atol=eps)
    np.testing.assert_allclose(block, derivative, rtol=eps, atol=eps)
    if classifies(cost, classes):
        np.testing.assert_array_equal(counts, counted)


def test_a_tie_beside_a_score_that_is_not_a_number_is_counted():
    scores = np.array([[[1.0, np.nan, 0.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]])
    for targets, wrong in (([0, 0, 1], 1), ([1, 1, 1], 2), ([1, 2, 2], 3)):
        counts = COSTS["multiclass_softmax"].fused(scores.copy(), np.array(targets))[1]
        assert counts == wrong


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("name", "classes"), FUSED)
def test_a_derivative_has_no_number_below_the_smallest_normal_one(name, classes, dtype, rng):
    """Each product with such a number takes the processor 10 to 100 times as long."""
    cost, smallest = COSTS[name], np.finfo(dtype).tiny
    edge = -np.log(smallest)
    margins = np.sort(edge * rng.uniform(0.9, 1.1, 200))  # their exponentials are next to it
    scores = np.zeros((2, classes, 200), dtype)
    scores[0, 0], scores[1, 0] = margins, -margins
    targets = np.full(200, 0 if classes > 1 else 1)
    wanted, derivative = plain_derivative(cost, scores, targets)
    values, _ = cost.fused(scores, targets)
    assert not ((scores != 0) & (np.abs(scores) < smallest)).any()
    eps = EPS * np.finfo(dtype).eps
    np.testing.assert_allclose(values, wanted, rtol=eps, atol=eps)
    np.testing.assert_allclose(scores, derivative, rtol=eps, atol=eps)


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_autograd_sees_the_fused_derivative_and_the_plain_one_behind_it(name, classes, rng):
    cost = COSTS[name]
    scores = scores_for("random", (2, classes, 20), rng)
    targets = targets_for(name, classes, 20, rng)
    direction = rng.standard_normal(scores.shape)

    def second(function):
        def slope(s):
            return make_vjp(lambda t: function(t, targets), s)[0](np.ones(len(scores))) + 0 * s

        return make_vjp(slope, scores)[0](direction)

    np.testing.assert_array_equal(cost(scores, targets), formula(cost)(scores, targets))
    weight = np.array([0.5, -3.0])
    given = make_vjp(lambda s: cost(s, targets), scores)[0](weight)
    _, derivative = plain_derivative(cost, scores, targets)
    # Measured: 4e-16.
    np.testing.assert_allclose(given, weight[:, None, None] * derivative, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(second(cost), second(formula(cost)))


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_the_derivative_is_the_difference_quotient(name, classes, rng):
    """At scores with no kink within the step; measured, the largest error is 2e-8."""
    cost = COSTS[name]
    scores = rng.permuted(np.linspace(-2.013, 2.017, 2 * classes * 15)).reshape(2, classes, 15)
    targets = targets_for(name, classes, 15, rng)
    _, derivative = plain_derivative(cost, scores, targets)
    step = 1e-6
    for place in np.ndindex(classes, 15):
        moved = np.zeros(scores.shape)
        moved[(slice(None), *place)] = step
        quotient = cost(scores + moved, targets) - cost(scores - moved, targets)
        np.testing.assert_allclose(
            derivative[(slice(None), *place)], quotient / (2 * step), rtol=0, atol=2e-7
        )


CLOSED_FORMS = {
    "softmax": lambda s, y: (np.logaddexp(0, -y * s), -y * expit(-y * s)),
    "perceptron": lambda s, y: (np.maximum(0, -y * s), -y * np.heaviside(-y * s, 0.5)),
    "squared_margin": lambda s, y: (
        np.maximum(0, 1 - y * s) ** 2,
        -2 * y * np.maximum(0, 1 - y * s),
    ),
    "least_absolute_deviations": lambda s, y: (abs(s - y), np.sign(s - y)),
    "least_squares": lambda s, y: ((s - y) ** 2, 2 * (s - y)),
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_one_score_a_point_has_its_closed_form(name, kind, rng):
    scores = scores_for(kind, (3, 1, 50), rng)
    targets = targets_for(name, 1, 50, rng)
    values, derivative = CLOSED_FORMS[name](scores[:, 0], targets)
    found, _ = COSTS[name].fused(scores, targets)
    np.testing.assert_allclose(found, values.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(scores[:, 0], derivative, rtol=1e-14, atol=0)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_multiclass_derivatives_have_their_closed_forms(classes, kind, rng):
    scores = scores_for(kind, (3, classes, 50), rng)
    targets = rng.integers(0, classes, 50)
    one_hot = (np.arange(classes)[:, None] == targets).astype(float)
    largest = scores == scores.max(axis=1, keepdims=True)
    wanted = {
        "multiclass_softmax": probabilities(scores, axis=1) - one_hot,
        "multiclass_perceptron": largest / largest.sum(axis=1, keepdims=True) - one_hot,
        "least_squares": 2 * (scores - one_hot),
    }
    for name, derivative in wanted.items():
        block = scores.copy()
        COSTS[name].fused(block, targets)
        np.testing.assert_allclose(block, derivative, rtol=1e-13, atol=1e-15)


def test_what_counts_as_misclassified():
    one = np.array([[[2.0, -1.0, 0.0, 0.0, np.nan]]])
    assert count_misclassified(one, np.array([1.0, 1, 1, -1, 1])) == 4
    three = np.array([[[1.0, 1, 0, 0], [1, 1, 0, 2], [0, 0, 0, 1]]])
    assert count_misclassified(three, np.array([0, 1, 2, 1])) == 2
    assert costs.multiclass_softmax.fused(three, np.array([0, 1, 2, 1]))[1] == 2
    with_nan = np.array([[[np.nan, 0, 0], [0, np.nan, 1]]])
    assert count_misclassified(with_nan, np.array([0, 1, 1])) == 2
