"""The directions of a Hessian at the start, and what theory makes of each cost."""

from dataclasses import replace
from types import SimpleNamespace

import autograd.numpy as anp
import numpy as np
import pytest

from normbench import costs
from normbench.normalizers.decomposition import Moments
from normbench.theory import analysis, batches, directions, sizes, spectra
from normbench.theory.analysis import Theory, extreme_curvatures, find_least_cost, theorize
from normbench.theory.directions import AtStart, Directions, UniformCurvature
from normbench.theory.directions import find_uniform_curvature as uniform
from normbench.theory.minimum import minimize, sphere_points
from normbench.theory.separability import proves_separable
from normbench.theory.shared import PointsCache
from tests import door


def sphered(x):
    """Return points x (P, N) sphered, with their variances and axes."""
    return sphere_points(Moments(x))


def points(features=5, count=60):
    rng = np.random.default_rng(2)
    return rng.standard_normal((count, features)) * np.logspace(-2, 1, features) + 1.0


def softmax(x, classes=1, l2=0.0):
    cost = costs.softmax if classes == 1 else costs.multiclass_softmax
    labels = np.arange(len(x)) % max(classes, 2)
    targets = labels if classes > 1 else 2.0 * labels - 1
    return door.problem(cost, x, targets, True, l2, classes)


# Directions


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


def test_vectors_are_of_the_curvatures_that_stand_beside_them():
    train = softmax(points(), 1)
    for start in (np.zeros(train.shape), np.full(train.shape, 0.1)):
        known = at_start(train, start).directions
        matrix = train.hessian(start).matrix()
        assert (np.diff(known.curvature) <= 0).all()
        np.testing.assert_allclose(
            matrix @ known.vectors, known.vectors * known.curvature, atol=1e-8 * matrix.max()
        )


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
    assert isinstance(found, UniformCurvature)
    assert uniform(train, np.full(train.shape, 0.1)) is None
    squares = door.problem(costs.least_squares, points(), np.arange(60.0), False)
    assert uniform(squares, np.full(squares.shape, 0.1)) == pytest.approx((2.0, 1))


def test_small_curvatures_that_differ_between_classes_are_not_uniform():
    def unequal(scores, targets):
        each = anp.log1p(anp.exp(-targets * scores[:, 0]))
        return anp.mean(1e-9 * (2 + targets) * each, axis=-1)

    train = door.problem(unequal, points(), np.tile([-1.0, 1.0], 30), True)
    assert uniform(train, np.zeros(train.shape)) is None


def test_many_classes_are_not_tried(monkeypatch):
    train = softmax(points(), 4)
    monkeypatch.setattr(directions, "FEW_CLASSES", 4)
    assert uniform(train, np.zeros(train.shape)) is not None
    monkeypatch.setattr(directions, "FEW_CLASSES", 3)
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


# Theory


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
        assert (found.exact, found.allows_point_theory, found.has_threshold) == (exact, True, True)
        assert found.lipschitz == pytest.approx(bound * gram, rel=1e-12)
        largest = np.linalg.eigvalsh(train.hessian(np.full(train.shape, 0.1)).matrix())[-1]
        assert found.at_start == pytest.approx(largest, rel=1e-9)
    none = theorize(squares, np.zeros(squares.shape), "none")
    assert (none.note, none.allows_point_theory, none.spectrum) == (analysis.NOT_ASKED, False, None)


def test_both_ends_of_a_spectrum_are_none_where_lanczos_does_not_converge(monkeypatch):
    from scipy.sparse.linalg import ArpackError

    hessian = softmax(points()).hessian(np.zeros((1, 6)))
    values = np.linalg.eigvalsh(hessian.matrix())
    assert extreme_curvatures(hessian) == pytest.approx((values[-1], values[0]), rel=1e-4, abs=1e-4)

    def fail(self):
        raise ArpackError(-9)

    monkeypatch.setattr(type(hessian), "extremes", fail)
    assert np.isnan(extreme_curvatures(hessian)).all()
    monkeypatch.setattr(type(hessian), "largest", fail)
    train = softmax(points())
    found, note = analysis.largest_curvature(train, np.zeros(train.shape))
    assert found is None
    assert note.startswith("Lanczos did not converge (")
    monkeypatch.setattr(type(hessian), "largest", lambda self: np.inf)
    assert analysis.largest_curvature(train, np.zeros(train.shape)) == (
        None,
        "the curvature is not finite",
    )


