"""Inputs that measures share: coordinate names, sampled points, principal directions."""

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import Dataset
from normbench.measures.contract import Array, FinishedJob, JudgedDescent
from normbench.names import ATTAINED
from normbench.normalizers.decomposition import mean_and_covariance
from normbench.theory.minimum import weights_of

MAX_DRAWN_POINTS = 2000
MOST_FEATURES = 4096  # of an image, or of a spectrum


def names_of(job: FinishedJob) -> tuple[str, ...]:
    """Return a name for each of the M coordinates of the scheme.

    It is the name that the scheme gives; else that of the feature, where there are as many
    coordinates as features; else a number from 1.
    """
    names = job.dataset.feature_names
    with suppress(AttributeError, ValueError):  # a scheme of a pipeline may give no names
        return tuple(job.scheme.get_feature_names_out(np.array(names, dtype=object)))
    if job.z.shape[1] == len(names):
        return names
    return tuple(f"coordinate {n + 1}" for n in range(job.z.shape[1]))


def sample_indices(count: int) -> Array:
    """Return increasing indices of at most 2,000 points, drawn at random where there are more."""
    if count <= MAX_DRAWN_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MAX_DRAWN_POINTS, replace=False))


def target_arrays(dataset: Dataset, indices: Array) -> dict[str, Array]:
    """Return two arrays that figures of points need.

    Args:
        dataset: The data set.
        indices: The indices of p points.

    Returns:
        `target` (p,), the targets of these points, zeros where the data set has none; and
        `class_names` (C,), empty for real targets.
    """
    return {
        "target": dataset.y[indices] if len(dataset.y) else np.zeros(len(indices)),
        "class_names": np.array(dataset.class_names, dtype=np.str_),
    }


def principal_directions(x: Array) -> tuple[Array, Array]:
    """Return the standard deviations along the principal directions, and these directions.

    The points are scaled first, so that large ones do not overflow.

    Args:
        x: Points (P, N), or rows with their mean and covariance.

    Returns:
        The standard deviations `(N,)`, decreasing, and the directions `(N, N)`, one a row.
    """
    scale = float(np.abs(x).max()) or 1.0
    values, vectors = np.linalg.eigh(mean_and_covariance(x / scale)[1])
    return scale * np.sqrt(np.maximum(values[::-1], 0.0)), vectors.T[::-1]


def weights_of_least_cost(descent: JudgedDescent) -> Array | None:
    """Return the weights of the least cost, flat `(C (M + 1),)`.

    None where no weights attain it or none are known, and for scores that are not linear.
    """
    least, linear = descent.least, descent.train.linear
    if least.case != ATTAINED or least.scores is None or linear is None:
        return None
    return weights_of(least.scores, linear.points).ravel()


def has_plane(job: FinishedJob) -> bool:
    """Return whether the scheme gives two coordinates or more."""
    return bool(job.z.shape[1] > 1)


def has_best(job: FinishedJob) -> bool:
    """Return whether a step size represents the scheme."""
    return job.descent.best is not None


def spread_iterations(last: int, count: int) -> NDArray[np.int64]:
    """Return at most `count` iterations from 0 to the last, close together at first.

    All of them are returned where there are no more than `count`.
    """
    if last < count:
        return np.arange(last + 1)
    spread = np.geomspace(1, last, count - 1).round().astype(np.int64)
    return np.unique(np.r_[0, spread])


def scheduled_step_sizes(descent: JudgedDescent, iteration: NDArray[np.int64]) -> Array:
    """Return the step size of the best run at recorded iterations `(k,)`, by its schedule.

    A schedule multiplies the step size by a factor after every so many passes.
    """
    settings, size = descent.settings, descent.best_step.step_size
    passes, factor = settings.step_schedule or (1, 1.0)  # without a schedule it stays
    return np.asarray(size * factor ** (iteration // (passes * settings.records_per_pass)))
