"""The least cost, against solvers of others and closed forms."""

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from normbench import costs
from normbench.engine import hessian
from normbench.names import PARTLY
from normbench.normalizers import PCASphere
from normbench.normalizers.decomposition import Moments
from normbench.theory import analysis
from normbench.theory.minimum import (
    _backtrack,
    _conjugate_gradients,
    _solve,
    _stalled_minimum,
    penalty_of_basis,
    spans_same_scores,
    sphere_points,
    weights_of,
)
from normbench.theory.minimum import minimize as least
from normbench.theory.separability import decide_by_program, proves_separable
from normbench.theory.shared import PointsCache
from tests import door


def sphered(x):
    """Return points x (P, N) sphered, with their variances and axes."""
    return sphere_points(Moments(x))


def points(count=200, features=4):
    rng = np.random.default_rng(6)
    return rng.standard_normal((count, features)) * [1, 100, 0.01, 5] + [3, 50, 0, 1], rng


def minimum(cost, basis, targets, classes, penalty=0.0, products=np.inf):
    return least(door.problem(cost, basis, targets, False, penalty, classes), products)


def test_least_squares_is_the_normal_equations():
    x, rng = points()
    y = rng.standard_normal(len(x))
    full = np.column_stack([np.ones(len(x)), x])
    rest = y - full @ np.linalg.lstsq(full, y, rcond=None)[0]
    found = minimum(costs.least_squares, sphered(x)[0], y, 1)
    assert found.value == pytest.approx(np.mean(rest**2), rel=1e-12)
    assert found.gradient_norm <= 1e-10
    assert found.is_solved
    assert not found.at_infinity


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_softmax_is_what_another_solver_finds(l2):
    x, rng = points()
    y = np.where(x[:, 0] - 3 + rng.standard_normal(len(x)) > 0, 1.0, -1.0)
    basis, variances, _ = sphered(x)

    def cost(w):
        return np.mean(np.logaddexp(0, -y * (w[0] + x @ w[1:]))) + l2 * w[1:] @ w[1:]

    # Scaled for the other solver only: its own start is far away in these units.
    scale = np.r_[1, x.std(axis=0)]
    other = minimize(lambda v: cost(v / scale), np.zeros(5), tol=1e-14, method="Powell")
    other = minimize(lambda v: cost(v / scale), other.x, tol=1e-12, method="BFGS")
    found = minimum(costs.softmax, basis, y, 1, l2 / variances if l2 else 0.0)
    assert found.gradient_norm <= 1e-10
    # Measured: equal to the last digit.
    assert found.value == pytest.approx(other.fun, abs=1e-9)
    assert found.value <= other.fun + 1e-14


def test_conjugate_gradients_and_cholesky_find_the_same(monkeypatch):
    x, rng = points()
    y = rng.integers(0, 3, len(x))
    basis = sphered(x).basis
    dense = minimum(costs.multiclass_softmax, basis, y, 3)
    monkeypatch.setattr(hessian, "MAX_MATRIX_WEIGHTS", 0)
    products = minimum(costs.multiclass_softmax, basis, y, 3)
    assert dense.is_solved
    assert products.is_solved
    assert products.gradient_norm <= 1e-10
    # Measured: equal to the last digit.
    assert dense.value == pytest.approx(products.value, rel=1e-12)


def separable(labels, scores):
    """Whether a linear program finds weights with a margin of 1 at every point."""
    rows = -labels[:, None] * scores
    found = linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(rows)), bounds=(None, None))
    return found.status == 0


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("cost", ["softmax", "multiclass_softmax"])
def test_separable_classes_are_detected_as_a_linear_program_says(noise, cost):
    x, rng = points()
    labels = (x[:, 0] - 3 + noise * rng.standard_normal(len(x)) > 0).astype(int)
    signs = 2.0 * labels - 1
    function = getattr(costs, cost)
    two = cost == "multiclass_softmax"
    found = minimum(function, sphered(x)[0], labels if two else signs, 2 if two else 1)
    assert found.at_infinity == separable(signs, np.column_stack([np.ones(len(x)), x]))
    assert found.at_infinity == (noise == 0.0)
    assert (found.value == 0.0) == found.at_infinity


