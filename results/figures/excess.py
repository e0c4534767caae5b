"""Histories of the excess, the cost minus the least cost, and the slopes that theory predicts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import merging
from normbench.results.compare.reached import over_lowest_seen
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORY_KEYS, QUARTILE_KEYS, Sweep

EXCESS_LABEL = "excess cost: cost minus least cost"
SLOPE = "slope"  # a column of runs: the factor of the excess at each iteration
TRAIN_COST = names.TRAIN_COST.key
EXCESS_ROUNDING = 1e-14  # of the start's cost: a smaller excess is rounding error
BEST_CURVATURES = names.CURVATURES_BEST.key
START_CURVATURES, EXCESS_SHARES = "layer_curvature", "layer_share"


def with_quartiles(metric: names.Metric) -> list[str]:
    """Return the columns of a metric and of its quartiles."""
    return [metric.key, *(names.quartile(metric, quartile).key for quartile in names.QUARTILES)]


def histories(sweep: Sweep, runs: pd.DataFrame) -> pd.DataFrame:
    """Return histories as `material.histories` does, with training costs as excess.

    Test costs are left out. A least cost that is not known is the lowest cost that was seen on the
    training points. Each split or seed has its own least cost: the excess of a merged run
    is computed for each of its members before these are merged. An excess at the level of rounding
    is NaN.

    Args:
        sweep: the sweep, of which a run may be merged from the runs of several splits or seeds.
        runs: one row for each run.

    Returns:
        One row for each run and iteration; without rows, only the column `iteration`.
    """
    whole_sweep = merging.unmerged(sweep)
    all_runs = whole_sweep.runs.set_index("run_id", drop=False)
    jobs = over_lowest_seen(whole_sweep).set_index("run_id")
    least_costs = jobs.get(names.MINIMUM.column, pd.Series(np.nan, index=jobs.index))
    # The least cost is recorded for a scheme; runs of single step sizes have that of their parent.
    own_least_costs = pd.concat([least_costs, all_runs["parent"].map(least_costs).dropna()])
    run_histories = []
    for row in as_rows(runs):
        member_ids = merging.members_of(sweep, row["run_id"])
        member_histories = whole_sweep.histories(
            all_runs.loc[member_ids], (*HISTORY_KEYS, *QUARTILE_KEYS)
        )
        if len(member_histories):
            member_histories = _subtract_least_cost(
                member_histories, member_histories["run_id"].map(own_least_costs)
            )
            run_histories.append(merging.over_members(member_histories, row, len(member_ids)))
    return (
        pd.concat(run_histories, ignore_index=True)
        if run_histories
        else pd.DataFrame(columns=["iteration"])
    )


def _subtract_least_cost(
    cost_histories: pd.DataFrame, least_costs: "pd.Series[float]"
) -> pd.DataFrame:
    """Return histories without test costs, and with training costs and quartiles as excess.

    Args:
        cost_histories: one row for each run and iteration, that of the start first.
        least_costs: for each row the least cost of its run.

    Returns:
        The histories; an excess below `EXCESS_ROUNDING` of the start's cost is NaN.
    """
    cost_columns = [
        column for column in with_quartiles(names.TRAIN_COST) if column in cost_histories
    ]
    costs = cost_histories[cost_columns].sub(least_costs, axis=0)
    start_costs = cost_histories.groupby("run_id")[TRAIN_COST].transform("first").abs()
    costs = costs.where(costs.gt(EXCESS_ROUNDING * start_costs, axis=0))
    training_histories = cost_histories.drop(
        columns=with_quartiles(names.TEST_COST), errors="ignore"
    )
    return training_histories.assign(**{column: costs[column] for column in cost_columns})


def with_slopes(sweep: Sweep, schemes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with the column `SLOPE`, which theory predicts; NaN where it predicts none.

    The slope of a run is the factor by which each iteration multiplies its excess in the end.
    Plain gradient descent with step size a multiplies the excess along a direction of curvature h
    by `(1 - a h)^2`. For a quadratic cost the slope is that of the direction with most of the
    excess at the last iteration. For other costs, at the best step size, it is that of the slowest
    direction at the last weights; there is none if no weights attain the least cost. Runs merged
    over several splits or seeds have none.

    Args:
        sweep: the sweep that holds the runs.
        schemes: one row for each scheme, with the tags of theory.
        runs: one row for each run (`label`, `tags.step_size`); the label is that of its scheme.
    """
    arrays = sweep.arrays(schemes, names.DESCENT_ARRAYS)
    rows_by_label = {row["label"]: row for row in as_rows(schemes)}
    # `REPEATS` is empty for a run of a single split and seed.
    repeat_flags = runs.get(merging.REPEATS, pd.Series("", index=runs.index)).fillna("") != ""
    slopes = [
        float("nan")
        if is_repeated
        else _slope(run, rows_by_label.get(run["label"], {}), arrays.get(run["label"]))
        for run, is_repeated in zip(as_rows(runs), repeat_flags)
    ]
    return runs.assign(**{SLOPE: slopes})


