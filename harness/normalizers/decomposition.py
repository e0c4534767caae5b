"""The eigendecomposition that every linear scheme is computed from."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from normbench.datasets.on_disk.points import Points, as_array, is_in_memory, iterate_blocks

Array = NDArray[np.float64]
CENTRED_POINTS_PER_BLOCK = 4096  # points centred at a time: 25 MB of float64 at 784 features
# Features up to which one thread decomposes: the library's wait for each other at thousands of
# short products, beside other programs 10 times as long (784 features: 1.2 to 3 s, and not 0.2).
MAX_ONE_THREAD_SIZE = 1000
LEADING_FEATURES = 2000  # from which a few eigenvectors are computed alone: all take a minute
LEADING_SHARE = 1 / 20  # of all eigenvectors: more are not few
LEADING_RANGE = 1e-6  # eigenvalues over the largest: smaller ones lose digits to it
SMALL_BLOCK_ENTRIES = 1 << 19  # numbers of a block of a pass without products: 4 MB of float64
QR_ROWS_PER_COLUMN = 8  # rows of a block, in columns: a ninth more work than all at once
EPS = float(np.finfo(np.float64).eps)


class Decomposition(NamedTuple):
    """The eigendecomposition of the covariance S of points (P, N), or of their correlation.

    It is `T^-1/2 S T^-1/2 = V D V'`, with T = I for the covariance and diag(S) for the correlation.

    Attributes:
        mean: The mean of the points, `(N,)`.
        scales: The square roots of T's diagonal, `(N,)`.
        values: The eigenvalues, D's diagonal, `(N,)`, decreasing, not negative; NaN where only the
            largest were computed.
        vectors: The eigenvectors as rows, V', `(M, N)`; M < N where only those of values above
            rounding level were formed.
    """

    mean: Array
    scales: Array
    values: Array
    vectors: Array


class Decompositions:
    """The decompositions of points, each computed when it is first asked for.

    Schemes that are fitted on the same points share the decompositions.

    Attributes:
        x: The points (P, N).
        saved: The seconds of computing that were saved by sharing.
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        self.saved = 0.0
        self._cache: dict[tuple[bool, bool], tuple[Decomposition, float]] = {}

    @cached_property
    def mean(self) -> Array:
        """The points' mean `(N,)`."""
        return compute_mean(self.x)

    def get(self, correlation: bool, complete: bool) -> Decomposition:
        """Return the decomposition of the points' covariance, or of their correlation.

        It is in float64 whatever the type of x. The decomposition of the covariance S is computed
        from that of the correlation, `R = G Q G'`: the singular values of `Q^1/2 G' T^1/2` keep the
        digits of small eigenvalues, which an eigendecomposition of S loses. With fewer points than
        features, and unless `complete`, either is computed from the singular values of the centred
        points.

        Args:
            correlation: Whether to decompose the correlation and not the covariance.
            complete: Whether the eigenvectors of zero eigenvalues are needed, too.

        Returns:
            The decomposition; its arrays are shared and cannot be written to.

        Raises:
            ValueError: The squares of the features overflow.
        """
        key = (correlation, complete)
        if key in self._cache:
            decomposition, seconds = self._cache[key]
            self.saved += seconds
            return decomposition
        tick = time.perf_counter()
        decomposition = _decompose(self, correlation, complete)
        for array in decomposition:
            array.flags.writeable = False  # several schemes hold it
        self._cache[key] = decomposition, time.perf_counter() - tick
        return decomposition

    def leading(self, count: int) -> Decomposition:
        """Return the covariance's decomposition, with `count` eigenvalues where these are few.

        They are computed by Lanczos's method, on the covariance or on the Gram matrix of fewer
        points than features. The complete decomposition is returned instead where it is quick, and
        where the smallest of these eigenvalues would be inaccurate.

        Args:
            count: The number of largest eigenvalues that are needed, with their eigenvectors.
        """
        from scipy.sparse.linalg import ArpackError

        x = self.x
        has_few_points = is_in_memory(x) and len(x) < x.shape[1]
        size = len(x) if has_few_points else x.shape[1]
        # Few of many eigenvectors: elsewhere the complete decomposition is as quick.
        if x.shape[1] >= LEADING_FEATURES and count <= LEADING_SHARE * size:
            with suppress(ArpackError):  # of points that are all equal, or without convergence
                decompose_leading = _leading_of_points if has_few_points else _leading_of_covariance
                decomposition = decompose_leading(x, count)
                if decomposition.values[count - 1] > LEADING_RANGE * decomposition.values[0]:
                    return decomposition
        return self.get(correlation=False, complete=False)


