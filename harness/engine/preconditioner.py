"""Fit an optimizer's scheme on the points of a problem, for steps preconditioned by its map."""

from copy import deepcopy

import numpy as np

from normbench.datasets.on_disk.points import is_in_memory
from normbench.datasets.values import UserError
from normbench.engine.problem import Array, Problem
from normbench.engine.scheme import probed
from normbench.engine.scheme.applying import normalize
from normbench.normalizers.affine import find_affine_map
from normbench.normalizers.on_columns import name_scheme
from normbench.optimizers import Optimizer


def with_fitted_scheme(optimizer: Optimizer, *problems: Problem) -> Optimizer:
    """Return an optimizer whose scheme is fitted on the points of all these problems.

    Its steps are then preconditioned by the scheme's map.

    Args:
        optimizer: The step rule; one without a scheme is returned unchanged.
        *problems: Linear problems, whose points (P, N) are stacked for the fit.

    Returns:
        The step rule with the map T `(N + 1, M + 1)`, `[1 z] = [1 x] T`.

    Raises:
        UserError: The scheme is not affine, its map is not finite, or the points are not in memory.
    """
    if optimizer.scheme is None:
        return optimizer
    assert optimizer.under is not None
    name = name_scheme(optimizer.scheme)
    points_of_problems = []
    for problem in problems:
        points = problem.linear.points if problem.linear else None  # of a network: refused below
        if points is None or not is_in_memory(points):
            raise UserError(
                f"optimizer.scheme={name}: is fitted on points in memory, under the scheme of "
                "normalizer; take normalizer= in place of preconditioned"
            )
        points_of_problems.append(points.astype(np.float64, copy=False))
    one_problem = len(points_of_problems) == 1  # whose points need no copy
    points = points_of_problems[0] if one_problem else np.concatenate(points_of_problems)
    return optimizer.under(_fit_extended_map(points, optimizer))


def _fit_extended_map(points: Array, optimizer: Optimizer) -> Array:
    """Return the affine map of the optimizer's scheme as one matrix, which includes the offset.

    Args:
        points: The points x that the scheme is fitted on, (P, N).
        optimizer: The step rule, with a scheme, of which a copy is fitted.

    Returns:
        T, `(N + 1, M + 1)`, with `[1 z] = [1 x] T` for the points z under the scheme.

    Raises:
        UserError: The scheme is not affine, or its map is not finite.
    """
    scheme = deepcopy(optimizer.scheme)
    z, _ = normalize(scheme, points, points[:0], "float64")  # without test points
    declared = find_affine_map(scheme)  # exact; None for a scheme that declares no map
    if declared is not None:
        matrix, offset = declared.matrix, declared.offset
    else:
        probed_map = probed.probe(scheme, points, z)
        if probed_map is None:
            raise UserError(
                f"optimizer.scheme={name_scheme(scheme)}: is not affine, so it has no "
                "preconditioner; take one that centres, scales or rotates, such as pca_sphere"
            )
        matrix, offset = probed_map.matrix, probed_map.image - probed_map.matrix @ probed_map.centre
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    extended_map = np.zeros((matrix.shape[1] + 1, matrix.shape[0] + 1))
    extended_map[0, 0], extended_map[0, 1:], extended_map[1:, 1:] = 1.0, offset, matrix.T
    if not np.isfinite(extended_map).all():
        raise UserError(
            f"optimizer.scheme={name_scheme(scheme)}: has a map that is not finite on these "
            "points; take another scheme, or drop the features that it cannot take"
        )
    return extended_map
