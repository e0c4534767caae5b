"""Step rules on a quadratic, `1/2 sum h w^2`, whose histories are known to the last digit."""

import inspect
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gamma, rgamma

from normbench import optimizers
from normbench.choices import build, import_target, options
from normbench.datasets import UserError
from tests.cases import names

NAMES = names("optimizer")
CURVATURES = np.array([0.1, 0.5, 1.0, 4.0])
LARGEST, SMALLEST = CURVATURES.max(), CURVATURES.min()
KAPPA = LARGEST / SMALLEST


class Quadratic:
    """The cost `1/2 sum h w^2` of weights `(R, 2, 2)`, its minimum 0 at w = 0."""

    def __init__(self, curvatures=CURVATURES):
        self.h = curvatures.reshape(2, 2)

    def costs(self, weights):
        return 0.5 * np.sum(self.h * weights**2, axis=(1, 2))

    def gradient(self, weights):
        return (self.h * weights).astype(weights.dtype)

    def evaluate(self, weights, with_gradient=True):
        return SimpleNamespace(costs=self.costs(weights), gradient=self.gradient(weights))

    def hessian(self, weights):
        return SimpleNamespace(matrix=lambda: np.diag(self.h.reshape(-1)))


def default(name):
    return build("optimizer", options("optimizer", name))


def path(optimizer, start, step_sizes, steps, cost=None):
    """Return the weights of every step, `(steps + 1, R, 2, 2)`."""
    cost = cost or Quadratic()
    weights, state = start, optimizer.init(start)
    sizes = np.reshape(step_sizes, (-1, 1, 1)).astype(start.dtype)
    extra = (cost, 1000) if optimizer.uses_problem else ()
    seen = [weights]
    for _ in range(steps):
        weights, state = optimizer.step(weights, cost.gradient(weights), state, sizes, *extra)
        assert isinstance(state, tuple)
        assert all(len(array) == len(weights) for array in state)
        seen.append(weights)
    return np.array(seen)


def rate(weights, first, last):
    """Return the factor by which the largest weight shrinks in a step, over many."""
    size = abs(weights).max(axis=(1, 2, 3))
    return (size[last] / size[first]) ** (1 / (last - first))


@pytest.fixture
def start():
    return np.random.default_rng(6).standard_normal((3, 2, 2))


# What every rule keeps.


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_from_python_has_the_settings_of_its_file(name):
    chosen = options("optimizer", name)
    rule = import_target("optimizer", chosen.pop("_target_"))
    defaults = {key: value.default for key, value in inspect.signature(rule).parameters.items()}
    assert defaults == chosen
    assert rule().note == default(name).note


@pytest.mark.parametrize("name", NAMES)
def test_runs_do_not_notice_one_another(name, start):
    sizes = np.array([0.01, 0.3, 1e200])  # the last one is soon lost
    with np.errstate(all="ignore"):
        together = path(default(name), start, sizes, 12)
        for r in (0, 1):
            alone = path(default(name), start[r : r + 1], sizes[r : r + 1], 12)
            np.testing.assert_array_equal(together[:, r], alone[:, 0])


@pytest.mark.parametrize("name", NAMES)
def test_a_minimum_is_a_fixed_point(name):
    zero = np.zeros((2, 2, 2))
    np.testing.assert_array_equal(path(default(name), zero, [0.1, 1.0], 5), 0)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_rule_is_given_stays_as_it_was(name, start):
    optimizer, cost = default(name), Quadratic()
    weights, state = start, optimizer.init(start)
    extra = (cost, 1000) if optimizer.uses_problem else ()
    for _ in range(3):
        given = (weights, cost.gradient(weights), np.full((3, 1, 1), 0.1), *state)
        kept = [array.copy() for array in given]
        result = optimizer.step(given[0], given[1], state, given[2], *extra)
        for array, before in zip(given, kept):
            np.testing.assert_array_equal(array, before)
        weights, state = result


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_stays_single(name, start):
    weights = path(default(name), start.astype(np.float32), [0.1, 0.1, 0.1], 3)
    assert weights.dtype == np.float32
    exact = path(default(name), start, [0.1, 0.1, 0.1], 3)
    np.testing.assert_allclose(weights, exact, rtol=2e-6, atol=2e-7)  # measured: 4e-7, of 1


