"""What each coordinate of the scheme adds to a point, and points under the scheme as images."""

from typing import Any

import numpy as np

from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.measures.inputs import MOST_FEATURES

MOST_COMPONENTS = 64
SAME = 1e-6  # of the largest entry of a symmetric matrix
MOST_POINTS = 8  # that are kept whole


def take(made: Finished) -> Findings:
    """Return components, a training point, built up, and a few points under the scheme.

    Coordinates stand in the order of the variance that each adds to the points, the largest first.
    `components` (m, N): the point of the inputs that a unit along a coordinate adds, scaled to
    length 1; m at most 64. `variance` (m,): the share of the variance that it adds, all together 1.
    `origin` (N,): the point without coordinates, a mean; `weights` (m,): how much of each component
    the training point has that `shown_point` names. `count` (K,) numbers of coordinates, all of
    64 at most; `built` (K, N) that point from so many of them, `original` (N,); `share` (K,): what
    they add of the variance of the inputs. `points` (p, N) the first 8 training points, `under`
    (p, M) the same under the scheme, its coordinates in its own order; `pixels` (): whether those
    are pixels, as under a scheme that scales features or mixes them symmetrically.
    """
    width = made.z.shape[1]
    origin = _back(made.scheme, np.zeros((1, width)))
    added = _back(made.scheme, np.eye(width)) - origin
    lengths = np.linalg.norm(added, axis=1)
    variance = lengths**2 * made.surrogates[1].variances
    order = np.argsort(-variance, kind="stable")
    first = order[:MOST_COMPONENTS]
    count = np.arange(width + 1)
    if width > MOST_COMPONENTS:
        count = np.unique(np.concatenate([[0], np.geomspace(1, width, 24).round().astype(int)]))
    rank = np.argsort(order)
    point = made.z[made.shown].astype(np.float64)
    masked = np.where(rank < count[:, None], point, 0.0)
    added_up = np.concatenate([[0.0], np.cumsum(variance[order])])[count]
    with np.errstate(over="ignore"):  # the squares of points around 1e160 overflow
        whole = float(made.surrogates[0].variances.sum())
    scale = np.where(lengths > 0, lengths, 1.0)[first, None]
    return Findings(
        arrays={
            "components": (added[first] / scale).astype(np.float32),
            "variance": variance[first] / (variance.sum() or 1.0),
            "origin": origin[0],
            "weights": (point * lengths)[first],
            "count": count,
            "share": added_up / (whole or 1.0),
            "built": _back(made.scheme, masked).astype(np.float32),
            "original": made.dataset.x[made.shown].astype(np.float32),
            "points": made.dataset.x[:MOST_POINTS].astype(np.float32),
            "under": made.z[:MOST_POINTS].astype(np.float32),
            "pixels": np.array(_are_pixels(added)),
        }
    )


def _are_pixels(added: Array) -> bool:
    """Return whether coordinate n is pixel n, changed: what coordinates add (m, N) is symmetric."""
    largest = float(np.abs(added).max(initial=0.0))
    square = added.shape[0] == added.shape[1]
    return square and bool(np.allclose(added, added.T, rtol=0, atol=SAME * largest))


def _back(scheme: Any, coordinates: Array) -> Array:
    return np.asarray(scheme.inverse_transform(coordinates), dtype=np.float64)


MEASURE = Measure(
    take,
    record="components",
    of_descent=False,
    most_features=MOST_FEATURES,
    inverse=" to turn a component into an image with",
)
