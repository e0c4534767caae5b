"""Points that stand for the plane of two components: those nearest to a grid of its quantiles."""

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.measures.inputs import MOST_FEATURES, has_plane, some

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _unfit(dataset: Dataset) -> str:
    (points, features), least = dataset.x.shape, len(QUANTILES) ** 2
    if points >= least and features > 1:
        return ""
    return f"takes {least} points of 2 features at least; {dataset.name} has {points} of {features}"


def take(made: Finished) -> Findings:
    """Return 25 different training points, along two coordinates of the scheme.

    Those are the two of the largest variance. `wanted` (25, 2): their 5, 25, 50, 75 and 95 percent
    quantiles, row by row, the first rising along a row, the second falling from row to row. `place`
    (25,): for each in that order the point that is nearest to it, in standard deviations, of those
    that are not taken; `at` (25, 2): where it is. `images` (25, N): these points as they are.
    `cloud` (p, 2): at most 2,000 of all points. Source: Hastie, Tibshirani, Friedman, "The Elements
    of Statistical Learning", 2nd ed., figure 14.23.
    """
    spread = made.z.std(axis=0, dtype=np.float64)
    leading = np.argsort(-spread, kind="stable")[:2]
    plane = made.z[:, leading].astype(np.float64)
    first, second = np.quantile(plane, QUANTILES, axis=0).T
    wanted = np.array([(one, other) for other in second[::-1] for one in first])
    place = _nearest(plane / _scale(spread[leading]), wanted / _scale(spread[leading]))
    return Findings(
        arrays={
            "wanted": wanted,
            "place": place,
            "at": plane[place],
            "images": made.dataset.x[place].astype(np.float32),
            "cloud": plane[some(len(plane))],
        }
    )


def _scale(spread: Array) -> Array:
    return np.where(spread > 0, spread, 1.0)


def _nearest(points: Array, wanted: Array) -> Array:
    """Return for each place that is wanted the nearest point that no earlier place has taken."""
    left = np.ones(len(points), dtype=bool)
    taken = []
    for place in wanted:
        away = np.where(left, ((points - place) ** 2).sum(axis=1), np.inf)
        taken.append(int(away.argmin()))
        left[taken[-1]] = False
    return np.array(taken)


MEASURE = Measure(
    take,
    "exemplars",
    of_descent=False,
    applies=has_plane,
    most_features=MOST_FEATURES,
    unfit=_unfit,
)
