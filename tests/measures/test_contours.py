"""The cost on a plane of weights: which plane, which window, and what is told of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline
from sklearn.preprocessing import FunctionTransformer

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.job import run
from normbench.measures import planes
from normbench.measures.planes import (
    _choose_directions,
    _direction_of_most_excess,
    _is_at_least_cost,
    _plane,
    _window,
)
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent, momentum, newton
from tests.measures.test_closed_forms import MOST_LEFT, Diagonal, contoured
from tests.measures.test_record import job


@pytest.mark.parametrize(
    ("features", "classes", "precision"),
    [(1, 2, "float32"), (2, 2, "float64"), (5, 2, "float32"), (3, 3, "float64")],
)
def test_contours_are_the_cost_on_a_plane_that_holds_the_path(features, classes, precision):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((50, features)) * np.arange(1, features + 1)
    y = rng.integers(0, classes, 50)
    cost = softmax if classes == 2 else multiclass_softmax
    outcome = run(job(x, y, cost, names=list("abc")[:classes], precision=precision))
    parts, path = outcome.arrays["contours"], outcome.arrays["path"]
    along = parts["path"]
    assert (along >= [parts["a"][0], parts["b"][0]]).all()
    assert (along <= [parts["a"][-1], parts["b"][-1]]).all()
    # The end lies on the plane: the grid's cost around it is the end's cost.
    place = [
        np.argmin(np.abs(axis - end)) for axis, end in zip((parts["a"], parts["b"]), along[-1])
    ]
    around = parts["cost"][place[1], place[0]]
    # One cell off on a path of 20 steps: measured under 3 percent.
    assert around == pytest.approx(path["cost"][-1], rel=0.05)
    assert parts["cost"].shape == (61, 61)
    assert len(parts["names"]) == 2
    assert ("points" in parts) == (features == 2)


@pytest.mark.parametrize("classes", [2, 3])
def test_points_beside_contours_have_the_names_of_the_features(classes):
    x, y = np.random.default_rng(4).standard_normal((12, 2)), np.arange(12) % classes
    cost = softmax if classes == 2 else multiclass_softmax
    parts = run(job(x, y, cost, names=list("abc")[:classes], record=("contours",))).arrays
    assert list(parts["contours"]["point_names"]) == ["x0", "x1"]
    assert (list(parts["contours"]["names"]) == ["weight of x0", "weight of x1"]) == (classes == 2)


@pytest.mark.parametrize(
    ("optimizer", "start", "most", "when"),
    [
        (gradient_descent(), "zeros", 0, "left"),  # the softest; the second stiffest was drawn once
        (gradient_descent(), [0.0, 4.0, 0.0, 0.0, 0.0], 1, "left"),
        (gradient_descent(), [0.0, 0.0, 0.0, 0.0, 4.0], 0, "left"),  # not yet after one step
        (newton(0.0), "zeros", 0, "at the start"),  # nothing is left at the end
        (newton(0.0), [0.0, 4.0, 0.0, 0.0, 0.0], 1, "at the start"),
    ],
)
def test_contours_take_the_stiffest_direction_and_the_one_with_most_excess(
    optimizer, start, most, when
):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 4)) * [0.1, 3.0, 0.2, 1.0]
    y = x @ [4.0, 0.1, 0.5, 0.1] + 0.1 * rng.standard_normal(400)
    options = {"record": ("contours", "path"), "start": start}
    asked = job(x, y, least_squares, FunctionTransformer(), None, **options)
    outcome = run(replace(asked, optimizer=optimizer))
    parts, path = outcome.arrays["contours"], outcome.arrays["path"]
    ones = np.column_stack([np.ones(400), x])
    values, vectors = np.linalg.eigh(2 * ones.T @ ones / 400)
    best = np.linalg.lstsq(ones, y)[0]
    at = path["weights"][-1 if when == "left" else 0, 0]
    assert most == np.argmax((values * (vectors.T @ (at - best)) ** 2)[:-1])
    # On a quadratic, second differences of the grid are the Hessian on the plane, exactly:
    # measured 3e-12 off.
    for axis, name, value in ((1, "a", values[-1]), (0, "b", values[most])):
        step = np.diff(parts[name])[0]
        assert np.diff(parts["cost"], 2, axis=axis)[3, 3] / step**2 == pytest.approx(
            value, rel=1e-6
        )
    assert list(parts["names"]) == [
        "most curved direction",
        f"direction with most excess cost {when}",
    ]
    assert parts["condition"] == pytest.approx(values[-1] / values[most], rel=1e-9)


def test_the_cost_is_tried_nearer_than_the_models_least_cost_lies():
    """Along the first axis the model's step is ten times too long; half-way it is the better."""
    walls = SimpleNamespace(
        shape=(2,),
        evaluate=lambda w, with_gradient: SimpleNamespace(costs=np.abs(w - 1) @ [10.0, 1.0]),
    )
    here = SimpleNamespace(train=walls, start=np.zeros((1, 2)))
    found = _direction_of_most_excess(
        here, np.eye(2), np.ones(2), np.array([-10.0, -1.0]), np.zeros(2)
    )
    assert found.tolist() == [1, 0]


