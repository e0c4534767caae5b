"""Steps of networks: batches, running statistics, checkpoints, and step sizes of their own."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from normbench import costs, optimizers
from normbench.costs import multiclass_softmax
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.engine.network_steps import (
    RUNNING_SHARE,
    check_model,
    step_by_batches,
    with_affine_and_running_steps,
)
from normbench.engine.settings import Settings
from normbench.models import Mlp
from tests import door
from tests.door import Batches, DescentFile, descend
from tests.engine.test_batches import StoppedError, Updates

POINTS, FEATURES, CLASSES = 13, 4, 3
SIZES = np.array([0.05, 0.3, 1e30])


def problem(model, l2=0.0, points=POINTS):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((points, FEATURES))
    targets = rng.integers(0, CLASSES, points)
    return door.network(model, multiclass_softmax, x, targets, True, CLASSES, l2)


def start_of(network, runs):
    one = network.model.start(network.layout, 1, np.random.default_rng(2))
    return np.repeat(one, runs, axis=0)


def of_points(network, points):
    """Return the problem of some of the points alone."""
    return replace(network, x=network.x[points], targets=network.targets[points])


@pytest.mark.parametrize("normalize", ["none", "batch", "zca"])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_gradient_of_a_batch_is_that_of_its_points_alone(normalize, l2):
    network = problem(Mlp([5], normalize=normalize), l2)
    steps = step_by_batches(network, Batches(POINTS, 5, "once"))
    weights = start_of(network, 2)
    for update in range(3):
        points = steps.batches.stretch_of(update).points
        share = len(points) / 5
        expected = share * of_points(network, points).evaluate(weights).gradient
        gradient = steps.gradient(weights, update)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)
    assert len(points) == 3


@pytest.mark.parametrize("normalize", ["none", "batch"])
def test_a_last_batch_of_one_point_joins_the_one_before_where_it_must(normalize):
    network = problem(Mlp([5], normalize=normalize))
    steps = step_by_batches(network, Batches(POINTS, 4, "shuffled"))
    updates = steps.updates_before(1)
    batches = [steps.batches.stretch_of(update).points for update in range(updates)]
    assert [len(points) for points in batches] == (
        [4, 4, 5] if normalize == "batch" else [4, 4, 4, 1]
    )
    assert sorted(np.concatenate(batches)) == list(range(POINTS))
    assert len(steps.batches.stretch_of(updates).points) == 4


def descended(steps, optimizer=None, iterations=6, **options):
    rule = with_affine_and_running_steps(optimizer or optimizers.gradient_descent(), steps)
    start = start_of(steps.inner if hasattr(steps, "inner") else steps, len(SIZES))
    held_out = door.held_out_problem(steps.inner, steps.inner.x[:5] + 0.1, steps.inner.targets[:5])
    return descend(steps, held_out, rule, start, SIZES, iterations, **options)


def test_running_statistics_follow_the_batches_and_are_left_alone_by_evaluating():
    network = problem(Mlp([5, 4], normalize="batch", statistics="running"))
    steps = step_by_batches(network, Batches(POINTS, 6, "once"))
    layout, weights = network.layout, start_of(network, 1)
    rule = with_affine_and_running_steps(optimizers.gradient_descent(), steps)
    means = [np.zeros((5, 1)), np.zeros((4, 1))]
    for update in range(4):
        parts = layout.split(weights)
        points = steps.batches.stretch_of(update).points
        collected = of_points(network, points).collect(parts)
        means = [
            (1 - RUNNING_SHARE) * mean + RUNNING_SHARE * batch[0][0]
            for mean, batch in zip(means, collected)
        ]
        untouched = weights.copy()
        steps.evaluate(weights)
        np.testing.assert_array_equal(weights, untouched)
        weights, _ = rule.step(weights, steps.gradient(weights, update), (), np.array([[0.1]]))
    moments = network.model.running_moments(layout, layout.split(weights))
    for mean, (running, _) in zip(means, moments):
        np.testing.assert_allclose(running[0], mean, rtol=1e-12)
    # They normalize evaluated points, each for itself.
    alone = [
        of_points(network, [point]).evaluate(weights, with_gradient=False).costs
        for point in range(POINTS)
    ]
    np.testing.assert_allclose(
        np.mean(alone), steps.evaluate(weights, with_gradient=False).costs, rtol=1e-12
    )


def test_a_full_batch_has_running_statistics_too():
    network = problem(Mlp([5], normalize="newton", statistics="running", groups=5))
    steps = step_by_batches(network, None)
    assert steps.updates_before(3) == 3
    weights, other = (
        start_of(network, 1),
        start_of(problem(replace(network.model, statistics="all")), 1),
    )
    trained = network.layout.trained
    expected = problem(replace(network.model, statistics="all")).evaluate(other).gradient
    np.testing.assert_allclose(
        steps.gradient(weights, 7)[:, :trained], expected, rtol=1e-10, atol=1e-14
    )
    assert not steps.full_batch


def test_batches_are_evaluated_as_batches_on_request():
    model = Mlp([5], normalize="batch", statistics="batch")
    steps = step_by_batches(replace(problem(model), batch=4), Batches(POINTS, 4))
    weights = start_of(steps.inner, 2)
    blocks = [range(0, 4), range(4, 8), range(8, 13)]
    expected = sum(
        len(block)
        * of_points(steps.inner, list(block)).evaluate(weights, with_gradient=False).costs
        for block in blocks
    )
    np.testing.assert_allclose(
        steps.evaluate(weights, with_gradient=False).costs, expected / POINTS, rtol=1e-12
    )
    held_out = door.held_out_problem(steps.inner, steps.inner.x[:3], steps.inner.targets[:3])
    alone = of_points(steps.inner, [0, 1, 2]).evaluate(weights, with_gradient=False)
    np.testing.assert_allclose(
        held_out.evaluate(weights, with_gradient=False).costs, alone.costs, rtol=1e-12
    )


@pytest.mark.parametrize("statistics", ["all", "running", "batch"])
@pytest.mark.parametrize("rule", [optimizers.gradient_descent, optimizers.adam])
def test_a_descent_that_is_cut_off_goes_on_to_the_bit(tmp_path, monkeypatch, statistics, rule):
    monkeypatch.setattr("normbench.recording.resume.checkpoints.os.fsync", lambda _: None)
    model = Mlp([5], normalize="batch", statistics=statistics)
    steps = step_by_batches(problem(model), Batches(POINTS, 4, records=2))
    expected = descended(steps, rule())
    for looks in (2, 3, 5):
        with pytest.raises(StoppedError):
            descended(steps, rule(), checkpoint=Updates(tmp_path, "ab" * 32, 60, looks=looks))
    resumed = descended(steps, rule(), checkpoint=DescentFile(tmp_path, "ab" * 32, 60))
    np.testing.assert_array_equal(resumed.cost, expected.cost)
    np.testing.assert_array_equal(resumed.test_cost, expected.test_cost)
    np.testing.assert_array_equal(resumed.weights, expected.weights)


@pytest.mark.parametrize("normalize", ["none", "batch", "layer", "pca"])
@pytest.mark.parametrize("rule", [optimizers.gradient_descent, optimizers.adam])
def test_a_descent_on_all_points_that_is_cut_off_goes_on_to_the_bit(
    tmp_path, monkeypatch, normalize, rule
):
    monkeypatch.setattr("normbench.recording.resume.checkpoints.os.fsync", lambda _: None)
    network = problem(Mlp([4], normalize=normalize, signs="fixed"))
    arguments = network, door.held_out_problem(network, network.x[:5] + 0.1, network.targets[:5])
    runs = start_of(network, len(SIZES)), SIZES, 9

    def descended_whole(**options):
        return descend(*arguments, with_affine_and_running_steps(rule(), network), *runs, **options)

    expected = descended_whole()
    for looks in (2, 4):
        with pytest.raises(StoppedError):
            descended_whole(checkpoint=Updates(tmp_path, "cd" * 32, 60, looks=looks))
    resumed = descended_whole(checkpoint=DescentFile(tmp_path, "cd" * 32, 60))
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
    is_affine = network.layout.mark("gain", "shift")
    np.testing.assert_array_equal(stepped[0][:, ~is_affine], stepped[1][:, ~is_affine])
    np.testing.assert_array_equal(stepped[0][:, is_affine], stepped[2][:, is_affine])


def test_the_step_rule_of_another_problem_is_left_alone():
    rule = optimizers.gradient_descent()
    assert with_affine_and_running_steps(rule, problem(Mlp([5]))) is rule


def test_what_is_recorded_otherwise_than_descended_is_said():
    rule = optimizers.gradient_descent()
    network = problem(Mlp([5], normalize="batch", statistics="running"))
    note = with_affine_and_running_steps(rule, step_by_batches(network, None)).note
    assert "running statistics" in note
    assert "last batch" not in note
    assert step_by_batches(network, None).order == ""
    shared = problem(Mlp([5], normalize="batch"))
    note = with_affine_and_running_steps(rule, step_by_batches(shared, Batches(POINTS, 4))).note
    assert "all points" in note
    assert "last batch" in note
    assert with_affine_and_running_steps(rule, step_by_batches(shared, None)).note == ""
    assert (
        with_affine_and_running_steps(
            rule, step_by_batches(problem(Mlp([5])), Batches(POINTS, 4))
        ).note
        == ""
    )


def test_evaluating_few_held_out_points_needs_no_more_memory_than_the_training_points():
    """Its moments are those of all training points: these size the groups of runs."""
    network = problem(Mlp([50], normalize="batch"), points=3000)
    held_out = door.held_out_problem(network, network.x[:2], network.targets[:2])
    weights = start_of(network, 60)

    def measure_peak(evaluated):
        tracemalloc.start()
        evaluated.evaluate(weights, with_gradient=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    # Measured 0.9; all runs at once take 23 times as much.
    assert measure_peak(held_out) < 2 * measure_peak(network)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"statistics": "running"}, "model.statistics=running: the optimizer chooses its steps"),
        ({"affine_step": 0.1}, "model.affine_step=0.1: the optimizer chooses its steps"),
    ],
)
def test_a_model_with_steps_of_its_own_refuses_a_rule_that_asks_for_the_objective(options, said):
    def step(weights, gradient, state, step_size, objective):
        return weights - step_size * objective.gradient(weights), state

    rule = optimizers.Optimizer(step, uses_objective=True)
    model, held = Mlp([5], normalize="batch", **options), (np.ones((13, 4)), np.ones((0, 4)))
    chosen = Settings((0.1,), start="normal")
    with pytest.raises(UserError, match=said):
        check_model(model, chosen, held, rule, "transformed", traits(costs.least_squares))


@pytest.mark.parametrize("start", ["normal", (0.0, 1.0)])
def test_the_scale_of_a_networks_start_is_the_models(start):
    held = np.ones((11, 4)), np.ones((0, 4))
    arguments = held, optimizers.gradient_descent(), "transformed", traits(costs.least_squares)
    check_model(Mlp([5], start_scale=10), Settings((0.1,), start=start), *arguments)
    chosen = Settings((0.1,), start=start, start_scale=10)
    with pytest.raises(UserError, match=r"^start_scale=10: .*start_scale=0.1 and model.start_sc"):
        check_model(Mlp([5]), chosen, *arguments)


@pytest.mark.parametrize("normalize", ["none", "batch"])
def test_a_record_has_an_update_where_the_last_point_joins_a_batch(normalize):
    model, held = Mlp([5], normalize=normalize), (np.ones((11, 4)), np.ones((0, 4)))
    chosen = Settings((0.1,), start="normal", batch=5, records_per_pass=3)
    arguments = held, optimizers.gradient_descent(), "transformed", traits(costs.least_squares)
    check_model(model, replace(chosen, records_per_pass=2), *arguments)
    if normalize == "none":
        check_model(model, chosen, *arguments)
        return
    with pytest.raises(UserError, match=r"records_per_pass=3: .* has 2 updates.* at most 2$"):
        check_model(model, chosen, *arguments)
