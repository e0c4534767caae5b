"""Which scheme is faster, by how much, and how sure that is: pairs, profiles, ranks.

A problem is what two schemes can be paired on: one data set, cost and setting, one draw of the
data, its split and the start, and one of the starts. What is compared is each scheme's best step
size; an unreached target is infinite.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import bdtr

from normbench.results import names
from normbench.results.runs import Sweep

Array = NDArray[np.float64]
TARGETS = tuple(names.TARGETS)
RESAMPLES = 2000
COVERAGE = 0.95
# No interval of a median of fewer values covers 95 percent: 2 * 0.5**5 is 6 percent.
FEWEST = 6
SURE = f"an interval of 95 percent and a verdict need {FEWEST} pairs or more"
# What repeats a problem: the split, the draw of the data, and that of the start.
DRAWS = ("dataset.split_seed", "dataset.seed", "seed")
# Parameters that make no other problem: what is compared, what an experiment has in common, what a
# job finds out (one that failed has not), what a scheme may choose for itself, and what only says
# what is done with the runs afterwards.
SAME_PROBLEM = ("normalizer", "dataset", "cost", "dataset.encoding", "step_sizes", "shown_step")
AFTERWARDS = ("normalizer.", "search.", "rules.", "study.", "record", "theory", "data_dir")
OWN = "each scheme's own"


def reached(sweeps: list[Sweep], target: str = "1e-2", measure: str = "iterations") -> pd.DataFrame:
    """Return one row a scheme and problem: experiment, setting, split, start, scheme, value.

    value: iterations or seconds from which on the best step size's cost is at most the target;
    infinite where it never is, where every step size diverged, and where the job failed. split:
    the draw of the data, its split and the start. The target is one for all schemes of a problem:
    the lowest, where the least cost is only the lowest that each job saw, or the scheme keeps part
    of the points; a scheme with another is counted by its costs. A job without a descent
    (`iterations=0`) has no row; neither has one whose seconds are not known, or whose starts would
    have to be counted by costs that are not recorded.
    """
    parts = [one.of_role(names.SCHEME).assign(sweep=number) for number, one in enumerate(sweeps)]
    every = pd.concat(parts, ignore_index=True)
    every = every[~without_descent(every)]
    best = [_best_runs(sweep) for sweep in sweeps]
    known_as = _scheme_names(every)
    places = [
        {
            "experiment": row["experiment"],
            "setting": ", ".join(f"{k}={v}" for k, v in made.items() if k not in DRAWS),
            "split": ", ".join(str(row.get(names.setting(name), "0")) for name in DRAWS),
        }
        for row, made in zip(every.to_dict("records"), problems(every, "sweep"))
    ]
    goals = _lower_goals(every, places, target)
    rows = []
    for row, place, goal in zip(every.to_dict("records"), places, goals):
        number = row["sweep"]
        made = best[number].get(row["run_id"])
        values = _values(sweeps[number], row, made, target, measure, goal)
        rows += [
            {
                **place,
                "start": start,
                "scheme": known_as[row["run_id"]],
                "value": value,
            }
            for start, value in enumerate(values)
        ]
    columns = ["experiment", "setting", "split", "start", "scheme", "value"]
    table = pd.DataFrame(rows, columns=columns).dropna(subset="value")
    # A scheme that was run twice on one problem counts once, as it was last.
    return table.drop_duplicates(columns[:-1], keep="last", ignore_index=True)


def without_descent(schemes: pd.DataFrame) -> pd.Series:
    """Return, by run, whether it only fits its scheme and records: `iterations=0`."""
    asked = schemes.get(names.setting("iterations"), pd.Series("", index=schemes.index))
    return asked.astype(str) == "0"


def _best_runs(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Return each scheme's best step run, by the scheme's: the one shown may be another.

    The lowest final cost among the settled, and among the finite where none settled.
    """
    found: dict[str, dict[str, Any]] = {}
    order: dict[str, tuple[Any, ...]] = {}
    for row in sweep.of_role(names.STEP).to_dict("records"):
        cost = row.get(names.FINAL_COST.column)
        if row["verdict"] == names.DIVERGED or cost is None or pd.isna(cost):
            continue
        # Of equal ones, the one that is shown.
        place = (row["verdict"] != names.SETTLED, cost, row.get(names.BEST.column) != "true")
        if row["parent"] not in found or place < order[row["parent"]]:
            found[row["parent"]], order[row["parent"]] = row, place
    return found


