"""A fitted scheme's map, found by trying it, and what it does to the points."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench.choices import build, options
from normbench.engine.scheme.probed import Effects, find_effects, probe
from normbench.normalizers import PCARotation

POINTS = np.random.default_rng(3).standard_normal((80, 3)) @ np.triu(np.ones((3, 3))) * 5 + 7


def probed(scheme):
    made = build("normalizer", options("normalizer", scheme)) if isinstance(scheme, str) else scheme
    z = made.fit(POINTS).transform(POINTS)
    return probe(made, POINTS, z), z


@pytest.mark.parametrize(
    ("scheme", "effect"),
    [
        ("identity", Effects(False, False, False, False)),
        ("centre", Effects(True, True, False, False)),
        ("standard", Effects(True, True, True, False)),
        ("minmax", Effects(False, True, True, False)),
        ("maxabs", Effects(False, False, True, False)),
        ("pca", Effects(True, True, False, True)),
        ("pca_sphere", Effects(True, True, True, True)),
        ("zca_sphere", Effects(True, True, True, True)),
        (PCARotation(components=2), Effects(True, True, False, True)),
        (ColumnTransformer([("kept", "passthrough", [2, 0])]), Effects(False, False, False, False)),
        (
            ColumnTransformer([("s", StandardScaler(), [2])], remainder="passthrough"),
            Effects(False, True, True, False),
        ),
    ],
)
def test_a_map_gives_the_points_and_is_told_by_what_it_does(scheme, effect):
    found, z = probed(scheme)
    assert found.matrix.shape == (z.shape[1], 3)
    np.testing.assert_allclose((POINTS - found.centre) @ found.matrix.T + found.image, z, atol=1e-9)
    assert find_effects(found, z) == effect


def test_a_direction_that_is_scaled_down_is_no_dropped_one():
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    for factor, scales in ((1e-6, True), (0.0, False)):
        small = FunctionTransformer(lambda x, by=factor: (x @ turn) * [1.0, 1.0, by])
        assert find_effects(*probed(small)) == Effects(False, False, scales, True)


@pytest.mark.parametrize("shift", [[0, 5.0, 0], -POINTS.mean(axis=0) * [1, 1, 0]])
def test_what_shifts_some_features_alone_does_not_centre(shift):
    found = find_effects(*probed(FunctionTransformer(lambda x: x + shift)))
    assert found == Effects(centres=False, shifts=True, scales=False, rotates=False)


@pytest.mark.parametrize("bent", [0, 1, 2])
def test_a_scheme_that_bends_one_feature_is_not_affine(bent):
    def bend(x):
        return np.where(np.arange(3) == bent, x**3, x)

    assert probed(FunctionTransformer(bend))[0] is None
    assert probed("quantile")[0] is None
