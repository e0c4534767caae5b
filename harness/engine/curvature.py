"""Second derivatives of a cost of linear scores: by autograd on the scores, by products after.

A cost is a sum over points, so its second derivative in the scores of one point is a block
`(C, C)`; autograd gives all blocks in C passes, whatever the cost. A Hessian-vector product is
then two products with the points, and needs no derivative any more.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from autograd import grad
from numpy.typing import NDArray

from normbench.engine.objective import Cost, Objective

Array = NDArray[np.float64]
# Sphered points crowd the largest eigenvalues together: with 20 vectors 1e-12 took 5,901 products
# on the digits; on MNIST it would not end. Restarts of 40 vectors bound the work.
FINE, COARSE, BASIS, RESTARTS = 1e-8, 1e-4, 40, 4
DENSE = 200  # weights: below, a matrix is quicker than Lanczos; above, it takes its own memory


def formula(cost: Cost) -> Cost:
    """Return the plain autograd formula of a cost, where it registers a fused derivative."""
    return getattr(cost, "formula", cost)


def value(cost: Cost, scores: Array, targets: NDArray[Any]) -> float:
    """Return the sum over points of a cost of scores `(C, P)`."""
    return float(formula(cost)(scores[None], targets)[0])


def slopes(cost: Cost, scores: Array, targets: NDArray[Any]) -> Array:
    """Return the derivative of a cost in every score, `(C, P)`."""
    return np.asarray(_slopes(cost, targets)(scores))


def blocks(cost: Cost, scores: Array, targets: NDArray[Any]) -> Array:
    """Return each point's second derivatives in its scores, `(C, C, P)`.

    Row c is the derivative of every point's slope in its score c: one backward pass for each.
    """
    first = _slopes(cost, targets)
    rows = []
    with warnings.catch_warnings():
        # What autograd says of a slope that is constant: its derivative is 0, and that is right.
        warnings.filterwarnings("ignore", "Output seems independent of input")
        for c in range(len(scores)):
            second = grad(lambda s, c=c: first(s)[c].sum())
            rows.append(np.broadcast_to(second(scores), scores.shape))
    return np.stack(rows)


def _slopes(cost: Cost, targets: NDArray[Any]) -> Callable[[Any], Any]:
    plain = formula(cost)
    return grad(lambda s: plain(s[None], targets)[0])


@dataclass(frozen=True)
class Curvature:
    """The Hessian of the mean cost at some weights, as an operator on weights `(C, N + 1)`.

    x: points (P, N). second: `(C, C, P)`, from `blocks`. l2 adds `2 l2`, not on the bias.
    """

    x: NDArray[Any]
    second: Array
    l2: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights, `(C, N + 1)`."""
        return len(self.second), self.x.shape[1] + 1

    def times(self, direction: Array) -> Array:
        """Return the Hessian times a direction `(C, N + 1)`: a Hessian-vector product."""
        scores = direction[:, 1:] @ self.x.T + direction[:, :1]
        turned = np.einsum("cdp,dp->cp", self.second, scores) / len(self.x)
        product = np.empty_like(direction)
        product[:, 0] = turned.sum(axis=1)
        product[:, 1:] = turned @ self.x + 2 * self.l2 * direction[:, 1:]
        return product

    def matrix(self) -> Array:
        """Return the Hessian as a matrix `(D, D)`, D = C (N + 1), weights in C order."""
        classes, width = self.shape
        points = np.column_stack([np.ones(len(self.x)), self.x])
        hessian = np.empty((classes, width, classes, width))
        for c in range(classes):
            for d in range(c + 1):
                part = points.T @ (points * self.second[c, d][:, None]) / len(points)
                hessian[c, :, d] = part
                hessian[d, :, c] = part.T
        ridge = np.tile(np.r_[0.0, np.full(width - 1, 2 * self.l2)], classes)
        return hessian.reshape(classes * width, -1) + np.diag(ridge)

    def largest(self) -> float:
        """Return the largest eigenvalue: of the matrix where it is small, else by Lanczos.

        Lanczos starts from a vector of its own seed, so that the number repeats.
        """
        if self.shape[0] * self.shape[1] <= DENSE:
            return float(np.linalg.eigvalsh(self.matrix())[-1])
        return self.lanczos()

    def lanczos(self) -> float:
        """Return the largest eigenvalue from Hessian-vector products alone.

        To 1e-8 where some 160 products get there, else to 1e-4: eigenvalues that crowd together
        at the top, as those of sphered points do, are not told apart, nor need they be.
        """
        from scipy.sparse.linalg import ArpackNoConvergence

        if not self.second.any() and not self.l2:
            return 0.0
        try:
            return self._eigsh(FINE, RESTARTS)
        except ArpackNoConvergence:
            return self._eigsh(COARSE, 4 * RESTARTS)

    def _eigsh(self, tolerance: float, restarts: int) -> float:
        from scipy.sparse.linalg import LinearOperator, eigsh

        size = self.shape[0] * self.shape[1]
        operator = LinearOperator(
            (size, size),
            matvec=lambda v: self.times(v.reshape(self.shape)).ravel(),
            dtype=np.float64,
        )
        values = eigsh(
            operator,
            k=1,
            which="LA",
            v0=np.random.default_rng(0).standard_normal(size),
            ncv=min(BASIS, size),
            tol=tolerance,
            maxiter=restarts,
            return_eigenvectors=False,
            rng=0,
        )
        return float(values[0])


def curvature(objective: Objective, weights: NDArray[Any]) -> Curvature:
    """Return the Hessian of an objective at weights `(C, N + 1)`, in float64.

    Raises ValueError, TypeError or NotImplementedError where autograd has no second derivative
    of the cost.
    """
    weights = weights.astype(np.float64)
    x = objective.x.astype(np.float64, copy=False)
    scores = weights[:, 1:] @ x.T + weights[:, :1]
    return Curvature(x, blocks(objective.cost, scores, objective.targets), objective.l2)
