"""Exemplars in the plane of two components: the points nearest to a grid of quantiles."""

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import MOST_FEATURES, has_plane, sample_indices

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why a data set has no exemplars; empty where it has.

    It needs a point for each pair of quantiles, and two features.
    """
    (points, features), least = dataset.x.shape, len(QUANTILES) ** 2
    if points >= least and features > 1:
        return ""
    return f"takes {least} points of 2 features at least; {dataset.name} has {points} of {features}"


def take(job: FinishedJob) -> Findings:
    """Return 25 different training points, the exemplars, along two coordinates of the scheme.

    The coordinates are the two of the largest variance. `wanted` (25, 2): all pairs of their 5, 25,
    50, 75 and 95 percent quantiles, row by row, the first coordinate rising along a row, the second
    falling from row to row. `place` (25,): for each pair in that order, the index of the nearest
    point, in standard deviations, that is no exemplar yet; `at` (25, 2): its coordinates. `images`
    (25, N): its features. `cloud` (p, 2): the coordinates of at most 2,000 of all points. Source:
    Hastie, Tibshirani, Friedman, "The Elements of Statistical Learning", 2nd ed., figure 14.23.
    """
    deviations = job.z.std(axis=0, dtype=np.float64)
    leading = np.argsort(-deviations, kind="stable")[:2]
    plane = job.z[:, leading].astype(np.float64)
    first, second = np.quantile(plane, QUANTILES, axis=0).T
    # Row by row from the top, as they are drawn.
    wanted = np.array([(across, upward) for upward in second[::-1] for across in first])
    scale = _scale(deviations[leading])
    nearest = _nearest(plane / scale, wanted / scale)
    return Findings(
        arrays={
            "wanted": wanted,
            "place": nearest,
            "at": plane[nearest],
            "images": job.dataset.x[nearest].astype(np.float32),
            "cloud": plane[sample_indices(len(plane))],
        }
    )


def _scale(spread: Array) -> Array:
    """Return standard deviations with 1 in place of 0, to divide by."""
    return np.where(spread > 0, spread, 1.0)


def _nearest(points: Array, positions: Array) -> Array:
    """Return the indices (k,) of different points, one for each position (k, 2).

    Positions take their turn: each takes the nearest point (P, 2) that no earlier one has taken.
    """
    available = np.ones(len(points), dtype=bool)
    nearest = []
    for position in positions:
        distances = np.where(available, ((points - position) ** 2).sum(axis=1), np.inf)
        nearest.append(int(distances.argmin()))
        available[nearest[-1]] = False
    return np.array(nearest)


MEASURE = Measure(
    take,
    "exemplars",
    of_descent=False,
    applies=has_plane,
    most_features=MOST_FEATURES,
    reason_against=_reason_against,
)
