"""Components, exemplars, planes and biplots of few points."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.measures import (
    biplot,
    components,
    covariance,
    exemplars,
    inputs,
    parts,
    scheme_faults,
)
from normbench.theory.sizes import MAX_ROWS
from tests.measures.test_closed_forms import finished

RNG = np.random.default_rng(21)


def test_of_many_coordinates_so_many_are_counted_and_the_last_are_all():
    x = np.random.default_rng(2).standard_normal((80, 70)) * np.linspace(1, 3, 70)
    found = components.MEASURE.take(finished(x)).arrays
    assert found["count"].tolist() == sorted({0, *(round(70 ** (n / 23)) for n in range(24))})
    variances = np.sort(x.var(axis=0))[::-1]
    shares = np.concatenate([[0.0], np.cumsum(variances)]) / variances.sum()
    assert found["share"] == pytest.approx(shares[found["count"]])
    # Each feature is a coordinate, and those of the largest variance come first.
    order = np.argsort(-x.var(axis=0))
    for count, built in zip(found["count"], found["built"]):
        wanted = np.zeros(70)
        wanted[order[:count]] = x[0, order[:count]]
        np.testing.assert_allclose(built, wanted, rtol=1e-6)


def test_a_component_that_adds_nothing_is_0():
    class Forgetful:
        def inverse_transform(self, z):
            return z @ np.diag([2.0, 0.0])

    x = RNG.standard_normal((9, 2))
    made = finished(x)
    object.__setattr__(made, "scheme", Forgetful())
    found = components.MEASURE.take(made).arrays
    assert found["components"].tolist() == [[1, 0], [0, 0]]
    assert found["weights"] == pytest.approx([2 * x[0, 0], 0])


@pytest.mark.parametrize(
    ("measure", "features", "applies"),
    [
        (covariance, MAX_ROWS, True),
        (covariance, MAX_ROWS + 1, False),
        (parts, MAX_ROWS, True),
        (parts, MAX_ROWS + 1, False),
    ],
)
def test_what_takes_a_matrix_of_the_features_is_of_so_many(measure, features, applies):
    dataset = SimpleNamespace(x=np.broadcast_to(0.0, (3, features)))
    settings, theory = SimpleNamespace(theory="auto"), SimpleNamespace(allows_point_theory=True)
    descent = SimpleNamespace(settings=settings, theory=theory)
    made = SimpleNamespace(dataset=dataset, descent=descent)
    assert measure.MEASURE.applies(made) == applies
    descent.theory.allows_point_theory = False
    assert measure.MEASURE.applies(made) == (applies and measure is parts)


def test_each_exemplar_is_the_nearest_point_in_standard_deviations_that_is_left():
    x = np.random.default_rng(6).standard_normal((60, 2)) * [100.0, 0.1]
    found = exemplars.MEASURE.take(finished(x)).arrays
    left = list(range(60))
    for wanted, place in zip(found["wanted"], found["place"]):
        away = [np.sum(((x[n] - wanted) / x.std(axis=0)) ** 2) for n in left]
        assert left.pop(int(np.argmin(away))) == place


@pytest.mark.parametrize(
    ("points", "features", "fits"), [(25, 2, True), (24, 2, False), (25, 1, False)]
)
def test_exemplars_are_of_25_points_and_of_two_features_at_least(points, features, fits):
    dataset = SimpleNamespace(x=np.zeros((points, features)), name="made")
    told = exemplars.MEASURE.reason_against(dataset)
    words = f"takes 25 points of 2 features at least; made has {points} of {features}"
    assert told == ("" if fits else words)


def test_a_ridge_is_told_of_a_scheme_that_has_one():
    values = np.array([3.0, 1.0, 0.0])
    for scheme in (
        SimpleNamespace(),
        SimpleNamespace(ridge=0.1),
        SimpleNamespace(eigenvalues_=values),
        SimpleNamespace(ridge="auto", eigenvalues_=values),
        SimpleNamespace(ridge=0.1, eigenvalues_=values, dropped_=[True] * 3),
    ):
        assert not scheme_faults._find_ridge_effect(scheme).metrics
    flat = SimpleNamespace(ridge=0.5, eigenvalues_=np.zeros(2))
    found = scheme_faults._find_ridge_effect(flat)
    assert np.isnan(found.metrics[names.RIDGE_SHARE.key])
    kept_two = SimpleNamespace(ridge=1, eigenvalues_=values, dropped_=[False, False, True])
    found = scheme_faults._find_ridge_effect(kept_two)
    assert found.metrics[names.LIVE_DIRECTIONS.key] == 2
    assert found.metrics[names.RIDGE_SMALLEST.key] == 1 / (1 + 1)
    assert found.metrics[names.RIDGE_TOUCHED.key] == 2
    assert found.metrics[names.RIDGE_SHARE.key] == pytest.approx(1 / 3)
    np.testing.assert_allclose(found.series[names.RIDGE_VARIANCE.key][1], [3 / 4, 1 / 2])


@pytest.mark.parametrize(("width", "has_two"), [(1, False), (2, True), (3, True)])
def test_a_plane_takes_two_coordinates_and_a_biplot_two_features(width, has_two):
    x = np.zeros((4, width))
    assert inputs.has_plane(SimpleNamespace(z=x)) == has_two
    told = biplot.MEASURE.reason_against(SimpleNamespace(x=x, name="made"))
    assert told == ("" if has_two else "is of two features and more; made has one")


def test_points_of_a_biplot_that_do_not_vary_are_in_its_middle():
    arrays = biplot.MEASURE.take(finished(np.full((5, 2), 3.0))).arrays
    for name in ("points", "loadings", "shares", "correlation"):
        assert not arrays[name].any()


def test_points_are_drawn_alike_each_time():
    drawn = np.random.default_rng(0).choice(3000, 2000, replace=False)
    assert inputs.sample_indices(3000).tolist() == sorted(drawn.tolist())