def test_a_flat_direction_does_not_pass_for_one_with_much_excess(monkeypatch):
    """Separable classes: the model's least cost along flat directions is where no model holds."""
    tried = []
    monkeypatch.setattr(
        planes,
        "_direction_of_most_excess",
        lambda *of: tried.append(of[4]) or _direction_of_most_excess(*of),
    )
    rng = np.random.default_rng(2)
    x = rng.standard_normal((40, 6)) * np.geomspace(1e-3, 1, 6)
    y = (x @ np.ones(6) > 0).astype(int)
    record = ("contours", "path")
    outcome = run(job(x, y, scheme=FunctionTransformer(), iterations=100, record=record))
    assert np.array_equal(tried[0], outcome.arrays["path"]["weights"][-1, 0])  # from the end
    parts = outcome.arrays["contours"]
    assert parts["minimum"].shape == (0,)
    assert parts["path"][-1] == pytest.approx([0, 0], abs=1e-12)  # the plane goes through it
    # Along the second axis the cost falls by 0.0103; where the model alone chooses, by 0.0019.
    middle = parts["cost"][:, len(parts["a"]) // 2]
    assert parts["path_cost"][-1] - middle.min() > 0.009


@pytest.mark.parametrize(
    ("cost", "features"), [(softmax, 1), (least_squares, 2), (softmax, 2), (least_squares, 5)]
)
def test_the_least_cost_of_a_slice_is_the_true_one_and_its_condition_is_its_own(cost, features):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((300, features)) * np.arange(1, features + 1) + 0.7
    y = (x[:, 0] + 2 * rng.standard_normal(300) > 1).astype(int)
    outcome = run(job(x, y, cost, iterations=30, record=("contours",)))
    parts = outcome.arrays["contours"]
    a, b = parts["minimum"]
    assert parts["a"][0] < a < parts["a"][-1]
    assert parts["b"][0] < b < parts["b"][-1]
    cells = RectBivariateSpline(parts["b"], parts["a"], parts["cost"], kx=5, ky=5)
    # Splines of degree 5 on 61 cells a side; measured 2e-9 off, and at most 1e-4.
    assert cells.ev(b, a) == pytest.approx(parts["least"], abs=1e-6)
    assert parts["cost"].min() >= parts["least"] - 1e-12
    second = [
        [cells.ev(b, a, *order) for order in pair] for pair in (((0, 2), (1, 1)), ((1, 1), (2, 0)))
    ]
    values = np.linalg.eigvalsh(np.array(second))
    assert parts["condition"] == pytest.approx(values[1] / values[0], rel=1e-3)
    assert parts["through"] == "the least cost"
    assert str(parts["held"]).startswith("bias held at " if features == 2 else "")
    assert str(parts["held"]) != "bias held at 0"


def test_a_least_cost_that_no_weights_have_is_not_marked():
    x = np.arange(10.0).reshape(-1, 1) - 4.3
    parts = run(job(x, (x[:, 0] > 0).astype(int), record=("contours",))).arrays["contours"]
    assert parts["minimum"].shape == (0,)
    assert parts["through"] == "the end of the path"
    assert parts["least"] == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_a_window_whose_axes_have_their_own_scales_shows_costs_of_one_size(axis):
    curved = np.roll([1e6, 10.0], axis)
    path = np.full((2, 2), 5.0)
    path[1, axis] = 7.0  # along the stiff axis alone
    grid = _window(path, np.diag(curved), 1e5, 21)
    reach = [h * (line[-1] - line[0]) ** 2 for h, line in zip(curved, grid)]
    assert reach[1 - axis] == pytest.approx(0.01 * reach[axis])  # a tenth of the extent
    square = _window(path, np.diag([10.0, 10.0]), 1.0, 21)
    one = _window(path[:1], np.diag(curved), 1e5, 21)
    assert [line[-1] for line in one] == [6, 6]
    assert [line.mean() for line in square] == pytest.approx(path.mean(axis=0))
    assert [np.ptp(line) for line in square] == pytest.approx([2.6, 2.6])  # 0.3 more a side


@pytest.mark.parametrize("unit", [1e-8, 1e5])
def test_the_unit_of_the_targets_chooses_no_plane(unit):
    x = np.random.default_rng(2).standard_normal((60, 4)) * [0.2, 0.5, 1, 2]
    y = x @ [1.0, 0.5, -1.0, 0.1]
    one, other = (
        run(job(x, scale * y, least_squares, FunctionTransformer(), None, record=("contours",)))
        for scale in (1.0, unit)
    )
    parts = [made.arrays["contours"] for made in (one, other)]
    assert parts[0]["names"].tolist() == parts[1]["names"].tolist()
    assert "left" in parts[0]["names"][1]
    # Sphered, all directions are as stiff, and the path is straight: the plane is along it.
    sphered = run(job(x, unit * y, least_squares, PCASphere(ridge=0), None, record=("contours",)))
    assert sphered.arrays["contours"]["names"][1] == "another direction, as stiff"
    path = sphered.arrays["contours"]["path"]
    assert np.ptp(path, axis=0).min() <= 1e-9 * np.ptp(path, axis=0).max()


def test_a_bias_of_rounding_is_held_at_0(two_classes):
    x, _ = two_classes
    y = x @ [1.0, -2.0, 0.5] - (x @ [1.0, -2.0, 0.5]).mean()
    found = run(job(x[:, :2], y, least_squares, names=None, record=("contours",)))
    assert found.arrays["contours"]["held"] == "bias held at 0"


def test_points_without_variance_have_contours_along_a_flat_direction(two_classes):
    flat = np.full((60, 3), 2.0)
    parts = run(job(flat, two_classes[1], least_squares, record=("contours",))).arrays["contours"]
    assert parts["names"][1] == "a direction without curvature"
    assert np.isnan(parts["condition"])
    np.testing.assert_allclose(parts["cost"], parts["cost"][:1].repeat(61, 0), rtol=1e-12)


@pytest.mark.parametrize(
    ("reached", "end", "slopes", "done"),
    [
        (True, 7e-10, (1, 1), True),
        (True, 2e-9, (1, 0), False),
        (False, 0.1, (1, 1e-13), True),
        (False, 0.1, (1, 1e-11), False),
        (False, 0.1, (0, 0), True),
    ],
)
def test_a_path_is_done_where_nothing_is_left_by_the_cost_or_else_by_its_slope(
    reached, end, slopes, done
):
    walk = SimpleNamespace(cost=7.0 + np.array([1.0, 0.5, end]))
    here = SimpleNamespace(
        recorded_path=walk,
        least=SimpleNamespace(is_solved=reached),
        judging_context=SimpleNamespace(minimum=7.0),
    )
    assert _is_at_least_cost(here, *(np.array([0.0, slope]) for slope in slopes)) == done


def test_a_cost_without_curvature_still_has_contours(two_classes):
    from autograd import numpy as anp

    def hinge(scores, targets):
        return anp.sum(anp.maximum(0.0, 100.0 - targets * scores[:, 0]), axis=-1)

    parts = run(job(*two_classes, cost=hinge)).arrays["contours"]
    assert np.isfinite(parts["cost"]).all()
    assert "path" in parts["names"][0]
    assert np.ptp(parts["path"], axis=0).argmax() == 0
    assert parts["path"][-1].tolist() == [0, 0]


def test_the_cost_is_tried_at_the_models_step_and_at_its_halves(monkeypatch):
    """From (5, 7), with slopes 6 and 8 and curvatures 3 and 2, the steps are -2 and -4."""
    tried = []

    def evaluate(descent, weights):
        tried.append(weights)
        return np.zeros(len(weights))

    monkeypatch.setattr("normbench.measures.planes._evaluate", evaluate)
    values, slope, point = np.array([3.0, 2.0]), np.array([6.0, 8.0]), np.array([5.0, 7.0])
    _direction_of_most_excess(None, np.eye(2), values, slope, point)
    shares = [0.0, *(1 / 2**halvings for halvings in range(20))]
    # The second has the larger share of the excess, 16, and comes first.
    wanted = [[[5.0, 7 - 4 * share] for share in shares], [[5 - 2 * share, 7] for share in shares]]
    np.testing.assert_allclose(tried, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([10.0, 1000.0, 9.0], [10.0, 8.0, 10.0]),
        ([10.0, np.nan, 9.5], [10.0, 9.0, 11.0]),
        ([10.0, 11.0, 12.0], [10.0, np.nan, 9.9]),
    ],
)
def test_the_direction_is_that_along_which_the_cost_falls_most(monkeypatch, first, second):
    def evaluate(descent, weights):
        (axis,) = np.flatnonzero(np.ptp(weights, axis=0))
        return np.array([first, second][axis])

    monkeypatch.setattr("normbench.measures.planes._evaluate", evaluate)
    found = _direction_of_most_excess(None, np.eye(2), np.ones(2), np.ones(2), np.zeros(2))
    assert found.tolist() == [0, 1]


