"""Gradient descent preconditioned by a scheme: the scheme in the steps, not in the points."""

from typing import Any

import numpy as np

from normbench.optimizers.contract import Array, Optimizer, State, Update


def preconditioned(scheme: Any) -> Optimizer:
    """Return the rule `w <- w - a T T' g`, T the map of an affine scheme on `[1 x]`.

    A scheme `z = A x + b` maps `[1 x]` to `[1 z] = [1 x] T` with `T = [[1, b'], [0, A']]`. Weights
    v on z are the weights `w = T v` on x, and gradient descent on v moves w along `-T T' g`. So the
    costs are those of gradient descent on the scheme's points. The bias belongs to T: `A'A` alone
    is right only where the points are centred.

    Args:
        scheme: An affine scikit-learn transformer. It is fitted on the points of the problem before
            the descent, see `Optimizer.scheme`.

    Returns:
        A rule that is plain gradient descent (T is the identity) until its `under` is called with
        the map of the fitted scheme.

    References:
        Amari, "Natural gradient works efficiently in learning", Neural Computation 10 (1998).
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        """Return the next weights of plain gradient descent, before the scheme is fitted."""
        return weights - step_size * gradient, state

    def under(matrix: Array) -> Optimizer:
        """Return the rule for the map T of the fitted scheme, `(N + 1, M + 1)`."""

        def move(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
            """Return the next weights; see `Optimizer.step`."""
            # T T' is symmetric: multiplied from the right it acts on the last axis, of N + 1.
            direction = gradient.astype(np.float64, copy=False) @ matrix @ matrix.T
            return (weights - step_size * direction).astype(weights.dtype, copy=False), state

        # Neither rotation-equivariant nor plain: T favours some directions of the weights.
        return Optimizer(move, steady=True)

    return Optimizer(
        step,
        rotation_equivariant=True,
        plain=True,
        steady=True,
        scheme=scheme,
        under=under,
    )
