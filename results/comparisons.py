"""Which scheme is faster, by how much, and how sure that is: pairs, profiles, ranks.

A problem is what two schemes can be paired on: one data set, cost and setting, one split and one
start. What is compared is each scheme's best step size; an unreached target is infinite.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from results.runs import Sweep

Array = NDArray[np.float64]
TARGETS = ("1e-1", "1e-2", "1e-3")
MEASURES = ("iterations", "seconds")
RESAMPLES = 2000
COVERAGE = 0.95
SPLIT = "params.dataset.split_seed"
# Parameters that make no other problem: what is paired over, what a scheme may choose for itself,
# and what only says what is done with the runs afterwards.
SAME_PROBLEM = ("params.normalizer", "params.dataset", "params.cost", SPLIT, "params.step_sizes")
AFTERWARDS = ("normalizer.", "search.", "rules.", "record", "theory", "data_dir")
SAME_PREFIX = tuple(f"params.{name}" for name in AFTERWARDS)


def reached(sweeps: list[Sweep], target: str = "1e-2", measure: str = "iterations") -> pd.DataFrame:
    """Return one row a scheme and problem: experiment, setting, split, start, scheme, value.

    value: iterations or seconds from which on the best step size's cost is at most the target;
    infinite where it never is, where every step size diverged, and where the job failed.
    """
    every = pd.concat([sweep.of_role("scheme") for sweep in sweeps], ignore_index=True)
    settings = _settings(every)
    rows = []
    for sweep in sweeps:
        steps = sweep.of_role("step")
        best = steps[steps.get("tags.best", pd.Series("", index=steps.index)) == "true"]
        by_parent = {row["parent"]: row for row in best.to_dict("records")}
        for row in sweep.of_role("scheme").to_dict("records"):
            values = _values(sweep, row, by_parent.get(row["run_id"]), target, measure)
            rows += [
                {
                    "experiment": row["experiment"],
                    "setting": settings[row["run_id"]],
                    "split": str(row.get(SPLIT, "0")),
                    "start": start,
                    "scheme": _scheme(row, every),
                    "value": value,
                }
                for start, value in enumerate(values)
            ]
    columns = ["experiment", "setting", "split", "start", "scheme", "value"]
    table = pd.DataFrame(rows, columns=columns)
    # A scheme that was run twice on one problem counts once, as it was last.
    return table.drop_duplicates(columns[:-1], keep="last", ignore_index=True)


def _values(
    sweep: Sweep, scheme: dict[str, Any], best: dict[str, Any] | None, target: str, measure: str
) -> list[float]:
    starts = _starts(scheme)
    if best is None:
        return [float("inf")] * starts
    name = f"iterations_to_{target}"
    if starts == 1:
        counts = [best.get(f"metrics.final/{name}")]
    else:
        found = sweep.series(best["run_id"], f"start/{name}")
        counts = [found.get(start) for start in range(starts)]
    values = [float("inf") if count is None or pd.isna(count) else count for count in counts]
    if measure == "iterations":
        return values
    return [_seconds(scheme, best, target, value) for value in values]


def _seconds(scheme: dict[str, Any], best: dict[str, Any], target: str, iterations: float) -> float:
    """Return the scheme's fitting time and that of so many iterations of one run.

    A run's share of its grid's descent, which makes all its runs together.
    """
    fit = scheme.get("metrics.time/fit_seconds", float("nan"))
    median = best.get(f"metrics.final/iterations_to_{target}")
    seconds = best.get(f"metrics.final/seconds_to_{target}")
    if not np.isfinite(iterations) or median is None or pd.isna(median) or pd.isna(seconds):
        return float("inf")
    return float(fit + (seconds - fit) * (iterations / median if median else 0.0))


def _starts(scheme: dict[str, Any]) -> int:
    try:
        return int(scheme.get("params.starts") or 1)
    except ValueError:
        return 1


def _settings(schemes: pd.DataFrame) -> dict[str, str]:
    """Return, by run, what else was varied: other settings make other problems.

    A setting that each scheme has to itself (`${per_scheme:...}`) makes none.
    """
    varied = [
        name
        for name in schemes.columns
        if name.startswith("params.")
        and name not in SAME_PROBLEM
        and not name.startswith(SAME_PREFIX)
        and (schemes.groupby("normalizer")[name].nunique(dropna=False) > 1).any()
    ]
    return {
        row["run_id"]: ", ".join(f"{name.removeprefix('params.')}={row[name]}" for name in varied)
        for row in schemes.to_dict("records")
    }


def _scheme(row: dict[str, Any], schemes: pd.DataFrame) -> str:
    """Return the normalizer's name, with its own options where the sweep varies them."""
    same = schemes[schemes["normalizer"] == row["normalizer"]]
    own = [
        name
        for name in schemes.columns
        if name.startswith("params.normalizer.") and same[name].nunique(dropna=False) > 1
    ]
    extra = [f"{name.removeprefix('params.normalizer.')}={row[name]}" for name in own]
    return ", ".join([row["normalizer"], *extra])


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row an experiment and scheme: median and quartiles over starts and splits.

    Order statistics, never between two values, so that an unreached problem is infinite and is
    not averaged with one that was reached.
    """
    rows = []
    for (experiment, scheme), part in table.groupby(["experiment", "scheme"], sort=False):
        q1, median, q3 = np.quantile(part["value"], [0.25, 0.5, 0.75], method="higher")
        row = {"experiment": experiment, "scheme": scheme, "problems": len(part)}
        rows.append({**row, "median": median, "q1": q1, "q3": q3})
    columns = ["experiment", "scheme", "problems", "median", "q1", "q3"]
    return pd.DataFrame(rows, columns=columns)


def paired(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return one row a pair of schemes and experiment: who is faster, by pairs of problems.

    table: from `reached`. Columns: pairs; wins, the share of pairs in which the first is faster
    (a tie, two unreached ones too, is half a win); ratio, the median of the second's value over
    the first's, and the interval `low` to `high` of it (bootstrap over pairs, 95 percent, seeded);
    verdict: `faster`, `slower`, or `none` where the interval holds 1 or there is one pair only.
    """
    rows = []
    for experiment, part in table.groupby("experiment", sort=False):
        wide = _wide(part)
        names = list(wide.columns)
        for number, first in enumerate(names):
            for second in names[number + 1 :]:
                both = wide[[first, second]].dropna()
                if both.empty:
                    continue
                found = compare(both[first].to_numpy(), both[second].to_numpy(), seed)
                rows.append({"experiment": experiment, "scheme": first, "against": second, **found})
    columns = [
        "experiment",
        "scheme",
        "against",
        "pairs",
        "wins",
        "ratio",
        "low",
        "high",
        "verdict",
    ]
    return pd.DataFrame(rows, columns=columns)


