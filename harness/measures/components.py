"""What each coordinate of the scheme adds to a point, and a point built up from them."""

from typing import Any

import numpy as np

from normbench.datasets import Dataset
from normbench.datasets.values import UserError
from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.measures.inputs import refuse_wide

MOST_COMPONENTS = 64


def check(dataset: Dataset, scheme: Any) -> None:
    """Raise `UserError` unless the scheme has an inverse, on features that are not too many."""
    refuse_wide("components", dataset)
    if not hasattr(scheme, "inverse_transform"):
        raise UserError(
            f"record=components: normalizer {type(scheme).__name__} has no inverse_transform to "
            "turn a component into an image with; leave components out or choose another scheme"
        )


def take(made: Finished) -> Findings:
    """Return components and the first training point, built up.

    `components` (m, N): the point of the inputs that a unit along coordinate i adds, scaled to
    length 1; m at most 64. `count` (K,) numbers of coordinates, `built` (K, N) the first training
    point from so many of them, `original` (N,).
    """
    width = made.z.shape[1]
    first = min(width, MOST_COMPONENTS)
    origin = _back(made.scheme, np.zeros((1, width)))
    added = _back(made.scheme, np.eye(first, width)) - origin
    lengths = np.linalg.norm(added, axis=1, keepdims=True)
    count = np.unique(np.concatenate([[0], np.geomspace(1, width, 24).round().astype(int)]))
    masked = np.where(np.arange(width) < count[:, None], made.z[0].astype(np.float64), 0.0)
    return Findings(
        arrays={
            "components": (added / np.where(lengths > 0, lengths, 1.0)).astype(np.float32),
            "count": count,
            "built": _back(made.scheme, masked).astype(np.float32),
            "original": made.dataset.x[0].astype(np.float32),
        }
    )


def _back(scheme: Any, coordinates: Array) -> Array:
    return np.asarray(scheme.inverse_transform(coordinates), dtype=np.float64)


MEASURE = Measure(take, record="components", of_descent=False, check=check)
