"""The numbers of `notes/zca_2d`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return by how much each whitening turns the points, and what is left between both.

    A whitening is `Z = X W'` of centred points X (P, 2). Its polar factor Q, the orthogonal matrix
    nearest to W, is a turn, or a turn and a flip. `zca_turn`, `pca_turn`: the largest angle, in
    degrees, between a vector and its image under Q, `arccos` of the smallest real part of Q's
    eigenvalues. `between`: the largest distance between a point under PCA and the same under ZCA
    and `Q_pca`.
    """
    found = sweep.arrays(sweep.of_role(names.SCHEME), "points")
    points = {label: parts["points"] for label, parts in found.items()}
    x = points["centre"]
    factors = {}
    for label in ("pca_sphere", "zca_sphere"):
        matrix = np.linalg.lstsq(x, points[label], rcond=None)[0].T
        left, _, right = np.linalg.svd(matrix)
        factors[label] = left @ right
    turned = points["zca_sphere"] @ factors["pca_sphere"].T
    return {
        "zca_turn": _angle(factors["zca_sphere"]),
        "pca_turn": _angle(factors["pca_sphere"]),
        "between": float(np.abs(turned - points["pca_sphere"]).max()),
    }


def _angle(factor: np.ndarray) -> float:
    """Return the largest angle between a vector and its image, in degrees."""
    values = np.linalg.eigvals(factor)
    return float(np.degrees(np.abs(np.arctan2(values.imag, values.real)).max()))
