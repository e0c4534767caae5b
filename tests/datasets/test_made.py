"""Data sets that are made: each is what its settings say."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from normbench.datasets.made import (
    DEFECTS,
    _draw_rotation,
    broken,
    ferris_wheel,
    gaussian,
    nonorthogonal,
    two_moons,
)


def covariance(data):
    return np.cov(data.x.T, bias=True)


@pytest.mark.parametrize(("rotation", "classes", "features"), [(0, 2, 7), (0.3, 5, 2), (1, 5, 7)])
def test_the_condition_number_is_exact(rotation, classes, features):
    data = gaussian(
        300, features, classes, condition_number=1e4, rotation=rotation, offset=3, seed=1
    )
    values = np.linalg.eigvalsh(covariance(data))
    np.testing.assert_allclose(values[-1], 1, rtol=1e-12)  # measured: 3e-15
    np.testing.assert_allclose(values[-1] / values[0], 1e4, rtol=1e-10)  # measured: 1.3e-12
    np.testing.assert_allclose(data.x.mean(axis=0), 3, rtol=1e-12)
    assert np.ptp(np.bincount(data.y)) <= 1


@pytest.mark.parametrize("correlation", [0, 0.5, 0.99])
def test_every_pair_of_features_has_the_correlation(correlation):
    found = covariance(gaussian(features=4, correlation=correlation, condition_number=7))
    expected = np.full((4, 4), correlation) + (1 - correlation) * np.eye(4)
    np.testing.assert_allclose(found, expected, atol=1e-12)  # measured: 1e-15


def test_without_rotation_standardizing_is_sphering():
    x = gaussian(rotation=0).x
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(np.cov(z.T, bias=True), np.eye(10), atol=1e-12)  # measured: 4e-15


def test_rotation_mixes_the_features():
    def mixing(rotation):
        correlation = np.corrcoef(gaussian(rotation=rotation).x.T)
        return np.abs(correlation - np.eye(10)).max()

    assert mixing(0) < 1e-12 < mixing(0.01) < mixing(0.1) < mixing(1)


@pytest.mark.parametrize("seed", range(4))
def test_a_rotation_mirrors_nothing(seed):
    turned = [_draw_rotation(np.random.default_rng(seed), 5, share) for share in (0.5, 1)]
    assert [np.linalg.det(matrix) for matrix in turned] == pytest.approx([1, 1])
    np.testing.assert_allclose(turned[0] @ turned[0], turned[1], atol=1e-12)  # half of each angle


def test_the_last_features_are_dummies_of_these_shares():
    plain, data = gaussian(200, 4), gaussian(200, 4, dummies=[0.25, 0.01])
    np.testing.assert_array_equal(data.x[:, :2], plain.x[:, :2])
    assert data.x[:, 2:].sum(axis=0).tolist() == [50, 2]
    assert set(data.x[:, 2:].ravel()) == {0, 1}
    assert plain.x[data.x[:, 2] == 1, 2].min() > plain.x[data.x[:, 2] == 0, 2].max()


def test_separation_tells_the_classes_apart():
    def correct(separation):
        data = gaussian(separation=separation, rotation=0)
        x = (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)
        axis = x[data.y == 1].mean(axis=0) - x[data.y == 0].mean(axis=0)
        return np.mean((x @ axis > 0) == data.y)

    assert correct(4) > 0.999
    assert 0.97 > correct(1) > 0.75  # one deviation from the centre: 0.84 of a normal


def test_label_noise_moves_that_share_to_other_classes():
    clean, noisy = gaussian(classes=4), gaussian(classes=4, label_noise=0.25)
    assert (clean.x == noisy.x).all()
    assert (clean.y != noisy.y).sum() == 250


@pytest.mark.parametrize("rotation", [0, 1])
def test_the_eigenvalues_of_the_sample_are_those_that_are_given(rotation):
    data = gaussian(100, classes=1, eigenvalues=[27.2135, 2.3272, 9], rotation=rotation)
    assert (data.x.shape, data.task, len(data.y)) == ((100, 3), "unlabelled", 0)
    values = np.linalg.eigvalsh(covariance(data))
    np.testing.assert_allclose(values, [2.3272, 9, 27.2135], rtol=1e-12)  # measured: 5e-16
    axes = covariance(data) - np.diag(np.diag(covariance(data)))
    assert (np.abs(axes).max() > 1) == bool(rotation)


def test_fewer_points_than_features_are_made():
    data = gaussian(points=20, features=50)
    assert np.linalg.matrix_rank(data.x - data.x.mean(axis=0)) == 19


@pytest.mark.parametrize("loader", [gaussian, ferris_wheel, nonorthogonal, two_moons, broken])
def test_the_seed_makes_the_points(loader):
    assert loader(seed=3).fingerprint == loader(seed=3).fingerprint
    assert loader(seed=3).fingerprint != loader(seed=4).fingerprint


@pytest.mark.parametrize("offset", [0, 3])
def test_a_regression_has_a_linear_target_and_its_noise(offset):
    exact, noisy = (
        gaussian(500, 4, task="regression", offset=offset, noise=noise) for noise in (0, 0.5)
    )
    assert exact.task == "regression"
    design = np.column_stack([np.ones(500), exact.x])
    for data, left in ((exact, 0), (noisy, 0.25)):
        _, square, *_ = np.linalg.lstsq(design, data.y, rcond=None)
        assert square[0] / 500 == pytest.approx(left, rel=0.2, abs=1e-20)
    assert exact.y.std() == pytest.approx(1)
    assert exact.y.mean() == pytest.approx(0, abs=1e-12)


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


def test_each_kind_breaks_what_it_says():
    sound, constant, duplicate, few, offset, single = (broken(kind) for kind in DEFECTS)
    values = np.linalg.eigvalsh(np.cov(sound.x.T, bias=True))
    assert values[[0, -1]] == pytest.approx([0.01, 1])
    np.testing.assert_array_equal(constant.x, np.c_[sound.x[:, :-1], np.ones(200)])
    assert (duplicate.x[:, :10] == duplicate.x[:, 10:]).all()
    assert len(few.x) < few.x.shape[1]
    assert offset.x.mean(axis=0) == pytest.approx(np.full(20, 1e8))
    assert offset.x.dtype == np.float64
    assert single.x.dtype == np.float32
    assert single.x.mean(axis=0) == pytest.approx(np.full(20, 1e3), rel=1e-5)
    assert {data.task for data in (sound, few, single)} == {"binary"}


@pytest.mark.parametrize("kind", DEFECTS)
def test_the_scale_is_that_of_all_points(kind):
    plain, large = broken(kind, seed=3), broken(kind, 1e6, seed=3)
    assert large.x == pytest.approx(1e6 * plain.x.astype(float), rel=1e-6)
    assert broken(kind, seed=4).fingerprint != plain.fingerprint
