"""When each scheme reaches a target: at the step size that is its best for that target."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import problems
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.verdicts.refinement import FINE_RADIUS, SIZES_PER_DECADE, step_size_of

COLUMNS = [*problems.SCHEME, "split", "step", "value", "excess", "least", "finer", "end"]
FEW = 3  # step sizes: of fewer each is an end, so that nothing is said of ends
# Where a scheme's best step size lies in what was tried, and all of it above 2/L.
LOW, HIGH, ABOVE = "low", "high", "above"


def reached(
    sweeps: Sequence[Sweep], target: str = "1e-2", measure: str = "iterations"
) -> pd.DataFrame:
    """Return one row a problem, split and scheme: when it reaches a target, held to the end.

    value: iterations or seconds to the target at the step size that takes the fewest on that split
    (each scheme is tuned for each split); infinite where no step size that was tried reaches it,
    and where the job failed. step: that step size. excess: the share of the start's excess that is
    left at the end. least: the least value that a step size between those tried might have, NaN
    where that is not known. finer: whether step sizes between those of the grid were tried.
    The target is one for all schemes of a problem: the lowest, where the least cost is only the
    lowest that each job saw; but each scheme's own where a penalty makes each minimize another
    function. A job whose seconds are not known has no row; neither has one whose starts would have
    to be counted by costs that are not recorded. Of several jobs of a split, such as those of
    several seeds of the start, the medians.
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
    rows = [
        row
        for number, sweep in enumerate(sweeps)
        for row in _of_sweep(sweep, schemes[schemes["sweep"] == number], target, measure)
    ]
    every = pd.DataFrame(rows, columns=COLUMNS).dropna(subset="value", ignore_index=True)
    keys = COLUMNS[:4]
    if not every.duplicated(keys).any():
        return every
    return _middles(every.groupby(keys, sort=False)).reset_index()


def _of_sweep(sweep: Sweep, schemes: pd.DataFrame, target: str, measure: str) -> list[list[Any]]:
    """Return the rows of `reached` of one sweep's jobs, one a scheme run."""
    held = _held(sweep, schemes[schemes["lowered"]])
    sizes_of: dict[str, list[float]] = {}
    for step in as_rows(sweep.of_role(names.STEP)):
        sizes_of.setdefault(step["parent"], []).append(step_size(step))
    rows = []
    for scheme in as_rows(thresholds_that_hold(schemes)):
        excess = _left(scheme, scheme, scheme["minimum"], scheme["start"])
        if scheme["lowered"]:
            sizes = sorted(held.get(scheme["run_id"], {}).items())
            size, iterations = min(sizes, key=lambda pair: pair[1], default=(np.nan, np.inf))
            value, least, finer = _counted(scheme, iterations, measure), np.nan, False
            if problems.starts_of(scheme) > 1:  # the median's costs are not each start's
                value = np.nan
        else:
            size = number_in(scheme, names.own_step(target).column)
            value = _recorded(scheme, target, measure)
            least = _counted(scheme, number_in(scheme, names.least(target).column), measure)
            finer = target in refined_of(scheme).get("targets", ())
        place = [scheme[column] for column in (*problems.SCHEME, "split")]
        own = size if np.isfinite(value) or finer else _best(scheme)
        end = _end(scheme, sizes_of.get(scheme["run_id"], []), own, finer)
        rows.append([*place, size, value, excess, least, finer, end])
    return rows


def _best(scheme: Mapping[Any, Any]) -> float:
    """Return the step size that comes lowest; NaN where a chosen one stands for the scheme."""
    chosen = scheme.get(names.STEP_CHOSEN.column) == "true"
    known = isinstance(scheme.get(names.STEP_TAG.column), str)
    return step_size(scheme) if known and not chosen else np.nan


