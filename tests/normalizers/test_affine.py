"""What schemes say of themselves, against what they do."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from normbench.choices import build, options
from normbench.normalizers import PCARotation, PCASphere
from normbench.normalizers.affine import Affine, find_affine_map, find_affine_traits
from tests.cases import names

OTHERS = {
    "pca": PCA(),
    "pca whitened": PCA(2, whiten=True),
    "range": MinMaxScaler((-1, 1)),
    "clipped": MinMaxScaler(clip=True),
    "scaled": StandardScaler(with_mean=False),
    "centred": StandardScaler(with_std=False),
    "scale": RobustScaler(with_centering=False),
    "about the median": RobustScaler(with_scaling=False),
    "function": FunctionTransformer(np.cbrt),
    "polynomial": PolynomialFeatures(2),
    "chain with a gap": make_pipeline("passthrough", StandardScaler()),
    "chain": make_pipeline(MaxAbsScaler(), PCASphere(), MinMaxScaler()),
    "rotations": make_pipeline(PCARotation(), PCARotation(2)),
    "bent": make_pipeline(StandardScaler(), FunctionTransformer(np.tanh)),
}
CONF = {name: build("normalizer", options("normalizer", name)) for name in names("normalizer")}
EVERY = CONF | OTHERS
BENT = {"power", "quantile", "unit_norm", "contrast", "clipped", "function", "polynomial", "bent"}


@pytest.fixture
def x():
    rng = np.random.default_rng(4)
    mixed = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 4)) * [1, 10, 0.1, 3]
    return mixed + np.array([1, -5, 0, 2])


@pytest.fixture(params=sorted(EVERY))
def named(request):
    return request.param


def test_a_map_is_what_the_scheme_does_also_beyond_the_points_that_it_saw(named, x):
    scheme = EVERY[named].fit(x[:40])
    beyond = 3 * x
    found = find_affine_map(scheme)
    assert (found is None) == (find_affine_traits(scheme) is None) == (named in BENT)
    if found is None:
        wide = np.column_stack([np.ones(60), x])
        guess = wide @ np.linalg.lstsq(wide, scheme.transform(x), rcond=None)[0]
        assert np.abs(guess - scheme.transform(x)).max() > 1e-3  # and it is not affine
        return
    # Measured: 2e-12 of the largest entry, of sphering by way of a correlation.
    z = scheme.transform(beyond)
    np.testing.assert_allclose(found(beyond), z, atol=1e-10 * np.abs(z).max())


def test_parts_are_what_the_map_does(named, x):
    scheme = EVERY[named].fit(x)
    told = find_affine_traits(scheme)
    if told is None:
        return
    matrix, offset = find_affine_map(scheme).matrix, find_affine_map(scheme).offset
    whole = np.diag(matrix) if matrix.ndim == 1 else matrix
    assert told.centres == (np.abs(offset).max() > 1e-9)
    assert told.rotates == (np.count_nonzero(np.abs(whole) > 1e-9) > len(whole))
    lengths = np.linalg.norm(whole, axis=1)
    assert told.scales == (not np.allclose(lengths, 1, rtol=1e-9))


@pytest.mark.parametrize("scheme", [PCASphere(), PCARotation()])
def test_a_dropped_direction_is_0_in_the_map_too(x, scheme):
    twice = np.column_stack([x, x[:, 0]])
    found = find_affine_map(scheme.fit(twice))
    assert found.matrix.shape == (5, 5)
    np.testing.assert_allclose(found(3 * twice), scheme.transform(3 * twice), atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_whitened_direction_without_variance_is_cut_as_scikit_learn_cuts_it(x, dtype):
    scheme = PCA(whiten=True).fit(np.column_stack([x, np.ones(60)]).astype(dtype))
    scheme.explained_variance_[-1] = 0  # or what rounding leaves
    found = find_affine_map(scheme)
    assert np.isfinite(found.matrix).all()
    z = scheme.transform(np.column_stack([x, np.full(60, 2.0)]))
    mapped = found(np.column_stack([x, np.full(60, 2.0)]))
    assert np.abs(z[:, -1]).min() > 1e5
    np.testing.assert_allclose(mapped, z, atol=1e-5 * np.abs(z).max())


def test_parts_are_known_before_a_fit():
    assert find_affine_traits(StandardScaler(with_std=False)) == (True, False, False)
    assert find_affine_traits(make_pipeline(StandardScaler(), PCARotation())) == (True, True, True)


def test_a_class_derived_from_a_linear_one_is_not_taken_for_it():
    class Bent(StandardScaler):
        def transform(self, x, copy=None):
            return super().transform(x) ** 3

    assert find_affine_traits(Bent()) is None


@pytest.mark.parametrize("first", [np.array([2.0, 3.0]), np.array([[1.0, 2.0], [3.0, 4.0]])])
@pytest.mark.parametrize("second", [np.array([5.0, -1.0]), np.array([[0.0, 2.0], [1.0, 1.0]])])
def test_a_map_after_another_is_one_map(first, second):
    one, two = Affine(first, np.array([1.0, -1.0])), Affine(second, np.array([0.5, 2.0]))
    x = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_allclose(one.followed_by(two)(x), two(one(x)), rtol=1e-13)
