"""Each closing sentence is said where it is true, and not where it is false."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import cause, fastest, headline, scheme_faults
from normbench.results.answer import closing as answer
from normbench.results.answer import theory_table as theory
from normbench.results.compare import heldout, problems, reached
from normbench.results.report import captions, profile
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import TEMPLATES
from tests.claims.claims import sentences
from tests.results.made import runs

NO_SPLITS = pd.DataFrame({"experiment": []})
FAST, SLOW, NEVER = {1.0: (3, 0.001)}, {1.0: (5, 0.002)}, {1.0: (np.inf, 0.5)}
THERE = {1.0: (0, 0.001)}  # from another start
BOTH = (("x", "a", FAST), ("x", "b", SLOW))


def told(text):
    """Return the names of the sentences of a text."""
    return [name for name, _ in sentences(text)]


def batches(*passes):
    """Return a sweep of batches of 1, 10 and 100 of 100 points, by the passes that each takes."""
    jobs = [
        ("x", "a", {1.0: (count, 0.001 if np.isfinite(count) else 0.5)}, {"batch": size})
        for count, size in zip(passes, ("1", "10", "None"))
    ]
    return Sweep("-", "s", runs(*jobs).runs.assign(train_points=100))


def with_tags(sweep, **columns):
    """Return a sweep with other columns, by their place in `names`; of the scheme runs alone."""
    frame = sweep.runs.copy()
    schemes = frame["role"] == "scheme"
    for name, value in columns.items():
        frame.loc[schemes, getattr(names, name).column] = value
    return Sweep("-", "s", frame)


def counted(*left):
    """Return a sweep of schemes that are compared by misclassified points, of 100."""
    sweep = with_tags(
        runs(*(("x", name, FAST) for name in "abc"[: len(left)])), COMPARED=names.MISCLASSIFICATIONS
    )
    wrong = sweep.runs["normalizer"].map(dict(zip("abc", left)))
    more = {names.FINAL_MISCLASSIFICATIONS.column: wrong, names.MINIMUM.column: 0.3}
    more[names.target("1e-1").column] = 10.0
    return Sweep("-", "s", sweep.runs.assign(**more))


def over_splits(**rates):
    """Return what `heldout.by_split` returns, of one experiment: the error rates by scheme."""
    rows = [
        {"experiment": "x", "scheme": name, "split": number, "cost": rate, "best cost": rate}
        | {"at": 3.0, "rate": rate, "best rate": rate, "train rate": 0.0, "start": 1.0}
        | {"ratio": 1 / 3, "arrived": True}
        for name, own in rates.items()
        for number, rate in enumerate(own)
    ]
    return pd.DataFrame(rows)


def rising(by):
    return over_splits(a=[0.2]).assign(**{"best cost": 0.2 - by, "start": 0.6})


def ending(sweep):
    return answer.ranking_paragraph(sweep, "x")


def closing(sweep, splits=NO_SPLITS):
    return " ".join(fastest.answers(sweep, "x", splits))


def gridded(best):
    """Return a sweep of two schemes on three step sizes, one of which is the best of `a`."""
    grid = {size: (3 if size == best else 7, 0.001) for size in (1.0, 10.0, 100.0)}
    return runs(("x", "a", grid), ("x", "b", {1.0: 9.0, 10.0: 6.0, 100.0: 8.0}))


def beyond(number):
    """Return a sweep whose first scheme takes the fewest at a finer step size, by its number."""
    grid = {1.0: 9.0, 10.0: 8.0, 100.0: 7.0}
    finer = {"finer": {number: 3.0}}
    return runs(("x", "a", grid, finer), ("x", "b", {1.0: 9.0, 10.0: 6.0, 100.0: 8.0}))


def notes(*jobs, **params):
    return " ".join(profile.notes([runs(*jobs, **params)]))


def starting(**starts):
    """Return jobs of schemes with their starts."""
    return [("x", name, FAST, {"start": start}) for name, start in starts.items()]


@dataclass(frozen=True)
class Started(Sweep):
    """Runs that start at a cost of 1."""

    def histories(self, runs, metrics=()):
        start = dict.fromkeys(metrics, 1.0)
        return pd.DataFrame([{"run_id": run, "iteration": 0, **start} for run in runs["run_id"]])


@dataclass(frozen=True)
class Ended(Sweep):
    """Runs that start at a cost of 1 and end at their final cost in an iteration."""

    def histories(self, runs, metrics=()):
        ends = zip(runs["run_id"], runs[names.FINAL_COST.column])
        return pd.concat(
            pd.DataFrame({"run_id": run_id, "iteration": [0, 1], metrics[0]: [1.0, end]})
            for run_id, end in ends
        )


def resting(lowest):
    """Return the notes on two networks of which one converged at 0.6, and the other saw less."""
    jobs = [("x", "a", {1.0: (np.inf, 0.6)}), ("x", "b", {1.0: (np.inf, lowest)})]
    table = runs(*jobs, model="mlp", **{"rules.excess": "0.5"}).runs
    ends = table[names.FINAL_COST.column]
    tenth = names.target("1e-1").column
    table[names.MINIMUM.column], table[tenth] = ends, ends + 0.1 * (1 - ends)
    table.loc[table["normalizer"] == "a", "verdict"] = names.CONVERGED
    table[names.MINIMUM_REACHED.column] = "false"
    return " ".join(profile.notes([Started("-", "s", table)]))


def resting_at(end):
    """Return the notes on a scheme that converged at a cost, where zero weights cost 1."""
    sweep = runs(("x", "a", {1.0: (np.inf, end)}))
    steps = sweep.runs["role"] == "step"
    return " ".join(
        profile.notes(
            [Sweep("-", "s", sweep.runs.assign(verdict=np.where(steps, names.CONVERGED, "")))]
        )
    )


def guessing(*schemes, **params):
    """Return the answer on schemes whose least cost is not known; their costs begin at 1."""
    table = runs(*(("x", name, {1.0: (3, 0.1)}) for name in schemes), iterations="9", **params)
    guessed = table.runs.assign(**{names.MINIMUM_REACHED.column: "false"})
    return headline.headline(Ended("-", "s", guessed))


def of_starts(count):
    """Return the answer on a scheme beside one that did not see a cost as low as its target."""
    table = runs(*BOTH, starts=count, iterations="9").runs
    is_other = table["normalizer"] == "b"
    for metric, value in ((names.MINIMUM, 0.4), (names.target("1e-2"), 0.406)):
        table.loc[is_other, metric.column] = value
    table.loc[is_other, names.target("1e-1").column] = 0.46
    return closing(Started("-", "s", table), over_splits(a=[0.1], b=[0.2]))


def explained(sweep):
    return theory.explanation(sweep, "x")


FAILED, DIVERGED = ("x", "b", None), ("x", "b", {1.0: (np.inf, 0.5)})
LARGE = {"cost.l2": "0.1"}


def diverging():
    sweep = runs(("x", "a", FAST), DIVERGED)
    sweep.runs.loc[sweep.runs["normalizer"] == "b", "verdict"] = "diverged"
    return sweep


def decided_by_rounding(count):
    """Return a sweep some of whose runs are decided by rounding."""
    sweep = runs(("x", "a", {1.0: (3, 0.001), 2.0: (3, 0.002), 4.0: (3, 0.003)}), BOTH[1])
    steps = sweep.runs.index[sweep.runs["role"] == "step"]
    sweep.runs.loc[steps[1 : count + 1], "verdict"] = names.BY_ROUNDING
    return sweep


def over_two_splits(**columns):
    """Return the one scheme of two splits, whose columns have a value each."""
    sweep = runs(
        *(
            ("x", "b", {1.0: (5, cost)}, {"dataset.split_seed": str(cost), "data": str(cost)})
            for cost in (0.002, 0.003)
        )
    )
    for name, values in columns.items():
        column = "verdict" if name == "verdict" else getattr(names, name).column
        sweep.runs.loc[sweep.runs["role"] == "scheme", column] = values
        if name == "verdict":
            sweep.runs.loc[sweep.runs["role"] == "step", column] = values
    return sweep


def diverging_on(*splits, by_split=(0.002, 0.003, 0.004)):
    """Return a scheme beside another one, whose only step size diverged on these splits."""
    sweep = runs(
        *(
            (
                "x",
                name,
                {1.0: (5, cost + place)},
                {"dataset.split_seed": str(cost), "data": f"{cost}"},
            )
            for place, name in enumerate("ab")
            for cost in by_split
        )
    )
    rows = sweep.runs[sweep.runs["normalizer"] == "b"]
    steps = rows.index[rows["role"] == "step"]
    sweep.runs.loc[steps[[*splits]], "verdict"] = names.DIVERGED
    return sweep


@dataclass(frozen=True)
class Kept(Sweep):
    """A sweep whose schemes keep the directions of their cost."""

    curvature: Any = ()

    def arrays(self, runs, name):
        values = np.array(self.curvature)
        kept = {"window_curvature": values, "window_share": values**0}
        kept["window_times"] = np.ones(len(values), dtype=int)
        return dict.fromkeys(runs["label"], kept) if len(values) else {}


def curved(*conditions, left=0.9, **columns):
    """Return the cause of schemes of condition numbers, the slowest first; the last but one wins.

    left: of the excess of the first, which does not meet the target in 50 iterations.
    """
    counts = {0: (np.inf, left), len(conditions) - 1: (9, 0.001)}
    if len(conditions) > 2:
        counts = {0: (np.inf, left), 1: (3, 0.001), 2: (9, 0.001)}
    jobs = [("x", name, {1.0: counts[n]}) for n, name in zip(range(len(conditions)), "abc")]
    made = with_tags(runs(*jobs, iterations="50"), **columns)
    of_scheme = dict(zip("abc", conditions))
    made.runs[names.CONDITION.column] = made.runs["normalizer"].map(of_scheme)
    # One half of the excess lies along a direction that step 1 removes, the rest is left by it.
    return cause.cause(Kept("-", "s", made.runs, curvature=(1e-3,)), "x")


def halves(splits):
    """Return two schemes of which one is always faster, on so many splits."""
    return runs(
        *(
            (
                *("x", name, {1.0: (count, 0.001 + n / 1e4)}),
                {"dataset.split_seed": str(n), "data": f"{n}"},
            )
            for name, count in (("a", 3), ("b", 5))
            for n in range(splits)
        )
    )


def windows(*curvature, left=0.41, **columns):
    """The caption of a figure; left: of the start's excess, where 1 is what it started with."""
    made = with_tags(runs(("x", "a", {1.0: (3, left)}), iterations="10"), **columns)
    return captions.describe_figure(Kept("-", "s", made.runs, curvature=curvature), "x", "windows")


