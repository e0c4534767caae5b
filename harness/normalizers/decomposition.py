"""The moments of points `[1 X]`, which linear schemes and theory share, from one QR pass."""

import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from threadpoolctl import ThreadpoolController

from normbench.datasets.on_disk.points import (
    Points,
    is_in_memory,
    iterate_blocks,
)

Array = NDArray[np.float64]
CACHED_POINTS_PER_BLOCK = 512  # points that stay in the processor's cache in float64
CENTRED_POINTS_PER_BLOCK = 4096  # points centred at a time: 25 MB of float64 at 784 features
QR_COLUMNS = 32  # of a panel of the QR decomposition
# Features up to which one thread decomposes: the library's wait for each other at thousands of
# short products, beside other programs 10 times as long (784 features: 1.2 to 3 s, and not 0.2).
MAX_ONE_THREAD_SIZE = 1000
EPS = float(np.finfo(np.float64).eps)
blas_controller = cache(ThreadpoolController)  # made once, since it inspects all libraries


class Factor(NamedTuple):
    """The mean and a root of the covariance S of points (P, N), divided by P.

    Attributes:
        mean: The mean of the points, `(N,)`.
        root: A matrix with `root'root = S`, `(k, N)`, k the fewer of P and N; the columns of
            constant features, whose computed variance may be rounding, are 0.
        deviations: The standard deviations `(N,)`, 1 for constant features.
    """

    mean: Array
    root: Array
    deviations: Array


class Decomposition(NamedTuple):
    """The eigendecomposition of the covariance S of points (P, N), or of their correlation.

    It is `T^-1/2 S T^-1/2 = V D V'`, with T = I for the covariance and diag(S) for the correlation.

    Attributes:
        mean: The mean of the points, `(N,)`.
        scales: The square roots of T's diagonal, `(N,)`.
        values: The eigenvalues, D's diagonal, `(N,)`, decreasing, not negative.
        vectors: The eigenvectors as rows, V', `(M, N)`; M < N where only those of values above
            rounding level were formed.
    """

    mean: Array
    scales: Array
    values: Array
    vectors: Array


class PointsCache:
    """The moments of points and what else is computed of them, each when it is first asked for.

    The schemes that are fitted on the same points, and their theory, share them, in float64.
    Nothing is computed from a product of the points, whose rounding hides small variances: singular
    values of a root of the covariance tell apart deviations that differ by up to 1e15.

    Attributes:
        x: The points (P, N), in memory or read by blocks.
        saved: The seconds of computing that were saved by sharing.
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        self.saved = 0.0
        self._cache: dict[Hashable, tuple[Any, float]] = {}

    @property
    def has_few_points(self) -> bool:
        """Whether there are fewer points in memory than features."""
        return is_in_memory(self.x) and len(self.x) < self.x.shape[1]

    @property
    def factor(self) -> Factor:
        """The mean and the root; of few points it is a centred copy of them, and not kept."""
        if self.has_few_points:
            return _factor_points(self.x)
        return self.get_or_compute("factor", lambda: _factor_by_blocks(self.x))

    @property
    def gram_root(self) -> Array:
        """`[[1, m'], [0, root]]`, a root of the Gram matrix `[1 X]'[1 X] / P`, m the mean."""
        mean, root, _ = self.factor
        return np.block([[np.ones((1, 1)), mean], [np.zeros((len(root), 1)), root]])

    @property
    def correlation_deviations(self) -> Array:
        """The singular values `(k,)` of the root with each feature scaled to variance 1.

        No direction is rounding in them because another feature is large.
        """
        _, root, deviations = self.factor
        return self.get_or_compute("correlation", lambda: singular_values(root / deviations))

    @property
    def live(self) -> int:
        """The number of directions above rounding in the correlation of the features."""
        values = self.correlation_deviations**2
        return int(np.count_nonzero(values > rounding_share(self.x.shape[1]) * values[:1]))

    @property
    def axes(self) -> tuple[Array, Array]:
        """The variances `(r,)` of the live directions, and unit vectors as columns `(N, r)`."""
        _, _, values, vectors = self.get(correlation=False, complete=False)
        rank = min(self.live, np.count_nonzero(values))
        return values[:rank], vectors[:rank].T

    def get(self, correlation: bool, complete: bool) -> Decomposition:
        """Return the decomposition of the points' covariance, or of their correlation.

        Args:
            correlation: Whether to decompose the correlation and not the covariance.
            complete: Whether the eigenvectors of zero eigenvalues are needed, too.

        Returns:
            The decomposition; its arrays are shared, and must not be written to.

        Raises:
            ValueError: The squares of the features overflow.
        """
        complete = complete and self.has_few_points  # more points always give all eigenvectors
        return self.get_or_compute(
            (correlation, complete), lambda: _decompose(self.factor, correlation, complete)
        )

    def get_or_compute(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the value of a key, computed at the first call; the others save its seconds.

        Args:
            key: All that the value depends on beside the points, its own name among them.
            compute: Computes the value where the key is new.
        """
        if key in self._cache:
            self.saved += self._cache[key][1]
        else:
            tick, saved = time.perf_counter(), self.saved
            value = compute()
            self._cache[key] = value, time.perf_counter() - tick + self.saved - saved
        return self._cache[key][0]