def _lower_goals(
    schemes: pd.DataFrame, places: list[dict[str, str]], target: str
) -> list[float | None]:
    """Return, by run, the target of its problem's other schemes where that is lower than its own.

    Beyond the rounding of two solutions for one least cost.
    """
    own = schemes.get(names.target(target).column, pd.Series(np.nan, index=schemes.index))
    keys = [tuple(place.values()) for place in places]
    lowest: dict[Any, float] = {}
    for key, goal in zip(keys, own):
        if np.isfinite(goal):
            lowest[key] = min(goal, lowest.get(key, goal))
    return [
        lowest[key] if np.isfinite(goal) and goal - lowest[key] > 1e-6 * abs(goal) else None
        for key, goal in zip(keys, own)
    ]


def _first_held(costs: Mapping[int, float], goal: float) -> float:
    """Return the step from which on a run's costs stay at or below a goal; infinite without."""
    above = [step for step, cost in costs.items() if not cost <= goal]
    first = max(above, default=-1) + 1
    return float(first) if first in costs else float("inf")


def _values(
    sweep: Sweep,
    scheme: dict[str, Any],
    best: dict[str, Any] | None,
    target: str,
    measure: str,
    goal: float | None,
) -> list[float]:
    starts = starts_of(scheme)
    if best is None:
        return [float("inf")] * starts
    fit = scheme.get(names.FIT_SECONDS.column, float("nan"))
    each = scheme.get(names.SECONDS_A_STEP.column, float("nan"))
    if goal is not None:
        if starts > 1:
            return [float("nan")] * starts
        value = _first_held(sweep.series(best["run_id"], names.TRAIN_COST.key), goal)
        return [value if measure == "iterations" else float(fit + value * each)]
    if starts == 1:
        counts = [best.get(names.reached(target, measure).column)]
    else:
        found = sweep.series(best["run_id"], names.start_reached(target).key)
        counts = [found.get(start) for start in range(starts)]
    values = [float("inf") if count is None or pd.isna(count) else count for count in counts]
    if measure == "iterations" or starts == 1:
        return values
    # The scheme's fitting time, and one run's share of the descent, which makes all runs together.
    return [float(fit + value * each) for value in values]


def starts_of(scheme: Mapping[Any, Any]) -> int:
    """Return how many starts a scheme run's job had."""
    try:
        return int(scheme.get(names.setting("starts")) or 1)
    except ValueError:
        return 1


def problems(schemes: pd.DataFrame, sweep: str | None = None) -> list[dict[str, str]]:
    """Return, by run, what makes its problem: the settings that were varied, by their names.

    schemes: scheme runs; sweep: the column that tells of which sweep each is, where they are of
    several. A setting that a scheme had several values of in one experiment makes other problems;
    one that each scheme of a sweep has to itself (`${per_scheme:...}`) is the same for them all.
    """
    found: dict[Any, dict[str, str]] = {place: {} for place in schemes.index}
    settings = [
        name
        for name in schemes.columns
        if name.startswith(names.PARAMS)
        and name.removeprefix(names.PARAMS) not in SAME_PROBLEM
        and not name.startswith(tuple(map(names.setting, AFTERWARDS)))
    ]
    for _, rows in schemes.groupby("experiment", sort=False):
        for name in settings:
            if rows[name].nunique(dropna=False) == 1 or _one_each(rows, name):
                continue
            choice = name.rpartition(".")[0]  # such as the optimizer's, whose options come with it
            if choice in rows and _one_each(rows, name, choice):
                continue
            for _, part in rows.groupby(sweep) if sweep else [(None, rows)]:
                own = part[name].nunique(dropna=False) > 1 and _one_each(part, name)
                for place, value in part[name].dropna().items():
                    found[place][name.removeprefix(names.PARAMS)] = OWN if own else str(value)
    return list(found.values())


def _one_each(schemes: pd.DataFrame, name: str, by: str = "normalizer") -> bool:
    """Return whether each normalizer, or each option of a choice, has one value of a setting."""
    return bool((schemes.groupby(by)[name].nunique(dropna=False) <= 1).all())


