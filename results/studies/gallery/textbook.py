"""The numbers of the studies in `conf/experiment/textbook`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery.batches import descents
from normbench.results.studies.gallery.networks import INSIDE, START_SCALE_SETTING

TEXTBOOK_STEP = 0.1  # of section 7.8


def batch_normalization(sweep: Sweep) -> dict[str, float]:
    """Return final costs and misclassified points of plain and normalized networks.

    `cost_START_INSIDE_STEP`, `missed_START_INSIDE_STEP`: the cost and the misclassified points
    after the last iteration, medians over the starts. `lowest_START_INSIDE`: the lowest of these
    costs over the step sizes. `share_of_the_start`: how much He's start lowers the plain network's
    lowest cost from the source's start, as a share of how much normalization lowers it.
    """
    numbers = _last_by_start(sweep)
    # 0.1 is the scale of the source's start, `he` the rule of He.
    plain, batch, he = (numbers[f"lowest_{key}"] for key in ("0.1_none", "0.1_batch", "he_none"))
    return numbers | {"share_of_the_start": (plain - he) / (plain - batch)}


def batch_normalization_2d(sweep: Sweep) -> dict[str, float]:
    """Return `ratio_START_STEP`, the normalized network's last cost over the plain network's.

    The last costs are medians over the starts. `ratio_START_best`: the same ratio of the lowest
    last costs over the step sizes.
    """
    numbers = _last_by_start(sweep)
    ratios: dict[str, float] = {}
    for key, cost in numbers.items():
        quantity, start, inside, *step = key.split("_")  # the lowest costs have no step
        # A cost, of a step size or the lowest, of the normalized network.
        if inside == "batch" and quantity != "missed":
            plain = numbers["_".join([quantity, start, "none", *step])]
            ratios["_".join(["ratio", start, *(step or ["best"])])] = cost / plain
    return ratios


def _last_by_start(sweep: Sweep) -> dict[str, float]:
    """Return the numbers of `batch_normalization` without `share_of_the_start`.

    They are `cost_START_INSIDE_STEP`, `missed_START_INSIDE_STEP` and `lowest_START_INSIDE`.
    """
    numbers: dict[str, float] = {}
    rows = sweep.of_role(names.SCHEME).set_index("label")
    for label, arrays in sweep.arrays(sweep.of_role(names.SCHEME), names.DESCENT_ARRAYS).items():
        key = f"{rows.loc[label, START_SCALE_SETTING]}_{rows.loc[label, INSIDE]}"
        costs, missed = (
            np.median(arrays[metric.key][:, :, -1], axis=1)
            for metric in (names.TRAIN_COST, names.TRAIN_MISCLASSIFICATIONS)
        )
        numbers[f"lowest_{key}"] = float(np.nanmin(costs))
        for size, cost, count in zip(arrays["step_sizes"], costs, missed):
            numbers[f"cost_{key}_{size:g}"] = float(cost)
            numbers[f"missed_{key}_{size:g}"] = float(count)
    return numbers


def minibatch(sweep: Sweep) -> dict[str, float]:
    """Return how batches of 200 compare with all points, by scheme.

    `cost_SCHEME`, `missed_SCHEME`: the number of passes after which the batches have the lower
    cost, and fewer misclassified points, at the step size of the source. `best_SCHEME`: the lowest
    last cost of the batches over the step sizes, over that of all points.
    """
    numbers: dict[str, float] = {}
    rows = sweep.of_role(names.SCHEME)
    arrays = sweep.arrays(rows, names.DESCENT_ARRAYS)
    by_scheme: dict[str, dict[int, tuple[np.ndarray, ...]]] = {}
    lowest: dict[tuple[str, int], float] = {}
    for descent in descents(sweep):
        missed = arrays[descent.job["label"]][names.TRAIN_MISCLASSIFICATIONS.key][:, 0]
        of_scheme = by_scheme.setdefault(str(descent.job["normalizer"]), {})
        # The step size of the source; records 1 to K are after the start.
        source = int(np.argmin(np.abs(descent.step_sizes - TEXTBOOK_STEP)))
        of_scheme[descent.batch] = descent.costs[source, 1:], missed[source, 1:]
        lowest[str(descent.job["normalizer"]), descent.batch] = float(
            np.nanmin(descent.costs[:, -1])
        )
    for scheme, of_scheme in by_scheme.items():
        # The costs and counts of batches of 200, and of the larger batch of all points.
        batch, all_points = sorted(of_scheme)
        for name, ours, theirs in zip(("cost", "missed"), of_scheme[batch], of_scheme[all_points]):
            numbers[f"{name}_{scheme}"] = float(np.sum(ours < theirs))
        numbers[f"best_{scheme}"] = lowest[scheme, batch] / lowest[scheme, all_points]
    return numbers
