"""A scheme on some columns: these as under the scheme alone, the others as they are."""

import numpy as np
import pytest

from normbench.choices import build, options
from normbench.engine.scheme.applying import fit_scheme
from normbench.normalizers import FeatureSelection, OnColumns, PCARotation, PCASphere
from normbench.normalizers.affine import find_affine_map, find_affine_traits
from normbench.normalizers.decomposition import Moments
from tests import door
from tests.cases import names

NAMES = tuple("abcd")
CHOSEN, OTHERS = [0, 2], [1, 3]


def scheme(name):
    return build("normalizer", options("normalizer", name))


def on_columns(of, positions=CHOSEN):
    selection = FeatureSelection(positions)
    selection.select(positions, NAMES)
    return OnColumns(of, selection)


@pytest.fixture
def x():
    rng = np.random.default_rng(5)
    return rng.standard_normal((80, 4)) @ rng.standard_normal((4, 4)) * [1, 10, 0.1, 3] + 2


@pytest.mark.parametrize("name", names("normalizer"))
def test_every_scheme_has_its_columns_and_the_others_pass_through(name, x):
    some = on_columns(scheme(name)).fit(x)
    z, alone = some.transform(3 * x), scheme(name).fit(x[:, CHOSEN]).transform(3 * x[:, CHOSEN])
    np.testing.assert_array_equal(z[:, OTHERS], 3 * x[:, OTHERS])
    np.testing.assert_array_equal(z[:, CHOSEN], alone)
    assert list(some.get_feature_names_out(NAMES)[OTHERS]) == ["b", "d"]


@pytest.mark.parametrize("name", names("normalizer"))
def test_an_affine_scheme_stays_affine(name, x):
    some = on_columns(scheme(name)).fit(x)
    traits, found = find_affine_traits(some), find_affine_map(some)
    assert traits == find_affine_traits(scheme(name))
    assert (found is None) == (traits is None)
    if found is not None:
        np.testing.assert_allclose(found(3 * x), some.transform(3 * x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", names("normalizer"))
def test_it_learns_the_same_from_a_memory_map(name, x):
    whole, mapped = (
        door.points_under(on_columns(scheme(name)), points) for points in (x, door.mapped(x))
    )
    np.testing.assert_allclose(mapped, whole, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["standard", "minmax", "pca_sphere", "quantile"])
def test_what_has_an_inverse_has_it_on_columns_too(name, x):
    some = on_columns(scheme(name)).fit(x)
    np.testing.assert_allclose(some.inverse_transform(some.transform(x)), x, atol=1e-6)


def test_what_has_none_has_none():
    assert not hasattr(on_columns(scheme("unit_norm")), "inverse_transform")


def test_fewer_features_stand_before_the_others(x):
    some = on_columns(PCARotation(components=1)).fit(x)
    z = some.transform(x)
    assert z.shape == (80, 3)
    np.testing.assert_array_equal(z[:, 1:], x[:, OTHERS])
    np.testing.assert_allclose(find_affine_map(some)(x), z, atol=1e-9)
    assert list(some.get_feature_names_out(NAMES)[1:]) == ["b", "d"]
    back = some.inverse_transform(z)
    np.testing.assert_array_equal(back[:, OTHERS], x[:, OTHERS])
    np.testing.assert_allclose(some.transform(back), z, atol=1e-9)


def test_no_column_leaves_all_as_they_are(x):
    some = on_columns(PCASphere(), []).fit(x)
    np.testing.assert_array_equal(some.transform(x), x)
    np.testing.assert_array_equal(some.inverse_transform(x), x)
    np.testing.assert_array_equal(find_affine_map(some)(x), x)
    learned = on_columns(PCASphere(), [])
    fit_scheme(learned, door.mapped(x), Moments(door.mapped(x)))
    np.testing.assert_array_equal(learned.transform(x), x)


def test_points_keep_their_type(x):
    for name in ("standard", "pca_sphere"):
        assert on_columns(scheme(name)).fit(x).transform(x.astype("float32")).dtype == "float32"
