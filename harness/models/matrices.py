"""Functions of symmetric matrices `(.., H, H)`, differentiable by autograd to any order."""

from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp, primitive

# Eigenvalues that differ by less than this share of the largest one are equal: the derivatives of
# their eigenvectors do not exist, and are taken as 0 within their span.
EQUAL_EIGENVALUES = 1e-14


@primitive  # type: ignore[untyped-decorator]
def inverse_root(matrix: Any) -> Any:
    """Return the symmetric inverse roots `S^(-1/2)` of positive definite matrices."""
    eigenvalues, vectors = _solve(matrix)
    return (vectors / np.sqrt(eigenvalues)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


@primitive  # type: ignore[untyped-decorator]
def lyapunov(root: Any, matrix: Any) -> Any:
    """Return the symmetric X with `A X + X A = C`, for positive definite A and symmetric C."""
    eigenvalues, vectors = _solve(root)
    rows = np.swapaxes(vectors, -1, -2)
    sums = eigenvalues[..., :, None] + eigenvalues[..., None, :]
    return vectors @ ((rows @ matrix @ vectors) / sums) @ rows


@primitive  # type: ignore[untyped-decorator]
def eigh(matrix: Any) -> Any:
    """Return eigenvalues, ascending, and eigenvectors, in columns."""
    return _solve(matrix)


def _solve(matrix: Any) -> tuple[Any, Any]:
    """Return `numpy.linalg.eigh`, with NaN for matrices that are not finite, which it refuses.

    Such matrices are those of runs that diverge; the other runs of the stack are unaffected.
    """
    is_finite = np.isfinite(matrix).all(axis=(-1, -2), keepdims=True)
    if is_finite.all():
        eigenvalues, vectors = np.linalg.eigh(matrix)
        return eigenvalues, vectors
    eigenvalues, vectors = np.linalg.eigh(np.where(is_finite, matrix, np.eye(matrix.shape[-1])))
    return np.where(is_finite[..., 0], eigenvalues, np.nan), np.where(is_finite, vectors, np.nan)


def _transpose(matrix: Any) -> Any:
    """Return the transpose of matrices."""
    return anp.swapaxes(matrix, -1, -2)


def _pull_inverse_root(answer: Any, matrix: Any) -> Any:
    """Return the function that pulls a derivative by `W = inverse_root(S)` back to S.

    From `dW A + A dW = - W dS W` with `A = S W`, the root of S. answer: W; matrix: S.
    """
    root = anp.matmul(matrix, answer)
    root = (root + _transpose(root)) / 2

    def pull(g: Any) -> Any:
        solved = lyapunov(root, (g + _transpose(g)) / 2)
        return -anp.matmul(anp.matmul(answer, solved), answer)

    return pull


def _pull_lyapunov_root(answer: Any, root: Any, matrix: Any) -> Any:
    """Return the function that pulls a derivative by `X = lyapunov(A, C)` back to A.

    From `A dX + dX A = - (dA X + X dA)`. answer: X; root: A; matrix: C.
    """

    def pull(g: Any) -> Any:
        solved = lyapunov(root, (g + _transpose(g)) / 2)
        return -(anp.matmul(solved, answer) + anp.matmul(answer, solved))

    return pull


def _pull_eigh(answer: Any, matrix: Any) -> Any:
    """Return the function that pulls derivatives by eigenvalues and eigenvectors back to a matrix.

    answer: the eigenvalues and eigenvectors of the matrix. The derivative g has these two parts,
    too.
    """
    eigenvalues, vectors = answer
    differences = eigenvalues[..., None, :] - eigenvalues[..., :, None]
    largest = anp.max(anp.abs(eigenvalues), axis=-1)[..., None, None]
    is_apart = anp.abs(differences) > EQUAL_EIGENVALUES * largest
    inverse = is_apart / anp.where(is_apart, differences, 1.0)

    def pull(g: Any) -> Any:
        inner = inverse * anp.matmul(_transpose(vectors), g[1])
        inner = inner + g[0][..., None] * np.eye(eigenvalues.shape[-1])
        pulled = anp.matmul(anp.matmul(vectors, inner), _transpose(vectors))
        return (pulled + _transpose(pulled)) / 2

    return pull


defvjp(inverse_root, _pull_inverse_root)
# In C the map is linear, and its own adjoint on symmetric matrices.
defvjp(
    lyapunov,
    _pull_lyapunov_root,
    lambda answer, root, matrix: lambda g: lyapunov(root, (g + _transpose(g)) / 2),
)
defvjp(eigh, _pull_eigh)
