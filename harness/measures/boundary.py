"""The class that a model predicts at each point of a plane of two features."""

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import BEST_STEP, Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import has_best, sample_indices, target_arrays

BOUNDARY_SIDE = 160  # cells along one side
BEYOND_POINTS = 0.1  # of the range of each feature, on both sides


def _reason_against(dataset: Dataset) -> str:
    """Return why no boundary can be drawn for a data set; empty where it can."""
    features = dataset.x.shape[1]
    if features == 2 and dataset.classes > 1:
        return ""
    classes = f" and {dataset.classes} classes" if dataset.classes else " and real targets"
    return f"is of classes in two features; {dataset.name} has {features} features{classes}"


def take(job: FinishedJob) -> Findings:
    """Return the classes over the plane, by the best step's last weights of the first start.

    `a`, `b` (G,): the two features of the cells' centres, as they are in the data. `predicted`
    (G, G): class indices; row i is at b[i], column j at a[j]. `points` (p, 2), at most 2,000, with
    `target` and `class_names`; `names` (2,) of the features; `misclassified` (), the number of
    training points that this run misclassifies, NaN where it diverged. A network that normalizes
    points together uses the statistics of the training points here, or its running ones if it keeps
    them.
    """
    dataset, descent = job.dataset, job.descent
    low, high = dataset.x.min(axis=0), dataset.x.max(axis=0)
    beyond = BEYOND_POINTS * np.where(high > low, high - low, 1.0)  # 1.0: a constant feature
    a, b = np.linspace(low - beyond, high + beyond, BOUNDARY_SIDE).T
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    z = np.asarray(job.scheme.transform(grid), dtype=descent.start.dtype)
    scores = descent.train.scores(descent.best_weights, z)
    indices = sample_indices(len(dataset.x))
    counts = descent.histories.misclassifications
    assert counts is not None  # of classes, see `_reason_against`
    assert descent.best is not None
    return Findings(
        arrays={
            "a": a.astype(np.float64),
            "b": b.astype(np.float64),
            "predicted": predict_classes(scores).reshape(len(b), len(a)).astype(np.int16),
            "points": dataset.x[indices].astype(np.float64),
            "names": np.array(dataset.feature_names, dtype=np.str_),
            "misclassified": np.array(counts[descent.best * len(descent.start), -1]),
            **target_arrays(dataset, indices),
        }
    )


def predict_classes(scores: Array) -> Array:
    """Return the class indices `(p,)` of scores `(C, p)`; of one score, 1 where it is positive."""
    return np.asarray(scores[0] > 0 if len(scores) == 1 else scores.argmax(axis=0))


MEASURE = Measure(
    take, record="boundary", reason_against=_reason_against, applies=has_best, depends_on=BEST_STEP
)
