"""The verdict on a history, and what follows from the verdicts of a grid."""

from dataclasses import fields, replace

import numpy as np
import pytest

from normbench import names
from normbench.choices import CONF
from normbench.datasets import UserError
from normbench.engine.settings import Settings
from normbench.verdicts import convergence
from normbench.verdicts.convergence import Judgement, Rules
from normbench.verdicts.judging import (
    JudgingContext,
    Shadows,
    Step,
    best_step,
    find_shown_step,
    judge_steps,
    largest_convergent,
    largest_falling,
)
from normbench.verdicts.search import Search, critical_step


def judge(costs, diverged=False, minimum=0.0, shadows=(), scaled=True, **rules):
    history = np.array(costs, dtype=float)
    more = {"shadows": shadows, "scaled": scaled}
    return convergence.judge(history, diverged, minimum, Rules(**rules), **more)


def verdict(costs, diverged=False, minimum=0.0, **more):
    return judge(costs, diverged, minimum, **more).verdict


def steps(sizes, judgements):
    return [Step(size, judged, {}, {}, {}, (), {}) for size, judged in zip(sizes, judgements)]


def test_a_curve_that_has_come_to_rest_is_converged():
    assert verdict(0.5 ** np.arange(101)) == "converged"


def test_a_curve_that_still_falls_is_not_converged():
    found = judge(1 - np.arange(101) / 200)
    assert (found.verdict, found.falls, found.fails) == ("not converged", True, False)
    assert "still falls" in found.reason


def test_a_flat_tail_high_above_the_minimum_is_not_converged():
    found = judge(np.r_[1.0, np.full(100, 0.8)])
    assert found.verdict == "not converged"
    assert "not under 0.5 of the starting excess cost" in found.reason
    assert verdict(np.r_[1.0, np.full(100, 0.8)], minimum=0.7) == "converged"
    assert verdict(np.r_[1.0, np.full(99, 0.501), 0.499]) == "converged"  # by its last cost


def test_a_curve_that_rises_and_falls_for_ever_is_cycling():
    assert verdict(np.r_[1.0, np.tile([0.2, 0.6], 50)]) == "cycling"


def test_a_curve_that_grows_and_is_finite_is_cycling_and_nothing_is_foretold():
    found = judge(1.02 ** np.arange(101))
    assert found.verdict == "cycling"
    assert found.reason.endswith("and it ends above the start")
    for falls_back in ([1.5, 0.5], [0.5, 1.0]):
        found = judge(np.r_[1.0, np.tile(falls_back, 50)])
        assert found.reason.endswith("finds no new low")
    assert judge(np.r_[1.0, 9.0, np.tile([2.0, 3.0], 50)]).reason.endswith("above the start")


@pytest.mark.parametrize(("end", "found"), [(9.9, "cycling"), (10.1, "diverged")])
def test_a_curve_that_ends_far_above_its_start_has_diverged(end, found):
    history = np.r_[np.geomspace(1.0, end, 101)]
    assert verdict(history) == found
    larger = convergence.judge(history, False, 0.0, Rules(diverged=20))
    assert larger.verdict == "cycling"
    assert verdict(3 + history, minimum=3.0) == found  # of the excess over the least cost
    assert verdict(history, scaled=False) == "cycling"  # of a cost that grows with the weights
    assert verdict(history, shadows=[5.0]) == "decided by rounding"  # not all of them end so high


@pytest.mark.parametrize(
    ("shadows", "found"),
    [([], "converged"), ([0.0, 9e-8], "converged"), ([0.0, -2e-7], "decided by rounding")],
)
def test_a_run_whose_shadows_end_elsewhere_is_decided_by_rounding(shadows, found):
    history = np.r_[1.0, np.full(100, 0.1)]
    ends = 0.1 + np.array([*shadows, np.nan])
    judged = judge(history, shadows=ends)
    assert judged.verdict == found
    assert judged.fails == (found != "converged")
    assert not judged.falls or found == "converged"
    assert judge(history, shadows=[np.inf]).verdict == "decided by rounding"


def test_a_curve_that_rises_and_falls_while_it_sinks_is_not_converged():
    sinking = np.linspace(1, 0.1, 101) * np.where(np.arange(101) % 2, 1.5, 1.0)
    assert verdict(sinking) == "not converged"
    assert judge(sinking).fails


