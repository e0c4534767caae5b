"""Every run of a grid is the run made alone by the plain route."""

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad

from normbench import compare


def plain_run(cost, step_size, iterations, size):
    """Descend one cost of the weights with autograd, one step size, nothing shared."""
    gradient, w, costs, weights = grad(cost), np.zeros(size), [], []
    for _ in range(iterations + 1):
        costs.append(cost(w))
        weights.append(w)
        w = w - step_size * gradient(w)
    return np.array(costs), weights


def normalized(x, normalizer):
    if normalizer == "identity":
        return x
    if normalizer == "standard":
        return (x - x.mean(axis=0)) / x.std(axis=0)
    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    return centred @ vectors / np.sqrt(values + 1e-7)


@pytest.mark.parametrize("normalizer", ["identity", "standard", "pca_sphere"])
def test_a_grid_equals_its_runs_made_alone(two_classes, normalizer):
    x, labels = two_classes
    step_sizes = [0.001, 0.1, 1.0]
    frame = compare(x, labels, "softmax", [normalizer], step_sizes, 30)
    z, y = normalized(x, normalizer), 2 * labels - 1
    points = np.column_stack([np.ones(len(z)), z])

    def cost(w):
        return anp.mean(anp.logaddexp(0.0, -y * anp.dot(points, w)))

    for step_size in step_sizes:
        rows = frame[frame.step_size == step_size]
        costs, weights = plain_run(cost, step_size, 30, points.shape[1])
        # Measured: 2e-15 relative; the eigenvectors' order and signs differ between the routes.
        np.testing.assert_allclose(rows.cost, costs, rtol=1e-11)
        counts = [np.count_nonzero(np.sign(points @ w) != y) for w in weights]
        np.testing.assert_array_equal(rows.misclassifications, counts)
        np.testing.assert_array_equal(rows.iteration, np.arange(31))


def test_multiclass_equals_its_runs_made_alone():
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((50, 4)), rng.integers(0, 3, 50)
    points = np.column_stack([np.ones(50), x])

    def cost(w):
        scores = anp.dot(points, w.reshape(3, 5).T)
        shift = anp.max(scores, axis=1)
        log_sum = anp.log(anp.sum(anp.exp(scores - shift[:, None]), axis=1)) + shift
        return anp.mean(log_sum - scores[np.arange(50), labels])

    frame = compare(x, labels, "multiclass_softmax", ["identity"], [0.5, 5.0], 20)
    for step_size in (0.5, 5.0):
        rows = frame[frame.step_size == step_size]
        costs, weights = plain_run(cost, step_size, 20, 15)
        np.testing.assert_allclose(rows.cost, costs, rtol=1e-12)
        counts = [
            np.count_nonzero(np.argmax(points @ w.reshape(3, 5).T, axis=1) != labels)
            for w in weights
        ]
        np.testing.assert_array_equal(rows.misclassifications, counts)


def test_the_others_do_not_notice_a_run_that_diverges():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 2)) * 100
    y = x @ [1.0, 2.0]
    grid = compare(x, y, "least_squares", ["identity"], [1e-6, 1e3, 1e-5], 150)
    alone = compare(x, y, "least_squares", ["identity"], [1e-5], 150)
    diverged = grid[grid.step_size == 1e3]
    assert set(diverged.verdict) == {"diverged"}
    assert np.isfinite(diverged.cost).all()
    assert 1 < len(diverged) < 151
    kept = grid[grid.step_size == 1e-5]
    # Another shape of product rounds otherwise: measured 4e-20 of the cost at the start.
    np.testing.assert_allclose(kept.cost, alone.cost, rtol=1e-12, atol=1e-17 * alone.cost[0])
    assert len(kept) == 151
    assert "diverged" not in set(kept.verdict)


def test_a_divergence_is_where_the_plain_route_stops_being_finite():
    x, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 0.5, 3.0])
    points = np.column_stack([np.ones(3), x])

    def cost(w):
        return anp.mean((anp.dot(points, w) - y) ** 2)

    rows = compare(x, y, "least_squares", ["identity"], [1e6], 100)
    with np.errstate(all="ignore"):
        costs, _ = plain_run(cost, 1e6, 100, 2)
    # The cost of the last finite step has a finite gradient; the first that is not ends the run.
    finite = int(np.argmin(np.isfinite(costs)))
    assert abs(len(rows) - finite) <= 1
    np.testing.assert_allclose(rows.cost[: finite - 1], costs[: finite - 1], rtol=1e-10)