def test_classes_that_touch_have_their_minimum_at_infinity_too():
    x = np.array([[-2.0], [-1.0], [0.0], [0.0], [1.0], [2.0]])
    y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    found = minimum(costs.softmax, sphered(x)[0], y, 1)
    assert decide_by_program(door.problem(costs.softmax, sphered(x)[0], y, False)) == PARTLY
    assert found.value == pytest.approx(2 * np.log(2) / 6, rel=1e-6)
    assert "still growing" in found.source


@pytest.mark.parametrize(
    ("norm", "step", "reached"),
    [(1e-8, 1e-9, True), (5e-7, 1e-2, True), (5e-7, 1e-9, False), (1e-5, 1e-2, False)],
)
def test_a_solver_that_stops_early_has_reached_what_its_gradient_says(norm, step, reached):
    found = _stalled_minimum(0.5, norm, step)
    assert found.is_solved == reached
    assert ("still growing" in found.source) == (reached and step > 1e-4)


def test_an_l2_brings_the_minimum_of_separable_classes_back():
    x, _ = points()
    basis, variances, _ = sphered(x)
    found = minimum(costs.softmax, basis, np.sign(x[:, 0] - 3), 1, 0.01 / variances)
    assert found.is_solved
    assert not found.at_infinity
    assert found.value > 0


MIXING = np.array([[0.5, 0.1, 0, 0], [0.1, 0.2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0.3]])


@pytest.mark.parametrize(
    "l2", [0.1, np.array([0, 0.1, 0, 0.3]), MIXING], ids=["one", "each", "all"]
)
def test_the_least_cost_with_a_penalty_is_the_normal_equations(l2):
    x, rng = points()
    y = rng.standard_normal(len(x))
    full = np.column_stack([np.ones(len(x)), x])
    penalty = np.zeros((5, 5))
    penalty[1:, 1:] = l2 if np.ndim(l2) == 2 else np.diag(np.broadcast_to(l2, 4))
    weights = np.linalg.solve(full.T @ full / len(x) + penalty, full.T @ y / len(x))
    wanted = np.mean((full @ weights - y) ** 2) + weights @ penalty @ weights
    train = door.problem(costs.least_squares, x, y, False, l2)
    found = analysis.find_least_cost(train, PointsCache(x), np.inf, "full")
    assert found.value == pytest.approx(wanted, rel=1e-9)
    assert "scores" not in repr(found)
    assert found == replace(found, scores=None)


def test_too_many_features_of_the_data_are_too_much_whatever_a_scheme_keeps(monkeypatch):
    x, rng = points()
    train = door.problem(costs.least_squares, x[:, :2], rng.standard_normal(len(x)), False)
    for most, reached in ((4, True), (3, False)):
        monkeypatch.setattr("normbench.theory.sizes.MAX_ROWS", most)
        found = analysis.find_least_cost(train, PointsCache(x), 9.0, "auto")
        assert found.is_solved == reached
        assert ("theory=full" in found.source) == (not reached)
    assert analysis.find_least_cost(train, PointsCache(x), 9.0, "full").is_solved


def test_a_stop_after_so_many_products_is_said(monkeypatch):
    monkeypatch.setattr("normbench.engine.hessian.MAX_MATRIX_WEIGHTS", 4)
    x, rng = points()
    basis, y = sphered(x)[0], np.sign(rng.standard_normal(200))
    found = minimum(costs.softmax, basis, y, 1, 0.0, 1)
    assert not found.is_solved
    assert "theory=full" in found.source
    least_cost = minimum(costs.softmax, basis, y, 1).value
    assert least_cost < found.value < np.log(2)  # after one step from zero weights