def _slope(
    run: Mapping[Any, Any], scheme: Mapping[Any, Any], scheme_arrays: Mapping[str, Any] | None
) -> float:
    """Return the slope that theory predicts of one run, see `with_slopes`; NaN if it predicts none.

    Args:
        run: the row of the run.
        scheme: the row of its scheme.
        scheme_arrays: the recorded arrays of the scheme's descent, None if there are none.
    """
    step_size = pd.to_numeric(run.get(names.STEP_TAG.column), errors="coerce")
    is_plain = scheme.get(names.PLAIN.column) != "false"
    # The formula needs curvatures, a step size, and plain gradient descent.
    if scheme_arrays is None or pd.isna(step_size) or not is_plain:
        return float("nan")
    # Exact: the curvature is the same everywhere, as of a quadratic cost.
    is_quadratic = str(scheme.get(names.BASIS.column, "")).startswith(names.EXACT)
    if is_quadratic and START_CURVATURES in scheme_arrays:
        return _quadratic_slope(scheme_arrays, step_size, int(scheme[names.setting("iterations")]))
    has_minimum = scheme.get(names.MINIMUM_CASE.column) == names.ATTAINED
    # The curvatures at the last weights are those of the run that represents the scheme.
    is_shown_step = scheme.get(names.STEP_TAG.column) == run.get(names.STEP_TAG.column)
    if has_minimum and is_shown_step and len(scheme_arrays.get(BEST_CURVATURES, ())):
        return float(np.abs(1 - step_size * scheme_arrays[BEST_CURVATURES]).max() ** 2)
    return float("nan")


def _quadratic_slope(scheme_arrays: Mapping[str, Any], step_size: float, iterations: int) -> float:
    """Return the slope of the direction with the most excess at the last iteration.

    If all excess falls to the level of rounding earlier, the slope is that at the iteration where
    it does. It is NaN if the step size does not shrink the excess along every direction.

    Args:
        scheme_arrays: the curvatures `layer_curvature` (n,) and the excess `layer_share` (n,)
            along each direction at the start.
        step_size: the step size.
        iterations: the number of iterations.
    """
    factors = np.abs(1 - step_size * scheme_arrays[START_CURVATURES])
    if factors.max() >= 1:  # the descent does not converge
        return float("nan")
    # A direction without excess that vanishes in one step is 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_shares, log_decay = (
            np.log(scheme_arrays[EXCESS_SHARES] / np.sum(scheme_arrays[EXCESS_SHARES])),
            -2 * np.log(factors),
        )
        # At most the iteration at which the last direction reaches the level of rounding; one
        # without excess never was above it.
        rounding_iterations = (log_shares - np.log(EXCESS_ROUNDING)) / log_decay
        last_iteration = min(iterations, float(np.fmax.reduce(rounding_iterations)))
        # The excess of each direction there; none after the first step if its factor is 0.
        log_excess = log_shares - np.where(log_decay < np.inf, last_iteration * log_decay, np.inf)
    return float(factors[np.argmax(log_excess)] ** 2)