@pytest.mark.parametrize("name", NAMES)
def test_a_small_step_goes_down(name, start):
    weights = path(default(name), start, [0.01, 0.01, 0.01], 8)
    costs = np.array([Quadratic().costs(w) for w in weights])
    if default(name).gridless:  # an evaluation that is not accepted leaves the weights
        assert (np.diff(costs, axis=0) <= 0).all()
        assert (costs[-1] < costs[0] / 10).all()
        return
    assert (np.diff(costs, axis=0) < 0).all()


WRONG = [
    ("momentum", "momentum", 1.0),
    ("momentum", "momentum", -0.1),
    ("momentum", "momentum", True),
    ("nesterov", "momentum", "fast"),
    ("rmsprop", "decay", 1),
    ("rmsprop", "epsilon", -1e-8),
    ("adam", "mean_decay", 1.5),
    ("adam", "square_decay", float("nan")),
    ("adam", "epsilon", float("inf")),
    ("line_search", "decrease", 0),
    ("line_search", "shrink", 1),
    ("line_search", "trials", 0),
    ("line_search", "trials", 2.5),
    ("newton", "ridge", -1),
    ("newton", "rigde", 1),
    ("adam", "epsilon", np.float32("inf")),
    ("lbfgs", "memory", 0),
    ("lbfgs", "evaluations", 1.5),
]


@pytest.mark.parametrize(("name", "option", "value"), WRONG)
def test_a_wrong_option_is_refused_by_name(name, option, value):
    choice = {**options("optimizer", name), option: value}
    with pytest.raises(UserError, match=option) as caught:
        build("optimizer", choice)
    assert str(value) in str(caught.value)


# What each rule does.


def test_gradient_descent_shrinks_each_direction_by_its_factor(start):
    sizes = np.array([0.05, 0.3, 0.45])
    weights = path(optimizers.gradient_descent(), start, sizes, 30)
    factor = 1 - sizes[:, None, None] * Quadratic().h
    np.testing.assert_allclose(weights[30], factor**30 * start, rtol=1e-13)


def test_diminishing_steps_follow_the_gamma_function(start):
    """`prod_{j<=k} (1 - c/j) = Gamma(k + 1 - c) / (Gamma(1 - c) k!)`, about `k^-c`: c = a h."""
    sizes = np.array([0.6, 0.9, 1.1])
    weights = path(optimizers.diminishing(), start, sizes, 50)
    c = sizes[:, None, None] * Quadratic().h
    wanted = gamma(51 - c) * rgamma(1 - c) / gamma(51) * start
    np.testing.assert_allclose(weights[50], wanted, rtol=1e-12)  # measured: 2e-14


def powers(matrix, start, steps):
    """Return the first entry of `matrix^steps (w, w)` for every weight and its matrix."""
    both = np.stack([start, start], axis=-1)[..., None]
    return (np.linalg.matrix_power(matrix, steps) @ both)[..., :, 0]


def companion(first, second):
    """Return the matrices of `w+ = first w + second w-`, `(..., 2, 2)`."""
    rows = [np.stack([first, second], -1), np.stack([np.ones_like(first), 0 * first], -1)]
    return np.stack(rows, axis=-2)


def test_momentum_has_polyaks_spectral_rate(start):
    """At the best step and momentum every direction shrinks by sqrt(m) a step."""
    root = np.sqrt(KAPPA)
    m = ((root - 1) / (root + 1)) ** 2
    a = 4 / (np.sqrt(LARGEST) + np.sqrt(SMALLEST)) ** 2
    weights = path(optimizers.momentum(m), start, np.full(3, a), 400)
    matrix = companion(1 + m - a * Quadratic().h, np.full((2, 2), -m))
    np.testing.assert_allclose(abs(np.linalg.eigvals(matrix)), np.sqrt(m), rtol=1e-6)
    np.testing.assert_allclose(weights[60], powers(matrix, start, 60)[..., 0], rtol=1e-11)
    # The double root of the two outermost directions adds a factor k: (400 / 200)^(1 / 200).
    assert rate(weights, 200, 400) == pytest.approx(np.sqrt(m), rel=5e-3)


