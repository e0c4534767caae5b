"""Each rule at its bound: what lies just on either side of it."""

from dataclasses import replace

import numpy as np
import pytest

from normbench import names
from normbench.verdicts import convergence
from normbench.verdicts.convergence import Judgement, Rules
from normbench.verdicts.judging import JudgingContext, _drop_unsure, best_step, judge_steps
from normbench.verdicts.search import (
    critical_step,
    fewest_iterations,
    smooth_counts,
    step_size_of,
)

EPSILON = float(np.finfo(np.float64).eps)


@pytest.mark.parametrize(("share", "rises"), [(60, False), (70, True)])
def test_rounding_is_64_machine_epsilons_of_the_start(share, rises):
    history = 4.0 * np.array([1.0, 0.5, 0.5 + share * EPSILON])
    assert convergence.needs_shadow(history, True, EPSILON) == rises
    excess = convergence.starting_excess(1.0, 1.0 - share * EPSILON, EPSILON)
    assert (excess < 1.0) == rises  # else the cost itself


def test_where_no_step_size_reaches_the_goal_the_least_excess_that_is_finite_is_the_best():
    unreached, nowhere = [1, 1, 1], [np.nan] * 3
    assert best_step([0.1, 1.0, 10.0], nowhere, unreached, [np.inf, 0.5, 0.4]) == 2
    assert best_step([0.1, 1.0, 10.0], nowhere, unreached, [np.inf, 0.5, 0.5 - 1e-9]) == 1
    assert best_step([1.0, 0.1, 10.0], nowhere, unreached, [np.inf, np.inf, np.nan]) == 1
    assert best_step([0.1, 1.0, 10.0], nowhere) is None


@pytest.mark.parametrize(
    ("end", "iterations"), [(0.1 + 5e-7, [1.0, 2.0]), (0.1 + 5e-6, [3.0, 2.0])]
)
def test_the_lowest_cost_is_met_to_a_millionth_of_the_starts_excess(end, iterations):
    bench = JudgingContext(Rules(), 0.0, 1.0, None, EPSILON, 0.0, 0.0)
    costs = np.array([[1.0, end, end, 0.1], [1.0, 0.5, 0.1, 0.1]])
    judged = judge_steps({names.TRAIN_COST.key: costs}, np.full(2, -1), [0.1, 1.0], bench)
    assert [step.metrics[names.TO_LOWEST.key] for step in judged] == iterations


def test_step_sizes_that_miss_the_goal_on_the_fewest_splits_come_first():
    sizes = [0.1, 1.0, 10.0]
    assert best_step(sizes, [9.0, 2.0, 3.0], unreached=[0, 1, 2]) == 0
    assert best_step(sizes, [9.0, 2.0, 3.0], unreached=[1, 0, 0]) == 1
    assert best_step(sizes, [np.nan, 2.0, 3.0], unreached=[0, 1, 1]) is None
    assert best_step(sizes[::-1], [3.0, 2.0, 9.0], unreached=[2, 1, 0]) == 2


def test_a_run_at_the_bound_has_not_diverged():
    at, above = (np.r_[1.0, 2.0, np.full(50, end)] for end in (10.0, np.nextafter(10.0, 11)))
    assert convergence.judge(at, False, 0.0).verdict == names.NOT_CONVERGED
    judged = convergence.judge(above, False, 0.0)
    assert judged.verdict == names.DIVERGED
    assert judged.reason == "the cost ends at over 10 times the start's excess"
    of_cost = convergence.judge(above + np.r_[0.0, np.ones(51)], False, 1.0)
    assert of_cost.reason == "the cost ends at over 10 times the start's cost"


def test_shadows_at_the_bound_end_together():
    history = np.r_[1.0, np.zeros(100)]
    for end, verdict in ((1e-7, names.CONVERGED), (1.01e-7, names.BY_ROUNDING)):
        assert convergence.judge(history, False, 0.0, shadows=[end]).verdict == verdict
        assert convergence.judge(history, False, 0.0, shadows=[-end]).verdict == verdict


