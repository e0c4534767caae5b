"""Components, exemplars, planes and biplots of few points."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.measures.data import ridge
from normbench.measures.points import biplot, components
from tests.measures.test_closed_forms import finished


def test_of_many_coordinates_so_many_are_counted_and_the_last_are_all():
    x = np.random.default_rng(2).standard_normal((80, 70)) * np.linspace(1, 3, 70)
    found = components.take(finished(x)).arrays
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


def test_a_ridge_is_told_of_a_scheme_that_has_one():
    values = np.array([3.0, 1.0, 0.0])
    for scheme in (
        SimpleNamespace(),
        SimpleNamespace(ridge=0.1),
        SimpleNamespace(eigenvalues_=values),
        SimpleNamespace(ridge="auto", eigenvalues_=values),
        SimpleNamespace(ridge=0.1, eigenvalues_=values, dropped_=[True] * 3),
    ):
        assert not ridge.take(SimpleNamespace(scheme=scheme)).metrics
    flat = SimpleNamespace(ridge=0.5, eigenvalues_=np.zeros(2))
    found = ridge.take(SimpleNamespace(scheme=flat))
    assert np.isnan(found.metrics[names.RIDGE_SHARE.key])
    kept_two = SimpleNamespace(ridge=1, eigenvalues_=values, dropped_=[False, False, True])
    found = ridge.take(SimpleNamespace(scheme=kept_two))
    assert found.metrics[names.LIVE_DIRECTIONS.key] == 2
    assert found.metrics[names.RIDGE_SMALLEST.key] == 1 / (1 + 1)
    assert found.metrics[names.RIDGE_TOUCHED.key] == 2
    assert found.metrics[names.RIDGE_SHARE.key] == pytest.approx(1 / 3)
    np.testing.assert_allclose(found.series[names.RIDGE_VARIANCE.key][1], [3 / 4, 1 / 2])


def test_points_of_a_biplot_that_do_not_vary_are_in_its_middle():
    arrays = biplot.take(finished(np.full((5, 2), 3.0))).arrays
    for name in ("points", "loadings", "shares", "correlation"):
        assert not arrays[name].any()
