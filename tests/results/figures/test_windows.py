"""Step-size windows: the bars, what a step size serves, and the figure."""

import numpy as np
import pytest

from normbench.results.figures import drawing, windows

RNG = np.random.default_rng(5)


def parts(curvature, share, times=None):
    times = np.ones(len(curvature), dtype=int) if times is None else np.array(times)
    return {
        windows.WINDOW_CURVATURE: np.array(curvature, dtype=float),
        windows.WINDOW_SHARE: np.array(share, dtype=float),
        windows.WINDOW_TIMES: times,
    }


def test_a_window_holds_the_steps_under_which_a_direction_shrinks_to_1_over_e():
    found = windows.training_windows(parts([100.0, 1.0, 0.01], [1.0, 2.0, 1.0]), 50)
    for step in np.geomspace(1e-5, 1e3, 200):
        shrinks = np.abs(1 - step * np.array([100.0, 1.0, 0.01])) ** 50 <= np.exp(-1)
        count, share = found.count_trained(step)
        assert count == shrinks.sum()
        assert share == pytest.approx(np.array([0.25, 0.5, 0.25])[shrinks].sum())
    # For many iterations, from about 1 / (K h) to about 2 / h.
    many = windows.training_windows(parts([4.0], [1.0]), 10_000)
    assert many.low[0] == pytest.approx(1 / (10_000 * 4.0), rel=1e-3)
    assert many.high[0] == pytest.approx(2 / 4.0, rel=1e-3)


@pytest.mark.parametrize(("condition", "one"), [(50.0, True), (99.0, True), (101.0, False)])
def test_one_step_serves_all_up_to_a_condition_number_of_about_twice_the_iterations(condition, one):
    iterations = 50
    bound = 1 / np.tanh(1 / (2 * iterations))
    assert bound == pytest.approx(2 * iterations, rel=1e-3)
    found = windows.training_windows(parts([condition, 1.0], [1.0, 1.0]), iterations)
    best = max(
        found.count_trained(step)[0] for step in np.geomspace(found.low[0], found.high[1], 20_000)
    )
    assert (best == 2) == one == (condition <= bound)


def test_directions_of_one_curvature_count_each():
    found = windows.training_windows(parts([2.0, 1.0], [1.0, 3.0], [9, 1]), 10)
    assert found.count_trained(0.5) == (10, 1.0)


def test_many_directions_become_groups_that_lose_nothing():
    curvature = np.sort(10 ** RNG.uniform(-6, 3, 500))[::-1]
    share = RNG.random(500) ** 8
    found = windows.training_windows(parts(curvature, share), 100)
    shown = windows.group_bars(found)
    assert len(shown.low) <= windows.MAX_BARS
    assert shown.direction_counts.sum() == 500
    assert shown.share.sum() == pytest.approx(1)
    assert (shown.low.min(), shown.high.max()) == (found.low.min(), found.high.max())
    assert shown.share.max() < 0.2  # a direction with much of the excess is not lost in a crowd
    few = windows.training_windows(parts(curvature[:7], share[:7]), 100)
    assert windows.group_bars(few) is few


def test_networks_have_no_windows_and_the_reason_is_said(three, monkeypatch):
    assert windows.why_not(three.sweep, three.name) == []
    monkeypatch.setattr(windows, "has_networks", lambda schemes: True)
    assert windows.why_not(three.sweep, three.name) == [windows.OF_LINEAR]
    assert windows.OF_LINEAR in drawing.missing_figure_message(three.sweep, "windows")
