"""What theory says about a descent before it is made: pure functions of points and spectra.

`Gram = [1 X]'[1 X] / P`, the bias column included; the Hessian of a cost of linear scores is at
most `bound` times it, and that of least squares is exactly 2 times it, wherever the weights are.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from normbench.engine.hessian import LinearHessian, penalty_curvature
from normbench.normalizers.spectrum import blocks

Array = NDArray[np.float64]
DENSE = 2000  # features: the spectrum of a matrix of that size takes seconds; beyond, by Lanczos


class Spectrum(NamedTuple):
    """Eigenvalues of a symmetric matrix, decreasing, without those that are rounding.

    whole: False where only the largest is known, so that rank and condition number are not.
    """

    values: Array
    whole: bool = True

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
        """The largest over the smallest nonzero eigenvalue; NaN where there is none."""
        return float(self.values[0] / self.values[-1]) if len(self.values) else float("nan")


class Quadratic(NamedTuple):
    """A least-squares cost along its Hessian's eigenvectors, seen from the start.

    start: the cost there. values `(n,)`: the nonzero eigenvalues h. gradient `(n,)`: the squared
    gradient along each, summed over the C columns of weights.
    """

    start: float
    values: Array
    gradient: Array

    @property
    def shares(self) -> Array:
        """Each direction's share of the gap to the minimum, `1/2 h c^2 = g^2 / (2 h)`, `(n,)`."""
        return self.gradient / (2 * self.values)


def gram(x: NDArray[Any]) -> Array:
    """Return `[1 X]'[1 X] / P`, `(N + 1, N + 1)`, of points x (P, N)."""
    matrix = np.zeros((x.shape[1] + 1, x.shape[1] + 1))
    for block in blocks(len(x)):
        part = x[block].astype(np.float64, copy=False)
        matrix[0, 1:] += part.sum(axis=0)
        matrix[1:, 1:] += part.T @ part
    matrix[1:, 0] = matrix[0, 1:]
    matrix /= len(x)
    matrix[0, 0] = 1.0
    return matrix


def live(values: Array, size: int) -> Array:
    """Return eigenvalues that are not rounding, decreasing: above size times machine epsilon."""
    values = np.sort(values)[::-1]
    if not len(values) or values[0] <= 0:
        return values[:0]
    return values[values > size * np.finfo(np.float64).eps * values[0]]


def gram_spectrum(x: NDArray[Any]) -> Spectrum:
    """Return the spectrum of the Gram matrix of points x (P, N).

    From the matrix, or that of the points' products where there are fewer points than features;
    by Lanczos, the largest alone, where both are more than 2,000.
    """
    size = min(x.shape[0], x.shape[1] + 1)
    if size <= DENSE and size == x.shape[1] + 1:
        return Spectrum(live(linalg.eigvalsh(gram(x)), size))
    if size <= DENSE:
        x = x.astype(np.float64, copy=False)
        return Spectrum(live(linalg.eigvalsh((x @ x.T + 1) / len(x)), x.shape[1] + 1))
    return Spectrum(np.array([largest_gram(x)]), whole=False)


def largest_gram(x: NDArray[Any]) -> float:
    """Return the largest eigenvalue of the Gram matrix from products with the points."""
    return LinearHessian(x.astype(np.float64, copy=False), np.ones((1, 1, len(x)))).lanczos()


def penalized(spectrum: Spectrum, factor: float, l2: float | Array, x: NDArray[Any]) -> Spectrum:
    """Return the spectrum of `factor Gram + 2 l2 diag(0, 1, .., 1)`; the bias has no penalty."""
    if not np.any(l2):
        return spectrum._replace(values=factor * spectrum.values)
    if x.shape[1] > DENSE:  # the penalty as if it were on the bias too: at most 2 l2 too large
        return Spectrum(factor * spectrum.values[:1] + 2 * np.max(l2), whole=False)
    penalty = np.diag(penalty_curvature(l2, (1, x.shape[1] + 1)))
    return Spectrum(live(linalg.eigvalsh(factor * gram(x) + penalty), x.shape[1] + 1))


def step_threshold(lipschitz: float) -> float:
    """Return `2 / L`: descent on a quadratic converges exactly when its step size is smaller."""
    return 2 / lipschitz if lipschitz > 0 else float("inf")


def quadratic(x: NDArray[Any], start: float, gradient: Array, l2: float | Array = 0.0) -> Quadratic:
    """Return least squares on points x (P, N) along its Hessian's eigenvectors.

    start, gradient `(C, N + 1)`: cost and gradient at the start; the prediction is made from them
    and never by way of the minimum, which would cost it half of its digits.
    """
    penalty = np.diag(penalty_curvature(l2, (1, x.shape[1] + 1)))
    values, vectors = linalg.eigh(2 * gram(x) + penalty)
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    along = (gradient @ vectors[:, kept]) ** 2
    return Quadratic(start, values[kept], along.sum(axis=0))


def predicted_history(problem: Quadratic, step_size: float, iterations: int) -> Array:
    """Return the costs `(K + 1,)` of descent with a fixed step size a on least squares.

    Exact: each direction's share of the gap shrinks by `(1 - a h)^2` a step, so the cost has
    fallen by `sum g^2 / (2 h) (1 - (1 - a h)^2k)` after k. Infinite from where it overflows.
    """
    k = np.arange(1, iterations + 1)[:, None]
    with np.errstate(over="ignore"):
        lost = -np.expm1(2 * k * _logarithms(problem, step_size))
        fallen = lost @ problem.shares
    return np.r_[problem.start, problem.start - fallen]


def _logarithms(problem: Quadratic, step_size: float) -> Array:
    """Return `log |1 - a h|` `(n,)`, to the last digit where a h is small."""
    product = step_size * problem.values
    with np.errstate(divide="ignore"):
        return np.where(product < 1, np.log1p(-np.minimum(product, 1)), np.log(np.abs(product - 1)))


def predicted_iterations(problem: Quadratic, step_size: float, gap: float) -> float:
    """Return the first step at which the gap to the minimum is at most `gap`; infinite for never.

    Below `2/L` the gap shrinks at every step, so that doubling and halving find it.
    """
    rates = _logarithms(problem, step_size)

    def left(k: int) -> float:
        return float(problem.shares @ np.exp(2 * k * rates)) if k else float(problem.shares.sum())

    if left(0) <= gap:
        return 0.0
    if rates.max() >= 0:
        return float("inf")
    upper = 1
    while left(upper) > gap:
        upper *= 2
        if upper > 1 << 60:
            return float("inf")
    lower = upper // 2
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (lower, middle) if left(middle) <= gap else (middle, upper)
    return float(upper)


def effective_rank(values: Array) -> float:
    """Return `exp(entropy)` of a spectrum's shares, in nats: how many directions count.

    N where all variances are equal, 1 where one has it all. Roy, Vetterli, "The effective rank",
    EUSIPCO 2007.
    """
    total = values.sum()
    if total <= 0:
        return 0.0
    shares = values[values > 0] / total
    return math.exp(-float(shares @ np.log(shares)))


def variance_after(values: Array, ridge: float) -> Array:
    """Return each direction's variance after sphering with a ridge, `d / (d + ridge)`.

    1 where the ridge does nothing; near 0 where it holds the direction down.
    """
    return np.divide(values, values + ridge, out=np.zeros_like(values), where=values > 0)