@dataclass(frozen=True)
class Layered(Sweep):
    """A sweep whose schemes keep the layers of least squares, from cost 1 to 0."""

    curvature: Any = ()

    def arrays(self, runs, name):
        values = np.array(self.curvature)
        kept = {"layer_curvature": values, "layer_share": values**0 / max(len(values), 1)}
        costs = np.array([[[1.0, 0.5, 0.41]]])
        kept |= {names.TRAIN_COST.key: costs, "minimum": 0.0, "step_sizes": np.array([1.0])}
        return dict.fromkeys(runs["label"], kept) if len(values) else {}


def melting(*curvature):
    made = runs(("x", "a", {1.0: (3, 0.41)}), iterations="2")
    made.runs[names.STEP_SIZE.column] = 1.0
    return captions.describe_figure(Layered("-", "s", made.runs, curvature=curvature), "x", "melt")


@dataclass(frozen=True)
class Filmed(Sweep):
    """A sweep whose schemes keep the counters of a film."""

    film: Any = None

    def arrays(self, runs, name):
        return dict.fromkeys(runs["label"], self.film) if self.film else {}


FILM = {"lipschitz": [9.0, 1.0], "condition": [4567.0, 1.0], "iterations": [-1, 3], "most": 1000}


def filming(film):
    made = runs(("x", "a", FAST))
    return captions.describe_figure(Filmed("-", "s", made.runs, film=film), "x", "film")


