"""Fit an optimizer's scheme on the points of a problem, for steps preconditioned by its map."""

import numpy as np

from normbench.datasets.on_disk.points import Points, is_in_memory
from normbench.datasets.values import UserError
from normbench.engine.scheme.applying import normalize
from normbench.engine.scheme.probed import probe
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Array, Optimizer, State, Update


def with_fitted_scheme(optimizer: Optimizer, *points: Points) -> Optimizer:
    """Return an optimizer whose scheme is fitted on points; its steps are then under its map.

    Args:
        optimizer: The step rule, whose scheme is fitted in place; one without is returned.
        *points: Points (P, N), which are stacked for the fit.

    Returns:
        The step rule with the map T `(N + 1, M + 1)`, `[1 z] = [1 x] T`.

    Raises:
        UserError: The scheme is not affine, or the points are not in memory.
    """
    scheme = optimizer.scheme
    if scheme is None:
        return optimizer
    setting = f"optimizer.scheme={name_scheme(scheme)}"
    if not all(map(is_in_memory, points)):
        raise UserError(
            f"{setting}: is fitted on points in memory, under the scheme of normalizer; take "
            "normalizer= in place of preconditioned"
        )
    x = np.concatenate(points).astype(np.float64, copy=False)
    z, _ = normalize(scheme, x, x[:0], "float64")  # without test points
    affine = probe(scheme, x, z)
    if affine is None:
        raise UserError(
            f"{setting}: is not affine, so it has no preconditioner; take one that centres, scales "
            "or rotates, such as pca_sphere"
        )
    bias = np.eye(x.shape[1] + 1, 1)  # 1 above zeros, (N + 1, 1)
    offset = affine.image - affine.matrix @ affine.centre
    matrix = np.hstack([bias, np.vstack([offset, affine.matrix.T])])

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        # T T' is symmetric: multiplied from the right it acts on the last axis, of N + 1.
        direction = gradient.astype(np.float64, copy=False) @ matrix @ matrix.T
        stepped, state = optimizer.step(weights, direction, state, step_size)
        return stepped.astype(weights.dtype, copy=False), state

    # Neither plain nor rotation-equivariant: T favours some directions of the weights.
    return optimizer._replace(step=step, scheme=None, plain=False, rotation_equivariant=False)