def test_the_cost_is_tried_along_the_24_directions_with_the_most_excess(monkeypatch):
    """The less excess the model sees along a direction, the more the cost falls there."""

    def evaluate(descent, weights):
        (axis,) = np.flatnonzero(np.ptp(weights, axis=0))
        return np.array([0.0, -1.0 - axis])

    monkeypatch.setattr("normbench.measures.planes._evaluate", evaluate)
    slope = np.arange(26.0, 0.0, -1.0)
    found = _direction_of_most_excess(None, np.eye(26), np.ones(26), slope, np.zeros(26))
    assert np.flatnonzero(found).tolist() == [23]


@pytest.mark.parametrize(
    ("second", "name"), [(3.997, "another direction, as stiff"), (3.994, MOST_LEFT)]
)
def test_curvatures_that_differ_by_a_thousandth_are_of_different_directions(second, name):
    path = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.5, 1.0]])
    hessian = Diagonal(4.0, second, 0.0, 0.0)
    descent = contoured([9.0, 1.0], reached=True)
    _, told = _choose_directions(descent, hessian, path, np.zeros(4))
    assert told == ("most curved direction", name)


@pytest.mark.parametrize("axis", range(4))
def test_of_directions_that_are_all_as_stiff_another_one_is_found_whatever_the_slope(axis):
    path = np.array([[1.0, 1.0, 1.0, 1.0], np.eye(4)[axis]])
    descent = contoured([9.0, 1.0], reached=True)
    directions, _ = _choose_directions(descent, Diagonal(4.0, 4.0, 4.0, 4.0), path, np.zeros(4))
    assert np.abs(directions[0]) == pytest.approx(np.eye(4)[axis], abs=1e-12)
    assert directions @ directions.T == pytest.approx(np.eye(2), abs=1e-12)


