"""The parts that schemes are made of, against plain numpy and at the bounds that they name."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from normbench.normalizers import PCARotation, PCASphere, affine, decomposition, morph, whitening
from normbench.normalizers.formulas import FORMULAS, textbook_sphere, textbook_standard
from normbench.normalizers.on_columns import FeatureSelection, OnColumns, name_scheme
from normbench.normalizers.schemes import Contrast, Power, RandomRotation, draw_rotation
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


def log_likelihood(t, power):
    """The Yeo-Johnson likelihood but for a constant, of features with centred logs t of 1 + x."""
    bent = np.expm1(power * t) / power
    return -len(t) / 2 * np.log(bent.var())


@pytest.mark.parametrize("offset", [1e2, 1e6, 1.7e9, 1e12])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_power_of_a_feature_that_is_far_from_0_keeps_its_variation(offset, sign):
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


@pytest.mark.parametrize("size", [1, 7, 40, 100])
def test_blocks_cover_every_point_once(monkeypatch, size):
    monkeypatch.setattr(decomposition, "CENTRED_POINTS_PER_BLOCK", size)
    spans = list(decomposition.blocks(40))
    rows = np.concatenate([np.arange(40)[span] for span in spans])
    np.testing.assert_array_equal(rows, np.arange(40))
    assert max(span.stop - span.start for span in spans) == min(size, 40)
    assert [span.stop - span.start for span in decomposition.blocks(40, 16)] == [16, 16, 8]
    np.testing.assert_allclose(decomposition.compute_mean(mapped(X)), X.mean(axis=0), rtol=1e-14)
    mean, covariance = decomposition.mean_and_covariance(mapped(X))
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(covariance, np.cov(X.T, bias=True), rtol=1e-12)


@pytest.mark.parametrize(("entries", "size"), [(1, 1), (7, 2), (12, 4), (1000, 40)])
def test_small_blocks_hold_so_many_numbers(monkeypatch, entries, size):
    monkeypatch.setattr(decomposition, "SMALL_BLOCK_ENTRIES", entries)
    spans = list(decomposition.blocks(len(X), decomposition.small_block_size(X)))
    assert spans[0] == slice(0, size)
    np.testing.assert_allclose(
        decomposition.compute_deviations(X, X.mean(axis=0)), X.std(axis=0), rtol=1e-12
    )


@pytest.mark.parametrize("correlation", [True, False])
@pytest.mark.parametrize("count", [3, 5])
def test_fewer_points_than_features_have_the_spectrum_of_their_covariance(correlation, count):
    x = RNG.standard_normal((count, 6)) * np.arange(1, 7) + 2.0
    x[:, 4] = 3.0
    found = decomposition.Moments(x).get(correlation, complete=False)
    scales = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0) if correlation else np.ones(6)
    matrix = np.cov(x.T, bias=True) / scales / scales[:, None]
    np.testing.assert_allclose(found.scales, scales, rtol=1e-12)
    np.testing.assert_allclose(found.mean, x.mean(axis=0), rtol=1e-12)
    values = np.linalg.eigvalsh(matrix)[::-1]
    np.testing.assert_allclose(found.values, values, atol=1e-12 * values[0])
    assert found.vectors.shape == (count - 1, 6)
    live = found.values[: count - 1]
    np.testing.assert_allclose((found.vectors.T * live) @ found.vectors, matrix, atol=1e-9)
    whole = decomposition.Moments(x).get(correlation, complete=True)
    assert whole.vectors.shape == (6, 6)
    np.testing.assert_allclose(whole.vectors @ whole.vectors.T, np.eye(6), atol=1e-12)
    np.testing.assert_allclose((whole.vectors.T * whole.values) @ whole.vectors, matrix, atol=1e-9)


def test_a_feature_is_constant_where_its_variance_is_its_means_rounding_squared():
    """The mean of 10 points of 4 is rounded to 40 machine epsilons at most."""
    mean, level = np.full(3, 4.0), (40 * EPS) ** 2
    variance = np.array([0.9 * level, 1.1 * level, 0.0])
    assert decomposition.is_rounding(10, mean, variance).tolist() == [True, False, True]


@pytest.mark.parametrize(("size", "threads"), [(3, 1), (1000, 1), (1001, None)])
def test_small_matrices_are_decomposed_by_one_thread(monkeypatch, size, threads):
    limits = []
    controller = SimpleNamespace(limit=lambda **limit: limits.append(limit) or nullcontext())
    monkeypatch.setattr(decomposition, "_controller", lambda: controller)
    with decomposition._limit_threads(size):
        assert limits == [{"limits": threads, "user_api": "blas"}]


def test_points_whose_lengths_do_not_vary_are_shrunk_by_nothing():
    """Of the corners of a square, the fourth power of the lengths is that of the covariance."""
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * [3.0, 1.0]
    single = np.repeat([[1.0], [-1.0]], 5, axis=0)
    for x in (single, np.zeros((4, 2))):
        found = decomposition.Moments(x).get(False, True)
        assert whitening.estimate_shrinkage(x, found) == 0
    found = decomposition.Moments(corners).get(False, True)
    # mean |x|^4 = 100, |S|^2 = 82, mu = 5: (100 - 82) / 8 over (82 - 50) / 2.
    assert whitening.estimate_shrinkage(corners, found) == pytest.approx(18 / 8 / 16)


@pytest.mark.parametrize(("apart", "pivots"), [(1e-8, [0, 1]), (1e-10, [0, 2])])
def test_a_column_depends_on_those_before_it_up_to_a_billionth(apart, pivots):
    rows = np.array([[1.0, 1.0, 0.5], [0.0, apart, 1.0]]) @ np.eye(3)
    turn = morph.rotation(0.7)
    echelon = whitening.row_echelon_form(turn @ rows)
    assert np.argmax(echelon != 0, axis=1).tolist() == pivots
    assert (echelon[np.arange(2), pivots] > 0).all()
    np.testing.assert_allclose(echelon.T @ echelon, rows.T @ rows, atol=1e-7)


@pytest.mark.parametrize("components", [0.5, 0.8, 0.95, 1.0 - 1e-12])
def test_a_share_of_the_variance_is_held_by_no_fewer_components(components):
    kept = PCARotation(components=components).fit(X).transform(X).shape[1]
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    shares = np.cumsum(values) / values.sum()
    assert shares[kept - 1] >= components - 1e-9
    assert kept == 1 or shares[kept - 2] < components


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
    matrix, offset = scheme.affine_map()
    np.testing.assert_array_equal(matrix, rotation)
    np.testing.assert_array_equal(offset, np.zeros(features))
    np.testing.assert_allclose(scheme.inverse_transform(scheme.transform(drawn)), drawn)


def test_a_point_is_constant_up_to_the_rounding_of_its_mean():
    x = np.ones((3, 8))
    x[1, :4] += 8 * EPS  # a deviation of 4 epsilons, below 8
    x[2, :4] += 32 * EPS  # and of 16
    z = Contrast().fit(x).transform(x)
    assert not z[:2].any()
    np.testing.assert_allclose(z[2], [1] * 4 + [-1] * 4, rtol=1e-6)


def test_a_point_of_float32_is_constant_where_its_numbers_are_one():
    """Its mean is in float64: the least difference of two float32 numbers is above its rounding."""
    x = np.full((2, 10_000), 300.1, np.float32)
    x[1, :5000] = np.nextafter(x[1, 0], np.float32(301))
    z = Contrast().fit(x).transform(x)
    assert z.dtype == np.float32
    assert not z[0].any()
    np.testing.assert_allclose(z[1], np.repeat([1, -1], 5000), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_point_is_normalized_in_its_precision(dtype):
    row = RNG.standard_normal((1, 8)).astype(dtype)
    wanted = (row - row.mean()) / row.std()
    np.testing.assert_allclose(Contrast().fit(row).transform(row), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("angle", "kept"), [(1.1e-9, 1.1e-9), (0.9e-9, 0.0), (-2.0, -2.0)])
def test_an_angle_below_a_billionth_is_rounding(angle, kept):
    assert morph._find_angle(morph.rotation(angle)) == pytest.approx(kept, rel=1e-6)
    scaled = morph.factor_map(np.diag([2.0, 3.0]) @ morph.rotation(angle))
    assert scaled.turn == pytest.approx(kept, rel=1e-6)
    assert scaled.scales == pytest.approx([2, 3])
    assert scaled.turn_back == 0


@pytest.mark.parametrize(("skew", "turns_back"), [(0.9e-9, False), (1.1e-8, True)])
def test_rows_that_are_nearly_orthogonal_need_no_second_rotation(skew, turns_back):
    parts = morph.factor_map(np.array([[2.0, 0.0], [3 * skew, 3.0]]))
    assert bool(parts.turn_back) == turns_back


@pytest.mark.parametrize(("stretch", "scales"), [(0.9e-9, False), (1.1e-9, True)])
def test_a_scale_of_a_billionth_is_none(stretch, scales):
    matrix = np.diag([1.0, 1.0 + stretch])
    frames = morph.make_frames(matrix, np.ones(2), np.zeros(2), np.ones(2))
    assert [label.split()[0] for label in frames.labels] == ["raw", "centred"] + ["scaled"] * scales


@pytest.mark.parametrize(("away", "moves"), [(0.9, False), (1.1, True)])
def test_a_move_of_a_billionth_of_the_points_and_their_centre_is_none(away, moves):
    centre, spread = np.array([30.0, 40.0]), np.array([6.0, 8.0])
    image = centre + np.array([away * 60e-9, 0.0])
    frames = morph.make_frames(np.diag([2.0, 1.0]), centre, image * [2.0, 1.0], spread)
    assert ("moved" in frames.labels) == moves
    assert frames.signs.tolist() == [[1, 1]] * len(frames.matrix)


@pytest.mark.parametrize(
    ("scales", "words"),
    [((2.0, 2.0), "scaled by 2"), ((0.1234, 30.0), "scaled by 0.123, 30")],
)
def test_a_scaling_names_both_of_its_factors_unless_they_are_one(scales, words):
    assert morph._label_scaling(np.array(scales)) == words
    assert morph._label_turn("turned", -np.pi / 3) == "turned by 60°"


@pytest.mark.parametrize("angle", [0.3, 1.2, -2.9])
def test_a_mirrored_rotation_turns_by_the_smaller_angle(angle):
    for signs in ([1.0, -1.0], [-1.0, 1.0]):
        mirrored = np.array(signs)[:, None] * morph.rotation(angle)
        turn, chosen = morph._factor_orthogonal(mirrored)
        np.testing.assert_allclose(chosen[:, None] * morph.rotation(turn), mirrored, atol=1e-12)
        assert abs(turn) <= np.pi / 2
    turn, chosen = morph._factor_orthogonal(morph.rotation(angle))
    assert turn == pytest.approx(angle)
    assert chosen.tolist() == [1, 1]


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
    assert affine.learns_by_blocks(scheme) == blocks


def test_the_members_of_a_scheme_are_those_that_are_no_words():
    first, second, rest = StandardScaler(), MinMaxScaler(), RobustScaler()
    assert affine.member_schemes(make_pipeline(first, "passthrough", second)) == [first, second]
    columns = [("a", first, [0]), ("b", "drop", [1]), ("c", second, [2])]
    assert affine.member_schemes(ColumnTransformer(columns, remainder=rest)) == [
        first,
        second,
        rest,
    ]
    assert affine.member_schemes(ColumnTransformer(columns)) == [first, second]
    assert affine.member_schemes(first) == []


def traits(scheme):
    found = affine.find_affine_traits(scheme)
    return found and tuple(found)


@pytest.mark.parametrize("centres", [True, False])
@pytest.mark.parametrize("scales", [True, False])
def test_the_traits_of_scalers_are_their_options(centres, scales):
    standard = StandardScaler(with_mean=centres, with_std=scales)
    robust = RobustScaler(with_centering=centres, with_scaling=scales)
    assert traits(standard) == traits(robust) == (centres, scales, False)
    assert traits(make_pipeline(standard, MaxAbsScaler())) == (centres, True, False)
    assert traits(make_pipeline(standard, FunctionTransformer(np.tanh))) is None
    assert traits(make_pipeline(PCARotation(), standard)) == (True, scales, True)
    for made in (standard, robust):
        found = affine.find_affine_map(made.fit(X))
        np.testing.assert_allclose(found(X), made.transform(X), rtol=1e-9, atol=1e-12)


def test_a_clipped_scaler_and_words_alone_are_not_affine():
    assert traits(MinMaxScaler(clip=True)) is None
    assert traits(MinMaxScaler()) == (True, True, False)
    assert traits(MaxAbsScaler()) == (False, True, False)
    assert traits(make_pipeline("passthrough")) is None
    assert affine.find_affine_map(object()) is None
    dropped = ColumnTransformer([("a", "drop", [0, 1, 2])]).fit(X)
    assert affine.find_affine_map(dropped) is None


def test_the_same_features_are_selected_by_name_in_another_part():
    selection = FeatureSelection("b and d", "dataset.columns")
    selection.select([1, 3], ("a", "b", "c", "d"))
    assert selection(np.zeros((2, 4))) == [1, 3]
    assert repr(selection) == "'b and d' at (1, 3)"
    selection.reselect(("d", "a", "b"))
    assert selection(np.zeros((2, 3))) == [0, 2]
    with pytest.raises(ValueError, match="its columns are of 3 features, and it gets 4; "):
        selection(np.zeros((2, 4)))
    assert name_scheme(OnColumns(PCASphere(), selection)) == "PCASphere"
    assert name_scheme(StandardScaler()) == "StandardScaler"


def test_a_feature_is_selected_again_without_others_of_its_name():
    selection = FeatureSelection([1], "dataset.columns")
    selection.select([1, 3], ("a", "a", "b", "c"))
    selection.reselect(("a", "b", "a", "a"))
    assert selection.positions == (2,)


@pytest.mark.parametrize("components", [1, 2])
def test_the_map_of_some_features_is_what_is_done_to_them(components):
    scheme = OnColumns(PCARotation(components), lambda x: [2, 0]).fit(X)
    matrix, offset = scheme.affine_map()
    np.testing.assert_allclose(X @ matrix.T + offset, scheme.transform(X), atol=1e-12)
    assert scheme.keeps_places == (components == 2)
    assert scheme.passed_.tolist() == [1]
    back = scheme.inverse_transform(scheme.transform(X))
    np.testing.assert_allclose(back[:, 1], X[:, 1])
    if components == 2:
        np.testing.assert_allclose(back, X, atol=1e-12)
    names = list(scheme.get_feature_names_out(["a", "b", "c"]))
    own = list(scheme.scheme.get_feature_names_out(["c", "a"]))
    assert names == ([own[1], "b", own[0]] if components == 2 else [*own, "b"])


@pytest.mark.parametrize("scheme", [Contrast(), OnColumns(StandardScaler(), lambda x: [0])])
def test_points_of_another_width_are_refused(scheme):
    fitted = scheme.fit(X)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        fitted.transform(X[:, :2])