def _scheme_names(schemes: pd.DataFrame) -> dict[str, str]:
    """Return, by run, the normalizer's name, with its own options where they were varied."""
    own_option = names.setting("normalizer.")
    options = [name for name in schemes.columns if name.startswith(own_option)]
    found = {}
    for normalizer, same in schemes.groupby("normalizer"):
        own = [name for name in options if same[name].nunique(dropna=False) > 1]
        for row in same.to_dict("records"):
            extra = [f"{name.removeprefix(own_option)}={row[name]}" for name in own]
            found[row["run_id"]] = ", ".join([str(normalizer), *extra])
    return found


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row an experiment, setting and scheme: median and quartiles over its problems.

    Those are its starts and draws; a column `setting` is there where there are several. Order
    statistics, never between two values, so that an unreached problem is infinite and is not
    averaged with one that was reached.
    """
    rows = []
    for (experiment, setting, scheme), part in table.groupby(
        ["experiment", "setting", "scheme"], sort=False
    ):
        q1, median, q3 = np.quantile(part["value"], [0.25, 0.5, 0.75], method="higher")
        row = {"experiment": experiment, "setting": setting, "scheme": scheme}
        rows.append({**row, "problems": len(part), "median": median, "q1": q1, "q3": q3})
    columns = ["experiment", "setting", "scheme", "problems", "median", "q1", "q3"]
    return _with_settings(pd.DataFrame(rows, columns=columns))


def _with_settings(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without its column of settings where nothing was varied."""
    return table if (table["setting"] != "").any() else table.drop(columns="setting")


def paired(table: pd.DataFrame, least: int = 1) -> pd.DataFrame:
    """Return one row a pair of schemes, experiment and setting: who is faster, by pairs.

    table: from `reached`. least: how many pairs two schemes must have; the others are left out.
    Columns: setting, where there are several; pairs, over starts and draws; wins, the share of
    pairs in which the first is faster (a tie, two unreached ones too, is half a win); ratio, the
    median of the second's value over the first's, and the interval `low` to `high` of it (see
    `interval`); verdict: `faster`, `slower`, or `none` where the interval holds 1, or is none
    because there are fewer than 6 pairs.
    """
    rows = []
    for (experiment, setting), part in table.groupby(["experiment", "setting"], sort=False):
        wide = _wide(part)
        schemes, values = list(wide.columns), wide.to_numpy()
        there = ~np.isnan(values)
        pairs = there.astype(float).T @ there
        for one, other in zip(*np.nonzero(np.triu(pairs >= max(least, 1), 1))):
            both = values[there[:, one] & there[:, other]]
            row = {"experiment": experiment, "setting": setting}
            row |= {"scheme": schemes[one], "against": schemes[other]}
            rows.append({**row, **compare(both[:, one], both[:, other])})
    columns = ["experiment", "setting", "scheme", "against"]
    columns += ["pairs", "wins", "ratio", "low", "high", "verdict"]
    return _with_settings(pd.DataFrame(rows, columns=columns))


def repeated(sweep: Sweep) -> pd.DataFrame:
    """Return the pairs of a sweep, by iterations to 1e-2, that several starts or draws make."""
    return paired(reached([sweep]), least=2)


def compare(first: Array, second: Array) -> dict[str, Any]:
    """Return the comparison of two schemes' values `(n,)`, paired; see `paired`."""
    logs = _log_ratios(first, second)
    wins = float(np.mean(np.where(logs > 0, 1.0, np.where(logs == 0, 0.5, 0.0))))
    low, high = interval(logs)
    verdict = "faster" if low > 0 else "slower" if high < 0 else "none"
    middle = float(_median(logs))
    ratio, least, most = (float(np.exp(part)) for part in (middle, low, high))
    return {
        "pairs": len(logs),
        "wins": wins,
        "ratio": ratio,
        "low": least,
        "high": most,
        "verdict": verdict,
    }


def _log_ratios(first: Array, second: Array) -> Array:
    """Return `log(second / first)` `(n,)`, plus or minus infinity where one is unreached.

    0 where both are. Iterations from the start itself (0) count as one, so that a ratio exists.
    """
    least = min(1.0, float(np.min(np.r_[first[first > 0], second[second > 0], 1.0])))
    one, other = np.maximum(first, least), np.maximum(second, least)
    with np.errstate(invalid="ignore"):
        logs = np.log(other) - np.log(one)
    return np.where(np.isinf(one) & np.isinf(other), 0.0, logs)