@pytest.mark.parametrize(
    ("setting", "words"), [("none", "not asked for (theory=none)"), ("auto", "it is not convex")]
)
def test_where_no_least_cost_is_looked_for_the_lowest_that_was_seen_counts(
    setting, words, monkeypatch
):
    x, train = points(), softmax(points())
    if setting == "auto":
        monkeypatch.setattr(door.Problem, "convex", False)
        words = "the cost is not convex"
    found = find_least_cost(train, PointsCache(x), 0.4, setting)
    assert found.source == f"the lowest cost seen in this job; {words}"
    assert (found.value, found.is_solved, found.case) == (0.4, False, "not decided")


def test_points_that_are_in_memory_prove_what_a_descent_found():
    x = np.linspace(-1, 1, 20)[:, None]
    train = door.problem(costs.softmax, x, np.where(x[:, 0] > 0, 1.0, -1.0), True)
    proof = np.array([[0.0, 5.0]])
    found = find_least_cost(train, PointsCache(x), 0.4, "auto", proof)
    assert (found.value, found.at_infinity) == (0.0, True)
    assert find_least_cost(train, PointsCache(x), 0.4, "auto", -proof).value < 1e-6


# The minimum


def test_a_minimum_has_its_scores_where_it_was_reached():
    x = points()
    basis = sphered(x)[0]
    rng = np.random.default_rng(8)
    train = door.problem(costs.least_squares, basis, rng.standard_normal(60), False)
    found = minimize(train)
    full = np.insert(x, 0, 1, axis=1)
    expected = full @ np.linalg.lstsq(full, train.targets, rcond=None)[0]
    np.testing.assert_allclose(found.scores[0], expected, atol=1e-9)
    assert minimize(train, 0).scores is None
    labels = np.where(x[:, 0] > np.median(x[:, 0]), 1.0, -1.0)
    apart = minimize(door.problem(costs.softmax, basis, labels, True))
    assert (apart.at_infinity, apart.is_solved, apart.scores) == (True, True, None)


# Batches and shared points


@pytest.mark.parametrize("batch", [1, 3])
def test_one_point_has_one_limit_however_it_is_drawn(batch):
    x = np.array([[1.0, 2.0, -1.0]])
    limits = batches.mean_square_steps(x, batch)
    assert limits == pytest.approx((1 / 6, 1 / 6))  # 2/L, of L = 2 |x|^2
    assert limits[0] == limits[1]


def test_knees_and_approximate_steps_are_their_formulas():
    assert batches.knee(2.0, 10.0) == 5.0
    assert np.isnan(batches.knee(0.0, 0.0))
    assert batches.approximate_step(4.0, 5.0, 3) == pytest.approx(0.5 * 3 / 7)
    assert batches.noise_floor(0.1, 2.0, 5.0, 4, 0.4) == pytest.approx(0.1 * 2 * 5 / 4 / 0.75)
    assert batches.noise_floor(0.5, 2.0, 5.0, 4, 0.4) == np.inf


def test_facts_are_of_the_points_as_they_are_centred_and_standardized():
    x = np.column_stack([points(), np.full(60, 3.0)])
    facts = PointsCache(x).facts
    full = np.insert(x, 0, 1, axis=1)
    assert facts.raw == pytest.approx(np.linalg.norm(full, 2) ** 2 / 60)
    centred = x - x.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False) ** 2 / 60
    np.testing.assert_allclose(facts.variances, values, atol=1e-12 * values[0])
    assert facts.centred == pytest.approx(max(1.0, values[0]))
    standard = centred[:, :5] / centred[:, :5].std(axis=0)
    assert facts.standard == pytest.approx(max(1, np.linalg.norm(standard, 2) ** 2 / 60))
    assert facts.live == 5
    small = PointsCache(1e-3 * x).facts
    assert (small.centred, small.live) == (1.0, 5)  # the bias has a curvature of its own


