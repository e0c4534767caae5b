"""Numbers of studies that are computed from the records: modules by topic, one function a study.

Each function takes a sweep and returns a `dict[str, float]`, computed from the records alone, but
for scikit-learn's own descents in `exercises.scaling_sgd`. Its docstring gives the formulas. The
pictures here are those of the README and the pages.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare.reached import first_iteration_below
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

Array = NDArray[np.float64]
Row = Mapping[Any, Any]
# The modules with the functions of the studies in each folder of `conf/experiment`.
STUDY_MODULES = {
    "textbook": ("textbook",),
    "exercises": ("exercises",),
    "lecture": ("lecture",),
    "notes": ("notes",),
    "research": ("research", "batches", "inside", "networks", "scaling"),
}
# Studies whose numbers are those of another study's function.
TWINS = {
    "batch_statistics_width": "disturbances",
    "bn_any_step_diabetes": "bn_any_step",
    "inputs_or_inside_mnist": "inputs_or_inside",
    "per_image_or_per_pixel_mnist": "per_image_or_per_pixel",
}


def find_function(folder: str, study: str) -> Callable[[Sweep], dict[str, float]] | None:
    """Return the function of a study; None for one whose numbers are all recorded."""
    modules = [import_module(f"{__name__}.{name}") for name in STUDY_MODULES.get(folder, ())]
    functions = (getattr(module, TWINS.get(study, study), None) for module in modules)
    return next(filter(None, functions), None)


class StepRun(NamedTuple):
    """The run of one step size: the row of its job, the step size, the costs (K + 1,)."""

    job: Row
    step_size: float
    costs: Array


def step_runs(sweep: Sweep) -> list[StepRun]:
    """Return the runs of all step sizes of all jobs."""
    jobs = {row["run_id"]: row for row in as_rows(sweep.of_role(names.SCHEME))}
    steps = sweep.of_role(names.STEP)
    parents = dict(zip(steps["run_id"], steps["parent"]))
    histories = sweep.histories(steps, [names.TRAIN_COST.key])
    return [
        StepRun(jobs[parents[run_id]], float(size), history[names.TRAIN_COST.key].to_numpy())
        for (run_id, size), history in histories.groupby(["run_id", "step_size"])
    ]


def iterations_to(costs: Iterable[float], goal: float) -> float:
    """Return the first iteration from which costs stay at or below a goal, or infinity."""
    return first_iteration_below(dict(enumerate(costs)), goal)


def jobs_with(sweep: Sweep, record: str) -> list[tuple[Row, Mapping[str, Any]]]:
    """Return the row of each job that has recorded arrays, and these arrays by name."""
    pairs: list[tuple[Row, Mapping[str, Any]]] = []
    for experiment in sweep.experiments:  # labels are unique only within an experiment
        rows = sweep.of_role(names.SCHEME, experiment)
        arrays = sweep.arrays(rows, record)
        pairs += [(row, arrays[row["label"]]) for row in as_rows(rows) if row["label"] in arrays]
    return pairs


def last_costs(sweep: Sweep) -> list[tuple[Row, Array]]:
    """Return the row of each job, and its last costs (S,), medians over the starts."""
    return [
        (row, np.median(arrays[names.TRAIN_COST.key][:, :, -1], axis=1))
        for row, arrays in jobs_with(sweep, names.DESCENT_ARRAYS)
    ]


def farthest_from_one(ratios: Iterable[float]) -> float:
    """Return the ratio that is farthest from 1; a ratio and its inverse are equally far."""
    return max(ratios, key=lambda ratio: abs(np.log(ratio)))


def keyed(values: "pd.Series[Any]", form: str) -> dict[str, float]:
    """Return the values of a series by its index, with the formatted keys.

    Args:
        values: The values, by an index of one or several levels.
        form: The format of a key, filled with the levels of the index.
    """
    return {
        form.format(*(key if isinstance(key, tuple) else (key,))): float(value)
        for key, value in values.items()
    }


def arrays_of_only_scheme(sweep: Sweep, record: str) -> Mapping[str, Any]:
    """Return the recorded arrays, by name, of a sweep of one scheme."""
    ((_, arrays),) = jobs_with(sweep, record)
    return arrays


def at_cost(sweep: Sweep, cost: float) -> pd.DataFrame:
    """Return the state of each scheme run when its training cost first reaches a cost.

    Args:
        sweep: The sweep.
        cost: The training cost.

    Returns:
        The scheme runs, with the columns `iteration`, the first whose training cost is at most
        `cost`, and `test_cost` and `missed`, the share of misclassified test points, both
        interpolated linearly in the training cost between that iteration and the one before. NaN
        for a run that does not reach the cost.
    """
    rows = sweep.of_role(names.SCHEME)
    columns = [names.TEST_COST.key, names.TEST_MISCLASSIFICATIONS.key]
    interpolated = {}  # by run id: the iteration, then the values of `columns`
    for run_id, history in sweep.histories(rows).groupby("run_id"):
        costs = history[names.TRAIN_COST.key].to_numpy()
        values = history[columns].to_numpy(dtype=float)
        first = int(np.argmax(costs <= cost))  # 0 where no cost is that low, too
        if costs[first] <= cost:
            previous = max(first - 1, 0)  # the start itself, if its cost is low enough
            fall = costs[previous] - costs[first]
            share = (costs[previous] - cost) / fall if fall > 0 else 1.0
            interpolated_values = values[previous] + share * (values[first] - values[previous])
            interpolated[run_id] = [history["iteration"].to_numpy()[first], *interpolated_values]
    state = pd.DataFrame.from_dict(
        interpolated, orient="index", columns=["iteration", "test_cost", "missed"]
    )
    # Reindexing gives a row of NaN to a run that does not reach the cost.
    rows = rows.join(state.reindex(rows["run_id"]).set_axis(rows.index))
    return rows.assign(missed=rows["missed"] / rows["test_points"])
