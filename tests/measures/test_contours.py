"""The cost on a plane of weights: which plane, which window, and what is told of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline
from sklearn.preprocessing import FunctionTransformer

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.job import run
from normbench.measures.planes import (
    _window,
)
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent, newton
from tests.measures.test_record import job


@pytest.mark.parametrize(
    ("features", "classes", "precision"),
    [(2, 2, "float64"), (5, 2, "float32")],
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


@pytest.mark.parametrize(("cost", "features"), [(softmax, 1), (softmax, 2), (least_squares, 5)])
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


@pytest.mark.parametrize("unit", [1e-8])
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


def test_a_cost_without_curvature_still_has_contours(two_classes):
    from autograd import numpy as anp

    def hinge(scores, targets):
        return anp.sum(anp.maximum(0.0, 100.0 - targets * scores[:, 0]), axis=-1)

    parts = run(job(*two_classes, cost=hinge)).arrays["contours"]
    assert np.isfinite(parts["cost"]).all()
    assert "path" in parts["names"][0]
    assert np.ptp(parts["path"], axis=0).argmax() == 0
    assert parts["path"][-1].tolist() == [0, 0]


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
