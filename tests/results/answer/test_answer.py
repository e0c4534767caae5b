"""Each sentence of an answer is said where it is true, and not where it would be false.

A row has a comparison made by hand, what is said of it, and what is not.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import cause, closing, fastest, scheme_faults, theory_table
from normbench.results.answer.headline import headline
from normbench.results.report import profile
from tests.results.compare.test_heldout import splits
from tests.results.made import recorded, repeated, runs, tagged

NEVER = {1.0: (np.inf, 0.5)}
FINER = {"finer": {8: np.inf}}  # step sizes between those of the grid were tried, in vain
GRID = {0.1: 9.0, 1.0: 5.0, 30.0: 3.0}
COUNTED = names.MISCLASSIFICATIONS
NOTHING = splits(a=[0.1]).iloc[:0]
PENALTY = {"cost.l2": "0.1"}
IN_FEATURES = PENALTY | {"cost.l2_in": "features"}


def row(make, *said, never=()):
    """Return a comparison, what is said of it, and what would be false."""
    return make, said, (never,) if isinstance(never, str) else never


def everything(sweep, held_out=NOTHING):
    """Yield all that is said of a sweep, and of its first experiment."""
    sweep, x = recorded(sweep, getattr(sweep, "parts", None)), sweep.experiments[0]
    yield headline(sweep) + "\n"
    yield closing.question(sweep, x)
    yield closing.ranking_paragraph(sweep, x)
    yield " ".join(closing.batch_and_exclusion_remarks(sweep, x)) + "\n"
    if len(sweep.experiments) > 1:
        yield closing.overall_ranking(sweep) + "\n"
    yield " ".join([*profile.notes([sweep]), *scheme_faults.remarks(sweep, x)])
    yield " ".join(fastest.answers(sweep, x, held_out))
    yield f"{cause.cause(sweep, x)} {theory_table.explanation(sweep, x)}"


def raced(*grids, finer=True, **params):
    """Return schemes a, b, c and so on with iterations by step size, finer ones tried too."""
    more = FINER if finer else {}
    jobs = [("x", name, grid, more) for name, grid in zip("abcdef", grids)]
    return runs(*jobs, **{"iterations": "100", **params})


def ended(*costs, **params):
    """Return schemes a, b, c and so on with their final costs; None for a job that failed."""
    grids = [None if cost is None else {1.0: (3.0, cost)} for cost in costs]
    return raced(*grids, finer=False, **params)


def solved(*costs, **columns):
    """Return schemes with their final costs whose least costs are known, by default 0."""
    return tagged(ended(*costs), MINIMUM_REACHED="true", **columns)


def guessed(*ends, finer=(), by_rounding=(), **params):
    """Return schemes whose least cost is not known, by their final costs at step sizes.

    finer: by scheme, the final costs at step sizes beside the grid, by their number.
    """
    grids = [{size: (np.inf, end) for size, end in own.items()} for own in ends]
    sweep = tagged(raced(*grids, **{"iterations": "9", **params}), MINIMUM_REACHED="false")
    if not finer:
        return sweep
    tag = {"targets": ["1e-2"], "by_rounding": [*by_rounding]}
    tags = {
        name: json.dumps({**tag, "numbers": [*costs], "1e-2": [None] * len(costs)})
        for name, costs in finer.items()
    }
    parts = {
        name: {"refined_cost": np.array([[[1.0, end]] for end in costs.values()])}
        for name, costs in finer.items()
    }
    return recorded(tagged(sweep, tags, "scheme", REFINED=tags), parts)


def counted(*left, **columns):
    """Return schemes that are compared by the share of points that they leave misclassified."""
    columns = {"COMPARED": COUNTED, "MINIMUM": 0.3, **columns}
    wrong = dict(zip("abc", left))
    sweep = raced(*[NEVER] * len(left), finer=False, iterations="9")
    return tagged(sweep, FINAL_MISCLASSIFICATIONS=wrong, **columns)


def problems(*winners, data=("iris", "wine", "digits"), **settings):
    """Return problems on which these schemes, of a and b, are the fastest; "-": nobody is."""
    jobs = [
        (f"{name}-1", scheme, NEVER if who == "-" else {1.0: 3 if scheme in who else 7})
        for name, who in zip(data, winners)
        for scheme in "ab"
    ]
    sweep = runs(*jobs, **settings)
    return replace(
        sweep, runs=sweep.runs.assign(**{names.DATASET.column: sweep.runs["experiment"].str[:-2]})
    )


def several(**jobs):
    """Return schemes on several experiments, by their iterations."""
    return runs(
        *((name, scheme, {1.0: n}) for name, own in jobs.items() for scheme, n in own.items())
    )


def in_batches(orders):
    """Return schemes in batches of two sizes over orders, and once on all points."""
    jobs = [
        (
            "x",
            name,
            {1.0: (3.0 + n, (n + 1 + k / 1e3) / 1e3)},
            {"batch": size, "batch_seed": f"{k}"},
        )
        for n, name in enumerate("ab")
        for size, count in (("8", orders), ("64", orders), ("None", 1))
        for k in range(count)
    ]
    return runs(*jobs, data="d", batch_order="shuffled", train_points=100)


def saturating(*passes):
    """Return batches of 1, 10 and 100 of 100 points, by the passes that each takes."""
    grids = [{1.0: (count, 0.001 if np.isfinite(count) else 0.5)} for count in passes]
    jobs = [("x", "a", grid, {"batch": size}) for grid, size in zip(grids, ("1", "10", "None"))]
    sweep = runs(*jobs)
    return replace(sweep, runs=sweep.runs.assign(train_points=100))


def rounded(end, schemes=("b",)):
    """Return a and b, of whose two runs rounding decides one that ends at a cost."""
    sweep = raced({1.0: 3}, {1.0: (np.inf, 0.5), 2.0: (np.inf, end)}, iterations="9")
    steps = (sweep.runs["role"] == "step") & sweep.runs["normalizer"].isin(schemes)
    chaotic = steps & (sweep.runs[names.STEP_TAG.column] == "2")
    return replace(
        sweep,
        runs=sweep.runs.assign(verdict=sweep.runs["verdict"].mask(chaotic, names.BY_ROUNDING)),
    )


def diverged(*limits, grid=1.0, experiments="x"):
    """Return schemes that diverged at their only step size, and whose 2/L are these."""
    jobs = [
        (x, name, {grid: (np.inf, np.nan)}) for x in experiments for name in "ab"[: len(limits)]
    ]
    return tagged(runs(*jobs), verdict=names.DIVERGED, THRESHOLD=dict(zip("ab", limits)))


def diverged_on(*on, count=3):
    """Return schemes a and b, whose only step size under b diverged on some splits."""
    jobs = [
        ("x", s, {1.0: (5, 0.1 + n / 10)}, {"dataset.split_seed": f"{n}", "data": f"{n}"})
        for s in "ab"
        for n in range(count)
    ]
    sweep = runs(*jobs)
    steps = sweep.runs.index[(sweep.runs["role"] == "step") & (sweep.runs["normalizer"] == "b")]
    sweep.runs.loc[steps[[*on]], "verdict"] = names.DIVERGED
    return sweep


def at_end(name, count=7):
    """Return a and b over splits; the best step size of one of them is the last of the grid."""
    sizes = {scheme: (1.0, 10.0) if scheme == name else (10.0, 1.0) for scheme in "ab"}
    return runs(
        *(
            (
                *("x", s, {0.1: 90.0, sizes[s][0]: 80.0, sizes[s][1]: fewest + n}),
                {"dataset.split_seed": str(n), "data": str(n)},
            )
            for s, fewest in (("a", 3.0), ("b", 30.0))
            for n in range(count)
        )
    )


def gridded(*grids, **columns):
    return tagged(raced(*grids, finer=False), role="scheme", **columns)


def resting(lowest):
    """Return two networks of which one converged at 0.6, and the other saw less."""
    sweep = ended(0.6, lowest, model="mlp", **{"rules.excess": "0.5"})
    tenths = {"a": 0.64, "b": lowest + 0.1 * (1 - lowest)}
    columns = {"MINIMUM": {"a": 0.6, "b": lowest}, names.target("1e-1").column: tenths}
    return tagged(tagged(sweep, "a", verdict="converged"), MINIMUM_REACHED="false", **columns)


MIDDLE = {1.0: 9.0, 10.0: 6.0, 100.0: 8.0}
LAST, FIRST = {1.0: 9.0, 10.0: 7.0, 100.0: 3.0}, {1.0: 3.0, 10.0: 7.0, 100.0: 9.0}
ONE_FEATURE = {"FEATURES_VARYING": 3.0, "UNSCALED_NAMES": "e1", "FEATURES_UNSCALED": 1.0}
LOST = {"FEATURES_LOST": 2.0, "LOST_NAMES": "lat, year", "FEATURES_VARYING": 3.0}
RIDGE = {"RIDGE": 1e-7, "LIVE_DIRECTIONS": 30.0}
UNKNOWN = "How much lower the cost can go is not known."

FASTEST = {
    "by its iterations": row(
        lambda: raced({10.0: 12}, {10.0: 45}, NEVER),
        "Fastest: a. It removes 99 % of the excess cost in 12 iterations (step size 10); b "
        "needs 45 (step size 10); c did not get there in 100.\n",
        "Which of a, b and c lowers the cost of x furthest in 100 iterations of gradient",
        "Whether the faster scheme also predicts better was not tested; to test it, add "
        "dataset.test_fraction=0.25.",
        never=("on this grid", "at most", "Why: ", "median"),
    ),
    "of ties": row(
        lambda: raced({1.0: 3}, {10.0: 3}, {1.0: 9}, {1.0: 9}, {2.0: 9}),
        "Fastest: a and b. They remove 99 % of the excess cost in 3 iterations (step sizes 1 "
        "and 10); c and d need 9 (step size 1); e needs 9 (step size 2).",
    ),
    "on the grid alone": row(
        lambda: raced({1.0: 3}, {1.0: 9}, finer=False),
        "Fastest on this grid: a. It",
        never="at most",
    ),
    "on the grid for some": row(
        lambda: runs(
            ("x", "a", {1.0: 5.0}, {"finer": {8: 3.0}}),
            *(("x", name, {1.0: 3.0 if name == "b" else 9.0}) for name in "bc"),
            ("x", "d", {1.0: 9.0}, FINER),
            ("x", "e", NEVER, FINER),
            ("x", "f", NEVER),
            iterations="100",
        ),
        "in at most 3 iterations (step sizes 3.16 and 1); c needs at most 9 (step size 1); d needs "
        "9 (step size 1); e did not get there in 100; f did not get there in 100 on this grid.",
    ),
    "of one scheme": row(
        lambda: raced({1.0: 3}),
        "a removes 99 % of the excess cost in 3 iterations (step size 1).\n",
        "How far does a lower the cost of x in 100 iterations of gradient descent?",
        never=("astest", "predicts better"),
    ),
    "of one that does not arrive": row(
        lambda: raced(NEVER),
        "a does not remove 90 % of the excess cost in 100 iterations on this grid: it leaves "
        "50% of it.",
        never="closest",
    ),
    "of budgets that differ": row(
        lambda: runs(
            ("x", "a", {1.0: 3}, {**FINER, "iterations": "10"}),
            ("x", "b", NEVER, {**FINER, "iterations": "${per_scheme:10,20}"}),
        ),
        "; b did not get there.\n",
    ),
    "where the optimizer finds its step sizes": row(
        lambda: tagged(raced({1.0: 3}, NEVER, finer=False), GRIDLESS="true"),
        "Fastest: a. It removes 99 % of the excess cost in 3 iterations; b did not get there in",
        never=("step size", "on this grid"),
    ),
    "beside what is lost": row(
        lambda: tagged(
            raced({1.0: 3}, None, {1.0: (np.inf, np.nan)}, finer=False), "c", verdict="diverged"
        ),
        "(step size 1); b failed; c diverged at every step size.",
        "c diverged at every step size. 1 of 3 jobs failed.",
        never="No scheme has a cost",
    ),
    "where rounding decides": row(
        lambda: rounded(0.001),
        "b did not get there for certain in 9: rounding decides.",
        "1 of 3 runs is decided by rounding errors: another processor may end it elsewhere, and",
    ),
    "where rounding decides above the target": row(
        lambda: rounded(0.5), "b did not get there in 9.", never="for certain"
    ),
    "where it was not examined": row(
        lambda: ended(0.1, 0.2, shadows="False"),
        "Whether rounding errors decide where runs end was not examined (shadows=false).",
    ),
    "from another start": row(
        lambda: raced({1.0: 3}, {1.0: 5}, start="normal"),
        "It brings the excess cost down to 1 % of that of zero weights in 3 iterations",
        never="removes",
    ),
    "where a scheme starts there": row(
        lambda: raced({1.0: (0, 0.001)}, {1.0: 9}),
        "Speed is not compared: a starts with no more than 1 % of the excess cost of zero weights.",
        never=("Fastest", "end of those tried"),
    ),
    "of a scheme under several optimizers": row(
        lambda: runs(
            *(
                ("x", scheme, {1.0: (count, 0.001)}, {"optimizer": optimizer})
                for scheme, slow in (("a", 70), ("b", 90))
                for optimizer, count in (("newton", 4), ("gradient_descent", slow))
            )
        ),
        "a is fastest on 1 of 2 problems; x, optimizer=newton shows no difference.",
        never=("Fastest", "predicts"),
    ),
    "where a scheme's count is not known": row(
        lambda: tagged(
            tagged(raced({1.0: 3}, {1.0: 5}, finer=False, starts="3"), "b", MINIMUM=0.4),
            "b",
            **{names.target("1e-2").column: 0.406, names.target("1e-1").column: 0.46},
        ),
        "a removes 99 % of the excess cost in 3 iterations (step size 1). How fast b descends is",
        "is not known: the target follows from the costs of another job, and the costs of single",
        "(medians of 3 starts)",
        never="Fastest",
    ),
    "over splits, of different step sizes": row(
        lambda: runs(
            *(
                ("x", s, {size: (count, 0.001 + n / 1e4)}, {"dataset.seed": f"{n}", "data": f"{n}"})
                for s, count, sizes in (("a", 3, (1.0, 2.0)), ("b", 4, (1.0, 1.0)))
                for n, size in enumerate(sizes)
            )
        ),
        "in 3 iterations; b needs 4 (step size 1) (medians of 2 splits)",
    ),
    "of too few splits": row(
        lambda: runs(*repeated(5, a=[3], b=[4])),
        "Fastest: a or b; 5 splits are too few to show a difference. a removes 99 % of the",
        never="It removes",
    ),
    "of six splits": row(
        lambda: runs(*repeated(6, a=[3], b=[4])),
        "Fastest on this grid: a. It",
        "(medians of 6 splits)",
        never="difference",
    ),
    "of three pairs, of which each needs more": row(
        lambda: runs(*repeated(6, a=[3], b=[4], c=[5])),
        "Fastest: a or b or c; 6 splits are too few to show a difference.",
    ),
    "of splits that differ": row(
        lambda: runs(*repeated(8, a=[3, 9], b=[4])),
        "Fastest: b or a; 8 splits show no difference. b removes 99 % of the",
    ),
    "of a failed candidate": row(
        lambda: runs(*repeated(2, a=[3], b=None)),
        "Fastest on this grid: a. It",
        "; b failed (medians of 2 splits).",
    ),
    "beside a candidate at the end of its grid": row(
        lambda: at_end("b"),
        "Fastest: a or b; 7 splits do not decide, because the best step size of b may lie "
        "beyond the grid.",
        "step size of b is at the end of those tried: step_sizes='${decades:-1,3}' looks further.",
    ),
    "where its own grid ends": row(lambda: at_end("a"), "Fastest on this grid: a.", never=" or b"),
}
PROBLEMS = {
    "a tie and a winner": row(
        lambda: problems("a", "ab", "a"),
        "a is fastest on 2 of 3 data sets; wine shows no difference.\n",
    ),
    "nobody, of another goal": row(
        lambda: runs(
            *(
                (x, name, NEVER, {"start": "normal" if x == "z" else "zeros"})
                for x in "xyz"
                for name in "ab"
            )
        ),
        "on x and y no scheme removes 90 % of the excess cost; on z no scheme brings the",
    ),
    "many, counted out of all": row(
        lambda: runs(
            *((f"x{n}", name, NEVER) for n in range(5) for name in "ab"),
            *(("y", name, {1.0: 3}) for name in "ab"),
        ),
        "y shows no difference; on 5 of 6 problems no scheme removes 90 % of the excess cost.",
        "Of 6 problems, the lowest cost on how many (and the mean rank): a = b 6 (1.5);",
    ),
    "one of a single scheme": row(
        lambda: several(x={"a": 3, "b": 7}, y={"a": 3}), "a is fastest on x.\n"
    ),
    "a start at the target": row(
        lambda: several(x={"a": 0, "b": 7}, y={"a": 3, "b": 7}),
        "a is fastest on 1 of 2 problems; x shows no difference.",
    ),
    "a data set twice": row(
        lambda: tagged(several(x={"a": 3, "b": 7}, y={"a": 9, "b": 7}), DATASET="iris"),
        "a is fastest on 1 of 2 problems; b on y.\n",
        never="data set",
    ),
    "of splits and of one": row(
        lambda: runs(
            *repeated(8, a=[3, 9], b=[4, 4]),
            *(("y", s, {1.0: n}, {"data": "y"}) for s, n in (("a", 3), ("b", 7))),
        ),
        "a is fastest on 1 of 2 problems; x shows no difference.\n",
        never="too few",
    ),
    "orders of batches that are too few": row(
        lambda: in_batches(2),
        "1 of 3 problems; 2 orders of the batches are too few to show a difference on x, batch=8;",
        "Of 3 problems, the lowest cost on how many (and the mean rank): a 3 (1), b 0 (2);",
    ),
    "settings of the problem": row(
        lambda: runs(
            *(
                ("x", s, {1.0: (3.0, cost)}, {"start_scale": scale})
                for scale, costs in (("1", (0.3, 0.2)), ("2", (0.1, 0.2)), ("3", (0.3, 0.2)))
                for s, cost in zip("ab", costs)
            )
        ),
        "Of 3 problems, the lowest cost on how many (and the mean rank): b 2 (1.33), a 1 "
        "(1.67); each scheme at its best step size.",
        never="from the lowest cost up",
    ),
    "equal mean ranks": row(
        lambda: runs(
            *(
                (x, s, {1.0: (3.0, cost)})
                for x, costs in (("x", (0.1, 0.2, 0.3)), ("y", (0.3, 0.2, 0.1)))
                for s, cost in zip("abc", costs)
            )
        ),
        "(and the mean rank): a = c 1 (2), b 0 (2); each scheme at its best step size.",
    ),
    "without a cost, which is not counted": row(
        lambda: runs(
            *(("x", s, {1.0: (3.0, 0.1)}) for s in "a"),
            ("x", "b", None),
            *(("y", s, None) for s in "abc"),
        ),
        "Of 1 problem, the lowest cost on how many (and the mean rank): a 1 (1), b 0 (2);",
        never="c 0",
    ),
    "some of them counted": row(
        lambda: tagged(
            several(x={"a": 3, "b": 4}, y={"a": 3, "b": 4}),
            COMPARED=[COUNTED] * 2 + [""] * 2 + [COUNTED] * 2 + [""] * 2,
            FINAL_MISCLASSIFICATIONS=1.0,
        ),
        "the lowest cost or fewest misclassified points on how many",
    ),
    "that ended lowest": row(
        lambda: tagged(
            several(x={"a": np.inf, "b": np.inf}, y={"a": np.inf, "b": np.inf}),
            MINIMUM_REACHED="false",
            FINAL_COST={"a": 0.2, "b": 0.3},
        ),
        "a ended lowest on x and y.\n",
        never="no scheme",
    ),
}
UNMET = {
    "who comes closest": row(
        lambda: raced(NEVER, {1.0: (np.inf, 0.4)}, finer=False),
        "No scheme removes 90 % of the excess cost in 100 iterations on this grid: b comes "
        "closest and leaves 40% of it.",
        never="Fastest",
    ),
    "who comes closest to a tenth of zero weights": row(
        lambda: raced(NEVER, NEVER, start="normal", iterations="1"),
        "of zero weights in 1 iteration on this grid: a and b come closest and leave 50% of it.",
    ),
    "points": row(
        lambda: counted(0.3, 0.2),
        "points down to 10 % of all in 9 iterations on this grid: b comes closest and leaves 20% "
        "of the points.",
        "Which of a and b leaves the fewest points of x misclassified in 9 iterations",
        "The costs of x are not compared: such a cost is 0 at zero weights",
        "from the fewest misclassified points up: b, 0.2 misclassified at step size 1",
        never=("excess cost left", "lowest cost"),
    ),
    "an excess that is not known": row(
        lambda: tagged(raced(NEVER, NEVER, finer=False), MINIMUM=np.nan),
        "No scheme removes 90 % of the excess cost in 100 iterations on this grid.\n",
        never="closest",
    ),
    "who ended lowest": row(
        lambda: guessed({1.0: 0.25, 10.0: 0.24}, {1.0: 0.2427}),
        "Ended lowest: a. Its cost fell from 1 to 0.24 (step size 10) in 9 iterations; b ended "
        f"at 0.2427 (step size 1). {UNKNOWN}\n",
        never=("excess", "Fastest", "Why: "),
    ),
    "where one ended": row(
        lambda: guessed({1.0: 0.25}),
        f"The cost under a fell from 1 to 0.25 (step size 1) in 9 iterations. {UNKNOWN}\n",
        never=("lowest: ", "excess"),
    ),
    "equal ends": row(
        lambda: guessed({1.0: 0.25, 10.0: 0.25 - 1e-9}, {1.0: 0.25 + 1e-8}, {1.0: 1.5}),
        "Ended lowest: a and b. Their cost fell from 1 to 0.25 (step size 1) in 9 iterations; c",
    ),
    "a cost that rose": row(
        lambda: guessed({1.0: 1.1}, {1.0: 1.2}), "Its cost rose from 1 to 1.1", never="fell"
    ),
    "ends at finer step sizes": row(
        lambda: guessed({1.0: 0.24}, {1.0: 0.25}, finer={"a": {13: 0.2}, "b": {13: 0.3, 18: 0.19}}),
        "Ended lowest: b. Its cost fell from 1 to 0.19 (step size 13.3) in 9 iterations; a ended",
    ),
    "a finer end that rounding decides": row(
        lambda: guessed(
            *({1.0: 0.24}, {1.0: 0.25}),
            finer={"a": {13: np.nan}, "b": {13: 0.3, 18: 0.19}},
            by_rounding=[18],
        ),
        "Ended lowest: a. Its cost fell from 1 to 0.24",
    ),
    "schemes without an end": row(
        lambda: tagged(
            tagged(guessed({1.0: 0.2}, {1.0: 0.3}, {1.0: 0.4}), "b", verdict=names.DIVERGED),
            *("c", "step"),
            verdict=names.BY_ROUNDING,
        ),
        f"; b diverged at every step size; rounding decides where c ended. {UNKNOWN}",
        never="b ended",
    ),
    "one least cost that is not known": row(
        lambda: tagged(guessed({1.0: 0.2}, {1.0: 0.3}), "a", MINIMUM_REACHED="true"),
        "Ended lowest: a. ",
        never="No scheme removes",
    ),
    "functions of their own": row(
        lambda: guessed({1.0: 0.2}, {1.0: 0.3}, **PENALTY),
        "Each scheme minimizes another function; the cost under a fell from 1 to 0.2 (step "
        f"size 1); under b fell from 1 to 0.3 (step size 1) in 9 iterations. {UNKNOWN}",
        "cost.l2 penalizes the transformed weights, so each scheme minimizes another function",
        "of an unknown excess cost",
        never="Ended lowest",
    ),
}

RANKS = {
    "by their costs": row(
        lambda: tagged(ended(0.5, 0.1, 0.3, None), "a", STEP_TAG="10", verdict="cycling"),
        "After 100 iterations of gradient descent, from the lowest cost up: b, 0.1 at step size 1 ",
        "c, 0.3 at step size 1 (not converged); a, 0.5 at step size 10 (cycling). 1 of 4 jobs",
        never="excess cost left",
    ),
    "equal": row(
        lambda: tagged(ended(0.1 + 1e-9, 0.1), STEP_TAG={"a": "10", "b": "1"}),
        "After 100 iterations of gradient descent: a = b, 0.1 at step sizes 10 and 1 (not conv",
        never="from the lowest",
    ),
    "apart": row(lambda: ended(0.1 + 1e-5, 0.1), "up: b, 0.1 at", never=" = "),
    "equal, one of them in single precision": row(
        lambda: tagged(
            ended(0.1 + 1e-5, 0.1), **{names.setting("precision"): {"a": "float32", "b": "float64"}}
        ),
        "a = b, 0.1",
    ),
    "by the smallest excess of a start": row(
        lambda: tagged(solved(0.0, 1e-4), **{names.target("1e-1").column: {"a": 0.1, "b": 1000.0}}),
        "up: a, ",
        never=" = ",
    ),
    "with what is left": row(
        lambda: solved(0.0, 0.25),
        "up: a, under 1e-06 at step size 1 (not converged, under 0.0001% of the excess cost left)",
        "b, 0.25 at step size 1 (not converged, 25% of the excess cost left).",
        never="its own",
    ),
    "with what is left of zero weights": row(
        lambda: tagged(ended(0.1, 0.25, start="normal"), MINIMUM_REACHED="true"),
        "(not converged, 25% of the excess cost of zero weights left)",
    ),
    "with what is left of its own": row(
        lambda: solved(0.3, 0.1, MINIMUM={"a": 0.0015, "b": 0.0}),
        "10% of its own excess cost left",
        never="the excess cost left",
    ),
    "with minima that are one": row(
        lambda: solved(0.3, 0.1, MINIMUM={"a": 0.0008, "b": 0.0}),
        "10% of the excess cost left",
        never="its own",
    ),
    "with minima of which one was not solved for": row(
        lambda: tagged(solved(0.3, 0.1, MINIMUM={"a": 0.05, "b": 0.0}), "a", MINIMUM_REACHED=""),
        "10% of the excess cost left",
        never="its own",
    ),
    "nearly all left": row(
        lambda: solved(0.997, 0.99),
        "99% of the excess cost left",
        "100% of the excess cost left",
        never="1e+02",
    ),
    "of functions of their own": row(
        lambda: tagged(ended(0.25, 0.0, **PENALTY), MINIMUM_REACHED="true"),
        ", by how much of each scheme's own excess cost is left: b, under 0.0001% of its excess",
        " a, 25% of its excess cost left at step size 1",
        never="lowest cost",
    ),
    "of one function with a penalty": row(
        lambda: ended(0.25, 0.0, **IN_FEATURES), "from the lowest cost up", never="penalizes"
    ),
    "of equal counts": row(
        lambda: counted(7, 2, 2),
        "b = c, 2 misclassified at step size 1 (not converged); a, 7 misclassified",
    ),
    "over splits": row(
        lambda: runs(
            *(
                ("x", s, {1.0: (5.0, cost * (1 + n))}, {"dataset.seed": f"{n}", "data": f"{n}"})
                for s, cost in (("a", 0.3), ("b", 0.1))
                for n in range(3)
            )
        ),
        "up: b, 0.2 at step size 1 (not converged); a, 0.6 at",
        "(medians of 3 splits).",
        never="seed=",
    ),
    "over seeds that change nothing": row(
        lambda: runs(*(("x", "a", {1.0: (3, 0.1)}, {"seed": seed}) for seed in "12")),
        "seed has no effect here: its 2 values give equal results, which count as one",
        never="1 values",
    ),
    "of nothing": row(
        lambda: ended(None, None),
        "No scheme has a cost to compare. 2 of 2 jobs failed.",
        "Every job failed, so there is nothing to compare.",
        never=("diverged", "No descent"),
    ),
    "without a descent": row(
        lambda: tagged(ended(None, None, iterations="0"), verdict=""),
        "No descent was made (iterations=0): the figures show the points under each scheme.",
        "No descent was made (iterations=0): the figures show what the schemes did to the points.",
        "What do a and b make of the points of x?",
        never=("astest", "No scheme"),
    ),
    "of which one has no descent": row(
        lambda: runs(
            *(("x", name, GRID, {"iterations": count}) for name, count in zip("abc", "099"))
        ),
        "Fastest on this grid: b and c.",
        "Which of a, b and c lowers",
        never="No descent",
    ),
    "of other optimizers": row(
        lambda: tagged(runs(("x", "a", NEVER), ("x", "b", GRID)), OPTIMIZER={"a": "sgd", "b": "b"}),
        "At the end, from the lowest cost up",
        "lowers the cost of x furthest?",
        never="gradient descent",
    ),
    "of one scheme over its batches": row(
        lambda: saturating(3, 4, 30),
        "Beyond a batch of 10 larger batches save less than half of the steps under a.",
        never="Of 3 problems",
    ),
    "of batches that do not arrive": row(lambda: saturating(3, 4, np.inf), never="Beyond"),
    "all of whose runs rounding decides": row(
        lambda: tagged(ended(0.1, 0.2), "a", verdict=names.BY_ROUNDING),
        "gradient descent: b, 0.2",
        "1 of 2 runs is decided by rounding",
        never=("a, 0.1", "diverged"),
    ),
    "of a chosen step size": row(
        lambda: tagged(several(x={"a": 3}, y={"a": 3}), STEP_CHOSEN="true"),
        "each scheme at its shown step size",
        never="best",
    ),
    "without any target": row(
        lambda: tagged(
            ended(0.5, 0.1),
            **{names.target("1e-1").column: np.nan, names.target("1e-2").column: np.nan},
        ),
        "from the lowest cost up: b, 0.1 at step size 1",
        never=("astest:", "No scheme"),
    ),
    "equal up to a share of the lowest, where no excess is known": row(
        lambda: tagged(ended(4.0, 4.0 + 3e-6, 4.0 + 9e-6), MINIMUM=np.nan),
        "up: a = b, 4 at step size 1 (not converged); c, 4 at step size 1",
    ),
    "over splits and starts": row(
        lambda: runs(*repeated(4, a=[3]), starts="3"), "(medians of 4 splits x 3 starts)."
    ),
    "over splits of which some failed": row(
        lambda: runs(*repeated(4, a=[3]), *repeated(2, b=[3])),
        "(medians of 2 splits or 4 splits).",
    ),
    "that diverged": row(
        lambda: diverged(4e-7, 0.004),
        "No scheme has a cost to compare. a and b diverged at every step size. Every step size "
        "tried is above 2/L of a and b, so nothing is known of smaller ones: "
        "step_sizes='${decades:-9,-1}' begins below.",
        never="jobs",
    ),
    "that diverged below their limits": row(
        lambda: diverged(1.0, 4.0), "a and b div", never="above"
    ),
    "of which one diverged above its limit": row(
        lambda: tagged(ended(0.1, 0.2, THRESHOLD=0.5), "a", verdict=names.DIVERGED),
        "a diverged at every step size.",
        never=("begins below", "b div"),
    ),
    "of several experiments that diverged": row(
        lambda: diverged(0.5, experiments="xy"),
        "2 of 2 jobs diverged at every step size.\n",
        "a diverged at every step size. Every",
    ),
    "that diverged on some splits": row(
        lambda: diverged_on(0, 2),
        "On some of 3 splits, b diverged at the step size that is best over all of them, and "
        "has no cost to compare.",
        never="b, 0",
    ),
    "whose job diverged on one split": row(
        lambda: tagged(
            diverged_on(0, 1, 2), "b", "scheme", verdict=["converged", "diverged", "converged"]
        ),
        "1 of 6 jobs diverged at every step size.",
        never="b diverged at every",
    ),
}

GRIDS = {
    "at both ends": row(
        lambda: gridded(LAST, FIRST, MIDDLE),
        "The best step size of a is at the end of those tried: step_sizes='${decades:0,4}' "
        "looks further.",
        "The best step size of b is at the end of those tried: step_sizes='${decades:-2,2}'",
        never=(" on some splits", "beyond"),
    ),
    "at an end on some splits": row(
        lambda: runs(
            *(
                ("x", s, grid, {"dataset.seed": f"{n}", "data": f"{n}"})
                for s, grids in (("a", (LAST, MIDDLE)), ("b", (MIDDLE, MIDDLE)))
                for n, grid in enumerate(grids)
            )
        ),
        "The best step size of a is at the end of those tried on some splits: ",
    ),
    "beyond": row(
        lambda: runs(("x", "a", LAST, {"finer": {34: 2.0}}), ("x", "b", MIDDLE)),
        "The best step size of a is beyond those of the grid, by less than a factor of ten.",
        never="end of those",
    ),
    "within": row(
        lambda: runs(("x", "a", LAST, {"finer": {30: 2.0}}), ("x", "b", MIDDLE)),
        never=("beyond", "end of those"),
    ),
    "above 2/L": row(
        lambda: gridded(MIDDLE, MIDDLE, MIDDLE, THRESHOLD={"a": 7e-6, "b": 0.05, "c": 2.0}),
        "Every step size tried is above 2/L of a and b, so nothing is known of smaller ones: "
        "step_sizes='${decades:-8,2}' begins below.",
        never="of c",
    ),
    "above 2/L on one split": row(
        lambda: tagged(
            runs(*repeated(2, a=[3], b=[4])), role="scheme", THRESHOLD=[0.02, 2.0, 2.0, 2.0]
        ),
        never="above 2/L",
    ),
}
FAULTS = {
    "a ridge": row(
        lambda: tagged(ended(0.1, 0.2), **RIDGE, RIDGE_TOUCHED=4.0),
        "The constant 1e-7 that protects against division by zero matters under a and b: 4 of "
        "30 directions are scaled too little; ridge=0 avoids it.",
    ),
    "ridges": row(
        lambda: tagged(
            ended(0.1, 0.2, 0.3, **{"normalizer.ridge": "1e-07"}),
            **{**RIDGE, "RIDGE": {"a": 1e-7, "b": 0.1, "c": 0.1}},
            RIDGE_TOUCHED={"a": 1.0, "b": 4.0, "c": 0.0},
        ),
        "The constant 1e-7 to 0.1 that protects against division by zero matters under a and "
        "b: up to 4 of 30 directions are scaled too little; normalizer.ridge=0 avoids it.",
    ),
    "a ridge that holds nothing": row(
        lambda: tagged(ended(0.1, 0.2), **RIDGE, RIDGE_TOUCHED=0.0), never="constant"
    ),
    "features": row(
        lambda: tagged(tagged(ended(0.1, 0.2, 0.3), "ab", "scheme", **LOST), "c", **ONE_FEATURE),
        "a and b leave 2 of 3 features without variation (lat, year), so no descent sees "
        "them; standard keeps them.",
        "c cannot scale 1 of 3 features (e1): it varies too little for scikit-learn, and stays "
        "as before; give it in a smaller unit, or use standard.",
    ),
    "features, worst on one split": row(
        lambda: tagged(
            runs(*repeated(2, a=[3])),
            role="scheme",
            **{**LOST, "FEATURES_LOST": [1.0, 2.0], "LOST_NAMES": ["lat", "lat, year"]},
        ),
        "a leaves 2 of 3 features without variation (lat, year), ",
        never="1 of 3",
    ),
    "a start that differs": row(
        lambda: ended(0.1, 0.2, start="normal"),
        "The start differs between the schemes (x): start=normal draws the same weights for all",
    ),
    "one start": row(lambda: ended(0.1, start="normal"), never="The start"),
    "starts by hand": row(
        lambda: runs(*(("x", s, GRID, {"start": s}) for s in ("zeros", "normal"))),
        never="The start",
    ),
    "a start that is one function for some": row(
        lambda: runs(*(("x", s, GRID, {"start": s}) for s in ("same_function", "normal"))),
        "The start is one function of the training points under same_function; no weights "
        "under normal make that function, so start=normal draws another there (x).",
        never="The start differs",
    ),
    "a start that is one function": row(
        lambda: ended(0.1, 0.2, start="same_function"),
        "The start is the same function of the training points under every scheme (x); on test",
        never="start=normal",
    ),
    "networks": row(
        lambda: ended(0.1, 0.2, model="mlp", start="normal", refine="True"),
        "The start differs between the schemes (x): each draws the same weights, and these",
        "refine=true has no effect on a network (x): its targets follow from the lowest cost",
        never="start=same_function",
    ),
    "one network": row(
        lambda: ended(0.1, model="mlp", start="normal", refine="auto"),
        "The weights at the start are drawn (x), because zero weights of a network are a",
        never=("refine", "differs"),
    ),
    "networks of which one converged at its own lowest cost": row(
        lambda: resting(0.1),
        "Of a network, converged means at rest near the lowest cost that the scheme itself "
        "saw; measured by the lowest cost seen in this comparison (0.1), a did not converge.",
    ),
    "networks that are near the lowest cost": row(lambda: resting(0.4), never="did not converge"),
    "a run at rest above zero weights": row(
        lambda: tagged(ended(1.1, 0.2), role="step", verdict="converged"),
        "Converged means at rest, with little left of the excess of a run's own start; under "
        "a such a run ends above the cost of zero weights (x).",
    ),
    "a run at rest at zero weights": row(
        lambda: tagged(ended(1.0, 0.2), role="step", verdict="converged"),
        never="above the cost of zero weights",
    ),
    "theory": row(
        lambda: tagged(ended(0.1, 0.2, 0.3), "ac", "scheme", NOTE="it rains", DESCEND_AGAIN="path"),
        "Note: a; c: it rains.",
        "a; c: judged again, by other rules or at another step size; what belonged to the "
        "earlier ones is left out (path); the command of the comparison",
        never="b: it",
    ),
    "no step size that converged on every split": row(
        lambda: tagged(runs(*repeated(2, a=[3])), role="scheme", LARGEST_CONVERGENT=[1.0, np.nan]),
        "No step size that was tried converged on every split under any scheme.",
    ),
}


def targets_of(*jobs):
    """Return jobs, each (experiment, encoding, what its target was taken for)."""
    made = runs(*((job[0], f"s{n}", GRID) for n, job in enumerate(jobs)))
    columns = {names.setting("dataset.encoding"): [job[1] for job in jobs]}
    columns[names.TARGET_SUMMARY.column] = [job[2] for job in jobs]
    schemes = made.of_role("scheme").assign(**columns)
    return replace(made, runs=pd.concat([made.of_role("sweep"), schemes]))


TARGETS = [
    ([("x", "0", "A")] * 3, ["target: A"]),
    (
        [("x", None, "1 to 9"), ("x", None, "2 to 9")],
        ["target: 1 to 9 (of the first training set)"],
    ),
    (
        [("x", "a=0", "A"), ("y", "a=0", "A"), ("z", "b=0", "B"), ("z", None, "C")],
        ["target of x and y: A", "target of z: B", "target of z: C"],
    ),
    ([("x", None, None), ("y", "a=0", "A")], ["target: A"]),
    ([("x", None, None)], []),
]


@pytest.mark.parametrize(("jobs", "lines"), TARGETS)
def test_what_a_target_was_taken_for(jobs, lines):
    assert closing.targets(targets_of(*jobs)) == lines


# The test errors by scheme, of which a is the faster one, and what is said of predictions.
BOTH, FASTER = "Predicts best: ", "The scheme that descends faster predicts "
PREDICTIONS = {
    "best": (
        {"a": [0.1] * 6, "b": [0.2] * 6},
        [
            f"{BOTH}a (10.0% of the test points misclassified, median of 6 splits).",
            f"{FASTER}best, too.",
        ],
        ["not tested", "difference", "sure"],
    ),
    "worse": (
        {"a": [0.2] * 6, "b": [0.1] * 6},
        [f"{BOTH}b (10.0%", f"{FASTER}worse, on 6 splits: 20.0% of the test points misclassified"],
        ["best, too", "difference"],
    ),
    "equally well": ({"a": [0.1] * 6, "b": [0.1] * 6}, [f"{BOTH}a = b (10.0%"], [FASTER]),
    "on one split": (
        {"a": [0.1], "b": [0.2]},
        ["misclassified); one split cannot show a difference from b.", "which cannot show a"],
        ["1 splits"],
    ),
    "on few splits": (
        {"a": [0.1] * 5, "b": [0.2] * 5},
        ["median of 5 splits); 5 splits are too few to show a difference from b."],
        [],
    ),
    "on splits that differ": (
        {"a": [0.1] * 6, "b": [0.2, 0.05, 0.2, 0.05, 0.2, 0.2]},
        ["median of 6 splits); 6 splits show no difference from b."],
        [],
    ),
    "with a descent that has not arrived": (
        {"a": [0.1] * 6, "b": [0.2] * 6, "unarrived": ["b"]},
        ["; not judged against b, because a descent has not arrived."],
        [FASTER, "show"],
    ),
    "not at all": (
        {},
        ["Whether the faster scheme also predicts better was not tested"],
        ["Predicts best"],
    ),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_who_predicts_best(name):
    errors, said, unsaid = PREDICTIONS[name]
    sweep = runs(*repeated(6, a=[3], b=[5]))
    text = " ".join(fastest.answers(sweep, "x", splits(**errors) if errors else NOTHING))
    assert all(phrase in text for phrase in said), text
    assert not any(phrase in text for phrase in unsaid), text


def test_predictions_that_are_not_of_a_difference_are_not_related_to_the_speed():
    undecided = fastest.answers(runs(*repeated(3, a=[3], b=[5])), "x", splits(a=[0.1], b=[0.2]))
    assert "descends faster" not in " ".join(undecided)
    folded = tagged(ended(0.1, 0.2), "a", FOLDS_COST=0.3)
    assert "not tested" not in " ".join(everything(folded))
    other = splits(a=[0.1], b=[0.2]).assign(experiment="y")
    assert "not tested" in " ".join(everything(ended(0.1, 0.2), other))


def all_said():
    """Yield what is said in any row."""
    for table in (FASTEST, PROBLEMS, UNMET, RANKS, GRIDS, FAULTS):
        for _, said, _ in table.values():
            yield from said
    for _, said, _ in PREDICTIONS.values():
        yield from said


def check(make, said, unsaid):
    text = ""
    for part in everything(make()):
        text += part
        if all(phrase in text for phrase in said) and not unsaid:
            return
    for phrase in said:
        assert phrase in text, text
    for phrase in unsaid:
        assert phrase not in text, text


@pytest.mark.parametrize("name", FASTEST)
def test_who_is_fastest(name):
    check(*FASTEST[name])


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", PROBLEMS)
def test_on_how_many_problems(name):
    check(*PROBLEMS[name])


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", UNMET)
def test_what_nobody_reaches(name):
    check(*UNMET[name])


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", RANKS)
def test_in_which_order_schemes_end(name):
    check(*RANKS[name])


@pytest.mark.parametrize("name", GRIDS)
def test_where_a_grid_ends(name):
    check(*GRIDS[name])


@pytest.mark.parametrize("name", FAULTS)
def test_what_schemes_did_not_do_and_notes(name):
    check(*FAULTS[name])