def test_a_run_has_diverged_by_its_later_half():
    for lowest, chaotic in ((1, False), (2, False), (3, True), (5, True)):  # of six records
        history = np.full(6, 5.0)
        history[[0, lowest]] = 1.0
        assert convergence.needs_shadow(history, True, EPSILON, diverged_factor=4.0) == chaotic
    bound = np.array([1.0, 4.0, 4.0])
    assert convergence.needs_shadow(bound, True, EPSILON, diverged_factor=4.0)
    assert not convergence.needs_shadow(bound, True, EPSILON, diverged_factor=3.99)


@pytest.mark.parametrize("answer", [True, False])
def test_a_search_without_a_bracket_ends_after_64_doublings(answer):
    asked = []
    found = critical_step(lambda sizes: asked.append(sizes) or [answer] * len(sizes), 1.0, 0.1)
    assert found.descents == len(asked) == 8
    powers = range(-56, -48) if answer else range(56, 64)
    assert asked[-1] == [2.0**power for power in powers]
    assert found.upper == (2.0**-56 if answer else None)
    assert found.lower == (None if answer else 2.0**63)


def test_what_lies_at_the_bound_of_a_share_is_not_under_it():
    rules = Rules(excess=0.5, variation=0.25, least_tail=2, tail=0.5)
    for end, is_low in ((0.5, False), (0.4999, True)):
        assert convergence.has_converged(np.r_[1.0, np.full(20, end)], 0.0, rules) == is_low
        assert convergence.has_converged(np.r_[3.0, np.full(20, 2 + end)], 2.0, rules) == is_low
    for ripple, is_flat in ((0.25, False), (0.2499, True)):
        history = np.r_[1.0, np.zeros(20)]
        history[-2] = ripple
        assert convergence.is_flat(history, rules) == is_flat


def test_the_worst_of_several_starts_gives_its_reason_and_the_counts_of_all():
    fine, slow = (
        Judgement(names.CONVERGED, "", True, False, True),
        Judgement(names.NOT_CONVERGED, "it is slow", falls=True, sinks=True),
    )
    rising = Judgement(names.NOT_CONVERGED, "it rises", sinks=True)
    tied = Judgement(names.NOT_CONVERGED, "tie", tied=True)
    assert convergence.judge_starts([slow, fine, fine]) == Judgement(
        names.NOT_CONVERGED,
        "of 3 starts: 2 converged, 1 not converged; it is slow",
        True,
        sinks=True,
    )
    assert convergence.judge_starts([slow, tied]) == Judgement(names.NOT_CONVERGED, "tie")
    assert convergence.judge_starts([tied, tied]).tied
    assert convergence.judge_starts([rising, fine]).sinks
    lost = Judgement(names.DIVERGED, "at step 3")
    assert convergence.judge_starts([lost, fine, tied]).reason == (
        "of 3 starts: 1 converged, 1 not converged, 1 diverged; at step 3"
    )
    assert convergence.judge_starts([fine, fine]).reason == ""


def test_a_machine_epsilon_tells_double_precision_from_single():
    assert convergence.shadow_tolerance_share(1e-10) == 1e-5
    assert convergence.shadow_tolerance_share(0.99e-10) == 1e-7
    single = float(np.finfo(np.float32).eps)
    history = np.r_[1.0, np.zeros(100)]
    for epsilon, verdict in ((EPSILON, names.BY_ROUNDING), (single, names.CONVERGED)):
        judged = convergence.judge(history, False, 0.0, epsilon=epsilon, shadows=[5e-6])
        assert judged.verdict == verdict


