"""What theory predicts, against what descent does."""

import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import autograd.numpy as anp
import numpy as np
import pytest

from normbench import costs
from normbench.engine.descent import descend
from normbench.optimizers import gradient_descent
from normbench.theory import spectra
from normbench.theory.analysis import (
    NO_CURVATURE,
    _compute_spectrum,
    _theorize_start,
    curvature_work,
    facts_work,
    theorize,
)
from normbench.theory.budget import Budget, Work
from normbench.theory.directions import AtStart
from normbench.theory.shared import PointsCache
from tests import door


def points(features=5, count=60):
    rng = np.random.default_rng(2)
    return rng.standard_normal((count, features)) * np.logspace(-2, 1, features) + 1.0


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
    found = theorize(train, start, Budget(Work(np.inf, np.inf)))
    assert found.at_start == pytest.approx(wanted, rel=1e-9)


def test_at_a_start_with_some_zeros_the_curvature_is_the_hessians_largest():
    x = points()
    train = door.problem(costs.softmax, x, np.where(np.arange(len(x)) % 2, 1.0, -1.0), True)
    start = np.zeros(train.shape)
    start[0, :2] = 0.7, -0.4
    found = theorize(train, start, Budget(Work(np.inf, np.inf)))
    assert found.at_start == pytest.approx(train.hessian(start).largest(), rel=1e-9)
    zero = theorize(train, np.zeros(train.shape), Budget(Work(np.inf, np.inf)))
    assert found.at_start < 0.99 * zero.at_start


