"""Properties of every scheme under conf/normalizer; a new option is tested without a new test."""

from functools import cache

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_breast_cancer

from normbench.choices import CONF, build, options
from normbench.comparison import compare
from normbench.normalizers import decomposition
from normbench.normalizers.decomposition import moment_rows
from normbench.normalizers.whitening import Whitening
from tests.door import mapped, normalize
from tests.real_data import contrast_normalized

NAMES = sorted(file.stem for file in (CONF / "normalizer").glob("*.yaml"))
OPTIMIZERS = ["gradient_descent", "momentum"]


def scheme(name, **settings):
    return build("normalizer", options("normalizer", name) | settings)


def has(name, *attributes):
    return all(hasattr(scheme(name), attribute) for attribute in attributes)


LINEAR = [name for name in NAMES if isinstance(scheme(name), Whitening)]
SPHERES = [name for name in LINEAR if has(name, "ridge")]
SHRUNK = [name for name in SPHERES if "wolf" in name]
FULL = [name for name in SPHERES if name not in SHRUNK]
INVERTIBLE = [name for name in NAMES if has(name, "inverse_transform")]

every = pytest.mark.parametrize("name", NAMES)
every_linear = pytest.mark.parametrize("name", LINEAR)
every_sphere = pytest.mark.parametrize("name", SPHERES)
every_full = pytest.mark.parametrize("name", FULL)


def test_the_families_are_not_empty():
    assert len(FULL) >= 5
    assert len(SHRUNK) == 1
    assert len(INVERTIBLE) >= 10


