"""Second derivatives: as an operator on weights, as a matrix, and their largest eigenvalues.

A cost is a sum over points, so its second derivative in the scores of one point is a block
`(C, C)`; autograd gives all blocks in C passes, whatever the cost. Where the scores are linear in
the weights, the Hessian times a vector is then two products with the points.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from autograd import grad
from autograd.core import make_vjp
from numpy.typing import NDArray

from normbench.normalizers.decomposition import blocks as blocks_of

Array = NDArray[np.float64]
# The largest eigenvalues of sphered points lie close together: to get 1e-12 with 20 vectors took
# 5,901 products on the digits, and did not end on MNIST. A few restarts with 40 vectors bound the
# work.
FINE, COARSE, BASIS, RESTARTS = 1e-8, 1e-4, 40, 4
LANCZOS = 80  # products: 41 on MNIST under three schemes, 160 where eigenvalues crowd together
MATRIX_UP_TO = 200  # weights; beyond, Lanczos is quicker and needs less memory


def blocks(cost: Callable[[Any, Any], Any], scores: Array, targets: NDArray[Any]) -> Array:
    """Return each point's second derivatives in its scores (C, P): `(C, C, P)`.

    Row c is the derivative of every point's slope in its score c: one backward pass for each.
    """
    plain = getattr(cost, "formula", cost)
    slopes = grad(lambda s: plain(s[None], targets)[0])
    # Zero times s is added so that a constant slope depends on s: autograd warns otherwise.
    pull_back, _ = make_vjp(lambda s: slopes(s) + 0 * s, scores)
    found = np.empty((len(scores), *scores.shape))
    row = np.zeros_like(scores)
    for c in range(len(scores)):
        row[c] = 1
        found[c] = pull_back(row)
        row[c] = 0
    return found


class Effort(NamedTuple):
    """The work of second derivatives, in passes; one pass is the work of one run's gradient.

    made: to find them. product: a Hessian-vector product. matrix: the Hessian as a matrix, None
    where products are quicker. memory: bytes that are held at once.
    """

    made: float
    product: float
    matrix: float | None
    memory: float

    @property
    def largest(self) -> float:
        """The passes for the largest eigenvalue."""
        return self.made + (LANCZOS * self.product if self.matrix is None else self.matrix)


def linear_effort(points: int, classes: int, width: int) -> Effort:
    """Return the effort for a cost of linear scores, weights `(C, N + 1)`.

    Counted in multiplications for each score. A gradient: two products with the points, and about
    100 for elementwise work. The blocks: about 500 a class, by autograd. A Hessian-vector product:
    two products with the points, and about 25 a class for the blocks. Measured on one thread, with
    10 to 300 classes and 20 to 784 features: right within a factor of 2.
    """
    gradient = 2 * width + 100
    small = classes * width <= MATRIX_UP_TO
    return Effort(
        made=max(2, 500 / gradient) * classes,
        product=max(1, 25 * classes / gradient),
        matrix=width * (classes + 1) / 4 if small else None,
        memory=8.0 * points * (classes**2 + 20 * classes + width),
    )


class Hessian(ABC):
    """The second derivatives of a mean cost at one model's weights.

    A Problem of another model says what `shape`, `times`, `matrix` and `is_zero` are.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""

    @property
    @abstractmethod
    def is_zero(self) -> bool:
        """Whether every second derivative is 0, as of a cost of flat pieces."""

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
        """Whether the matrix is quicker than products."""
        return self.size <= MATRIX_UP_TO

    def largest(self) -> float:
        """Return the largest eigenvalue: of the matrix where it is small, else by Lanczos.

        Lanczos starts from a vector of its own seed, so that the number repeats.
        """
        return float(np.linalg.eigvalsh(self.matrix())[-1]) if self.is_small else self.lanczos()

    def near(self, start: Array) -> tuple[Array, Array]:
        """Return eigenvalues (k,), increasing, and unit eigenvectors (D, k), by 40 products.

        Those of the Hessian on the Krylov space of a start (D,): `start, H start, H^2 start ..`
        The largest are right to a few digits, and so is what the start has along small ones.
        """
        basis = np.zeros((self.size, min(BASIS, self.size)))
        turned = np.zeros_like(basis)
        new = start
        for k in range(basis.shape[1]):
            for _ in range(2):  # once leaves rounding, which products amplify
                new = new - basis @ (basis.T @ new)
            length = float(np.linalg.norm(new))
            if length <= 1e-10 * np.linalg.norm(turned[:, k - 1] if k else start):
                basis, turned = basis[:, :k], turned[:, :k]  # the space is whole
                break
            basis[:, k] = new / length
            turned[:, k] = new = self.times(basis[:, k].reshape(self.shape)).ravel()
        values, mixed = np.linalg.eigh(basis.T @ turned)
        return values, basis @ mixed

    def lanczos(self) -> float:
        """Return the largest eigenvalue from Hessian-vector products alone.

        To 1e-8 where some 160 products get there, else to 1e-4: eigenvalues that crowd together
        at the top, as those of sphered points do, are not told apart, nor need they be.
        """
        from scipy.sparse.linalg import ArpackNoConvergence

        if self.is_zero:
            return 0.0
        try:
            return self._eigsh(FINE, RESTARTS)
        except ArpackNoConvergence:
            return self._eigsh(COARSE, 4 * RESTARTS)

    def _eigsh(self, tolerance: float, restarts: int) -> float:
        from scipy.sparse.linalg import LinearOperator, eigsh

        operator = LinearOperator(
            (self.size, self.size),
            matvec=lambda v: self.times(v.reshape(self.shape)).ravel(),
            dtype=np.float64,
        )
        found = eigsh(
            operator,
            k=1,
            which="LA",
            v0=np.random.default_rng(0).standard_normal(self.size),
            ncv=min(BASIS, self.size),
            tol=tolerance,
            maxiter=restarts,
            return_eigenvectors=False,
            rng=0,
        )
        return float(found[0])


