"""Whether weights attain the least cost: against other linear programs, and cases one knows."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_iris

from normbench import costs
from normbench.names import ATTAINED, PARTLY, STRICTLY, UNDECIDED
from normbench.normalizers.decomposition import Moments
from normbench.theory import separability
from normbench.theory.analysis import find_least_cost
from normbench.theory.minimum import Minimum, sphere_points
from normbench.theory.separability import (
    decide_by_program,
    decide_by_rule,
    proves_separable,
)
from normbench.theory.shared import PointsCache
from tests import door


def sphered(x):
    """Return points x (P, N) sphered, with their variances and axes."""
    return sphere_points(Moments(x))


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


@pytest.mark.slow
def test_it_is_what_the_dual_programs_say():
    seen = {ATTAINED: 0, STRICTLY: 0, PARTLY: 0}
    for number in range(150):
        x, y, classes = drawn(number)
        found = decide_by_program(problem(sphered(x)[0], y, classes))
        assert found == dual_case(x, y, classes), number
        seen[found] += 1
    assert min(seen.values()) >= 15, seen


def test_it_does_not_depend_on_the_units():
    for number in range(20):
        x, y, classes = drawn(number)
        case = dual_case(x, y, classes)
        for scale in (1e-6, 1e6):
            basis = sphered(x * scale + 3 * scale)[0]
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
    assert decide_by_program(problem(sphered(x)[0], (x[:, 0] > 0).astype(int))) == UNDECIDED


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
    for _ in range(100):
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
        "normbench.theory.analysis.minimize", lambda *of: Minimum(0.5, 1e-3, "stopped", False)
    )
    x, y = load_iris(return_X_y=True)
    found = find_least_cost(problem(x, y, 3), PointsCache(x), lowest, "full")
    assert found.value == min(lowest, 0.5)
    assert not found.is_solved


def test_too_many_margins_are_not_decided_by_a_program(monkeypatch):
    x, y = load_iris(return_X_y=True)
    monkeypatch.setattr(separability, "MAX_MARGINS", 299)  # iris has 150 points of 3 classes
    assert find_least_cost(problem(x, y, 3), PointsCache(x), 0.5, "full").case == UNDECIDED
