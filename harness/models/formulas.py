"""What the layers of a network compute, on arrays `(R, H, p)` of R runs, H units and p points.

Axis 1 is the units of a layer, axis 2 the points. Derivatives are declared to autograd, and can be
differentiated again.
"""

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp, primitive
from autograd.tracer import getval, isbox

TEXTBOOK_RULE = "textbook"
# Under the textbook's rule a standard deviation below the first number gets the second one added.
SMALL_DEVIATION, ADDED_DEVIATION = 0.01, 1.0
SMALLEST = 1e-30  # of a variance whose root is differentiated
TANH, RELU, SIGMOID, IDENTITY, LECUN_TANH = "tanh", "relu", "sigmoid", "identity", "lecun_tanh"
ACTIVATIONS = (TANH, RELU, SIGMOID, IDENTITY, LECUN_TANH)
# Of `height * (tanh(slope * h) + shift)`: shift, height and slope.
SCALED_TANH = {TANH: (0.0, 1.0, 1.0), SIGMOID: (1.0, 0.5, 0.5), LECUN_TANH: (0.0, 1.7159, 2 / 3)}
HOMOGENEOUS_ACTIVATIONS = (RELU, IDENTITY)  # c times the value for c > 0 times the input
PCA, ZCA, NEWTON = "pca", "zca", "newton"
# Eigenvalues that differ by less than this share of the largest one are equal: the derivatives of
# their eigenvectors do not exist, and are taken as 0 within their span.
EQUAL_EIGENVALUES = 1e-14
Moments = tuple[Any, Any]  # mean, and variance or covariance


@primitive  # type: ignore[untyped-decorator]
def multiply(weight: Any, bias: Any, h: Any) -> Any:
    """Return the linear map of a layer, `W h + b`, `(R, H', p)`.

    Args:
        weight: `(R, H', H)`.
        bias: `(R, H', 1)`.
        h: `(R, H, p)`; `(H, p)` for the points, which all runs share: one product.
    """
    rows = weight.reshape(-1, weight.shape[-1]) if h.ndim == 2 else weight
    product = np.matmul(rows, h).reshape(*weight.shape[:2], -1)
    product += bias
    return product


def _pull_weight(answer: Any, weight: Any, bias: Any, h: Any) -> Callable[[Any], Any]:
    """Return the function that pulls a derivative by `multiply` back to the weight."""
    if h.ndim == 2:
        return lambda g: anp.reshape(anp.dot(anp.reshape(g, (-1, g.shape[-1])), h.T), weight.shape)
    return lambda g: anp.matmul(g, _transpose(h))


defvjp(
    multiply,
    _pull_weight,
    lambda answer, weight, bias, h: lambda g: anp.sum(g, axis=2, keepdims=True),
    lambda answer, weight, bias, h: lambda g: anp.matmul(_transpose(weight), g),
)


@primitive  # type: ignore[untyped-decorator]
def _tanh(h: Any) -> Any:
    """Return the hyperbolic tangent; autograd's own has a derivative that overflows from 360 on."""
    return np.tanh(h)


@primitive  # type: ignore[untyped-decorator]
def _relu(h: Any) -> Any:
    """Return the positive part: unlike the product `h (h > 0)` it is 0 at -inf."""
    return np.maximum(h, 0.0)


defvjp(_tanh, lambda answer, h: lambda g: g * (1.0 - answer * answer))
defvjp(_relu, lambda answer, h: lambda g: g * (answer > 0))


def activate(name: str, h: Any) -> Any:
    """Return the activation of h, in its shape: the name is one of `ACTIVATIONS`."""
    if name == IDENTITY:
        return h
    if name in (TANH, RELU):
        return _tanh(h) if name == TANH else _relu(h)
    shift, height, slope = SCALED_TANH[name]
    return height * (_tanh(slope * h) + shift)


def standardize(h: Any, axis: int, epsilon: float | str) -> tuple[Any, Moments]:
    """Return h minus its mean over an axis, divided by its deviation; and mean and variance.

    The first derivative is written by hand, in fewer passes than autograd's.

    Args:
        h: `(R, H, p)`.
        axis: 1 for the units of each point, 2 for the points of each unit. The moments keep it with
            length 1.
        epsilon: See `deviation`.
    """
    if isbox(h) and isbox(h._value):  # its derivative is differentiated again
        mean = anp.mean(h, axis=axis, keepdims=True)
        variance = anp.mean((h - mean) ** 2, axis=axis, keepdims=True)
        return (h - mean) / deviation(variance, epsilon), (mean, variance)
    mean = np.mean(getval(h), axis=axis, keepdims=True)
    standardized = getval(h) - mean
    variance = _mean_product(standardized, standardized, axis)
    inverse = 1 / deviation(variance, epsilon)
    standardized *= inverse
    # For the deviation's derivative: the textbook's rule divides by the root of the variance.
    slope = inverse if epsilon != TEXTBOOK_RULE else 1 / np.sqrt(np.maximum(variance, SMALLEST))

    def pull(g: Any) -> Any:
        """Return `(g - mean g) inverse - z slope mean(g z)`, of the standardized values z."""
        pulled = g - np.mean(g, axis=axis, keepdims=True)
        pulled *= inverse
        pulled -= standardized * (slope * _mean_product(g, standardized, axis))
        return pulled

    return _with_derivative(h, standardized, pull), (mean, variance)


