"""The least cost, against solvers of others and closed forms; whether weights attain it."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_iris

from normbench import costs
from normbench.engine import hessian
from normbench.names import ATTAINED, PARTLY, STRICTLY, UNDECIDED
from normbench.normalizers import PCASphere
from normbench.normalizers.decomposition import PointsCache
from normbench.theory import least_cost
from normbench.theory.least_cost import (
    Minimum,
    _backtrack,
    decide_by_program,
    decide_by_rule,
    find_least_cost,
    proves_separable,
    spans_same_scores,
    sphere_points,
    sphere_problem,
    weights_of,
)
from normbench.theory.least_cost import minimize as least
from tests import door


def sphered(x):
    """Return points x (P, N) sphered."""
    return sphere_points(PointsCache(x))


def points(count=200, features=4):
    rng = np.random.default_rng(6)
    return rng.standard_normal((count, features)) * [1, 100, 0.01, 5] + [3, 50, 0, 1], rng


def minimum(cost, basis, targets, classes, penalty=0.0, products=np.inf):
    return least(door.problem(cost, basis, targets, False, penalty, classes), products)


def test_least_squares_is_the_normal_equations():
    x, rng = points()
    y = rng.standard_normal(len(x))
    full = np.column_stack([np.ones(len(x)), x])
    rest = y - full @ np.linalg.lstsq(full, y, rcond=None)[0]
    found = minimum(costs.least_squares, sphered(x), y, 1)
    assert found.value == pytest.approx(np.mean(rest**2), rel=1e-12)
    assert found.gradient_norm <= 1e-10
    assert found.is_solved
    assert not found.at_infinity


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_softmax_is_what_another_solver_finds(l2):
    x, rng = points()
    y = np.where(x[:, 0] - 3 + rng.standard_normal(len(x)) > 0, 1.0, -1.0)

    def cost(w):
        return np.mean(np.logaddexp(0, -y * (w[0] + x @ w[1:]))) + l2 * w[1:] @ w[1:]

    # Scaled for the other solver only: its own start is far away in these units.
    scale = np.r_[1, x.std(axis=0)]
    other = minimize(lambda v: cost(v / scale), np.zeros(5), tol=1e-14, method="Powell")
    other = minimize(lambda v: cost(v / scale), other.x, tol=1e-12, method="BFGS")
    train = door.problem(costs.softmax, x, y, False, l2)
    found = least(sphere_problem(train, PointsCache(x)))
    assert found.gradient_norm <= 1e-10
    # Measured: equal to the last digit.
    assert found.value == pytest.approx(other.fun, abs=1e-9)
    assert found.value <= other.fun + 1e-14


def test_conjugate_gradients_and_eigenvectors_find_the_same(monkeypatch):
    x, rng = points()
    y = rng.integers(0, 3, len(x))
    basis = sphered(x)
    dense = minimum(costs.multiclass_softmax, basis, y, 3)
    monkeypatch.setattr(hessian, "MAX_MATRIX_WEIGHTS", 0)
    products = minimum(costs.multiclass_softmax, basis, y, 3)
    assert dense.is_solved
    assert products.is_solved
    assert products.gradient_norm <= 1e-10
    # Measured: equal to the last digit.
    assert dense.value == pytest.approx(products.value, rel=1e-12)


def separable(labels, scores):
    """Whether a linear program finds weights with a margin of 1 at every point."""
    rows = -labels[:, None] * scores
    found = linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(rows)), bounds=(None, None))
    return found.status == 0


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("cost", ["softmax", "multiclass_softmax"])
def test_separable_classes_are_detected_as_a_linear_program_says(noise, cost):
    x, rng = points()
    labels = (x[:, 0] - 3 + noise * rng.standard_normal(len(x)) > 0).astype(int)
    signs = 2.0 * labels - 1
    function = getattr(costs, cost)
    two = cost == "multiclass_softmax"
    found = minimum(function, sphered(x), labels if two else signs, 2 if two else 1)
    assert found.at_infinity == separable(signs, np.column_stack([np.ones(len(x)), x]))
    assert found.at_infinity == (noise == 0.0)
    assert (found.value == 0.0) == found.at_infinity


def test_classes_that_touch_have_their_minimum_at_infinity_too():
    x = np.array([[-2.0], [-1.0], [0.0], [0.0], [1.0], [2.0]])
    y = np.array([-1.0, -1.0, -1.0, 1.0, 1.0, 1.0])
    found = minimum(costs.softmax, sphered(x), y, 1)
    assert decide_by_program(door.problem(costs.softmax, sphered(x), y, False)) == PARTLY
    assert found.value == pytest.approx(2 * np.log(2) / 6, rel=1e-6)
    assert "still growing" in found.source


MIXING = np.array([[0.5, 0.1, 0, 0], [0.1, 0.2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0.3]])


@pytest.mark.parametrize(
    "l2", [0.1, np.array([0, 0.1, 0, 0.3]), MIXING], ids=["one", "each", "all"]
)
def test_the_least_cost_with_a_penalty_is_the_normal_equations(l2):
    x, rng = points()
    y = rng.standard_normal(len(x))
    full = np.column_stack([np.ones(len(x)), x])
    penalty = np.zeros((5, 5))
    penalty[1:, 1:] = l2 if np.ndim(l2) == 2 else np.diag(np.broadcast_to(l2, 4))
    weights = np.linalg.solve(full.T @ full / len(x) + penalty, full.T @ y / len(x))
    wanted = np.mean((full @ weights - y) ** 2) + weights @ penalty @ weights
    train = door.problem(costs.least_squares, x, y, False, l2)
    found = find_least_cost(train, PointsCache(x), np.inf, "full")
    assert found.value == pytest.approx(wanted, rel=1e-9)


def test_too_many_features_of_the_data_are_too_much_whatever_a_scheme_keeps(monkeypatch):
    x, rng = points()
    train = door.problem(costs.least_squares, x[:, :2], rng.standard_normal(len(x)), False)
    for most, reached in ((4, True), (3, False)):
        monkeypatch.setattr("normbench.theory.sizes.MAX_ROWS", most)
        found = find_least_cost(train, PointsCache(x), 9.0, "auto")
        assert found.is_solved == reached
        assert ("theory=full" in found.source) == (not reached)
    assert find_least_cost(train, PointsCache(x), 9.0, "full").is_solved


def test_a_stop_after_so_many_products_is_said(monkeypatch):
    monkeypatch.setattr("normbench.engine.hessian.MAX_MATRIX_WEIGHTS", 4)
    x, rng = points()
    basis, y = sphered(x), np.sign(rng.standard_normal(200))
    found = minimum(costs.softmax, basis, y, 1, 0.0, 1)
    assert not found.is_solved
    assert "theory=full" in found.source
    least_cost = minimum(costs.softmax, basis, y, 1).value
    assert least_cost < found.value < np.log(2)  # after one step from zero weights


def test_where_zero_weights_are_level_their_curvature_tells_whether_they_are_the_minimum():
    basis = sphered(points()[0])
    found = minimum(costs.least_squares, basis, np.zeros(len(basis)), 1)
    assert (found.value, found.gradient_norm, found.is_solved) == (0, 0, True)
    flat = door.problem(costs.least_absolute_deviations, basis, np.zeros(len(basis)), False)
    found = find_least_cost(flat, PointsCache(basis), 0.0, "auto")
    assert (found.value, found.is_solved) == (0, False)


def test_constant_points_have_no_basis():
    assert sphered(np.full((5, 3), 7.0)).shape == (5, 0)


@pytest.mark.parametrize("unit", [1e8, 1e12])
@pytest.mark.parametrize(
    "l2", [0.0, 0.1, np.array([0.1, 0, 0.2, 0, 0.1])], ids=["0", "one", "each"]
)
def test_small_features_count_beside_a_large_one(unit, l2):
    x, rng = points()
    x[:, 3] = x[:, 0] + x[:, 1]  # a dependent feature is none of the directions
    x = np.column_stack([rng.standard_normal(len(x)), x])
    units = np.array([unit, 1, 1, 1, 1])
    y = (x[:, 0] + x[:, 1] + x[:, 2] > x.mean(axis=0)[:3].sum()).astype(int)
    y[::5] = 1 - y[::5]
    solutions = []
    for scaled, penalty in ((x, l2 / units**2), (x * units, l2)):
        train = door.problem(costs.softmax, scaled, 2.0 * y - 1, False, penalty)
        found = find_least_cost(train, PointsCache(scaled), np.inf, "full")
        assert found.is_solved
        weights = weights_of(found.scores, scaled)
        np.testing.assert_allclose(train.scores(weights, scaled), found.scores, atol=1e-6)
        solutions.append(found)
    assert solutions[1].value == pytest.approx(solutions[0].value, rel=1e-9)
    np.testing.assert_allclose(solutions[1].scores, solutions[0].scores, atol=1e-4)


def test_only_invertible_affine_schemes_share_the_minimum():
    x, _ = points()
    basis = sphered(x)
    doubled = np.column_stack([x, x[:, 0] + 3, np.full(len(x), 7.0)])
    for same in (x, x - 5, PCASphere().fit_transform(x), x @ np.triu(np.ones((4, 4))), doubled):
        assert spans_same_scores(basis, PointsCache(same))
    bent = np.column_stack([x[:, :3], x[:, 3] ** 2])
    for other in (
        x[:, :3],
        np.tanh(x),
        np.column_stack([x, bent]),
        x[:, [0, 1, 2, 0]],
        bent,
        0 * x,
    ):
        assert not spans_same_scores(basis, PointsCache(other))


def test_the_basis_is_all_that_is_made_of_float32_points():
    x = np.random.default_rng(0).standard_normal((40_000, 20), dtype=np.float32)
    basis = sphered(x)
    train = door.problem(costs.softmax, basis, np.ones(len(x)), True)
    held = {}
    for name, step in (
        ("sphere", lambda: sphered(x)),
        ("spans", lambda: spans_same_scores(basis, PointsCache(x))),
        ("separates", lambda: proves_separable(train, np.ones(train.shape))),
    ):
        tracemalloc.start()
        step()
        held[name] = tracemalloc.get_traced_memory()[1] / x.nbytes
        tracemalloc.stop()
    # Measured: 2.4, and 0.2 to 0.4 for blocks; 6.0, and 2.1 to 6.0, with float64 copies.
    assert 2 < held["sphere"] < 2.7
    assert max(held["spans"], held["separates"]) < 0.7


@pytest.mark.parametrize("copies", [0, 2])
def test_weights_are_found_from_the_scores_that_they_give(copies):
    x, rng = points()
    z = np.column_stack([x, x[:, :copies]])
    weights = rng.standard_normal((3, z.shape[1] + 1))
    scores = weights[:, 1:] @ z.T + weights[:, :1]
    found = weights_of(scores, z)
    np.testing.assert_allclose(
        found[:, 1:] @ z.T + found[:, :1], scores, atol=1e-8 * abs(scores).max()
    )
    lengths = [np.linalg.norm(one[:, 1:]) for one in (found, weights)]
    assert lengths[0] <= lengths[1] * (1 + 1e-9)  # of several, the shortest


def test_a_step_is_halved_until_it_lowers_the_cost_enough():
    """On a parabola `w^2`, from w = 1: Armijo's rule takes steps a little shorter than 2."""
    bowl = SimpleNamespace(evaluate=lambda w, with_gradient: SimpleNamespace(costs=w[:, 0, 0] ** 2))
    one = np.ones((1, 1))
    for length, size in ((1.0, 1.0), (1.9999, 0.5), (1.999, 1.0), (7.0, 0.25), (-1.0, 0.0)):
        assert _backtrack(bowl, one, -length * one, 1.0, -2 * length) == size