def test_a_gap_that_the_start_has_already_takes_no_iteration():
    quadratic = spectra.Quadratic(1.0, np.array([1.0]), np.array([2.0]))
    assert quadratic.excess_by_direction.sum() == 1
    for gap, iterations in ((1.0, 0), (1.1, 0), (0.9, 1)):
        assert spectra.predicted_iterations(quadratic, 0.5, gap) == iterations


@pytest.mark.parametrize("wrong", [None, 0, 5])
def test_a_proof_is_one_for_every_block_of_the_points(wrong, monkeypatch):
    monkeypatch.setattr("normbench.datasets.on_disk.points.BLOCK_BYTES", 16)
    x = np.array([-3.0, -2, -1, 1, 2, 3])[:, None]
    targets = np.sign(x[:, 0])
    if wrong is not None:
        targets[wrong] *= -1
    problem = SimpleNamespace(
        traits=costs.softmax.traits,
        points=door.mapped(x),
        targets=targets,
        scores=lambda weights, rows: weights[:, 1:] @ rows.T + weights[:, :1],
    )
    assert proves_separable(problem, np.array([[0.0, 1.0]])) == (wrong is None)
    assert not proves_separable(
        SimpleNamespace(traits=costs.least_squares.traits), np.zeros((1, 2))
    )


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_directions_without_points_change_no_limit_however_many_there_are(copies):
    x = np.insert(np.random.default_rng(5).standard_normal((20, 3)), 0, 1, axis=1)
    many = np.column_stack([x[:, 0], *[x[:, 1:2] / np.sqrt(copies + 1)] * (copies + 1), x[:, 2:]])
    for batch in (1, 4):
        found, expected = (batches.mean_square_steps(each, batch) for each in (many, x))
        assert found == pytest.approx(expected, rel=1e-6)


def test_a_penalty_on_the_feature_that_separates_brings_the_minimum_back():
    x = np.column_stack([np.linspace(-1, 1, 20), np.cos(np.arange(20.0))])
    basis = sphered(x)[0]
    labels = np.where(x[:, 0] > 0, 1.0, -1.0)
    assert minimize(door.problem(costs.softmax, basis, labels, True)).at_infinity
    turn = np.linalg.lstsq(basis, x - x.mean(axis=0), rcond=None)[0]
    l2 = turn[:, :1] @ turn[:, :1].T
    found = minimize(door.problem(costs.softmax, basis, labels, True, l2))
    assert (found.at_infinity, found.is_solved) == (False, True)
    apart = np.column_stack([x[:, 0], np.where(labels > 0, 0.3, -0.3)])
    one = door.problem(costs.softmax, apart, labels, True, np.array([0.5, 0.0]))
    other = door.problem(costs.softmax, apart, labels, True, np.array([0.5, 0.5]))
    assert minimize(other).value > minimize(one).value
    for l2 in (np.array([0.5, 0.0]), np.array([0.0, 0.5])):
        narrow = door.problem(costs.softmax, apart[:, :1], labels, True, l2[:1])
        assert minimize(narrow).at_infinity == (l2[0] == 0)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_limits_of_scaled_points_are_scaled_with_a_feature_that_stands_twice(scale):
    x = np.random.default_rng(6).standard_normal((20, 3))
    twice = np.column_stack([x, x[:, 0]])
    for batch in (1, 4):
        limits = batches.mean_square_steps(scale * twice, batch)
        expected = np.array(batches.mean_square_steps(twice, batch)) / scale**2
        assert limits == pytest.approx(expected, rel=1e-6)
