"""Data sets that are made: Gaussian classes, clouds in the plane, defects, and word counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, make_dataset
from normbench.datasets.values import (
    check_choice,
    check_integer,
    check_list,
    check_number,
    check_switch,
    refuse_larger,
)

SOURCE = "made by normbench"
TASKS = CLASSES, REGRESSION = "classes", "regression"
# Arrays of P x N and of N x N numbers that are in memory at a time; measured: 5.1 and 20.
GAUSSIAN_ARRAYS, SQUARE_ARRAYS = 5, 20
MAX_CLOUD = 10**7  # points
LARGEST_SEED = 2**32 - 1  # of scikit-learn
DEFECTS = ("sound", "constant", "duplicate", "few", "offset", "float32")
POINT_COUNT, FEW_POINTS, FEATURE_COUNT = 200, 10, 20
# Means, in largest standard deviations of the points: each costs half of the digits of its type of
# number, `FAR_MEAN` of float64 and `FAR_MEAN_FLOAT32` of float32.
FAR_MEAN, FAR_MEAN_FLOAT32 = (1e8, 1e3)
DESCRIBED = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
MIN_WORDS = 3  # of a line of text; shorter ones are left out


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
    shares = _check_numbers("dataset.dummies", dummies, below=1)
    condition_number = check_number("dataset.condition_number", condition_number, at_least=1)
    spectrum = None
    if eigenvalues is not None:
        spectrum = _check_numbers("dataset.eigenvalues", eigenvalues)
        features = len(spectrum)
    features = check_integer("dataset.features", features, max(1, len(shares)))
    classes = check_integer("dataset.classes", classes, 1, points)
    rotation = check_number("dataset.rotation", rotation, at_least=0, at_most=1)
    offset = check_number("dataset.offset", offset)
    separation = check_number("dataset.separation", separation, at_least=0)
    label_noise = check_number("dataset.label_noise", label_noise, at_least=0, below=1)
    is_regression = check_choice("dataset.task", task, TASKS) == REGRESSION
    has_classes = classes > 1 and not is_regression
    noise = check_number("dataset.noise", noise, at_least=0)
    if (noise and not is_regression) or (label_noise and not has_classes):
        raise UserError(
            f"dataset.noise={noise:g}, dataset.label_noise={label_noise:g}: noise is of "
            "dataset.task=regression, label_noise of several classes; leave the other one out"
        )
    rng = np.random.default_rng(check_integer("dataset.seed", seed, 0))
    size = 8 * GAUSSIAN_ARRAYS * points * features + 8 * SQUARE_ARRAYS * features**2
    refuse_larger(f"dataset.points={points}, dataset.features={features}", size, "choose fewer")
    labels = rng.permutation(np.arange(points) % classes)
    # Points before they get the covariance: standard normal, each class around its own centre.
    latent = rng.standard_normal((points, features))
    if has_classes:
        latent += separation * _draw_directions(rng, classes, features)[labels]
    if correlation is None:
        deviations = condition_number ** (-0.5 * np.linspace(0, 1, features))  # the roots of D
        if spectrum is not None:
            deviations = np.sqrt(spectrum)
        x = (_whiten(latent) * deviations) @ _draw_rotation(rng, features, rotation).T + offset
    else:
        correlation = check_number("dataset.correlation", correlation, at_least=0, below=1)
        identity = np.eye(features)
        covariance = np.full(identity.shape, correlation) + (1 - correlation) * identity
        x = _whiten(latent) @ np.linalg.cholesky(covariance).T + offset
    # The last features become 0 and 1: the points of the largest ranks get the ones.
    for position, share in zip(range(features - len(shares), features), shares):
        # The second argsort turns the order of the points into the rank of each point.
        ranks = np.argsort(np.argsort(x[:, position], kind="stable"), kind="stable")
        x[:, position] = ranks >= points - round(share * points)
    targets: Any = None
    if is_regression:
        linear = (x - offset) @ rng.standard_normal(features)
        targets = linear / linear.std() + noise * rng.standard_normal(points)
    elif has_classes:
        flipped = rng.permutation(points)[: round(label_noise * points)]
        # A shift by 1 to C - 1, modulo C, never leads to the same class.
        labels[flipped] += rng.integers(1, classes, len(flipped))
        targets = labels % classes
    class_names = [str(label) for label in range(classes)] if has_classes else None
    return make_dataset("gaussian", x, targets, source=SOURCE, class_names=class_names)


def _check_numbers(name: str, values: Any, below: float | None = None) -> list[float]:
    """Return a setting that is a list of positive numbers; raise `UserError` for another value."""
    entries = check_list(name, values, f"a list of numbers, such as {name}=[0.5,0.1]")
    return [check_number(name, entry, above=0, below=below) for entry in entries]


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


def ferris_wheel(points: int = 500, noise: float = 0.05, seed: int = 0) -> Dataset:
    """Return points on a circle of radius 1, (points, 2), unlabelled.

    The angles are random. No direction describes the points: both principal components have half
    of the variance.

    Args:
        points: The number of points.
        noise: The standard deviation of the noise in both coordinates.
        seed: The seed of the generator.

    Raises:
        UserError: An option is out of its range.

    References:
        Shlens, "A tutorial on principal component analysis", 2014, figure 6.
    """
    points, noise, seed = _check_settings(points, noise, seed)
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * rng.random(points)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    x += noise * rng.standard_normal(x.shape)
    return make_dataset("ferris_wheel", x, source=SOURCE)


def nonorthogonal(
    points: int = 500, angle: float = 60, noise: float = 0.05, seed: int = 0
) -> Dataset:
    """Return points along two arms that cross at an angle in degrees, (points, 2), unlabelled.

    The first arm is the axis of the first feature; along an arm the standard deviation is 1.
    Principal components are orthogonal, and so lie along neither arm: the first is between them.

    Args:
        points: The number of points.
        angle: The angle between the arms.
        noise: The standard deviation of the noise in both coordinates.
        seed: The seed of the generator.

    Raises:
        UserError: An option is out of its range; an angle must be above 0 and below 90.

    References:
        Shlens, "A tutorial on principal component analysis", 2014, figure 6.
    """
    points, noise, seed = _check_settings(points, noise, seed)
    rng = np.random.default_rng(seed)
    radians = np.radians(check_number("dataset.angle", angle, above=0, below=90))
    arms = np.array([[1.0, 0.0], [np.cos(radians), np.sin(radians)]])
    # The points belong to the two arms in turn.
    x = rng.standard_normal((points, 1)) * arms[np.arange(points) % 2]
    x += noise * rng.standard_normal(x.shape)
    return make_dataset("nonorthogonal", x, source=SOURCE)


def two_moons(points: int = 1000, noise: float = 0.1, seed: int = 0) -> Dataset:
    """Return the points of two half circles that reach into each other, (points, 2), one a class.

    They are those of scikit-learn's `make_moons`.

    Args:
        points: The number of points.
        noise: The standard deviation of the noise in both coordinates; the radii are 1.
        seed: The seed of the generator.

    Raises:
        UserError: An option is out of its range.
    """
    from sklearn.datasets import make_moons

    points, noise, seed = _check_settings(points, noise, seed)
    x, labels = make_moons(points, noise=noise, random_state=seed)
    source = "scikit-learn make_moons"
    return make_dataset("two_moons", x, labels, class_names=["upper", "lower"], source=source)


def _check_settings(points: int, noise: float, seed: int) -> tuple[int, float, int]:
    """Return the settings of a cloud; raise `UserError` where one is out of its range."""
    return (
        check_integer("dataset.points", points, 2, MAX_CLOUD),
        check_number("dataset.noise", noise, at_least=0),
        check_integer("dataset.seed", seed, 0, LARGEST_SEED),
    )


def broken(kind: str = "constant", scale: float = 1.0, seed: int = 0) -> Dataset:
    """Return two Gaussian classes, (200, 20), with variances from 1 to 0.01 by direction.

    Args:
        kind: The defect. `sound`: none; `constant`: the last feature is 1 everywhere; `duplicate`:
            the second half of the features repeats the first; `few`: 10 points; `offset`: the mean
            of every feature is 1e8; `float32`: the mean is 1000, and the points are stored in
            float32, with 7 digits.
        scale: The factor of all features, means included, as a change of units would multiply them.
        seed: The seed of the generator.

    Raises:
        UserError: An option is out of its range.
    """
    kind = check_choice("dataset.kind", kind, DEFECTS)
    scale = check_number("dataset.scale", scale, above=0)
    points = FEW_POINTS if kind == "few" else POINT_COUNT
    offset = {"offset": FAR_MEAN, "float32": FAR_MEAN_FLOAT32}.get(kind, 0.0)
    sound = gaussian(points, FEATURE_COUNT, offset=offset, seed=seed)
    x = np.array(sound.x)
    if kind == "constant":
        x[:, -1] = 1.0
    if kind == "duplicate":
        x[:, FEATURE_COUNT // 2 :] = x[:, : FEATURE_COUNT // 2]
    return make_dataset(
        "broken",
        scale * x,
        sound.y,
        source=SOURCE,
        class_names=sound.class_names,
        precision="float32" if kind == "float32" else "float64",
    )


def text(sparse: bool = False) -> Dataset:
    """Return the lines of six descriptions of data sets that scikit-learn ships, as word counts.

    The class of a line is the data set that it describes. A feature is a word, and counts how often
    the word stands in the line.

    Args:
        sparse: Whether the points stay sparse. Then only those schemes can be applied that keep
            zeros, or that are folded into the weights. Otherwise the points are an array.
    """
    from sklearn import datasets
    from sklearn.feature_extraction.text import CountVectorizer

    check_switch("dataset.sparse", sparse)
    texts = [getattr(datasets, f"load_{name}")().DESCR.splitlines() for name in DESCRIBED]
    rows = [(line, n) for n, text in enumerate(texts) for line in text]
    lines, classes = zip(*(row for row in rows if len(row[0].split()) >= MIN_WORDS))
    vectorizer = CountVectorizer(dtype=np.float64)
    counts = vectorizer.fit_transform(lines)
    return make_dataset(
        "text",
        counts if sparse else counts.toarray(),
        np.array(classes),
        class_names=DESCRIBED,
        feature_names=[str(word) for word in vectorizer.get_feature_names_out()],
        source="scikit-learn: the lines of its data sets' descriptions",
    )
