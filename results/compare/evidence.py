"""Statistical tests of paired values, with corrections for tables of many pairs.

These are pure functions of arrays. The values of a pair are `(n,)`, one a split of the data. The
split is the unit of the sample: starts within a split share its data, so their median is one value.
Leading axes hold many pairs, or many tables, at once.
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
    """The conclusions on m pairs, arrays `(..., m)`.

    direction: 1 where the first of the pair is faster, -1 where the second is, 0 where neither is
    shown to be. low, high: a confidence interval of the median log ratio, NaN where there are too
    few values.
    """

    direction: NDArray[np.int64]
    low: Array
    high: Array


def log_ratios(first: Array, second: Array) -> Array:
    """Return `log(second / first)`, which is above 0 where the first is faster.

    Args:
        first: Iterations or seconds to the target `(n,)`, infinite where it is not reached.
        second: The same of the other scheme `(n,)`.

    Returns:
        The log ratios `(n,)`: plus or minus infinity where one scheme does not reach the target,
        NaN where neither does, since the two have no order then. A target that is reached at the
        start (0) counts as 1, or as the least value above 0 if that is smaller, so that a ratio
        exists.
    """
    smallest_value = np.min(np.r_[first[first > 0], second[second > 0], 1.0])
    # Infinity minus infinity is the NaN of two schemes that do not reach the target.
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.log(np.maximum(second, smallest_value)) - np.log(np.maximum(first, smallest_value))
        )


def median(values: Array) -> Array:
    """Return the median along the last axis; NaN is left out, infinite values are allowed.

    The median between minus and plus infinity is 0; the median of no values is NaN.

    Args:
        values: The samples `(..., n)`.

    Returns:
        The medians `(...)`.
    """
    ordered = np.sort(values, axis=-1)  # NaN comes last
    size = np.sum(~np.isnan(values), axis=-1, keepdims=True)
    sample_size = np.maximum(size, 1)  # of an empty sample, the first value, a NaN, is taken
    low = np.take_along_axis(ordered, (sample_size - 1) // 2, axis=-1)[..., 0]
    high = np.take_along_axis(ordered, sample_size // 2, axis=-1)[..., 0]
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    # Their mean would be NaN.
    opposite_infinities = np.isinf(low) & np.isinf(high) & (low != high)
    return np.where(opposite_infinities, 0.0, middle)


def pad_pairs(pairs: Sequence[Array]) -> Array:
    """Return the values of m pairs as `(m, n)`; pairs with fewer splits are padded with NaN."""
    # Pairs that all lack splits get one column of NaN, so that they have no conclusion.
    padded = list(zip_longest(*pairs, fillvalue=np.nan)) or [(np.nan,) * len(pairs)]
    return np.array(padded, dtype=float).reshape(-1, len(pairs)).T


def win_share(differences: Array) -> float:
    """Return the share of differences `(n,)` above 0; a tie counts half; NaN for no values."""
    return float(np.mean((np.sign(differences) + 1) / 2)) if len(differences) else float("nan")


def sign_test(logs: Array) -> Array:
    """Return the p-values of the exact two-sided sign test of the median 0.

    A tie counts against both sides.

    Args:
        logs: Log ratios `(..., m, n)`; NaN is left out.

    Returns:
        The p-values `(..., m)`.

    References:
        Conover, Practical Nonparametric Statistics (1999), section 3.4.
    """
    from scipy.special import bdtr

    # 2 P(B <= against) for B binomial with `count` trials and p = 1/2; `bdtr` is its distribution.
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
    # Differences that are equal but for rounding would give an arbitrarily small variance.
    if count < 2 or np.ptp(differences) <= ROUNDING * np.abs(differences).max():
        return 1.0
    variance = (1 / count + ratio) * np.var(differences, ddof=1)
    return float(2 * stdtr(count - 1, -abs(np.mean(differences)) / np.sqrt(variance)))


def holm(p_values: Array) -> Array:
    """Return the level at which each of m pairs is tested, by Holm's correction.

    The smallest p-value is tested at LEVEL / m, the next at LEVEL / (m - 1), and so on until one
    is not rejected; the larger ones share its level. With a probability of at least 1 - LEVEL, no
    true null hypothesis of the table is rejected.

    Args:
        p_values: The p-values of m pairs `(..., m)`.

    Returns:
        The levels `(..., m)`.

    References:
        Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
        Statistics 6 (1979).
    """
    count = p_values.shape[-1]
    order = np.argsort(p_values, axis=-1, kind="stable")
    step_levels = np.broadcast_to(LEVEL / np.arange(count, 0, -1.0), p_values.shape)
    below_level = np.take_along_axis(p_values, order, axis=-1) <= step_levels
    # How many of the smallest p-values are rejected: the product is 0 from the first other one on.
    rejected_count = np.sum(np.cumprod(below_level, axis=-1), axis=-1, keepdims=True)
    # The first one that is not rejected has the level LEVEL / (m - rejected), as all after it.
    sorted_levels = np.minimum(step_levels, LEVEL / np.maximum(count - rejected_count, 1.0))
    levels = np.empty_like(p_values)
    np.put_along_axis(levels, order, sorted_levels, axis=-1)
    return levels


def interval(values: Array, level: Array | float = LEVEL) -> tuple[Array, Array]:
    """Return a confidence interval of the median of the distribution of the values.

    The interval goes from the k-th smallest to the k-th largest value, with the largest k for
    which it holds the median with a probability of at least 1 - level. It needs no assumption
    on the distribution, because the number of values below the median is binomial.

    Args:
        values: The sample `(..., n)`; NaN is left out.
        level: The probability of missing the median, a number or `(...)`.

    Returns:
        The lower and the upper ends `(...)`, NaN where the values are too few.

    References:
        Conover, Practical Nonparametric Statistics (1999), section 3.2.
    """
    from scipy.special import bdtr

    count = np.sum(~np.isnan(values), axis=-1, keepdims=True)
    # The k-th smallest value lies above the median if fewer than k values are below the median.
    # So k is the number of j = 0, 1, ... with P(j values or fewer are below) <= level / 2.
    below = np.arange(values.shape[-1])
    half_level = np.broadcast_to(np.asarray(level, dtype=float), count.shape[:-1])[..., None] / 2
    # The k of the docstring; 0 where the values are too few.
    k = np.sum((bdtr(below, count, 0.5) <= half_level) & (below < count), axis=-1)
    ordered = np.sort(values, axis=-1)  # NaN comes last

    def value_at(index: NDArray[np.int64]) -> Array:
        """Return the value at an index of each sorted sample; NaN where k is 0."""
        bounds = np.take_along_axis(ordered, np.maximum(index, 0)[..., None], axis=-1)[..., 0]
        return np.where(k > 0, bounds, np.nan)

    return value_at(k - 1), value_at(np.minimum(count[..., 0] - k, values.shape[-1] - 1))


def judge(logs: Array) -> Conclusions:
    """Return the conclusions on a table of m pairs.

    A pair has a conclusion where the sign test rejects at Holm's level. The confidence interval at
    that level then does not hold 0.

    Args:
        logs: Log ratios `(..., m, n)`, NaN for splits that a pair lacks.

    Returns:
        The conclusions, arrays `(..., m)`.
    """
    p_values = sign_test(logs)
    levels = holm(p_values)
    low, high = interval(logs, levels)
    direction = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    return Conclusions(direction, low, high)


def fewest_values(pairs: int) -> int:
    """Return the least sample size with which a table of `pairs` pairs allows a conclusion.

    It is the smallest n with `2 * 0.5**n <= LEVEL / pairs`: the p-value of n values of one sign,
    at the strictest level of Holm's correction.

    Args:
        pairs: The number of pairs; 0 counts as 1.
    """
    return int(np.ceil(1 - np.log2(LEVEL / max(pairs, 1))))


def tie_ranks(values: Array, tolerance: float) -> NDArray[np.int64]:
    """Return dense ranks of values with ties, from 0 for the lowest.

    Args:
        values: The values `(n,)`; infinite ones tie.
        tolerance: A value ties with the next lower one if it is within this of it.

    Returns:
        The ranks `(n,)`.
    """
    order = np.argsort(values, kind="stable")
    # Infinite values are replaced, because the difference of two would be NaN.
    sorted_values = np.where(np.isfinite(values), values, np.finfo(float).max)[order]
    rises = np.diff(sorted_values) > tolerance
    ranks = np.empty(len(values), dtype=np.int64)
    # The slice leaves no rank for no values.
    ranks[order] = np.concatenate([[0], np.cumsum(rises)])[: len(values)]
    return ranks
