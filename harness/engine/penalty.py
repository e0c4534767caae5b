"""The weights that an l2 penalty is on: those of the transformed features, or of the features.

On the transformed weights w every scheme minimizes another function. A scheme `z = A x + b` has the
feature weights `A' w`, so that a penalty on them is `l2 w A A' w'`, and all affine schemes that
keep every direction minimize the same function.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Points
from normbench.datasets.values import UserError, spell_setting
from normbench.engine.scheme.applying import Applied
from normbench.engine.scheme.probed import probe
from normbench.normalizers.on_columns import name_scheme
from normbench.settings import L2_IN

TRANSFORMED, FEATURES = L2_IN


def penalty_of(
    l2: float, l2_in: str, applied: Applied, x: Points, dtype: Any
) -> float | NDArray[Any]:
    """Return the l2 of the transformed weights that equals the chosen penalty.

    Args:
        l2: The penalty's factor in `l2 sum w^2`, without 1/2.
        l2_in: `transformed` or `features`.
        applied: The fitted normalizer, `z = A x + b`, from N features to M, and points under it.
        x: The training points (P, N) before it.
        dtype: The type of an array that is returned.

    Returns:
        `l2` itself for transformed weights, or if it is 0. For features `l2 A A'`, `(M, M)`, or its
        diagonal `(M,)` where it is diagonal.

    Raises:
        UserError: The penalty is on the features, and the scheme is not affine.
    """
    if not l2 or l2_in == TRANSFORMED:
        return l2
    affine_map = probe(applied.scheme, x, applied.z)
    if affine_map is None:
        raise UserError(
            f"{spell_setting('cost.l2_in', FEATURES)}: normalizer {name_scheme(applied.scheme)} is "
            "no affine map of the features, so that it has no weights of theirs; leave it out, or "
            f"use {spell_setting('cost.l2_in', TRANSFORMED)}"
        )
    matrix = affine_map.matrix
    square = np.diag(matrix**2) if matrix.ndim == 1 else matrix @ matrix.T
    is_diagonal = np.count_nonzero(square) == np.count_nonzero(square.diagonal())
    return np.asarray(l2 * (square.diagonal() if is_diagonal else square)).astype(dtype)
