"""Gaussian classes made on the spot, with a covariance whose shape is chosen."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, make_dataset
from normbench.datasets.values import NUMBER, listed, number, refuse_larger, whole

# Arrays of P x N and of N x N numbers that are kept at a time; measured: 5.1 and 20.
COPIES, SQUARES = 5, 20
MOST_CLASSES = 10_000


def gaussian(
    points: int = 1000,
    features: int = 10,
    classes: int = 2,
    condition_number: float = 100.0,
    rotation: float = 1.0,
    offset: float = 0.0,
    separation: float = 2.0,
    label_noise: float = 0.0,
    seed: int = 0,
    eigenvalues: Sequence[float] | None = None,
    correlation: float | None = None,
) -> Dataset:
    """Return Gaussian classes, of equal size to one point, (points, features).

    Their covariance (over all points, divided by P) is exactly `Q D Q'` with more points than
    features: D runs from 1 down to 1 / condition_number, in equal ratios. Q turns each of its
    planes by `rotation` times the angles of a random rotation: with 0 the features are
    uncorrelated, so that standardizing is all that sphering does; with 1 only sphering helps.
    offset: the mean of every feature, D's largest standard deviation being 1. separation: the
    distance of each class from the centre, in standard deviations within a class. label_noise:
    the share of the points whose label is another class's. A single class is unlabelled, around
    one centre. eigenvalues: D itself, one a feature, in place of features and condition_number.
    correlation: in place of all of D and Q, that of every pair of features, each of variance 1.
    Raises `UserError`.
    """
    points = whole("dataset.points", points, 2)
    given = None if eigenvalues is None else _eigenvalues(eigenvalues)
    features = whole("dataset.features", features, 1) if given is None else len(given)
    classes = whole("dataset.classes", classes, 1, MOST_CLASSES)
    condition_number = number("dataset.condition_number", condition_number, least=1)
    rotation = number("dataset.rotation", rotation, least=0, most=1)
    offset = number("dataset.offset", offset)
    separation = number("dataset.separation", separation, least=0)
    label_noise = number("dataset.label_noise", label_noise, least=0, below=1)
    if correlation is not None:
        correlation = number("dataset.correlation", correlation, least=0, below=1)
        if given is not None:
            raise UserError(
                f"dataset.correlation={correlation:g}: the eigenvalues follow from it; leave "
                "dataset.eigenvalues out"
            )
    rng = np.random.default_rng(whole("dataset.seed", seed, 0))
    if classes > points:
        raise UserError(f"dataset.classes={classes}: must be at most dataset.points={points}")
    if classes == 1 and label_noise:
        raise UserError(
            f"dataset.label_noise={label_noise:g}: a single class has no label to change; set "
            "dataset.label_noise=0"
        )
    if given is None and features == 1 and condition_number != 1:
        raise UserError(
            f"dataset.condition_number={condition_number:g}: one feature has the condition "
            "number 1; set dataset.condition_number=1 or more dataset.features"
        )
    refuse_larger(
        f"dataset.points={points}, dataset.features={features}, dataset.classes={classes}",
        NUMBER * features * (COPIES * points + SQUARES * features + classes),
        "choose fewer",
    )
    labels = rng.permutation(np.arange(points) % classes)
    latent = rng.standard_normal((points, features))
    if classes > 1:
        latent += separation * _directions(rng, classes, features)[labels]
    deviations = condition_number ** (-0.5 * np.linspace(0, 1, features))
    if given is not None:
        deviations = np.sqrt(given)
    if correlation is None:
        x = (_whiten(latent) * deviations) @ _rotation(rng, features, rotation).T + offset
    else:
        equal = np.full((features, features), correlation) + (1 - correlation) * np.eye(features)
        x = _whiten(latent) @ np.linalg.cholesky(equal).T + offset
    return make_dataset(
        "gaussian",
        x,
        _noisy(rng, labels, classes, label_noise) if classes > 1 else None,
        source="made by datasets.gaussian",
        class_names=[str(label) for label in range(classes)] if classes > 1 else None,
    )


def _eigenvalues(values: Any) -> NDArray[np.float64]:
    name = "dataset.eigenvalues"
    rule = f"a list of numbers, such as {name}=[3,1]"
    numbers = listed(name, values, rule)
    if not numbers:
        raise UserError(f"{name}={values}: must be {rule}")
    return np.array([number(name, value, above=0) for value in numbers])


def _directions(rng: np.random.Generator, classes: int, features: int) -> NDArray[np.float64]:
    """Return random unit vectors (C, N) about their centre; two of them are opposite."""
    directions = rng.standard_normal((classes, features))
    directions -= directions.mean(axis=0)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _whiten(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest points (P, N) of mean 0 and covariance I (a projection where P <= N)."""
    left, values, right = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    live = values > values[0] * max(points.shape) * np.finfo(float).eps
    return np.sqrt(len(points)) * left[:, live] @ right[live]


def _rotation(rng: np.random.Generator, features: int, share: float) -> NDArray[np.float64]:
    """Return a random rotation (N, N), each of its planes turned by a share of its angle."""
    from scipy.linalg import schur

    turn, triangle = np.linalg.qr(rng.standard_normal((features, features)))
    turn *= np.sign(np.diag(triangle))  # makes it uniform (Mezzadri 2007)
    if np.linalg.det(turn) < 0:
        turn[:, 0] *= -1
    angles, planes = schur(turn, output="complex")
    powers = np.exp(1j * share * np.angle(np.diag(angles)))
    return np.ascontiguousarray(((planes * powers) @ planes.conj().T).real)


def _noisy(
    rng: np.random.Generator, labels: NDArray[np.intp], classes: int, share: float
) -> NDArray[np.intp]:
    chosen = rng.permutation(len(labels))[: round(share * len(labels))]
    noisy = labels.copy()
    noisy[chosen] = (labels[chosen] + rng.integers(1, classes, len(chosen))) % classes
    return noisy
