"""Networks: against a plain numpy network, and differences."""

from dataclasses import replace

import numpy as np
import pytest

from normbench.costs import multiclass_softmax
from normbench.engine import network as problems
from normbench.engine import threads
from normbench.models import Mlp
from normbench.models.formulas import ACTIVATIONS
from normbench.models.network import START_VARIANCES
from normbench.theory.analysis import largest_curvature
from tests import door

POINTS, FEATURES, CLASSES = 23, 5, 3
VARIANTS = [
    ("none", "before", True),
    ("batch", "before", True),
    ("batch", "after", False),
    ("layer", "before", False),
    ("layer", "after", True),
    ("weight", "before", True),
    ("pca", "before", False),
    ("zca", "after", True),
    ("newton", "before", True),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def problem(rng, model, cost=multiclass_softmax, **fields):
    """Return a small problem, and weights of two runs that are no start."""
    x = rng.standard_normal((POINTS, FEATURES))
    targets = rng.integers(0, CLASSES, POINTS)
    network = door.network(model, cost, x, targets, True, CLASSES, **fields)
    weights = model.start(door.layout(network), 2, rng)
    return network, weights + 0.2 * rng.standard_normal(weights.shape)


def whitening(covariance, model):
    """Return the whitening matrix of one layer."""
    identity = np.eye(len(covariance))
    covariance = covariance + model.epsilon * identity
    eigenvalues, vectors = np.linalg.eigh(covariance)
    if model.normalize == "pca":
        return vectors.T / np.sqrt(eigenvalues)[:, None]
    if model.normalize == "zca":
        return vectors / np.sqrt(eigenvalues) @ vectors.T
    root = identity
    for _ in range(model.newton_iterations):
        root = (3 * root - root @ root @ root @ covariance / np.trace(covariance)) / 2
    return root / np.sqrt(np.trace(covariance))


def plain_forward(groups, x, model):
    """Return the scores (p, C) of one run by loops over layers, without stacked runs."""
    h = x
    layers = len(model.hidden)
    for layer in range(layers + 1):
        weight, bias = groups[layer, "weight"], groups[layer, "bias"][:, 0]
        hidden = layer < layers
        if hidden and model.normalize == "weight":
            weight = weight / np.sqrt((weight**2).sum(axis=1, keepdims=True) + model.epsilon)
            weight = weight * groups.get((layer, "gain"), 1.0)
        h = h @ weight.T + bias
        if not hidden:
            return h

        def normalized(values, layer=layer):
            if model.normalize in ("none", "weight"):
                return values
            axis = 1 if model.normalize == "layer" else 0
            centred = values - values.mean(axis=axis, keepdims=True)
            if model.normalize in ("batch", "layer"):
                values = centred / np.sqrt(values.var(axis=axis, keepdims=True) + model.epsilon)
            else:
                values = centred @ whitening(np.cov(values.T, bias=True), model).T
            if model.affine:
                values = values * groups[layer, "gain"][:, 0] + groups[layer, "shift"][:, 0]
            return values

        h = normalized(h) if model.place == "before" else h
        h = np.tanh(h)
        h = normalized(h) if model.place == "after" else h
    raise AssertionError


@pytest.mark.parametrize(("normalize", "place", "affine"), VARIANTS)
def test_costs_and_counts_are_those_of_a_plain_network(rng, normalize, place, affine):
    model = Mlp([4, 6], normalize=normalize, place=place, affine=affine)
    network, weights = problem(rng, model, l2=0.1)
    evaluation = network.evaluate(weights)
    for run in range(2):
        parts = door.layout(network).split(weights[run : run + 1])
        groups = {key: part[0] for key, part in parts.items()}
        scores = plain_forward(groups, network.points, model)
        top = scores.max(axis=1)
        logs = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        penalty = sum(0.1 * (part**2).sum() for key, part in groups.items() if key[1] == "weight")
        expected = np.mean(logs - scores[np.arange(POINTS), network.targets]) + penalty
        assert evaluation.costs[run] == pytest.approx(expected, rel=1e-12)
        assert evaluation.misclassifications[run] == np.sum(
            scores.argmax(axis=1) != network.targets
        )
        np.testing.assert_allclose(
            network.scores(weights[run], network.points), scores.T, rtol=1e-10
        )


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("normalize", "place", "affine"), VARIANTS)
def test_gradients_and_second_derivatives_are_those_of_differences(
    rng, activation, normalize, place, affine
):
    model = Mlp([4, 3], activation, normalize=normalize, place=place, affine=affine)
    network, weights = problem(rng, model, l2=0.01)
    direction, width = rng.standard_normal(weights.shape), 1e-6
    ahead, behind = (
        network.evaluate(weights + width * direction),
        network.evaluate(weights - width * direction),
    )
    slopes = (network.evaluate(weights).gradient * direction).sum(axis=1)
    np.testing.assert_allclose((ahead.costs - behind.costs) / (2 * width), slopes, atol=1e-7)
    product = network.hessian(weights[0]).times(direction[0])
    expected = (ahead.gradient - behind.gradient)[0] / (2 * width)
    np.testing.assert_allclose(product, expected, atol=1e-5 * np.abs(expected).max())