def _mean_product(first: Any, second: Any, axis: int) -> Any:
    """Return the mean of a product of arrays `(R, H, p)` over axis 1 or 2, which is kept."""
    sums = np.einsum("rhp,rhp->rh" if axis == 2 else "rhp,rhp->rp", first, second)
    return np.expand_dims(sums, axis) / first.shape[axis]


@primitive  # type: ignore[untyped-decorator]
def _with_derivative(h: Any, value: Any, pull: Callable[[Any], Any]) -> Any:
    """Return a value that was computed of h; `pull` maps the derivative by it to that by h."""
    return value


defvjp(_with_derivative, lambda answer, h, value, pull: pull, argnums=(0,))


def deviation(variance: Any, epsilon: float | str) -> Any:
    """Return the root of a variance plus epsilon.

    Under `TEXTBOOK_RULE` in place of a number nothing is added to the variance; 1 is added to a
    standard deviation below 0.01.
    """
    if epsilon != TEXTBOOK_RULE:
        return anp.sqrt(variance + epsilon)
    # At a variance of 0 the root has no derivative.
    root = anp.sqrt(anp.maximum(variance, SMALLEST))
    return root + ADDED_DEVIATION * (root < SMALL_DEVIATION)


def covariance(h: Any) -> Moments:
    """Return the means `(R, H, 1)` and covariances `(R, H, H)` of h `(R, H, p)` over points."""
    mean = anp.mean(h, axis=2, keepdims=True)
    return mean, anp.matmul(h - mean, _transpose(h - mean)) / h.shape[-1]


def whitening(matrix: Any, kind: str, epsilon: Any, is_fixed: bool, iterations: int) -> Any:
    """Return the whitening matrices of covariances, `(.., H, H)`.

    Args:
        matrix: The covariances `(.., H, H)`.
        kind: `pca` (rows are eigenvectors divided by standard deviations), `zca` (the inverse
            root) or `newton` (an approximation of the inverse root).
        epsilon: The number that is added to the variances.
        is_fixed: Under `pca`, whether the largest entry of each eigenvector is made positive;
            otherwise its sign is the eigenvalue solver's.
        iterations: Under `newton`, the number of iterations. From X = I, each replaces X by
            `1.5 X - 0.5 X^3 M`. M is the matrix divided by its trace, without which the iteration
            may diverge.
    """
    identity = np.eye(matrix.shape[-1])
    matrix = matrix + epsilon * identity  # which keeps the eigenvalues away from 0
    if kind == ZCA:
        return inverse_root(matrix)
    if kind == NEWTON:
        trace = anp.sum(matrix * identity, axis=(-1, -2), keepdims=True)
        root = identity + 0 * matrix  # one identity for each matrix
        for _ in range(iterations):
            cube = anp.matmul(anp.matmul(root, root), root)
            root = 1.5 * root - 0.5 * anp.matmul(cube, matrix / trace)
        return root / anp.sqrt(trace)
    eigenvalues, vectors = eigh(matrix)
    rows = _transpose(vectors)
    if is_fixed:
        # The first of the largest entries, since the sum of opposite ones would be 0.
        is_largest = np.arange(rows.shape[-1]) == anp.argmax(anp.abs(rows), axis=-1)[..., None]
        rows = rows * anp.sign(anp.sum(rows * is_largest, -1, keepdims=True))
    return rows / anp.sqrt(eigenvalues)[..., None]


@primitive  # type: ignore[untyped-decorator]
def inverse_root(matrix: Any) -> Any:
    """Return the symmetric inverse roots `S^(-1/2)` of positive definite matrices S `(.., H, H)`.

    With the eigenvalues l and eigenvectors V of S they are `V l^(-1/2) V'`.
    """
    eigenvalues, vectors = _solve(matrix)
    return (vectors / np.sqrt(eigenvalues)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


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


def _symmetric(matrix: Any) -> Any:
    """Return the symmetric part of matrices."""
    return (matrix + _transpose(matrix)) / 2


def _pull_inverse_root(answer: Any, matrix: Any) -> Callable[[Any], Any]:
    """Return the function that pulls a derivative by `inverse_root(S)` back to S.

    In the basis of the eigenvectors, with the roots r of the eigenvalues, entry ij is divided by
    `- r_i r_j (r_i + r_j)`, whether the eigenvalues are equal or not.
    """
    eigenvalues, vectors = eigh(matrix)
    roots = anp.sqrt(eigenvalues)
    rows, columns = roots[..., :, None], roots[..., None, :]
    factors = -1 / (rows * columns * (rows + columns))

    def pull(g: Any) -> Any:
        inner = factors * anp.matmul(anp.matmul(_transpose(vectors), g), vectors)
        return _symmetric(anp.matmul(anp.matmul(vectors, inner), _transpose(vectors)))

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
        return _symmetric(anp.matmul(anp.matmul(vectors, inner), _transpose(vectors)))

    return pull


defvjp(inverse_root, _pull_inverse_root)
defvjp(eigh, _pull_eigh)
