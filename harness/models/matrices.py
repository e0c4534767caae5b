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
    """Return the symmetric inverse roots `S^(-1/2)` of positive definite matrices S `(.., H, H)`.

    With the eigenvalues l and eigenvectors V of S they are `V l^(-1/2) V'`.
    """
    eigenvalues, vectors = _solve(matrix)
    return (vectors / np.sqrt(eigenvalues)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


@primitive  # type: ignore[untyped-decorator]
def lyapunov(root: Any, matrix: Any) -> Any:
    """Return the symmetric X with `A X + X A = C`, for positive definite A and symmetric C.

    In the basis of A's eigenvectors V, with eigenvalues l, entry ij is `(V' C V)_ij / (l_i + l_j)`.

    root: A `(.., H, H)`. matrix: C `(.., H, H)`.
    """
    eigenvalues, vectors = _solve(root)
    rows = np.swapaxes(vectors, -1, -2)
    sums = eigenvalues[..., :, None] + eigenvalues[..., None, :]
    return vectors @ ((rows @ matrix @ vectors) / sums) @ rows


@primitive  # type: ignore[untyped-decorator]
def eigh(matrix: Any) -> Any:
    """Return eigenvalues `(.., H)`, ascending, and eigenvectors `(.., H, H)`, in columns."""
    return _solve(matrix)


def _solve(matrix: Any) -> tuple[Any, Any]:
    """Return `numpy.linalg.eigh`, with NaN for matrices that are not finite, which it refuses.

    Such matrices are those of runs that diverge; the other runs of the stack are unaffected: the
    identity is solved in place of a matrix that is not finite.
    """
    is_finite = np.isfinite(matrix).all(axis=(-1, -2), keepdims=True)
    identity = np.eye(matrix.shape[-1], dtype=matrix.dtype)
    eigenvalues, vectors = np.linalg.eigh(np.where(is_finite, matrix, identity))
    return np.where(is_finite[..., 0], eigenvalues, np.nan), np.where(is_finite, vectors, np.nan)


def _transpose(matrix: Any) -> Any:
    """Return the transpose of matrices."""
    return anp.swapaxes(matrix, -1, -2)


def _pull_inverse_root(answer: Any, matrix: Any) -> Any:
    """Return the function that pulls a derivative by `W = inverse_root(S)` back to S.

    From `dW A + A dW = - W dS W` with `A = S W`, the root of S. answer: W; matrix: S. The function
    takes the derivative g by W, `(.., H, H)`, and returns that by S.
    """
    root = anp.matmul(matrix, answer)
    root = (root + _transpose(root)) / 2  # symmetric but for rounding

    def pull(g: Any) -> Any:
        solved = lyapunov(root, (g + _transpose(g)) / 2)
        return -anp.matmul(anp.matmul(answer, solved), answer)

    return pull


def _pull_lyapunov_root(answer: Any, root: Any, matrix: Any) -> Any:
    """Return the function that pulls a derivative by `X = lyapunov(A, C)` back to A.

    From `A dX + dX A = - (dA X + X dA)`. answer: X; root: A; matrix: C. The function takes the
    derivative g by X, `(.., H, H)`, and returns that by A.
    """

    def pull(g: Any) -> Any:
        solved = lyapunov(root, (g + _transpose(g)) / 2)
        return -(anp.matmul(solved, answer) + anp.matmul(answer, solved))

    return pull


def _pull_eigh(answer: Any, matrix: Any) -> Any:
    """Return the function that pulls derivatives by eigenvalues and eigenvectors back to a matrix.

    With eigenvalues l and eigenvectors V the function returns `V (F * (V' g_V) + diag g_l) V'`,
    made symmetric. F_ij is `1 / (l_j - l_i)`, and 0 where these are equal.

    answer: l `(.., H)` and V `(.., H, H)`. The derivative g is of the same two parts, g_l and g_V.
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