@pytest.mark.parametrize("l2", [0.0, 0.5, np.array([0, 0, 2.0, 0, 0])], ids=str)
@pytest.mark.parametrize("classes", [1, 3])
def test_directions_at_zero_weights_are_those_of_the_hessian(classes, l2):
    x, cost = points(), costs.multiclass_softmax if classes > 1 else costs.softmax
    y = np.random.default_rng(4).integers(0, max(classes, 2), len(x))
    train = door.problem(cost, x, y if classes > 1 else 2.0 * y - 1, True, l2, classes)
    start = np.zeros(train.shape)
    spectrum = theorize(train, start, Budget(Work(np.inf, np.inf))).spectrum
    found = AtStart(train, start, spectrum).directions
    expected = np.linalg.eigvalsh(train.hessian(start).matrix())[::-1]
    curvatures = np.sort(np.repeat(found.curvature, found.multiplicity))[::-1]
    np.testing.assert_allclose(
        curvatures, expected[: len(curvatures)], rtol=1e-6, atol=1e-9 * expected[0]
    )
    assert len(curvatures) >= np.count_nonzero(expected > 1e-6 * expected[0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_points_whose_squares_overflow_have_no_theory(sign):
    x = points()
    x[3, 1] = sign * 1e160
    train = door.problem(costs.softmax, x, np.ones(60), True)
    found = theorize(train, np.zeros(train.shape), Budget(Work(np.inf, np.inf)))
    assert "too large to be squared" in found.note
    assert not found.allows_point_theory
    assert found.threshold is None


@pytest.mark.parametrize(("most", "seen"), [(2000, {0, 2, 3}), (5, {0, 1})])
def test_a_spectrum_is_as_much_work_whatever_the_scores_of_a_point(most, seen, monkeypatch):
    """A pass over points of C scores is the work of C passes; more of them tell more digits."""
    monkeypatch.setattr(spectra, "MAX_SPECTRUM_FEATURES", most)
    x = points(30, 500)

    def told(work, classes):
        train = door.problem(
            costs.multiclass_softmax, x, np.arange(500) % classes, True, 0.0, classes
        )
        budget = Budget(Work(work / classes, np.inf))
        found = theorize(train, np.ones(train.shape), budget).spectrum
        return 0 if found is None else 1 + found.is_complete + (found.root is not None)

    works = np.geomspace(1, 1000, 20)
    kinds = [[told(work, classes) for work in works] for classes in (2, 20)]
    assert kinds[0] == kinds[1] == sorted(kinds[0])
    assert set(kinds[0]) == seen


def works(x):
    """Return the work of the three ways to a spectrum, by what each tells."""
    asked = {}

    class Poor(Budget):
        def allows(self, work):
            return self.affords("singular values", work)

        def affords(self, what, work):
            asked[what] = work
            return False

    assert _compute_spectrum(x, 1, Poor(Work())) is None
    return asked


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("points", "features"), [(400, 100), (300, 300), (60, 600)])
def test_a_spectrum_takes_the_memory_that_it_is_said_to_take(points, features, dtype):
    x = np.random.default_rng(0).standard_normal((points, features)).astype(dtype)
    said = works(x)
    ways = {"singular values": spectra.spectrum, "rank and condition number": spectra.gram_spectrum}
    for what, way in ways.items():
        way(x)
        tracemalloc.start()
        way(x)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.4 < held / said[what].memory < 1.6, what  # measured: 0.5 to 1.5
    # No copy of float64: products of one column.
    assert said["L"].memory == (0 if dtype == np.float64 else 2 * x.nbytes)


@pytest.mark.parametrize(("points", "features"), [(5000, 20), (600, 560)])
def test_facts_take_the_memory_that_they_are_said_to_take(points, features):
    known = PointsCache(np.random.default_rng(0).standard_normal((points, features)))
    tracemalloc.start()
    assert known.facts.live == features
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = facts_work(SimpleNamespace(shape=(1, 1)), known.x).memory
    assert 0.9 < held / said < 1.2  # measured: 1.0 and 1.1


def test_a_cost_of_linear_pieces_has_no_theory_of_steps():
    x = points()
    train = door.problem(costs.perceptron, x, np.sign(x[:, 0] - 1), True)
    found = theorize(train, np.ones(train.shape), Budget(Work(np.inf, np.inf)))
    assert (found.note, found.at_start, found.threshold) == (NO_CURVATURE, None, None)
    assert found.spectrum is not None


@pytest.mark.parametrize(
    ("what", "more"), [("singular values", 3.5), ("rank and condition number", 8.5)]
)
def test_a_spectrum_is_work_by_its_features_and_more_of_few_points(what, more):
    """A matrix from many points; of few, the decomposition of the matrix is most of the work."""
    shapes = ((10**6, 99), (10**6, 199), (200, 199))
    many, twice, few = (works(np.broadcast_to(1.0, shape))[what].passes for shape in shapes)
    assert twice / many == pytest.approx(2, rel=0.01)
    assert few / twice == pytest.approx(more, rel=0.01)


@pytest.mark.parametrize(
    ("l2", "largest"), [(0.1, 2.7), ([1.0, 2.0], 6.5), ([[2.0, 1.0], [1.0, 2.0]], 8.5)]
)
def test_where_the_largest_alone_is_known_a_penalty_adds_its_own_largest(l2, largest):
    known = spectra.Spectrum(np.array([5.0]), is_complete=False)
    found = spectra.penalize(known, 0.5, np.array(l2), points(2))
    assert found.largest == pytest.approx(largest)
    assert not found.is_complete


def test_a_penalty_of_rounding_is_none():
    axes = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    l2 = axes[:, :2] @ np.diag([1.0, 3.0]) @ axes[:, :2].T
    rows = spectra.penalty_root(l2, 5)
    np.testing.assert_allclose(rows.T @ rows, np.pad(2 * l2, (1, 0)), atol=1e-14)
    assert np.count_nonzero(rows.any(axis=1)) == 2


@pytest.mark.parametrize("way", [spectra.spectrum, spectra.gram_spectrum])
def test_a_penalty_on_every_feature_leaves_no_direction_dead(way):
    x = points(3)
    twice = np.column_stack([x, x[:, 0]])
    found = spectra.penalize(way(twice), 2.0, 0.1, twice)
    whole = 2 * spectra.gram(twice) + np.diag([0.0, 0.2, 0.2, 0.2, 0.2])
    assert way(twice).rank == 4
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(whole)[::-1], rtol=1e-9)


def test_few_points_of_many_features_have_a_whole_spectrum(monkeypatch):
    monkeypatch.setattr(spectra, "MAX_SPECTRUM_FEATURES", 25)
    train = door.problem(costs.softmax, points(30, 20), np.ones(20), True)
    found = theorize(train, np.ones(train.shape), Budget(Work(np.inf, np.inf)))
    assert found.spectrum.is_complete


def test_the_gram_matrix_is_that_of_points_with_a_bias():
    x = points()
    full = np.column_stack([np.ones(len(x)), x])
    np.testing.assert_allclose(spectra.gram(x), full.T @ full / len(x), rtol=1e-14)


def test_the_four_ways_to_a_spectrum_agree(monkeypatch):
    x = points(features=30, count=20)
    single = spectra.spectrum(x)
    whole = spectra.gram_spectrum(x)
    np.testing.assert_allclose(single.values, whole.values, rtol=1e-8)
    np.testing.assert_allclose(single.variances[:19], whole.variances[:19], rtol=1e-8)
    monkeypatch.setattr(spectra, "MAX_SPECTRUM_FEATURES", 25)
    dual = spectra.gram_spectrum(x)
    monkeypatch.setattr(spectra, "MAX_SPECTRUM_FEATURES", 5)
    lanczos = spectra.gram_spectrum(x)
    assert whole.rank == dual.rank == 20
    # Measured: 8e-13 by the small matrix, Lanczos to the last digit; the smallest eigenvalue is
    # 1e-6 of the largest.
    np.testing.assert_allclose(whole.values, dual.values, rtol=1e-8)
    assert lanczos.largest == pytest.approx(whole.largest, rel=1e-8)
    assert not lanczos.is_complete


