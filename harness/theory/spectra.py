"""Theory of a descent: pure functions of points and spectra.

`Gram = [1 X]'[1 X] / P`, the bias column included; the Hessian of a cost of linear scores is at
most `bound` times it, and that of least squares is exactly 2 times it, at any weights.
"""

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats

from normbench.normalizers.decomposition import PointsCache, rounding_share, singular_values

Array = NDArray[np.float64]
SINGULAR_RESOLUTION = 1e-15  # of the largest singular value: smaller ones are rounding
LIMIT = SINGULAR_RESOLUTION**-2  # the largest condition number that can be resolved
# Condition number: beyond it a gradient's rounding shows in predictions.
MAX_PREDICTED_CONDITION = 1e24
MAX_COUNTED_ITERATIONS = 1 << 60  # iterations


class Spectrum(NamedTuple):
    """The eigenvalues above rounding of a symmetric matrix H without negative eigenvalues.

    Attributes:
        values: The eigenvalues `(n,)`, decreasing.
        is_complete: False where only the largest is known, so that rank and condition number are
            unknown.
        lost: Whether some directions above rounding have eigenvalues below `largest / LIMIT`, which
            cannot be resolved and are missing in `values`.
        root: A matrix with `root'root = H`; None unless complete.
    """

    values: Array
    is_complete: bool = True
    lost: bool = False
    root: Array | None = None

    @property
    def largest(self) -> float:
        """The largest eigenvalue; 0 for a matrix of zeros."""
        return float(self.values[0]) if len(self.values) else 0.0

    @property
    def rank(self) -> int:
        """The number of eigenvalues above rounding."""
        return len(self.values)

    @property
    def condition_number(self) -> float:
        """The largest over the smallest nonzero eigenvalue; NaN without one, or if any is lost."""
        if not len(self.values) or self.lost:
            return float("nan")
        return float(self.values[0] / self.values[-1])


class Quadratic(NamedTuple):
    """A least-squares cost along its Hessian's eigenvectors, as seen from the start of a descent.

    Attributes:
        start_cost: The cost at the start.
        values: The nonzero eigenvalues h of the Hessian, `(n,)`.
        squared_gradient: The squared gradient g^2 at the start along each eigenvector, `(n,)`,
            summed over the weights of the C scores.
    """

    start_cost: float
    values: Array
    squared_gradient: Array

    @property
    def excess_by_direction(self) -> Array:
        """Each direction's part of the start's excess, `1/2 h c^2 = g^2 / (2 h)`, `(n,)`.

        Costs and not fractions: they sum to the cost at the start minus the minimum. c is the
        distance to the minimum along the direction.
        """
        return self.squared_gradient / (2 * self.values)


def gram(x: NDArray[Any]) -> Array:
    """Return `[1 X]'[1 X] / P`, `(N + 1, N + 1)`, of points x (P, N)."""
    root = PointsCache(x).gram_root
    return root.T @ root


def eigenvalues_above_rounding(values: Array, size: int) -> Array:
    """Return the eigenvalues above rounding, decreasing.

    Args:
        values: Eigenvalues of a symmetric matrix, in any order.
        size: The number of rows of the matrix; values up to `size` times machine epsilon of the
            largest are rounding, and negative ones, too.

    Returns:
        The eigenvalues that remain; none where the largest is not positive.
    """
    values = np.sort(values)[::-1]
    return values[values > size * np.finfo(np.float64).eps * values.max(initial=0.0)]


def spectrum(moments: PointsCache) -> Spectrum:
    """Return the spectrum of the Gram matrix of points, from singular values of its root.

    The rank is 1 more than that of the covariance with each feature scaled to variance 1, so that
    no direction counts as rounding because another is large. Singular values down to 1e-15 of the
    largest are accurate.
    """
    deviations = moments.correlation_deviations
    rounding = rounding_share(moments.x.shape[1]) * deviations[:1]
    rank = 1 + int(np.count_nonzero(deviations > rounding))
    return _of_root(moments.gram_root, rank)