def test_a_small_rise_is_no_failure():
    bump = np.linspace(1, 0.1, 101)
    bump[30] = bump[29] + 0.001
    found = judge(bump)
    assert (found.verdict, found.falls, found.fails) == ("not converged", False, False)
    bump[30] = bump[29] + 0.1
    assert judge(bump).fails
    hovers = np.r_[1.0, np.tile([0.2, 0.2001], 50)]  # small rises, but no new low
    assert judge(hovers, excess=0.1).verdict == "cycling"
    assert judge(hovers, excess=0.1).fails


def test_a_run_that_stopped_being_finite_is_diverged():
    of_batches = convergence.judge(np.array([1.0, 0.5]), True, 0.0, noisy=True)
    assert of_batches.reason.endswith("stopped being finite at record 2")
    found = judge([1.0, 0.5], diverged=True)
    assert found.verdict == "diverged"
    assert "at step 2" in found.reason


@pytest.mark.parametrize("jitter", [0.0, 1e-15])
def test_a_cost_that_neither_falls_nor_rises_is_a_tie_and_fails(jitter):
    found = judge(3.0 * (1 + jitter * (np.arange(101) % 2)))
    assert found.verdict == "not converged"
    assert found.reason.startswith("tie")
    assert found.tied
    assert found.fails
    assert not found.falls


def test_rounding_at_rest_is_no_rise():
    costs = np.r_[1.0, np.full(100, 0.1)]
    costs[50:] += 1e-15 * (np.arange(51) % 2)
    assert judge(costs, minimum=0.1).falls
    assert not judge(costs + np.r_[np.zeros(100), 1e-6], minimum=0.1).falls
    assert judge(np.r_[1e16, np.full(50, 1.0), np.full(50, 2.0)]).falls  # relative to the start


def test_thresholds_are_rules():
    slow = np.r_[1.0, np.linspace(0.12, 0.1, 100)]
    assert judge(slow).verdict == "converged"
    assert judge(slow, variation=0.001).verdict == "not converged"
    assert judge(slow, excess=0.05).verdict == "not converged"
    assert judge(slow, tail=0.9).verdict == "not converged"
    with pytest.raises(UserError, match=r"rules.excess=2: must be"):
        Rules(excess=2)
    with pytest.raises(UserError, match=r"rules.least_tail=0: must be 1 or more"):
        Rules(least_tail=0)


def test_the_best_is_first_at_the_lowest_cost_and_stays_there():
    """Steps that have converged differ by rounding: the first to arrive is the best."""
    k = np.arange(101)
    slow, quick = 0.5 + 0.8**k / 2, 0.5 + 0.2**k / 2  # both end at 0.5
    jitter = 1e-12 * np.sin(k)
    for sign in (1, -1):
        counts = convergence.to_lowest([slow + sign * jitter, quick - sign * jitter, None], 0.5)
        assert counts[1] < 10 < counts[0]
        assert np.isnan(counts[2])
        assert best_step([1.0, 0.1, 9.0], counts) == 1
    touches = quick.copy()
    touches[50] = 0.7  # it leaves the lowest cost once more
    assert convergence.to_lowest([slow, touches], 0.5)[1] == 51
    lasts = [(1.0, 0.5), (0.1, 0.7), (1.0, 0.50005), (1.0, 0.5002)]
    for unit in (1.0, 1e-4):
        ends = [unit * np.array([100.0, *last]) for last in lasts]
        wanted = [2, np.nan, 2, np.nan]  # within a millionth of 100
        assert convergence.to_lowest(ends, 0.0) == pytest.approx(wanted, nan_ok=True)
    # A cost that ends above by more than a millionth of the start's excess is not as good.
    higher = convergence.to_lowest([slow, quick + 1e-5], 0.5)
    assert convergence.to_lowest([slow + 100, quick + 100 + 1e-5], 100.5) == pytest.approx(
        higher, nan_ok=True
    )
    assert np.isnan(higher[1])
    assert best_step([1.0, 0.1], higher) == 0


def test_of_equal_steps_the_smaller_is_the_best():
    assert best_step([0.3, 0.1, 0.01], [2.0, 2.0, 5.0]) == 1
    assert best_step([0.3, 0.1], [float("nan")] * 2) is None
    assert convergence.to_lowest([None, None], 0.0) == pytest.approx([np.nan] * 2, nan_ok=True)


def test_the_lowest_final_cost_counts_whatever_the_verdict():
    converged, moving = np.r_[1.0, np.full(100, 0.4)], np.linspace(1, 0.1, 101)
    counts = convergence.to_lowest([converged, moving], 0.0)
    assert best_step([0.1, 1.0], counts) == 1


