"""Descent against a second implementation: one run at a time, autograd on the whole cost.

Nothing here is the project's but what is tested: costs are those of `tests.engine.textbook`, and
the step rules are loops over one run.
"""

import numpy as np
import pytest

from normbench.choices import build, options
from tests import door
from tests.cases import COSTS, classifies, names, tasks
from tests.cases import FEW_CASES as CASES
from tests.door import descend
from tests.engine.textbook import Problem

POINTS, FEATURES, L2 = 24, 3, 0.01
STEP_SIZES = np.array([1e-3, 0.1, 0.5, 1e4, 2e14, 1e308])
ITERATIONS = 12


# The step rules again: each yields the weights of one run, from the start on.


def gradient_descent(f, w, a):
    while True:
        yield w
        w = w - a * f.gradient(w)


def diminishing(f, w, a):
    k = 0
    while True:
        yield w
        k += 1
        w = w - (a / k) * f.gradient(w)


def momentum(f, w, a, m=0.9):
    velocity = 0 * w
    while True:
        yield w
        velocity = m * velocity - a * f.gradient(w)
        w = w + velocity


def nesterov(f, w, a, m=0.9):
    velocity = 0 * w
    while True:
        yield w
        g = f.gradient(w)
        velocity, before = m * velocity - a * g, velocity
        w = w + velocity + m * (velocity - before)


def rmsprop(f, w, a, d=0.9, e=1e-8):
    v = 0
    while True:
        yield w
        g = f.gradient(w)
        v = d * v + (1 - d) * g * g
        w = w - a / (v**0.5 + e) * g


def adam(f, w, a, b=0.9, c=0.999, e=1e-8):
    m = v = k = 0
    while True:
        yield w
        g, k = f.gradient(w), k + 1
        m, v = b * m + (1 - b) * g, c * v + (1 - c) * g * g
        w = w - a * (m / (1 - b**k)) / ((v / (1 - c**k)) ** 0.5 + e)


def normalized(f, w, a):
    while True:
        yield w
        g = f.gradient(w)
        w = w - a * (g / np.linalg.norm(g)) if g.any() else w


def sign(f, w, a):
    while True:
        yield w
        w = w - a * np.sign(f.gradient(w))


def line_search(f, w, a, c=1e-4, s=0.5, trials=50):
    while True:
        yield w
        g = f.gradient(w)
        for t in (a * s**i for i in range(trials)):
            if f.cost(w - t * g) <= f.cost(w) - c * t * np.sum(g * g):
                w = w - t * g
                break


def newton(f, w, a, r=1e-7):
    while True:
        yield w
        matrix = f.hessian(w) + r * np.eye(w.size)
        w = w - a * np.linalg.solve(matrix, f.gradient(w).reshape(-1)).reshape(w.shape)


RULES = {
    rule.__name__: rule
    for rule in (
        gradient_descent,
        diminishing,
        momentum,
        nesterov,
        rmsprop,
        adam,
        normalized,
        sign,
        line_search,
        newton,
    )
}


def alone(f, rule, start, step_size):
    """Return costs and counts of one run, up to where it stops being finite."""
    costs, counts = [], []
    with np.errstate(all="ignore"):
        for k, w in enumerate(rule(f, start, step_size)):
            # The last step has no gradient to ask for.
            finite = np.isfinite(f.cost(w)) and (
                k == ITERATIONS or np.isfinite(f.gradient(w)).all()
            )
            if not finite:
                break
            costs.append(f.cost(w))
            counts.append(f.misclassified(w))
            if k == ITERATIONS:
                break
    return np.array(costs), np.array(counts)


def data(name, classes, rng):
    x = rng.standard_normal((POINTS, FEATURES))
    if classes > 1:
        return x, rng.choice(classes, POINTS, p=[0.5, 0.3, 0.2])
    if "binary" in tasks(COSTS[name]):
        return x, np.where(x[:, 0] + 0.5 * rng.standard_normal(POINTS) > 0.3, 1.0, -1.0)
    return x, x @ rng.standard_normal(FEATURES) + 0.3 * rng.standard_normal(POINTS)


def problem(name, classes, x, y, l2=0.0):
    return door.problem(COSTS[name], x, y, classifies(COSTS[name], classes), l2, classes)


def tolerance(optimizer, step_size):
    """Return how far apart, relatively, two histories may be that differ in rounding alone.

    Measured: below 1e-12 at moderate step sizes. RMSProp's steps of 2e14 cancel one another, 2e-8.
    Newton divides a perceptron's gradient, whose second derivative is zero, by the ridge of 1e-7
    and adds it to weights of size 1: 4e-8.
    """
    return 1e-6 if optimizer == "newton" or step_size > 1 else 1e-11


# Each rule on four costs and Newton's on all, each cost with five rules, in turn from either start:
# a rule sees gradients alone, and Newton's second derivatives.
ROWS = [
    (CASES[(number + 3 * turn) % len(CASES)], rule, 0.5 * ((number + turn) % 2))
    for number, rule in enumerate(RULES)
    for turn in range(len(CASES) if rule == "newton" else 4)
]


