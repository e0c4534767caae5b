"""Clouds in the plane: a circle, two arms that cross, and two moons."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from normbench.datasets.made import ferris_wheel, nonorthogonal, two_moons


def axes(x):
    """Return the shares of the variance, decreasing, and the angle of the first axis in degrees."""
    values, vectors = np.linalg.eigh(np.cov(x.T))
    angle = np.degrees(np.arctan2(vectors[1, -1], vectors[0, -1])) % 180
    return values[::-1] / values.sum(), angle


def test_points_of_a_ferris_wheel_are_on_a_circle_and_have_no_axis():
    exact, noisy = (ferris_wheel(2000, noise).x for noise in (0, 0.1))
    assert np.hypot(*exact.T) == pytest.approx(np.ones(2000), abs=1e-12)
    assert np.hypot(*noisy.T).std() == pytest.approx(0.1, rel=0.1)
    assert axes(exact)[0] == pytest.approx([0.5, 0.5], abs=0.03)


@pytest.mark.parametrize("angle", [30, 60, 80])
def test_the_first_axis_lies_between_the_arms(angle):
    x = nonorthogonal(20000, angle, noise=0).x
    found = np.degrees(np.arctan2(x[:, 1], x[:, 0])).round(6) % 180
    assert set(found) == {0, angle}
    assert np.linalg.norm(x, axis=1) == pytest.approx(np.abs(x[:, 0] / np.cos(np.radians(found))))
    assert np.linalg.norm(x[found == angle], axis=1).std() == pytest.approx(0.6, abs=0.02)
    assert axes(x)[1] == pytest.approx(angle / 2, abs=4)  # measured: 1.5 off, at 80 degrees


def test_the_moons_are_those_of_scikit_learn():
    data = two_moons(50, 0.2, 3)
    x, labels = make_moons(50, noise=0.2, random_state=3)
    np.testing.assert_array_equal(data.x, x)
    np.testing.assert_array_equal(data.y, labels)
    assert data.task == "binary"


@pytest.mark.parametrize("loader", [ferris_wheel, nonorthogonal, two_moons])
def test_the_seed_makes_the_points(loader):
    assert loader(seed=3).fingerprint != loader(seed=4).fingerprint
