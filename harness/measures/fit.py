"""The prediction of a model of one feature, as a curve over the inputs."""

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure
from normbench.measures.inputs import sample_indices

CURVE = 400  # points of the curve
MARGIN = 0.05  # of the range of the inputs, on both sides


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why a fit cannot be drawn as a curve over one feature; empty if it can."""
    features = dataset.x.shape[1]
    if features == 1 and dataset.classes <= 2:
        return ""
    classes = f" and {dataset.classes} classes" if dataset.classes else ""
    return (
        "is a curve over one feature, of real targets or two classes; "
        f"{dataset.name} has {features} features{classes}"
    )


def take(job: FinishedJob) -> Findings:
    """Return the curve of the best step's last weights from the first start, under the scheme.

    `x` (G,): values of the feature. `prediction` (G,): the score, for real targets; for two
    classes, counted as -1 and +1, the score of least squares, which is fitted to these numbers, and
    of other costs the mean label `tanh(s / 2) = 2 sigma(s) - 1` that the softmax cost's model has
    at a difference s of scores. `points` (p, 2): features and targets in the same
    units, at most 2,000. No arrays where no step size represents the scheme.
    """
    dataset, descent = job.dataset, job.descent
    if descent.best is None:
        return Findings()
    low, high = float(dataset.x.min()), float(dataset.x.max())
    beyond = MARGIN * (high - low)
    x = np.linspace(low - beyond, high + beyond, CURVE)
    z = np.asarray(job.scheme.transform(x[:, None]), dtype=np.float64)
    scores = descent.train.scores(descent.best_weights, z)
    target = dataset.y.astype(np.float64)
    prediction = scores[0]
    if dataset.classes:
        target = 2 * target - 1  # class 0 becomes -1
        if len(scores) == 2:
            prediction = np.tanh((scores[1] - scores[0]) / 2)
        elif not descent.train.traits.squares:
            prediction = np.tanh(scores[0] / 2)
    indices = sample_indices(len(dataset.x))
    points = np.column_stack([dataset.x[indices, 0], target[indices]])
    return Findings(arrays={"x": x, "prediction": prediction, "points": points})


MEASURE = Measure(take, record="fit", reason_against=_reason_against, depends_on=BEST_STEP)
