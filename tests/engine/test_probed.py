"""A fitted scheme's map, found by trying it, and what it does to the points."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench.choices import build, options
from normbench.engine.scheme import (
    Effects,
    find_effects,
    probe,
)
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


@pytest.mark.parametrize("bent", [0, 1, 2])
def test_a_scheme_that_bends_one_feature_is_not_affine(bent):
    def bend(x):
        return np.where(np.arange(3) == bent, x**3, x)

    assert probed(FunctionTransformer(bend))[0] is None
    assert probed("quantile")[0] is None


class Affine:
    """A scheme that is a map; broken: what it gives in its place for the points that it sees."""

    def __init__(self, matrix, offset=0.0, broken=None):
        self.matrix, self.offset, self.broken = matrix, offset, broken

    def transform(self, x):
        z = x @ self.matrix.T + self.offset
        return z if self.broken is None else self.broken(z)


MATRIX = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]])


def fitted(scheme, z=None, spread=(1.0, 2.0, 0.5), centre=(5.0, -1.0, 0.0)):
    x = np.random.default_rng(14).standard_normal((7, 3)) * spread + centre
    z = x @ MATRIX.T + [7.0, 0.1] if z is None else z(x)
    return probe(scheme, x, z), x, z


@pytest.mark.parametrize("spread", [(1.0, 2.0, 0.5), (0.0, 0.0, 0.0)])
def test_a_map_is_found_by_a_step_along_each_feature(spread):
    """A constant feature gets a step of its own size, or 1."""
    found, x, _ = fitted(Affine(MATRIX, np.array([7.0, 0.1])), spread=spread)
    np.testing.assert_allclose(found.matrix, MATRIX, atol=1e-9)
    np.testing.assert_allclose(found.centre, x.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(found.image, MATRIX @ found.centre + [7.0, 0.1], rtol=1e-14)


def refuse(z):
    raise ValueError("unseen points")


@pytest.mark.parametrize(
    "broken",
    [
        refuse,
        lambda z: z[:, :1],
        lambda z: z[1:],
        lambda z: np.where(np.arange(len(z))[:, None] == 2, np.inf, z),
        lambda z: np.full(z.shape, np.nan),
    ],
)
def test_a_scheme_that_fails_on_the_steps_has_no_map(broken):
    assert fitted(Affine(MATRIX, np.array([7.0, 0.1]), broken))[0] is None


@pytest.mark.parametrize(("error", "is_map"), [(0.0, True), (1e-10, True), (1e-7, False)])
@pytest.mark.parametrize("feature", [0, 1])
def test_a_map_gives_the_points_to_a_share_of_their_size(error, is_map, feature):
    def with_error(x):
        z = x @ MATRIX.T + [7.0, 0.1]
        z[3, feature] += error * np.abs(z).max()
        return z

    found, _, _ = fitted(Affine(MATRIX, np.array([7.0, 0.1])), with_error)
    assert (found is not None) == is_map


@pytest.mark.parametrize(("error", "is_map"), [(1e-6, True), (1e-3, False)])
def test_points_of_single_precision_may_be_as_far_off_as_their_rounding(error, is_map):
    def rounded(x):
        z = x @ MATRIX.T + [7.0, 0.1]
        z[3] *= 1 + error
        return z.astype(np.float32)

    found, _, _ = fitted(Affine(MATRIX, np.array([7.0, 0.1])), rounded)
    assert (found is not None) == is_map