def _factor_points(x: NDArray[Any]) -> Factor:
    """Return the factor of points (P, N): the points themselves, centred, over sqrt(P)."""
    mean = compute_mean(x)
    root = x - mean
    correction = root.mean(axis=0)  # the rounding error of the mean
    root -= correction
    return _scale_root(mean + correction, root, len(x))


def _factor_by_blocks(x: Points) -> Factor:
    """Return the factor of points (P, N) by QR decompositions of `[1 X]`, block after block.

    The mean is subtracted first; the column of ones takes off the rounding error that it leaves.
    The factor is kept with points that are not in memory.
    """
    attributes = getattr(x, "__dict__", {})  # an array has none
    if "factor" not in attributes:
        width, mean = x.shape[1] + 1, compute_mean(x)
        triangle = np.zeros((width, width), order="F")
        with _limit_threads(width):
            for _, rows in iterate_blocks(x, CENTRED_POINTS_PER_BLOCK):
                block = np.empty((len(rows), width), order="F")
                block[:, 0] = 1.0
                np.subtract(rows, mean, out=block[:, 1:])
                triangle = linalg.lapack.dtpqrt(
                    *(0, min(QR_COLUMNS, width), triangle, block),
                    overwrite_a=True,
                    overwrite_b=True,
                )[0]
        correction = triangle[0, 1:] / triangle[0, 0]
        attributes["factor"] = _scale_root(mean + correction, triangle[1:, 1:][: len(x)], len(x))
    return attributes["factor"]


def _scale_root(mean: Array, root: Array, points: int) -> Factor:
    """Return the factor of P points, whose root is scaled in place by `1 / sqrt(P)`."""
    root /= np.sqrt(points)
    with np.errstate(over="ignore", invalid="ignore"):
        variance = np.einsum("kn,kn->n", root, root)
        is_constant = is_rounding(points, mean, variance) & np.isfinite(variance)
    root[:, is_constant] = 0.0
    return Factor(mean, root, np.sqrt(np.where(is_constant, 1.0, variance)))


def _decompose(factor: Factor, correlation: bool, complete: bool) -> Decomposition:
    """Return the decomposition of the covariance or the correlation from the factor.

    Args:
        factor: The mean, and the root of k rows.
        correlation: Whether to decompose the correlation and not the covariance.
        complete: Whether k < N rows get the eigenvectors of zero eigenvalues, too.
    """
    mean, root, deviations = factor
    if not np.isfinite(deviations).all():
        raise ValueError("the squares of the features overflow; divide them by a constant first")
    count, features = root.shape
    scales = deviations if correlation else np.ones_like(mean)

    def svd(driver: str) -> tuple[Array, Array, Array]:
        """Return the singular value decomposition of the scaled root, by a routine of LAPACK."""
        rows = np.zeros((features if complete else count, features), order="F")
        np.divide(root, scales, out=rows[:count])
        options: Any = {"check_finite": False, "overwrite_a": True, "lapack_driver": driver}
        return linalg.svd(rows, full_matrices=False, **options)

    with _limit_threads(features):
        try:
            _, singular, vectors = svd("gesdd")
        except np.linalg.LinAlgError:  # as of MNIST's 60,000 digits: the slower one converges
            _, singular, vectors = svd("gesvd")
    singular[singular <= rounding_share(features) * singular[0]] = 0.0
    values = np.zeros(features)
    values[: len(singular)] = singular**2
    if len(vectors) < features:  # what the last rows span is rounding
        vectors = vectors[singular > 0]
    return Decomposition(mean, scales, values, fix_signs(vectors))


