"""Records in the space of the inputs: a fitted curve, the features, the points and their images."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import Dataset, UserError
from normbench.normalizers.spectrum import mean_and_covariance

Array = NDArray[Any]
Arrays = dict[str, Array]
MOST_POINTS = 2000
MOST_SHOWN_FEATURES = 30
MOST_AXES = 3  # of a picture of points
CURVE = 400  # points of a fitted curve
MARGIN = 0.05  # share of the inputs' range that a fitted curve goes beyond them


def check_fit(dataset: Dataset) -> None:
    """Raise `UserError` unless a fitted curve can be drawn: one feature, real targets or two."""
    features = dataset.x.shape[1]
    if features != 1 or dataset.classes > 2:
        classes = f" and {dataset.classes} classes" if dataset.classes else ""
        raise UserError(
            f"record=fit: is a curve over one feature, of real targets or two classes; "
            f"{dataset.name} has {features} features{classes}; leave fit out"
        )


def check_projection(dataset: Dataset, scheme: Any) -> None:
    """Raise `UserError` unless points and their images under the scheme can be drawn."""
    features = dataset.x.shape[1]
    if not 2 <= features <= MOST_AXES:
        raise UserError(
            f"record=projection: is a picture of 2 or 3 features; {dataset.name} has {features}; "
            "leave projection out"
        )
    if not hasattr(scheme, "inverse_transform"):
        raise UserError(
            f"record=projection: normalizer {type(scheme).__name__} has no inverse_transform; "
            "leave projection out or choose another scheme"
        )


def fit(dataset: Dataset, scheme: Any, weights: Array) -> Arrays:
    """Return what a model of one feature predicts, in the space of the inputs.

    weights: `(C, 2)`, bias first, of the model under the fitted scheme. `x` (G,) inputs,
    `prediction` (G,): the score of real targets; of two classes, as -1 and +1, the mean label
    `tanh(s / 2) = 2 sigma(s) - 1` that the softmax cost's model has at a difference s of scores.
    `points` (p, 2): inputs and targets in the same units, at most 2,000.
    """
    low, high = float(dataset.x.min()), float(dataset.x.max())
    beyond = MARGIN * (high - low)
    x = np.linspace(low - beyond, high + beyond, CURVE)
    z = np.asarray(scheme.transform(x[:, None]), dtype=np.float64)
    scores = weights[:, :1] + weights[:, 1:] @ z.T
    target = dataset.y.astype(np.float64)
    prediction = scores[0]
    if dataset.classes:
        target = 2 * target - 1
        prediction = np.tanh((scores[0] if len(scores) == 1 else scores[1] - scores[0]) / 2)
    kept = some(len(dataset.x))
    return {
        "x": x,
        "prediction": prediction,
        "points": np.column_stack([dataset.x[kept, 0], target[kept]]),
    }


def features(z: Array, names: tuple[str, ...]) -> Arrays:
    """Return the training points under the scheme: their first 30 features, at most 2,000 points.

    z: (P, M). `values` (p, m), `names` (m,), `all` (): how many features there are.
    """
    kept = some(len(z))
    return {
        "values": z[kept, :MOST_SHOWN_FEATURES].astype(np.float64),
        "names": np.array(names[:MOST_SHOWN_FEATURES]),
        "all": np.array(z.shape[1]),
    }


def projection(dataset: Dataset, scheme: Any, z: Array) -> Arrays:
    """Return the points of 2 or 3 features and what is left of them after the scheme.

    z: (P, M). `points` (p, N) and `back` (p, N): the points, and themselves by way of the scheme
    and back, which is their projection where the scheme keeps some components only; `kept` ():
    M; `lost` (): the share of the variance that is not in `back`. `target` (p,), `class_names`
    (C,) and `names` (N,).
    """
    x = dataset.x
    back = np.asarray(scheme.inverse_transform(z.astype(np.float64)), dtype=np.float64)
    spread = float(np.sum((x - x.mean(axis=0)) ** 2))
    some_points = some(len(x))
    target = dataset.y if len(dataset.y) else np.zeros(len(x))
    return {
        "points": x[some_points],
        "back": back[some_points],
        "kept": np.array(z.shape[1]),
        "lost": np.array(float(np.sum((x - back) ** 2)) / spread if spread else 0.0),
        "target": target[some_points],
        "class_names": np.array(dataset.class_names, dtype=np.str_),
        "names": np.array(dataset.feature_names),
    }


def identity_gap(z: Array) -> float:
    """Return the largest entry of `|S S' / P - I|` for points z (P, M): S is z, a point a column.

    0 where the points are centred and sphered.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of points around 1e160
        mean, covariance = mean_and_covariance(z.astype(np.float64))
        return float(np.abs(covariance + np.outer(mean, mean) - np.eye(z.shape[1])).max())


def some(count: int) -> Array:
    """Return the indices of the points that are kept, in order: at most 2,000."""
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MOST_POINTS, replace=False))
