"""The linear model whose scores are normalized over the points."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import names, optimizers
from normbench.costs import least_squares, softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run, with_default_start
from normbench.models import linear
from tests import door

POINTS, FEATURES = 30, 4


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def points(rng):
    x = rng.standard_normal((POINTS, FEATURES)) * [1, 2, 5, 10]
    return x, x @ [1, -1, 0.5, 0.1] + 0.3 * rng.standard_normal(POINTS) + 2


def problem(points, cost=least_squares, **options):
    model = linear("batch", **options)
    return door.network(model, cost, *points, False, 1)


def start_of(network, runs, rng):
    return network.model.mlp.start(door.layout(network), runs, rng)


def test_scores_without_normalization_need_no_model():
    assert linear() is None


def test_scores_are_those_of_the_formula(rng, points):
    network = problem(points, epsilon=0.1)
    weights = start_of(network, 1, rng)
    weight, bias, gain, shift = np.split(weights[0], [FEATURES, FEATURES + 1, FEATURES + 2])
    s = points[0] @ weight + bias
    expected = gain * (s - s.mean()) / np.sqrt(s.var() + 0.1) + shift
    np.testing.assert_allclose(network.scores(weights[0], points[0])[0], expected, rtol=1e-12)


@pytest.mark.parametrize("affine", [True, False, "solved"])
@pytest.mark.parametrize("cost", [least_squares, softmax])
def test_gradients_and_second_derivatives_are_those_of_differences(rng, points, affine, cost):
    if cost is softmax:
        points = points[0], np.sign(points[1] - 2)
    network = problem(points, cost, affine=affine if cost is least_squares else bool(affine))
    weights = start_of(network, 2, rng) + 0.1
    direction, width = rng.standard_normal(weights.shape), 1e-6
    ahead, behind = (network.evaluate(weights + sign * width * direction) for sign in (1, -1))
    slopes = (network.evaluate(weights).gradient * direction).sum(axis=1)
    np.testing.assert_allclose((ahead.costs - behind.costs) / (2 * width), slopes, atol=1e-7)
    product = network.hessian(weights[0]).times(direction[0])
    expected = (ahead.gradient - behind.gradient)[0] / (2 * width)
    np.testing.assert_allclose(product, expected, atol=1e-5 * np.abs(expected).max())


def test_solved_gain_and_shift_are_the_best_ones(rng, points):
    network = problem(points, affine="solved")
    weights = start_of(network, 1, rng)
    normalized = problem(points, affine=False).scores(weights[0], points[0])[0]
    line = np.stack([normalized, np.ones(POINTS)], axis=1)
    residual = points[1] - line @ np.linalg.lstsq(line, points[1], rcond=None)[0]
    np.testing.assert_allclose(network.evaluate(weights).costs, np.mean(residual**2), rtol=1e-10)


def job(points, model, step_sizes, iterations=300, cost=least_squares, **settings):
    data = make_dataset("drawn", *points, source="-")
    settings = Settings(step_sizes, iterations, shadows=False, **settings)
    rule = optimizers.gradient_descent()
    return with_default_start(Job(data, cost, FunctionTransformer(), rule, settings, model=model))


def test_no_step_size_makes_it_diverge_and_the_least_cost_is_that_of_least_squares(points):
    model = linear("batch", affine="solved", epsilon=0.0)
    outcome = run(job(points, model, (1e-3, 1.0, 1e4), 1000, theory="none", refine=False))
    least = np.linalg.lstsq(np.insert(points[0], 0, 1, axis=1), points[1], rcond=None)
    least_cost = least[1][0] / POINTS
    histories = [step.histories["train/cost"] for step in outcome.steps]
    assert np.isfinite(histories).all()
    assert np.min(histories) >= least_cost * (1 - 1e-12)
    assert histories[1][-1] == pytest.approx(least_cost, rel=1e-6)


def test_its_start_is_drawn_and_the_ratio_to_the_largest_safe_step_is_withheld(points):
    outcome = run(job(points, linear("batch"), (0.1, 1.0), 20))
    assert outcome.steps[0].histories["train/cost"][0] > 0
    plain = run(job(points, None, (0.001, 0.01), 20))
    assert plain.findings.metrics[names.THRESHOLD.key] > 0
    assert np.isnan(outcome.findings.metrics[names.THRESHOLD.key])
    assert outcome.findings.metrics[names.THRESHOLD_START.key] > 0
