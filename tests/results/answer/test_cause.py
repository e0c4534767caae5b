"""Why one scheme is faster: said only where the curvature explains the slower one's run."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from normbench import names
from normbench.results.answer.cause import (
    RacedScheme,
    _cause_sentence,
    _is_explained,
    cause,
    explain_race,
)
from normbench.results.answer.race import races
from normbench.results.store.runs import Sweep
from tests.results.made import runs

SLOW, FAST = (np.inf, 0.5), (3, 0.001)
# In 50 iterations step 1 leaves nothing of a half of the excess, and nine tenths of the other.
SPREAD = (1.0, 1e-3)


@dataclass(frozen=True)
class Curved(Sweep):
    """A sweep whose schemes keep the directions of their cost, half of the excess along each."""

    curvature: Any = ()

    def arrays(self, runs, name):
        values = np.array(self.curvature)
        parts = {"window_curvature": values, "window_share": values**0, "window_times": values**0}
        return dict.fromkeys(runs["label"], parts) if len(values) else {}


def cause_of(slow=1e5, fast=1.14, curvature=SPREAD, ends=(SLOW, FAST), limit=None, **tags):
    """Return the cause of a scheme `slow` and one `fast` of such condition numbers."""
    jobs = [("x", name, {1.0: end}) for name, end in zip(("slow", "fast", "other"), ends)]
    frame = runs(*jobs, iterations="50").runs
    numbers = {"slow": slow, "fast": fast, "other": 1.0}
    frame[names.CONDITION.column] = frame["normalizer"].map(numbers)
    frame[names.CONDITION_LIMIT.column] = np.where(frame["normalizer"] == "slow", limit, None)
    frame[names.CONDITION_LIMIT.column] = frame[names.CONDITION_LIMIT.column].astype(float)
    for name, text in tags.items():
        frame[getattr(names, name).column] = text
    return cause(Curved("-", "s", frame, curvature=curvature), "x")


def test_where_a_scheme_starts_at_the_target_no_cause_of_its_speed_is_said():
    assert cause_of(ends=(SLOW, (0, 0.001))) == ""


def test_a_narrow_valley_and_a_round_bowl_are_the_cause():
    assert cause_of() == (
        "Why: slow leaves the cost a narrow valley (condition number 1e5); fast makes it round "
        "(1.1), so one step size suits every direction."
    )
    assert cause_of(AFFINE="true") == (
        "Why: raw features stretch the cost into a narrow valley (condition number 1e5); raw "
        "features leave it round (1.1), so one step size suits every direction."
    )
    assert cause_of(slow=140.0).startswith(
        "Why: slow leaves the cost stretched (condition number 140)"
    )
    assert cause_of(fast=20.0).endswith("; fast makes it rounder (20).")
    assert "(condition number more than 1e30)" in cause_of(slow=np.nan, limit=1e30)


@pytest.mark.parametrize(
    ("slow", "fast", "words"),
    [
        (1e3, 1.0, "a narrow valley (condition number 1000)"),
        (999.0, 1.0, "stretched (condition number 1e3)"),
        (9900.0, 1.0, "(condition number 9900)"),
        (12000.0, 1.0, "(condition number 1.2e4)"),
        (2.44e12, 1.0, "(condition number 2.4e12)"),
        (100.0, 10.0, "round (10), so one step size suits every direction"),
        (110.0, 10.1, "rounder (10)."),
        (1e5, 1.0, "(1), so one step size suits every direction"),
    ],
)
def test_the_shapes_of_costs_are_called_by_their_condition_numbers(slow, fast, words):
    text = cause_of(slow=slow, fast=fast)
    assert words.replace("1e3", "1000") in text


def test_a_scheme_that_is_less_than_ten_times_rounder_is_no_cause():
    assert cause_of(slow=100.0, fast=10.0)
    assert cause_of(slow=99.0, fast=10.0) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"fast": 2e4},  # no ten times rounder
        {"slow": np.nan},
        {"curvature": ()},  # not recorded
        {"curvature": (1.0, 1.0)},  # which predicts that nothing is left of the slow one
        {"curvature": (1e-9, 1e-9)},  # or all
        {"PLAIN": "false"},  # 2/L and the directions speak of plain descent
        {"COMPARED": names.MISCLASSIFICATIONS},
        {"ends": (FAST, FAST)},
    ],
)
def test_no_cause_is_said_where_the_curvature_does_not_explain_the_slower_run(changes):
    assert cause_of(**changes) == ""


@pytest.mark.parametrize(
    ("count", "said"),
    [(6, False), (40, True), (50, True)],  # one direction of h = 0.05 is at 1 percent after 45
)
def test_a_slow_scheme_that_arrives_is_explained_by_when(count, said):
    ends = ((count, 0.001), FAST)
    assert bool(cause_of(curvature=(0.05, 0.05), ends=ends)) == said


def test_a_rounder_cost_that_is_slower_is_admitted():
    ends = (SLOW, FAST, (9, 0.001))
    assert cause_of(fast=40.0, ends=ends).endswith(
        "That is not the whole cause: other makes it rounder still (1) and is slower."
    )
    assert "whole" not in cause_of(fast=1.5, ends=ends)


def test_of_several_rounder_costs_the_roundest_is_named():
    ends, numbers = (SLOW, FAST, (9, 0.001), (8, 0.001)), (1e5, 40.0, 3.0, 9.0)
    labels = ("slow", "fast", "third", "fourth")
    jobs = [("x", name, {1.0: end}) for name, end in zip(labels, ends)]
    frame = runs(*jobs, iterations="50").runs
    frame[names.CONDITION.column] = frame["normalizer"].map(dict(zip(labels, numbers)))
    frame[names.CONDITION_LIMIT.column] = np.nan
    text = cause(Curved("-", "s", frame, curvature=SPREAD), "x")
    assert text.endswith("third makes it rounder still (3) and is slower.")


@pytest.mark.parametrize(("iterations", "suits"), [("5", True), ("4", False)])
def test_a_step_suits_every_direction_that_shrinks_to_1_over_e(iterations, suits):
    """Of condition 10 an iteration leaves 9/11, of which the fifth power is 0.367 < 1/e."""
    jobs = [("x", name, {1.0: end}) for name, end in (("slow", SLOW), ("fast", FAST))]
    frame = runs(*jobs, iterations=iterations).runs
    frame[names.CONDITION.column] = frame["normalizer"].map({"slow": 1e5, "fast": 10.0})
    frame[names.CONDITION_LIMIT.column] = np.nan
    text = cause(Curved("-", "s", frame, curvature=(1.0, 1e-3)), "x")
    assert text.endswith("suits every direction.") == suits
    assert "round (10)" in text


@pytest.mark.parametrize(("count", "said"), [(89, True), (90, False)])
def test_after_half_of_its_iterations_a_slow_scheme_must_still_be_above_the_target(count, said):
    """Of a curvature of 0.05 at step 1, 0.95 ** 89 of the excess is left, 1.04 percent."""
    assert (0.95**89 > 0.01) & (0.95**90 < 0.01)
    assert bool(cause_of(curvature=(0.05, 0.05), ends=((count, 0.001), FAST))) == said


@pytest.mark.parametrize(
    ("left", "said"), [(0.76, True), (0.74, False), (0.24, False), (0.99, True), (1.2, True)]
)
def test_what_a_slow_scheme_leaves_is_predicted_to_a_quarter_of_the_excess(left, said):
    """Next to nothing of the excess is predicted to be removed: a share of 1 is the most."""
    ends = ((np.inf, left / 10), FAST)  # the excess at the start is 1, that of a tenth 0.1
    jobs = [("x", name, {1.0: end}) for name, end in zip(("slow", "fast"), ends)]
    frame = runs(*jobs, iterations="50").runs
    frame[names.CONDITION.column] = frame["normalizer"].map({"slow": 1e5, "fast": 1.14})
    frame[names.CONDITION_LIMIT.column] = np.nan
    frame[names.target("1e-1").column] = 0.01
    assert bool(cause(Curved("-", "s", frame, curvature=(1e-9, 1e-9)), "x")) == said


@pytest.mark.parametrize("rounding", [-1e-9, 1e-9])
def test_schemes_that_rounding_alone_orders_are_named_in_the_order_of_the_sweep(rounding):
    ends = {"slow": SLOW, "first": (9, 0.01), "second": (9, 0.01), "fast": FAST, "tie": FAST}
    frame = runs(*(("x", name, {1.0: end}) for name, end in ends.items()), iterations="50").runs
    conditions = {"slow": 1e6, "first": 1.0, "second": 1 + rounding, "fast": 20.0}
    conditions["tie"] = 20.0 * (1 + rounding)
    frame[names.CONDITION.column] = frame["normalizer"].map(conditions)
    assert cause(Curved("-", "s", frame, curvature=SPREAD), "x") == (
        "Why: slow leaves the cost a narrow valley (condition number 1e6); fast makes it rounder "
        "(20). That is not the whole cause: first and second make it rounder still (1) and are "
        "slower."
    )


@pytest.mark.parametrize("rounding", [-1e-9, 1e-9])
def test_of_two_slowest_schemes_that_rounding_alone_orders_the_later_is_not_preferred(rounding):
    ends = {"slow": SLOW, "alike": (np.inf, 0.5 + rounding), "fast": FAST}
    frame = runs(*(("x", name, {1.0: end}) for name, end in ends.items()), iterations="50").runs
    conditions = {"slow": 1e5, "alike": 1e6, "fast": 1.1}
    frame[names.CONDITION.column] = frame["normalizer"].map(conditions)
    assert cause(Curved("-", "s", frame, curvature=SPREAD), "x").startswith("Why: slow leaves")


def test_of_schemes_that_take_as_long_the_rounder_is_the_fastest():
    ends = (SLOW, FAST, FAST)
    text = cause_of(fast=40.0, ends=ends)
    assert "other makes it round (1)" in text
    assert "whole cause" not in text


def test_of_schemes_that_take_as_long_none_is_slower():
    late = (40, 0.001)  # which its curvature explains
    assert cause_of(curvature=(0.05, 0.05), ends=(late, late)) == ""
    assert cause_of(curvature=(0.05, 0.05), ends=(late, (39, 0.001))) != ""


def with_numbers(jobs, numbers, iterations="50", curvature=SPREAD, **tags):
    """Return a sweep of jobs whose schemes have these condition numbers."""
    frame = runs(*jobs, iterations=iterations).runs
    frame[names.CONDITION.column] = frame["normalizer"].map(numbers)
    frame[names.CONDITION_LIMIT.column] = np.nan
    for name, texts in tags.items():
        frame[getattr(names, name).column] = frame["normalizer"].map(texts)
    return Curved("-", "s", frame, curvature=curvature)


PAIR = [("x", "slow", {1.0: SLOW}), ("x", "fast", {1.0: FAST})]
NUMBERS = {"slow": 1e5, "fast": 1.14}


def test_of_a_budget_that_is_not_known_nothing_is_concluded():
    sweep = with_numbers(PAIR, {"slow": 1e5, "fast": 1.5})
    (race,) = races(sweep, "x")
    unknown = replace(race, budget=None)
    assert len(explain_race(sweep, "x", race)) == 1
    assert explain_race(sweep, "x", unknown) == []
    rows = sweep.of_role("scheme").to_dict("records")
    slow, fast = (RacedScheme(row["label"], row, 9.0, NUMBERS[row["label"]], False) for row in rows)
    # No iteration removes anything, and no step size suits every direction.
    assert _cause_sentence(race, slow, fast).values["suits"]
    assert not _cause_sentence(unknown, slow, fast).values["suits"]
    never = slow._replace(iterations=np.inf, row={**slow.row, names.FINAL_COST.column: 0.9})
    curved = {"window_curvature": np.ones(1), "window_share": np.ones(1)}
    assert not _is_explained(race, never, curved)
    assert _is_explained(unknown, never, curved)


def test_a_scheme_that_is_not_affine_or_changes_the_points_is_no_raw_one():
    row = {names.AFFINE.column: "true"}
    raw = RacedScheme("a", row, 3.0, 5.0, False)
    assert raw.raw
    assert not raw._replace(row={}).raw
    for change in (names.CENTRES, names.SHIFTS, names.SCALES, names.ROTATES):
        assert not raw._replace(row={**row, change.column: "true"}).raw
        assert raw._replace(row={**row, change.column: "false"}).raw


@pytest.mark.parametrize(
    ("number", "bounded", "text"),
    [
        (9949.0, False, "9900"),
        (9951.0, False, "1e4"),
        (1e4, False, "1e4"),
        (1.04, False, "1"),
        (3.14159, False, "3.1"),
        (1.26e15, False, "1.3e15"),
        (1e30, True, "more than 1e30"),
        (140.0, True, "more than 140"),
    ],
)
def test_a_condition_number_has_two_digits(number, bounded, text):
    assert RacedScheme("a", {}, 3.0, number, bounded).number == text


def test_the_cause_of_several_problems_is_not_said():
    jobs = [(*job, {"start_scale": scale}) for scale in "12" for job in PAIR]
    assert cause(with_numbers(PAIR, NUMBERS), "x") != ""
    assert cause(with_numbers(jobs, NUMBERS), "x") == ""


def test_one_scheme_of_a_known_condition_number_has_no_cause():
    assert cause(with_numbers(PAIR[1:], NUMBERS), "x") == ""
    assert cause(with_numbers(PAIR, {"fast": 1.14}), "x") == ""


@pytest.mark.parametrize("verdict", ["failed", "diverged"])
def test_a_scheme_that_is_lost_is_no_slow_one(verdict):
    sweep = with_numbers(PAIR, NUMBERS)
    is_slow = (sweep.runs["role"] == "scheme") & (sweep.runs["normalizer"] == "slow")
    sweep.runs.loc[is_slow, "verdict"] = verdict
    assert cause(sweep, "x") == ""


@pytest.mark.parametrize(("end", "said"), [(0.05, True), (0.001, False)])
def test_a_scheme_that_may_miss_the_target_by_rounding_alone_is_no_slow_one(end, said):
    """Of a run that rounding decides above the target it is certain that it missed."""
    grid = {1.0: SLOW, 2.0: (np.inf, end)}
    sweep = with_numbers([("x", "slow", grid), PAIR[1]], NUMBERS)
    frame = sweep.runs
    of_two = (frame["role"] == "step") & (frame[names.STEP_TAG.column] == "2")
    frame.loc[of_two, "verdict"] = names.BY_ROUNDING
    is_slow = (frame["role"] == "scheme") & (frame["normalizer"] == "slow")
    frame.loc[is_slow, [names.STEP_TAG.column, names.FINAL_COST.column]] = ["1", 0.5]
    assert bool(cause(sweep, "x")) == said


def test_an_uncertain_scheme_that_arrives_by_another_step_size_may_be_the_slow_one():
    grid = {1.0: (89, 0.002), 2.0: (np.inf, 0.001)}
    sweep = with_numbers(
        [("x", "slow", grid), PAIR[1]], NUMBERS, iterations="100", curvature=(0.05, 0.05)
    )
    frame = sweep.runs
    of_two = (frame["role"] == "step") & (frame[names.STEP_TAG.column] == "2")
    frame.loc[of_two, "verdict"] = names.BY_ROUNDING
    assert cause(sweep, "x").startswith("Why: slow leaves")


def test_the_slowest_scheme_that_is_explained_is_the_one_compared():
    """Of two that do not arrive the one that leaves more is the slower."""
    jobs = [("x", "less", {1.0: (np.inf, 0.4)}), ("x", "more", {1.0: (np.inf, 0.6)}), PAIR[1]]
    numbers = {"less": 1e6, "more": 1e5, "fast": 1.14}
    assert cause(with_numbers(jobs, numbers), "x").startswith("Why: more leaves")
    # Of the slower one is not explained what it leaves: 0.5 are predicted.
    jobs[1] = ("x", "more", {1.0: (np.inf, 0.9)})
    assert cause(with_numbers(jobs, numbers), "x").startswith("Why: less leaves")
    # Nor is one the cause that is not ten times less round.
    jobs[1] = ("x", "more", {1.0: (np.inf, 0.6)})
    assert cause(with_numbers(jobs, {**numbers, "more": 11.0}), "x").startswith("Why: less leaves")


def test_a_rounder_cost_is_of_half_the_condition_number_or_less():
    jobs = [*PAIR, ("x", "other", {1.0: (9, 0.001)})]
    for number, admitted in ((20.0, True), (20.1, False)):
        text = cause(with_numbers(jobs, {"slow": 1e5, "fast": 40.0, "other": number}), "x")
        assert ("other makes it rounder still (20)" in text) == admitted


def test_counts_of_misclassified_points_have_no_cause_in_the_curvature():
    sweep = with_numbers(PAIR, NUMBERS)
    frame = sweep.runs.assign(**{names.FINAL_MISCLASSIFICATIONS.column: 0.5})
    assert cause(Curved("-", "s", frame, curvature=SPREAD), "x") != ""
    frame[names.COMPARED.column] = names.MISCLASSIFICATIONS
    assert cause(Curved("-", "s", frame.copy(), curvature=SPREAD), "x") == ""


def test_without_a_known_condition_number_there_is_no_cause():
    assert cause(with_numbers(PAIR, {}), "x") == ""
