"""The weights that an l2 penalty is on: those of the transformed features, or of the features.

On the transformed weights w every scheme minimizes another function. A scheme `z = A x + b` has the
feature weights `A' w`, so that a penalty on them is `l2 w A A' w'`, and all affine schemes that
keep every direction minimize the same function.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError, spell_setting
from normbench.normalizers.affine import find_affine_map, find_affine_traits
from normbench.normalizers.on_columns import name_scheme
from normbench.settings import L2_IN, check

TRANSFORMED, FEATURES = L2_IN


def check_penalty(l2: float, l2_in: str, scheme: Any) -> None:
    """Check that a scheme has the weights that a penalty is on.

    Args:
        l2: The penalty's factor; 0 for none.
        l2_in: `transformed` or `features`.
        scheme: The normalizer, fitted or not.

    Raises:
        UserError: The choice is unknown, or the penalty is on the features and the scheme is not
            known to be affine.
    """
    check("cost.l2_in", l2_in)
    if l2 and l2_in == FEATURES and find_affine_traits(scheme) is None:
        raise UserError(
            f"{spell_setting('cost.l2_in', FEATURES)}: normalizer {name_scheme(scheme)} is not "
            "known to be an affine map of the features, so that it has no weights of theirs; leave "
            f"it out, or use {spell_setting('cost.l2_in', TRANSFORMED)}"
        )


def penalty_of(l2: float, l2_in: str, scheme: Any, dtype: Any) -> float | NDArray[Any]:
    """Return the l2 of the transformed weights that equals the chosen penalty.

    Args:
        l2: The penalty's factor in `l2 sum w^2`, without 1/2.
        l2_in: `transformed` or `features`.
        scheme: The fitted normalizer, `z = A x + b`, from N features to M.
        dtype: The type of an array that is returned.

    Returns:
        `l2` itself for transformed weights, or if it is 0. For features `l2 A A'`, `(M, M)`, or its
        diagonal `(M,)` where A is diagonal.
    """
    if not l2 or l2_in == TRANSFORMED:
        return l2
    affine_map = find_affine_map(scheme)
    assert affine_map is not None
    matrix = affine_map.matrix
    square = matrix**2 if matrix.ndim == 1 else matrix @ matrix.T
    return np.asarray(l2 * square).astype(dtype)
