"""Why one scheme is faster: said only where the curvature explains the slower one's run."""

import numpy as np
import pytest

from normbench import names
from normbench.results.answer.cause import cause
from tests.results.made import recorded, runs, tagged

SLOW, FAST, LATER = (np.inf, 0.5), (3, 0.001), (9, 0.001)
# In 50 iterations step 1 leaves nothing of a half of the excess, and nine tenths of the other.
SPREAD = (1.0, 1e-3)
NARROW = "Why: slow leaves the cost a narrow valley (condition number 1e5); fast makes it "


def compared(ends=(SLOW, FAST), curvature=SPREAD, iterations="50", limits=np.nan, **numbers):
    """Return schemes by their ends and condition numbers.

    Args:
        ends: Of each scheme, the iterations and the final cost at step size 1, or at several.
        curvature: That of the directions of the cost under each scheme, of equal shares.
        iterations: The budget.
        limits: By scheme, the bounds of condition numbers that rounding hides.
        **numbers: The condition numbers by scheme, and other columns.
    """
    columns = {key: numbers.pop(key) for key in [*numbers] if key.isupper() or key == "verdict"}
    grids = [end if isinstance(end, dict) else {1.0: end} for end in ends]
    jobs = [("x", name, grid) for name, grid in zip(numbers, grids)]
    columns |= {"CONDITION": numbers, "CONDITION_LIMIT": limits}
    values = np.array(curvature)
    arrays = {"layer_curvature": values, "layer_share": values**0}
    return recorded(
        tagged(runs(*jobs, iterations=iterations), role="scheme", **columns),
        {name: arrays for name in numbers if curvature},
    )


def cause_of(*given, **more):
    return cause(compared(*given, **more), "x")


@pytest.mark.parametrize(
    ("slow", "fast", "text"),
    [
        (1e5, 1.14, f"{NARROW}round (1.1), so one step size suits every direction."),
        (1e5, 20.0, f"{NARROW}rounder (20)."),
        (999.0, 10.0, "slow leaves the cost stretched (condition number 1000); fast makes it r"),
        (2.44e12, 1.0, "(condition number 2.4e12)"),
    ],
)
def test_a_narrow_valley_and_a_round_bowl_are_the_cause(slow, fast, text):
    assert text in cause_of(slow=slow, fast=fast)


def test_the_raw_features_and_bounds_are_named():
    assert cause_of(slow=140.0, fast=1.0, AFFINE="true").startswith(
        "Why: raw features stretch the cost (condition number 140); raw features leave it round"
    )
    scaled = cause_of(slow=140.0, fast=1.0, AFFINE="true", SCALES={"slow": "true", "fast": "false"})
    assert scaled.startswith("Why: slow leaves the cost stretched")
    limited = cause_of(slow=np.nan, fast=1.0, limits={"slow": 1e30})
    assert "(condition number more than 1e30)" in limited


@pytest.mark.parametrize(
    "changes",
    [
        {"slow": 11.0},  # less than ten times rounder
        {"slow": np.nan},
        {"curvature": ()},  # not recorded
        {"curvature": (1.0, 1.0)},  # which predicts that nothing is left of the slow one
        {"curvature": (1e-9, 1e-9)},  # or all
        {"PLAIN": "false"},  # 2/L and the directions speak of plain descent
        {"COMPARED": names.MISCLASSIFICATIONS, "FINAL_MISCLASSIFICATIONS": 0.5},
        {"MINIMUM_REACHED": "false"},
        {"ends": (FAST, FAST)},
        {"ends": (SLOW, (0, 0.001))},  # it starts at the target
        {"ends": ((6, 0.001), FAST), "curvature": (0.05, 0.05)},  # predicted is the 45th
        {"ends": ((90, 0.001), FAST), "curvature": (0.05, 0.05)},  # half of 90 are enough
        {"verdict": {"slow": "failed", "fast": "not converged"}},
        {"verdict": {"slow": "diverged", "fast": "not converged"}},
    ],
)
def test_no_cause_is_said_where_the_curvature_does_not_explain_the_slower_run(changes):
    assert cause_of(**{"slow": 1e5, "fast": 1.14, **changes}) == ""