def test_nesterov_has_its_spectral_rate(start):
    """At a = 1 / L and `m = (sqrt k - 1) / (sqrt k + 1)` the slowest shrinks by `1 - 1/sqrt k`."""
    root = np.sqrt(KAPPA)
    m, a = (root - 1) / (root + 1), 1 / LARGEST
    weights = path(optimizers.nesterov(m), start, np.full(3, a), 300)
    c = 1 - a * Quadratic().h
    matrix = companion(c * (1 + m), -c * m)
    now, before = np.moveaxis(powers(matrix, start, 40), -1, 0)
    np.testing.assert_allclose(weights[40], (1 + m) * now - m * before, rtol=1e-10, atol=1e-15)
    assert abs(np.linalg.eigvals(matrix)).max() == pytest.approx(1 - 1 / root, rel=1e-6)
    assert rate(weights, 150, 300) == pytest.approx(1 - 1 / root, rel=6e-3)


class Slope:
    """The cost `sum g w`: one gradient everywhere."""

    g = np.array([[1e-3, -1.0], [30.0, 1e5]])

    def gradient(self, weights):
        return np.broadcast_to(self.g, weights.shape)


@pytest.mark.parametrize("name", ["adam", "sign"])
def test_on_a_slope_every_step_is_the_step_size_in_every_coordinate(name, start):
    rule = optimizers.adam(epsilon=0) if name == "adam" else optimizers.sign()
    sizes = np.array([0.01, 0.1, 1.0])
    moves = np.diff(path(rule, start, sizes, 25, Slope()), axis=0)
    wanted = np.broadcast_to(-sizes[:, None, None] * np.sign(Slope.g), moves.shape)
    np.testing.assert_allclose(moves, wanted, rtol=1e-12)  # measured: 2e-14, of the difference


def test_on_a_slope_rmsprop_comes_down_to_the_step_size(start):
    """`v = (1 - d^k) g^2`, so that step k is `a / sqrt(1 - d^k)` in every coordinate."""
    sizes, d = np.array([0.01, 0.1, 1.0]), 0.9
    moves = np.diff(path(optimizers.rmsprop(d, 0), start, sizes, 40, Slope()), axis=0)
    k = np.arange(1, 41)[:, None, None, None]
    wanted = -sizes[:, None, None] * np.sign(Slope.g) / np.sqrt(1 - d**k)
    np.testing.assert_allclose(moves, wanted, rtol=1e-12)


def test_normalized_steps_have_one_length_and_come_near_the_minimum(start):
    """The distance from it shrinks as long as `|g| > a L / 2`: `w'g >= |g|^2 / L`."""
    sizes = np.array([0.01, 0.1, 0.3])
    weights = path(optimizers.normalized(), start, sizes, 1000)
    lengths = np.linalg.norm(np.diff(weights, axis=0).reshape(1000, 3, 4), axis=-1)
    np.testing.assert_allclose(lengths, np.broadcast_to(sizes, lengths.shape), rtol=1e-11)
    slopes = np.linalg.norm((Quadratic().h * weights).reshape(-1, 3, 4), axis=-1)
    assert (slopes.min(axis=0) <= LARGEST * sizes / 2).all()
    distances = np.linalg.norm(weights.reshape(-1, 3, 4), axis=-1)
    closer = np.diff(distances, axis=0) < 0
    assert closer[slopes[:-1] > LARGEST * sizes / 2].all()