@dataclass(frozen=True)
class LinearHessian(Hessian):
    """The Hessian of a cost of linear scores, as an operator on weights `(C, N + 1)`.

    x: points (P, N). second: `(C, C, P)`, from `blocks`. l2 adds `2 l2`, one number, one a
    feature `(N,)` or a matrix `(N, N)`, not on the bias.
    """

    x: NDArray[Any]
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
        scores = direction[:, 1:] @ self.x.T + direction[:, :1]
        turned = np.einsum("cdp,dp->cp", self.second, scores) / len(self.x)
        product = np.empty_like(direction)
        product[:, 0] = turned.sum(axis=1)
        product[:, 1:] = turned @ self.x + 2 * weighted(self.l2, direction[:, 1:])
        return product

    def matrix(self) -> Array:
        """Return `mean h_cd [1 x]'[1 x]` for all classes c, d, and the penalty, `(D, D)`."""
        classes, width = self.shape
        hessian = np.zeros((classes, width, classes, width))
        for block in blocks_of(len(self.x)):
            points = np.insert(self.x[block], 0, 1, axis=1)
            for c in range(classes):
                for d in range(c + 1):
                    curved = self.second[c, d, block][:, None]
                    hessian[c, :, d] += (points * curved).T @ points
        hessian /= len(self.x)
        for c in range(classes):
            for d in range(c):
                hessian[d, :, c] = hessian[c, :, d]
        return with_penalty(hessian.reshape(self.size, -1), self.l2, self.shape)


def weighted(l2: float | Array, slopes: NDArray[Any]) -> NDArray[Any]:
    """Return slopes `(.., N)` times an l2: one number, one a feature `(N,)`, or a matrix."""
    return np.asarray(slopes @ l2 if np.ndim(l2) == 2 else l2 * slopes)


def with_penalty(matrix: Array, l2: float | Array, shape: tuple[int, ...]) -> Array:
    """Return a Hessian `(D, D)`, changed in place, with that of a penalty: `2 l2`, 0 for a bias.

    l2: one number, one a feature `(N,)`, or a matrix `(N, N)`, the same for every class.
    """
    classes, width = shape
    curved = 2 * np.asarray(l2, dtype=np.float64)
    if curved.ndim < 2:
        curved = np.diag(np.broadcast_to(curved, (width - 1,)))
    for first in range(1, classes * width, width):
        slopes = slice(first, first + width - 1)
        matrix[slopes, slopes] += curved
    return matrix