def test_iterations_that_a_shadow_takes_too_are_sure():
    counts = np.array([3.0, 3.0, 3.0, np.nan, 7.0])
    shadows = np.array([[3.0, 3.0], [3.0, 4.0], [3.0, np.nan], [np.inf, 3.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(_drop_unsure(counts, shadows), [3, np.nan, 3, np.nan, 7])


def test_seconds_to_a_target_are_those_of_the_scheme_and_of_the_steps():
    falling = np.array([[1.0, 0.5, 0.1, 0.01], [1.0, 0.1, 0.1, 0.01], [1.0, 1.0, 1.0, 0.1]])
    bench = JudgingContext(Rules(), 0.0, 1.0, None, EPSILON, 5.0, 0.25)
    (step,) = judge_steps({names.TRAIN_COST.key: falling}, np.full(3, -1), [0.1], bench)
    told = step.metrics
    for ending, iterations in (("", 2.0), ("_q1", 2.0), ("_q3", 3.0)):
        assert told[f"final/iterations_to_1e-1{ending}"] == iterations
        assert told[f"final/seconds_to_1e-1{ending}"] == 5 + iterations / 4
    for ending, iterations in (("", 3.0), ("_q1", 3.0), ("_q3", np.nan)):
        for quantity, value in (("iterations", iterations), ("seconds", 5 + iterations / 4)):
            key = f"final/{quantity}_to_1e-2{ending}"
            assert told[key] == pytest.approx(value, nan_ok=True)
    assert np.isnan(told["final/iterations_to_1e-3"])
    np.testing.assert_array_equal(step.starts["start/iterations_to_1e-1"], [2, 1, 3])
    np.testing.assert_array_equal(step.starts["start/iterations_to_1e-2"], [3, 3, np.nan])
    (alone,) = judge_steps({names.TRAIN_COST.key: falling[:1]}, np.array([-1]), [0.1], bench)
    assert alone.metrics["final/seconds_to_1e-1"] == 5.5
    assert "final/iterations_to_1e-1_q1" not in alone.metrics


def test_passes_of_batches_are_counted_by_their_records():
    falling = np.r_[np.full(4, 1.0), np.full(8, 0.05)][None]
    bench = JudgingContext(Rules(), 0.0, 1.0, None, EPSILON, 5.0, 0.25, batch=3, records_per_pass=4)
    (step,) = judge_steps({names.TRAIN_COST.key: falling}, np.array([-1]), [0.1], bench)
    assert step.metrics["final/iterations_to_1e-1"] == 1
    assert step.metrics["final/seconds_to_1e-1"] == 5.25
    assert step.metrics[names.TO_LOWEST.key] == 1


def test_points_of_a_job_that_counts_them_are_compared_by_their_counts():
    costs, counts = np.linspace(1, 0.9, 6)[None], np.array([[50.0, 20, 5, 5, 5, 4]])
    histories = {names.TRAIN_COST.key: costs, names.TRAIN_MISCLASSIFICATIONS.key: counts}
    bench = JudgingContext(Rules(), 0.0, 1.0, None, EPSILON, 0.0, 0.0, compared_points=50)
    (step,) = judge_steps(histories, np.array([-1]), [0.1], bench)
    assert (bench.compared_range, bench.compared) == (
        (0.0, 50.0),
        names.TRAIN_MISCLASSIFICATIONS.key,
    )
    assert step.metrics["final/iterations_to_1e-1"] == 2
    assert step.metrics[names.TO_LOWEST.key] == 5
    by_cost = replace(bench, compared_points=0)
    assert (by_cost.compared_range, by_cost.compared) == ((0.0, 1.0), names.TRAIN_COST.key)
    (step,) = judge_steps(histories, np.array([-1]), [0.1], by_cost)
    assert np.isnan(step.metrics["final/iterations_to_1e-1"])
    far = np.array([[1.0, 2.0, 30.0]])  # a count is not measured against the start's cost
    for points, verdict in ((50, names.NOT_CONVERGED), (0, names.DIVERGED)):
        judged = replace(bench, compared_points=points).judge(far[0], 0.1, -1)
        assert judged.verdict == verdict


def test_medians_of_three_count_what_was_not_tried_as_missed():
    numbers = [3, 4, 5, 6]
    smooth = smooth_counts({3: 8.0, 4: 2.0, 6: 5.0, 7: 1.0}, numbers)
    np.testing.assert_array_equal(smooth, [8, 8, 5, np.inf])
    best = fewest_iterations({3: 8.0, 4: 2.0, 6: 5.0, 7: 1.0}, numbers)
    assert (best.iterations, best.step_size) == (5, step_size_of(6))
    first = fewest_iterations({3: 4.0, 4: 4.0, 5: 9.0, 6: np.inf}, numbers)
    assert (first.iterations, first.step_size) == (4, step_size_of(3))
    assert first.least == pytest.approx(4 * 10 ** (-3 / 16))
    assert fewest_iterations({3: 4.0}, numbers) is None
