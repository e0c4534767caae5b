"""The numbers of the studies in `conf/experiment/research` on networks."""

from ast import literal_eval

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare.reached import first_iteration_below
from normbench.results.store.runs import Sweep

HIDDEN, INSIDE = names.setting("model.hidden"), names.setting("model.normalize")
START_SCALE_SETTING = names.setting("model.start_scale")
CLASS_COUNTS = {"digits": 10, "breast_cancer": 2, "mnist": 10}
NEVER = 1000.0  # more iterations than any study has
LEARNED_COST = 0.23  # a tenth of the logarithm of ten classes


def inputs_or_inside(sweep: Sweep) -> dict[str, float]:
    """Return `DATA_SCHEME_INSIDE`: iterations to 10 % of the zero weights' excess over the lowest.

    The median over the starts, at the best step size; `NEVER` where none gets there.
    """
    counts = _step_counts(sweep, 0.1)
    best = counts.groupby(["data", "normalizer", "inside"])["iterations"].min()
    return {"_".join(key): float(value) for key, value in best.items()}


def inputs_or_inside_mnist(sweep: Sweep) -> dict[str, float]:
    """Return what `inputs_or_inside` returns."""
    return inputs_or_inside(sweep)


def larger_steps(sweep: Sweep) -> dict[str, float]:
    """Return what batch normalization changes, by the number of hidden layers.

    `steps_LAYERS`: the largest step size whose cost ends below its start, over that of the plain
    network. `low_LAYERS` and `tenth_LAYERS`: at the smallest step size and at a tenth of the plain
    network's largest one, iterations to the higher of both last costs, over those of the plain
    network. `equal_LAYERS`: iterations to a tenth of log 10, over those of the plain network, at
    the plain network's best step size. `own_LAYERS`: likewise, each at its best step size.
    """
    counts = _step_counts(sweep)
    numbers: dict[str, float] = {}
    for layers, rows in counts.groupby("layers"):
        plain, batch = (
            rows[rows["inside"] == inside].set_index("step_size") for inside in ("none", "batch")
        )
        largest, batch_largest = (max(each.index[each["falls"]]) for each in (plain, batch))
        numbers[f"steps_{layers}"] = float(batch_largest / largest)
        numbers[f"low_{layers}"] = _slowness(plain, batch, min(plain.index))
        numbers[f"tenth_{layers}"] = _slowness(plain, batch, largest / 10)
        best_step = plain["iterations"].idxmin()
        fewest = plain["iterations"].min()
        numbers[f"equal_{layers}"] = float(batch.loc[best_step, "iterations"] / fewest)
        numbers[f"own_{layers}"] = float(batch["iterations"].min() / fewest)
    return numbers


def _slowness(plain: pd.DataFrame, batch: pd.DataFrame, step_size: float) -> float:
    """Return iterations under batch normalization over the plain network's, near a step size.

    They count to the higher of both last costs. Both tables have a row a step size.
    """
    nearest = plain.index[np.abs(np.log(plain.index / step_size)).argmin()]
    histories = [each.loc[nearest, "costs"] for each in (plain, batch)]
    goal = max(costs[-1] for costs in histories)
    counts = [first_iteration_below(dict(enumerate(costs)), goal) for costs in histories]
    return float(counts[1] / counts[0])


def initial_scale(sweep: Sweep) -> dict[str, float]:
    """Return `RULE_LAYERS`: the lowest cost that a step size ends at, over log 10."""
    counts = _step_counts(sweep)
    lowest = counts.groupby(["rule", "layers"])["final"].min() / np.log(10)
    return {f"{rule}_{layers}": float(value) for (rule, layers), value in lowest.items()}


def _step_counts(sweep: Sweep, share: float | None = None) -> pd.DataFrame:
    """Return one row a job and step size: whether it `falls`, `final` cost, and `iterations`.

    share: of the excess over the lowest cost of a data set, to which iterations count, `NEVER`
    where a run does not get there; None: they count to `LEARNED_COST`.
    """
    schemes = sweep.of_role(names.SCHEME).set_index("run_id")
    steps = sweep.of_role(names.STEP)
    parents = dict(zip(steps["run_id"], steps["parent"]))
    rows = []
    for (run_id, size), history in sweep.histories(steps, [names.TRAIN_COST.key]).groupby(
        ["run_id", "step_size"]
    ):
        scheme = schemes.loc[parents[run_id]]
        rows.append(
            {
                "data": str(scheme[names.DATASET.column]),
                "normalizer": scheme["normalizer"],
                "inside": scheme[INSIDE],
                "layers": len(literal_eval(scheme[HIDDEN])),
                "rule": scheme[START_SCALE_SETTING],
                "step_size": float(size),
                "costs": history[names.TRAIN_COST.key].to_numpy(),
            }
        )
    table = pd.DataFrame(rows)
    lowest = table["costs"].map(np.nanmin).groupby(table["data"]).transform("min")
    ends = table["costs"].map(lambda costs: costs[-1])
    starts = table["costs"].map(lambda costs: costs[0])
    at_zero = np.log(table["data"].map(CLASS_COUNTS))  # the cost of zero weights
    goals = LEARNED_COST if share is None else lowest + share * (at_zero - lowest)
    return table.assign(
        final=ends,
        falls=ends < starts,
        iterations=[
            min(first_iteration_below(dict(enumerate(costs)), goal), NEVER)
            for costs, goal in zip(table["costs"], np.broadcast_to(goals, len(table)))
        ],
    )