# Whether the least cost is attained


def problem(x, y, classes=2, l2=0.0):
    """Two classes have one score and the labels -1 and +1, more have one each."""
    if classes == 2:
        return door.problem(costs.softmax, x, 2.0 * y - 1, True, l2)
    return door.problem(costs.multiclass_softmax, x, y, True, l2, classes)


def dual_case(x, y, classes):
    """The case by the theorems of Gordan and Stiemke: weights of the margins that cancel them.

    With some that are not negative and not all 0, no direction has all margins above 0; with some
    that are all above 0, no direction has one above 0 and none below.
    """
    width = x.shape[1] + 1
    rows = []
    for point, label in zip(np.insert(x, 0, 1, axis=1), y):
        for other in range(classes):
            if other != label:
                row = np.zeros((classes, width))
                row[label], row[other] = point, -point
                rows.append(row.ravel())
    cancel = np.array(rows).T
    count = cancel.shape[1]
    sums = np.vstack([cancel, np.ones(count)])
    right = np.r_[np.zeros(len(cancel)), 1.0]
    if linprog(np.zeros(count), A_eq=sums, b_eq=right).status == 2:
        return STRICTLY
    found = linprog(  # the largest s for which all are s or more
        np.r_[np.zeros(count), -1.0],
        A_ub=np.column_stack([-np.eye(count), np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=np.column_stack([sums, np.zeros(len(sums))]),
        b_eq=right,
    )
    return ATTAINED if -found.fun > 1e-7 else PARTLY


def drawn(number):
    """A small problem on whole numbers: points on boundaries and copies of two labels abound."""
    rng = np.random.default_rng(number)
    classes = 2 + number % 3
    features = 1 + number // 3 % 3
    points = int(rng.integers(2 * classes, 14))
    x = rng.integers(-2, 3, (points, features)).astype(float)
    x += np.linspace(0, 1, features)
    weights = rng.standard_normal((classes, features + 1))
    y = np.argmax(weights[:, 1:] @ x.T + weights[:, :1], axis=0)
    y = np.where(
        rng.random(points) < rng.choice([0, 0.1, 0.3]), rng.integers(0, classes, points), y
    )
    y[:classes] = np.arange(classes)
    if number % 4 == 0:
        x[-1], y[-1] = x[0], (y[0] + 1) % classes
    return x, y, classes


def test_it_is_what_the_dual_programs_say():
    seen = {ATTAINED: 0, STRICTLY: 0, PARTLY: 0}
    for number in range(60):
        x, y, classes = drawn(number)
        found = decide_by_program(problem(sphered(x), y, classes))
        assert found == dual_case(x, y, classes), number
        seen[found] += 1
    assert min(seen.values()) >= 5, seen


def test_it_does_not_depend_on_the_units():
    for number in range(6):
        x, y, classes = drawn(number)
        case = decide_by_program(problem(sphered(x), y, classes))
        for scale in (1e-6, 1e6):
            basis = sphered(x * scale + 3 * scale)
            assert decide_by_program(problem(basis, y, classes)) == case, (number, scale)


def test_iris_is_partly_separable():
    x, y = load_iris(return_X_y=True)
    found = find_least_cost(problem(x, y, 3), PointsCache(x), 0.5, "auto")
    assert found.case == PARTLY
    assert found.at_infinity
    assert found.is_solved
    assert found.value == pytest.approx(0.03966, abs=1e-5)


def test_a_gap_that_the_program_cannot_tell_is_not_decided():
    x = np.r_[np.linspace(-1, -1e-8, 20), np.linspace(1e-8, 1, 20)][:, None]
    assert decide_by_program(problem(sphered(x), (x[:, 0] > 0).astype(int))) == UNDECIDED


def test_with_a_penalty_or_pieces_it_is_attained():
    x, y, _ = drawn(1)
    y = np.minimum(y, 1)
    assert decide_by_rule(problem(x, y, l2=0.1)) == ATTAINED
    assert decide_by_rule(problem(x, y)) == UNDECIDED
    for l2, case in (([0.1, 0.1], ATTAINED), ([0.1, 0.0], UNDECIDED), ([0.0, 0.0], UNDECIDED)):
        wide = np.column_stack([x[:, 0], x[:, 0] ** 2])
        assert decide_by_rule(problem(wide, y, l2=np.array(l2))) == case
        assert decide_by_rule(problem(wide, y, l2=np.diag(l2))) == case
    assert decide_by_rule(problem(x, np.zeros(len(x)), l2=0.1)) == UNDECIDED
    thin = np.diag([1e-18, 1e-18, 1.0])  # beside the largest, rounding
    for l2, case in ((thin, UNDECIDED), (thin[:1, :1], ATTAINED)):
        assert decide_by_rule(problem(x[:, :1] ** np.arange(1, len(l2) + 1), y, l2=l2)) == case
    for cost in (costs.perceptron, costs.squared_margin, costs.least_squares):
        assert decide_by_rule(door.problem(cost, x, 2.0 * y - 1, True)) == ATTAINED


def test_a_descent_without_a_mistake_is_proof_enough():
    x, y = load_iris(return_X_y=True)
    setosa = problem(x, (y == 0).astype(int))
    good = np.array([[2.5, 0.0, 0.0, -1.0, 0.0]])
    assert proves_separable(setosa, good)
    assert not proves_separable(setosa, 0 * good)
    found = find_least_cost(setosa, PointsCache(x), 0.1, "auto", good)
    assert (found.case, found.value, found.is_solved) == (STRICTLY, 0.0, True)
    penalized = problem(x, (y == 0).astype(int), l2=0.1)  # weights that grow cost more and more
    found = find_least_cost(penalized, PointsCache(x), 0.6, "auto", good)
    assert (found.case, found.at_infinity) == (ATTAINED, False)
    assert found.value > 0
    of_one = problem(x, (y == 0).astype(int), l2=np.array([0.0, 0.0, 0.1, 0.0]))
    assert find_least_cost(of_one, PointsCache(x), 0.6, "auto", good).case != STRICTLY
    virginica = problem(x, (y == 2).astype(int))
    assert find_least_cost(virginica, PointsCache(x), 0.1, "auto", good).case == ATTAINED


@pytest.mark.parametrize("by", ["bias", "slopes"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_margin_within_rounding_proves_nothing(classes, by):
    """The second point lies on the boundary; its score is what rounding makes of 0."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        x = rng.uniform(1e5, 1e6, (2, 30))
        x[0] /= 1e6
        weights = np.zeros((1 if classes == 2 else classes, 31))
        weights[0, 1:] = rng.uniform(0.5, 1, 30)
        if by == "bias":
            weights[0, 0] = -(weights[0, 1:] @ x[1])
        else:
            order = rng.permutation(15)
            x[1, 15:], weights[0, 16:] = x[1, order], -weights[0, 1 + order]
        above = x @ weights[0, 1:] + weights[0, 0] > 0  # the labels that the scores have
        if classes > 2:
            weights[2, 0] = -1e3
        y = (above if classes == 2 else ~above).astype(int)
        assert not proves_separable(problem(x, y, classes), weights)


@pytest.mark.parametrize("lowest", [0.1, 0.9])
def test_where_the_solver_did_not_arrive_the_lowest_cost_of_both_counts(lowest, monkeypatch):
    monkeypatch.setattr(
        "normbench.theory.least_cost.minimize", lambda *of: Minimum(0.5, 1e-3, "stopped", False)
    )
    x, y = load_iris(return_X_y=True)
    found = find_least_cost(problem(x, y, 3), PointsCache(x), lowest, "full")
    assert found.value == min(lowest, 0.5)
    assert not found.is_solved


def test_too_many_margins_are_not_decided_by_a_program(monkeypatch):
    x, y = load_iris(return_X_y=True)
    monkeypatch.setattr(least_cost, "MAX_MARGINS", 299)  # iris has 150 points of 3 classes
    assert find_least_cost(problem(x, y, 3), PointsCache(x), 0.5, "full").case == UNDECIDED


@pytest.mark.parametrize(
    ("setting", "words"), [("none", "not asked for (theory=none)"), ("auto", "it is not convex")]
)
def test_where_no_least_cost_is_looked_for_the_lowest_that_was_seen_counts(
    setting, words, monkeypatch
):
    x = points()[0]
    train = problem(x, np.arange(len(x)) % 2)
    if setting == "auto":
        monkeypatch.setattr(door.Problem, "convex", False)
        words = "the cost is not convex"
    found = find_least_cost(train, PointsCache(x), 0.4, setting)
    assert found.source == f"the lowest cost seen in this job; {words}"
    assert (found.value, found.is_solved, found.case) == (0.4, False, "not decided")


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
