"""Steps of networks: batches, running statistics, checkpoints, and step sizes of their own."""

from dataclasses import replace

import numpy as np
import pytest

from normbench import optimizers
from normbench.costs import multiclass_softmax
from normbench.engine.descent import SavedDescents
from normbench.engine.network import RUNNING_SHARE, with_affine_and_running_steps
from normbench.engine.plan import plan_of
from normbench.engine.settings import Settings
from normbench.models import Mlp
from tests import door
from tests.door import DescentFile, descend
from tests.engine.test_plan import StoppedError, Updates

POINTS, FEATURES, CLASSES = 13, 4, 3
SIZES = np.array([0.05, 0.3, 1e30])


def problem(model, l2=0.0, points=POINTS):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((points, FEATURES))
    targets = rng.integers(0, CLASSES, points)
    return door.network(model, multiclass_softmax, x, targets, True, CLASSES, l2)


def start_of(network, runs):
    one = network.model.mlp.start(door.layout(network), 1, np.random.default_rng(2))
    return np.repeat(one, runs, axis=0)


def of_points(network, points):
    """Return the problem of some of the points alone."""
    return replace(network, points=network.points[points], targets=network.targets[points])


def plan(network, **settings):
    """Return the plan of a job of twelve iterations."""
    return plan_of(Settings((0.1,), iterations=12, **settings), network, None, None)


def test_running_statistics_follow_the_batches_and_are_left_alone_by_evaluating():
    network = problem(Mlp([5, 4], normalize="batch", statistics="running"))
    made = plan(network, batch=6, batch_order="once")
    layout, weights = door.layout(network), start_of(network, 1)
    rule = with_affine_and_running_steps(optimizers.gradient_descent(), network)
    means = [np.zeros((5, 1)), np.zeros((4, 1))]
    for update in range(4):
        x = network.points[made.batches.points_of(update)]
        collected = network.model.mlp.forward(layout.split(weights), x).moments
        means = [
            (1 - RUNNING_SHARE) * mean + RUNNING_SHARE * collected[layer, "running_mean"][0]
            for layer, mean in enumerate(means)
        ]
        untouched = weights.copy()
        network.evaluate(weights)
        np.testing.assert_array_equal(weights, untouched)
        gradient = made.gradient(network, weights, update)
        weights, _ = rule.step(weights, gradient, (), np.array([[0.1]]))
    moments = network.model._given_moments(network, weights)
    for layer, mean in enumerate(means):
        np.testing.assert_allclose(moments[layer, "running_mean"][0], mean, rtol=1e-12)
    # They normalize evaluated points, each for itself.
    alone = [of_points(network, [point]).evaluate(weights).costs for point in range(POINTS)]
    np.testing.assert_allclose(np.mean(alone), network.evaluate(weights).costs, rtol=1e-12)


def test_a_full_batch_has_running_statistics_too():
    network = problem(Mlp([5], normalize="newton", statistics="running"))
    shared = problem(replace(network.model.mlp, statistics="all"))
    made = plan(network)
    assert made.updates_before(3) == 3
    assert made.batches is not None
    assert made.sees_all_points
    gradient = made.gradient(network, start_of(network, 1), 7)
    expected = shared.evaluate(start_of(shared, 1)).gradient
    trained = door.layout(network).trained
    np.testing.assert_allclose(gradient[:, :trained], expected, rtol=1e-10, atol=1e-14)


def test_batches_are_evaluated_as_batches_on_request():
    network = replace(problem(Mlp([5], normalize="batch", statistics="batch")), batch=4)
    weights = start_of(network, 2)
    blocks = [slice(0, 4), slice(4, 8), slice(8, 13)]
    costs_of = [of_points(network, block).evaluate(weights).costs for block in blocks]
    expected = np.average(costs_of, axis=0, weights=[4, 4, 5])
    np.testing.assert_allclose(network.evaluate(weights).costs, expected, rtol=1e-12)
    held_out = network.held_out(network.points[:3], network.targets[:3])
    alone = of_points(network, slice(3)).evaluate(weights)
    np.testing.assert_allclose(held_out.evaluate(weights).costs, alone.costs, rtol=1e-12)


ALL, FEW = {}, {"batch": 4, "records_per_pass": 2}


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        *(
            ({"normalize": "batch", "statistics": each}, FEW)
            for each in ("all", "running", "batch")
        ),
        *(
            ({"normalize": each, "signs": "fixed"}, ALL)
            for each in ("none", "batch", "layer", "pca")
        ),
    ],
)
@pytest.mark.parametrize("rule", [optimizers.gradient_descent, optimizers.adam])
def test_a_descent_that_is_cut_off_goes_on_to_the_bit(
    tmp_path, monkeypatch, fields, settings, rule
):
    monkeypatch.setattr("normbench.results.store.job_records.os.fsync", lambda _: None)
    network = problem(Mlp([5], **fields))
    held_out = network.held_out(network.points[:5] + 0.1, network.targets[:5])
    steps = with_affine_and_running_steps(rule(), network)
    runs = steps, start_of(network, len(SIZES)), SIZES, plan(network, **settings)
    expected = descend(network, held_out, *runs)
    for looks in (2, 3, 5):
        file = Updates(tmp_path, "ab" * 32, 60, looks=looks)
        with pytest.raises(StoppedError):
            descend(network, held_out, *runs, saved=SavedDescents(file))
    saved = SavedDescents(DescentFile(tmp_path, "ab" * 32, 60))
    resumed = descend(network, held_out, *runs, saved=saved)
    for name in ("cost", "test_cost", "weights", "misclassifications"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(expected, name))


@pytest.mark.parametrize("rule", [optimizers.gradient_descent, optimizers.adam, optimizers.sign])
def test_gains_and_shifts_step_by_a_size_of_their_own(rule):
    model = Mlp([5], normalize="batch", affine_step=0.25)
    network, shared = problem(model), problem(replace(model, affine_step=None))
    weights = start_of(network, 2)
    gradient, sizes = network.evaluate(weights).gradient, np.array([[0.1], [0.5]])
    stepped = [
        with_affine_and_running_steps(rule(), each).step(
            weights, gradient, rule().init(weights), step_sizes
        )[0]
        for each, step_sizes in ((network, sizes), (shared, sizes), (shared, np.full((2, 1), 0.25)))
    ]
    is_affine = door.layout(network).mark("gain", "shift")
    np.testing.assert_array_equal(stepped[0][:, ~is_affine], stepped[1][:, ~is_affine])
    np.testing.assert_array_equal(stepped[0][:, is_affine], stepped[2][:, is_affine])