def test_the_largest_curvature_is_unknown_where_products_overflow(rng, monkeypatch):
    made, weights = problem(rng, Mlp((4,), "relu"))
    made = replace(
        made, points=np.tile(made.points, (1, 60))
    )  # of more weights than a matrix is made of
    weights = made.model.mlp.start(door.layout(made), 1, rng)[0]
    assert largest_curvature(made, weights)[0] > 0
    monkeypatch.setattr(problems.NetworkHessian, "times", lambda self, v: np.full_like(v, np.inf))
    assert largest_curvature(made, weights) == (None, "the curvature is not finite")
    assert np.isnan(made.hessian(weights).extremes()).all()


def test_the_hessian_is_a_symmetric_matrix_with_lanczos_largest_eigenvalue(rng):
    network, weights = problem(rng, Mlp([3]))
    hessian = network.hessian(weights[0])
    matrix = hessian.matrix()
    direction = rng.standard_normal(len(matrix))
    np.testing.assert_allclose(matrix @ direction, hessian.times(direction), rtol=1e-10)
    assert np.linalg.eigvalsh(matrix)[-1] == pytest.approx(hessian.largest(), rel=1e-6)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("normalize", ["none", "batch", "layer", "weight"])
def test_blocks_of_points_groups_of_runs_and_threads_change_nothing(
    rng, monkeypatch, normalize, count
):
    network, weights = problem(rng, Mlp([4], normalize=normalize))
    weights = np.concatenate([weights, 2 * weights])
    whole = network.evaluate(weights)
    cached = 1 if normalize == "batch" else 10_000
    for name, size in (("CACHED_BYTES", cached), ("PARALLEL_ACTIVATIONS", 1)):
        monkeypatch.setattr(problems, name, size)
    monkeypatch.setattr(threads, "available_threads", lambda: count)
    shares = network.model.shares(network, len(weights), POINTS, False)
    parts = [part for share in shares for part in share]
    assert len(shares) == count
    if normalize == "batch":
        assert [blocks for _, blocks in parts] == [[slice(0, POINTS)]] * len(weights)
    else:
        assert all(runs == slice(0, len(weights)) for runs, _ in parts)
        assert sum(len(blocks) for _, blocks in parts) > 3
    in_parts = network.evaluate(weights)
    np.testing.assert_allclose(in_parts.costs, whole.costs, rtol=1e-13)
    np.testing.assert_allclose(in_parts.gradient, whole.gradient, rtol=1e-9, atol=1e-14)
    assert in_parts.misclassifications.tolist() == whole.misclassifications.tolist()


def test_held_out_points_are_normalized_by_the_training_points(rng):
    """A point's score does not depend on which other points are held out with it."""
    network, weights = problem(rng, Mlp([4], normalize="batch"))
    held_out = rng.standard_normal((6, FEATURES))
    targets = np.zeros(6, int)
    six = network.held_out(held_out, targets)
    one = network.held_out(held_out[:1], targets[:1])
    np.testing.assert_allclose(
        six.scores(weights[0], held_out)[:, 0], one.scores(weights[0], held_out[:1])[:, 0]
    )
    both = np.concatenate([network.points, held_out])
    np.testing.assert_allclose(
        network.scores(weights[0], both)[:, POINTS:], six.scores(weights[0], held_out), rtol=1e-12
    )
    as_training = network.held_out(network.points, network.targets)
    np.testing.assert_allclose(
        as_training.evaluate(weights, with_gradient=False).costs,
        network.evaluate(weights).costs,
        rtol=1e-13,
    )


@pytest.mark.parametrize("rule", [*START_VARIANCES, 0.25])
def test_a_start_has_the_variance_of_its_rule(rule):
    model = Mlp([400, 300], start_scale=rule, normalize="batch")
    layout = model.layout(200, 5)
    parts = layout.split(model.start(layout, 1, np.random.default_rng(3)))
    for (layer, kind), part in parts.items():
        if kind == "weight" and layer < 2:
            _, outputs, inputs = part.shape
            expected = {"fan_in": 1 / inputs, "he": 2 / inputs, "xavier": 2 / (inputs + outputs)}
            expected[0.25] = 0.0625  # a number is the deviation itself
            assert part.var() == pytest.approx(expected[rule], rel=0.05)
        elif kind != "weight":
            assert np.all(part == (kind == "gain"))