def steps(*sizes):
    jobs = [("x", name, {size: (3, 0.001)}) for name, size in zip("abc", sizes)]
    return captions.describe_figure(runs(*jobs), "x", "step_sizes")


def converging(*sizes):
    jobs = [("x", name, dict.fromkeys(own, (3, 0.001))) for name, own in zip("ab", sizes)]
    return captions.describe_figure(runs(*jobs), "x", "phase_diagram")


def losing(share):
    return captions.describe_figure(with_tags(runs(*BOTH), VARIANCE_LOST=share), "x", "projection")


def ranking(*jobs):
    return captions.describe_figure(runs(*jobs), "x", "overview")


# Of each sentence what returns a text that has it, and the nearest one that has not.
RIDGE = {"RIDGE": 1e-7, "LIVE_DIRECTIONS": 30.0}
HELD, IDLE = RIDGE | {"RIDGE_TOUCHED": 4.0}, RIDGE | {"RIDGE_TOUCHED": 0.0}
LOST = {"FEATURES_LOST": 2.0, "LOST_NAMES": "lat, year", "FEATURES_VARYING": 3.0}
UNSCALED = {"FEATURES_UNSCALED": 1.0, "UNSCALED_NAMES": "e1", "FEATURES_VARYING": 3.0}


def faulty(**columns):
    """Return the remarks on the faults of two schemes."""
    return " ".join(scheme_faults.remarks(with_tags(runs(*BOTH), **columns), "x"))


