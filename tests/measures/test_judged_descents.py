"""What a descent is judged with: lowest cost, targets, step sizes, predictions, seconds."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names, optimizers
from normbench.engine.descent import Histories
from normbench.engine.settings import Settings
from normbench.measures import judged
from normbench.measures.judged import (
    COUNT_FIELDS,
    NUMBER_FIELDS,
    _refined_targets,
    _target_metrics,
    histories,
)
from normbench.theory.analysis import Theory
from normbench.verdicts.convergence import shadow_tolerance_share
from normbench.verdicts.search import Fewest
from tests import door
from tests.door import Batches
from tests.measures.test_measures import Bowl, data, judge_bowl

EPSILON = float(np.finfo(np.float64).eps)

__all__ = ["data"]  # a fixture


@pytest.mark.parametrize(
    ("size", "options", "seconds", "batch"),
    [
        (0.1, {}, 12 / 2, 0),
        (0.1, {"batch": 4, "records_per_pass": 3}, 12 * 3 / 6, 4),
        (1e300, {}, 12.0, 0),  # no step was made
    ],
)
def test_the_seconds_of_a_step_are_those_of_a_pass(data, size, options, seconds, batch):
    settings = Settings(step_sizes=(size,), iterations=2, **options)
    context = judge_bowl(data, settings).judging_context
    assert (context.fit_seconds, context.seconds_a_step) == (3, seconds)
    assert (context.batch, context.compared_points) == (batch, 0)
    assert context.reference == 0  # the cost at zero weights


@pytest.mark.parametrize(
    ("refine", "iterations", "gridless", "in_memory", "refines"),
    [
        ("auto", 5, False, True, True),
        ("auto", 5, False, False, False),
        (True, 5, False, False, True),
        (False, 5, False, True, False),
        (True, 0, False, True, False),
        (True, 5, True, True, False),
    ],
)
def test_finer_step_sizes_are_tried_where_there_are_some_and_the_points_are_near(
    refine, iterations, gridless, in_memory, refines
):
    step = SimpleNamespace(step_size=1.0, metrics={names.reached("1e-2").key: 5.0})
    descent = SimpleNamespace(
        steps=[step],
        settings=SimpleNamespace(refine=refine, iterations=iterations),
        optimizer=SimpleNamespace(gridless=gridless),
    )
    dataset = SimpleNamespace(x=np.ones((2, 2)) if in_memory else "a file")
    made = SimpleNamespace(descent=descent, dataset=dataset)
    assert bool(_refined_targets(made)) == refines


def test_quartiles_of_a_target_are_those_of_its_step_size():
    low = names.quartile(names.reached("1e-2"), names.QUARTILES[0]).key
    tried = {16: SimpleNamespace(metrics={low: 7.0}), 32: SimpleNamespace(metrics={low: 9.0})}
    bench = SimpleNamespace(fit_seconds=2.0, seconds_a_step=0.5)
    descent = SimpleNamespace(judging_context=bench, start=np.zeros((1, 1)))
    found = _target_metrics(descent, tried, "1e-2", Fewest(8.0, 100.0, 3.0))
    assert found == {
        names.best_step_for_target("1e-2").key: 100,
        names.reached("1e-2").key: 8,
        names.reached("1e-2", "seconds").key: 2 + 8 * 0.5,
        names.least("1e-2").key: 3,
        low: 9,
    }


@pytest.mark.parametrize(("tie", "told"), [(0.5, 0.5), (None, np.nan), (0.0, np.nan)])
def test_all_that_a_descent_is_judged_by_is_kept_by_step_size_and_start(tie, told):
    """Of two step sizes from three starts; the first run has two shadows, the last one has one."""
    cost = np.arange(24.0).reshape(6, 4)
    diverged_at = np.array([-1, -1, -1, -1, 2, -1])
    shadows = {0: np.array([[9.0, 5.0, 2.0, 1.0], [9.0, 8.0, 7.0, 6.0]]), 5: np.full((1, 4), 4.0)}
    made = Histories(cost, None, None, None, diverged_at, np.zeros((6, 1)), shadows=shadows)
    goals = dict(zip(names.TARGETS, (5.5, 2.5, 1.5)))
    numbers = {name: 0.25 * n for n, name in enumerate(NUMBER_FIELDS)}
    counts = {field: n for n, field in enumerate(COUNT_FIELDS.values())}
    descent = SimpleNamespace(
        steps=[SimpleNamespace(step_size=size) for size in (0.1, 2.0)],
        start=np.zeros((3, 1)),
        histories=made,
        judging_context=SimpleNamespace(targets=goals, tie_step_size=tie, **numbers, **counts),
        optimizer=SimpleNamespace(gridless=tie is None),
    )
    found = histories.take(SimpleNamespace(descent=descent))
    assert found.tags == ({names.GRIDLESS.key: "true"} if tie is None else {})
    kept_arrays = found.arrays
    assert kept_arrays["step_sizes"].tolist() == [0.1, 2.0]
    np.testing.assert_array_equal(kept_arrays[names.TRAIN_COST.key], cost.reshape(2, 3, 4))
    assert kept_arrays["diverged_at"].tolist() == [[-1, -1, -1], [-1, 2, -1]]
    nan, inf = np.nan, np.inf
    ends = [[[1, 6], [nan, nan], [nan, nan]], [[nan, nan], [nan, nan], [4, nan]]]
    np.testing.assert_array_equal(kept_arrays["shadows"], ends)
    reached = kept_arrays["shadows_reached"]
    assert reached.shape == (2, 3, 2, len(names.TARGETS))
    np.testing.assert_array_equal(reached[0, 0], [[1, 2, 3], [inf] * 3])
    np.testing.assert_array_equal(reached[1, 2], [[0, inf, inf], [nan] * 3])
    assert kept_arrays["tie"] == pytest.approx(told, nan_ok=True)
    assert {name: kept_arrays[name] for name in numbers} == numbers
    recorded_counts = {field: kept_arrays[name] for name, field in COUNT_FIELDS.items()}
    assert recorded_counts == counts


def lowest(cost, shadows, epsilon=EPSILON):
    """Return the lowest cost of runs, some with shadows that end at so much more or less."""
    cost = np.array(cost)
    ends = {run: cost[run, -1] + np.array(moved)[:, None] for run, moved in shadows.items()}
    return judged._find_lowest(SimpleNamespace(cost=cost, shadows=ends), epsilon)


def test_the_lowest_cost_is_of_runs_whose_end_rounding_does_not_decide():
    cost = [[5.0, 4.0, 4.0], [5.0, 2.0, 3.0], [5.0, 3.5, 3.6]]
    excess = 5.0 - 2.0  # of the start above the lowest of all runs
    far = shadow_tolerance_share(EPSILON) * excess
    assert lowest(cost, {}) == 2.0
    assert lowest(cost, {1: [0.9 * far, -0.9 * far]}) == 2.0
    assert lowest(cost, {1: [0.9 * far, -1.1 * far]}) == 3.5
    assert lowest(cost, {1: [1.1 * far]}, float(np.finfo(np.float32).eps)) == 2.0
    assert lowest(cost, {1: [1.1 * far], 2: [1.1 * far]}) == 4.0
    assert lowest(cost, {run: [1.1 * far] for run in range(3)}) == 2.0  # all: none is left out
    # A cost that is far from 0 at both ends leaves the excess as it is.
    high = (np.array(cost) + 1000).tolist()
    assert lowest(high, {1: [0.9 * far]}) == 1002.0
    assert lowest(high, {1: [1.5 * far]}) == 1003.5


def test_runs_that_diverge_have_no_lowest_cost_where_they_are_no_numbers():
    assert lowest([[5.0, np.nan, np.nan], [5.0, 4.0, np.inf]], {}) == 4.0
    assert lowest([[np.nan, np.nan]], {}) == np.inf


class Undefined(Bowl):
    """A problem that has no cost at zero weights."""

    def evaluate(self, weights, *more, **options):
        evaluation = super().evaluate(weights, *more, **options)
        return evaluation._replace(
            costs=np.where(weights.any(axis=(1, 2)), evaluation.costs, np.nan)
        )


@pytest.mark.parametrize(("train", "sees_zero"), [(Bowl(), True), (Undefined(), False)])
def test_the_lowest_cost_is_no_higher_than_that_of_zero_weights(data, train, sees_zero):
    """Over a higher one a target would lie above it the less of the excess it leaves."""
    here = judge_bowl(data, Settings((0.1,), 2), train)
    lowest = 0.0 if sees_zero else here.histories.cost.min()
    assert here.judging_context.minimum == here.least.value == lowest
    if sees_zero:
        assert {*here.judging_context.targets.values()} == {0.0}


@pytest.mark.parametrize(
    ("exact", "plain", "full_batch", "tie"),
    [
        (True, True, True, 0.5),
        (False, True, True, None),
        (True, False, True, None),
        (True, True, False, None),
    ],
)
def test_a_tie_is_of_plain_descent_on_a_quadratic(data, monkeypatch, exact, plain, full_batch, tie):
    monkeypatch.setattr(judged, "theorize", lambda *of: Theory(lipschitz=4.0, exact=exact))
    rule = optimizers.gradient_descent() if plain else optimizers.momentum()
    plan = door.plan(2, None if full_batch else Batches(4, 2))
    here = judge_bowl(data, Settings((0.1,), 2), rule=rule, plan=plan)
    assert here.judging_context.tie_step_size == tie
