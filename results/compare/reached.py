"""When each scheme reaches a target: at the step size that is its best for that target."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import problems
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.verdicts.best_step import best_step

COLUMNS = [*problems.SCHEME, "split", "step", "value", "excess", "least", "most"]


def reached(
    sweeps: Sequence[Sweep], target: str = "1e-2", measure: str = "iterations"
) -> pd.DataFrame:
    """Return one row a problem, split and scheme: when it reaches a target, held to the end.

    value: iterations or seconds to the target at the step, the median over the split's starts;
    infinite where it is never reached, where every step size diverged, and where the job failed.
    step: the scheme's best step size for the target, one for all splits: the fewest iterations,
    by the median over the splits; of equal ones the smaller. excess: the share of the start's
    excess that is left at the end. least, most: the range of the median over the step sizes that
    end as low as the step does. The target is one for all schemes of a problem: the lowest, where
    the least cost is only the lowest that each job saw; but each scheme's own where a penalty
    makes each minimize another function. A job whose seconds are not known has no row; neither
    has one whose starts would have to be counted by costs that are not recorded.
    """
    if len(sweeps) == 1:
        key = ("reached", target, measure)
        return sweeps[0].once(key, lambda: _reached(sweeps, target, measure)).copy()
    return _reached(sweeps, target, measure)


def _reached(sweeps: Sequence[Sweep], target: str, measure: str) -> pd.DataFrame:
    schemes = problems.scheme_runs(sweeps)
    if schemes.empty:
        return pd.DataFrame(columns=COLUMNS)
    schemes = schemes.join(_goals(schemes, target))
    every = _at_each_step(sweeps, schemes, target, measure)
    parts = [_at_best(rows) for _, rows in every.groupby(problems.SCHEME, sort=False)]
    return pd.concat(parts).dropna(subset="value", ignore_index=True)[COLUMNS]


def _goals(schemes: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return, by run: goal (the cost, or count, to reach), lowered, minimum, the start's excess.

    lowered: the goal is that of the problem's other schemes, lower than the run's own beyond the
    rounding of two solutions for one least cost.
    """
    nothing = pd.Series(np.nan, index=schemes.index)
    own, minimum, tenth = (
        schemes.get(metric.column, nothing).astype(float)
        for metric in (names.target(target), names.MINIMUM, names.target("1e-1"))
    )
    counted = counts(schemes)
    minimum = minimum.mask(counted, 0.0)
    found = pd.DataFrame({"goal": own, "minimum": minimum, "start": (tenth - minimum) * 10})
    found["lowered"] = False
    for _, rows in schemes[~counted].groupby(problems.PLACE, sort=False):
        if problems.own_functions(rows):
            continue
        for _, same in rows.groupby("split"):
            lowest = own[same.index].min()
            if np.isfinite(lowest):
                found.loc[same.index] = found.loc[own[same.index].idxmin()].to_numpy()
                found.loc[same.index, "lowered"] = own[same.index] - lowest > 1e-6 * abs(lowest)
    return found


def _at_each_step(
    sweeps: Sequence[Sweep], schemes: pd.DataFrame, target: str, measure: str
) -> pd.DataFrame:
    """Return one row a scheme, split and step size: iterations, value and excess.

    Of several jobs of a split, such as those of several seeds of the start, the medians. A job
    that failed has an infinite value at every step size that its scheme was run with.
    """
    rows = [
        row
        for number, sweep in enumerate(sweeps)
        for row in _of_sweep(sweep, schemes[schemes["sweep"] == number], target, measure)
    ]
    columns = [*problems.SCHEME, "split", "step", "iterations", "value", "excess"]
    every = pd.DataFrame(rows, columns=columns)
    sizes = every.groupby(problems.SCHEME, sort=False)["step"].agg(lambda part: sorted(set(part)))
    ran = set(every[[*problems.SCHEME, "split"]].itertuples(index=False, name=None))
    lost = [
        [*key, size, np.inf, np.inf, np.inf]
        for key in dict.fromkeys(
            schemes[[*problems.SCHEME, "split"]].itertuples(index=False, name=None)
        )
        if key not in ran
        for size in sizes.get(key[:3], [np.nan])
    ]
    every = pd.concat([every, pd.DataFrame(lost, columns=columns)], ignore_index=True)
    every = every.astype(dict.fromkeys(columns[4:], float))
    if not every.duplicated(columns[:5]).any():
        return every
    return _middles(every.groupby(columns[:5], sort=False, dropna=False)).reset_index()


def _middles(groups: Any) -> pd.DataFrame:
    """Return medians; the upper of two: an order statistic, for an infinite one has no mean."""
    middles: pd.DataFrame = groups[["iterations", "value", "excess"]].quantile(
        0.5, interpolation="higher"
    )
    return middles


def _of_sweep(sweep: Sweep, schemes: pd.DataFrame, target: str, measure: str) -> list[list[Any]]:
    """Return the rows of `_at_each_step` of one sweep's jobs, one a step run."""
    about = {row["run_id"]: row for row in as_rows(schemes)}
    steps = sweep.of_role(names.STEP)
    steps = steps[steps["parent"].isin(about)]
    counted = {run_id for run_id, row in about.items() if row["lowered"]}
    held = _held(sweep, steps[steps["parent"].isin(counted)], about)
    rows = []
    for step in as_rows(steps):
        scheme = about[step["parent"]]
        excess = _left(step, scheme, scheme["minimum"], scheme["start"])
        if scheme["lowered"]:
            iterations, value = _counted(scheme, held.get(step["run_id"], np.inf), measure)
        else:
            iterations, value = _recorded(step, target, measure)
        place = [scheme[column] for column in (*problems.SCHEME, "split")]
        rows.append([*place, step_size(step), iterations, value, excess])
    return rows


