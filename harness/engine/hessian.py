"""Second derivatives: as an operator on weights, as a matrix, and their largest eigenvalues.

A cost is a sum over points, so its second derivative in the scores of one point is a block `(C,
C)`; autograd computes all blocks in C passes, for any cost. Where the scores are linear in the
weights, the Hessian times a vector is then two products with the points.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from autograd import grad
from autograd.core import make_vjp
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import as_array, give_back
from normbench.engine.products import in_float64, multiply, multiply_back
from normbench.normalizers.decomposition import blocks as blocks_of

Array = NDArray[np.float64]
# The largest eigenvalues of sphered points lie close together: to get 1e-12 with 20 vectors took
# 5,901 products on the digits, and did not end on MNIST. A few restarts with 40 vectors bound the
# work.
FINE_TOLERANCE, COARSE_TOLERANCE, KRYLOV_SIZE, RESTARTS = 1e-8, 1e-4, 40, 4
# The error of both extreme eigenvalues, as a share of the larger magnitude; and the steps of power
# iteration that estimate that magnitude.
EXTREMES_TOLERANCE, SCALE_PRODUCTS = 1e-5, 4
# A product lies in the Krylov space if its component outside is at most this share of its length.
NEGLIGIBLE_COMPONENT = 1e-10
MAX_MATRIX_WEIGHTS = 200  # weights; beyond, Lanczos is quicker and needs less memory


def score_curvatures(
    cost: Callable[[Any, Any], Any], scores: Array, targets: NDArray[Any]
) -> Array:
    """Return each point's second derivatives in its scores.

    Args:
        cost: A function of scores `(1, C, P)` and targets; its plain `formula` is differentiated
            where it has a fused derivative, which autograd cannot differentiate again.
        scores: (C, P).
        targets: (P,).

    Returns:
        `(C, C, P)`: entry `[c, d, p]` is the second derivative of point p's cost in its scores c
        and d, not divided by P. Each c takes one backward pass.

    Raises:
        ValueError, TypeError, NotImplementedError: Autograd has no second derivative of the cost.
    """
    plain = getattr(cost, "formula", cost)
    slopes = grad(lambda s: plain(s[None], targets)[0])
    # Zero times s is added so that a constant slope depends on s: autograd warns otherwise.
    pull_back, _ = make_vjp(lambda s: slopes(s) + 0 * s, scores)
    second_derivatives = np.empty((len(scores), *scores.shape))
    row = np.zeros_like(scores)
    for c in range(len(scores)):  # the derivatives of the slopes in score c, of all points at once
        row[c] = 1
        second_derivatives[c] = pull_back(row)
        row[c] = 0
    return second_derivatives


class Hessian(ABC):
    """The second derivatives of a mean cost at one model's weights.

    A Problem of another model defines `shape`, `times`, `matrix` and `is_zero`.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""

    @property
    @abstractmethod
    def is_zero(self) -> bool:
        """Whether every second derivative is 0, as for a piecewise linear cost."""

    @abstractmethod
    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction, in the weights' shape: a Hessian-vector product."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`, the weights in C order."""

    @property
    def size(self) -> int:
        """The number of weights, D."""
        return int(np.prod(self.shape))

    @property
    def is_small(self) -> bool:
        """Whether the matrix is quicker than Hessian-vector products."""
        return self.size <= MAX_MATRIX_WEIGHTS

    def largest(self) -> float:
        """Return the largest eigenvalue: of the matrix where it is small, else by Lanczos.

        Lanczos starts from a vector of a fixed seed, so that equal Hessians give the same number.
        """
        if self.is_small:
            return float(np.linalg.eigvalsh(self.matrix())[-1])
        return self.largest_by_lanczos()

    def krylov_eigenpairs(self, start: Array) -> tuple[Array, Array]:
        """Return approximate eigenvalues and eigenvectors from the Krylov space of a start.

        They are those of the Hessian restricted to the space of `start, H start, H^2 start, ..`.
        The largest eigenvalues are accurate to a few digits, and so is the component of the start
        along the eigenvectors of small ones.

        Args:
            start: The vector that spans the space with its products, (D,), such as a gradient.

        Returns:
            Eigenvalues (k,), increasing, and unit eigenvectors (D, k). k is `KRYLOV_SIZE`, or fewer
            where the space has fewer dimensions.
        """
        basis = np.zeros((self.size, min(KRYLOV_SIZE, self.size)))
        products = np.zeros_like(basis)
        vector = start
        for k in range(basis.shape[1]):
            for _ in range(2):  # one pass leaves rounding errors, which products amplify
                vector = vector - basis @ (basis.T @ vector)
            length = float(np.linalg.norm(vector))
            if length <= NEGLIGIBLE_COMPONENT * np.linalg.norm(products[:, k - 1] if k else start):
                basis, products = basis[:, :k], products[:, :k]  # the space is complete
                break
            basis[:, k] = vector / length
            products[:, k] = vector = self.times(basis[:, k].reshape(self.shape)).ravel()
        values, combinations = np.linalg.eigh(basis.T @ products)
        return values, basis @ combinations

    def largest_by_lanczos(self) -> float:
        """Return the largest eigenvalue from Hessian-vector products alone.

        Its relative error is 1e-8 where some 160 products suffice, else 1e-4: eigenvalues that
        crowd together at the top, as those of sphered points do, need not be distinguished.

        Raises:
            scipy.sparse.linalg.ArpackError: Lanczos's method does not converge to 1e-4 either.
        """
        from scipy.sparse.linalg import ArpackNoConvergence

        if self.is_zero:
            return 0.0
        try:
            return self._find_extremes("LA", FINE_TOLERANCE, RESTARTS)[0]
        except ArpackNoConvergence:
            return self._find_extremes("LA", COARSE_TOLERANCE, 4 * RESTARTS)[0]

    def extremes(self) -> tuple[float, float]:
        """Return the largest and the smallest eigenvalue, from one Krylov space.

        The error is at most 1e-5 of the larger magnitude; both are NaN where a product overflows.
        ARPACK's tolerance is relative to an eigenvalue, and one near 0 took 700 products or did not
        converge: the eigenvalues are shifted by half of the largest, so that both ends lie far
        from 0.

        Raises:
            scipy.sparse.linalg.ArpackError: Lanczos's method does not converge.
        """
        # A few steps of power iteration estimate, from below, the largest magnitude.
        vector = np.random.default_rng(0).standard_normal(self.size)
        scale = float(np.linalg.norm(vector))
        for _ in range(SCALE_PRODUCTS):
            vector = self.times((vector / scale).reshape(self.shape)).ravel()
            scale = float(np.linalg.norm(vector))
            if scale == 0:  # a random vector is mapped to 0, as by a Hessian of zeros
                return 0.0, 0.0
            if not scale < np.inf:  # a product overflows
                return float("nan"), float("nan")
        smallest, largest = self._find_extremes("BE", EXTREMES_TOLERANCE, 4 * RESTARTS, scale / 2)
        return largest, smallest

    def _find_extremes(
        self, which: str, tolerance: float, restarts: int, shift: float = 0
    ) -> list[float]:
        """Return extreme eigenvalues by ARPACK, in increasing order.

        Args:
            which: `LA` for the largest, `BE` for the smallest and the largest.
            tolerance: The relative error of the shifted eigenvalues.
            restarts: The largest number of restarts.
            shift: ARPACK gets the Hessian minus this multiple of the identity; it is added to the
                eigenvalues again.

        Returns:
            One eigenvalue under `LA`, two under `BE`.
        """
        from scipy.sparse.linalg import LinearOperator, eigsh

        operator = LinearOperator(
            (self.size, self.size),
            matvec=lambda v: self.times(v.reshape(self.shape)).ravel() - shift * v,
            dtype=np.float64,
        )
        eigenvalues = eigsh(
            operator,
            k=2 if which == "BE" else 1,
            which=which,
            v0=np.random.default_rng(0).standard_normal(self.size),
            ncv=min(KRYLOV_SIZE, self.size),
            tol=tolerance,
            maxiter=restarts,
            return_eigenvectors=False,
            rng=0,
        )
        return [float(value) for value in np.sort(eigenvalues) + shift]