# From zero weights every score ties; from the others, none does. Twelve steps are enough for
# 2e14 to overflow least squares, and few enough that no run's rounding grows to chaos: an undamped
# Newton's step from here does, on the multiclass softmax.
@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("case", "optimizer", "start_scale"), ROWS)
def test_histories_are_those_of_a_plain_loop(case, optimizer, start_scale):
    name, classes = case
    rng = np.random.default_rng(7)
    x, y = data(name, classes, rng)
    start = start_scale * rng.standard_normal((classes, FEATURES + 1))
    rule = build("optimizer", options("optimizer", optimizer))
    train = problem(name, classes, x, y, L2)
    stack = np.tile(start, (len(STEP_SIZES), 1, 1))
    found = descend(train, None, rule, stack, STEP_SIZES, door.plan(ITERATIONS))
    assert optimizer == "line_search" or (found.diverged_at >= 0).any()
    for run, step_size in enumerate(STEP_SIZES):
        costs, counts = alone(Problem(name, x, y, L2), RULES[optimizer], start, step_size)
        wanted = np.full(ITERATIONS + 1, np.nan)
        wanted[: len(costs)] = costs
        assert found.diverged_at[run] == (len(costs) if len(costs) <= ITERATIONS else -1)
        np.testing.assert_allclose(
            found.cost[run], wanted, rtol=tolerance(optimizer, step_size), atol=1e-13
        )
        if train.classify:
            np.testing.assert_array_equal(found.misclassifications[run, : len(costs)], counts)


@pytest.mark.parametrize("optimizer", names("optimizer"))
@pytest.mark.parametrize(("name", "classes"), [("softmax", 1), ("least_squares", 3)])
def test_a_run_of_a_grid_is_the_run_alone(name, classes, optimizer):
    """To rounding: a product of stacked weights adds up in another order. Measured: 3e-15."""
    rng = np.random.default_rng(8)
    x, y = data(name, classes, rng)
    start = 0.5 * rng.standard_normal((1, classes, FEATURES + 1))
    train = problem(name, classes, x, y, L2)
    rule = build("optimizer", options("optimizer", optimizer))
    sizes = np.array([1e-3, 0.1, 1e308])
    together = descend(train, train, rule, np.tile(start, (3, 1, 1)), sizes, door.plan(ITERATIONS))
    for run in (0, 1):
        single = descend(train, train, rule, start, sizes[run : run + 1], door.plan(ITERATIONS))
        for part in ("cost", "test_cost", "weights"):
            np.testing.assert_allclose(
                getattr(together, part)[run],
                getattr(single, part)[0],
                # Measured: 1e-13, and 1e-11 for a Newton step's solution, by the kernels.
                rtol=1e-9 if rule.uses_problem else 1e-12,
            )
        assert single.diverged_at[0] == together.diverged_at[run] == -1


def test_a_run_ends_where_an_entry_of_its_gradient_overflows():
    """Its cost is finite there, and so are the gradient's other entries."""
    x, y = np.array([[1e300, 0.0], [-1e300, 1.0]]), np.array([1e10, 2e10])
    train, start = problem("least_squares", 1, x, y), np.zeros((1, 1, 3))
    seen = train.evaluate(start)
    assert np.isfinite(seen.costs).all()
    assert np.isfinite(seen.gradient).sum() == 2
    rule = build("optimizer", options("optimizer", "gradient_descent"))
    assert descend(train, None, rule, start, np.array([0.1]), door.plan(3)).diverged_at == [0]


CURVED = [("least_squares", 1), ("least_squares", 3), ("softmax", 1), ("squared_margin", 1)]


@pytest.mark.parametrize("damping", [1.0, 0.5])
@pytest.mark.parametrize(("name", "classes"), CURVED)
def test_newton_takes_the_same_course_in_every_affine_picture_of_the_data(name, classes, damping):
    """`z = A (x - m)` with `v = A^-T w`, `v0 = w0 + m'w` has the same scores, step after step.

    For the costs that are curved in every direction, without ridge.
    """
    rng = np.random.default_rng(9)
    x, y = data(name, classes, rng)
    w = 0.1 * rng.standard_normal((1, classes, FEATURES + 1))
    rule = build("optimizer", {**options("optimizer", "newton"), "ridge": 0})

    def history(points, start):
        train = problem(name, classes, points, y)
        return descend(train, None, rule, start, np.array([damping]), door.plan(8))

    plain = history(x, w)
    assert plain.cost[0, -1] < plain.cost[0, 0]
    shear = np.eye(FEATURES) + np.triu(np.full((FEATURES, FEATURES), 2.0), 1)
    for matrix in (np.diag([10.0, 1.0, 0.01]), shear, rng.standard_normal((FEATURES, FEATURES))):
        m = rng.standard_normal(FEATURES)
        v = np.concatenate(
            [w[:, :, :1] + (w[:, :, 1:] @ m)[:, :, None], w[:, :, 1:] @ np.linalg.inv(matrix)], -1
        )
        image = history((x - m) @ matrix.T, v)
        # Measured: 4e-14.
        np.testing.assert_allclose(image.cost, plain.cost, rtol=1e-12)
        np.testing.assert_array_equal(image.misclassifications, plain.misclassifications)