@pytest.mark.parametrize(
    ("precision", "size"),
    [("float32", 1e-40), ("float32", 1e20), ("float64", 1e-300), ("float64", 1e300)],
)
def test_normalized_steps_have_their_length_whatever_the_size_of_the_gradient(precision, size):
    gradient = np.array([[[3.0, 0.0], [0.0, 4.0]]]) * np.float64(size)
    gradient = gradient.astype(precision)
    zero = np.zeros_like(gradient)
    weights, _ = optimizers.normalized().step(zero, gradient, (), np.ones((1, 1, 1), precision))
    assert weights.dtype == precision
    # Measured: 1e-6, of the few digits of 1e-40 in float32.
    np.testing.assert_allclose(weights, [[[-0.6, 0.0], [0.0, -0.8]]], rtol=1e-5)


@pytest.mark.parametrize("shrink", [0.3, 0.5, 0.8])
def test_every_step_of_a_line_search_is_the_first_that_armijo_accepts(shrink, start):
    cost, c, sizes = Quadratic(), 0.2, np.array([0.1, 1.0, 1e6])
    weights = path(optimizers.line_search(c, shrink, 200), start, sizes, 15)
    for here, there in pairwise(weights):
        gradient = cost.gradient(here)
        squared = np.sum(gradient**2, axis=(1, 2))
        t = np.sum((here - there) * gradient, axis=(1, 2)) / squared
        backs = np.log(t / sizes) / np.log(shrink)
        np.testing.assert_allclose(backs, np.round(backs), atol=1e-8)
        assert (cost.costs(there) <= cost.costs(here) - c * t * squared * (1 - 1e-12)).all()
        for r in np.flatnonzero(np.round(backs) > 0):
            before = (here - t[r] / shrink * gradient)[r : r + 1]
            promised = cost.costs(here)[r] - c * t[r] / shrink * squared[r]
            assert cost.costs(before)[0] > promised
    assert (np.diff([cost.costs(w) for w in weights], axis=0) < 0).all()


def test_a_line_search_without_an_acceptable_step_stays(start):
    weights = path(optimizers.line_search(trials=1), start, [0.1, 1e3, 0.1], 1)
    np.testing.assert_array_equal(weights[1, 1], start[1])
    assert (weights[1, [0, 2]] != start[[0, 2]]).all()


def test_newton_is_there_in_one_step_and_damped_shrinks_by_the_damping(start):
    sizes = np.array([1.0, 0.5, 0.1])
    weights = path(optimizers.newton(0), start, sizes, 20)
    np.testing.assert_allclose(weights[1, 0], 0, atol=1e-15)
    for r in (1, 2):
        np.testing.assert_allclose(weights[20, r], (1 - sizes[r]) ** 20 * start[r], rtol=1e-13)


def test_a_singular_matrix_costs_newton_that_run_alone(start):
    class Flat(Quadratic):
        def hessian(self, weights):
            curved = weights[0, 0] > 0
            return SimpleNamespace(matrix=lambda: np.diag(self.h.reshape(-1)) * curved)

    start = abs(start)
    start[1] *= -1
    weights = path(optimizers.newton(0), start, np.ones(3), 1, Flat())
    assert np.isnan(weights[1, 1]).all()
    np.testing.assert_allclose(weights[1, [0, 2]], 0, atol=1e-15)


# What rules declare of themselves.


class Turned(Quadratic):
    """The same cost of weights that are given along other axes: `v = Q w`."""

    def __init__(self, turn):
        super().__init__()
        self.turn = turn

    def costs(self, weights):
        return super().costs(self.back(weights))

    def gradient(self, weights):
        return turned(super().gradient(self.back(weights)), self.turn)

    def hessian(self, weights):
        matrix = self.turn @ super().hessian(weights).matrix() @ self.turn.T
        return SimpleNamespace(matrix=lambda: matrix)

    def back(self, weights):
        return turned(weights, self.turn.T)


def turned(weights, turn):
    return (weights.reshape(len(weights), -1) @ turn.T).reshape(weights.shape)


