"""What the layers of a network compute, on arrays `(R, H, p)` of R runs, H units and p points.

Axis 1 is the units of a layer, axis 2 the points.

`Formulas` are written on autograd's functions, for derivatives of any order. `Fused` has the same
values and first derivatives in fewer passes over the arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import defvjp, defvjp_argnums, primitive
from autograd.tracer import getval, isbox

from normbench.models.matrices import eigh, inverse_root

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


@primitive  # type: ignore[untyped-decorator]
def _tanh(h: Any) -> Any:
    """Return the hyperbolic tangent; autograd's own has a derivative that overflows from 360 on."""
    return np.tanh(h)


defvjp(_tanh, lambda answer, h: lambda g: g * (1.0 - answer * answer))


class Formulas:
    """The formulas as they are written down."""

    def multiply(self, weight: Any, bias: Any, h: Any) -> Any:
        """Return the linear map of a layer, `W h + b`, `(R, H', p)`.

        Args:
            weight: `(R, H', H)`.
            bias: `(R, H', 1)`.
            h: `(R, H, p)`; `(H, p)` for the points, which all runs share.
        """
        if h.ndim == 2:  # the points, which all runs share: one product
            rows = anp.reshape(weight, (-1, weight.shape[-1]))
            return anp.reshape(anp.dot(rows, h), (*weight.shape[:2], -1)) + bias
        return anp.matmul(weight, h) + bias

    def activate(self, name: str, h: Any) -> Any:
        """Return the activation of h, in its shape: the name is one of `ACTIVATIONS`."""
        if name == RELU:
            # Unlike the product `h (h > 0)` it is 0 at -inf; its derivative at 0 is 0.
            return anp.where(h <= 0, 0.0, h)
        if name == IDENTITY:
            return h
        shift, height, slope = SCALED_TANH[name]
        return height * (_tanh(slope * h) + shift)

    def standardize(
        self, h: Any, axis: int, epsilon: float | str, affine: Sequence[Any] = ()
    ) -> Any:
        """Return h minus its mean over an axis, divided by its standard deviation over that axis.

        Args:
            h: `(R, H, p)`.
            axis: 1 for the units of each point, 2 for the points of each unit.
            epsilon: See `deviation`.
            affine: Gain and shift, each `(R, H, 1)`, by which the values are then multiplied and
                moved; empty for none.
        """
        mean, variance = self.moments(h, axis)
        return self.rescale(h, mean, variance, epsilon, affine)

    def moments(self, h: Any, axis: int) -> tuple[Any, Any]:
        """Return mean and variance of h `(R, H, p)` over an axis, which is kept with length 1."""
        mean = anp.mean(h, axis=axis, keepdims=True)
        return mean, anp.mean((h - mean) ** 2, axis=axis, keepdims=True)

    def rescale(
        self, h: Any, mean: Any, variance: Any, epsilon: float | str, affine: Sequence[Any] = ()
    ) -> Any:
        """Return h minus a given mean, divided by the deviation of a given variance.

        Args:
            h: `(R, H, p)`.
            mean: `(R, H, 1)` or `(R, 1, p)`, as `moments` returns it.
            variance: The same shape.
            epsilon: See `deviation`.
            affine: See `standardize`.
        """
        standardized = (h - mean) / self.deviation(variance, epsilon)
        return standardized * affine[0] + affine[1] if affine else standardized

    def deviation(self, variance: Any, epsilon: float | str) -> Any:
        """Return the root of a variance plus epsilon.

        Under `TEXTBOOK_RULE` in place of a number nothing is added to the variance; 1 is added to a
        standard deviation below 0.01.
        """
        if epsilon != TEXTBOOK_RULE:
            return anp.sqrt(variance + epsilon)
        # At a variance of 0 the root has no derivative.
        deviation = anp.sqrt(anp.maximum(variance, SMALLEST))
        return deviation + ADDED_DEVIATION * (deviation < SMALL_DEVIATION)

    def covariance(self, h: Any) -> tuple[Any, Any]:
        """Return the means `(R, H, 1)` and covariances `(R, H, H)` of h `(R, H, p)` over points."""
        mean = anp.mean(h, axis=2, keepdims=True)
        centred = h - mean
        product = anp.matmul(centred, anp.swapaxes(centred, -1, -2))
        return mean, product / h.shape[-1]

    def whitening(
        self, covariance: Any, kind: str, epsilon: Any, is_fixed: bool, iterations: int
    ) -> Any:
        """Return the whitening matrices of covariances, `(.., H, H)`.

        Args:
            covariance: `(.., H, H)`.
            kind: `pca` (rows are eigenvectors divided by standard deviations), `zca` (the inverse
                root) or `newton` (an approximation of the inverse root).
            epsilon: The number that is added to the variances.
            is_fixed: Under `pca`, whether the largest entry of each eigenvector is made positive;
                otherwise its sign is the eigenvalue solver's.
            iterations: Under `newton`, the number of iterations.
        """
        # The number on the diagonal keeps the eigenvalues away from 0.
        ridged = covariance + epsilon * np.eye(covariance.shape[-1])
        if kind == ZCA:
            return inverse_root(ridged)
        if kind == NEWTON:
            return self._newton(ridged, iterations)
        eigenvalues, vectors = eigh(ridged)
        rows = anp.swapaxes(vectors, -1, -2)
        if is_fixed:
            # The first of the largest entries, since the sum of opposite ones would be 0.
            position = anp.argmax(anp.abs(rows), axis=-1)[..., None]
            is_largest = np.arange(rows.shape[-1]) == position
            rows = rows * anp.sign(anp.sum(rows * is_largest, -1, keepdims=True))
        return rows / anp.sqrt(eigenvalues)[..., None]

    def _newton(self, matrix: Any, iterations: int) -> Any:
        """Return the inverse root of matrices `(.., H, H)` by Newton's iteration.

        From X = I, each iteration replaces X by `1.5 X - 0.5 X^3 M`. M is the matrix divided by its
        trace, without which the iteration may diverge.
        """
        identity = np.eye(matrix.shape[-1])
        trace = anp.sum(matrix * identity, axis=(-1, -2), keepdims=True)
        root = identity + 0 * matrix  # one identity for each matrix
        for _ in range(iterations):
            cube = anp.matmul(anp.matmul(root, root), root)
            root = 1.5 * root - 0.5 * anp.matmul(cube, matrix / trace)
        return root / anp.sqrt(trace)


