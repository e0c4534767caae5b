"""Each rule at its bound: what lies just on either side of it."""

import numpy as np
import pytest

from normbench import names
from normbench.verdicts import convergence
from normbench.verdicts.best_step import best_step
from normbench.verdicts.convergence import Rules
from normbench.verdicts.judging import Bench, steps
from normbench.verdicts.refinement import (
    Arrivals,
    FirstArrival,
    Neighbours,
    bound_iterations,
    hopeless,
)

EPSILON = float(np.finfo(np.float64).eps)


@pytest.mark.parametrize(("goal", "is_hopeless"), [(0.12, True), (0.13, False)])
def test_a_run_is_hopeless_where_ten_times_its_iterations_miss_the_goal(goal, is_hopeless):
    """0.81 of the excess is left after two iterations that take a tenth each: 0.1216 after 20."""
    for minimum in (0.0, 5.0):
        history = minimum + np.array([1.0, 0.9, 0.81])
        assert hopeless(history, minimum, minimum + goal) == is_hopeless


@pytest.mark.parametrize("history", [[1.0, 0.9, 0.9], [1.0, 0.8, 0.9], [1.0, 0.1, 0.0]])
def test_a_run_that_does_not_fall_is_not_judged_hopeless(history):
    assert not hopeless(np.array(history), 0.0, 1e-9)


def test_a_fall_in_the_first_iteration_is_a_fall():
    history = np.array([1.0, 0.5, 0.5])
    assert convergence.falls(history, 1e-12)
    assert convergence.sinks(history, Rules(), 1e-12)
    assert not convergence.falls(history[1:], 1e-12)
    assert not convergence.sinks(history[1:], Rules(), 1e-12)


@pytest.mark.parametrize(("share", "rises"), [(60, False), (70, True)])
def test_rounding_is_64_machine_epsilons_of_the_start(share, rises):
    history = 4.0 * np.array([1.0, 0.5, 0.5 + share * EPSILON])
    assert convergence.may_be_chaotic(history, True, EPSILON) == rises
    excess = convergence.starting_excess(1.0, 1.0 - share * EPSILON, EPSILON)
    assert (excess < 1.0) == rises  # else the cost itself


def test_runs_that_are_short_diverged_or_far_above_the_start_are_not_chaotic():
    rising = np.array([1.0, 2.0, 3.0])
    assert convergence.may_be_chaotic(rising, True, EPSILON)
    assert not convergence.may_be_chaotic(rising[:1], True, EPSILON)
    assert not convergence.may_be_chaotic(np.array([1.0, 2.0, np.inf]), True, EPSILON)
    assert not convergence.may_be_chaotic(rising, True, EPSILON, diverged_factor=1.9)
    assert convergence.may_be_chaotic(rising, True, EPSILON, diverged_factor=2.1)
    for scale in (0.1, 10.0):  # the factor is of the start's cost
        assert not convergence.may_be_chaotic(scale * rising, True, EPSILON, diverged_factor=1.9)
        assert convergence.may_be_chaotic(scale * rising, True, EPSILON, diverged_factor=2.1)
    falling = rising[::-1]
    assert not convergence.may_be_chaotic(falling, True, EPSILON)
    assert convergence.may_be_chaotic(falling, False, EPSILON)
    zero = np.array([0.0, 1.0, 2.0])
    assert convergence.may_be_chaotic(zero, True, EPSILON, diverged_factor=0.1)


def test_shadows_in_single_precision_may_end_a_hundred_times_further_apart():
    assert convergence.sensitivity(EPSILON) == 1e-7
    assert convergence.sensitivity(float(np.finfo(np.float32).eps)) == 1e-5
    assert convergence.shadow_tolerance(3.0, 1.0, EPSILON) == pytest.approx(2e-7)


def test_iterations_of_several_starts_are_their_upper_median():
    arrivals = Arrivals(2, 2, goal=0.1)
    alive = np.arange(4)
    arrivals.note(0, alive, np.array([1.0, 0.1, 1.0, 1.0]))
    arrivals.note(1, alive, np.array([1.0, 0.2, 0.05, 1.0]))  # the second leaves the goal again
    arrivals.note(2, alive, np.array([0.1, 0.1, 0.05, 1.0]))
    assert arrivals.arrival.tolist() == [2.0, 2.0, 1.0, np.inf]
    assert arrivals.counts().tolist() == [2.0, np.inf]
    arrivals.note(3, alive[:2], np.array([0.1, 0.1]))  # the others have ended
    assert arrivals.counts().tolist() == [2.0, np.inf]
    assert arrivals.arrival.tolist() == [2.0, 2.0, np.inf, np.inf]


@pytest.mark.parametrize(
    ("known", "shadow", "ends"), [(9, 0.05, True), (9, 0.3, False), (1, 0.3, True)]
)
def test_all_runs_end_when_one_arrives_beside_its_shadow_or_a_known_one_has(known, shadow, ends):
    first = FirstArrival(known, 0.1, step_sizes=1, starts=1, goal=0.1)
    assert first(0, np.arange(2), np.array([1.0, 1.0])).tolist() == [False, False]
    assert first(1, np.arange(2), np.array([0.06, shadow])).tolist() == [ends, ends]


def test_smaller_step_sizes_end_where_two_of_three_neighbours_arrived():
    neighbours = Neighbours({4.0: 1.0, 5.0: 2.0}, [3, 4, 5, 6], np.array([3, 6]), 1, 0.1)
    alive, above = np.arange(2), np.full(2, 1.0)
    assert neighbours(1, alive, above).tolist() == [False, False]
    assert neighbours.decided is None
    assert neighbours(2, alive, above).tolist() == [True, False]  # larger ones may miss the target
    assert neighbours.decided == 2
    assert neighbours(3, alive[1:], above[1:]).tolist() == [False]


def test_a_step_size_between_those_that_decide_goes_on():
    known = dict.fromkeys((4.0, 5.0, 7.0, 8.0), 1.0)
    neighbours = Neighbours(known, [3, 4, 5, 6, 7, 8], np.array([3, 6]), 1, 0.1)
    assert neighbours(1, np.arange(2), np.full(2, 1.0)).tolist() == [True, False]


@pytest.mark.parametrize("number", [-4.0, 0.0, 2.5, 16.0])
def test_iterations_have_the_step_size_of_their_number_on_the_lattice_or_between(number):
    fewest = bound_iterations(8.0, number, {number + 4: np.inf, number + 8: np.inf, 0.5: 3.0})
    assert fewest.step_size == pytest.approx(10 ** (number / 16))
    assert fewest.iterations == 8.0
    assert fewest.least == pytest.approx(8.0 * 10 ** (-4 / 16))
    assert np.isnan(bound_iterations(8.0, number, {number - 1: np.inf}).least)


def test_of_three_that_decide_the_one_in_the_middle_goes_on():
    neighbours = Neighbours({4.0: 1.0, 6.0: 1.0}, [4, 5, 6], np.array([5]), 1, 0.1)
    assert neighbours(1, np.arange(1), np.full(1, 1.0)).tolist() == [False]
    assert neighbours.decided == 1


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
    bench = Bench(Rules(), 0.0, 1.0, None, EPSILON, 0.0, 0.0)
    costs = np.array([[1.0, end, end, 0.1], [1.0, 0.5, 0.1, 0.1]])
    judged = steps({names.TRAIN_COST.key: costs}, np.full(2, -1), [0.1, 1.0], bench)
    assert [step.metrics[names.TO_LOWEST.key] for step in judged] == iterations
