"""Generate Gaussian points with a covariance whose shape is chosen: classes, or a linear target."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, make_dataset
from normbench.datasets.values import (
    FLOAT64_BYTES,
    check_choice,
    check_integer,
    check_list,
    check_number,
    refuse_larger,
)

# Arrays of P x N and of N x N numbers that are in memory at a time; measured: 5.1 and 20.
GAUSSIAN_ARRAYS, SQUARE_ARRAYS = 5, 20
MAX_CLASSES = 10_000
TASKS = CLASSES, REGRESSION = "classes", "regression"


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
    dummies: Sequence[float] = (),
    task: str = CLASSES,
    noise: float = 0.0,
) -> Dataset:
    """Return Gaussian points (points, features) with classes or with a linear target.

    The sizes of the classes differ by one point at most. The covariance (over all points, divided
    by P) is exactly `Q D Q'` with more points than features: D runs from 1 down to
    1 / condition_number, in equal ratios. A single class is unlabelled, around one centre. The
    points of a regression are around one centre m, too, with targets `(x - m) w / s + noise e`: w
    and e are standard normal, and s makes the variance of the first term 1.

    Args:
        points: The number of points.
        features: The number of features.
        classes: The number of classes.
        condition_number: The largest entry of D over the smallest.
        rotation: Q turns each of its planes by this factor times the angles of a random rotation.
            With 0 the features are uncorrelated, so that sphering does no more than standardizing;
            with 1 only sphering helps.
        offset: The mean of every feature, where the largest standard deviation of D is 1.
        separation: The distance of each class from the centre, in standard deviations of a class,
            before all points are transformed to the covariance.
        label_noise: The share of the points that get the label of another class.
        seed: The seed of the generator.
        eigenvalues: D itself, one entry a feature, in place of features and condition_number.
        correlation: The correlation of every pair of features, each of variance 1, in place of D
            and Q.
        dummies: The shares of ones of the last features, which become 1 in so many of the points in
            which they are largest, and 0 in the others; then the covariance is no longer `Q D Q'`.
        task: `classes`, or `regression`, to which classes and separation do not apply.
        noise: The standard deviation of the noise of a regression; with 0 a line through all
            points fits them.

    Raises:
        UserError: An option is out of its range, or contradicts another.
    """
    points = check_integer("dataset.points", points, 2)
    spectrum = None if eigenvalues is None else _check_eigenvalues(eigenvalues)
    features = check_integer("dataset.features", features, 1) if spectrum is None else len(spectrum)
    classes = check_integer("dataset.classes", classes, 1, MAX_CLASSES)
    condition_number = check_number("dataset.condition_number", condition_number, at_least=1)
    rotation = check_number("dataset.rotation", rotation, at_least=0, at_most=1)
    offset = check_number("dataset.offset", offset)
    separation = check_number("dataset.separation", separation, at_least=0)
    label_noise = check_number("dataset.label_noise", label_noise, at_least=0, below=1)
    is_regression = check_choice("dataset.task", task, TASKS) == REGRESSION
    noise = check_number("dataset.noise", noise, at_least=0)
    if noise and not is_regression:
        raise UserError(
            f"dataset.noise={noise:g}: is of real targets; set dataset.task=regression, or "
            "dataset.label_noise for classes"
        )
    if label_noise and is_regression:
        raise UserError(
            f"dataset.label_noise={label_noise:g}: is of classes; set dataset.noise for "
            "dataset.task=regression"
        )
    if correlation is not None:
        correlation = check_number("dataset.correlation", correlation, at_least=0, below=1)
        if spectrum is not None:
            raise UserError(
                f"dataset.correlation={correlation:g}: the eigenvalues follow from it; leave "
                "dataset.eigenvalues out"
            )
    shares = _check_dummies(dummies, features, points)
    rng = np.random.default_rng(check_integer("dataset.seed", seed, 0))
    if classes > points:
        raise UserError(f"dataset.classes={classes}: must be at most dataset.points={points}")
    if classes == 1 and label_noise:
        raise UserError(
            f"dataset.label_noise={label_noise:g}: a single class has no label to change; set "
            "dataset.label_noise=0"
        )
    if spectrum is None and features == 1 and condition_number != 1:
        raise UserError(
            f"dataset.condition_number={condition_number:g}: one feature has the condition "
            "number 1; set dataset.condition_number=1 or more dataset.features"
        )
    refuse_larger(
        f"dataset.points={points}, dataset.features={features}, dataset.classes={classes}",
        FLOAT64_BYTES * features * (GAUSSIAN_ARRAYS * points + SQUARE_ARRAYS * features + classes),
        "choose fewer",
    )
    labels = rng.permutation(np.arange(points) % classes)
    # Points before they get the covariance: standard normal, each class around its own centre.
    latent = rng.standard_normal((points, features))
    if classes > 1 and not is_regression:
        latent += separation * _draw_directions(rng, classes, features)[labels]
    # The roots of D.
    deviations = condition_number ** (-0.5 * np.linspace(0, 1, features))
    if spectrum is not None:
        deviations = np.sqrt(spectrum)
    if correlation is None:
        x = (_whiten(latent) * deviations) @ _draw_rotation(rng, features, rotation).T + offset
    else:
        equicorrelation = np.full((features, features), correlation) + (1 - correlation) * np.eye(
            features
        )
        x = _whiten(latent) @ np.linalg.cholesky(equicorrelation).T + offset
    # The last features become 0 and 1: the points of the largest ranks get the ones.
    for position, share in zip(range(features - len(shares), features), shares):
        # The second argsort turns the order of the points into the rank of each point.
        ranks = np.argsort(np.argsort(x[:, position], kind="stable"), kind="stable")
        x[:, position] = ranks >= points - round(share * points)
    if is_regression:
        targets = _draw_targets(rng, x - offset, noise)
        return make_dataset("gaussian", x, targets, source="made by datasets.gaussian")
    return make_dataset(
        "gaussian",
        x,
        _flip_labels(rng, labels, classes, label_noise) if classes > 1 else None,
        source="made by datasets.gaussian",
        class_names=[str(label) for label in range(classes)] if classes > 1 else None,
    )


def _draw_targets(
    rng: np.random.Generator, centred: NDArray[np.float64], noise: float
) -> NDArray[np.float64]:
    """Return a random linear function of centred points (P, N), of variance 1, plus noise: (P,).

    Args:
        rng: The generator.
        centred: Points (P, N) minus their mean.
        noise: The standard deviation of the noise.
    """
    linear = centred @ rng.standard_normal(centred.shape[1])
    return np.asarray(linear / linear.std() + noise * rng.standard_normal(len(centred)))


def _check_eigenvalues(values: Any) -> NDArray[np.float64]:
    """Return the setting `dataset.eigenvalues` as an array (N,).

    Raises `UserError` unless it is a list of positive numbers, one at least.
    """
    name = "dataset.eigenvalues"
    rule = f"a list of numbers, such as {name}=[3,1]"
    numbers = check_list(name, values, rule)
    if not numbers:
        raise UserError(f"{name}={values}: must be {rule}")
    return np.array([check_number(name, value, above=0) for value in numbers])


def _check_dummies(values: Any, features: int, points: int) -> list[float]:
    """Return the setting `dataset.dummies`, the shares of ones of the last features, as a list.

    Raises `UserError` unless it is a list of numbers between 0 and 1, one a feature at most, each
    of which is one of the points at least, and not all of them.
    """
    name = "dataset.dummies"
    shares = check_list(name, values, f"a list of shares, such as {name}=[0.5,0.1]")
    if len(shares) > features:
        raise UserError(
            f"{name}={shares}: has {len(shares)} shares for {features} features; leave some out"
        )
    numbers = [check_number(name, share, above=0, below=1) for share in shares]
    for share in numbers:
        if (ones := round(share * points)) in (0, points):
            raise UserError(
                f"{name}={shares}: a share of {share:g} of {points} points is {ones} of them, so "
                "that all are equal; set more dataset.points or another share"
            )
    return numbers


def _draw_directions(rng: np.random.Generator, classes: int, features: int) -> NDArray[np.float64]:
    """Return C unit vectors (C, N), from the mean of C random points to each of these points.

    Class c is moved along vector c. With C = 2 the vectors are opposite.
    """
    directions = rng.standard_normal((classes, features))
    directions -= directions.mean(axis=0)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _whiten(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points (P, N) of mean 0 and covariance I that are nearest to the given ones.

    With P <= N the covariance is a projection instead of I. The points are `sqrt(P) U V'`, where
    `U S V'` is the singular value decomposition of the centred points.
    """
    left_vectors, singular_values, right_vectors = np.linalg.svd(
        points - points.mean(axis=0), full_matrices=False
    )
    # Of a singular value that is 0 up to rounding, the vectors are arbitrary.
    nonzero = singular_values > singular_values[0] * max(points.shape) * np.finfo(float).eps
    return np.sqrt(len(points)) * left_vectors[:, nonzero] @ right_vectors[nonzero]