def _leading_of_covariance(x: Any, count: int) -> Decomposition:
    """Return the `count` largest eigenvalues of the covariance of points, with their vectors.

    Args:
        x: Points (P, N), in memory or read by blocks.
        count: Fewer than N.
    """
    mean, covariance = mean_and_covariance(x)
    # The covariances of a constant feature are rounding.
    is_constant = _find_deviations(len(x), mean, np.diag(covariance))[1]
    covariance[is_constant] = covariance[:, is_constant] = 0.0
    values, columns = _largest(covariance, count)
    return _of_leading(mean, values, columns.T)


def _leading_of_points(x: NDArray[Any], count: int) -> Decomposition:
    """Return the `count` largest eigenvalues of the covariance of few points, with their vectors.

    The matrix of products of the centred points `(P, P)` has the same nonzero eigenvalues; the
    points times its eigenvectors are the eigenvectors of the covariance, up to their lengths.

    Args:
        x: Points (P, N), fewer than features.
        count: Fewer than P.
    """
    mean, centred, _ = _centre(x)
    values, columns = _largest(centred @ centred.T / len(x), count)
    rows = columns.T @ centred
    return _of_leading(mean, values, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _largest(matrix: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues of a symmetric matrix, and their eigenvectors.

    Args:
        matrix: `(n, n)`.
        count: The number of eigenvalues k, fewer than n.

    Returns:
        Eigenvalues `(k,)`, decreasing, and eigenvectors as columns `(n, k)`.
    """
    from scipy.sparse.linalg import eigsh

    values, columns = eigsh(matrix, count, rng=np.random.default_rng(0))
    return values[::-1], columns[:, ::-1]


def _of_leading(mean: Array, values: Array, vectors: Array) -> Decomposition:
    """Return the decomposition of which only the k largest eigenvalues are known.

    Args:
        mean: The mean of the points `(N,)`.
        values: The eigenvalues `(k,)`; NaN stands for the others.
        vectors: Their eigenvectors as rows `(k, N)`.
    """
    padded = np.full(len(mean), np.nan)
    padded[: len(values)] = values
    return Decomposition(mean, np.ones_like(mean), padded, fix_signs(vectors))


def _decompose(points: Decompositions, correlation: bool, complete: bool) -> Decomposition:
    """Return a decomposition of points, by the most accurate way that their shape allows.

    Constant features, whose computed variance may be rounding, count as variance 0 and scale 1.

    Args:
        points: The points, with their mean.
        correlation: Whether to decompose the correlation and not the covariance.
        complete: Whether the eigenvectors of zero eigenvalues are needed, too.
    """
    x = points.x
    if is_in_memory(x) and len(x) < x.shape[1] and not complete:
        return _decompose_points(x, correlation)
    mean, covariance = mean_and_covariance(x, points.mean)
    deviations, is_constant = _find_deviations(len(x), mean, np.diag(covariance))
    covariance[is_constant] = covariance[:, is_constant] = 0.0
    covariance /= deviations * deviations[:, None]  # now the correlation
    values, vectors = eigendecomposition(covariance)
    if correlation:
        return Decomposition(mean, deviations, values, vectors)
    rank = np.count_nonzero(values > rounding_share(len(mean)) * values[0])
    # `root'root` is the covariance: its singular values keep the digits of small eigenvalues.
    root = np.asfortranarray(np.sqrt(values[:rank, None]) * vectors[:rank] * deviations)
    del covariance, vectors  # of many features they are gigabytes, which the next line needs
    return Decomposition(mean, np.ones_like(mean), *_decompose_gram(root, complete=True))


def rounding_share(features: int) -> float:
    """Return the share of the largest eigenvalue that is rounding: N times machine epsilon.

    It is at least 10 machine epsilons: zero eigenvalues were measured up to 1.0 N eps at N = 2, 0.5
    at N = 5 and 0.07 at N = 30.
    """
    return max(features, 10) * EPS


def compute_mean(x: Points) -> Array:
    """Return the mean `(N,)` of points (P, N) in float64.

    Points that are read by blocks are summed as differences from the first point, which lose no
    digits to a large offset.
    """
    if is_in_memory(x):
        return np.asarray(x.mean(axis=0, dtype=np.float64))
    first = as_array(x[:1])[0].astype(np.float64)
    difference_sum = np.zeros_like(first)
    for _, rows in iterate_blocks(x, CENTRED_POINTS_PER_BLOCK):
        difference_sum += (rows - first).sum(axis=0)
    return first + difference_sum / len(x)


def compute_deviations(x: Points, mean: Array) -> Array:
    """Return the standard deviations `(N,)` of points (P, N) about a mean `(N,)`, divided by P."""
    squares = np.zeros(x.shape[1])
    for _, rows in iterate_blocks(x, small_block_size(x)):
        centred = rows - mean
        squares += np.square(centred, out=centred).sum(axis=0)
    return np.asarray(np.sqrt(squares / len(x)))


def moment_rows(x: Points) -> Array:
    """Return rows `(n, N)` with the mean and the covariance of points x (P, N).

    Second-order statistics are computed from these rows, with the digits of a decomposition of all
    points. Points in memory are their own rows. Of others there are at most N + 1: centred points
    are `Q R`, with R computed block by block; Helmert contrasts, scaled, replace Q: their columns
    are orthonormal and have mean 0. They are computed once, and kept with the points.
    """
    if is_in_memory(x):
        return np.asarray(x)
    attributes: Any = vars(x)
    if "moment_rows" not in attributes:
        mean, triangle = compute_mean(x), np.zeros((0, x.shape[1]))
        size = max(CENTRED_POINTS_PER_BLOCK, QR_ROWS_PER_COLUMN * x.shape[1])
        for _, block in iterate_blocks(x, size):
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block - mean]), mode="r"))
        contrasts = linalg.helmert(len(triangle) + 1)  # (k, k + 1) for k rows of R
        # The factor: R'R is P times the covariance of x, and the mean is now over k + 1 rows.
        rows = np.sqrt((len(triangle) + 1) / len(x)) * contrasts.T @ triangle + mean
        attributes["moment_rows"] = rows
    return np.asarray(attributes["moment_rows"])


def mean_and_covariance(x: Points, known_mean: Array | None = None) -> tuple[Array, Array]:
    """Return the mean `(N,)` and the covariance `Xc'Xc / P` `(N, N)` of points, in float64.

    They are computed from centred points, since the one-pass formula loses directions of small
    variance. The rounding error of the first mean is subtracted at the end.

    Args:
        x: Points (P, N), in memory or read by blocks.
        known_mean: The mean up to rounding `(N,)`, which saves a pass over the points; None to
            compute it.
    """
    mean = compute_mean(x) if known_mean is None else known_mean
    mean_correction, covariance = np.zeros_like(mean), np.zeros((len(mean), len(mean)))
    workspace = np.empty((min(CENTRED_POINTS_PER_BLOCK, len(x)), len(mean)))
    for _, rows in iterate_blocks(x, CENTRED_POINTS_PER_BLOCK):
        centred = np.subtract(rows, mean, out=workspace[: len(rows)])
        mean_correction += centred.sum(axis=0)
        covariance += centred.T @ centred
    mean_correction /= len(x)
    return mean + mean_correction, covariance / len(x) - np.outer(mean_correction, mean_correction)


def blocks(points: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover the points, so that no float64 copy of all points is needed.

    Args:
        points: The number of points P.
        size: The number of points of a slice; None for `CENTRED_POINTS_PER_BLOCK`.
    """
    size = size or CENTRED_POINTS_PER_BLOCK
    for first in range(0, points, size):
        yield slice(first, min(first + size, points))


def small_block_size(x: Points) -> int:
    """Return the number of points of a block that is small enough for the processor's cache."""
    return max(1, SMALL_BLOCK_ENTRIES // x.shape[1])


def eigendecomposition(matrix: Array) -> tuple[Array, Array]:
    """Return the eigendecomposition of a symmetric matrix `(N, N)` without negative eigenvalues.

    Returns:
        Eigenvalues `(N,)`, decreasing, negative rounding set to 0; and eigenvectors `(N, N)` as
        rows, with the signs of `fix_signs`.
    """
    with _limit_threads(len(matrix)):
        values, vectors = linalg.eigh(matrix, driver="evd", check_finite=False)
    return np.maximum(values[::-1], 0.0), fix_signs(vectors.T[::-1])


def _limit_threads(size: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS has one thread, where matrices of `size` rows are small."""
    return _controller().limit(limits=1 if size <= MAX_ONE_THREAD_SIZE else None, user_api="blas")


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Return the controller of the threads of BLAS; made once, since it inspects all libraries."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def fix_signs(rows: Array) -> Array:
    """Return the rows, each with the sign that makes its largest-magnitude entry positive.

    Among entries that tie up to rounding the first decides, so that the signs do not depend on the
    linear-algebra library.
    """
    magnitudes = np.abs(rows)
    ties_with_largest = magnitudes >= (1 - 1e-6) * magnitudes.max(axis=1, keepdims=True)
    deciding = np.argmax(ties_with_largest, axis=1)  # the first of these entries of each row
    return rows * np.where(rows[np.arange(len(rows)), deciding] < 0, -1.0, 1.0)[:, None]


def _find_deviations(points: int, mean: Array, variance: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the standard deviations (N,), 1 for constant features, and the mask of these (N,).

    The computed variance of a constant feature can be its mean's rounding, squared.

    Args:
        points: The number of points P.
        mean: The mean of the points (N,).
        variance: Their computed variances (N,).

    Raises:
        ValueError: A variance is not finite.
    """
    if not np.isfinite(variance).all():
        raise ValueError("the squares of the features overflow; divide them by a constant first")
    is_constant = is_rounding(points, mean, variance)
    return np.sqrt(np.where(is_constant, 1.0, variance)), is_constant


def is_rounding(points: int, mean: Array, variance: Array) -> NDArray[np.bool_]:
    """Return the mask (N,) of the features whose computed variance may be rounding.

    The bound is that of the rounding errors of the sum of squares, and of the mean, squared. For
    the arguments see `_find_deviations`.
    """
    return np.asarray(variance <= points * EPS * variance + (points * mean * EPS) ** 2)


def _decompose_gram(rows: Array, complete: bool) -> tuple[Array, Array]:
    """Return eigenvalues `(N,)` and eigenvectors, as rows, of `rows' rows`, from rows `(k, N)`.

    They are computed from singular values: small eigenvalues keep the digits that a product of the
    rows would lose.

    Args:
        rows: `(k, N)`; they are overwritten if they are in Fortran's order.
        complete: Whether the eigenvectors of zero eigenvalues are needed, too, which k < N rows do
            not span.
    """
    features = rows.shape[1]
    if complete and len(rows) < features:
        rows = np.vstack([rows, np.zeros((features - len(rows), features))])
    with _limit_threads(max(rows.shape)):
        _, singular, vectors = linalg.svd(
            rows, full_matrices=False, check_finite=False, overwrite_a=True
        )
    values = np.zeros(features)
    values[: len(singular)] = singular**2
    return values, fix_signs(vectors)


def _decompose_points(x: NDArray[Any], correlation: bool) -> Decomposition:
    """Return the decomposition from the singular values of the centred points, P < N.

    Args:
        x: Points (P, N).
        correlation: Whether to decompose the correlation and not the covariance.
    """
    mean, centred, deviations = _centre(x)
    scales = deviations if correlation else np.ones_like(mean)
    centred /= scales * np.sqrt(len(x))
    values, vectors = _decompose_gram(centred, complete=False)
    above_rounding = values > rounding_share(x.shape[1]) * values[0]
    # There are N values, of which all beyond the P vectors are 0.
    return Decomposition(mean, scales, values, vectors[above_rounding[: len(vectors)]])


def _centre(x: NDArray[Any]) -> tuple[Array, Array, Array]:
    """Return the mean of points (P, N), a centred copy (P, N), and the standard deviations (N,).

    The rounding error of the first mean is removed from both. Constant features have deviation 1,
    and are exactly 0 in the copy.
    """
    mean = x.mean(axis=0, dtype=np.float64)
    centred = x - mean
    mean_correction = centred.mean(axis=0)
    centred -= mean_correction
    mean += mean_correction
    variance = np.einsum("pn,pn->n", centred, centred) / len(x)
    deviations, is_constant = _find_deviations(len(x), mean, variance)
    centred[:, is_constant] = 0.0
    return mean, centred, deviations
