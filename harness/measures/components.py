"""The component that each coordinate of the scheme adds to a point, and points as images."""

from typing import Any

import numpy as np

from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import MOST_FEATURES
from normbench.normalizers.decomposition import mean_and_covariance

MOST_COMPONENTS = 64
SYMMETRY_TOLERANCE = 1e-6  # of the largest entry
MAX_IMAGES = 8


def take(job: FinishedJob) -> Findings:
    """Return components, one training point rebuilt from them, and a few points under the scheme.

    Coordinates stand in the order of the variance that each adds to the points, the largest first.
    `components` (m, N): what a unit along a coordinate adds to a point of the inputs, scaled to
    length 1; m at most 64. `variance` (m,): the share of the variance that each coordinate adds;
    the shares of all M coordinates sum to 1. `origin` (N,): the input whose coordinates are 0, the
    mean under a scheme that centres. `weights` (m,): how much of each component the training point
    has that `shown_point` names. `count` (K,): numbers of coordinates, all from 0 to M where M is
    at most 64, else some of them. `built` (K, N): that training point rebuilt from so many
    coordinates, `original` (N,) the point itself, `share` (K,): the share of the variance of the
    inputs that so many coordinates explain: that of all coordinates, less the variance of what the
    others add. `points` (p, N): the first 8 training points; `under` (p, M): the same under the
    scheme, with its coordinates in their own order; `pixels` (): whether these are pixels, as under
    a scheme that scales features or mixes them symmetrically.
    """
    width = job.z.shape[1]
    origin = _inverse_transform(job.scheme, np.zeros((1, width)))
    shifts = _inverse_transform(job.scheme, np.eye(width)) - origin  # (M, N)
    lengths = np.linalg.norm(shifts, axis=1)
    # That each coordinate adds to the inputs.
    variance = lengths**2 * job.moments[1].var(axis=0, dtype=np.float64)
    order = np.argsort(-variance, kind="stable")
    first = order[:MOST_COMPONENTS]
    count = np.arange(width + 1)
    if width > MOST_COMPONENTS:
        count = np.unique(np.concatenate([[0], np.geomspace(1, width, 24).round().astype(int)]))
    rank = np.argsort(order)  # the place of each coordinate in the order
    point = job.z[job.shown_point].astype(np.float64)
    masked = np.where(rank < count[:, None], point, 0.0)  # the point with its first coordinates
    # The squares of points around 1e160 overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        input_variance = float(job.moments[0].var(axis=0, dtype=np.float64).sum())
        covariance = mean_and_covariance(job.moments[1])[1]
        explained = _explained((covariance * (shifts @ shifts.T))[np.ix_(order, order)])
    scale = np.where(lengths > 0, lengths, 1.0)[first, None]
    return Findings(
        arrays={
            "components": (shifts[first] / scale).astype(np.float32),
            "variance": variance[first] / (variance.sum() or 1.0),
            "origin": origin[0],
            "weights": (point * lengths)[first],
            "count": count,
            "share": explained[count] / (input_variance or 1.0),
            "built": _inverse_transform(job.scheme, masked).astype(np.float32),
            "original": job.dataset.x[job.shown_point].astype(np.float32),
            "points": job.dataset.x[:MAX_IMAGES].astype(np.float32),
            "under": job.z[:MAX_IMAGES].astype(np.float32),
            "pixels": np.array(_are_pixels(shifts)),
        }
    )


def _explained(covariance: Array) -> Array:
    """Return the variance that the first k of M coordinates explain `(M + 1,)`, k from 0 to M.

    It is the variance of the sum of all, less that of the sum of those after the first k.

    Args:
        covariance: The covariance of what the coordinates add to the inputs, `(M, M)`; diagonal
            where they are uncorrelated, or add orthogonal shifts.
    """
    # Each coordinate has its variance, and twice its covariances with those after it.
    added = covariance.diagonal() + 2 * np.triu(covariance, 1).sum(axis=1)
    return np.concatenate([[0.0], np.cumsum(added)])


def _are_pixels(shifts: Array) -> bool:
    """Return whether coordinate n is pixel n: whether the shifts are a symmetric matrix.

    They are under a scheme that scales each feature, and under one such as ZCA sphering.

    Args:
        shifts: What a unit along each of M coordinates adds to a point of the inputs (M, N).
    """
    largest = float(np.abs(shifts).max(initial=0.0))
    square = shifts.shape[0] == shifts.shape[1]
    return square and bool(np.allclose(shifts, shifts.T, rtol=0, atol=SYMMETRY_TOLERANCE * largest))


def _inverse_transform(scheme: Any, coordinates: Array) -> Array:
    """Return the points of the inputs (k, N) with given coordinates (k, M), in float64."""
    return np.asarray(scheme.inverse_transform(coordinates), dtype=np.float64)


MEASURE = Measure(
    take,
    record="components",
    of_descent=False,
    most_features=MOST_FEATURES,
    inverse=" to turn a component into an image with",
)
