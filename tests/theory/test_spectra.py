"""Spectra of the points, and what they predict, against what descent does."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from normbench import costs
from normbench.engine.descent import descend
from normbench.normalizers.decomposition import PointsCache
from normbench.optimizers import gradient_descent
from normbench.theory import spectra
from tests import door


def spectrum(x):
    """Return the spectrum of the Gram matrix of points x (P, N)."""
    return spectra.spectrum(PointsCache(x))


def points(features=5, count=60):
    rng = np.random.default_rng(2)
    return rng.standard_normal((count, features)) * np.logspace(-2, 1, features) + 1.0


@pytest.mark.parametrize(
    ("l2", "largest"), [(0.1, 2.7), ([1.0, 2.0], 6.5), ([[2.0, 1.0], [1.0, 2.0]], 8.5)]
)
def test_where_the_largest_alone_is_known_a_penalty_adds_its_own_largest(l2, largest):
    known = spectra.Spectrum(np.array([5.0]), is_complete=False)
    found = spectra.penalize(known, 0.5, np.array(l2))
    assert found.largest == pytest.approx(largest)
    assert not found.is_complete


def test_a_penalty_of_rounding_is_none():
    axes = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    l2 = axes[:, :2] @ np.diag([1.0, 3.0]) @ axes[:, :2].T
    rows = spectra.penalty_root(l2, 5)
    np.testing.assert_allclose(rows.T @ rows, np.pad(2 * l2, (1, 0)), atol=1e-14)
    assert np.count_nonzero(rows.any(axis=1)) == 2


def test_a_penalty_on_every_feature_leaves_no_direction_dead():
    x = points(3)
    twice = np.column_stack([x, x[:, 0]])
    found = spectra.penalize(spectrum(twice), 2.0, 0.1)
    whole = 2 * spectra.gram(twice) + np.diag([0.0, 0.2, 0.2, 0.2, 0.2])
    assert spectrum(twice).rank == 4
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(whole)[::-1], rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_spectrum_is_that_of_all_points_without_a_copy_of_them(dtype):
    x = np.random.default_rng(0).standard_normal((100_000, 5)).astype(dtype) + 100
    spectrum(x)
    tracemalloc.start()
    found = spectrum(x)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    full = np.insert(x.astype(np.float64), 0, 1, axis=1)
    expected = np.linalg.svd(full, compute_uv=False) ** 2 / len(x)
    np.testing.assert_allclose(found.values, expected, rtol=1e-9)
    assert held < x.size * 8 / 2


@pytest.mark.parametrize("count", [2, 100])
def test_a_feature_of_two_numbers_has_their_variance(count):
    """No float64 is their mean: what it leaves over is taken off."""
    apart = 1001 * np.spacing(1e8)
    x = 1e8 + apart * np.tile([0, 1], count)[:, None].repeat(3, 1)
    variance = PointsCache(x).get(correlation=False, complete=False).values[0]
    assert variance == pytest.approx(3 * apart**2 / 4, rel=1e-9, abs=0)


def test_the_condition_number_is_over_nonzero_eigenvalues():
    x = np.random.default_rng(0).standard_normal((50, 2))
    twice = np.column_stack([x, x, np.full(50, 0.1)])
    assert spectrum(twice).rank == 3
    assert spectrum(twice).condition_number < 10
    assert not spectrum(twice).lost
    assert np.isnan(spectra.Spectrum(np.empty(0)).condition_number)
    assert spectra.Spectrum(np.empty(0)).largest == 0
    constant = spectrum(np.full((9, 3), 2.0))
    assert (constant.rank, constant.lost) == (1, False)  # that of the bias


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e6])
def test_the_condition_number_of_points_far_from_zero_is_the_true_one(mean, unit):
    noise = np.random.default_rng(0).standard_normal((200, 1))
    x = (mean + noise) * unit
    exact = [Fraction(float(value)) for value in x[:, 0]]
    centre = sum(exact) / len(exact)
    variance = sum((value - centre) ** 2 for value in exact) / len(exact)
    trace = 1 + centre**2 + variance  # of the Gram matrix, whose determinant is the variance
    expected = float(trace**2 / variance)
    found = spectrum(x)
    assert found.lost == (expected > spectra.LIMIT)
    if (
        1e4 < expected < spectra.LIMIT
    ):  # where the smaller root is determinant over trace, to 8 digits
        assert found.condition_number == pytest.approx(expected, rel=1e-3)


def test_directions_beyond_what_singular_values_tell_are_said_to_be_lost():
    x = 1e8 + np.random.default_rng(0).standard_normal((200, 5))
    assert spectrum(x).rank == 5
    assert spectrum(x).lost
    assert np.isnan(spectrum(x).condition_number)


def test_an_l2_adds_to_the_slopes_alone():
    x = points()
    centred = x - x.mean(axis=0)
    found = spectra.penalize(spectrum(centred), 2.0, 0.5).values
    covariance = np.linalg.eigvalsh(centred.T @ centred / len(x))
    expected = np.sort(np.r_[2.0, 2 * covariance + 1.0])[::-1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("classes", [1, 3])
def test_a_least_squares_history_is_predicted_exactly(classes, l2):
    x = points()
    rng = np.random.default_rng(4)
    targets = rng.integers(0, 3, len(x)) if classes > 1 else rng.standard_normal(len(x))
    objective = door.problem(costs.least_squares, x, targets, False, l2, classes)
    start = 0.1 * rng.standard_normal((1, classes, x.shape[1] + 1))
    here = objective.evaluate(start)
    hessian = spectra.penalize(spectrum(x), 2.0, l2)
    problem = spectra.quadratic(hessian, here.costs[0], here.gradient[0])
    threshold = spectra.step_threshold(problem.values.max())
    for share in (1e-6, 0.1, 0.5, 0.99, 1.0, 1.01):
        step_size = share * threshold
        made = descend(
            objective, None, gradient_descent(), start, np.array([step_size]), door.plan(50)
        )
        predicted = spectra.predicted_history(problem, step_size, 50)
        # Measured: 3e-13, relative.
        np.testing.assert_allclose(made.cost[0], predicted, rtol=1e-12)


def test_predicted_iterations_are_where_the_predicted_history_gets_to():
    problem = spectra.Quadratic(1.0, np.array([0.1, 1.0]), np.array([0.1, 0.4]))
    least = 1.0 - problem.excess_by_direction.sum()
    for gap in (0.5, 1e-2, 1e-3):
        k = int(spectra.predicted_iterations(problem, 1.5, gap))
        history = spectra.predicted_history(problem, 1.5, k) - least
        assert history[k] <= gap * (1 + 1e-9)
        assert k == 0 or history[k - 1] > gap
    slow = spectra.Quadratic(1.0, np.array([1e-3]), np.array([2e-3]))  # all of the gap of 1
    assert spectra.predicted_iterations(slow, 1.0, 0.5) == np.ceil(-np.log(2) / np.log(0.999) / 2)
    for step in (2.0, 2.0 * (1 + 1e-9), 2.5, 40.0):  # of 2/L, just above it, and far above
        assert spectra.predicted_iterations(problem, step, 1e-3) == np.inf
    assert spectra.predicted_iterations(problem, 1.0, 10.0) == 0
    for share, is_counted in ((0.9, True), (1.1, False)):  # of the most that are counted
        needed = share * spectra.MAX_COUNTED_ITERATIONS
        creeping = spectra.Quadratic(1.0, np.array([np.log(2) / (2 * needed)]), np.ones(1))
        gap = float(creeping.excess_by_direction[0]) / 2
        found = spectra.predicted_iterations(creeping, 1.0, gap)
        assert found == (pytest.approx(needed) if is_counted else np.inf)


def test_the_effective_rank_counts_equal_directions():
    assert spectra.effective_rank(np.ones(7)) == pytest.approx(7)
    assert spectra.effective_rank(np.array([5.0, 0.0])) == pytest.approx(1)
    assert spectra.effective_rank(np.zeros(3)) == 0


def test_a_ridge_holds_small_directions_down():
    found = spectra.variance_after_sphering(np.array([1.0, 1e-7, 0.0]), 1e-7)
    np.testing.assert_allclose(found, [1.0, 0.5, 0.0], rtol=1e-6)


def test_live_eigenvalues_are_those_above_rounding_of_the_largest():
    eps = np.finfo(np.float64).eps
    assert spectra.eigenvalues_above_rounding(np.array([]), 0).tolist() == []
    assert spectra.eigenvalues_above_rounding(np.array([-3.0, 0.0]), 2).tolist() == []
    assert spectra.eigenvalues_above_rounding(np.array([-3.0, -1.0]), 2).tolist() == []
    values = np.array([0.0, 4.1 * 4 * eps, 4.0, 3.9 * 4 * eps, -1.0])
    assert spectra.eigenvalues_above_rounding(values, 4).tolist() == [4.0, 4.1 * 4 * eps]