def _of_root(root: Array, rank: int) -> Spectrum:
    """Return the spectrum of `root'root`, from the singular values of the root.

    Args:
        root: A matrix.
        rank: The number of directions above rounding.
    """
    values = singular_values(root)[:rank]
    is_resolved = values > SINGULAR_RESOLUTION * values[0]
    return Spectrum(values[is_resolved] ** 2, lost=not is_resolved.all(), root=root)


def penalize(spectrum_of_gram: Spectrum, factor: float, l2: float | Array) -> Spectrum:
    """Return the spectrum of `factor Gram + 2 l2 diag(0, 1, .., 1)`; the bias has no penalty.

    Args:
        spectrum_of_gram: The spectrum of the Gram matrix of points (P, N), `[1 X]'[1 X] / P`.
        factor: The bound of the cost's second derivative in its scores.
        l2: The penalty: one number, one for each feature `(N,)`, or a matrix `(N, N)`.

    Returns:
        The spectrum. Where only the largest eigenvalue is known, it is an upper bound.
    """
    values = factor * spectrum_of_gram.values
    if spectrum_of_gram.root is None:
        # As if the penalty were on the bias, too: at most 2 l2 too large.
        largest_l2 = np.linalg.norm(l2, 2) if np.ndim(l2) == 2 else np.max(l2)
        return spectrum_of_gram._replace(values=values + 2 * largest_l2)
    root = np.sqrt(factor) * spectrum_of_gram.root
    if not np.any(l2):
        return spectrum_of_gram._replace(values=values, root=root)
    width = root.shape[1]
    penalty_rows = penalty_root(l2, width)
    # A penalty in every direction of the features leaves none at rounding level.
    penalizes_all = np.count_nonzero(penalty_rows.any(axis=1)) == width - 1
    rank = width if penalizes_all else spectrum_of_gram.rank
    stacked = np.asarray(np.linalg.qr(np.vstack([root, penalty_rows]), mode="r"))
    return _of_root(stacked, rank)


def penalty_root(l2: float | Array, width: int) -> Array:
    """Return a matrix R whose product `R'R` is the Hessian of a penalty, `2 l2`.

    Args:
        l2: The penalty: one number, one for each feature `(N,)`, or a matrix `(N, N)`.
        width: The number of weights of a score, N + 1.

    Returns:
        R, `(n, width)`, bias first. A row is 0 where a direction has no penalty.
    """
    if np.ndim(l2) < 2:
        curved = np.broadcast_to(2 * np.asarray(l2, dtype=np.float64), (width - 1,))
        return np.diag(np.sqrt(np.r_[0.0, curved]))
    values, vectors = linalg.eigh(2 * np.asarray(l2))
    values = np.where(values > width * np.finfo(np.float64).eps * values[-1], values, 0.0)
    return np.insert(np.sqrt(values)[:, None] * vectors.T, 0, 0.0, axis=1)


def step_threshold(lipschitz: float) -> float:
    """Return `2 / L`: descent on a quadratic converges exactly when its step size is smaller."""
    return 2 / lipschitz if lipschitz > 0 else float("inf")


def eigenvectors(hessian: Spectrum) -> tuple[Array, Array]:
    """Return the nonzero eigenvalues and the eigenvectors of a complete spectrum.

    Returns:
        Eigenvalues `(n,)`, decreasing, and unit vectors as columns `(N + 1, n)`, bias first.
    """
    _, roots, rows = linalg.svd(hessian.root, full_matrices=False)
    nonzero = slice(hessian.rank)
    return roots[nonzero] ** 2, rows[nonzero].T