CASES = {
    "ridge_matters": lambda: (faulty(**HELD), faulty(**IDLE)),
    "lost_features": lambda: (faulty(**LOST), faulty(**UNSCALED)),
    "unscaled_features": lambda: (faulty(**UNSCALED), faulty(**LOST)),
    "goes_from": lambda: (steps(0.1, 1.0, 10.0), steps(1.0, 1.0, 1.0)),
    "is_one": lambda: (steps(1.0, 1.0, 1.0), steps(0.1, 1.0, 10.0)),
    "converging": lambda: (converging([0.1, 1.0], [1.0, 10.0]), converging([0.1, 1.0], [1.0])),
    "serving": lambda: (windows(1.0, 0.01), windows(1.0, 0.01, left=0.001)),
    "melting": lambda: (melting(1.0, 0.01), melting()),
    "not_served": lambda: (windows(1.0, 0.01, left=0.001), windows()),
    "by_rounding": lambda: (ending(decided_by_rounding(1)), ending(runs(*BOTH))),
    "no_shadows": lambda: (
        ending(runs(*BOTH, shadows="False")),
        ending(runs(*BOTH, shadows="True")),
    ),
    "filmed": lambda: (filming(FILM), filming(None)),
    "losing": lambda: (losing(0.2), losing(np.nan)),
    "mean_ranks": lambda: (ranking(*BOTH), ranking(*BOTH[:1], ("y", "b", FAST))),
    "none_ran": lambda: (explained(runs(FAILED)), explained(runs(("x", "a", FAST), FAILED))),
    "no_step": lambda: (
        explained(runs(("x", "a", FAST), iterations="0")),
        explained(runs(("x", "a", FAST))),
    ),
    "none_on_every_split": lambda: (
        explained(over_two_splits(LARGEST_CONVERGENT=[1.0, np.nan])),
        explained(over_two_splits(LARGEST_CONVERGENT=[np.nan, np.nan])),
    ),
    "note": lambda: (explained(with_tags(runs(*BOTH), NOTE="it rains")), explained(runs(*BOTH))),
    "judged_again": lambda: (
        explained(with_tags(runs(*BOTH), DESCEND_AGAIN="path")),
        explained(runs(*BOTH)),
    ),
    "counts": lambda: (" ".join(profile.notes([counted(1, 2)])), notes(*BOTH)),
    "other_functions": lambda: (
        notes(*starting(a="normal", b="normal")),
        notes(*starting(a="zeros", b="zeros")),
    ),
    "other_networks": lambda: (
        notes(*starting(a="normal", b="normal"), model="mlp"),
        notes(*starting(a="normal"), model="mlp"),
    ),
    "drawn_networks": lambda: (
        notes(*starting(a="normal"), model="mlp"),
        notes(*starting(a="normal", b="normal"), model="mlp"),
    ),
    "unrefined": lambda: (
        notes(*BOTH, model="mlp", refine="True"),
        notes(*BOTH, model="mlp", refine="auto"),
    ),
    "own_lowest": lambda: (resting(0.1), resting(0.4)),
    "few_functions": lambda: (
        notes(*starting(a="same_function", b="normal")),
        notes(*starting(a="normal", b="normal")),
    ),
    "one_function": lambda: (
        notes(*starting(a="same_function", b="same_function")),
        notes(*starting(a="same_function", b="normal")),
    ),
    "own_functions": lambda: (
        notes(*BOTH, **LARGE),
        notes(*BOTH, **LARGE, **{"cost.l2_in": "features"}),
    ),
    "saturating": lambda: (
        " ".join(answer.batch_and_exclusion_remarks(batches(3, 4, 30), "x")),
        " ".join(answer.batch_and_exclusion_remarks(batches(3, 4, np.inf), "x")),
    ),
    "idle_seed": lambda: (
        notes(*(("x", "a", FAST, {"seed": seed}) for seed in "12")),
        notes(*(("x", "a", {1.0: float(seed)}, {"seed": seed}) for seed in "12")),
    ),
    "by_cost": lambda: (ending(runs(*BOTH)), ending(runs(BOTH[0], ("x", "b", FAST)))),
    "by_excess": lambda: (ending(runs(*BOTH, **LARGE)), ending(runs(*BOTH))),
    "by_count": lambda: (ending(counted(1, 2)), ending(counted(1, 1))),
    "one_place": lambda: (ending(runs(BOTH[0], ("x", "b", FAST))), ending(runs(*BOTH))),
    "counted": lambda: (
        answer.overall_ranking(runs(*BOTH, ("y", "a", FAST), ("y", "b", SLOW))),
        answer.overall_ranking(runs(*BOTH)),
    ),
    "no_descent": lambda: (ending(runs(("x", "a", None), iterations="0")), ending(runs(FAILED))),
    "no_cost": lambda: (ending(runs(FAILED)), ending(runs(*BOTH, FAILED))),
    "all_diverged": lambda: (ending(diverging()), ending(runs(("x", "a", FAST), DIVERGED))),
    "some_diverged": lambda: (ending(diverging_on(1)), ending(diverging_on(0, 1, 2))),
    "some_failed": lambda: (ending(runs(("x", "a", FAST), FAILED)), ending(diverging())),
    "fastest": lambda: (closing(runs(*BOTH)), closing(runs(("x", "a", NEVER), ("x", "b", NEVER)))),
    "fastest_open": lambda: (closing(halves(3)), closing(halves(6))),
    "takes": lambda: (headline.headline(runs(BOTH[0])), headline.headline(runs(("x", "a", NEVER)))),
    "nobody_alone": lambda: (
        headline.headline(runs(("x", "a", NEVER))),
        headline.headline(runs(BOTH[0])),
    ),
    "uncounted": lambda: (of_starts("3"), of_starts("1")),
    "over_problems": lambda: (
        headline.headline(runs(*BOTH, ("y", "a", FAST), ("y", "b", SLOW))),
        headline.headline(runs(*BOTH)),
    ),
    "why": lambda: (curved(1e4, 1.0), curved(9.0, 1.0)),
    "rounder": lambda: (curved(1e4, 10.0, 1.0), curved(1e4, 10.0, 6.0)),
    "ended_lowest": lambda: (guessing("a", "b"), closing(runs(*BOTH))),
    "fell": lambda: (guessing("a", "b"), closing(runs(*BOTH))),
    "own_ends": lambda: (guessing("a", "b", **{"cost.l2": "0.1"}), guessing("a", "b")),
    "unknown_least": lambda: (guessing("a"), closing(runs(*BOTH))),
    "above_zero": lambda: (resting_at(1.1), resting_at(1.0)),
    "starts_there": lambda: (
        closing(runs(("x", "a", THERE), ("x", "b", SLOW))),
        closing(runs(*BOTH)),
    ),
    "grid_end": lambda: (closing(gridded(100.0)), closing(gridded(10.0))),
    "grid_beyond": lambda: (closing(beyond(34)), closing(beyond(30))),
    "grid_above": lambda: (
        closing(with_tags(gridded(10.0), THRESHOLD=0.5)),
        closing(with_tags(gridded(10.0), THRESHOLD=2.0)),
    ),
    "nobody": lambda: (closing(runs(("x", "a", NEVER), ("x", "b", NEVER))), closing(runs(*BOTH))),
    "predicts_unknown": lambda: (
        closing(runs(*BOTH)),
        closing(runs(*BOTH), over_splits(a=[0.1], b=[0.2])),
    ),
    "predicts": lambda: (closing(runs(*BOTH), over_splits(a=[0.1], b=[0.2])), closing(runs(*BOTH))),
    "faster_predicts_worse": lambda: (
        closing(runs(*BOTH), over_splits(a=[0.2], b=[0.1])),
        closing(runs(*BOTH), over_splits(a=[0.1], b=[0.2])),
    ),
    "faster_predicts_best": lambda: (
        closing(runs(*BOTH), over_splits(a=[0.1], b=[0.2])),
        closing(runs(*BOTH), over_splits(a=[0.1], b=[0.1])),
    ),
    "rises": lambda: (heldout.describe_rises(rising(0.03)), heldout.describe_rises(rising(0.01))),
}


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("name", CASES)
def test_a_closing_sentence_is_said_only_where_it_is_true(name):
    true, false = (told(text) for text in CASES[name]())
    assert name in true
    assert name not in false


