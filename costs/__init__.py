"""Costs: plain autograd functions of scores, never of weights.

A cost takes scores `(R, C, p)` and the targets `(p,)` of any block of p points, and returns the
SUM over those points, one number per run `(R,)`; the harness divides by the number of points.
Targets are -1/+1 or real numbers where a point has one score (C = 1), class indices 0..C-1
otherwise. Those here declare their traits and come with a fused derivative: see
`normbench.costs.declaration`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

from normbench.costs.declaration import COST_TASKS, Array, Counts, Fused, Sums, declare


def _of_margin(derive: Callable[[Array], tuple[NDArray[np.float64], Array]]) -> Fused:
    """Return the fused derivative of a cost that is the sum over points of `phi(t)`.

    Args:
        derive: Returns the sums of `phi(t)` `(R,)` and `phi'(t)` `(R, p)` of t `(R, p)`, which it
            may overwrite.
    """

    def fused(scores: Array, targets: Array) -> Sums:
        """Turn scores `(R, 1, p)` into `-y phi'(-y s)` in place; see `fused` of `declare`."""
        scores *= -targets
        t = scores[:, 0]  # a view `(R, p)`
        counts = count_false(t < 0)  # a point with `y s = 0` is misclassified
        values, t[...] = derive(t)
        scores *= -targets
        return values, counts

    return fused


def _sum(values: Array) -> NDArray[np.float64]:
    """Return the sums over points `(R,)` of values `(R, p)`."""
    return np.asarray(values.sum(axis=-1, dtype=np.float64))


@_of_margin
def _fused_softmax(t: Array) -> tuple[NDArray[np.float64], Array]:
    """Return the sums of `log(1 + e^t)`, and `sigma(t) = e^t / (1 + e^t)`."""
    # Above the cap, log(1 + e^t) = t and sigma(t) = 1 to rounding, and e^t would overflow.
    _, cap = _exponent_range(t.dtype)
    excess_over_cap: Any = 0.0
    # Only where some t exceeds the cap (or is NaN): the two extra passes are rare.
    if not np.maximum.reduce(t, axis=None, initial=0) <= cap:
        excess_over_cap = _sum(np.maximum(t - cap, 0))
        np.minimum(t, cap, out=t)
    exp_in_place(t)  # t is e^t from here on
    scratch = np.log1p(t)
    values = _sum(scratch) + excess_over_cap
    t /= np.add(t, 1, out=scratch)
    return values, t


@declare("binary", curvature=1 / 4, separable=True, fused=_fused_softmax)
def softmax(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `log(1 + exp(-y s))`, in nats: logistic or cross-entropy.

    `logaddexp` keeps value and derivative right where `exp` would overflow.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, -1 or +1.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 6.3.
    """
    return anp.sum(anp.logaddexp(0.0, -targets * scores[:, 0]), axis=-1)


# The step function is 1/2 at 0.
_fused_perceptron = _of_margin(
    lambda t: (_sum(np.maximum(t, 0)), np.heaviside(t, t.dtype.type(0.5)))
)


