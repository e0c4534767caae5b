"""What theory makes of each cost: its curvature, its threshold, directions at the start."""

from dataclasses import replace

import autograd.numpy as anp
import numpy as np
import pytest

from normbench import costs
from normbench.theory import analysis, sizes, spectra
from normbench.theory.analysis import (
    NO_CURVATURE,
    AtStart,
    Directions,
    Theory,
    theorize,
)
from normbench.theory.analysis import find_uniform_curvature as uniform
from tests import door


def points(features=5, count=60):
    rng = np.random.default_rng(2)
    return rng.standard_normal((count, features)) * np.logspace(-2, 1, features) + 1.0


def softmax(x, classes=1, l2=0.0):
    cost = costs.softmax if classes == 1 else costs.multiclass_softmax
    labels = np.arange(len(x)) % max(classes, 2)
    targets = labels if classes > 1 else 2.0 * labels - 1
    return door.problem(cost, x, targets, True, l2, classes)


def at_start(train, start=None):
    start = np.zeros(train.shape) if start is None else start
    return AtStart(train, start, theorize(train, start, "full").spectrum)


@pytest.mark.parametrize("classes", [1, 3])
def test_gradients_have_their_share_along_each_direction(classes):
    train = softmax(points(), classes)
    for start in (np.zeros(train.shape), np.full(train.shape, 0.1)):
        known = at_start(train, start).directions
        gradients = np.random.default_rng(3).standard_normal((4, *train.shape))
        along = known.squared_components(gradients)
        assert along.shape == (4, len(known.curvature))
        matrix = train.hessian(start).matrix()
        values, vectors = np.linalg.eigh(matrix)
        for run, gradient in enumerate(gradients):
            if known.multiplicity == 1:
                expected = (gradient.ravel() @ vectors[:, ::-1]) ** 2
            else:
                expected = ((gradient @ known.vectors) ** 2).sum(axis=0)
            np.testing.assert_allclose(along[run], expected[: len(along[run])], atol=1e-8)
        if known.multiplicity > 1:  # all of a gradient's length lies along them
            np.testing.assert_allclose(along.sum(axis=1), (gradients**2).sum(axis=(1, 2)))
    np.testing.assert_allclose(known.curvature, values[::-1][: len(known.curvature)], rtol=1e-6)
    assert known.lowest == pytest.approx(values[0], abs=1e-12)


@pytest.mark.parametrize(("lowest", "indefinite"), [(0.0, False), (-1e-16, False), (-1e-13, True)])
def test_a_cost_curves_down_beyond_rounding(lowest, indefinite):
    known = Directions(np.array([1.0, 0.5]), np.eye(4)[:, :2], 1, lowest)
    assert known.indefinite == indefinite
    flat = Directions(np.empty(0), np.empty((4, 0)), 1, lowest)
    assert flat.indefinite == (lowest < 0)


def test_too_many_weights_have_no_directions_unless_all_points_curve_alike(monkeypatch):
    train = softmax(points(), 3)
    away = np.full(train.shape, 0.1)
    monkeypatch.setattr(sizes, "MAX_ROWS", train.hessian(away).size)
    assert at_start(train, away).directions is not None
    monkeypatch.setattr(sizes, "MAX_ROWS", 17)
    assert at_start(train, away).directions is None
    assert replace(at_start(train, away), theory_setting="full").directions is not None
    assert at_start(train).directions is not None


@pytest.mark.parametrize(
    ("classes", "expected"), [(1, (0.25, 1)), (2, (0.5, 1)), (3, (1 / 3, 2)), (5, (0.2, 4))]
)
def test_at_zero_weights_every_point_has_the_curvature_of_its_classes(classes, expected):
    train = softmax(points(), classes)
    found = uniform(train, np.zeros(train.shape))
    assert found == pytest.approx(expected)
    assert uniform(train, np.full(train.shape, 0.1)) is None
    squares = door.problem(costs.least_squares, points(), np.arange(60.0), False)
    assert uniform(squares, np.full(squares.shape, 0.1)) == pytest.approx((2.0, 1))


def test_small_curvatures_that_differ_between_classes_are_not_uniform():
    def unequal(scores, targets):
        each = anp.log1p(anp.exp(-targets * scores[:, 0]))
        return anp.mean(1e-9 * (2 + targets) * each, axis=-1)

    train = door.problem(unequal, points(), np.tile([-1.0, 1.0], 30), True)
    assert uniform(train, np.zeros(train.shape)) is None


def test_a_spectrum_that_is_not_whole_gives_no_directions():
    train = softmax(points())
    start = np.zeros(train.shape)
    whole = theorize(train, start, "full").spectrum
    assert AtStart(train, start, whole).uniform_curvature == pytest.approx((0.25, 1))
    for spectrum in (
        None,
        whole._replace(is_complete=False),
        whole._replace(values=np.array([1.0, 1e-25])),
    ):
        assert AtStart(train, start, spectrum).uniform_curvature is None
    for l2, alike in ((0.5, False), (0.0, True)):  # a quarter is the bound; a third is below it
        train = softmax(points(), 3, l2)
        assert (at_start(train).uniform_curvature is not None) == alike
    train = softmax(points(), 1, 0.5)
    assert at_start(train).uniform_curvature == pytest.approx((0.25, 1))


