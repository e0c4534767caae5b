"""Gaussian classes: the covariance is the one that was asked for."""

import numpy as np
import pytest

from normbench.datasets.made import _draw_rotation, gaussian


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


def test_the_seed_makes_the_points():
    assert gaussian(seed=3).fingerprint == gaussian(seed=3).fingerprint
    assert gaussian(seed=3).fingerprint != gaussian(seed=4).fingerprint


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