def test_a_matrix_of_as_many_weights_as_may_be_is_decomposed(monkeypatch):
    monkeypatch.setattr("normbench.measures.planes.MAX_DENSE_SIZE", 4)
    monkeypatch.setattr(Diagonal, "krylov_eigenpairs", None)
    path = np.array([[1.0, 1.0, 1.0, 1.0], [0.1, 1.0, 3.0, 1.0]])
    descent = contoured([9.0, 1.0], reached=True)
    directions, _ = _choose_directions(descent, Diagonal(4.0, 2.0, 1.0, 0.5), path, np.zeros(4))
    assert directions.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("rests", [False, True])
def test_without_a_least_cost_the_excess_is_that_of_the_end_or_where_it_rests_of_the_start(
    monkeypatch, rests
):
    """The gradient is the weights themselves; where the end rests, next to nothing there."""
    given = []
    path = np.array([[1.0, 2.0, 3.0, 4.0], [9.0, 9.0, 9.0, 9.0], [0.5, 0.6, 0.7, 0.8]])

    def evaluate(models):
        share = 1e-13 if rests and models[0, 0, 0] == 0.5 else 1.0
        return SimpleNamespace(gradient=share * models)

    def choose(descent, directions, values, slope, point):
        given.append((values.tolist(), slope.tolist(), point.tolist()))
        return directions[0]

    monkeypatch.setattr("normbench.measures.planes._direction_of_most_excess", choose)
    train = SimpleNamespace(shape=(1, 4), evaluate=evaluate)
    descent = contoured([9.0, 5.0, 1.0], train=train)
    directions, told = _choose_directions(descent, Diagonal(4.0, 2.0, 1.0, 0.5), path, None)
    at = path[0 if rests else 2].tolist()
    assert given == [([2, 1, 0.5], at, at)]
    assert directions.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert told[1] == f"direction with most excess cost {'at the start' if rests else 'left'}"