def test_a_matrix_is_damped_a_little_and_where_it_is_not_positive_until_it_is():
    gradient = np.array([[1.0, 2.0]])
    for relative, off in ((1.0, 4e-8), (0.1, 4e-9), (0.0, 4e-10), (9.0, 4e-8)):
        found = _solve(np.diag([4.0, 1.0]), gradient, relative)
        assert 1 + found[0, 1] / 2 == pytest.approx(off, rel=1e-3)
    for matrix in (np.diag([-1.0, 3.0]), np.zeros((2, 2))):
        assert np.sum(_solve(matrix, gradient, 1.0) * gradient) < 0


def test_where_zero_weights_are_level_their_curvature_tells_whether_they_are_the_minimum():
    basis = sphered(points()[0])[0]
    found = minimum(costs.least_squares, basis, np.zeros(len(basis)), 1)
    assert (found.value, found.gradient_norm, found.is_solved) == (0, 0, True)
    flat = minimum(costs.least_absolute_deviations, basis, np.zeros(len(basis)), 1)
    assert (flat.value, flat.is_solved) == (0, False)


@pytest.mark.parametrize("factor", [100.0, 1e-6])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_gradients_norm_is_relative(noise, factor):
    def multiple(scores, targets):
        return factor * costs.softmax.formula(scores, targets)

    multiple.traits = costs.softmax.traits
    x, rng = points()
    y = np.where(x[:, 0] - 3 + noise * rng.standard_normal(len(x)) > 0, 1.0, -1.0)
    one, other = (minimum(cost, sphered(x)[0], y, 1) for cost in (costs.softmax, multiple))
    assert one.at_infinity == (noise == 0)
    assert one.is_solved
    assert other.is_solved
    # Of a gradient that is down to rounding, measured: 1 digit.
    assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-6, abs=1e-11)


def test_constant_points_have_no_basis():
    assert sphered(np.full((5, 3), 7.0))[0].shape == (5, 0)


@pytest.mark.parametrize("unit", [1e8, 1e9, 1e12])
@pytest.mark.parametrize(
    "l2", [0.0, 0.1, np.array([0.1, 0, 0.2, 0, 0.1])], ids=["0", "one", "each"]
)
def test_small_features_count_beside_a_large_one(unit, l2):
    x, rng = points()
    x[:, 3] = x[:, 0] + x[:, 1]  # a dependent feature is none of the directions
    x = np.column_stack([rng.standard_normal(len(x)), x])
    units = np.array([unit, 1, 1, 1, 1])
    y = (x[:, 0] + x[:, 1] + x[:, 2] > x.mean(axis=0)[:3].sum()).astype(int)
    y[::5] = 1 - y[::5]
    solutions = []
    for scaled, penalty in ((x, l2 / units**2), (x * units, l2)):
        train = door.problem(costs.softmax, scaled, 2.0 * y - 1, False, penalty)
        found = analysis.find_least_cost(train, PointsCache(scaled), np.inf, "full")
        assert found.is_solved
        weights = weights_of(found.scores, scaled)
        np.testing.assert_allclose(train.scores(weights, scaled), found.scores, atol=1e-6)
        solutions.append(found)
    assert solutions[1].value == pytest.approx(solutions[0].value, rel=1e-9)
    np.testing.assert_allclose(solutions[1].scores, solutions[0].scores, atol=1e-4)


def test_only_invertible_affine_schemes_share_the_minimum():
    x, _ = points()
    basis = sphered(x).basis
    doubled = np.column_stack([x, x[:, 0] + 3, np.full(len(x), 7.0)])
    for same in (x, x - 5, PCASphere().fit_transform(x), x @ np.triu(np.ones((4, 4))), doubled):
        assert spans_same_scores(basis, Moments(same))
    bent = np.column_stack([x[:, :3], x[:, 3] ** 2])
    for other in (
        x[:, :3],
        np.tanh(x),
        np.column_stack([x, bent]),
        x[:, [0, 1, 2, 0]],
        bent,
        0 * x,
    ):
        assert not spans_same_scores(basis, Moments(other))


