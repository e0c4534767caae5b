"""What several measures need: names of coordinates, few points, directions, the least cost."""

from contextlib import suppress

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import Array, Descended, Finished
from normbench.names import ATTAINED
from normbench.normalizers.decomposition import Surrogate, mean_and_covariance
from normbench.theory.analysis import curvature_work
from normbench.theory.budget import Work
from normbench.theory.minimum import weights_of

MOST_POINTS = 2000
MOST_FEATURES = 4096  # of an image, or of a spectrum


def names_of(made: Finished) -> tuple[str, ...]:
    """Return a name for each coordinate of the scheme: its own, or the feature's."""
    names = made.dataset.feature_names
    with suppress(AttributeError, ValueError):  # a link of a chain may have none
        return tuple(made.scheme.get_feature_names_out(np.array(names, dtype=object)))
    if made.z.shape[1] == len(names):
        return names
    return tuple(f"coordinate {n + 1}" for n in range(made.z.shape[1]))


def some(count: int) -> Array:
    """Return the indices of the points that are kept, in order: at most 2,000."""
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MOST_POINTS, replace=False))


def targets_of(dataset: Dataset, kept: Array) -> dict[str, Array]:
    """Return `target` (p,) of the points kept, zeros without targets, and `class_names` (C,)."""
    return {
        "target": dataset.y[kept] if len(dataset.y) else np.zeros(len(kept)),
        "class_names": np.array(dataset.class_names, dtype=np.str_),
    }


def principal(points: Array | Surrogate) -> tuple[Array, Array]:
    """Return the standard deviations (N,), decreasing, along the principal directions (N, N), rows.

    The points are scaled first, so that large ones do not overflow.
    """
    x = points.moment_rows if isinstance(points, Surrogate) else points
    scale = float(np.abs(x).max()) or 1.0
    values, vectors = np.linalg.eigh(mean_and_covariance(x / scale)[1])
    return scale * np.sqrt(np.maximum(values[::-1], 0.0)), vectors.T[::-1]


def least_weights(here: Descended) -> Array | None:
    """Return the weights `(n,)` of the least cost; None where there are none, or none are known."""
    found, linear = here.least, here.train.linear
    if found.case != ATTAINED or found.scores is None or linear is None:
        return None
    return weights_of(found.scores, linear.surrogate.moment_rows).ravel()


def has_plane(made: Finished) -> bool:
    """Return whether the scheme gives two coordinates or more."""
    return bool(made.z.shape[1] > 1)


def has_best(made: Finished) -> bool:
    """Return whether a step stands for the scheme."""
    return made.descent.best is not None


def work_of_curvature(made: Finished) -> Work:
    """Return the work of one largest curvature."""
    return curvature_work(made.descent.train)