SLOW = Judgement("not converged", "", falls=True)
CONVERGED = Judgement("converged", "", falls=True)
HOVERS = Judgement("converged", "", falls=False)
CYCLES = Judgement("cycling")
RISES = Judgement("not converged", "it rises")
TIED = Judgement("not converged", "tie", tied=True)


@pytest.mark.parametrize(
    ("judgements", "largest", "censored"),
    [
        ([SLOW, CONVERGED, HOVERS, CYCLES], 3.0, False),
        ([SLOW, CONVERGED, HOVERS], 3.0, True),
        (
            [CONVERGED, CYCLES, CONVERGED],
            1.0,
            False,
        ),  # what converges above a failure does not count
        ([RISES, CONVERGED, CONVERGED, CYCLES], 3.0, False),  # what is smaller was not too large
        ([SLOW, SLOW], None, True),
        ([CYCLES, CYCLES], None, False),
        ([SLOW, CYCLES], None, False),
        ([TIED, TIED, SLOW, CONVERGED, CYCLES], 4.0, False),  # too small to move the cost
        ([SLOW, CONVERGED, TIED, CONVERGED], 2.0, False),  # at exactly 2/L
        ([TIED, CYCLES], None, False),
        ([TIED], None, False),
    ],
)
def test_the_largest_convergent_step_is_contiguous_from_below(judgements, largest, censored):
    sizes = [float(n) for n in range(1, len(judgements) + 1)]
    found = largest_convergent(steps(sizes, judgements))
    assert found == (largest, censored)
    assert largest_convergent(steps(sizes[::-1], judgements[::-1])) == found


def test_the_largest_falling_step_ends_where_a_cost_rises():
    assert largest_falling(steps([1, 2, 3], [SLOW, CONVERGED, HOVERS])) == (2, False)
    assert largest_falling(steps([1, 2], [SLOW, SLOW])) == (2, True)
    assert largest_falling(steps([1, 2, 3], [TIED, SLOW, CYCLES])) == (2, False)


def test_a_target_is_reached_only_where_it_is_held():
    costs = np.array([1.0, 0.1, 0.5, 0.1, 0.05])
    assert convergence.arrival_iteration(costs, 0.2) == 3
    assert convergence.arrival_iteration(costs, 1.0) == 0
    assert np.isnan(convergence.arrival_iteration(costs, 0.01))
    assert np.isnan(convergence.arrival_iteration(np.r_[costs, np.nan], 0.2))  # it diverged later


def test_targets_are_shares_of_the_excess():
    assert convergence.target_costs(2.0, 12.0)["1e-1"] == pytest.approx(3.0)
    assert convergence.target_costs(0.0, 12.0)["1e-3"] == pytest.approx(0.012)


def test_an_unreached_start_is_infinite_in_a_median():
    assert convergence.spread(np.array([3.0, 5.0, np.nan]))[0] == 5.0
    assert np.isnan(convergence.spread(np.array([3.0, np.nan, np.nan]))[0])


@pytest.mark.parametrize("wrong", [{"critical": 1}, {"width": 0}, {"width": 2}])
def test_a_search_that_cannot_be_made_is_refused(wrong):
    with pytest.raises(UserError, match=r"search\."):
        Search(**wrong)


def test_quartiles_are_values_that_there_are_the_upper_of_two():
    assert convergence.spread(np.array([4.0, 2.0, 3.0, 1.0])) == (3.0, 2.0, 4.0)
    middle, low, high = convergence.spread(np.array([1.0, np.nan, 3.0, 2.0]))
    assert (middle, low) == (3.0, 2.0)
    assert np.isnan(high)


@pytest.mark.parametrize("limit", [5000.0, 2e-4])
def test_no_step_size_is_tried_twice(limit):
    tried = []

    def fails(sizes):
        assert len(sizes) == 8  # together they cost little more than one
        tried.extend(sizes)
        return [size > limit for size in sizes]

    found = critical_step(fails, 1.0, 0.1)
    assert found.lower <= limit < found.upper <= 1.1 * found.lower
    assert len(set(tried)) == len(tried)
    doubled = [2.0 ** (n if limit > 1 else -n) for n in range(13)]  # from 1 past the limit
    assert set(doubled) <= set(tried)


