"""Descents that multiply less: the triangle of least squares, and few points of many features."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import costs, optimizers, route
from normbench.datasets import make_dataset
from normbench.engine.fast import span, triangle, wrappers
from normbench.engine.fast.blocked import Blocked
from normbench.engine.problem import Objective
from normbench.engine.settings import Settings
from normbench.job import Job, run
from tests import door


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def squares(rng, points=501, features=5, l2=0.0, offset=1000.0):
    x = rng.standard_normal((points, features)) * [1.0, 3.0, 0.1, 10.0, 1.0] + offset
    y = x @ rng.standard_normal(features) + rng.standard_normal(points)
    return Blocked(costs.least_squares, x, y, False, l2)


L2 = [0.0, 0.3, np.arange(5.0), np.diag([1.0, 2.0, 3.0, 4.0, 5.0]) + 0.5]


@pytest.mark.parametrize("l2", L2, ids=["none", "one", "each", "matrix"])
def test_a_triangle_has_the_costs_of_its_points_and_their_gradient(rng, l2, monkeypatch):
    monkeypatch.setattr(triangle, "MIN_BLOCK_ROWS", 100)  # several blocks, the last one short
    quick = squares(rng, l2=l2)
    plain = Objective(*vars(quick).values())
    made = triangle.make_triangle(quick)
    assert made.rows.shape == (7, 6)
    assert made.shape == plain.shape
    weights = rng.standard_normal((4, 1, 6))
    mine, theirs = made.evaluate(weights), plain.evaluate(weights)
    # Measured: 4e-15 of the size of each, offsets of 1,000 included.
    np.testing.assert_allclose(mine.costs, theirs.costs, rtol=1e-13)
    size = np.abs(theirs.gradient).max(axis=2, keepdims=True)
    np.testing.assert_allclose(mine.gradient / size, theirs.gradient / size, atol=1e-13)
    assert mine.misclassifications is None
    assert made.evaluate(weights, with_gradient=False).gradient is None
    hessians = (part.hessian(weights[0]).matrix() for part in (made, plain))
    np.testing.assert_array_equal(*hessians)


def test_a_triangle_is_for_the_squares_of_many_points(rng):
    many = squares(rng)
    assert triangle.pays_off(many, 10, 100)
    assert not triangle.pays_off(many, 1, 1)  # it would cost more than it saves
    assert not triangle.pays_off(squares(rng, points=7), 10, 10**6)
    halves = replace(many, x=many.x.astype(np.float32), targets=many.targets.astype(np.float32))
    assert not triangle.pays_off(halves, 10, 100)
    assert not triangle.pays_off(replace(many, x=1e151 * many.x), 10, 100)  # squares overflow
    assert not triangle.pays_off(replace(many, targets=-1e151 * abs(many.targets)), 10, 100)
    labels = np.sign(many.targets)
    assert not triangle.pays_off(replace(many, targets=labels, classify=True), 10, 100)
    assert not triangle.pays_off(replace(many, targets=labels, cost=costs.softmax), 10, 100)


def job(x, y, cost, optimizer=None, **settings):
    names = None if cost is costs.least_squares else [str(name) for name in range(int(max(y)) + 1)]
    data = make_dataset("made", x, y, class_names=names, source="-")
    data = replace(data, x=x[:-10], y=y[:-10], x_test=x[-10:], y_test=y[-10:])
    chosen = Settings((1e-4, 1e-3, 1e6), iterations=200, **settings)
    rule = optimizer or optimizers.gradient_descent()
    return Job(data, cost, FunctionTransformer(), rule, chosen)


def assert_equal(fast, plain):
    """Assert that two outcomes are the same to what rounding makes of 200 iterations."""
    assert [step.verdict for step in fast.steps] == [step.verdict for step in plain.steps]
    for mine, theirs in zip(fast.steps[:2], plain.steps[:2], strict=True):
        assert mine.histories.keys() == theirs.histories.keys()
        for name, history in mine.histories.items():
            # Measured: 2e-13.
            np.testing.assert_allclose(history, theirs.histories[name], rtol=1e-9)
    for name, value in plain.findings.metrics.items():
        if name.startswith("theory/") and "seconds" not in name:
            assert fast.findings.metrics[name] == pytest.approx(
                value, rel=1e-9, abs=1e-12, nan_ok=True
            ), name


def watched(monkeypatch):
    """Return a list of the problems that are descended."""
    seen, quickest = [], route.fastest_route
    monkeypatch.setattr(
        "normbench.job.fastest_route", lambda *given: seen.append(quickest(*given)) or seen[-1]
    )
    return seen


def test_histories_by_a_triangle_are_those_of_the_points(rng, monkeypatch):
    seen = watched(monkeypatch)
    x = rng.standard_normal((400, 5))
    y = x @ rng.standard_normal(5) + rng.standard_normal(400) + 3
    fast = run(job(x, y, costs.least_squares))
    with door.reference_jobs():
        assert_equal(fast, run(job(x, y, costs.least_squares)))
    assert [type(made.train) for made in seen] == [triangle.Triangle]


WIDE = [
    (costs.softmax, optimizers.gradient_descent(), {}, 0.0),
    (costs.softmax, optimizers.momentum(), {"start": "normal", "starts": 2}, 0.01),
    (costs.multiclass_softmax, optimizers.nesterov(), {"start": "normal"}, 0.0),
    (costs.least_squares, optimizers.gradient_descent(), {"start": "normal", "starts": 3}, 0.1),
]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("cost", "optimizer", "settings", "l2"), WIDE)
def test_histories_of_few_points_are_those_of_their_features(
    rng, monkeypatch, cost, optimizer, settings, l2
):
    """Parts of a start that lie beside the points shrink under a penalty, and meet test points."""
    seen = watched(monkeypatch)
    x = rng.standard_normal((40, 300)) + 0.5
    classes = 3 if cost is costs.multiclass_softmax else 2
    y = x[:, 0] * 2.0 if cost is costs.least_squares else rng.integers(0, classes, 40)
    descent = replace(job(x, y, cost, optimizer, **settings), l2=l2)
    fast = run(descent)
    with door.reference_jobs():
        assert_equal(fast, run(descent))
    scores = 3 if cost is costs.multiclass_softmax else 1
    drawn = scores * settings.get("starts", 1) if settings else 0
    assert seen[0].train.x.shape == (30, 30 + drawn)


def test_weights_go_into_coordinates_and_back(rng):
    x, start = rng.standard_normal((6, 50)), rng.standard_normal((2, 3, 51))
    made = span.find_span(x, start)
    inside = made.inward(start)
    assert inside.shape == (2, 3, 1 + 6 + 6)
    np.testing.assert_allclose(made.outward(inside), start, atol=1e-13)
    whole = Objective(costs.multiclass_softmax, x, rng.integers(0, 3, 6), True, 0.2, 3)
    mine, theirs = made.train(whole).evaluate(inside), whole.evaluate(start)
    np.testing.assert_allclose(mine.costs, theirs.costs, rtol=1e-13)
    np.testing.assert_allclose(made.outward(mine.gradient), theirs.gradient, atol=1e-13)
    np.testing.assert_array_equal(mine.misclassifications, theirs.misclassifications)
    zeros = np.zeros((2, 3, 51))
    zeros[:, :, 0] = 7.0
    np.testing.assert_array_equal(made.inward(zeros), zeros[:, :, :13])


def test_coordinates_of_points_that_depend_on_one_another(rng):
    x = rng.standard_normal((8, 100)) * 10.0 ** -np.arange(8)[:, None]
    x[5], x[6] = 0, x[1] + x[2]
    start = np.column_stack([np.ones(3), rng.standard_normal((3, 8)) @ x])[None]
    made = span.find_span(x, np.zeros_like(start))
    assert made.rows.shape == (6, 100)
    inside = made.inward(start)
    lengths = [np.linalg.norm(part, axis=2) for part in (inside, start)]
    np.testing.assert_allclose(*lengths, rtol=1e-13)
    np.testing.assert_allclose(made.outward(inside), start, atol=1e-13)
    whole = Objective(costs.multiclass_softmax, x, rng.integers(0, 3, 8), True, 0.2, 3)
    mine, theirs = made.train(whole).evaluate(inside), whole.evaluate(start)
    np.testing.assert_allclose(mine.costs, theirs.costs, rtol=1e-13)
    np.testing.assert_allclose(made.outward(mine.gradient), theirs.gradient, atol=1e-13)


def test_centred_points_have_coordinates(rng):
    x = rng.standard_normal((40, 300)) + 5
    x -= x.mean(axis=0)
    made = span.find_span(x, np.zeros((1, 1, 301)))
    assert made.points.shape == (40, 39)
    np.testing.assert_allclose(made.points @ made.points.T, x @ x.T, atol=1e-11)


@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-8])
def test_rows_that_nearly_depend_on_one_another_are_not_turned(rng, apart, monkeypatch):
    """Cholesky squares their condition number; such a job descends as it is."""
    x = rng.standard_normal((30, 300))
    x[3] = x[1] + apart * rng.standard_normal(300)
    assert (span.find_span(x, np.zeros((1, 1, 301))) is None) == (apart < 1e-3)
    seen = watched(monkeypatch)
    run(job(np.vstack([x, x[:10]]), rng.integers(0, 2, 40), costs.softmax))
    assert seen[0].train.points.shape == ((30, 300) if apart < 1e-3 else (30, 30))


def test_coordinates_of_their_own_are_for_rules_that_turn_with_the_axes(rng):
    x, start = rng.standard_normal((20, 400)), np.zeros((1, 1, 401))
    whole = Blocked(costs.softmax, x, rng.choice([-1.0, 1.0], 20), True)
    descent = optimizers.gradient_descent()
    assert span.pays_off(whole, descent, start, 5, 100)
    for rule in (optimizers.adam(), optimizers.sign(), optimizers.newton()):
        assert not span.pays_off(whole, rule, start, 5, 100)
    assert not span.pays_off(whole, descent, start, 1, 1)  # it would cost more than it saves
    assert not span.pays_off(replace(whole, l2=np.ones(400)), descent, start, 5, 100)
    assert not span.pays_off(replace(whole, x=x.astype(np.float32)), descent, start, 5, 100)
    assert not span.pays_off(replace(whole, x=1e151 * x), descent, start, 5, 100)
    assert not span.pays_off(replace(whole, x=x[:, :39]), descent, start[:, :, :40], 5, 1000)
    many = rng.standard_normal((200, 1, 401))  # starts that span more than the points
    assert not span.pays_off(whole, descent, many, 1000, 1000)
    large = replace(whole, x=np.broadcast_to(1.0, (2000, 20_000)))  # more rows, slower each
    assert not span.pays_off(large, descent, np.zeros((1, 1, 20_001)), 10, 150)
    assert span.pays_off(large, descent, np.zeros((1, 1, 20_001)), 10, 200)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_without_the_last_classs_rows_costs_and_gradient_are_the_same(rng, l2, precision):
    """The penalty is on all weights; runs and classes of different numbers, blocks that end."""
    x, y = rng.standard_normal((700, 4)).astype(precision), rng.integers(0, 3, 700)
    parts = (costs.multiclass_softmax, x, y, True, l2, 3)
    fewer, plain = wrappers.drop_last_class(Blocked(*parts)), Objective(*parts)
    weights = rng.standard_normal((5, 3, 5)).astype(precision)
    weights[0] = 0  # equal scores: the first class wins
    assert fewer.rows_in(weights).shape == (5 * 2, 5)
    mine, theirs = fewer.evaluate(weights), plain.evaluate(weights)
    # Measured: 3e-16, and 2e-7 in float32.
    near = 1e-13 if precision == "float64" else 2e-6
    np.testing.assert_allclose(mine.costs, theirs.costs, rtol=near)
    np.testing.assert_allclose(mine.gradient, theirs.gradient, rtol=near, atol=near)
    np.testing.assert_array_equal(mine.misclassifications, theirs.misclassifications)
    scores = fewer.evaluate(weights, with_gradient=False)
    np.testing.assert_array_equal(scores.costs, mine.costs)


def test_the_last_class_is_left_out_of_smooth_costs_that_a_shift_leaves_alone(rng):
    x, y = rng.standard_normal((30, 4)), rng.integers(0, 3, 30)
    for cost, fewer in (
        (costs.multiclass_softmax, True),
        (costs.multiclass_perceptron, False),  # kinks: rounding decides between sub-gradients
        (costs.least_squares, False),
    ):
        plain = Blocked(cost, x, y, True, 0.0, 3)
        assert (wrappers.drop_last_class(plain) is not plain) == fewer


@pytest.mark.parametrize("optimizer", [optimizers.gradient_descent(), optimizers.adam()])
def test_histories_without_the_last_class_are_those_of_all(rng, monkeypatch, optimizer):
    """Under rules that turn with the axes; Adam amplifies rounding, and multiplies all."""
    seen = watched(monkeypatch)
    x, y = rng.standard_normal((90, 5)), rng.integers(0, 4, 90)
    descent = job(x, y, costs.multiclass_softmax, optimizer)
    fast = run(descent)
    with door.reference_jobs():
        assert_equal(fast, run(descent))
    assert seen[0].train.rows_per_run == 4 - optimizer.rotation_equivariant
    assert seen[0].test.rows_per_run == 3