def test_schemes_with_the_same_fault_share_a_sentence():
    assert faulty(**HELD) == (
        "The constant 1e-7 that protects against division by zero matters under a and b: 4 of 30 "
        "directions are scaled too little; ridge=0 avoids it."
    )
    assert faulty(**LOST) == (
        "a and b leave 2 of 3 features without variation (lat, year), so no descent sees them; "
        "standard keeps them."
    )
    assert faulty(**UNSCALED) == (
        "a and b cannot scale 1 of 3 features (e1): it varies too little for scikit-learn, and "
        "stays as before; give it in a smaller unit, or use standard."
    )


@pytest.mark.parametrize(("touched", "most"), [([4.0, 1.0], "up to 4 of 30"), ([0.0, 1.0], "1 of")])
def test_schemes_that_a_ridge_holds_otherwise_share_a_sentence(touched, most):
    sweep = with_tags(runs(*BOTH, **{"normalizer.ridge": "1e-07"}), **IDLE)
    sweep.runs.loc[sweep.runs["role"] == "scheme", names.RIDGE_TOUCHED.column] = touched
    (said,) = scheme_faults.remarks(sweep, "x")
    assert f": {most}" in said
    assert said.endswith("normalizer.ridge=0 avoids it.")
    assert ("a and b" in said) == (touched[0] > 0)