def test_defaults_in_python_are_those_of_the_config():
    from omegaconf import OmegaConf

    config = OmegaConf.load(CONF / "config.yaml")
    assert Rules(**config["rules"]) == Rules()
    assert Search(**config["search"]) == Search()
    own = {"step_sizes", "start", "draws"}  # a grid by decades; zeros, where the cost allows it
    shared = {field.name for field in fields(Settings)} - own
    values = {
        name: config[name] if name in config else config["normalizer"][name] for name in shared
    }
    assert Settings((1.0,), **values) == Settings((1.0,))


@pytest.mark.parametrize(("stops", "left"), [((-1, -1), 4), ((-1, 2), 2), ((0, 3), 0)])
def test_a_history_ends_where_the_first_start_stopped_being_finite(stops, left):
    costs = np.array([[4.0, 3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0]])
    for cost, stop in zip(costs, stops):
        cost[stop if stop >= 0 else 4 :] = np.nan
    bench = JudgingContext(Rules(), 0.0, 4.0, None, 1e-16, 0.0, 0.0)
    (step,) = judge_steps({names.TRAIN_COST.key: costs}, np.array(stops), [0.1], bench)
    assert len(step.histories[names.TRAIN_COST.key]) == left
    assert step.quartiles[names.TRAIN_COST.key].shape == (2, left)
    assert (step.verdict == names.DIVERGED) == (left < 4)


def test_one_iteration_is_judged_and_none_is_not():
    assert convergence.judge(np.array([1.0]), False, 0.0).reason == "no step was made"
    assert convergence.judge(np.array([1.0, 0.5]), False, 0.0).falls


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize(
    "history",
    [
        np.r_[1.0, np.linspace(0.12, 0.1, 100)],
        np.r_[1.0, np.linspace(0.5, 0.1, 100)],
        np.r_[1.0, np.full(100, 0.8)],
        np.r_[1.0, np.tile([0.2, 0.6], 50)],
        1.1 ** np.arange(101),
        np.linspace(1, 0.1, 101) + 0.1 * (np.arange(101) == 30),
        np.linspace(1, 0.1, 101) * np.where(np.arange(101) % 2, 1.5, 1.0),
    ],
)
def test_the_unit_of_a_cost_and_a_constant_in_it_change_no_verdict(history, scale):
    assert judge(history + 100, minimum=100.0) == judge(history)
    assert judge(history * scale) == judge(history)


FALLING = np.linspace(1, 0.1, 30)


@pytest.mark.parametrize(
    ("share", "at", "tied"),
    [(1.0, -1, True), (1 + 1e-8, -1, True), (1.01, -1, False), (0.5, -1, False), (1.0, 5, False)],
)
def test_at_exactly_the_threshold_a_run_that_stays_finite_is_a_tie(share, at, tied):
    bench = JudgingContext(Rules(), 0.0, 1.0, 20.0, 1e-16, 0.0, 0.0)
    found = bench.judge(FALLING, 20.0 * share, at)
    assert found.tied == tied
    assert found.reason.startswith("tie: at exactly 2/L") == tied
    assert (found.verdict == names.DIVERGED) == (at >= 0)
    assert found.reason.endswith("at step 5") == (at == 5)
    assert not replace(bench, tie_step_size=None).judge(FALLING, 20.0, -1).tied


def test_starts_stand_together_and_the_first_size_at_the_lowest_cost_is_the_best():
    bench = JudgingContext(Rules(), 0.0, 1.0, None, 1e-16, 0.0, 0.0)
    scaled = np.array([1.0, 3.0, 2.0, 9.0, 8.0, 7.0, 6.0, 5.0])[:, None]  # of four starts each
    made = judge_steps({names.TRAIN_COST.key: scaled * FALLING}, np.full(8, -1), [0.1, 0.2], bench)
    for step, middle, ends in zip(made, (2.5, 6.5), ((1.75, 4.5), (5.75, 7.25))):
        np.testing.assert_allclose(step.histories[names.TRAIN_COST.key], middle * FALLING)
        np.testing.assert_allclose(
            step.quartiles[names.TRAIN_COST.key], np.outer(ends, FALLING), rtol=1e-12
        )
        assert len(step.verdicts) == 4
    assert [step.metrics[names.TO_LOWEST.key] for step in made] == pytest.approx(
        [29, np.nan], nan_ok=True
    )
    assert find_shown_step(made, None) == (0, False)
    assert find_shown_step(made, 0.2) == (1, True)
    assert find_shown_step(made, 0.7) == (0, False)
    assert find_shown_step(made, 0.2000001) == (1, True)  # as it is recorded, of six digits
    lost = judge_steps({names.TRAIN_COST.key: scaled * FALLING}, np.full(8, 4), [0.1, 0.2], bench)
    assert find_shown_step(lost, 0.2) == (None, False)
    (alone,) = judge_steps({names.TRAIN_COST.key: FALLING[None]}, np.array([-1]), [0.1], bench)
    assert not alone.quartiles