@pytest.mark.parametrize("way", [spectra.spectrum, spectra.gram_spectrum])
@pytest.mark.parametrize("count", [2, 100])
def test_a_feature_of_two_neighbouring_numbers_has_their_variance(way, count):
    """No float64 is their mean: what it leaves over is taken off."""
    apart = np.spacing(1e8)
    x = 1e8 + apart * np.tile([0, 1], count)[:, None].repeat(3, 1)
    assert way(x).variances[0] == pytest.approx(3 * apart**2 / 4, rel=1e-9, abs=0)


@pytest.mark.parametrize("way", [spectra.spectrum, spectra.gram_spectrum])
def test_the_condition_number_is_over_nonzero_eigenvalues(way):
    x = np.random.default_rng(0).standard_normal((50, 2))
    twice = np.column_stack([x, x, np.full(50, 0.1)])
    assert way(twice).rank == 3
    assert way(twice).condition_number < 10
    assert not way(twice).lost
    assert np.isnan(spectra.Spectrum(np.empty(0)).condition_number)
    assert spectra.Spectrum(np.empty(0)).largest == 0
    constant = way(np.full((9, 3), 2.0))
    assert (constant.rank, constant.lost) == (1, False)  # that of the bias


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e6])
def test_the_condition_number_of_points_far_from_zero_is_the_true_one(mean, unit):
    noise = np.random.default_rng(0).standard_normal((200, 1))
    x = (mean + noise) * unit
    exact = [Fraction(float(value)) for value in x[:, 0]]
    centre = sum(exact) / len(exact)
    variance = sum((value - centre) ** 2 for value in exact) / len(exact)
    trace = 1 + centre**2 + variance  # of the Gram matrix, whose determinant is the variance
    expected = float(trace**2 / variance)
    found = spectra.spectrum(x)
    assert found.rank == 2
    if expected > 1e4:  # where the smaller root is determinant over trace, to 8 digits
        assert found.condition_number == pytest.approx(expected, rel=1e-3)
    matrix = spectra.gram_spectrum(x)
    if expected > matrix.limit * 4:
        assert matrix.lost
        assert np.isnan(matrix.condition_number)
    else:
        assert matrix.condition_number == pytest.approx(found.condition_number, rel=0.5)


def test_directions_beyond_what_singular_values_tell_are_said_to_be_lost():
    x = 1e8 + np.random.default_rng(0).standard_normal((200, 5))
    assert spectra.spectrum(x).rank == 6
    assert spectra.spectrum(x).condition_number > 1e30  # by the inverse of a root of full rank
    copies = spectra.spectrum(np.column_stack([x, x[:, :2]]))
    assert copies.lost
    assert copies.limit == pytest.approx(1e30)
    assert np.isnan(copies.condition_number)


def test_what_is_lost_in_a_matrix_is_found_again_under_a_penalty_on_every_feature():
    x = 1e8 + np.random.default_rng(0).standard_normal((200, 3))
    far, near = spectra.gram_spectrum(x), spectra.gram_spectrum(x - 1e8)
    assert (far.lost, near.lost) == (True, False)
    for l2, lost in ((0.1, False), (np.array([0.1, 0.1, 0.0]), True)):
        assert spectra.penalize(far, 2.0, l2, x).lost == lost
        assert not spectra.penalize(near, 2.0, l2, x - 1e8).lost


