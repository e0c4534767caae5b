"""Points of 2 or 3 features, and their reconstruction from the coordinates of the scheme."""

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.measures.inputs import sample_indices, target_arrays

MAX_AXES = 3  # of a picture of points


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why points cannot be drawn, not 2 or 3 features; empty where they can."""
    features = dataset.x.shape[1]
    if 2 <= features <= MAX_AXES:
        return ""
    return f"is a picture of 2 or 3 features; {dataset.name} has {features}"


def take(job: FinishedJob) -> Findings:
    """Return at most 2,000 points with their reconstructions, and the share of variance lost.

    `points` (p, N) and `back` (p, N): the points, and their reconstructions by the inverse
    transform, which are projections where the scheme keeps some components only; `kept` (): M, the
    number of coordinates; `lost` (): the squared distance of all points from their reconstructions,
    as a share of that from their mean. `target` (p,), `class_names` (C,) and `names` (N,).
    """
    dataset, x = job.dataset, job.dataset.x
    reconstructed = np.asarray(
        job.scheme.inverse_transform(job.z.astype(np.float64)), dtype=np.float64
    )
    spread = float(np.sum((x - x.mean(axis=0)) ** 2))
    lost = float(np.sum((x - reconstructed) ** 2)) / spread if spread else 0.0
    indices = sample_indices(len(x))
    return Findings(
        {names.VARIANCE_LOST.key: lost},
        arrays={
            "points": x[indices],
            "back": reconstructed[indices],
            "kept": np.array(job.z.shape[1]),
            "lost": np.array(lost),
            **target_arrays(dataset, indices),
            "names": np.array(dataset.feature_names),
        },
    )


MEASURE = Measure(
    take, record="projection", of_descent=False, reason_against=_reason_against, inverse=""
)
