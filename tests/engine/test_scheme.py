"""What cannot be a scheme is refused by name, in one line; any other transformer is a scheme."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import TSNE
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC

from normbench.choices import build
from normbench.comparison import compare
from normbench.datasets import UserError
from normbench.engine.scheme import CONVERTED_POINTS_PER_BLOCK, check_scheme
from normbench.normalizers.on_columns import learns_by_blocks
from tests.door import normalize

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.arange(40) % 2


class Doubled:
    """A user's own transformer, without scikit-learn's base classes."""

    def fit(self, x):
        return self

    def transform(self, x):
        return 2 * x


class Gaps(Doubled):
    def transform(self, x):
        return np.where(x > 1, np.nan, x)


class Short(Doubled):
    def transform(self, x):
        return x[1:]


class Flat(Doubled):
    def transform(self, x):
        return x[:, 0]


class Words(Doubled):
    def transform(self, x):
        return np.full(x.shape, "word")


class Complex(Doubled):
    def transform(self, x):
        return x + 1j


class Nothing(Doubled):
    def transform(self, x):
        return None


class ByNumber(Doubled):
    """As many features as are asked for, by how many points come at a time."""

    def __init__(self, widths):
        self.widths = widths

    def transform(self, x):
        return np.ones((len(x), self.widths[len(x)]))


@pytest.mark.parametrize(
    "scheme",
    [
        LinearDiscriminantAnalysis(),
        TargetEncoder(),
        PLSRegression(),
        make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    ],
    ids=lambda scheme: type(scheme).__name__,
)
def test_a_scheme_that_learns_from_targets_is_refused(scheme):
    with pytest.raises(UserError, match=rf"^normalizer {type(scheme).__name__}: .*\by\b"):
        compare(X, Y, normalizers=[scheme], step_sizes=[1.0], iterations=1)


@pytest.mark.parametrize("thing", [SVC(), TSNE(), StandardScaler, np, 3, "standard"])
def test_what_is_not_a_transformer_is_refused(thing):
    with pytest.raises(UserError, match="is not a transformer"):
        check_scheme(thing)


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        (OneHotEncoder(handle_unknown="ignore"), "sparse points"),
        (Gaps(), "not finite"),
        (Short(), r"shape \(39, 3\) for 40 points"),
        (Flat(), r"shape \(40,\)"),
        (Words(), "not numbers"),
        (Complex(), "not numbers"),
        (Nothing(), r"shape \(\) for 40 points"),
        (PowerTransformer("box-cox"), "strictly positive"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_what_a_scheme_gives_is_checked(scheme, reason):
    check_scheme(scheme)
    with pytest.raises(UserError, match=f"normalizer {type(scheme).__name__}: .*{reason}") as found:
        normalize(scheme, X, X, "float64")
    assert "\n" not in str(found.value)


def test_every_point_has_the_same_features():
    x = np.zeros((CONVERTED_POINTS_PER_BLOCK + 1, 2))
    for last in (1, 3):
        with pytest.raises(UserError, match=f"gives 2 features for some points and {last} for"):
            normalize(ByNumber({1: last, CONVERTED_POINTS_PER_BLOCK: 2}), x, x[:0], "float64")
    with pytest.raises(UserError, match="gives 2 features for some points and 1 for others"):
        normalize(
            ByNumber({1: 1, CONVERTED_POINTS_PER_BLOCK: 2}),
            x[:CONVERTED_POINTS_PER_BLOCK],
            x[:1],
            "float64",
        )


def test_numbers_that_float32_cannot_hold_are_refused():
    with pytest.raises(UserError, match="not finite under precision=float32"):
        normalize(Doubled(), 1e300 * X, X, "float32")


@pytest.mark.parametrize(
    "scheme", [Doubled(), PolynomialFeatures(), SplineTransformer()], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_other_transformer_is_a_scheme(scheme, dtype):
    check_scheme(scheme)
    z, z_test = normalize(scheme, X, X[:0], dtype)
    assert z.dtype == z_test.dtype == dtype
    assert z.flags.c_contiguous
    assert (len(z), len(z_test)) == (40, 0)


# Chains of named schemes.


def chain(*schemes):
    return build("normalizer", {"_target_": "normbench.choices.chain", "schemes": list(schemes)})


def test_a_chain_is_its_schemes_one_after_the_other():
    names = ["standard", {"pca": {"components": 2}}]
    expected = X
    for entry in names:
        expected = chain(entry).fit_transform(expected)
    np.testing.assert_array_equal(chain(*names).fit_transform(X), expected)
    assert expected.shape == (40, 2)


@pytest.mark.parametrize(
    ("schemes", "message"),
    [
        ([], "one scheme or more"),
        (["nonsense"], "normalizer.schemes=nonsense: no such option"),
        ([{"pca": {"components": 2}, "standard": {}}], "is not a scheme"),
        ([3], "is not a scheme"),
        ([["standard"]], "is not a scheme"),
        ([{"pca": {"nonsense": 2}}], "nonsense"),
        ([{"pca": 2}], "is not a scheme"),
    ],
)
def test_a_chain_of_anything_else_is_refused(schemes, message):
    with pytest.raises(UserError, match=message):
        chain(*schemes)


@pytest.mark.parametrize("scheme", [StandardScaler, MinMaxScaler, MaxAbsScaler])
def test_a_scaler_learns_from_block_after_block_of_single_precision(scheme, monkeypatch):
    seen = []
    learn = scheme.partial_fit
    monkeypatch.setattr(
        scheme, "partial_fit", lambda self, x, *more: seen.append(x) or learn(self, x, *more)
    )
    x = (
        np.random.default_rng(1)
        .standard_normal((2 * CONVERTED_POINTS_PER_BLOCK + 5, 3))
        .astype(np.float32)
    )
    z, _ = normalize(scheme(), x, x[:0], np.float64)
    assert len(seen) == 3
    assert all(
        len(block) <= CONVERTED_POINTS_PER_BLOCK and block.dtype == np.float64 for block in seen
    )
    # Measured: 2e-15, blocks' means put together.
    np.testing.assert_allclose(z, scheme().fit_transform(x.astype(float)), rtol=1e-10, atol=1e-12)
    assert learns_by_blocks(scheme())
    assert not learns_by_blocks(PowerTransformer())
