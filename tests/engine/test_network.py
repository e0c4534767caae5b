"""A network's cost and derivatives: against differences, blocks of points, and groups of runs."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest

from normbench import costs
from normbench.engine.network import Network, differentiate_scores
from normbench.models import Mlp

POINTS, FEATURES, CLASSES = 13, 4, 3


def smooth(scores, targets):
    """A cost of one's own, without a fused derivative: the squared distance to 1 at the label."""
    wanted = (np.arange(CLASSES)[:, None] == targets).astype(float)
    return anp.sum((scores - wanted) ** 4, axis=(1, 2))


def problem(model=None, cost=costs.multiclass_softmax, l2=0.0, points=POINTS, dtype=float):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((points, FEATURES)).astype(dtype)
    targets = rng.integers(0, CLASSES, points)
    model = model or Mlp([5], activation="tanh")
    return Network(model, cost, x, targets, True, CLASSES, l2)


def weights_of(network, runs=1, seed=2):
    rng = np.random.default_rng(seed)
    start = network.model.start(network.layout, runs, rng)
    return start + 0.1 * rng.standard_normal(start.shape)


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("cost", [costs.multiclass_softmax, smooth])
@pytest.mark.parametrize("normalize", ["none", "batch"])
def test_a_gradient_is_the_differences_of_costs(normalize, cost, l2):
    network = problem(Mlp([5], activation="tanh", normalize=normalize), cost, l2)
    weights = weights_of(network, 2)
    gradient = network.evaluate(weights).gradient
    for number in range(0, network.layout.size, 3):
        ends = []
        for shift in (1e-5, -1e-5):
            moved = weights.copy()
            moved[:, number] += shift
            ends.append(network.evaluate(moved, False).costs)
        numeric = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(gradient[:, number], numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("cost", [costs.multiclass_softmax, smooth])
def test_second_derivatives_are_the_differences_of_gradients(cost, l2):
    network = problem(cost=cost, l2=l2)
    (weights,) = weights_of(network)
    here = network.hessian(weights)
    matrix = here.matrix()
    assert here.shape == network.shape == (network.layout.size,)
    assert not here.is_zero
    ends = [
        network.evaluate(weights + shift * np.eye(len(weights))).gradient for shift in (1e-5, -1e-5)
    ]
    numeric = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(matrix, numeric, rtol=1e-5, atol=1e-7 * np.abs(matrix).max())
    np.testing.assert_array_equal(matrix, matrix.T)
    direction = np.random.default_rng(3).standard_normal(len(weights))
    np.testing.assert_allclose(here.times(direction), matrix @ direction, rtol=1e-9, atol=1e-12)
    largest, smallest = here.extremes()
    values = np.linalg.eigvalsh(matrix)
    assert here.largest_by_lanczos() == pytest.approx(values[-1], rel=1e-6)
    assert (largest, smallest) == pytest.approx((values[-1], values[0]), rel=1e-3, abs=1e-4)


def test_a_curvature_that_overflows_is_none():
    network = problem(Mlp([5], activation="relu"))
    (weights,) = weights_of(network)
    assert np.isnan(network.hessian(1e200 * weights).largest_by_lanczos())


def test_the_cost_is_the_mean_over_points_and_a_penalty_on_the_weights_alone():
    network = problem(l2=0.3)
    weights = weights_of(network, 2)
    evaluation, groups = network.evaluate(weights), network.layout.groups
    squares = sum(
        (array**2).reshape(2, -1).sum(axis=1)
        for group, array in zip(groups, network.layout.split(weights))
        if group.kind == "weight"
    )
    for run in range(2):
        scores = network.scores(weights[run], network.x)
        of_points = [
            costs.multiclass_softmax(scores[None, :, [point]], network.targets[[point]])[0]
            for point in range(POINTS)
        ]
        expected = np.mean(of_points) + 0.3 * squares[run]
        assert evaluation.costs[run] == pytest.approx(expected, rel=1e-12)
        wrong = np.count_nonzero(scores.argmax(axis=0) != network.targets)
        assert evaluation.misclassifications[run] == wrong
    assert network.evaluate(weights, False).gradient is None
    assert replace(network, classify=False).evaluate(weights).misclassifications is None


@pytest.mark.parametrize("normalize", ["none", "batch"])
def test_blocks_of_points_and_groups_of_runs_change_no_number(normalize, monkeypatch):
    network = problem(Mlp([5], normalize=normalize), l2=0.1)
    weights = weights_of(network, 3)
    whole = network.evaluate(weights)
    one_run = network._activation_bytes(POINTS if normalize == "batch" else 4)
    seen = []
    true = Network.sum_up

    def sum_up(self, chosen, x, *rest):
        seen.append((len(chosen), len(x)))
        return true(self, chosen, x, *rest)

    monkeypatch.setattr(Network, "sum_up", sum_up)
    monkeypatch.setattr("normbench.engine.network.CACHED_BYTES", network._activation_bytes(4))
    monkeypatch.setattr("normbench.engine.network.GROUP_BYTES", 2 * one_run)
    again = network.evaluate(weights)
    blocks = [POINTS] if normalize == "batch" else [4, 4, 5]  # a last one of one joins
    assert seen == [(runs, points) for runs in (2, 1) for points in blocks]
    np.testing.assert_allclose(again.costs, whole.costs, rtol=1e-13)
    np.testing.assert_allclose(again.gradient, whole.gradient, rtol=1e-10, atol=1e-15)
    np.testing.assert_array_equal(again.misclassifications, whole.misclassifications)


@pytest.mark.parametrize(
    ("points", "size", "sizes"),
    [(13, 4, [4, 4, 5]), (12, 4, [4, 4, 4]), (14, 4, [4, 4, 4, 2]), (1, 4, [1]), (5, 4, [5])],
)
def test_a_last_block_of_one_point_joins_the_one_before(points, size, sizes, monkeypatch):
    network = problem(points=points)
    monkeypatch.setattr("normbench.engine.network.CACHED_BYTES", network._activation_bytes(size))
    blocks = [range(points)[block] for block in network._point_blocks(False)]
    assert [*map(len, blocks)] == sizes
    assert [point for block in blocks for point in block] == [*range(points)]
    split = [len(block) for block in network._split_indices(np.arange(points))]
    assert split == [min(size, points - first) for first in range(0, points, size)]


def test_activations_are_counted_by_units_points_and_bytes():
    """Twelve arrays of 5 units and 3 scores for each point, of 8 or 4 bytes a number."""
    for dtype, width in ((np.float64, 8), (np.float32, 4)):
        assert problem(dtype=dtype)._activation_bytes(7) == 12 * 7 * (5 + CLASSES) * width


def test_the_work_of_a_network_is_counted_in_gradients():
    small = problem()
    size = small.layout.size
    assert size == 5 * (FEATURES + 1) + CLASSES * (5 + 1) <= 200
    assert small.effort == (0, 3, 3 * size, 8.0 * POINTS * FEATURES)
    large = problem(Mlp([40]))
    assert large.layout.size > 200
    assert large.effort == (0, 3, None, 8.0 * POINTS * FEATURES)
    assert (small.convex, small.linear) == (False, None)


def test_held_out_points_are_normalized_by_the_training_points():
    network = problem(Mlp([5], normalize="batch"))
    (weights,) = weights_of(network)
    both = np.concatenate([network.x, network.x[:3] + 1])
    held_out = replace(network, x=network.x[:3] + 1, targets=network.targets[:3], reference=network)
    moments = network.collect(network.layout.split(weights[None]))
    expected = network.model.scores(
        network.layout, network.layout.split(weights[None]), held_out.x, moments
    )[0]
    np.testing.assert_allclose(held_out.scores(weights, held_out.x), expected, rtol=1e-12)
    mean = costs.multiclass_softmax(expected[None], held_out.targets)[0] / 3
    assert held_out.evaluate(weights[None]).costs[0] == pytest.approx(mean, rel=1e-12)
    own = network.scores(weights, both)[:, :POINTS]
    np.testing.assert_allclose(own, network.scores(weights, network.x), rtol=1e-12)
    *_, last = network.layer_outputs(weights)
    np.testing.assert_allclose(last, network.scores(weights, network.x), rtol=1e-12)


def test_derivatives_of_scores_are_those_of_the_formula():
    rng = np.random.default_rng(5)
    scores, targets = rng.standard_normal((2, CLASSES, POINTS)), rng.integers(0, CLASSES, POINTS)
    before = scores.copy()
    fused = differentiate_scores(costs.multiclass_softmax, scores, targets)
    plain = differentiate_scores(costs.multiclass_softmax.formula, scores, targets)
    for mine, formula in zip(fused, plain):
        np.testing.assert_allclose(mine, formula, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(scores, before)
    own, slopes = differentiate_scores(smooth, scores, targets)
    wanted = np.arange(CLASSES)[:, None] == targets
    np.testing.assert_allclose(own, ((scores - wanted) ** 4).sum(axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(slopes, 4 * (scores - wanted) ** 3, rtol=1e-12)


def test_a_network_of_another_class_is_the_same_problem_with_its_reference():
    class Quicker(Network):
        """The same, as another class computes it."""

    network = problem()
    held_out = replace(network, reference=network, l2=0.25, batch=3)
    other = Quicker.around(held_out)
    assert type(other) is Quicker
    assert type(other.reference) is Quicker
    assert (other.l2, other.batch, other.x is network.x) == (0.25, 3, True)
    assert Quicker.around(network).reference is None
