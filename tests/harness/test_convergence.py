"""The verdict on a history."""

import numpy as np

from harness import convergence


def verdict(costs, diverged=False, minimum=0.0):
    return convergence.verdict(np.array(costs, dtype=float), diverged, minimum)


def test_a_curve_that_has_come_to_rest_is_settled():
    assert verdict(0.5 ** np.arange(101)) == "settled"


def test_a_curve_that_still_falls_is_unsettled():
    assert verdict(1 - np.arange(101) / 200) == "unsettled"


def test_a_flat_tail_high_above_the_minimum_is_not_settled():
    assert verdict(np.r_[1.0, np.full(100, 0.8)]) == "unsettled"


def test_a_curve_that_rises_and_falls_for_ever_is_cycling():
    assert verdict(np.r_[1.0, np.tile([0.2, 0.6], 50)]) == "cycling"


def test_a_curve_that_rises_and_falls_while_it_sinks_is_unsettled():
    sinking = np.linspace(1, 0.1, 101) * np.where(np.arange(101) % 2, 1.5, 1.0)
    assert verdict(sinking) == "unsettled"


def test_a_run_that_stopped_being_finite_is_diverged():
    assert verdict([1.0, 0.5], diverged=True) == "diverged"


def test_a_history_of_its_start_alone_is_unsettled():
    assert verdict([1.0]) == "unsettled"


def test_the_best_is_the_lowest_of_the_settled():
    finals = np.array([0.1, 0.3, 0.2, np.inf])
    words = ["unsettled", "settled", "settled", "diverged"]
    assert convergence.best(finals, words) == 2
    assert convergence.best(finals, ["unsettled", "cycling", "unsettled", "diverged"]) == 0
    assert convergence.best(finals[3:], ["diverged"]) is None