def test_a_target_of_counts_is_a_share_of_the_points():
    bench = JudgingContext(Rules(), 3.0, 4.0, None, 1e-16, 0.0, 0.0, compared_points=50)
    assert bench.targets["1e-1"] == 5
    assert replace(bench, compared_points=0).targets["1e-1"] == pytest.approx(3.1)


def test_a_running_median_leaves_a_monotone_history_and_both_ends():
    falling = np.exp(-np.arange(30.0))
    np.testing.assert_array_equal(convergence.running_median(falling), falling)
    for short in ([1.0], [2.0, 1.0], [1.0, 3.0, 2.0]):
        smooth = convergence.running_median(np.array(short))
        assert (smooth[0], smooth[-1]) == (short[0], short[-1])
    spike = np.array([5.0, 4, 3, 9, 2, 1, 0.5, 7])
    np.testing.assert_array_equal(convergence.running_median(spike), [5, 4, 4, 3, 2, 2, 1, 7])
    for count, smooth in ((3, [1, 2, 2]), (4, [1, 2, 3, 3]), (5, [1, 2, 3, 3, 4])):
        bump = np.array([1.0, 9, 2, 3, 4][:count])
        np.testing.assert_array_equal(convergence.running_median(bump), smooth)
    gap = np.array([5.0, 4, 3, np.nan, np.nan])
    assert np.isnan(convergence.running_median(gap)[2:]).all()


def test_few_records_of_a_batch_are_not_called_converged_and_it_is_said():
    history = np.r_[1.0, np.full(9, 0.1)]
    few = convergence.judge(history, False, 0.0, Rules(), noisy=True)
    assert few.verdict == names.NOT_CONVERGED
    assert few.reason.startswith("9 records are too few to say whether the cost is at rest")
    many = convergence.judge(np.r_[1.0, np.full(11, 0.1)], False, 0.0, Rules(), noisy=True)
    assert many.verdict == names.CONVERGED
    assert "too few" not in convergence.judge(history, False, 0.0, Rules()).reason


def test_noise_is_smoothed_of_a_batch_alone():
    """One record above a target, and a rise at the end, decide in a full batch."""
    noisy = np.r_[1.0, 0.5, np.full(30, 0.01)]
    noisy[20] = 0.3
    runs = {names.TRAIN_COST.key: noisy[None]}
    full, batch = (
        judge_steps(
            runs,
            np.array([-1]),
            [0.1],
            JudgingContext(
                Rules(), 0.0, 1.0, None, 1e-16, 0.0, 1.0, batch=size, records_per_pass=k
            ),
        )[0]
        for size, k in ((0, 1), (1, 2))
    )
    assert full.metrics["final/iterations_to_1e-1"] == 21
    assert batch.metrics["final/iterations_to_1e-1"] == 1  # the second record, of half a pass
    assert batch.metrics["final/iterations_to_lowest"] == 1
    np.testing.assert_array_equal(batch.histories[names.TRAIN_COST.key], noisy)


def test_iterations_that_rounding_decides_are_not_told():
    """Where the shadow takes others, to the one target that the run reaches."""
    rising = np.r_[1.0, np.full(50, 2.0), 0.05][None]
    bench = JudgingContext(Rules(), 0.0, 1.0, None, 1e-16, 0.0, 1.0)

    def told(ends, iterations):
        reached = {name: np.full((1, 1), np.inf) for name in names.TARGETS}
        reached["1e-1"] = np.full((1, 1), iterations)
        (step,) = judge_steps(
            {names.TRAIN_COST.key: rising},
            np.array([-1]),
            [0.1],
            bench,
            Shadows(np.full((1, 1), ends), reached),
        )
        return step.verdict, step.metrics["final/iterations_to_1e-1"]

    assert told(0.9, 51.0) == (names.BY_ROUNDING, 51)
    verdict, iterations = told(0.9, 7.0)
    assert verdict == names.BY_ROUNDING
    assert np.isnan(iterations)
    assert told(0.05, 7.0)[1] == 51  # both end at the same cost