class Fused(Formulas):
    """The formulas with first derivatives in fewer passes; second derivatives are not available.

    scratch: a function of a key, a shape and a type that returns an array of undefined entries to
    work in: that of the same key again, where it fits, since pages that the system maps anew are
    slow. Values that an evaluation returns lie in these arrays, until the next evaluation.
    """

    def __init__(self, scratch: Callable[[Any, tuple[int, ...], Any], Any] | None = None) -> None:
        self.scratch = scratch or (lambda key, shape, dtype: np.empty(shape, dtype))
        self.position = 0

    def take(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array of undefined entries, another one at each call."""
        # An evaluation takes the same arrays in the same order as the one before.
        self.position += 1
        return self.scratch(("layers", self.position), shape, dtype)

    def combine(self, operation: Callable[..., Any], first: Any, second: Any) -> Any:
        """Return the result of a numpy operation on two arrays, in an array of `take`.

        Its shape and type are those of the first array; the second is broadcast to it.
        """
        return operation(first, second, out=self.take(first.shape, first.dtype))

    def multiply(self, weight: Any, bias: Any, h: Any) -> Any:
        """See `Formulas.multiply`."""
        matrices, values = getval(weight), getval(h)
        is_shared = values.ndim == 2
        product = self.take((*matrices.shape[:2], values.shape[-1]), matrices.dtype)
        if is_shared:
            rows = matrices.reshape(-1, matrices.shape[-1])
            np.matmul(rows, values, out=product.reshape(len(rows), -1))
        else:
            np.matmul(matrices, values, out=product)
        product += getval(bias)

        def pull(g: Any) -> Any:
            """Return the derivatives by weight, bias and h, given that by the product, g."""
            if is_shared:
                of_weight = (g.reshape(-1, g.shape[-1]) @ values.T).reshape(matrices.shape)
            else:
                of_weight = g @ values.swapaxes(1, 2)
            of_values = None
            if isbox(h):  # autograd traces h: it is not the points
                out = self.take(values.shape, values.dtype)
                of_values = np.matmul(matrices.swapaxes(1, 2), g, out=out)
            return of_weight, g.sum(axis=2, keepdims=True), of_values

        return _with_derivatives(weight, bias, h, value=product, pull=pull)

    def activate(self, name: str, h: Any) -> Any:
        """See `Formulas.activate`; the derivative of tanh is computed from its value."""
        values = getval(h)
        # Of height * (tanh(slope * h) + shift) the derivative is height slope (1 - tanh^2).
        if name in SCALED_TANH:
            shift, height, slope = SCALED_TANH[name]
            curve = self.combine(np.multiply, values, slope)
            np.tanh(curve, out=curve)

            def pull(g: Any) -> Any:
                """Return the derivative by h, given that by the value, g."""
                derivative = self.combine(np.multiply, curve, curve)
                np.subtract(1.0, derivative, out=derivative)
                derivative *= g
                derivative *= height * slope
                return (derivative,)

            value = curve if name == TANH else height * (curve + shift)
            return _with_derivatives(h, value=value, pull=pull)
        if name == RELU:
            value = self.combine(np.maximum, values, 0.0)
            return _with_derivatives(h, value=value, pull=lambda g: (g * (value > 0),))
        return super().activate(name, h)

    def standardize(
        self, h: Any, axis: int, epsilon: float | str, affine: Sequence[Any] = ()
    ) -> Any:
        """See `Formulas.standardize`."""
        values = getval(h)
        standardized = self.combine(np.subtract, values, np.mean(values, axis=axis, keepdims=True))
        variance = _mean_product(standardized, standardized, axis)
        inverse = 1 / self.deviation(variance, epsilon)
        standardized *= inverse
        # For the deviation's derivative: the textbook's rule divides by the root of the variance.
        slope = inverse if epsilon != TEXTBOOK_RULE else 1 / np.sqrt(np.maximum(variance, SMALLEST))

        def pull(g: Any) -> Any:
            """Return the derivative by h, given that by the standardized values z, g.

            It is `(g - mean g) inverse - z slope mean(g z)`, means over the axis.
            """
            pulled = self.combine(np.subtract, g, np.mean(g, axis=axis, keepdims=True))
            pulled *= inverse
            factor = slope * _mean_product(g, standardized, axis)
            pulled -= self.combine(np.multiply, standardized, factor)
            return (pulled,)

        if not affine:
            return _with_derivatives(h, value=standardized, pull=pull)
        gain = getval(affine[0])
        value = self.combine(np.multiply, standardized, gain)
        value += getval(affine[1])

        def pull_affine(g: Any) -> Any:
            """Return the derivatives by h, gain and shift, given that by the value, g."""
            of_gain = g.shape[2] * _mean_product(g, standardized, 2)  # a sum over points
            scaled = self.combine(np.multiply, g, gain)
            return (*pull(scaled), of_gain, g.sum(axis=2, keepdims=True))

        return _with_derivatives(h, *affine, value=value, pull=pull_affine)


def _mean_product(first: Any, second: Any, axis: int) -> Any:
    """Return the mean of a product of arrays `(R, H, p)` over axis 1 or 2, which is kept."""
    sums = np.einsum("rhp,rhp->rh" if axis == 2 else "rhp,rhp->rp", first, second)
    return np.expand_dims(sums, axis) / first.shape[axis]


@primitive  # type: ignore[untyped-decorator]
def _with_derivatives(*arguments: Any, value: Any, pull: Callable[[Any], Any]) -> Any:
    """Return a value that was computed without autograd, and declare its derivative to autograd.

    Args:
        *arguments: The arrays that the value was computed from, as autograd traces them.
        value: The value.
        pull: A function that returns the derivatives by all arguments, given that by the value.
    """
    return value


# autograd asks for the derivatives by those arguments alone that it traces, by their positions.
defvjp_argnums(
    _with_derivatives,
    lambda argnums, answer, arguments, keywords: lambda g: _choose(keywords["pull"](g), argnums),
)


def _choose(derivatives: Sequence[Any], argnums: Sequence[int]) -> tuple[Any, ...]:
    """Return the derivatives by the arguments at some positions."""
    return tuple(derivatives[number] for number in argnums)


AUTOGRAD = Formulas()
