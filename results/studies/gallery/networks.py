"""The numbers of the studies in `conf/experiment/research` on networks."""

from ast import literal_eval

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import iterations_to, keyed, step_runs

HIDDEN, INSIDE = names.setting("model.hidden"), names.setting("model.normalize")
START_SCALE_SETTING = names.setting("model.start_scale")
CLASS_COUNTS = {"digits": 10, "breast_cancer": 2, "mnist": 10}
NEVER = 1000.0  # more iterations than any study has
LEARNED_COST = 0.23  # a tenth of the logarithm of ten classes


def inputs_or_inside(sweep: Sweep) -> dict[str, float]:
    """Return `DATA_SCHEME_INSIDE`, the iterations until a tenth of the excess is left.

    The whole excess is that of the cost of zero weights over the lowest cost on the data set. The
    iterations are those of the median over the starts, at the best step size; `NEVER` where no step
    size gets there.
    """
    counts = _step_counts(sweep, 0.1)
    best = counts.groupby(["data", "normalizer", "inside"])["iterations"].min()
    return keyed(best, "{}_{}_{}")


def larger_steps(sweep: Sweep) -> dict[str, float]:
    """Return what batch normalization changes, by the number of hidden layers.

    Each number is that with batch normalization over that of the plain network. `steps_LAYERS`: the
    largest step size whose cost ends below its start. `low_LAYERS`: the iterations to the higher of
    both last costs, at the smallest step size. `tenth_LAYERS`: the same at a tenth of the plain
    network's largest step size of `steps`. `equal_LAYERS`: the iterations to the cost
    `LEARNED_COST`, at the step size that is best for the plain network. `own_LAYERS`: the same,
    each at its own best step size.
    """
    counts = _step_counts(sweep)
    numbers: dict[str, float] = {}
    for layers, rows in counts.groupby("layers"):
        plain, batch = (
            rows[rows["inside"] == inside].set_index("step_size") for inside in ("none", "batch")
        )
        # The largest step size of each network whose last cost is below its start.
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
    """Return the iterations with batch normalization over those of the plain network.

    They are counted until the higher of both last costs. Step sizes are compared on a logarithmic
    scale.

    Args:
        plain: The rows of the plain network, indexed by step size.
        batch: The rows with batch normalization, indexed by step size.
        step_size: The step size, to which the nearest recorded one is taken.
    """
    nearest = plain.index[np.abs(np.log(plain.index / step_size)).argmin()]
    histories = [each.loc[nearest, "costs"] for each in (plain, batch)]
    goal = max(costs[-1] for costs in histories)  # both networks get there
    counts = [iterations_to(costs, goal) for costs in histories]
    return float(counts[1] / counts[0])


def initial_scale(sweep: Sweep) -> dict[str, float]:
    """Return `RULE_LAYERS`, the lowest final cost of all step sizes over log 10.

    RULE is the rule for the scale of the start, LAYERS the number of hidden layers. log 10 is the
    cost of zero weights, for ten classes.
    """
    counts = _step_counts(sweep)
    lowest = counts.groupby(["rule", "layers"])["final"].min() / np.log(10)
    return keyed(lowest, "{}_{}")


def _step_counts(sweep: Sweep, share: float | None = None) -> pd.DataFrame:
    """Return a table with a row for each job and step size.

    Args:
        sweep: The sweep.
        share: The share of the excess of zero weights over the lowest cost on the data set, until
            which iterations are counted; None to count until the cost `LEARNED_COST`.

    Returns:
        The settings of the job (`rule` is that of the start's scale), the `step_size`, its `costs`,
        the `final` cost, whether that is below the first one (`falls`), and the `iterations`,
        `NEVER` for a run that does not get there.
    """
    table = pd.DataFrame(
        {
            "data": str(job[names.DATASET.column]),
            "normalizer": job["normalizer"],
            "inside": job[INSIDE],
            "layers": len(literal_eval(job[HIDDEN])),
            "rule": job[START_SCALE_SETTING],
            "step_size": step_size,
            "costs": costs,
        }
        for job, step_size, costs in step_runs(sweep)
    )
    # Of each row's data set, over all schemes, networks and step sizes.
    lowest = table["costs"].map(np.nanmin).groupby(table["data"]).transform("min")
    ends = table["costs"].map(lambda costs: costs[-1])
    starts = table["costs"].map(lambda costs: costs[0])
    at_zero = np.log(table["data"].map(CLASS_COUNTS))  # the cost of zero weights
    goals = LEARNED_COST if share is None else lowest + share * (at_zero - lowest)
    return table.assign(
        final=ends,
        falls=ends < starts,
        iterations=[
            min(iterations_to(costs, goal), NEVER)
            for costs, goal in zip(table["costs"], np.broadcast_to(goals, len(table)))
        ],
    )