def singular_values(matrix: Array) -> Array:
    """Return the singular values of a matrix, decreasing."""
    with _limit_threads(max(matrix.shape)):
        return np.asarray(linalg.svdvals(matrix, check_finite=False))


def rounding_share(features: int) -> float:
    """Return the share of the largest eigenvalue that is rounding: N times machine epsilon.

    It is at least 10 machine epsilons: zero eigenvalues were measured up to 1.0 N eps at N = 2, 0.5
    at N = 5 and 0.07 at N = 30.
    """
    return max(features, 10) * EPS


def is_rounding(points: int, mean: Array, variance: Array) -> NDArray[np.bool_]:
    """Return the mask (N,) of the features whose computed variance may be rounding.

    The bound is that of the rounding errors of the sum of squares, and of the mean, squared.

    Args:
        points: The number of points P.
        mean: The mean of the points (N,).
        variance: Their computed variances (N,).
    """
    return np.asarray(variance <= points * EPS * variance + (points * mean * EPS) ** 2)


def compute_mean(x: Points) -> Array:
    """Return the mean `(N,)` of points (P, N) in float64."""
    sums = (rows.sum(axis=0, dtype=np.float64) for _, rows in iterate_blocks(x))
    return np.asarray(sum(sums) / len(x))


def compute_deviations(x: Points, mean: Array) -> Array:
    """Return the standard deviations `(N,)` of points (P, N) about a mean `(N,)`, divided by P."""
    squares = np.zeros(x.shape[1])
    for _, rows in iterate_blocks(x, CACHED_POINTS_PER_BLOCK):
        squares += np.square(rows - mean).sum(axis=0)
    return np.asarray(np.sqrt(squares / len(x)))


def mean_and_covariance(x: Points) -> tuple[Array, Array]:
    """Return the mean `(N,)` and the covariance `(N, N)` of points, divided by P, in float64."""
    mean, root, _ = PointsCache(x).factor
    return mean, root.T @ root


def moment_rows(x: Points) -> Array:
    """Return rows `(n, N)` with the mean and the covariance of points x (P, N).

    Points in memory are their own rows. Of others there are at most N + 1: Helmert contrasts, whose
    columns are orthonormal and have mean 0, times the root of the covariance.
    """
    if is_in_memory(x):
        return np.asarray(x)
    mean, root, _ = PointsCache(x).factor
    contrasts = linalg.helmert(len(root) + 1)  # (k, k + 1) for k rows
    return np.asarray(np.sqrt(len(root) + 1) * contrasts.T @ root + mean)


def _limit_threads(size: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS has one thread, where matrices of `size` rows are small."""
    return blas_controller().limit(
        limits=1 if size <= MAX_ONE_THREAD_SIZE else None, user_api="blas"
    )


def fix_signs(rows: Array) -> Array:
    """Return the rows, each with the sign that makes its largest-magnitude entry positive.

    Among entries that tie up to rounding the first decides, so that the signs do not depend on the
    linear-algebra library.
    """
    magnitudes = np.abs(rows)
    ties_with_largest = magnitudes >= (1 - 1e-6) * magnitudes.max(axis=1, keepdims=True)
    deciding = np.argmax(ties_with_largest, axis=1)  # the first of these entries of each row
    return rows * np.where(rows[np.arange(len(rows)), deciding] < 0, -1.0, 1.0)[:, None]
