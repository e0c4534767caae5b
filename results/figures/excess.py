"""Histories as excess, the cost minus the least cost, and the slopes that theory predicts of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import merging
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORIES, QUARTILES, Sweep

LABEL = "excess cost: cost minus least cost"
SLOPE = "slope"  # column of the runs: by what the excess is multiplied at each iteration
COST = names.TRAIN_COST.key
ROUNDING = 1e-14  # of the start's cost: an excess below is none
BEST, START, SHARE = names.CURVATURES_BEST.key, "window_curvature", "window_share"


def with_quartiles(metric: names.Metric) -> list[str]:
    """Return the columns of a history: its own, and those of its quartiles."""
    return [metric.key, *(names.quartile(metric, part).key for part in names.QUARTILES)]


def histories(sweep: Sweep, runs: pd.DataFrame) -> pd.DataFrame:
    """Return histories as `material.histories`, the costs as excess, without those of test points.

    Of several splits each has its own least cost. An excess that is rounding is NaN.
    """
    source = merging.whole(sweep)
    every = source.runs.set_index("run_id", drop=False)
    least = every.get(names.MINIMUM.column, pd.Series(np.nan, index=every.index))
    own = least.where(least.notna(), every["parent"].map(least))
    parts = []
    for row in as_rows(runs):
        members = merging.members_of(sweep, row["run_id"])
        found = source.histories(every.loc[members], (*HISTORIES, *QUARTILES))
        if len(found):
            found = _less(found, found["run_id"].map(own))
            parts.append(merging.over_members(found, row, len(members)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["iteration"])


def _less(found: pd.DataFrame, least: "pd.Series[float]") -> pd.DataFrame:
    """Return histories of runs, each less its own least cost."""
    known = [column for column in with_quartiles(names.TRAIN_COST) if column in found]
    costs = found[known].sub(least, axis=0)
    start = found.groupby("run_id")[COST].transform("first").abs()
    costs = costs.where(costs.gt(ROUNDING * start, axis=0))
    kept = found.drop(columns=with_quartiles(names.TEST_COST), errors="ignore")
    return kept.assign(**{column: costs[column] for column in known})


def with_slopes(sweep: Sweep, schemes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the slope that theory predicts; NaN where it predicts none.

    Of plain gradient descent a direction of curvature h has its excess multiplied by `(1 - a h)^2`.
    For a quadratic the slope is that of the direction which holds most of the excess at the last
    iteration; else, at the best step size, that of the slowest direction at the last weights. None
    where no weights attain the least cost, and none of several splits or seeds.
    """
    known = sweep.arrays(schemes, names.DESCENT_ARRAYS)
    about = {row["label"]: row for row in as_rows(schemes)}
    repeated = runs.get(merging.REPEATS, pd.Series("", index=runs.index)).fillna("") != ""
    slopes = [
        float("nan") if many else _slope(run, about.get(run["label"], {}), known.get(run["label"]))
        for run, many in zip(as_rows(runs), repeated)
    ]
    return runs.assign(**{SLOPE: slopes})


def _slope(
    run: Mapping[Any, Any], scheme: Mapping[Any, Any], parts: Mapping[str, Any] | None
) -> float:
    size = pd.to_numeric(run.get(names.STEP_TAG.column), errors="coerce")
    if parts is None or pd.isna(size):
        return float("nan")
    if str(scheme.get(names.BASIS.column, "")).startswith(names.EXACT) and START in parts:
        return _of_quadratic(parts, size, int(scheme[names.setting("iterations")]))
    attained = scheme.get(names.MINIMUM_CASE.column) == names.ATTAINED
    shown = scheme.get(names.STEP_TAG.column) == run.get(names.STEP_TAG.column)
    if attained and shown and len(parts.get(BEST, ())):
        return float(np.abs(1 - size * parts[BEST]).max() ** 2)
    return float("nan")


def _of_quadratic(parts: Mapping[str, Any], size: float, iterations: int) -> float:
    """Return the slope of the direction with most excess, at the end or before it is rounding."""
    factors = np.abs(1 - size * parts[START])
    if factors.max() >= 1:
        return float("nan")
    with np.errstate(divide="ignore"):
        start, fall = np.log(parts[SHARE] / np.sum(parts[SHARE])), -2 * np.log(factors)
        last = min(iterations, float(np.max((start - np.log(ROUNDING)) / fall)))
        left = start - np.where(fall < np.inf, last * fall, np.inf)
    return float(factors[np.argmax(left)] ** 2)