def quadratic(hessian: Spectrum, start: float, gradient: Array) -> Quadratic:
    """Return a least-squares cost along the eigenvectors of its Hessian.

    Predictions are computed from the cost and the gradient at the start. Computed from the minimum,
    they would lose half of their digits.

    Args:
        hessian: The complete spectrum of the Hessian.
        start: The cost at the start.
        gradient: The gradient at the start, `(C, N + 1)`.

    Returns:
        The cost at the start, eigenvalues, and squared gradients along the eigenvectors, summed
        over the C scores.
    """
    values, vectors = eigenvectors(hessian)
    squared_gradient = (gradient @ vectors) ** 2
    return Quadratic(start, values, squared_gradient.sum(axis=0))


def predicted_history(problem: Quadratic, step_size: float, iterations: int) -> Array:
    """Return the costs of descent with a fixed step size on least squares.

    Exact: each direction's share of the gap shrinks by `(1 - a h)^2` at each step, so the cost has
    fallen by `sum g^2 / (2 h) (1 - (1 - a h)^2k)` after k steps.

    Args:
        problem: The cost along the eigenvectors of its Hessian, from `quadratic`.
        step_size: The step size a.
        iterations: The number of steps K.

    Returns:
        The costs `(K + 1,)` from the start on, infinite from where they overflow.
    """
    k = np.arange(1, iterations + 1)[:, None]
    with np.errstate(over="ignore"):
        # `1 - |1 - a h|^2k` of each step k and direction, accurate also where it is near 0.
        share_lost = -np.expm1(2 * k * _logarithms(problem, step_size))
        decrease = share_lost @ problem.excess_by_direction
    return np.r_[problem.start_cost, problem.start_cost - decrease]


def _logarithms(problem: Quadratic, step_size: float) -> Array:
    """Return `log |1 - a h|` for each eigenvalue h and step size a, `(n,)`.

    It is the rate at which a step shrinks the distance to the minimum along each eigenvector. It is
    accurate also where a h is near 0 or 2.
    """
    product = step_size * problem.values
    # log1p takes `|1 - a h| - 1`, which is -a h up to a h = 1 and a h - 2 above.
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(np.maximum(-product, product - 2)))


def predicted_iterations(problem: Quadratic, step_size: float, gap: float) -> float:
    """Return the first step at which the gap to the minimum is at most a given one.

    Below `2/L` the gap shrinks at every step, so bisection finds that step.

    Args:
        problem: The cost along the eigenvectors of its Hessian, from `quadratic`.
        step_size: The step size a.
        gap: The excess of the cost over its minimum that is to be reached.

    Returns:
        A whole number; infinite for never, and from `MAX_COUNTED_ITERATIONS` on.
    """
    rates = _logarithms(problem, step_size)

    if problem.excess_by_direction.sum() <= gap:
        return 0.0
    if rates.max() >= 0:  # some direction does not shrink: the step size is not below 2/L
        return float("inf")
    first = bisect_left(
        range(MAX_COUNTED_ITERATIONS),
        True,
        lo=1,
        key=lambda k: bool(problem.excess_by_direction @ np.exp(2 * k * rates) <= gap),
    )
    return float(first) if first < MAX_COUNTED_ITERATIONS else float("inf")


def effective_rank(values: Array) -> float:
    """Return `exp(entropy)` of a spectrum's shares, in nats: the effective number of directions.

    It is N where all variances are equal, 1 where one direction has all, and 0 where all are 0.
    Roy, Vetterli, "The effective rank", EUSIPCO 2007.

    Args:
        values: Variances `(N,)`, not negative.
    """
    return float(np.exp(stats.entropy(values))) if values.any() else 0.0


def variance_after_sphering(values: Array, ridge: float) -> Array:
    """Return each direction's variance after sphering with a ridge, `d / (d + ridge)`.

    Args:
        values: The variances d `(n,)` before it, eigenvalues of the covariance (divided by P).
        ridge: The constant that sphering adds to each variance, in the same units.

    Returns:
        `(n,)`: 1 where the ridge has no effect, near 0 where it suppresses the direction, and 0
        where d is 0.
    """
    return np.divide(values, values + ridge, out=np.zeros_like(values), where=values > 0)