def compare(first: Array, second: Array, seed: int = 0) -> dict[str, Any]:
    """Return the comparison of two schemes' values `(n,)`, paired; see `paired`."""
    logs = _log_ratios(first, second)
    wins = float(np.mean(np.where(logs > 0, 1.0, np.where(logs == 0, 0.5, 0.0))))
    low, high = bootstrap(logs, seed)
    verdict = "none"
    if len(logs) > 1 and not low <= 0 <= high:
        verdict = "faster" if low > 0 else "slower"
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


def bootstrap(values: Array, seed: int = 0) -> tuple[float, float]:
    """Return the interval of the median of values `(n,)`, 95 percent, by resampling them.

    2,000 resamples by a generator of its own seed; infinite values are allowed.
    """
    rng = np.random.default_rng(seed)
    drawn = values[rng.integers(0, len(values), (RESAMPLES, len(values)))]
    middles = np.sort(_median(drawn))
    tail = (1 - COVERAGE) / 2
    last = len(middles) - 1
    return float(middles[int(tail * last)]), float(middles[int(np.ceil((1 - tail) * last))])


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
    names = list(dict.fromkeys(table["scheme"]))
    keys = ["experiment", "setting", "split", "start"]
    return table.pivot(index=keys, columns="scheme", values="value")[names]


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

    rank: over the experiments, each counting once; `low` to `high`: bootstrap over the problems
    of each experiment (95 percent, seeded). solved: share of problems brought to the target; won:
    share of problems on which no scheme was faster.
    """
    wide = _wide(table).dropna()
    if wide.empty:
        return pd.DataFrame(columns=["scheme", "rank", "low", "high", "solved", "won"])
    ranked = wide.rank(axis=1, method="average")
    places = list(ranked.groupby(level="experiment", sort=False).indices.values())
    rng = np.random.default_rng(seed)
    draws = [place[rng.integers(0, len(place), (RESAMPLES, len(place)))] for place in places]
    rows = []
    for name in wide.columns:
        own, values = ranked[name].to_numpy(), wide[name]
        means = np.sort(np.mean([own[drawn].mean(axis=1) for drawn in draws], axis=0))
        tail = int((1 - COVERAGE) / 2 * (RESAMPLES - 1))
        rows.append(
            {
                "scheme": name,
                "rank": float(np.mean([own[place].mean() for place in places])),
                "low": float(means[tail]),
                "high": float(means[-1 - tail]),
                "solved": float(np.isfinite(values).mean()),
                "won": float(((values == wide.min(axis=1)) & np.isfinite(values)).mean()),
                "problems": len(wide),
            }
        )
    return pd.DataFrame(rows).sort_values(["rank", "scheme"], ignore_index=True)
