"""Numbers of studies whose value is known otherwise: what `make whole` alone sees on real data."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.studies.gallery import batches, notes, research


def test_the_largest_of_a_bound_begins_where_the_cost_stays_below_one_over_the_step():
    # With a step of 2 the cost stays below 0.5 from iteration 3 on.
    cost = np.array([1.0, 0.4, 0.5, 0.25, 0.25, 0.1, 0.3])
    assert research._largest_bound(2.0, cost, 3.0) == pytest.approx(9 * 2 * 3 * 0.3)
    assert research._largest_bound(2.0, cost[:4], 3.0) == 0
    assert research._largest_bound(2.0, np.array([0.4, 0.1, 0.1]), 0.5) == pytest.approx(0.1)


def test_a_margin_is_half_the_gap_between_two_classes():
    """Points at -1 and 3: weights (-1, 1) over 2 and a margin of 1 over their length."""
    assert research.margin(np.array([[-1.0], [3.0]]), np.array([0, 1])) == pytest.approx(2**0.5)
    far = np.array([[-1.0], [3.0], [-9.0], [7.0]])
    assert research.margin(far, np.array([2, 1, 2, 1])) == pytest.approx(2**0.5)
    corners = np.array([[2.0, 0.0], [-2.0, 0.0], [2.0, 9.0], [-2.0, -9.0]])
    assert research.margin(corners, np.array([1, -1, 1, -1])) == pytest.approx(2)


@pytest.mark.parametrize("knee", [1.0, 10.0, 3e3])
def test_a_knee_is_that_of_the_steps(knee):
    steps = {batch: 2 * batch / (knee + batch - 1) for batch in (1, 10, 100, 10**8)}
    assert batches.fit_knee(steps) == pytest.approx(knee, rel=1e-3)


@pytest.mark.parametrize(
    ("excess", "stable"),
    [
        ([100, 1, 9], True),
        ([100, 1, 10], False),
        ([1, 0.5, 1], False),
        ([4, np.nan, 2], True),
        ([4, 2, np.nan], False),
        ([100, 1e-15, 5e-10], True),
        ([100, 1e-15, 5e-9], False),
    ],
)
def test_a_stable_run_ends_below_its_start_and_near_its_lowest(excess, stable):
    both = np.array([excess, [1, 0.5, 0.25]], dtype=float)
    assert batches.stable_runs(both).tolist() == [stable, True]


def test_a_line_learned_online_scales_each_input_by_those_up_to_it():
    a, b = 0.3, 0.05
    after_one = 2 * b  # the intercept: the first input is scaled to 0
    slope = 2 * (after_one - 3)
    weight, intercept = -a * slope, after_one - b * slope
    last = 2 * (weight / 4 + intercept - 2)
    expected = (weight - a * last / 4) / 4
    inputs, targets = np.array([0.0, 4.0, 1.0]), np.array([1.0, 3.0, 2.0])
    assert batches.online_line(inputs + 10, targets, a, b) == pytest.approx(expected)


def rotation(degrees):
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@pytest.mark.parametrize(
    ("factor", "angle"), [(np.eye(2), 0), (rotation(-70), 70), (np.diag([1.0, -1.0]), 180)]
)
def test_an_angle_is_the_largest_that_a_vector_turns_by(factor, angle):
    assert notes._angle(factor) == pytest.approx(angle, abs=1e-6)


def test_a_gain_at_the_start_is_kept_in_part_at_the_minimum():
    """The study's own numbers agree to 5 percent with other logarithms, too."""
    columns = ["normalizer", names.CONDITION_START.column, names.CONDITION_MINIMUM.column]
    rows = pd.DataFrame([("a", 1e2, 1e3), ("identity", 1e6, 1e4), ("b", 1e3, 1e1)], columns=columns)
    sweep = SimpleNamespace(of_role=lambda role: rows)
    assert research.where_the_gain_is(sweep) == pytest.approx({"kept_a": 0.25, "kept_b": 1})
