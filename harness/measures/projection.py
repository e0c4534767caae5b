"""Points of 2 or 3 features, and what is left of them after the scheme."""

import numpy as np

from normbench import names
from normbench.datasets import Dataset
from normbench.measures.contract import Findings, Finished, Measure
from normbench.measures.inputs import some, targets_of

MOST_AXES = 3  # of a picture of points


def _unfit(dataset: Dataset) -> str:
    features = dataset.x.shape[1]
    if 2 <= features <= MOST_AXES:
        return ""
    return f"is a picture of 2 or 3 features; {dataset.name} has {features}"


def take(made: Finished) -> Findings:
    """Return points and their images; the number `variance_lost`.

    `points` (p, N) and `back` (p, N): the points, and themselves by way of the scheme and back,
    which is their projection where the scheme keeps some components only; `kept` (): M; `lost`
    (): the share of the variance that is not in `back`. `target` (p,), `class_names` (C,) and
    `names` (N,).
    """
    dataset, x = made.dataset, made.dataset.x
    back = np.asarray(made.scheme.inverse_transform(made.z.astype(np.float64)), dtype=np.float64)
    spread = float(np.sum((x - x.mean(axis=0)) ** 2))
    lost = float(np.sum((x - back) ** 2)) / spread if spread else 0.0
    kept = some(len(x))
    return Findings(
        {names.VARIANCE_LOST.key: lost},
        arrays={
            "points": x[kept],
            "back": back[kept],
            "kept": np.array(made.z.shape[1]),
            "lost": np.array(lost),
            **targets_of(dataset, kept),
            "names": np.array(dataset.feature_names),
        },
    )


MEASURE = Measure(take, record="projection", of_descent=False, unfit=_unfit, inverse="")
