"""The one eigendecomposition that every linear scheme is made of."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]
BLOCK = 4096  # points centred at a time: 25 MB of float64 at 784 features
# Features up to which one thread decomposes: the library's wait for each other at thousands of
# short products, beside other programs 10 times as long (784 features: 1.2 to 3 s, and not 0.2).
ONE_THREAD = 1000
SMALL = 1 << 19  # numbers of a block of a pass without products: 4 MB of float64
DEEP = 8  # rows of a block, in columns: a ninth more work than all at once
EPS = float(np.finfo(np.float64).eps)


class Decomposition(NamedTuple):
    """The second moments of points (P, N): `T^-1/2 S T^-1/2 = V D V'`, with T = I or diag(S).

    mean: (N,). scales: (N,), the roots of T's entries. values: (N,), the diagonal of D,
    decreasing, not negative. vectors: (M, N), the eigenvectors as rows; M < N where only those of
    values above rounding level were formed.
    """

    mean: Array
    scales: Array
    values: Array
    vectors: Array


@dataclass(frozen=True, eq=False)
class Surrogate:
    """Few points `(n, N)` of the same mean and covariance as many: for second-order statistics.

    None of its rows is a point of the data. It is no array, so that nothing that takes points (a
    Problem, a scheme, a figure) takes it; statistics of second order read `moment_rows`. whole: the
    rows are the points themselves.
    """

    moment_rows: NDArray[Any]
    whole: bool = False

    def __len__(self) -> int:
        return len(self.moment_rows)

    @property
    def mean(self) -> Array:
        """The mean `(N,)`."""
        return np.asarray(self.moment_rows.mean(axis=0, dtype=np.float64))

    @property
    def variances(self) -> Array:
        """The variances `(N,)`, over P."""
        return np.asarray(self.moment_rows.var(axis=0, dtype=np.float64))

    def mapped(self, matrix: Array) -> "Surrogate":
        """Return the surrogate of the points times a matrix `(M, N)`, `x matrix'`."""
        return Surrogate(self.moment_rows @ matrix.T)

    def features(self, numbers: NDArray[np.intp]) -> "Surrogate":
        """Return the surrogate of some of the features, by their numbers."""
        return Surrogate(self.moment_rows[:, numbers])


class Decompositions:
    """The decompositions of points x (P, N), each found when it is first asked for.

    x: an array, or anything that gives its rows as arrays when it is asked for slices of them.
    Schemes that are fitted on the same points share them. saved: the seconds that finding took
    before, of the decompositions that were asked for again.
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        self.saved = 0.0
        self._found: dict[tuple[bool, bool], tuple[Decomposition, float]] = {}

    @cached_property
    def mean(self) -> Array:
        """The points' mean `(N,)`."""
        return mean_of(self.x)

    @cached_property
    def centred_rows(self) -> Array:
        """Rows `(n, N)` of mean 0 and of the covariance of x: see `surrogate_rows`."""
        return surrogate_rows(self.x, self.mean)

    @property
    def surrogate(self) -> Surrogate:
        """Few points of the mean and the covariance of x."""
        return Surrogate(self.centred_rows + self.mean)

    def get(self, correlation: bool, complete: bool) -> Decomposition:
        """Return the decomposition of the points' covariance, or of their correlation.

        In float64 whatever the type of x. The covariance's is made of the correlation's,
        `R = G Q G'`: singular values of `Q^1/2 G' T^1/2` keep the digits of small eigenvalues,
        which an eigendecomposition of S loses. With fewer points than features it is made of the
        singular values of the centred points, unless `complete` asks for the eigenvectors of zero
        eigenvalues, too. Raises ValueError where squares overflow.
        """
        kind = (correlation, complete)
        if kind in self._found:
            found, seconds = self._found[kind]
            self.saved += seconds
            return found
        tick = time.perf_counter()
        found = _find(self, correlation, complete)
        for array in found:
            array.flags.writeable = False  # several schemes hold it
        self._found[kind] = found, time.perf_counter() - tick
        return found


def _find(points: Decompositions, correlation: bool, complete: bool) -> Decomposition:
    x = points.x
    if isinstance(x, np.ndarray) and len(x) < x.shape[1] and not complete:
        return _from_points(x, correlation)
    mean, covariance = mean_and_covariance(x, points.mean)
    deviations, constant = _deviations(len(x), mean, np.diag(covariance))
    covariance[constant] = covariance[:, constant] = 0.0
    covariance /= deviations * deviations[:, None]
    values, vectors = eigendecomposition(covariance)
    if correlation:
        return Decomposition(mean, deviations, values, vectors)
    rank = np.count_nonzero(values > rounding(len(mean)) * values[0])
    root = np.sqrt(values[:rank, None]) * vectors[:rank] * deviations
    return Decomposition(mean, np.ones_like(mean), *_squared(root, complete=True))


def rounding(features: int) -> float:
    """Return the share of the largest eigenvalue that is rounding: N times machine epsilon.

    And 10 times at least: zero eigenvalues were measured up to 1.0 N eps at N = 2, 0.5 at N = 5
    and 0.07 at N = 30.
    """
    return max(features, 10) * EPS


def mean_of(x: Any) -> Array:
    """Return the mean `(N,)` of points, in float64; of the first one and what the others add."""
    if isinstance(x, np.ndarray):
        return np.asarray(x.mean(axis=0, dtype=np.float64))
    first = x[:1][0].astype(np.float64)
    more = np.zeros_like(first)
    for block in blocks(len(x)):
        more += (x[block] - first).sum(axis=0)
    return first + more / len(x)