def test_of_several_splits_the_worst_is_told_once():
    (said,) = scheme_faults.remarks(
        over_two_splits(
            FEATURES_LOST=[1.0, 2.0], LOST_NAMES=["lat", "lat, year"], FEATURES_VARYING=[3.0, 3.0]
        ),
        "x",
    )
    assert said.startswith("b leaves 2 of 3 features without variation (lat, year), ")


@pytest.mark.parametrize(
    ("verdicts", "who"),
    [(["diverged"] * 2, "b"), (["not converged", "diverged"], "1 of 2 jobs")],
)
def test_a_scheme_is_named_where_it_diverged_on_every_split(verdicts, who):
    sweep = over_two_splits(verdict=verdicts, THRESHOLD=[0.02, 0.04])
    first, second, *others = answer.batch_and_exclusion_remarks(sweep, "x")
    assert first == f"{who} diverged at every step size."
    # Of the scheme, and not of its splits.
    assert second.startswith("Every step size tried is above 2/L of b, so")
    assert told(" ".join(others)) == ["some_diverged"] * (who != "b")


@pytest.mark.parametrize("splits", [(0,), (1,), (0, 2)])
def test_a_scheme_whose_step_size_diverged_on_some_splits_is_not_lost_without_a_word(splits):
    said = ending(diverging_on(*splits))
    assert "b, " not in said
    assert said.endswith(
        "On some of 3 splits, b diverged at the step size that is best over all of them, and has "
        "no cost to compare."
    )


def test_a_scheme_whose_iterations_are_not_known_is_neither_slower_nor_faster():
    assert of_starts("1").startswith("Fastest on this grid: a. It removes 99 % ")
    assert "predicts best, too" in of_starts("1")
    assert of_starts("3").startswith(
        "a removes 99 % of the excess cost in 3 iterations (step size 1). How fast b descends is "
        "not known: the target follows from the costs of another job, "
    )
    assert "predicts best, too" not in of_starts("3")


