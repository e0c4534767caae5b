"""Second derivatives: as an operator on weights, as a matrix, and their largest eigenvalues."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


class Hessian:
    """The second derivatives of a mean cost at one model's weights.

    shape: of the weights, D numbers. is_zero: whether every second derivative is 0, as for a
    piecewise linear cost.
    """

    shape: tuple[int, ...]
    is_zero: bool = False

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction, in the weights' shape: a Hessian-vector product."""
        raise NotImplementedError

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`, the weights in C order, from D products.

        It is averaged with its transpose, from which rounding alone makes it differ.
        """
        units = np.eye(self.size).reshape(self.size, *self.shape)
        columns = np.stack([self.times(unit).ravel() for unit in units])
        return np.asarray((columns + columns.T) / 2)

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
        crowd together at the top, as those of sphered points do, need not be distinguished. NaN
        where a product overflows: ARPACK takes finite ones alone.

        Raises:
            scipy.sparse.linalg.ArpackError: Lanczos's method does not converge to 1e-4 either.
        """
        from scipy.sparse.linalg import ArpackNoConvergence

        if self.is_zero:
            return 0.0
        if not np.isfinite(self.times(np.ones(self.shape))).all():
            return float("nan")
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

        def multiply(vector: Array) -> Array:
            return self.times(vector.reshape(self.shape)).ravel() - shift * vector

        operator = LinearOperator((self.size, self.size), matvec=multiply, dtype=np.float64)
        count, ncv = 2 if which == "BE" else 1, min(KRYLOV_SIZE, self.size)
        v0 = np.random.default_rng(0).standard_normal(self.size)
        options: Any = {"ncv": ncv, "tol": tolerance, "maxiter": restarts, "rng": 0}
        values = eigsh(operator, count, which=which, v0=v0, return_eigenvectors=False, **options)
        return [float(value) for value in np.sort(values) + shift]