def counts(schemes: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by scheme run, whether its steps and targets go by misclassified points."""
    nothing = pd.Series("", index=schemes.index)
    return schemes.get(names.COMPARED.column, nothing) == names.MISCLASSIFICATIONS


def compared(scheme: Mapping[Any, Any]) -> names.Metric:
    """Return the history that a scheme run's steps and targets go by: cost, or a count."""
    counted = scheme.get(names.COMPARED.column) == names.MISCLASSIFICATIONS
    return names.TRAIN_MISCLASSIFICATIONS if counted else names.TRAIN_COST


def excess_left(run: Mapping[Any, Any], scheme: Mapping[Any, Any]) -> float:
    """Return the share of the start's excess over the least cost that a run ends with.

    Where counts are compared, the share of the points that it leaves misclassified.

    run: a step run, or the scheme's own, which has its best step's costs; infinite where it
    diverged, NaN where no least cost is recorded.
    """
    counted = compared(scheme) is not names.TRAIN_COST
    scheme = {**scheme, names.MINIMUM.column: 0.0} if counted else scheme
    return _left(run, scheme, scheme.get(names.MINIMUM.column, np.nan), start_excess(scheme))


def start_excess(scheme: Mapping[Any, Any]) -> float:
    """Return the start's excess over the least cost; NaN where it is not known."""
    minimum, tenth = (scheme.get(m.column, np.nan) for m in (names.MINIMUM, names.target("1e-1")))
    return float((tenth - minimum) * 10)


def excess_shown(run: Mapping[Any, Any], scheme: Mapping[Any, Any]) -> float | None:
    """Return `excess_left` as a table has it: 0 for rounding below, None where it is not known."""
    left = excess_left(run, scheme)
    return max(left, 0.0) if np.isfinite(left) else None


def _left(run: Mapping[Any, Any], scheme: Mapping[Any, Any], minimum: float, start: float) -> float:
    final = run.get(names.final(compared(scheme)).column)
    if run["verdict"] == names.DIVERGED or final is None or pd.isna(final):
        return float("inf")
    return float((final - minimum) / start) if start else float("nan")  # a rounding below 0 stays


def step_size(step: Mapping[Any, Any]) -> float:
    """Return a step run's size; its tag has six digits, its metric all of them."""
    known = step.get(names.STEP_SIZE.column)
    return float(step[names.STEP_TAG.column] if known is None or pd.isna(known) else known)


def _recorded(step: Mapping[Any, Any], target: str, measure: str) -> tuple[float, float]:
    """Return iterations and the measure to a target as they are recorded; infinite for never."""
    iterations, value = (
        number_in(step, names.reached(target, each).column) for each in ("iterations", measure)
    )
    if not np.isfinite(iterations):
        return np.inf, np.inf
    return iterations, value  # NaN where its seconds were not recorded


def _counted(scheme: Mapping[Any, Any], iterations: float, measure: str) -> tuple[float, float]:
    """Return iterations and the measure of a run whose costs were counted to a lower target."""
    if problems.starts_of(scheme) > 1:  # the median's costs are not each start's
        return float("nan"), float("nan")
    if measure == "iterations":
        return iterations, iterations
    fit, each = (scheme.get(m.column, np.nan) for m in (names.FIT_SECONDS, names.SECONDS_A_STEP))
    return iterations, float(fit + iterations * each)


def _held(
    sweep: Sweep, steps: pd.DataFrame, about: Mapping[str, Mapping[Any, Any]]
) -> dict[str, float]:
    """Return, by step run, the step from which on its costs stay at or below its scheme's goal."""
    if steps.empty:
        return {}
    parents = dict(zip(steps["run_id"], steps["parent"]))
    table = sweep.histories(steps, (names.TRAIN_COST.key,))
    return {
        str(run_id): first_held(
            dict(zip(rows["iteration"], rows[names.TRAIN_COST.key])),
            about[parents[run_id]]["goal"],
        )
        for run_id, rows in table.groupby("run_id")
    }


def first_held(costs: Mapping[int, float], goal: float) -> float:
    """Return the step from which on a run's costs stay at or below a goal; infinite without."""
    above = [step for step, cost in costs.items() if not cost <= goal]
    first = max(above, default=-1) + 1
    return float(first) if first in costs else float("inf")


def _at_best(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one scheme's rows on one problem at its best step size, with the range over ties."""
    if rows["step"].isna().all():  # no job of it ran
        return rows.assign(least=np.inf, most=np.inf)
    middles = _middles(rows.groupby("step"))
    unreached = np.isinf(rows["iterations"]).groupby(rows["step"]).sum()
    number = best_step([*middles.index], middles["iterations"], unreached, middles["excess"])
    assert number is not None
    best = middles.iloc[number]
    tied = (middles["excess"] - best["excess"]).abs() <= names.TIED
    values = [*middles["value"][tied], best["value"]]
    at_best = rows[rows["step"] == middles.index[number]]
    return at_best.assign(least=np.min(values), most=np.max(values))


def thresholds_that_hold(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with 2/L only where it speaks of the optimizer: plain descent."""
    threshold, plain = names.THRESHOLD.column, names.PLAIN.column
    if plain not in schemes or threshold not in schemes:
        return schemes
    return schemes.assign(**{threshold: schemes[threshold].where(schemes[plain] != "false")})
