"""Steps of networks: batches, running statistics, checkpoints, and step sizes of their own."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from normbench import costs, optimizers
from normbench.costs import multiclass_softmax
from normbench.costs.declaration import traits
from normbench.datasets import UserError
from normbench.engine.midway import SavedDescents
from normbench.engine.network import (
    RUNNING_SHARE,
    check_model,
    with_affine_and_running_steps,
)
from normbench.engine.plan import plan_of
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
    one = network.model.mlp.start(door.layout(network), 1, np.random.default_rng(2))
    return np.repeat(one, runs, axis=0)


def of_points(network, points):
    """Return the problem of some of the points alone."""
    return replace(network, points=network.points[points], targets=network.targets[points])


def plan(network, **settings):
    """Return the plan of a job of twelve iterations."""
    return plan_of(Settings((0.1,), iterations=12, **settings), network)


@pytest.mark.parametrize("normalize", ["none", "batch", "zca"])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_gradient_of_a_batch_is_that_of_its_points_alone(normalize, l2):
    network, batches = problem(Mlp([5], normalize=normalize), l2), Batches(POINTS, 5, "once")
    weights = start_of(network, 2)
    for update in range(3):
        points = batches.points_of(update)
        share = len(points) / 5
        expected = share * of_points(network, points).evaluate(weights).gradient
        gradient = door.plan(1, batches).gradient(network, weights, update)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)
    assert len(points) == 3


@pytest.mark.parametrize("normalize", ["none", "batch"])
def test_a_last_batch_of_one_point_joins_the_one_before_where_it_must(normalize):
    made = plan(problem(Mlp([5], normalize=normalize)), batch=4)
    updates = made.updates_before(1)
    batches = [made.batches.points_of(update) for update in range(updates)]
    assert [len(points) for points in batches] == (
        [4, 4, 5] if normalize == "batch" else [4, 4, 4, 1]
    )
    assert sorted(np.concatenate(batches)) == list(range(POINTS))
    assert len(made.batches.points_of(updates)) == 4


def test_running_statistics_follow_the_batches_and_are_left_alone_by_evaluating():
    network = problem(Mlp([5, 4], normalize="batch", statistics="running"))
    made = plan(network, batch=6, batch_order="once")
    layout, weights = door.layout(network), start_of(network, 1)
    rule = with_affine_and_running_steps(optimizers.gradient_descent(), network)
    means = [np.zeros((5, 1)), np.zeros((4, 1))]
    for update in range(4):
        x = network.points[made.batches.points_of(update)]
        collected = network.model.mlp.forward(layout, layout.split(weights), x).moments
        means = [
            (1 - RUNNING_SHARE) * mean + RUNNING_SHARE * batch[0][0]
            for mean, batch in zip(means, collected)
        ]
        untouched = weights.copy()
        network.evaluate(weights)
        np.testing.assert_array_equal(weights, untouched)
        gradient = made.gradient(network, weights, update)
        weights, _ = rule.step(weights, gradient, (), np.array([[0.1]]))
    moments = network.model.mlp.running_moments(layout, layout.split(weights))
    for mean, (running, _) in zip(means, moments):
        np.testing.assert_allclose(running[0], mean, rtol=1e-12)
    # They normalize evaluated points, each for itself.
    alone = [of_points(network, [point]).evaluate(weights).costs for point in range(POINTS)]
    np.testing.assert_allclose(np.mean(alone), network.evaluate(weights).costs, rtol=1e-12)


def test_a_full_batch_has_running_statistics_too():
    network = problem(Mlp([5], normalize="newton", statistics="running"))
    shared = problem(replace(network.model.mlp, statistics="all"))
    made = plan(network)
    assert made.updates_before(3) == 3
    assert not made.full_batch
    assert made.order == ""
    gradient = made.gradient(network, start_of(network, 1), 7)
    expected = shared.evaluate(start_of(shared, 1)).gradient
    trained = door.layout(network).trained
    np.testing.assert_allclose(gradient[:, :trained], expected, rtol=1e-10, atol=1e-14)


def test_batches_are_evaluated_as_batches_on_request():
    network = replace(problem(Mlp([5], normalize="batch", statistics="batch")), together=4)
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


def test_the_step_rule_of_another_problem_is_left_alone():
    rule = optimizers.gradient_descent()
    assert with_affine_and_running_steps(rule, problem(Mlp([5]))) is rule


@pytest.mark.parametrize(
    ("fields", "settings", "said"),
    [
        ({"normalize": "batch", "statistics": "running"}, {}, ["running statistics"]),
        ({"normalize": "batch"}, {"batch": 4}, ["statistics of all points", "last batch"]),
        ({"normalize": "batch"}, {}, []),
        ({}, {"batch": 4}, []),
    ],
)
def test_what_is_recorded_otherwise_than_descended_is_said(fields, settings, said):
    note = plan(problem(Mlp([5], **fields)), **settings).note
    assert all(words in note for words in said)
    assert ("last batch" in note) == ("last batch" in said)
    assert bool(note) == bool(said)


def test_evaluating_few_held_out_points_needs_no_more_memory_than_the_training_points():
    """Its moments are those of all training points: these size the groups of runs."""
    network = problem(Mlp([50], normalize="batch"), points=3000)
    held_out = network.held_out(network.points[:2], network.targets[:2])
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
