"""The statistics of paired values: what a table of many pairs allows one to conclude.

Pure functions of arrays. The values of a pair are `(n,)`, one a split of the data, which is the
unit: the starts within a split share its data, so they are one value, their median. Leading axes
are many pairs, or many tables, at once.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEVEL = 0.05  # of all pairs of a table together
ROUNDING = 1e-9  # relative: differences that vary by less are equal but for rounding


class Conclusions(NamedTuple):
    """What each of m pairs allows: `(..., m)` each.

    direction: 1 where the first of the pair is faster, -1 where the second is, 0 where it is open.
    low, high: an interval of the median of the log ratios, NaN where there are too few values.
    """

    direction: NDArray[np.int64]
    low: Array
    high: Array


def log_ratios(first: Array, second: Array) -> Array:
    """Return `log(second / first)`: above 0 where the first is faster.

    Plus or minus infinity where one is unreached (infinite). NaN where neither is reached: there
    the two have no order. What was reached at the start (0) counts as 1, or as the least value
    above 0 where that is smaller, so that a ratio exists.
    """
    least = np.min(np.r_[first[first > 0], second[second > 0], 1.0])
    with np.errstate(invalid="ignore"):
        return np.asarray(np.log(np.maximum(second, least)) - np.log(np.maximum(first, least)))


def median(values: Array) -> Array:
    """Return the median along the last axis, NaN left out; infinite values are allowed.

    0 between minus and plus infinity, and NaN of nothing.
    """
    ordered = np.sort(values, axis=-1)
    size = np.sum(~np.isnan(values), axis=-1, keepdims=True)
    last = np.maximum(size, 1)
    low = np.take_along_axis(ordered, (last - 1) // 2, axis=-1)[..., 0]
    high = np.take_along_axis(ordered, last // 2, axis=-1)[..., 0]
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    opposite = np.isinf(low) & np.isinf(high) & (low != high)
    return np.where(opposite, 0.0, middle)


def side_by_side(pairs: Sequence[Array]) -> Array:
    """Return the values of m pairs as `(m, n)`, NaN behind those of fewer splits."""
    padded = list(zip_longest(*pairs, fillvalue=np.nan))
    return np.array(padded, dtype=float).reshape(-1, len(pairs)).T


def wins(differences: Array) -> float:
    """Return the share of differences `(n,)` above 0, of which a tie is half; NaN of nothing."""
    return float(np.mean((np.sign(differences) + 1) / 2)) if len(differences) else float("nan")


def sign_test(logs: Array) -> Array:
    """Return the p-values `(..., m)` of log ratios `(..., m, n)` whose median may be 0.

    Two-sided and exact; a tie speaks against both sides. Conover, Practical Nonparametric
    Statistics (1999), section 3.4.
    """
    from scipy.special import bdtr

    count = np.sum(~np.isnan(logs), axis=-1)
    against = np.minimum(np.sum(logs <= 0, axis=-1), np.sum(logs >= 0, axis=-1))
    return np.minimum(1.0, 2 * bdtr(against, count, 0.5))


def resampled_t_test(differences: Array, ratio: float) -> float:
    """Return the p-value of the corrected resampled t-test, of no difference on new data.

    With J random splits of one data set, t = mean(d) / sqrt((1 / J + ratio) * var(d)), two-sided
    by Student's t with J - 1 degrees of freedom; the variance has the divisor J - 1. The splits
    share points, so the mean of their differences varies more than var(d) / J from data set to
    data set; the ratio accounts for that.

    Args:
        differences: `(J,)`, finite, one a split.
        ratio: Test points of a split per training point; 0 gives the ordinary t-test.

    Returns:
        The p-value; 1 of fewer than two splits and of differences that do not vary.

    References:
        Nadeau and Bengio, Inference for the generalization error, Machine Learning 52 (2003).
    """
    from scipy.special import stdtr

    count = len(differences)
    if count < 2 or np.ptp(differences) <= ROUNDING * np.abs(differences).max():
        return 1.0
    variance = (1 / count + ratio) * np.var(differences, ddof=1)
    return float(2 * stdtr(count - 1, -abs(np.mean(differences)) / np.sqrt(variance)))


def holm(p_values: Array) -> Array:
    """Return the level at which each of m pairs `(..., m)` is tested, by Holm's correction.

    The smallest p-value is tested at LEVEL / m, the next at LEVEL / (m - 1), and so on until one
    is not rejected; the rest share its level. No true null hypothesis of the table is then
    rejected with a probability of 1 - LEVEL. Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    count = p_values.shape[-1]
    order = np.argsort(p_values, axis=-1, kind="stable")
    steps = np.broadcast_to(LEVEL / np.arange(count, 0, -1.0), p_values.shape)
    passed = np.take_along_axis(p_values, order, axis=-1) <= steps
    rejected = np.sum(np.cumprod(passed, axis=-1), axis=-1, keepdims=True)
    sorted_levels = np.minimum(steps, LEVEL / np.maximum(count - rejected, 1.0))
    levels = np.empty_like(p_values)
    np.put_along_axis(levels, order, sorted_levels, axis=-1)
    return levels


def interval(values: Array, level: Array | float = LEVEL) -> tuple[Array, Array]:
    """Return an interval of the median of what values `(..., n)` are drawn from.

    From the k-th value from below to the k-th from above, with the largest k for which that holds
    the median with a probability of 1 - level or more, whatever the distribution is: how many
    values lie below it is binomial. NaN among the values is left out; the ends are NaN where the
    values are too few. Conover, Practical Nonparametric Statistics (1999), section 3.2.
    """
    from scipy.special import bdtr

    count = np.sum(~np.isnan(values), axis=-1, keepdims=True)
    below = np.arange(values.shape[-1])
    half = np.broadcast_to(np.asarray(level, dtype=float), count.shape[:-1])[..., None] / 2
    place = np.sum((bdtr(below, count, 0.5) <= half) & (below < count), axis=-1)
    ordered = np.sort(values, axis=-1)

    def at(index: NDArray[np.int64]) -> Array:
        found = np.take_along_axis(ordered, np.maximum(index, 0)[..., None], axis=-1)[..., 0]
        return np.where(place > 0, found, np.nan)

    return at(place - 1), at(np.minimum(count[..., 0] - place, values.shape[-1] - 1))


def judge(logs: Array) -> Conclusions:
    """Return the conclusions on a table of m pairs, from their log ratios `(..., m, n)`.

    A pair has a conclusion where the sign test rejects at Holm's level, which is where the interval
    at that converge does not hold 0.
    """
    p_values = sign_test(logs)
    levels = holm(p_values)
    low, high = interval(logs, levels)
    direction = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    return Conclusions(direction, low, high)


def fewest(pairs: int) -> int:
    """Return how many values a pair must have before a table of so many pairs allows a conclusion.

    The smallest n with `2 * 0.5**n <= LEVEL / pairs`: all n values then lie on one side.
    """
    return int(np.ceil(1 - np.log2(LEVEL / max(pairs, 1))))


def tied(values: Array, tolerance: float) -> NDArray[np.int64]:
    """Return the place of each value `(n,)` among the different ones, from 0 for the lowest.

    Values are the same where each is within the tolerance of the next lower one, and infinite
    ones are the same.
    """
    order = np.argsort(values, kind="stable")
    sorted_values = np.where(np.isfinite(values), values, np.finfo(float).max)[order]
    rises = np.diff(sorted_values) > tolerance
    places = np.empty(len(values), dtype=np.int64)
    places[order] = np.concatenate([[0], np.cumsum(rises)])[: len(values)]
    return places