def interval(values: Array) -> tuple[float, float]:
    """Return an interval of the median of what values `(n,)` are drawn from; NaN for n < 6.

    From the k-th value from below to the k-th from above, with the largest k for which that holds
    the median with a probability of 95 percent or more, whatever the distribution is: how many
    values lie below it is binomial. Infinite values are allowed. Conover, Practical Nonparametric
    Statistics (1999), section 3.2.
    """
    count = len(values)
    place = int(np.sum(bdtr(np.arange(count), count, 0.5) <= (1 - COVERAGE) / 2))
    if place == 0:
        return float("nan"), float("nan")
    ordered = np.sort(values)
    return float(ordered[place - 1]), float(ordered[count - place])


def _median(values: Array) -> Array:
    """Return the median along the last axis, infinities among the values too."""
    ordered = np.sort(values, axis=-1)
    size = values.shape[-1]
    low, high = ordered[..., (size - 1) // 2], ordered[..., size // 2]
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    return np.where(np.isnan(middle), 0.0, middle)  # between minus and plus infinity


def _wide(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row a problem and one column a scheme, in the order in which they were run."""
    schemes = list(dict.fromkeys(table["scheme"]))
    keys = ["experiment", "setting", "split", "start"]
    return table.pivot(index=keys, columns="scheme", values="value")[schemes]


def profile(table: pd.DataFrame) -> pd.DataFrame:
    """Return performance profiles, tidy: scheme, factor, share.

    share: of the problems that the scheme brings to the target within factor times the value of
    the best scheme; at factor infinity, those that it brings there at all. table: from `reached`;
    only problems that every scheme was run on count. Dolan, More, "Benchmarking optimization
    software with performance profiles", Mathematical Programming 91 (2002).
    """
    wide = _wide(table).dropna()
    if wide.empty:
        return pd.DataFrame(columns=["scheme", "factor", "share"])
    values = wide.to_numpy()
    least = min(1.0, float(values[values > 0].min(initial=1.0)))
    values = np.maximum(values, least)
    best = values.min(axis=1, keepdims=True)
    factors = np.where(np.isfinite(values), values / np.where(np.isfinite(best), best, 1.0), np.inf)
    points = np.unique(np.r_[1.0, factors[np.isfinite(factors)]])
    rows = [
        {"scheme": name, "factor": point, "share": float(np.mean(factors[:, column] <= point))}
        for column, name in enumerate(wide.columns)
        for point in points
    ]
    return pd.DataFrame(rows)


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row an experiment and one column a scheme: the mean rank over its problems.

    1 is the fastest; equal values share the mean of their ranks, unreached ones the last.
    """
    wide = _wide(table).dropna()
    ranked = wide.rank(axis=1, method="average")
    return ranked.groupby(level="experiment", sort=False).mean()


def leaderboard(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return one row a scheme, the best first: mean rank, its interval, problems, and shares.

    rank: over the experiments, each counting once. `low` to `high`: the middle 95 percent of 2,000
    resamples (seeded) of the problems of each experiment and of the experiments; NaN where there
    are fewer than 6 experiments, or of a single one fewer than 6 problems. Of few experiments it is
    narrow: over 6 it holds the true mean rank 7 times in 8. solved: share of problems brought to
    the target; won: share of problems on which no scheme was faster.
    """
    wide = _wide(table).dropna()
    if wide.empty:
        return pd.DataFrame(columns=["scheme", "rank", "low", "high", "solved", "won"])
    ranked = wide.rank(axis=1, method="average")
    places = list(ranked.groupby(level="experiment", sort=False).indices.values())
    units = len(places) if len(places) > 1 else len(wide)
    rng = np.random.default_rng(seed)
    draws = [place[rng.integers(0, len(place), (RESAMPLES, len(place)))] for place in places]
    chosen = rng.integers(0, len(places), (len(places), RESAMPLES))
    rows = []
    for name in wide.columns:
        own, values = ranked[name].to_numpy(), wide[name]
        each = np.array([own[drawn].mean(axis=1) for drawn in draws])
        means = np.sort(np.take_along_axis(each, chosen, axis=0).mean(axis=0))
        tail = int((1 - COVERAGE) / 2 * (RESAMPLES - 1))
        rows.append(
            {
                "scheme": name,
                "rank": float(np.mean([own[place].mean() for place in places])),
                "low": float(means[tail]) if units >= FEWEST else float("nan"),
                "high": float(means[-1 - tail]) if units >= FEWEST else float("nan"),
                "solved": float(np.isfinite(values).mean()),
                "won": float(((values == wide.min(axis=1)) & np.isfinite(values)).mean()),
                "problems": len(wide),
            }
        )
    return pd.DataFrame(rows).sort_values(["rank", "scheme"], ignore_index=True)
