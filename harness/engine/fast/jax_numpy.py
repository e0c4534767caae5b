"""The functions of `jax.numpy`, with extremes whose derivatives rounding cannot drop.

JAX compares each entry with the extreme, and derives by those that are equal. A compiled program
may compute an entry twice, with a fused multiplication in one place alone; none is equal then, and
the derivative is lost without a message (JAX's issue 40564). Here the comparisons are of entries
with each other. Equal entries share the derivative, as autograd's do.
"""

from typing import Any

import jax
import jax.numpy as jnp


def __getattr__(name: str) -> Any:
    """Return a function of `jax.numpy` that is not defined here."""
    return getattr(jnp, name)


def maximum(first: Any, second: Any) -> Any:
    """Return the larger of two arrays' entries; equal ones share the derivative."""
    # For equal entries, which share the derivative, and for NaN, which stays NaN.
    middle = 0.5 * first + 0.5 * second
    return jnp.where(first > second, first, jnp.where(first < second, second, middle))


def minimum(first: Any, second: Any) -> Any:
    """Return the smaller of two arrays' entries; equal ones share the derivative."""
    return -maximum(-first, -second)


def max(array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the largest entries along an axis, or of all."""
    if axis is None:
        value = max(jnp.ravel(array), 0)
        return jnp.reshape(value, (1,) * jnp.ndim(array)) if keepdims else value
    value = _largest(axis, array)
    return value if keepdims else jnp.squeeze(value, axis)


def min(array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the smallest entries along an axis, or of all."""
    return -max(-array, axis, keepdims)


def _compute_largest(axis: int, array: Any) -> Any:
    """Return the largest entries along an axis, which stays with length 1."""
    return jnp.max(array, axis=axis, keepdims=True)


def _differentiate_largest(axis: int, arrays: Any, tangents: Any) -> Any:
    """Return the largest entries along an axis, and their derivative along a direction.

    That derivative is the mean of the direction over the entries that are largest. The position of
    the largest entry counts, too: rounding may leave no entry that equals the value (see the
    module).

    Args:
        axis: The axis, which is kept.
        arrays: The array, in a tuple, as `jax.custom_jvp` passes it.
        tangents: The direction, of the array's shape, in a tuple.

    Returns:
        Both with length 1 along the axis.
    """
    (array,), (tangent,) = arrays, tangents
    value = _largest(axis, array)
    # The position of each entry along the axis; JAX takes no negative axis here.
    entries = jax.lax.broadcasted_iota(int, array.shape, axis % array.ndim)
    is_largest = (entries == jnp.argmax(array, axis, keepdims=True)) | (array == value)
    total = jnp.sum(jnp.where(is_largest, tangent, 0), axis=axis, keepdims=True)
    return value, total / jnp.sum(is_largest, axis=axis, keepdims=True).astype(tangent.dtype)


_largest: Any = jax.custom_jvp(_compute_largest, nondiff_argnums=(0,))
_largest.defjvp(_differentiate_largest)