@pytest.mark.parametrize("way", [spectra.spectrum, spectra.gram_spectrum])
def test_an_l2_adds_to_the_slopes_alone(way):
    x = points()
    centred = x - x.mean(axis=0)
    found = spectra.penalize(way(centred), 2.0, 0.5, centred).values
    covariance = np.linalg.eigvalsh(centred.T @ centred / len(x))
    expected = np.sort(np.r_[2.0, 2 * covariance + 1.0])[::-1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("way", [spectra.spectrum, spectra.gram_spectrum])
def test_a_least_squares_history_is_predicted_exactly(way, classes, l2):
    x = points()
    rng = np.random.default_rng(4)
    targets = rng.integers(0, 3, len(x)) if classes > 1 else rng.standard_normal(len(x))
    objective = door.problem(costs.least_squares, x, targets, False, l2, classes)
    start = 0.1 * rng.standard_normal((1, classes, x.shape[1] + 1))
    here = objective.evaluate(start)
    hessian = spectra.penalize(way(x), 2.0, l2, x)
    problem = spectra.quadratic(hessian, x, here.costs[0], here.gradient[0], l2)
    threshold = spectra.step_threshold(problem.values.max())
    for share in (1e-6, 0.1, 0.5, 0.99, 1.0, 1.01):
        step_size = share * threshold
        made = descend(
            objective, None, gradient_descent(), start, np.array([step_size]), door.plan(50)
        )
        predicted = spectra.predicted_history(problem, step_size, 50)
        # Measured: 3e-13, relative.
        np.testing.assert_allclose(made.cost[0], predicted, rtol=1e-12)


def test_predicted_iterations_are_where_the_predicted_history_gets_to():
    problem = spectra.Quadratic(1.0, np.array([0.1, 1.0]), np.array([0.1, 0.4]))
    least = 1.0 - problem.excess_by_direction.sum()
    for gap in (0.5, 1e-2, 1e-3):
        k = int(spectra.predicted_iterations(problem, 1.5, gap))
        history = spectra.predicted_history(problem, 1.5, k) - least
        assert history[k] <= gap * (1 + 1e-9)
        assert k == 0 or history[k - 1] > gap
    slow = spectra.Quadratic(1.0, np.array([1e-3]), np.array([2e-3]))  # all of the gap of 1
    assert spectra.predicted_iterations(slow, 1.0, 0.5) == np.ceil(-np.log(2) / np.log(0.999) / 2)
    for step in (2.0, 2.0 * (1 + 1e-9), 2.5, 40.0):  # of 2/L, just above it, and far above
        assert spectra.predicted_iterations(problem, step, 1e-3) == np.inf
    assert spectra.predicted_iterations(problem, 1.0, 10.0) == 0
    for share, is_counted in ((0.9, True), (1.1, False)):  # of the most that are counted
        needed = share * spectra.MAX_COUNTED_ITERATIONS
        creeping = spectra.Quadratic(1.0, np.array([np.log(2) / (2 * needed)]), np.ones(1))
        gap = float(creeping.excess_by_direction[0]) / 2
        found = spectra.predicted_iterations(creeping, 1.0, gap)
        assert found == (pytest.approx(needed) if is_counted else np.inf)


def test_the_effective_rank_counts_equal_directions():
    assert spectra.effective_rank(np.ones(7)) == pytest.approx(7)
    assert spectra.effective_rank(np.array([5.0, 0.0])) == pytest.approx(1)
    assert spectra.effective_rank(np.zeros(3)) == 0


def test_a_ridge_holds_small_directions_down():
    found = spectra.variance_after_sphering(np.array([1.0, 1e-7, 0.0]), 1e-7)
    np.testing.assert_allclose(found, [1.0, 0.5, 0.0], rtol=1e-6)


@pytest.mark.parametrize("share", [1.0, 0.99])
def test_without_moments_the_curvature_at_the_start_is_all_that_is_asked_for(share):
    x = points()
    train = door.problem(costs.softmax, x, np.where(x[:, 0] > 1, 1.0, -1.0), True)
    start = np.full(train.shape, 0.1)
    work = curvature_work(train)
    budget = Budget(Work(share * work.passes, np.inf))
    found = _theorize_start(train, start, budget)
    assert not found.allows_point_theory
    assert found.spectrum is None
    if share == 1:
        assert found.at_start == pytest.approx(train.hessian(start).largest(), rel=1e-6)
        assert (budget.passes_left, budget.too_long) == (0, [])
    else:
        assert found.at_start is None
        assert budget.too_long == ["curvature at the start"]


def test_live_eigenvalues_are_those_above_rounding_of_the_largest():
    eps = np.finfo(np.float64).eps
    assert spectra.eigenvalues_above_rounding(np.array([]), 0).tolist() == []
    assert spectra.eigenvalues_above_rounding(np.array([-3.0, 0.0]), 2).tolist() == []
    assert spectra.eigenvalues_above_rounding(np.array([-3.0, -1.0]), 2).tolist() == []
    values = np.array([0.0, 4.1 * 4 * eps, 4.0, 3.9 * 4 * eps, -1.0])
    assert spectra.eigenvalues_above_rounding(values, 4).tolist() == [4.0, 4.1 * 4 * eps]


def test_a_flat_cost_has_no_largest_step_size():
    assert spectra.step_threshold(0.0) == float("inf")