@pytest.mark.parametrize("l2", [0.0, 0.5, np.array([0, 0, 2.0, 0, 0])], ids=str)
@pytest.mark.parametrize("classes", [1, 3])
def test_directions_at_zero_weights_are_those_of_the_hessian(classes, l2):
    x, cost = points(), costs.multiclass_softmax if classes > 1 else costs.softmax
    y = np.random.default_rng(4).integers(0, max(classes, 2), len(x))
    train = door.problem(cost, x, y if classes > 1 else 2.0 * y - 1, True, l2, classes)
    start = np.zeros(train.shape)
    found = AtStart(train, start, theorize(train, start, "full").spectrum).directions
    expected = np.linalg.eigvalsh(train.hessian(start).matrix())[::-1]
    curvatures = np.sort(np.repeat(found.curvature, found.multiplicity))[::-1]
    np.testing.assert_allclose(
        curvatures, expected[: len(curvatures)], rtol=1e-6, atol=1e-9 * expected[0]
    )
    assert len(curvatures) >= np.count_nonzero(expected > 1e-6 * expected[0])


def test_a_threshold_is_that_of_the_bound_or_else_of_the_start():
    bound = Theory(lipschitz=4.0, at_start=1.0)
    assert (bound.threshold, bound.threshold_source) == (0.5, "global bound")
    start = Theory(at_start=1.0)
    assert (start.threshold, start.threshold_source) == (2.0, "curvature at the start")
    exact = Theory(lipschitz=4.0, exact=True)
    assert exact.threshold_source == "exact: the curvature is the same everywhere"
    assert Theory(lipschitz=4.0, has_threshold=False).threshold is None
    assert Theory().threshold is None
    assert Theory(lipschitz=0.0).threshold is None


def test_each_cost_has_the_theory_that_its_curvature_allows():
    x = points()
    gram = np.linalg.eigvalsh(spectra.gram(x))[-1]
    squares = door.problem(costs.least_squares, x, np.arange(60.0), False)
    for train, exact, bound in ((squares, True, 2.0), (softmax(x), False, 0.25)):
        found = theorize(train, np.full(train.shape, 0.1), "full")
        assert (found.exact, found.has_threshold) == (exact, True)
        assert found.lipschitz == pytest.approx(bound * gram, rel=1e-12)
        largest = np.linalg.eigvalsh(train.hessian(np.full(train.shape, 0.1)).matrix())[-1]
        assert found.at_start == pytest.approx(largest, rel=1e-9)
    none = theorize(squares, np.zeros(squares.shape), "none")
    assert (none.note, none.spectrum) == (analysis.NOT_ASKED, None)


def test_a_curvature_is_unknown_where_lanczos_does_not_converge(monkeypatch):
    from scipy.sparse.linalg import ArpackError

    def fail(self):
        raise ArpackError(-9)

    train = softmax(points())
    hessian = train.hessian(np.zeros((1, 6)))
    monkeypatch.setattr(type(hessian), "largest", fail)
    found, note = analysis.largest_curvature(train, np.zeros(train.shape))
    assert found is None
    assert note.startswith("Lanczos did not converge (")
    monkeypatch.setattr(type(hessian), "largest", lambda self: np.inf)
    found = analysis.largest_curvature(train, np.zeros(train.shape))
    assert found == (None, "the curvature is not finite")


@pytest.mark.parametrize("l2", [0.0, 0.5, np.array([0, 0, 2.0, 0, 0])], ids=str)
@pytest.mark.parametrize("name", ["softmax", "multiclass_softmax", "least_squares", "weighted"])
def test_at_zero_weights_the_curvature_is_the_hessians_largest(name, l2, monkeypatch):
    def weighted(scores, targets):  # its second derivatives are others for each class
        return anp.sum((3 + 2 * targets) * anp.log1p(anp.exp(-targets * scores[:, 0])), axis=-1)

    x, cost = points(), getattr(costs, name, weighted)
    classes = 3 if name == "multiclass_softmax" else 1
    y = np.random.default_rng(4).integers(0, max(classes, 2), len(x))
    train = door.problem(cost, x, y if classes > 1 else 2.0 * y - 1, True, l2, classes)
    start = np.zeros(train.shape)
    wanted = train.hessian(start).largest()
    if (
        not np.any(l2) and cost is not weighted
    ):  # then the Gram matrix's largest eigenvalue gives it
        monkeypatch.setattr(door.Problem, "hessian", None)
    found = theorize(train, start, "full")
    assert found.at_start == pytest.approx(wanted, rel=1e-9)


def test_a_cost_of_linear_pieces_has_no_theory_of_steps():
    x = points()
    train = door.problem(costs.perceptron, x, np.sign(x[:, 0] - 1), True)
    found = theorize(train, np.ones(train.shape), "full")
    assert (found.note, found.at_start, found.threshold) == (NO_CURVATURE, None, None)
    assert found.spectrum is not None


def test_few_points_of_many_features_have_a_whole_spectrum(monkeypatch):
    x = points(30, 20)
    train = door.problem(costs.softmax, x, np.ones(20), True)
    for most, is_complete in ((25, True), (5, False)):
        monkeypatch.setattr(sizes, "MAX_ROWS", most)
        found = theorize(train, np.ones(train.shape), "auto").spectrum
        assert found.is_complete == is_complete
        expected = np.linalg.eigvalsh(spectra.gram(x))[::-1][: len(found.values)] / 4
        np.testing.assert_allclose(found.values, expected, rtol=1e-8)