def points(count=200, seed=0):
    """Correlated points of six features, of scales from 0.01 to 100, away from zero."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((count, 6)) @ (np.eye(6) + 0.3 * rng.standard_normal((6, 6)))
    return mixed * [1, 10, 0.1, 0.01, 100, 3] + [0, 50, 1, 0, -500, 3]


def odd_data():
    x = points()
    rng = np.random.default_rng(1)
    constant = np.c_[x, np.full(len(x), 0.1), np.full(len(x), 1e8 / 3)]
    held_out = constant[-50:] + np.r_[np.zeros(6), 1.0, 1.0]  # constant on the training points
    return {
        "a constant feature": np.r_[constant[:-50], held_out],
        "constant features alone": np.full((200, 3), 0.1),
        "constant features, more than points": np.full((200, 220), 0.1),
        "one feature": x[:, :1],
        "duplicated features": np.c_[x, x, x[:, :1]],
        "rank-deficient": np.c_[x, x @ rng.standard_normal((6, 4))],
        "as many points as features": rng.standard_normal((200, 150)),
        "fewer points than features": rng.standard_normal((200, 220)),
        "offsets of 1e8": x + 1e8,
        "offsets of 1e12": x + 1e12,
        "small whole numbers": rng.integers(0, 3, (200, 5)).astype(float),
        "a point far away": np.r_[x, np.full((1, 6), 1e15)],
    }


ODD = odd_data()


@every
def test_points_stay_finite_on_odd_data(name):
    for kind, x in ODD.items():
        z, z_test = normalize(scheme(name), x[:150], x[150:], "float64")
        assert np.isfinite(z).all(), kind
        assert np.isfinite(z_test).all(), kind


@every_full
@pytest.mark.parametrize("kind", ODD)
def test_training_points_have_variance_one_at_most_on_odd_data(name, kind):
    # With ridge 0, where noise that is taken for a live direction would show on the test points.
    x = ODD[kind]
    z, z_test = normalize(scheme(name, ridge=0.0), x[:150], x[150:], "float64")
    # Measured: 1 + 3e-8 at most, with offsets of 1e12.
    assert np.linalg.eigvalsh(z.T @ z / len(z)).max() <= 1 + 1e-6
    if kind != "a point far away":
        # Test points of the same law. Measured: 1.3 at most, and 76 where as many points as
        # features leave directions that the training points barely show.
        assert np.mean(z_test**2) < 200


@every
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_float32_points_give_the_float64_result_in_float32(name, offset):
    x = (points() + offset).astype(np.float32)
    narrow, _ = normalize(scheme(name), x, x, "float32")
    wide, _ = normalize(scheme(name), x.astype(np.float64), x, "float64")
    assert narrow.dtype == np.float32
    # Measured: 4e-8 of the largest entry, float32's rounding.
    assert np.abs(narrow - wide).max() <= 1e-6 * np.abs(wide).max()


@every
def test_statistics_come_from_the_training_points_only(name):
    x = points()
    fitted = scheme(name).fit(x[:150])
    alone = fitted.transform(x[150:151])
    together = fitted.transform(np.r_[x[150:], 1e3 * x[150:]])[:1]
    # One row or many: matrix products of other shapes round differently. Measured: 1e-14.
    np.testing.assert_allclose(alone, together, rtol=1e-9, atol=1e-9)
    z, _ = normalize(scheme(name), x[:150], 1e3 * x[150:], "float64")
    np.testing.assert_allclose(z, fitted.transform(x[:150]), rtol=1e-9, atol=1e-9)


@every
def test_the_order_of_the_points_does_not_matter(name):
    # Signs are fixed, so components do not flip. Measured: 1e-7, where the power transform's
    # search ends.
    x = points()
    order = np.random.default_rng(2).permutation(len(x))
    z, shuffled = scheme(name).fit_transform(x), scheme(name).fit_transform(x[order])
    np.testing.assert_allclose(shuffled, z[order], rtol=1e-6, atol=1e-6)


@every
def test_the_points_given_are_not_written_on(name):
    x = points()
    before = x.copy()
    settings = {"copy": False} if hasattr(scheme(name), "copy") else {}
    normalize(scheme(name, **settings), x, x, "float64")
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", INVERTIBLE)
def test_the_inverse_takes_training_points_back(name):
    for x in (points(), ODD["rank-deficient"], ODD["fewer points than features"]):
        fitted = scheme(name).fit(x)
        back = fitted.inverse_transform(fitted.transform(x))
        # Of each feature's deviation. Measured: 8e-9, the whitenings.
        np.testing.assert_allclose((back - x) / x.std(axis=0), 0, atol=1e-6)


# The linear schemes.


def second_moments(x):
    centred = x - x.mean(axis=0)
    return centred.T @ centred / len(x)


@every_sphere
def test_a_sphere_is_the_inverse_of_what_it_spheres(name):
    # A'A = (S + ridge T)^-1, T = I or the variances; the ridge is large, to be seen.
    x, ridge = points(), 0.1
    fitted = scheme(name, ridge=ridge).fit(x)
    covariance = LedoitWolf().fit(x).covariance_ if name in SHRUNK else second_moments(x)
    inverse = np.linalg.inv(covariance + ridge * np.diag(fitted.scale_**2))
    product = fitted.matrix_.T @ fitted.matrix_
    # Measured: 2e-12 of the largest entry.
    np.testing.assert_allclose(product, inverse, rtol=0, atol=1e-9 * np.abs(inverse).max())


@every_full
@pytest.mark.parametrize("kind", ["rank-deficient", "duplicated features", "a constant feature"])
def test_the_output_is_white_on_the_live_directions(name, kind):
    x = ODD[kind][:150]
    fitted = scheme(name, ridge=0.0).fit(x)
    live = np.count_nonzero(~fitted.dropped_)
    assert live == 6
    expected = np.r_[np.zeros(x.shape[1] - live), np.ones(live)]
    z = fitted.transform(x)
    # Measured: 1e-8.
    np.testing.assert_allclose(np.linalg.eigvalsh(second_moments(z)), expected, atol=1e-6)


@every_full
@pytest.mark.parametrize("ridge", [1e-7, 1e-3, 10.0])
def test_a_ridge_leaves_each_direction_d_over_d_plus_ridge_of_variance(name, ridge):
    x = points()
    fitted = scheme(name, ridge=ridge).fit(x)
    values = fitted.eigenvalues_
    variances = np.linalg.eigvalsh(second_moments(fitted.transform(x)))
    # Measured: 6e-11.
    np.testing.assert_allclose(variances, np.sort(values / (values + ridge)), atol=1e-7)


@every_full
@pytest.mark.parametrize("kind", ["plain", "duplicated features"])
def test_all_full_whitenings_are_one_anothers_rotations(name, kind):
    x = points() if kind == "plain" else ODD[kind]
    z, other = (scheme(each, ridge=0.0).fit_transform(x) for each in (name, FULL[0]))
    # Inner products between points are what a rotation keeps. Measured: 6e-9.
    np.testing.assert_allclose(z @ z.T, other @ other.T, atol=1e-6)


@every_linear
def test_components_are_ordered_and_their_signs_fixed(name):
    for x in (points(), ODD["duplicated features"], ODD["fewer points than features"]):
        fitted = scheme(name).fit(x)
        assert (np.diff(fitted.eigenvalues_) <= 0).all()
        size = np.abs(fitted.components_)
        largest = size.max(axis=1, keepdims=True)
        first = np.argmax(size >= largest * (1 - 1e-6), axis=1)
        assert (fitted.components_[np.arange(len(first)), first] > 0).all()
        identity = fitted.components_ @ fitted.components_.T
        # Measured: 8e-15.
        np.testing.assert_allclose(identity, np.eye(len(first)), atol=1e-9)


def test_a_tie_of_the_largest_entries_is_decided_by_the_first():
    rows = np.array([[-1.0, 1 + 1e-12], [0.5, -0.5 - 1e-15], [0.3, -0.9]])
    expected = np.array([[1, -1], [0.5, -0.5], [-0.3, 0.9]])
    np.testing.assert_allclose(decomposition.fix_signs(rows), expected, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in LINEAR if name not in SHRUNK])
def test_fewer_points_than_features_give_what_the_covariance_gives(name):
    # Two ways to one result: the P x P matrix, and the N x N with the same points twice.
    x = ODD["fewer points than features"][:100] * np.linspace(1, 5, 220) + 7
    small, large = scheme(name), scheme(name)
    z = small.fit_transform(x)
    large.fit(np.tile(x, (4, 1)))
    assert small.components_.shape[0] == 99
    # Of the largest. Measured: 4e-16, and 3e-14 below.
    np.testing.assert_allclose(
        small.eigenvalues_, large.eigenvalues_, atol=1e-10 * small.eigenvalues_[0]
    )
    np.testing.assert_array_equal(small.dropped_, large.dropped_)
    np.testing.assert_allclose(z, large.transform(x), atol=1e-9 * np.abs(z).max())


@pytest.mark.parametrize("seed", range(6))
def test_directions_of_rounding_are_dropped_whatever_rtol_says(seed):
    x = np.random.default_rng(seed).standard_normal((6, 10))
    fitted = scheme("pca_sphere", rtol=0.0).fit(x)
    assert (~fitted.dropped_).sum() == 5
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(x)), x, atol=1e-8)


def test_the_covariance_survives_an_offset_that_rounds_the_mean():
    # At 2^45 whole numbers are exact, and their mean is off by 0.004.
    x = np.random.default_rng(5).integers(0, 10, (300, 4)).astype(float)
    mean, covariance = decomposition.mean_and_covariance(x + 2.0**45)
    # Measured: 4e-15; 1e-5 without the correction.
    np.testing.assert_allclose(covariance, second_moments(x), atol=1e-9)
    np.testing.assert_allclose(mean - 2.0**45, x.mean(axis=0), atol=0.008)


@every_linear
def test_a_constant_feature_keeps_scale_one(name):
    fitted = scheme(name).fit(ODD["a constant feature"][:150])
    np.testing.assert_array_equal(fitted.scale_[6:], 1.0)
    if name not in SHRUNK:
        assert fitted.dropped_.sum() == 2


@pytest.mark.parametrize("name", [name for name in LINEAR if name not in SHRUNK])
@pytest.mark.parametrize("features", [3, 300])
def test_a_feature_that_is_constant_up_to_rounding_is_dropped(name, features):
    x = np.full((150, features), 0.1)
    x[::2] = np.nextafter(0.1, 1)
    assert scheme(name).fit(x).dropped_.all()


@every_linear
def test_dropped_directions_are_mapped_to_zero(name):
    # The fourth feature varies only on the points that were not learned from.
    x = np.c_[points()[:, :3], np.zeros(200)]
    fitted = scheme(name).fit(x)
    if name in SHRUNK:
        assert not fitted.dropped_.any()
        return
    moved = x + np.array([0, 0, 0, 5.0])
    np.testing.assert_allclose(fitted.transform(moved), fitted.transform(x), atol=1e-9)


def test_the_offset_does_not_take_the_digits_of_float32():
    x = points()[:, :2].astype(np.float32)
    shifted = x + np.float32(2**20)  # the smaller deviation is ten steps of float32
    fitted = scheme("pca_sphere", ridge=0.0).fit(shifted)
    # Measured: 6e-8, float32's rounding of the output.
    np.testing.assert_allclose(second_moments(fitted.transform(shifted)), np.eye(2), atol=1e-5)


# What each scheme is, by another way.


def test_zca_is_symmetric_and_cholesky_triangular():
    x = points()
    zca = scheme("zca_sphere").fit(x).matrix_
    np.testing.assert_allclose(zca, zca.T, atol=1e-9 * np.abs(zca).max())
    correlation = scheme("zca_cor").fit(x)
    symmetric = correlation.matrix_ * correlation.scale_
    np.testing.assert_allclose(symmetric, symmetric.T, atol=1e-9)
    lower = np.linalg.cholesky(np.linalg.inv(second_moments(x)))
    triangular = scheme("cholesky", ridge=0.0).fit(x).matrix_
    # Measured: 1e-11 of the largest.
    np.testing.assert_allclose(triangular, lower.T, atol=1e-8 * np.abs(lower).max())


@pytest.mark.parametrize("kind", ["rank-deficient", "duplicated features", "a constant feature"])
def test_cholesky_of_dead_directions_is_the_echelon_form_of_the_pseudo_inverse(kind):
    x = np.c_[np.zeros(150), ODD[kind][:150]][:, ::-1]
    fitted = scheme("cholesky", ridge=0.0).fit(x)
    other = scheme("pca_sphere", ridge=0.0).fit(x)
    matrix = fitted.matrix_
    assert matrix.shape == (6, x.shape[1])
    expected = other.matrix_.T @ other.matrix_
    # Measured: 7e-16 of the largest.
    np.testing.assert_allclose(matrix.T @ matrix, expected, atol=1e-9 * np.abs(expected).max())
    pivots = np.argmax(matrix != 0, axis=1)
    assert (np.diff(pivots) > 0).all()
    assert (matrix[np.arange(6), pivots] > 0).all()
    z = fitted.transform(x)
    np.testing.assert_array_equal(z[:, 6:], 0.0)


@pytest.mark.parametrize("count", [200, 5])
def test_moment_rows_have_the_mean_and_the_covariance_of_the_points(count):
    x = np.random.default_rng(5).standard_normal((count, 8)) @ np.diag(np.arange(1.0, 9)) + 3
    rows = moment_rows(mapped(x))
    assert len(rows) == min(count, 8) + 1
    np.testing.assert_allclose(rows.mean(axis=0), x.mean(axis=0), rtol=1e-12)
    covariances = (np.cov(points.T, bias=True) for points in (rows, x))
    np.testing.assert_allclose(*covariances, rtol=1e-9, atol=1e-12)
    assert moment_rows(x) is x


def test_ledoit_wolf_shrinks_as_scikit_learn_does():
    for x in (points(), ODD["fewer points than features"]):
        fitted, expected = scheme("ledoit_wolf").fit(x), LedoitWolf().fit(x)
        assert fitted.shrinkage_ == pytest.approx(expected.shrinkage_, rel=1e-9)
        found = (fitted.components_.T * fitted.eigenvalues_) @ fitted.components_
        # Measured: 6e-16 of the largest entry.
        tolerance = 1e-12 * np.abs(found).max()
        np.testing.assert_allclose(found, expected.covariance_, atol=tolerance)


@pytest.mark.parametrize(("components", "width"), [(1, 1), (3, 3), (6, 6), (None, 6), (0.99, 2)])
def test_pca_keeps_the_first_components_in_the_order_of_variance(components, width):
    x = points()
    z = scheme("pca", components=components).fit_transform(x)
    values = np.linalg.eigvalsh(second_moments(x))[::-1]
    # Measured: 1e-15 of the largest.
    np.testing.assert_allclose(second_moments(z), np.diag(values[:width]), atol=1e-12 * values[0])


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        *((name, {"ridge": bad}, "ridge") for name in SPHERES for bad in (-1, np.inf, "a")),
        *((name, {"rtol": bad}, "rtol") for name in LINEAR for bad in (-1, 1.0, np.nan, "a")),
        *(("pca", {"components": bad}, "components") for bad in (0, -1, 7, 1.5, "a")),
        *(("random_rotation", {"seed": bad}, "seed") for bad in (-1, 1.5, "a", None)),
        ("robust", {"quantile_range": (90.0, 10.0)}, "quantile range"),
        ("minmax", {"feature_range": (1, 0)}, "feature range"),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(name, settings, message):
    with pytest.raises(ValueError, match=message):
        scheme(name, **settings).fit(points())


def test_pareto_leaves_each_feature_the_root_of_its_variance_as_variance():
    x = np.c_[points(), np.full(200, 0.1)]
    z = scheme("pareto").fit_transform(x)
    expected = np.r_[x[:, :6].std(axis=0), 0.0]
    # Measured: 2e-15 relative; the constant feature is 0 to rounding.
    np.testing.assert_allclose(z.var(axis=0), expected, rtol=1e-12, atol=1e-30)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("features", [1, 2, 6])
def test_a_random_rotation_keeps_lengths_angles_and_orientation(features):
    x = points()[:, :features]
    for seed in range(5):
        fitted = scheme("random_rotation", seed=seed).fit(x)
        z = fitted.transform(x)
        # Measured: 3e-16 of the largest entry.
        np.testing.assert_allclose(z @ z.T, x @ x.T, atol=1e-12 * np.abs(x @ x.T).max())
        assert np.linalg.det(fitted.matrix_) == pytest.approx(1, abs=1e-12)
        np.testing.assert_array_equal(
            fitted.matrix_, scheme("random_rotation", seed=seed).fit(2 * x).matrix_
        )


def test_random_rotations_are_uniform():
    """The first two moments of the entries, and of the angle of turns of the plane."""
    seeds = range(200)
    x = points()[:, :3]
    turns = np.array([scheme("random_rotation", seed=seed).fit(x).matrix_ for seed in seeds])
    # Of entries: mean 0, mean square 1/3, of fourth powers 1/5; the errors are within 4 deviations
    # of a mean of so many. Without the fixed signs an entry of the diagonal has the mean -0.4.
    assert np.abs(turns.mean(axis=0)).max() < 4 * np.sqrt(1 / 3 / len(seeds))
    np.testing.assert_allclose((turns**2).mean(axis=0), 1 / 3, atol=4 * 0.3 / np.sqrt(len(seeds)))
    np.testing.assert_allclose((turns**4).mean(axis=0), 1 / 5, atol=4 * 0.27 / np.sqrt(len(seeds)))
    flat = [scheme("random_rotation", seed=seed).fit(x[:, :2]).matrix_ for seed in seeds]
    angles = np.array([np.arctan2(turn[1, 0], turn[0, 0]) for turn in flat])
    shares = np.histogram(angles, bins=8, range=(-np.pi, np.pi))[0] / len(seeds)
    np.testing.assert_allclose(shares, 1 / 8, atol=4 * np.sqrt(1 / 8 * 7 / 8 / len(seeds)))


# On real data.


@cache
def breast_cancer():
    return load_breast_cancer(return_X_y=True)


@every_linear
def test_breast_cancer_keeps_every_direction(name):
    x, _ = breast_cancer()
    fitted = scheme(name).fit(x)
    assert not fitted.dropped_.any()
    if name in FULL and (fitted.scale_ == 1).all():
        smallest = fitted.eigenvalues_[-1] / fitted.eigenvalues_[0]
        assert smallest == pytest.approx(1.58e-12, rel=0.01)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_all_full_whitenings_trace_one_curve_from_zero_weights(optimizer):
    x, y = breast_cancer()
    schemes = [scheme(name, ridge=0.0) for name in FULL]
    steps = (0.1, 1.0, 10.0)
    few = {"iterations": 30, "theory": "none"}
    table = compare(x, y, normalizers=schemes, step_sizes=steps, optimizer=optimizer, **few)
    curves = table.cost.to_numpy().reshape(len(schemes), len(steps) * 31)
    # Measured: 1e-10.
    np.testing.assert_allclose(curves, np.broadcast_to(curves[0], curves.shape), rtol=1e-8)


def mnist(part):
    x = contrast_normalized(part)
    if x is None:
        pytest.skip(f"{part}-images-idx3-ubyte.gz is not there; NORMBENCH_DATA names its folder")
    return x


def test_contrast_normalized_mnist_has_its_rank():
    x = mnist("t10k")
    assert np.count_nonzero(~scheme("pca_sphere", rtol=1e-9).fit(x).dropped_) == 659


def test_contrast_takes_brightness_and_contrast_of_each_point_away():
    x, rng = points(), np.random.default_rng(0)
    brightness, gain = rng.standard_normal((2, len(x), 1))
    z = scheme("contrast").fit_transform(x)
    # Measured: 4e-15.
    np.testing.assert_allclose(z.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=1), 1, rtol=1e-12)
    other = scheme("contrast").fit_transform(x * np.abs(gain) + brightness)
    np.testing.assert_allclose(other, z, atol=1e-10)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_contrast_makes_a_constant_point_zeros(precision):
    x = np.array([[0.1] * 7, [0.0] * 7, [*range(7)]], dtype=precision)
    z = scheme("contrast").fit(points()[:, :1].repeat(7, axis=1)).transform(x)
    assert z.dtype == precision
    assert not z[:2].any()
    np.testing.assert_allclose(z[2].std(), 1, rtol=1e-6)
