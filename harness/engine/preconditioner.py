"""Fit an optimizer's scheme on the points of a problem, for steps preconditioned by its map."""

from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Points, is_in_memory
from normbench.datasets.values import UserError
from normbench.engine.scheme.applying import normalize
from normbench.engine.scheme.probed import probe
from normbench.normalizers.affine import Affine, find_affine_map
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Optimizer


def with_fitted_scheme(optimizer: Optimizer, *points: Points) -> Optimizer:
    """Return an optimizer whose scheme is fitted on points; its steps are then under its map.

    Args:
        optimizer: The step rule, whose scheme is fitted in place; one without is returned.
        *points: Points (P, N), which are stacked for the fit.

    Returns:
        The step rule with the map T `(N + 1, M + 1)`, `[1 z] = [1 x] T`.

    Raises:
        UserError: The scheme is not affine, its map is not finite, or the points are not in memory.
    """
    if optimizer.scheme is None:
        return optimizer
    assert optimizer.under is not None
    if not all(map(is_in_memory, points)):
        raise UserError(
            f"optimizer.scheme={name_scheme(optimizer.scheme)}: is fitted on points in memory, "
            "under the scheme of normalizer; take normalizer= in place of preconditioned"
        )
    x = points[0] if len(points) == 1 else np.concatenate(points)
    return optimizer.under(_fit_extended_map(x.astype(np.float64, copy=False), optimizer.scheme))


def _fit_extended_map(points: Array, scheme: Any) -> Array:
    """Return the affine map of a scheme that is fitted on points as one matrix with the offset."""
    z, _ = normalize(scheme, points, points[:0], "float64")  # without test points
    affine = find_affine_map(scheme)  # exact; None for a scheme that declares no map
    if affine is None:
        probed = probe(scheme, points, z)
        if probed is None:
            raise UserError(
                f"optimizer.scheme={name_scheme(scheme)}: is not affine, so it has no "
                "preconditioner; take one that centres, scales or rotates, such as pca_sphere"
            )
        affine = Affine(probed.matrix, probed.image - probed.matrix @ probed.centre)
    matrix = np.diag(affine.matrix) if affine.matrix.ndim == 1 else affine.matrix
    extended_map = np.zeros((matrix.shape[1] + 1, matrix.shape[0] + 1))
    extended_map[0, 0], extended_map[0, 1:], extended_map[1:, 1:] = 1.0, affine.offset, matrix.T
    if not np.isfinite(extended_map).all():
        raise UserError(
            f"optimizer.scheme={name_scheme(scheme)}: has a map that is not finite on these "
            "points; take another scheme, or drop the features that it cannot take"
        )
    return extended_map
