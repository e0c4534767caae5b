"""A scheme on some columns: these as under the scheme alone, the others as they are."""

import numpy as np
import pytest

from normbench.choices import build, options
from normbench.normalizers import FeatureSelection, OnColumns, PCARotation, PCASphere
from normbench.normalizers.on_columns import name_scheme
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
    if name != "identity":  # which names nothing
        assert list(some.get_feature_names_out(NAMES)[OTHERS]) == ["b", "d"]


@pytest.mark.parametrize("name", names("normalizer"))
def test_it_learns_the_same_from_a_memory_map(name, x):
    whole, mapped = (
        door.points_under(on_columns(scheme(name)), points) for points in (x, door.mapped(x))
    )
    np.testing.assert_allclose(mapped, whole, rtol=1e-7, atol=1e-7)


def test_fewer_features_stand_before_the_others(x):
    some = on_columns(PCARotation(components=1)).fit(x)
    z = some.transform(x)
    assert z.shape == (80, 3)
    np.testing.assert_array_equal(z[:, 1:], x[:, OTHERS])
    assert list(some.get_feature_names_out(NAMES)[1:]) == ["b", "d"]


def test_a_selection_is_of_the_features_of_its_data_set():
    selection = FeatureSelection("b and d", "dataset.columns")
    selection.select([1, 3], NAMES)
    assert selection(np.zeros((2, 4))) == [1, 3]
    assert repr(selection) == "'b and d' at (1, 3)"
    with pytest.raises(ValueError, match="its columns are of 4 features, and it gets 3; "):
        selection(np.zeros((2, 3)))
    assert name_scheme(OnColumns(PCASphere(), selection)) == "PCASphere"


def test_points_keep_their_type(x):
    for name in ("standard", "pca_sphere"):
        assert on_columns(scheme(name)).fit(x).transform(x.astype("float32")).dtype == "float32"