def test_without_curvature_the_plane_is_that_of_the_path_wherever_it_lies():
    train = SimpleNamespace(shape=(1, 4), hessian=lambda at: SimpleNamespace(is_zero=True))
    path = np.array([[0.0, 0.0, 5.0, 0.0], [3.0, 0.0, 5.0, 0.0], [3.0, 1.0, 5.0, 0.0]])
    plane = _plane(SimpleNamespace(train=train), path, None, ())
    assert plane.origin.tolist() == [3, 1, 5, 0]
    assert plane.directions[:, 2:] == pytest.approx(np.zeros((2, 2)), abs=1e-12)
    assert plane.directions @ plane.directions.T == pytest.approx(np.eye(2), abs=1e-12)


def test_without_a_least_cost_the_condition_is_that_at_the_end_of_the_path():
    x = np.arange(10.0)[:, None] - 4.3
    arrays = run(
        job(x, (x[:, 0] > 0).astype(int), iterations=3, record=("contours", "path"))
    ).arrays
    wide = np.column_stack([np.ones(10), (x - x.mean()) / x.std()])
    share = 1 / (1 + np.exp(-wide @ arrays["path"]["weights"][-1, 0]))
    hessian = (wide.T * (share * (1 - share))) @ wide / 10
    values = np.linalg.eigvalsh(hessian)
    assert arrays["contours"]["condition"] == pytest.approx(values[1] / values[0], rel=1e-9)


@pytest.mark.parametrize(("side", "cells"), [(40, 40), (5, 21), (600, 61)])
def test_a_grid_has_as_many_cells_as_may_be_computed(two_classes, monkeypatch, side, cells):
    """60 points and 4 weights: so many products for each cell."""
    monkeypatch.setattr("normbench.measures.planes.PRODUCT_BUDGET", 60 * 4 * (side + 0.5) ** 2)
    parts = run(job(*two_classes, iterations=2, record=("contours",))).arrays["contours"]
    assert parts["cost"].shape == (cells, cells)


@pytest.mark.parametrize(("features", "has_paths"), [(2, True), (3, False)])
def test_only_two_features_and_a_bias_have_every_path_in_the_picture(features, has_paths):
    x = np.random.default_rng(2).standard_normal((30, features))
    y = (x[:, 0] > x[::-1, 1]).astype(int)
    parts = run(job(x, y, iterations=6, record=("contours",))).arrays["contours"]
    assert "cost" in parts
    assert ("paths" in parts) == has_paths


@pytest.mark.parametrize("rule", [gradient_descent(), momentum()])
def test_paths_of_several_starts_are_those_of_the_first(rule):
    x = np.random.default_rng(3).standard_normal((30, 2)) + 1
    asked = job(
        *(x, x @ [1.0, -2.0] + 0.5, least_squares, FunctionTransformer(), None),
        **{"start": "normal", "starts": 2, "record": ("contours", "path")},
    )
    outcome = run(replace(asked, optimizer=rule))
    parts, path = outcome.arrays["contours"], outcome.arrays["path"]
    best = [step.step_size for step in outcome.steps].index(float(parts["step_size"]))
    assert parts["paths"].shape == (2, len(parts["paths_at"]), 2)
    np.testing.assert_allclose(
        parts["paths"][best], path["weights"][parts["paths_at"], 0, 1:], atol=1e-12
    )
    # The sum along the directions of curvature is of plain descent alone.
    assert ("swing" in parts) == rule.plain
    if rule.plain:
        away = parts["minimum"] + parts["swing"].sum(axis=0)
        assert away == pytest.approx(parts["paths"][0, 0], abs=1e-9)