def test_the_basis_is_all_that_is_made_of_float32_points():
    x = np.random.default_rng(0).standard_normal((40_000, 20), dtype=np.float32)
    basis, variances, axes = sphered(x)
    train = door.problem(costs.softmax, basis, np.ones(len(x)), True)
    held = {}
    for name, step in (
        ("sphere", lambda: sphered(x)),
        ("spans", lambda: spans_same_scores(basis, Moments(x))),
        ("penalty", lambda: penalty_of_basis(np.ones(20), variances, axes)),
        ("separates", lambda: proves_separable(train, np.ones(train.shape))),
    ):
        tracemalloc.start()
        step()
        held[name] = tracemalloc.get_traced_memory()[1] / x.nbytes
        tracemalloc.stop()
    # Measured: 2.4, and 0.2 to 0.4 for blocks; 6.0, and 2.1 to 6.0, with float64 copies.
    assert 2 < held["sphere"] < 2.7
    assert max(held["spans"], held["penalty"], held["separates"]) < 0.7


def test_without_curvature_a_step_goes_down_the_gradient():
    right = np.array([3.0, -1.0])
    solution, products = _conjugate_gradients(np.zeros_like, right, 0.5)
    np.testing.assert_array_equal(solution, right)
    assert products == 1


@pytest.mark.parametrize("share", [0.5, 0.1, 1e-3])
def test_conjugate_gradients_end_at_the_first_residual_that_is_small_enough(share, monkeypatch):
    rng = np.random.default_rng(3)
    half = rng.standard_normal((30, 30)) * np.geomspace(0.1, 10, 30)
    matrix, right = half.T @ half, rng.standard_normal(30)

    def residual():
        solution, made = _conjugate_gradients(lambda v: matrix @ v, right, share)
        return np.linalg.norm(matrix @ solution - right) / np.linalg.norm(right), made

    end, made = residual()
    assert end <= share * (1 + 1e-6)
    monkeypatch.setattr("normbench.theory.minimum.MAX_PRODUCTS", made - 1)
    assert residual()[0] > share


@pytest.mark.parametrize("copies", [0, 2])
def test_weights_are_found_from_the_scores_that_they_give(copies):
    x, rng = points()
    z = np.column_stack([x, x[:, :copies]])
    weights = rng.standard_normal((3, z.shape[1] + 1))
    scores = weights[:, 1:] @ z.T + weights[:, :1]
    found = weights_of(scores, z)
    np.testing.assert_allclose(
        found[:, 1:] @ z.T + found[:, :1], scores, atol=1e-8 * abs(scores).max()
    )
    lengths = [np.linalg.norm(one[:, 1:]) for one in (found, weights)]
    assert lengths[0] <= lengths[1] * (1 + 1e-9)  # of several, the shortest


def test_a_step_is_halved_until_it_lowers_the_cost_enough():
    """On a parabola `w^2`, from w = 1: Armijo's rule takes steps a little shorter than 2."""
    bowl = SimpleNamespace(evaluate=lambda w, with_gradient: SimpleNamespace(costs=w[:, 0, 0] ** 2))
    one = np.ones((1, 1))
    for length, size in ((1.0, 1.0), (1.9999, 0.5), (1.999, 1.0), (7.0, 0.25), (-1.0, 0.0)):
        assert _backtrack(bowl, one, -length * one, 1.0, -2 * length) == size


def test_conjugate_gradients_take_a_product_for_each_different_eigenvalue():
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    matrix = axes @ np.diag([1.0, 1.0, 10.0, 10.0, 100.0, 100.0]) @ axes.T
    right = rng.standard_normal(6)
    solution, products = _conjugate_gradients(lambda v: matrix @ v, right, 1e-8)
    assert products == 3
    np.testing.assert_allclose(matrix @ solution, right, atol=1e-7 * np.linalg.norm(right))


def test_points_of_any_scale_have_the_basis_of_their_directions():
    x, _ = points()
    x[:, 3] = 2 * x[:, 0]  # three directions
    basis, variances, _ = sphered(x)
    for scale in (1e-12, 1e12):
        other, scaled, _ = sphered(scale * x)
        assert other.shape == basis.shape == (len(x), 3)
        assert scaled == pytest.approx(scale**2 * variances, rel=1e-6)
        assert np.abs(other) == pytest.approx(np.abs(basis), abs=1e-6)
