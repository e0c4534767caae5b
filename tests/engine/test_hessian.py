"""Curvature by matrices and products, against closed forms and bounds."""

import numpy as np
import pytest

from normbench.choices import import_target, options
from normbench.costs.declaration import traits
from normbench.engine.linear import LinearHessian
from tests import door

FLAT = {"least_absolute_deviations", "multiclass_perceptron", "perceptron"}


def problem(name, points=80, features=4, classes=3):
    """Points of different ranges with targets that the cost of a name takes, and C."""
    cost = import_target("cost", options("cost", name)["_target_"])
    rng = np.random.default_rng(5)
    x = rng.standard_normal((points, features)) * [1, 20, 0.1, 3] + [0, 7, 1, -2]
    if traits(cost).score_per_class:
        return cost, x, rng.integers(0, classes, points), classes
    targets = rng.standard_normal(points)
    return cost, x, np.sign(targets) if "binary" in traits(cost).tasks else targets, 1


def largest_of_gram(x):
    """Return the largest eigenvalue of the Gram matrix of points with a bias."""
    return np.linalg.norm(np.insert(x, 0, 1, axis=1), 2) ** 2 / len(x)


CLOSED = {
    "least_squares": lambda largest, classes: 2 * largest,
    "softmax": lambda largest, classes: largest / 4,
    "multiclass_softmax": lambda largest, classes: largest / classes,
}


@pytest.mark.parametrize("name", sorted(CLOSED))
@pytest.mark.parametrize("way", ["matrix", "lanczos"])
def test_curvature_at_zero_weights_is_the_closed_form(name, way):
    cost, x, targets, classes = problem(name)
    here = door.problem(cost, x, targets, False, 0.0, classes).hessian(
        np.zeros((classes, x.shape[1] + 1))
    )
    found = np.linalg.eigvalsh(here.matrix())[-1] if way == "matrix" else here.largest_by_lanczos()
    expected = CLOSED[name](largest_of_gram(x), classes)
    # Measured: 1e-15, by the matrix and by Lanczos.
    assert found == pytest.approx(expected, rel=1e-8)


def test_lanczos_repeats_and_agrees_on_crowded_eigenvalues():
    rng = np.random.default_rng(0)
    x = np.linalg.qr(rng.standard_normal((400, 60)))[0] * np.sqrt(400)  # sphered: all equal
    here = LinearHessian(x, np.ones((4, 4, 400)) * np.eye(4)[:, :, None] / 4)
    assert here.largest_by_lanczos() == here.largest_by_lanczos()
    assert here.largest_by_lanczos() == pytest.approx(
        np.linalg.eigvalsh(here.matrix())[-1], rel=1e-8
    )


def count_products(monkeypatch):
    """Return a list that grows by one with each product of a linear Hessian."""
    calls, counted = [], LinearHessian.times

    def times(self, direction):
        calls.append(1)
        return counted(self, direction)

    monkeypatch.setattr(LinearHessian, "times", times)
    return calls


def test_lanczos_ends_where_eigenvalues_crowd_at_the_top(monkeypatch):
    rng = np.random.default_rng(0)
    x = np.linalg.qr(rng.standard_normal((600, 300)))[0] * np.sqrt(600)
    x *= np.sqrt(1 - np.logspace(-8, -1, 300))  # a ridge's work: variances 1 - 1e-8 .. 0.9
    here = LinearHessian(x, np.ones((1, 1, 600)))
    calls = count_products(monkeypatch)
    found = here.largest_by_lanczos()
    assert len(calls) <= 400
    assert found == pytest.approx(np.linalg.eigvalsh(here.matrix())[-1], rel=1e-4)