@pytest.mark.parametrize(("limits", "named"), [([0.02, 0.04], True), ([0.02, 2.0], False)])
def test_a_grid_is_above_a_scheme_where_it_is_on_every_split(limits, named):
    jobs = [
        ("x", name, dict.fromkeys((1.0, 10.0, 100.0), (5, cost)), {"data": str(cost)})
        for name in "ab"
        for cost in (0.002, 0.003)
    ]
    sweep = with_tags(
        runs(*((*job[:3], {**job[3], "dataset.split_seed": job[3]["data"]}) for job in jobs)),
        THRESHOLD=[*limits, 2.0, 2.0],
    )
    assert ("is above 2/L of a, so" in closing(sweep)) == named


@pytest.mark.parametrize(("count", "settled"), [(3, False), (6, True)])
def test_the_faster_scheme_predicts_best_where_the_splits_show_which_is_faster(count, settled):
    rates = over_splits(a=[0.1] * count, b=[0.2] * count)
    worse = over_splits(a=[0.2] * count, b=[0.1] * count)
    assert ("faster_predicts_best" in told(closing(halves(count), rates))) == settled
    assert ("faster_predicts_worse" in told(closing(halves(count), worse))) == settled


def test_cross_validation_says_how_schemes_predict():
    for cost, expected in ((0.3, False), (np.nan, True)):
        sweep = runs(*BOTH)
        sweep.runs[names.FOLDS_COST.column] = cost
        assert ("predicts_unknown" in told(closing(sweep))) == expected


def test_captions_say_what_the_numbers_show():
    assert steps(0.1, 1.0, 0.1) == ("The best step size goes from 0.1 under a = c to 1 under b.")
    assert converging([0.1, 1.0], [1.0, 10.0]) == "Step sizes that converged, of 2: a 0, b 0."
    # In 10 iterations step 1 shrinks along h = 1 at once, along h = 0.01 to 0.99^10 = 0.904.
    # Of two layers of one half each the first is gone at once; 41 percent were recorded.
    assert melting(1.0, 0.01) == (
        "At step size 1, 1 of 2 layers of a is gone, and 41 % of the excess cost is left."
    )
    assert "1 of 1 layer of a is gone" in melting(1.0)
    assert windows(1.0, 0.01) == (
        "Step size 1 trains 1 of 2 directions of a, which holds 50% of the excess cost at the "
        "start."
    )
    assert "trains 0 of 1 direction of a, which hold 0% of" in windows(0.01, left=0.9)
    # 10 iterations at step 1 leave 0 of what lies along h = 1 and 0.818 along h = 0.01: 0.409.
    assert windows(1.0, 0.01, left=0.65).startswith("Step size 1 trains")
    assert windows(1.0, 0.01, left=0.67) == (
        "The curvature at the start does not explain what step size 1 did under a: it predicts "
        "that 59% of the excess cost is removed, and 33% was; the curvature changed on the way."
    )
    assert windows(1.0, 0.01, left=0.15).startswith("The curvature at the start does not")
    assert windows(1.0, 0.01, left=np.nan).startswith("Step size 1 trains")
    assert windows(1.0, 0.01, left=0.001, BASIS=names.EXACT).startswith(
        "Step size 1 trains"
    )  # no change
    assert filming(FILM) == (
        "From raw points to a, the condition number of the cost goes from 4570 to 1, and the "
        "iterations until 1 percent of the excess cost is left, at step size 1/L, from > 1,000 to "
        "3."
    )
    assert losing(0.0123) == ("a loses 1.230% of the variance. b loses 1.230% of the variance.")


def test_runs_that_rounding_decides_are_counted():
    one, two = (ending(decided_by_rounding(count)).split(". ")[-1] for count in (1, 2))
    assert one == (
        "1 of 4 runs is decided by rounding errors: another processor may end it elsewhere, and "
        "nothing is concluded from it."
    )
    assert two == (
        "2 of 4 runs are decided by rounding errors: another processor may end them elsewhere, and "
        "nothing is concluded from them."
    )