def _end(scheme: Mapping[Any, Any], sizes: Sequence[float], best: float, finer: bool) -> str:
    """Return which end of the step sizes the best one is at, see `reached`."""
    if len(sizes) < FEW:
        return ""
    threshold = scheme.get(names.THRESHOLD.column)
    if threshold is not None and threshold < min(sizes):
        return ABOVE
    # Finer ones reach a decade beyond the grid's ends.
    reach = 10 ** (1 - FINE_RADIUS / SIZES_PER_DECADE) if finer else 1.0
    return HIGH if best >= max(sizes) * reach else LOW if best <= min(sizes) / reach else ""


def refined_of(scheme: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Return what a scheme run's tag says of step sizes between those of its grid."""
    text = scheme.get(names.REFINED.column)
    return json.loads(text) if isinstance(text, str) and text else {}


def tuned_once(sweep: Sweep, target: str = "1e-2") -> pd.DataFrame:
    """Return one row a problem and scheme of several splits: its one step size for them all.

    Of the step sizes that every split ran: the one that brings the most splits to the target, then
    that of the lowest upper quartile of iterations, then of the lowest median, then the smallest.
    reached, splits: how many. median, q3: of the iterations, infinite where a split does not reach
    it. A split all of whose jobs failed is not reached.
    """
    columns = [*problems.SCHEME, "step", "reached", "splits", "median", "q3"]
    schemes = problems.scheme_runs([sweep])
    if schemes.empty:
        return pd.DataFrame(columns=columns)
    schemes = schemes.join(_goals(schemes, target))
    steps = dict(list(sweep.of_role(names.STEP).groupby("parent")))
    held = _held(sweep, schemes[schemes["lowered"]])
    rows = []
    for place, part in schemes.groupby(problems.SCHEME, sort=False):
        splits = part["split"].nunique()
        ran = part[part["run_id"].isin(steps)]
        own = [
            _at_each_step([_grid(job, steps, held, target) for job in as_rows(jobs)])
            for _, jobs in ran.groupby("split")
        ]
        table = pd.concat(own, axis=1, join="inner").sort_index() if own else pd.DataFrame()
        if splits < 2 or table.empty:
            continue
        values = np.pad(table, ((0, 0), (0, splits - len(own))), constant_values=np.inf)
        missed = np.isinf(values).sum(axis=1)
        median, upper = np.quantile(values, [0.5, 0.75], axis=1, method="higher")
        best = min(range(len(values)), key=lambda n: (missed[n], upper[n], median[n], n))
        numbers = (table.index[best], splits - missed[best], splits, median[best], upper[best])
        rows.append([*place, *numbers])
    return pd.DataFrame(rows, columns=columns)


def _at_each_step(jobs: Sequence[Mapping[float, float]]) -> "pd.Series[float]":
    """Return the iterations of a split by step size: the upper median over its jobs."""
    table = pd.concat([pd.Series(job, dtype=float) for job in jobs], axis=1, join="inner")
    middles: pd.Series[float] = table.quantile(0.5, axis=1, interpolation="higher")
    return middles


def _grid(
    scheme: Mapping[Any, Any],
    steps: Mapping[str, pd.DataFrame],
    held: Mapping[str, Mapping[float, float]],
    target: str,
) -> Mapping[float, float]:
    """Return a job's iterations to a target by step size, finer ones too; infinite for never."""
    if scheme["lowered"]:
        return held.get(scheme["run_id"], {})
    tag = refined_of(scheme)
    finer = zip(tag.get("numbers", ()), tag.get(target, ()))
    counts = {step_size_of(int(n)): np.inf if count is None else count for n, count in finer}
    rows = as_rows(steps[scheme["run_id"]])
    return counts | {step_size(step): _recorded(step, target, "iterations") for step in rows}


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


def _middles(groups: Any) -> pd.DataFrame:
    """Return medians; the upper of two: an order statistic, for an infinite one has no mean."""
    numbers = [column for column in COLUMNS[4:] if column not in ("finer", "end")]
    middles: pd.DataFrame = groups[numbers].quantile(0.5, interpolation="higher")
    return middles.assign(finer=groups["finer"].all(), end=groups["end"].max())


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


def with_lowest_seen(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return scheme runs of an experiment with one least cost where none of them solved for it.

    Each job records the lowest cost that it saw itself: over that, the best step size of even the
    slowest scheme would leave nothing. Here it is the lowest that any scheme of the problem saw.
    """
    goal, minimum = names.target("1e-1").column, names.MINIMUM.column
    guessed = schemes.get(names.MINIMUM_REACHED.column, pd.Series(index=schemes.index)) == "false"
    if not guessed.any() or problems.own_functions(schemes) or goal not in schemes:
        return schemes
    shared = schemes.copy()
    settings = [str(setting) for setting in problems.problems(schemes)]
    for _, rows in schemes[guessed & ~counts(schemes)].groupby(
        pd.Series(settings, schemes.index), sort=False
    ):
        lowest = rows[goal].astype(float)
        if lowest.notna().any():
            of_lowest = rows.loc[lowest.idxmin(), [minimum, goal]].to_numpy()
            shared.loc[rows.index, [minimum, goal]] = of_lowest
    return shared


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
    if run["verdict"] in names.UNRANKED or final is None or pd.isna(final):
        return float("inf")
    return float((final - minimum) / start) if start else float("nan")  # a rounding below 0 stays


def step_size(step: Mapping[Any, Any]) -> float:
    """Return a step run's size; its tag has six digits, its metric all of them."""
    known = step.get(names.STEP_SIZE.column)
    return float(step[names.STEP_TAG.column] if known is None or pd.isna(known) else known)


def _recorded(run: Mapping[Any, Any], target: str, measure: str) -> float:
    """Return iterations or seconds to a target as they are recorded; infinite for never."""
    reaches = np.isfinite(number_in(run, names.reached(target).column))
    return number_in(run, names.reached(target, measure).column) if reaches else np.inf


def _counted(scheme: Mapping[Any, Any], iterations: float, measure: str) -> float:
    """Return iterations in a measure: as they are, or the seconds that they take."""
    if measure == "iterations":
        return iterations
    fit, each = (scheme.get(m.column, np.nan) for m in (names.FIT_SECONDS, names.SECONDS_A_STEP))
    return float(fit + iterations * each)


def _held(sweep: Sweep, schemes: pd.DataFrame) -> dict[str, dict[float, float]]:
    """Return, by scheme run, when the costs of each step size stay at or below its goal."""
    goals = dict(zip(schemes["run_id"], schemes["goal"]))
    steps = sweep.of_role(names.STEP)
    steps = steps[steps["parent"].isin(goals)]
    found: dict[str, dict[float, float]] = {}
    for step in as_rows(steps):
        found.setdefault(step["parent"], {})[step_size(step)] = np.inf
    steps = steps[steps["verdict"] != names.BY_ROUNDING]
    if steps.empty:
        return found
    of_run = {str(step["run_id"]): step for step in as_rows(steps)}
    table = sweep.histories(steps, (names.TRAIN_COST.key,))
    for run_id, rows in table.groupby("run_id"):
        step = of_run[str(run_id)]
        costs = dict(zip(rows["iteration"], rows[names.TRAIN_COST.key]))
        count = first_held(costs, goals[step["parent"]])
        found[step["parent"]][step_size(step)] = count
    return found


def first_held(costs: Mapping[int, float], goal: float) -> float:
    """Return the step from which on a run's costs stay at or below a goal; infinite without."""
    above = [step for step, cost in costs.items() if not cost <= goal]
    first = max(above, default=-1) + 1
    return float(first) if first in costs else float("inf")


def thresholds_that_hold(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with 2/L only where it speaks of the optimizer: plain descent."""
    threshold, plain = names.THRESHOLD.column, names.PLAIN.column
    if plain not in schemes or threshold not in schemes:
        return schemes
    return schemes.assign(**{threshold: schemes[threshold].where(schemes[plain] != "false")})
