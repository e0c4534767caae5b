"""The parts that schemes are made of, against plain numpy and at the bounds that they name."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from normbench.normalizers import PCASphere, decomposition, morph, on_columns, whitening
from normbench.normalizers.on_columns import OnColumns
from normbench.normalizers.schemes import Contrast, Power, RandomRotation, draw_rotation
from normbench.normalizers.whitening import FORMULAS, textbook_sphere, textbook_standard
from tests.door import mapped

RNG = np.random.default_rng(21)
X = RNG.standard_normal((40, 3)) @ np.array([[3.0, 1.0, 0.0], [0.0, 0.5, 0.2], [0.0, 0.0, 0.1]])
X += np.array([1.0, -2.0, 0.5])
EPS = np.finfo(float).eps


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_formulas_of_textbooks_are_what_they_say_in_the_precision_of_the_points(dtype):
    x = X.astype(dtype)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    standard = textbook_standard(x)
    assert standard.dtype == dtype
    np.testing.assert_array_equal(standard, (x - mean) / deviation)
    whole = textbook_sphere(x)
    assert whole.dtype == dtype
    # Both sphere: the one's covariance is I but for a ridge of 1e-7.
    tolerance = 1e-9 if dtype == "float64" else 1e-3
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    np.testing.assert_allclose(
        np.diag(np.cov(whole.T, bias=True)), values / (values + 1e-7), atol=tolerance
    )
    ours = FORMULAS["sphere_ours"](x)
    np.testing.assert_array_equal(ours, PCASphere(ridge=1e-7).fit(x).transform(x))
    np.testing.assert_allclose(
        FORMULAS["sphere_scikit"](X).var(axis=0), np.full(3, 39 / 40), rtol=1e-9
    )
    np.testing.assert_allclose(FORMULAS["standard_scikit"](x), standard, atol=10 * tolerance)


SKEWED = np.exp(RNG.standard_normal((200, 3)) * [0.3, 1.0, 2.0])


@pytest.mark.parametrize("method", ["yeo-johnson", "box-cox"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_power_is_scikit_learns_on_skewed_features(method, unit):
    ours = Power(method).fit(unit * SKEWED)
    theirs = PowerTransformer(method).fit(unit * SKEWED)
    for x in (unit * SKEWED, unit * SKEWED[::-1] * 1.5):
        z = theirs.transform(x)
        np.testing.assert_allclose(ours.transform(x), z, rtol=1e-4, atol=1e-5)  # measured: 3e-6
    # Where the largest logarithm is 3e-3 the likelihood is flat: measured 2e-3 of 700.
    np.testing.assert_allclose(ours.lambdas_, theirs.lambdas_, rtol=1e-4, atol=1e-4)


def test_a_power_of_features_below_0_and_of_both_signs_is_scikit_learns():
    x = np.c_[-SKEWED[:, 0], SKEWED[:, 1] - 1, SKEWED[:, 2]]
    other = -3 * x[::-1]  # on the other side of 0, too
    ours, theirs = Power().fit(x), PowerTransformer().fit(x)
    for points in (x, other):
        z = ours.transform(points)
        np.testing.assert_allclose(z, theirs.transform(points), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.inverse_transform(z), points, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("offset", [1e2, 1.7e9, 1e12])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_power_of_a_feature_that_is_far_from_0_keeps_its_variation(offset, sign):
    def log_likelihood(logs, power):  # but for a constant, of centred logarithms of 1 + x
        return -len(logs) / 2 * np.log((np.expm1(power * logs) / power).var())

    x = sign * (offset + SKEWED)  # latitudes, years, seconds since 1970
    scheme = Power().fit(x)
    z = scheme.transform(x)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-9)
    powers = np.where(scheme.signs_ < 0, 2 - scheme.lambdas_, scheme.lambdas_)
    for column, power in zip(np.abs(x).T, powers):
        logs = np.log1p((column - offset) / (1 + offset))
        logs -= logs.mean()
        best = log_likelihood(logs, power)
        for other in (0.99 * power, 1.01 * power):
            assert log_likelihood(logs, other) < best
    # Of the third feature rounding hides the largest values: their powers are e^-40.
    back = scheme.inverse_transform(z)[:, :2]
    np.testing.assert_allclose(back, x[:, :2], rtol=1e-12, atol=4 * EPS * offset)


def test_a_power_leaves_a_constant_feature_constant_and_refuses_what_is_not_positive():
    x = np.c_[SKEWED, np.full(200, 0.1)]
    assert np.abs(Power().fit_transform(x)[:, 3]).max() < 1e-12
    with pytest.raises(ValueError, match="strictly positive"):
        Power("box-cox").fit(x - 1)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_moments_of_a_memory_map_are_those_of_its_points(monkeypatch, size):
    monkeypatch.setattr(decomposition, "CENTRED_POINTS_PER_BLOCK", size)
    np.testing.assert_allclose(decomposition.compute_mean(mapped(X)), X.mean(axis=0), rtol=1e-14)
    mean, covariance = decomposition.mean_and_covariance(mapped(X))
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True), rtol=1e-12)


@pytest.mark.parametrize("correlation", [True, False])
@pytest.mark.parametrize("count", [3, 5])
def test_fewer_points_than_features_have_the_spectrum_of_their_covariance(correlation, count):
    x = RNG.standard_normal((count, 6)) * np.arange(1, 7) + 2.0
    x[:, 4] = 3.0
    found = decomposition.PointsCache(x).get(correlation, complete=False)
    scales = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0) if correlation else np.ones(6)
    matrix = np.cov(x.T, bias=True) / scales / scales[:, None]
    np.testing.assert_allclose(found.scales, scales, rtol=1e-12)
    np.testing.assert_allclose(found.mean, x.mean(axis=0), rtol=1e-12)
    values = np.linalg.eigvalsh(matrix)[::-1]
    np.testing.assert_allclose(found.values, values, atol=1e-12 * values[0])
    assert found.vectors.shape == (count - 1, 6)
    live = found.values[: count - 1]
    np.testing.assert_allclose((found.vectors.T * live) @ found.vectors, matrix, atol=1e-9)
    whole = decomposition.PointsCache(x).get(correlation, complete=True)
    assert whole.vectors.shape == (6, 6)
    np.testing.assert_allclose(whole.vectors @ whole.vectors.T, np.eye(6), atol=1e-12)
    np.testing.assert_allclose((whole.vectors.T * whole.values) @ whole.vectors, matrix, atol=1e-9)


def test_a_feature_is_constant_where_its_variance_is_its_means_rounding_squared():
    """The mean of 10 points of 4 is rounded to 40 machine epsilons at most."""
    mean, level = np.full(3, 4.0), (40 * EPS) ** 2
    variance = np.array([0.9 * level, 1.1 * level, 0.0])
    assert decomposition.is_rounding(10, mean, variance).tolist() == [True, False, True]


@pytest.mark.parametrize(("apart", "pivots"), [(1e-8, [0, 1]), (1e-10, [0, 2])])
def test_a_column_depends_on_those_before_it_up_to_a_billionth(apart, pivots):
    rows = np.array([[1.0, 1.0, 0.5], [0.0, apart, 1.0]]) @ np.eye(3)
    turn = morph.rotation(0.7)
    echelon = whitening.row_echelon_form(turn @ rows)
    assert np.argmax(echelon != 0, axis=1).tolist() == pivots
    assert (echelon[np.arange(2), pivots] > 0).all()
    np.testing.assert_allclose(echelon.T @ echelon, rows.T @ rows, atol=1e-7)


@pytest.mark.parametrize("features", [1, 2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_a_rotation_is_the_orthogonal_factor_of_what_is_drawn(features, seed):
    rotation = draw_rotation(features, seed)
    drawn = np.random.default_rng(seed).standard_normal((features, features))
    triangle = rotation.T @ drawn
    assert np.linalg.det(rotation) == pytest.approx(1)
    flipped = np.linalg.det(drawn) < 0  # then the first column is turned round
    triangle[0] *= -1 if flipped else 1
    np.testing.assert_allclose(triangle, np.triu(triangle), atol=1e-12)
    assert (np.diag(triangle) > 0).all()
    scheme = RandomRotation(seed).fit(np.ones((2, features)))
    np.testing.assert_array_equal(scheme.matrix_, rotation)
    np.testing.assert_allclose(scheme.inverse_transform(scheme.transform(drawn)), drawn)


@pytest.mark.parametrize(
    ("scheme", "blocks"),
    [
        (StandardScaler(), True),
        (MinMaxScaler(), True),
        (MaxAbsScaler(), True),
        (RobustScaler(), False),
        (make_pipeline(StandardScaler()), False),
    ],
)
def test_scalers_alone_learn_the_same_from_blocks(scheme, blocks):
    assert on_columns.learns_by_blocks(scheme) == blocks


def test_the_members_of_a_scheme_are_those_that_are_no_words():
    first, second, rest = StandardScaler(), MinMaxScaler(), RobustScaler()
    assert on_columns.member_schemes(make_pipeline(first, "passthrough", second)) == [first, second]
    columns = [("a", first, [0]), ("b", "drop", [1]), ("c", second, [2])]
    assert on_columns.member_schemes(ColumnTransformer(columns, remainder=rest)) == [
        first,
        second,
        rest,
    ]
    assert on_columns.member_schemes(ColumnTransformer(columns)) == [first, second]
    assert on_columns.member_schemes(first) == []


@pytest.mark.parametrize("scheme", [Contrast(), OnColumns(StandardScaler(), lambda x: [0])])
def test_points_of_another_width_are_refused(scheme):
    fitted = scheme.fit(X)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        fitted.transform(X[:, :2])