def _draw_rotation(rng: np.random.Generator, features: int, share: float) -> NDArray[np.float64]:
    """Return a random rotation (N, N) whose angles are multiplied by a share.

    A rotation turns orthogonal planes by an angle each. With share 1 the rotation is uniformly
    distributed, with 0 it is the identity.

    Args:
        rng: The generator.
        features: The number N of features.
        share: The factor of the angles, from 0 to 1.
    """
    from scipy.linalg import schur

    orthogonal, triangular = np.linalg.qr(rng.standard_normal((features, features)))
    orthogonal *= np.sign(np.diag(triangular))  # makes it uniform (Mezzadri 2007)
    # A determinant of -1 is a reflection's: with one column negated it is a rotation.
    if np.linalg.det(orthogonal) < 0:
        orthogonal[:, 0] *= -1
    # Of a normal matrix the complex Schur form is diagonal: its phases are the angles.
    block_diagonal, planes = schur(orthogonal, output="complex")
    turned_phases = np.exp(1j * share * np.angle(np.diag(block_diagonal)))
    # Real but for rounding, since the phases are pairs of opposite angles.
    return np.ascontiguousarray(((planes * turned_phases) @ planes.conj().T).real)


def _flip_labels(
    rng: np.random.Generator, labels: NDArray[np.intp], classes: int, share: float
) -> NDArray[np.intp]:
    """Return class indices (P,), a share of which is replaced by another of the C classes.

    Args:
        rng: The generator.
        labels: Class indices (P,), which stay unchanged.
        classes: The number C of classes, 2 or more.
        share: The share of the points, drawn without replacement, whose label is replaced.
    """
    flipped = rng.permutation(len(labels))[: round(share * len(labels))]
    noisy_labels = labels.copy()
    # A shift by 1 to C - 1, modulo C, never leads to the same class.
    noisy_labels[flipped] = (labels[flipped] + rng.integers(1, classes, len(flipped))) % classes
    return noisy_labels