def deviations_of(x: NDArray[Any], mean: Array) -> Array:
    """Return the standard deviations `(N,)` of points about their mean, over P, in float64."""
    squares = np.zeros(x.shape[1])
    for block in small_blocks(x):
        centred = x[block] - mean
        squares += np.square(centred, out=centred).sum(axis=0)
    return np.asarray(np.sqrt(squares / len(x)))


def surrogate_rows(x: Any, mean: Array) -> Array:
    """Return rows `(n, N)`, N + 1 at most, of mean 0 and of the covariance of x (P, N).

    Centred points are `Q R`, found block by block; the contrasts of Helmert, whose columns are
    orthonormal and of mean 0, take the place of Q, scaled. What follows from mean and covariance
    alone follows from them, with the digits of a decomposition of all points.
    """
    triangle = np.zeros((0, x.shape[1]))
    for block in blocks(len(x), max(BLOCK, DEEP * x.shape[1])):
        rows = np.vstack([triangle, x[block] - mean])
        triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    contrasts = linalg.helmert(len(triangle) + 1)
    return np.asarray(np.sqrt((len(triangle) + 1) / len(x)) * contrasts.T @ triangle)


def mean_and_covariance(x: Any, first: Array | None = None) -> tuple[Array, Array]:
    """Return the mean `(N,)` and the covariance `Xc'Xc / P` `(N, N)` of points, in float64.

    first: the mean to rounding, where it is known; it saves a pass over the points.
    From centred points: the one-pass formula loses directions of small variance. What the first
    mean left over, by its own rounding, is taken off at the end.
    """
    mean = mean_of(x) if first is None else first
    rest, covariance = np.zeros_like(mean), np.zeros((len(mean), len(mean)))
    workspace = np.empty((min(BLOCK, len(x)), len(mean)))
    for block in blocks(len(x)):
        centred = np.subtract(x[block], mean, out=workspace[: block.stop - block.start])
        rest += centred.sum(axis=0)
        covariance += centred.T @ centred
    rest /= len(x)
    return mean + rest, covariance / len(x) - np.outer(rest, rest)


def blocks(points: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover the points, so that no float64 copy of them all is made."""
    size = size or BLOCK
    for first in range(0, points, size):
        yield slice(first, min(first + size, points))


def small_blocks(x: NDArray[Any]) -> Iterator[slice]:
    """Yield slices that cover points, each so few that they stay near the processor."""
    return blocks(len(x), max(1, SMALL // x.shape[1]))


def eigendecomposition(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues `(N,)`, decreasing and not negative, and eigenvectors `(N, N)` as rows."""
    with _few_threads(len(matrix)):
        values, vectors = linalg.eigh(matrix, driver="evd", check_finite=False)
    return np.maximum(values[::-1], 0.0), fix_signs(vectors.T[::-1])


def _few_threads(size: int) -> AbstractContextManager[Any]:
    """Keep the library to one thread for matrices of at most so many rows and columns."""
    return _controller().limit(limits=1 if size <= ONE_THREAD else None, user_api="blas")


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def fix_signs(rows: Array) -> Array:
    """Return the rows, each with the sign that makes its largest-magnitude entry positive.

    Of entries that tie up to rounding the first decides, so that the result does not depend on
    the linear-algebra library.
    """
    size = np.abs(rows)
    first = np.argmax(size >= (1 - 1e-6) * size.max(axis=1, keepdims=True), axis=1)
    return rows * np.where(rows[np.arange(len(rows)), first] < 0, -1.0, 1.0)[:, None]


def _deviations(points: int, mean: Array, variance: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the standard deviations (N,), and the mask of constant features, which get 1.

    A constant feature's variance can come out as its mean's rounding, squared.
    """
    if not np.isfinite(variance).all():
        raise ValueError("the squares of the features overflow; divide them by a constant first")
    constant = variance <= points * EPS * variance + (points * mean * EPS) ** 2
    return np.sqrt(np.where(constant, 1.0, variance)), constant


def _squared(rows: Array, complete: bool) -> tuple[Array, Array]:
    """Return eigenvalues `(N,)` and eigenvectors, as rows, of `rows' rows`, from rows `(k, N)`.

    By singular values: small eigenvalues keep the digits that a product of the rows would lose.
    complete: with the eigenvectors of the eigenvalues that are zero.
    """
    features = rows.shape[1]
    if complete and len(rows) < features:
        rows = np.vstack([rows, np.zeros((features - len(rows), features))])
    with _few_threads(max(rows.shape)):
        _, singular, vectors = linalg.svd(rows, full_matrices=False, check_finite=False)
    values = np.zeros(features)
    values[: len(singular)] = singular**2
    return values, fix_signs(vectors)


def _from_points(x: NDArray[Any], correlation: bool) -> Decomposition:
    """Return the decomposition from the singular values of the centred points."""
    mean = x.mean(axis=0, dtype=np.float64)
    centred = x - mean
    rest = centred.mean(axis=0)
    centred -= rest
    mean += rest
    variance = np.einsum("pn,pn->n", centred, centred) / len(x)
    deviations, constant = _deviations(len(x), mean, variance)
    scales = deviations if correlation else np.ones_like(mean)
    centred[:, constant] = 0.0
    centred /= scales * np.sqrt(len(x))
    values, vectors = _squared(centred, complete=False)
    live = values > rounding(x.shape[1]) * values[0]
    return Decomposition(mean, scales, values, vectors[live[: len(vectors)]])