@pytest.mark.parametrize("name", NAMES)
def test_rotation_equivariant_means_that_the_axes_do_not_matter(name, start):
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    sizes = np.array([0.01, 0.1, 0.3])
    plain = path(default(name), start, sizes, 15)
    other = path(default(name), turned(start, turn), sizes, 15, Turned(turn))
    back = np.array([turned(weights, turn.T) for weights in other])
    # Measured: 3e-15 for those that say so, above 1e-2 for those that do not.
    apart = np.abs(back - plain).max()
    assert default(name).rotation_equivariant == (apart < 1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_plain_means_a_step_along_the_gradient_and_no_state(name, start):
    rule = default(name)
    sizes = np.array([0.5, 0.25, 3.0]).reshape(-1, 1, 1)
    cost = Quadratic()
    extra = (cost, 1000) if rule.uses_problem else ()
    state = rule.init(start)
    seen = [
        rule.step(start, scale * cost.gradient(start), state, sizes, *extra)[0]
        for scale in (1.0, 7.0)
    ]
    straight = all(
        np.allclose(weights, start - sizes * scale * cost.gradient(start), rtol=1e-12)
        for scale, weights in zip((1.0, 7.0), seen)
    )
    assert rule.plain == (straight and not state and not rule.uses_problem)


def test_sign_takes_rounding_for_0():
    bound = 8 * np.finfo(float).eps * 2.0
    gradient = np.array([[bound, 1.01 * bound, -2.0], [1e-16, 1e-16, -1e-16]])
    rule = optimizers.sign()
    stepped, _ = rule.step(np.zeros((2, 3)), gradient, (), np.array([[0.1], [0.1]]))
    np.testing.assert_array_equal(stepped, [[0, -0.1, 0.1], [-0.1, -0.1, 0.1]])


@pytest.mark.parametrize("rule", [optimizers.adam(epsilon=1.0), optimizers.rmsprop(0.0, 1.0)])
def test_epsilon_is_outside_of_the_root(rule):
    weights, gradient = np.zeros((1, 1, 2)), np.array([[[3.0, -0.5]]])
    after, _ = rule.step(weights, gradient, rule.init(weights), np.full((1, 1, 1), 0.1))
    np.testing.assert_allclose(after, -0.1 * gradient / (np.abs(gradient) + 1), rtol=1e-12)


class Counted(Quadratic):
    """A quadratic that keeps where it was evaluated."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def evaluate(self, weights, with_gradient=True):
        self.asked.append(weights.copy())
        return super().evaluate(weights, with_gradient)


def test_lbfgs_is_scipys_and_an_iteration_is_an_evaluation(start):
    from scipy.optimize import minimize

    cost, first = Counted(), start[:1]
    rule = optimizers.lbfgs(memory=3)
    weights, state, seen = first, rule.init(first), [first[0]]
    for _ in range(40):
        weights, state = rule.step(weights, None, state, np.ones((1, 1, 1)), cost, 1000)
        seen.append(weights[0])
    taken, accepted = [], []

    def by_hand(flat):
        taken.append(flat.copy())
        return 0.5 * np.sum(CURVATURES * flat**2), CURVATURES * flat

    with np.errstate(all="ignore"):
        minimize(
            by_hand,
            first.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            callback=lambda flat: accepted.append((len(taken) - 1, flat.copy())),
            options={"maxcor": 3, "ftol": 0.0, "gtol": 0.0},
        )
    np.testing.assert_array_equal(np.reshape(cost.asked, (-1, 4)), taken)
    last = first.reshape(-1)
    there = dict(accepted)
    for evaluation, found in enumerate(seen):
        last = there.get(evaluation, last)
        np.testing.assert_array_equal(found.reshape(-1), last)
    assert np.abs(last).max() < 1e-8


@pytest.mark.parametrize("steps", [1, 3, 8])
def test_lbfgs_evaluates_what_the_descent_asks_for_and_its_last_line_search(steps, start):
    """The numbers are those of a longer descent; a line search is of a few evaluations."""
    cost, long = Counted(), path(optimizers.lbfgs(), start[:1], np.ones(1), 8)
    rule, weights, state = optimizers.lbfgs(), start[:1], ()
    for k in range(steps):
        weights, state = rule.step(weights, None, state, np.ones((1, 1, 1)), cost, steps)
        np.testing.assert_array_equal(weights, long[k + 1])
    assert steps < len(cost.asked) <= steps + 4  # the start, too; measured: steps + 1
