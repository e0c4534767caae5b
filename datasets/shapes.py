"""Generate clouds of points in the plane that lines and principal components describe poorly."""

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, make_dataset
from normbench.datasets.values import FLOAT64_BYTES, check_integer, check_number, refuse_larger

LARGEST_SEED = 2**32 - 1  # of scikit-learn


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
    points, noise, rng = _check_settings(points, noise, seed)
    angles = 2 * np.pi * rng.random(points)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return _make_cloud("ferris_wheel", x + noise * rng.standard_normal(x.shape))


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
    points, noise, rng = _check_settings(points, noise, seed)
    radians = np.radians(check_number("dataset.angle", angle, above=0, below=90))
    arms = np.array([[1.0, 0.0], [np.cos(radians), np.sin(radians)]])
    # The points belong to the two arms in turn.
    x = rng.standard_normal((points, 1)) * arms[np.arange(points) % 2]
    return _make_cloud("nonorthogonal", x + noise * rng.standard_normal(x.shape))


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

    points, noise, _ = _check_settings(points, noise, seed)
    # scikit-learn makes its own generator, which takes smaller seeds than NumPy's.
    seed = check_integer("dataset.seed", seed, 0, LARGEST_SEED)
    x, labels = make_moons(points, noise=noise, random_state=seed)
    return make_dataset(
        "two_moons",
        x,
        labels,
        class_names=["upper", "lower"],
        source="scikit-learn make_moons",
    )


def _check_settings(points: int, noise: float, seed: int) -> tuple[int, float, np.random.Generator]:
    """Return the number of points and the noise, checked, and the generator of the seed.

    Raises `UserError` where one is out of its range, or the points exceed the memory.
    """
    points = check_integer("dataset.points", points, 2)
    # Some 8 numbers a point are in memory at a time.
    refuse_larger(f"dataset.points={points}", 8 * FLOAT64_BYTES * points, "choose fewer")
    noise = check_number("dataset.noise", noise, at_least=0)
    return points, noise, np.random.default_rng(check_integer("dataset.seed", seed, 0))


def _make_cloud(name: str, x: NDArray[np.float64]) -> Dataset:
    """Return points (P, 2) as an unlabelled data set."""
    return make_dataset(name, x, source="made by datasets.shapes")