def test_a_scheme_all_of_whose_runs_rounding_decides_has_no_place():
    sweep = decided_by_rounding(2)
    sweep.runs.loc[sweep.runs["normalizer"] == "a", "verdict"] = names.BY_ROUNDING
    said = ending(sweep)
    assert "b, 0.002" in said
    assert "a, " not in said
    assert "3 of 4 runs are decided by rounding" in said
    assert "diverged" not in said


def test_counts_are_ranked_by_counts_and_equal_ones_stand_together():
    said = ending(counted(7, 2, 2))
    assert said == (
        "After gradient descent, from the fewest misclassified points up: b = c, 2 misclassified "
        "at step size 1 (not converged); a, 7 misclassified at step size 1 (not converged)."
    )
    assert "leaves the fewest points of x misclassified" in answer.question(counted(7, 2), "x")
    assert "bring the misclassified points down to 1 % of all in" in closing(counted(7, 2))
    both = Sweep(
        "-", "s", pd.concat([counted(7, 2).runs, runs(("y", "a", FAST), ("y", "b", SLOW)).runs])
    )
    assert "the lowest cost or fewest misclassified points on how many" in answer.overall_ranking(
        both
    )


def test_what_is_left_of_counts_is_the_share_of_the_points():
    sweep = counted(7, 2)
    assert reached.time_to_target([sweep])["excess"].tolist() == pytest.approx([0.07, 0.02])
    rows = sweep.of_role("scheme").to_dict("records")
    assert [reached.excess_left(row, row) for row in rows] == pytest.approx([0.07, 0.02])


def test_one_scheme_alone_starts_from_what_it_starts_from():
    assert notes(*starting(a="normal")) == ""


def test_starts_that_were_chosen_by_hand_are_their_own_problems():
    assert notes(*starting(a="zeros", b="normal")) == ""


def test_no_template_holds_two_sentences():
    assert not [text for text in TEMPLATES.values() if ". " in text]


def test_seeds_are_named_once():
    jobs = [("x", "a", FAST, {"seed": seed}) for seed in "12"]
    assert len(problems.idle_seeds([runs(*jobs)])) == 1


@pytest.mark.parametrize(("limit", "named"), [(0.004, True), (4.0, False)])
def test_where_all_diverged_above_their_limits_smaller_step_sizes_are_named(limit, named):
    sweep = with_tags(runs(DIVERGED), THRESHOLD=limit)
    sweep.runs.loc[sweep.runs["role"] == "scheme", "verdict"] = "diverged"
    assert ("step_sizes='${decades:-5,-1}' begins below" in ending(sweep)) == named


def test_a_limit_inside_the_grid_asks_for_no_smaller_step_sizes():
    grid = {0.1: (np.inf, np.nan), 10.0: (np.inf, np.nan)}
    for limit, named in ((1.0, False), (0.1, False), (0.09, True)):  # at its lower end, too
        sweep = with_tags(runs(("x", "a", grid)), THRESHOLD=limit)
        sweep.runs.loc[sweep.runs["role"] != "sweep", "verdict"] = "diverged"
        assert ("begins below" in ending(sweep)) == named


def test_the_smaller_step_sizes_begin_below_the_lowest_of_several_limits():
    sweep = with_tags(runs(DIVERGED, ("x", "other", DIVERGED[2])), THRESHOLD=[0.004, 4e-7])
    sweep.runs.loc[sweep.runs["role"] == "scheme", "verdict"] = "diverged"
    assert "step_sizes='${decades:-9,-1}' begins below" in ending(sweep)


@pytest.mark.parametrize("gridless", ["true", "false"])
def test_nothing_is_said_of_step_sizes_that_the_optimizer_finds_itself(gridless):
    sweep = with_tags(runs(("x", "a", NEVER), ("x", "b", NEVER)), GRIDLESS=gridless)
    assert ("none_convergent" in told(explained(sweep))) == (gridless == "false")
    assert ("at step size 1" in ending(sweep)) == (gridless == "false")
    none = Sweep("-", "s", sweep.runs.assign(**{names.setting("iterations"): "0"}))
    for figure in ("step_sizes", "phase_diagram"):
        assert bool(captions.describe_figure(sweep, "x", figure)) == (gridless == "false")
        assert captions.describe_figure(none, "x", figure) == ""