def test_a_slow_scheme_that_arrives_is_explained_by_when():
    """Of a curvature of 0.05 at step 1, 0.95 ** 89 of the excess is left, 1.04 percent."""
    late = {"curvature": (0.05, 0.05), "slow": 1e5, "fast": 1.14}
    for count in (45, 89):
        assert cause_of(((count, 0.001), FAST), **late).startswith("Why: slow")
    assert cause_of(((40, 0.001), (40, 0.001)), **late) == ""  # none is slower


@pytest.mark.parametrize(("iterations", "suits"), [("5", True), ("4", False)])
def test_a_step_suits_every_direction_that_shrinks_to_1_over_e(iterations, suits):
    """Of condition 10 an iteration leaves 9/11, of which the fifth power is 0.367 < 1/e."""
    text = cause_of(slow=1e5, fast=10.0, iterations=iterations)
    assert "round (10)" in text
    assert text.endswith("suits every direction.") == suits


@pytest.mark.parametrize("rounding", [-1e-9, 1e-9])
def test_schemes_that_rounding_alone_orders_are_named_in_the_order_of_the_sweep(rounding):
    conditions = {"slow": 1e6, "first": 1.0, "second": 1 + rounding, "fast": 20.0}
    conditions |= {"tie": 20.0 * (1 + rounding), "near": 10.1}
    text = cause_of((SLOW, LATER, LATER, FAST, FAST, LATER), **conditions)
    assert text == (
        "Why: slow leaves the cost a narrow valley (condition number 1e6); fast makes it rounder "
        "(20). That is not the whole cause: first and second make it rounder still (1) and are "
        "slower."
    )
    alike = cause_of((SLOW, (np.inf, 0.5 + rounding), FAST), slow=1e5, alike=1e6, fast=1.1)
    assert alike.startswith("Why: slow leaves")


def test_of_schemes_that_take_as_long_the_rounder_is_the_fastest():
    text = cause_of((SLOW, FAST, FAST), slow=1e5, fast=40.0, other=1.0)
    assert "other makes it round (1)" in text
    assert "whole cause" not in text


def test_the_slowest_scheme_that_is_explained_is_the_one_compared():
    """Of two that do not arrive the one that leaves more is the slower."""
    numbers = {"less": 1e6, "more": 1e5, "fast": 1.14}
    less, fast = (np.inf, 0.4), FAST
    assert cause_of((less, (np.inf, 0.6), fast), **numbers).startswith("Why: more leaves")
    # Of the slower one is not explained what it leaves: 0.5 are predicted.
    assert cause_of((less, (np.inf, 0.9), fast), **numbers).startswith("Why: less leaves")
    numbers["more"] = 11.0
    assert cause_of((less, (np.inf, 0.6), fast), **numbers).startswith("Why: less leaves")


@pytest.mark.parametrize(("end", "said"), [(0.05, True), (0.001, False)])
def test_a_scheme_that_may_miss_the_target_by_rounding_alone_is_no_slow_one(end, said):
    sweep = compared(({1.0: SLOW, 2.0: (np.inf, end)}, FAST), slow=1e5, fast=1.14)
    frame = sweep.runs
    frame.loc[(frame["role"] == "step") & (frame[names.STEP_TAG.column] == "2"), "verdict"] = (
        names.BY_ROUNDING
    )
    is_slow = (frame["role"] == "scheme") & (frame["normalizer"] == "slow")
    frame.loc[is_slow, [names.STEP_TAG.column, names.FINAL_COST.column]] = ["1", 0.5]
    assert bool(cause(sweep, "x")) == said


def test_the_cause_of_several_problems_is_not_said():
    jobs = [("x", s, {1.0: FAST}, {"start_scale": scale}) for scale in "12" for s in "ab"]
    assert cause(tagged(runs(*jobs), CONDITION={"a": 1.0, "b": 1e5}), "x") == ""