@pytest.mark.parametrize("smallest", [0.0, 1e-3, -1e-3, -2.0])
def test_both_ends_of_a_spectrum_are_found_where_eigenvalues_crowd_near_0(monkeypatch, smallest):
    """As those of networks and of raw features do; the smallest of them took 1,300 products."""
    values = np.r_[smallest, np.logspace(-12, 0, 298), 3.0]
    second = (300 * values)[None, None]
    here = LinearHessian(np.eye(300), second - second.mean())
    matrix = here.matrix()
    expected = np.linalg.eigvalsh(matrix)
    calls = count_products(monkeypatch)
    largest, least = here.extremes()
    assert len(calls) <= 250
    assert largest == pytest.approx(expected[-1], rel=1e-5)
    assert least == pytest.approx(expected[0], abs=1e-5 * np.abs(expected).max())
    assert here.extremes() == (largest, least)
    assert LinearHessian(np.ones((3, 2)), np.zeros((1, 1, 3))).extremes() == (0, 0)


def test_directions_near_a_vector_hold_all_that_it_has():
    """Ritz vectors: the stiffest are the matrix's own, and so is the excess of a whole space."""
    cost, x, targets, classes = problem("multiclass_softmax")
    rng = np.random.default_rng(4)
    here = door.problem(cost, x, targets, False, 0.3, classes).hessian(
        0.1 * rng.standard_normal((classes, x.shape[1] + 1))
    )
    start = here.matrix() @ rng.standard_normal(here.size)  # the biases have a flat direction
    values, vectors = here.krylov_eigenpairs(start)
    assert vectors.shape[1] == len(values) <= here.size
    # Measured 1e-15 and 2e-12, of curvatures up to 400.
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose(here.matrix() @ vectors, vectors * values, atol=1e-9)
    live = values > 1e-10 * values[-1]
    excess = np.sum((vectors.T @ start)[live] ** 2 / values[live])
    whole = start @ np.linalg.pinv(here.matrix(), hermitian=True) @ start
    assert excess == pytest.approx(whole, rel=1e-9)  # measured 2e-16


@pytest.mark.parametrize("name", sorted(FLAT))
def test_flat_pieces_have_no_second_derivative_not_even_rounding(name):
    cost, x, targets, classes = problem(name)
    weights = np.random.default_rng(4).standard_normal((classes, x.shape[1] + 1))
    assert door.problem(cost, x, targets, False, 0.0, classes).hessian(weights).is_zero
    assert not door.problem(cost, x, targets, False, 0.1, classes).hessian(weights).is_zero


@pytest.mark.parametrize("l2", [0.0, 0.3, np.array([0.1, 0.0, 2.0]), np.diag([1.0, 2, 3]) + 0.5])
def test_a_hessian_is_the_sum_over_points_of_products_with_their_blocks(l2):
    rng = np.random.default_rng(7)
    x, half = rng.standard_normal((6, 3)), rng.standard_normal((2, 2, 6))
    second = half + half.transpose(1, 0, 2)
    here = LinearHessian(x, second, l2)
    assert here.shape == (2, 4)
    assert here.size == 8
    expected = np.zeros((8, 8))
    for point, block in zip(np.insert(x, 0, 1, axis=1), second.transpose(2, 0, 1)):
        expected += np.kron(block, np.outer(point, point)) / 6
    penalty = np.zeros((4, 4))
    penalty[1:, 1:] = 2 * (l2 if np.ndim(l2) == 2 else np.diag(np.broadcast_to(l2, 3)))
    expected += np.kron(np.eye(2), penalty)
    np.testing.assert_allclose(here.matrix(), expected, rtol=1e-12, atol=1e-14)
    direction = rng.standard_normal((2, 4))
    np.testing.assert_allclose(
        here.times(direction).ravel(), expected @ direction.ravel(), rtol=1e-12, atol=1e-14
    )
    values = np.linalg.eigvalsh(expected)
    assert here.largest() == pytest.approx(values[-1], rel=1e-12)
    assert here.extremes() == pytest.approx((values[-1], values[0]), rel=1e-4)


def test_a_product_that_overflows_has_no_extremes():
    overflowing = LinearHessian(np.full((3, 2), 1e200), np.ones((1, 1, 3)))
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(overflowing.extremes()).all()