@dataclass(frozen=True)
class LinearHessian(Hessian):
    """The Hessian of a cost of linear scores, as an operator on weights `(C, N + 1)`.

    x: points (P, N), an array or sparse. second: `(C, C, P)`, the points' second derivatives in
    their scores, from `score_curvatures`. l2: adds `2 l2`, not on the bias: one number, one for
    each feature `(N,)` or a matrix `(N, N)`.
    """

    x: Any
    second: Array
    l2: float | Array = 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights, `(C, N + 1)`."""
        return len(self.second), self.x.shape[1] + 1

    @property
    def is_zero(self) -> bool:
        """Whether every second derivative is 0."""
        return not (self.second.any() or np.any(self.l2))

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`."""
        product, of_block = np.zeros_like(direction), np.empty_like(direction)
        for block in blocks_of(len(self.x)):
            rows = self.x[block]
            x, scores = in_float64(rows), np.empty((len(direction), len(rows)))
            multiply(direction, x, scores)
            multiply_back(np.einsum("cdp,dp->cp", self.second[..., block], scores), x, of_block)
            product += of_block
            give_back(rows)
        product /= len(self.x)
        product[:, 1:] += 2 * times_l2(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`.

        Its block of classes c and d is the mean over points of `h_cd [1 x]'[1 x]`, with h of
        `second`; the penalty is added.
        """
        classes, width = self.shape
        hessian = np.zeros((classes, width, classes, width))
        for block in blocks_of(len(self.x)):
            rows = self.x[block]
            points = np.insert(as_array(in_float64(rows)), 0, 1, axis=1)
            give_back(rows)
            for c in range(classes):
                for d in range(c + 1):  # the lower blocks
                    curvatures = self.second[c, d, block][:, None]
                    hessian[c, :, d] += (points * curvatures).T @ points
        hessian /= len(self.x)
        penalty = 2 * np.asarray(self.l2, dtype=np.float64)
        if penalty.ndim < 2:
            penalty = np.diag(np.broadcast_to(penalty, (width - 1,)))
        for c in range(classes):
            hessian[c, 1:, c, 1:] += penalty
            for d in range(c):  # the upper blocks, by symmetry
                hessian[d, :, c] = hessian[c, :, d]
        return hessian.reshape(self.size, -1)


def times_l2(l2: float | Array, slopes: NDArray[Any]) -> NDArray[Any]:
    """Return slopes times an l2: half of the gradient of the penalty `sum l2 w^2`, or `w l2 w'`.

    Args:
        l2: One number, one for each feature `(N,)`, or a symmetric matrix `(N, N)`.
        slopes: The weights without their bias, `(.., N)`.

    Returns:
        `(.., N)`.
    """
    return np.asarray(slopes @ l2 if np.ndim(l2) == 2 else l2 * slopes)