@declare("binary", positively_homogeneous=True, piecewise="linear", fused=_fused_perceptron)
def perceptron(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(0, -y s)`, also called the ReLU cost.

    At `s = 0` the derivative is `-y / 2`, half way between the slopes of both sides: a
    sub-gradient, autograd's own, and one that lets a descent leave zero weights.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, -1 or +1.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 6.4.
    """
    return anp.sum(anp.maximum(0.0, -targets * scores[:, 0]), axis=-1)


_fused_squared_margin = _of_margin(
    lambda t: (_sum(np.maximum(1 + t, 0) ** 2), 2 * np.maximum(1 + t, 0))
)


@declare("binary", curvature=2.0, piecewise="quadratic", fused=_fused_squared_margin)
def squared_margin(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(0, 1 - y s)^2`, without a factor 1/2.

    It is the squared hinge of support vector machines.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, -1 or +1.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, sections 6.4 and 6.5.
    """
    return anp.sum(anp.maximum(0.0, 1.0 - targets * scores[:, 0]) ** 2, axis=-1)


def exp_in_place(scores: Array) -> None:
    """Replace scores, of any shape, by `e^s` in place; the smallest powers become 0.

    A power below the smallest normal number takes numpy 10 to 100 times as long as another, in
    float64 a power that is rounded to 0 does too, and each later product with such a number is as
    slow. A run with a large step size has many of them. So scores are raised to the logarithm of a
    small normal number (the floor), which is then subtracted from all powers: 1e-35 in float32,
    1e-305 in float64.
    """
    log_floor, _ = _exponent_range(scores.dtype)
    # Also true where a score is NaN, which stays NaN below.
    has_underflow = not np.minimum.reduce(scores, axis=None, initial=0) >= log_floor
    if has_underflow:
        np.maximum(scores, log_floor, out=scores)
    np.exp(scores, out=scores)
    if has_underflow:
        # The floor is computed in an array as the powers above are, not as a scalar, so that the
        # difference is exactly 0.
        scores -= np.exp(np.full(1, log_floor, scores.dtype))


@cache
def _exponent_range(dtype: Any) -> tuple[Any, Any]:
    """Return exponents whose powers of e are the least and the largest of a type, with room."""
    limits = np.finfo(dtype)
    return np.log(limits.tiny) + 7, np.log(limits.max) - 1


def _fused_least_squares(scores: Array, targets: Array) -> Sums:
    """Turn scores `(R, C, p)` into `2 (s - y)`, class indices y standing for one-hot columns.

    The misclassified points mean nothing where the targets are real numbers.
    """
    counts = count_misclassified(scores, targets)
    if scores.shape[1] == 1:  # targets are real or -1/+1, otherwise class indices
        scores -= targets
    else:
        scores[:, targets, np.arange(len(targets))] -= 1
    flat = scores.reshape(len(scores), -1)  # (R, C p)
    values = np.vecdot(flat, flat, dtype=np.float64)
    scores *= 2
    return values, counts


@declare(*COST_TASKS, curvature=2.0, quadratic=True, squares=True, fused=_fused_least_squares)
def least_squares(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `(s - y)^2`, without a factor 1/2.

    With class indices the sum also runs over C one-hot columns: `|s - e_y|^2 = |s|^2 - 2 s_y + 1`.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`: real or -1/+1 where C = 1, class indices otherwise.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 5.2.
    """
    if scores.shape[1] == 1:
        return anp.sum((scores[:, 0] - targets) ** 2, axis=-1)
    one_hot = (np.arange(scores.shape[1])[:, None] == targets).astype(float)
    return anp.sum((scores - one_hot) ** 2, axis=(1, 2))


def _fused_absolute(scores: Array, targets: Array) -> Sums:
    """Turn scores `(R, 1, p)` into `sign(s - y)`."""
    scores -= targets
    values = _sum(np.abs(scores[:, 0]))
    np.sign(scores, out=scores)
    return values, None


@declare("regression", piecewise="linear", fused=_fused_absolute)
def least_absolute_deviations(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `|s - y|`.

    At `s = y` the derivative is 0: a sub-gradient, autograd's own.

    Args:
        scores: `(R, 1, p)`.
        targets: `(p,)`, real.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 5.3.
    """
    residual = scores[:, 0] - targets
    # Not `abs`: its second derivative is 0, and autograd gives rounding instead.
    return anp.sum(anp.maximum(residual, -residual), axis=-1)


def _fused_multiclass_softmax(scores: Array, targets: Array) -> Sums:
    """Turn scores `(R, C, p)` into `softmax(s) - e_y`, for class indices y."""
    # The cost and its derivative stay the same, and no exponential overflows: the largest is 0.
    scores -= scores.max(axis=1)[:, None]
    own_scores, counts = find_own_scores(scores, targets, np.zeros((1, 1), scores.dtype))
    exp_in_place(scores)
    # A product with ones: half the time of a sum over the short axis.
    sums = np.ones(scores.shape[1], scores.dtype) @ scores
    values = (np.log(sums) - own_scores).sum(axis=-1, dtype=np.float64)
    scores *= (1 / sums)[:, None]
    scores[:, targets, np.arange(len(targets))] -= 1
    return values, counts


@declare(
    *("binary", "multiclass"),
    score_per_class=True,
    curvature=1 / 2,
    shift_invariant=True,
    separable=True,
    fused=_fused_multiclass_softmax,
)
def multiclass_softmax(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `logsumexp(s) - s_y`, in nats: multinomial or cross-entropy.

    The scores are shifted by the largest, so that none overflows.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, class indices.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3. The bound of its
        curvature: Boehning, Annals of the Institute of Statistical Mathematics 44.
    """
    largest = anp.max(scores, axis=1, keepdims=True)
    log_sum = anp.log(anp.sum(anp.exp(scores - largest), axis=1)) + largest[:, 0]
    return anp.sum(log_sum - scores[:, targets, np.arange(len(targets))], axis=-1)


def _fused_multiclass_perceptron(scores: Array, targets: Array) -> Sums:
    """Turn scores `(R, C, p)` into `[s = max s] / k - e_y`, where k scores share the largest."""
    largest = scores.max(axis=1)
    own_scores, counts = find_own_scores(scores, targets, largest)
    values = (largest - own_scores).sum(axis=-1, dtype=np.float64)
    np.copyto(scores, scores == largest[:, None])  # 1 at the largest scores, else 0
    # k, by a product with ones: half the time of a sum over the short axis.
    tie_counts = np.ones(scores.shape[1], scores.dtype) @ scores
    # k is 0 where a score is NaN: no score equals the largest one then, which is NaN.
    scores *= (1 / np.maximum(tie_counts, 1))[:, None]
    scores[:, targets, np.arange(len(targets))] -= 1
    return values, counts


@declare(
    *("binary", "multiclass"),
    score_per_class=True,
    shift_invariant=True,
    positively_homogeneous=True,
    piecewise="linear",
    fused=_fused_multiclass_perceptron,
)
def multiclass_perceptron(scores: Any, targets: Any) -> Any:
    """Return the sum over points of `max(s) - s_y`.

    Where k scores share the largest value, the derivative of `max` is 1/k at each: a sub-gradient,
    autograd's own, and one that lets a descent leave zero weights.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, class indices.

    Returns:
        Sums `(R,)`.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 7.3.
    """
    target_scores = scores[:, targets, np.arange(len(targets))]
    return anp.sum(anp.max(scores, axis=1) - target_scores, axis=-1)


def count_misclassified(scores: Array, targets: Array) -> Counts:
    """Return the number of misclassified points of each run.

    With one score a point (C = 1, targets -1 and +1) a point is misclassified when `sign(s) != y`,
    so that a score of exactly 0 is; with C scores (targets 0..C-1) when `argmax(s) != y`, the first
    of equal scores winning. A NaN is misclassified.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, -1/+1 or class indices.

    Returns:
        Counts `(R,)`.
    """
    if scores.shape[1] == 1:
        return count_false(scores[:, 0] * targets > 0)
    return find_own_scores(scores, targets, scores.max(axis=1))[1]


def count_false(is_correct: NDArray[np.bool_]) -> Counts:
    """Return the number of False entries `(R,)` in each row of a mask `(R, p)`."""
    # The True entries are added up as bytes. A sum in 32 bits takes half the time of one in 64;
    # `count_nonzero` along an axis is slower.
    correct_counts = np.add.reduce(is_correct.view(np.uint8), axis=1, dtype=np.int32)
    return np.asarray(is_correct.shape[1] - correct_counts, dtype=np.int64)


def find_own_scores(scores: Array, targets: Array, largest: Array) -> tuple[Array, Counts]:
    """Return the scores of the points' own classes `(R, p)`, and `count_misclassified`.

    Args:
        scores: `(R, C, p)`.
        targets: `(p,)`, class indices.
        largest: The largest score of each point, an array that broadcasts to `(R, p)`.
    """
    own_scores = scores[:, targets, np.arange(len(targets))]
    is_correct = own_scores == largest
    # Without ties C - 1 scores of each point are smaller. Ties, where the first class wins, are
    # rare: `argmax` over a short axis takes as long as the whole cost.
    smaller = scores < largest[:, None]
    if np.count_nonzero(smaller) < own_scores.size * (scores.shape[1] - 1):
        is_correct &= np.argmin(smaller, axis=1) == targets
    return own_scores, count_false(is_correct)
