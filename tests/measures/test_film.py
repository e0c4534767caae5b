"""The film: one function in every frame, its counters against plain numpy, and why there is none.

What a frame's coordinates are is computed here from the data and the scheme alone.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    QuantileTransformer,
    StandardScaler,
)

from normbench import names
from normbench.costs import least_squares, multiclass_softmax, perceptron, softmax
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.measures.planes import (
    _is_plane,
)
from normbench.normalizers import PCARotation, PCASphere, ZCASphere
from normbench.optimizers import gradient_descent

SCHEMES = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "pca_sphere": PCASphere(ridge=0),
    "zca_sphere": ZCASphere(ridge=0),
}
COSTS = {"least_squares": least_squares, "softmax": softmax}
# Both costs meet points of both kinds.
SCENES = [
    ("standard", "least_squares", False),
    ("minmax", "softmax", True),
    ("zca_sphere", "least_squares", True),
    ("pca_sphere", "softmax", False),
]


def points(steep=False, count=90):
    """Correlated points off the origin; steep: the longest axis lies near the second feature's."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, count)
    x = rng.standard_normal((count, 2)) * [3.0, 0.5] + 0.8 * y[:, None]
    x = x @ np.array([[0.9, 0.4], [-0.4, 0.9]]) + [4.0, -1.0]
    return (x[:, ::-1] if steep else x), y


def made(scheme, cost, x=None, y=None, l2=0.0, **settings):
    given = points() if x is None else (x, y)
    data = make_dataset("two", *given, class_names=["no", "yes"], source="-")
    settings = {"iterations": 20, "record": ("film",), "refine": False, **settings}
    job = Job(data, cost, scheme, gradient_descent(), Settings((0.1,), **settings), l2=l2)
    return data, job, run(job)


@cache
def filmed(name, cost, steep=False):
    data, job, outcome = made(SCHEMES[name], COSTS[cost], *points(steep), start="normal")
    return data, job, outcome, outcome.arrays["film"]


def coordinates(parts, frame, x):
    return (x - parts["centre"]) @ parts["matrix"][frame].T + parts["image"][frame]


def formula(cost, scores, y):
    sign = 2.0 * y - 1
    return np.mean(
        (scores - sign) ** 2 if cost == "least_squares" else np.log1p(np.exp(-sign * scores)), -1
    )


def gradient(cost, z, weights, y):
    sign, ones = 2.0 * y - 1, np.column_stack([np.ones(len(z)), z])
    scores = ones @ weights
    slope = 2 * (scores - sign) if cost == "least_squares" else -sign / (1 + np.exp(sign * scores))
    return ones.T @ slope / len(z)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_last_frame_is_the_scheme_and_the_first_the_features(scene):
    data, job, _, parts = filmed(*scene)
    last = coordinates(parts, -1, data.x)
    z = job.scheme.transform(data.x)
    assert last == pytest.approx(z, abs=1e-12 * np.abs(z).max())  # measured 2e-15
    assert coordinates(parts, 0, data.x) == pytest.approx(data.x, abs=1e-14)
    assert list(parts["names"][-1]) == list(job.scheme.get_feature_names_out(["x0", "x1"]))
    if "centred" in parts["words"]:
        centred = parts["keys"][list(parts["words"]).index("centred")]
        assert coordinates(parts, centred, data.x).mean(axis=0) == pytest.approx([0, 0], abs=1e-13)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_cost_is_one_function_in_every_frame(scene):
    """At the start, along every path, and on the contours' plane."""
    (data, _, _, parts), (_, cost, _) = filmed(*scene), scene
    every = [coordinates(parts, frame, data.x) for frame in range(len(parts["matrix"]))]
    starts = parts["path_cost"][:, 0]
    assert np.ptp(starts) <= 1e-12 * starts[0]
    for z, path, told in zip(every, parts["path"], parts["path_cost"]):
        scores = path[:, :1] + path[:, 1:] @ z.T
        found = formula(cost, scores, data.y)
        assert found == pytest.approx(told, rel=1e-12)  # measured 2e-14
    # A place of the plane is the same scores in every frame, with the bias held in the last one's.
    places = np.array([[parts["along"][3], parts["along"][-9]], [0.0, 0.0]])
    grid = np.array([parts["cost"][-9, 3], parts["lowest"]])
    held = _held(parts, every, data.y, cost)
    for frame, z in enumerate(every):
        weights = parts["origin"][frame] + places @ parts["basis"][frame]
        # In the last frame's coordinates z = M f + n of this frame's f: b = held + w n.
        moved = _between(parts, frame)
        own = parts["origin"][-1] + places @ parts["basis"][-1]
        bias = held + own @ moved
        scores = bias[:, None] + weights @ z.T
        found = formula(cost, scores, data.y)
        assert found == pytest.approx(grid, rel=1e-6)  # the grid is float32
        assert found[1] == pytest.approx(float(parts["lowest"]), rel=1e-12)


def _between(parts, frame):
    """Return n of `z = M f + n`, from a frame's coordinates f to the last frame's z."""
    matrix = parts["matrix"][-1] @ np.linalg.inv(parts["matrix"][frame])
    return parts["image"][-1] - matrix @ parts["image"][frame]


def _held(parts, every, y, cost):
    """Return the bias at the least cost over all three weights, by Newton's method, here."""
    weights, z = np.zeros(3), every[-1]
    ones = np.column_stack([np.ones(len(z)), z])
    for _ in range(60):
        scores = ones @ weights
        curved = np.full(len(z), 2.0) if cost == "least_squares" else 1 / (2 + 2 * np.cosh(scores))
        hessian = ones.T @ (ones * curved[:, None]) / len(z)
        weights = weights - np.linalg.solve(hessian, gradient(cost, z, weights, y))
    assert weights[1:] == pytest.approx(parts["origin"][-1], rel=1e-6)
    return weights[0]


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_counters_at_key_frames_are_those_of_a_descent_made_anew(scene):
    (data, _, outcome, parts), (_, cost, _) = filmed(*scene), scene
    bound = {"least_squares": 2.0, "softmax": 0.25}[cost]
    for frame in parts["keys"]:
        z = coordinates(parts, frame, data.x)
        ones = np.column_stack([np.ones(len(z)), z])
        values = np.linalg.eigvalsh(ones.T @ ones / len(z))
        assert parts["lipschitz"][frame] == pytest.approx(bound * values[-1], rel=1e-10)
        assert parts["condition"][frame] == pytest.approx(values[-1] / values[0], rel=1e-8)
        weights, costs = parts["path"][frame, 0], []
        for _ in range(1001):
            costs.append(formula(cost, ones @ weights, data.y))
            weights = weights - gradient(cost, z, weights, data.y) / parts["lipschitz"][frame]
        assert parts["path_cost"][frame] == pytest.approx(
            np.array(costs)[parts["iteration"]], rel=1e-10
        )
        least = outcome.findings.metrics[names.MINIMUM.key]
        there = np.flatnonzero(np.array(costs) - least <= 0.01 * (costs[0] - least))
        assert parts["iterations"][frame] == (there[0] if len(there) else -1)
    assert int(parts["most"]) == 1000
    found = outcome.findings.metrics
    assert parts["condition"][-1] == pytest.approx(found["theory/condition_number"], rel=1e-6)
    assert parts["lipschitz"][-1] == pytest.approx(found["theory/lipschitz"], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "cost"), [("pca_sphere", "least_squares"), ("standard", "softmax")]
)
def test_the_film_ends_in_the_contours_of_the_scheme(name, cost):
    record = ("film", "contours")
    arrays = made(SCHEMES[name], COSTS[cost], start="normal", record=record)[-1].arrays
    film, contours = arrays["film"], arrays["contours"]
    assert film["origin"][-1] == pytest.approx(contours["minimum"], rel=1e-12)
    assert film["lowest"] == pytest.approx(float(contours["least"]), rel=1e-9)
    assert film["path"][-1, 0, 1:] == pytest.approx(contours["path"][0], rel=1e-12)
    # One function on two grids, of which one is read between its points.
    between = RegularGridInterpolator((contours["b"], contours["a"]), contours["cost"])
    places = np.stack(np.meshgrid(film["along"], film["along"]), axis=-1).reshape(-1, 2)
    weights = film["origin"][-1] + places @ film["basis"][-1]
    low, high = (np.array([contours["a"][n], contours["b"][n]]) for n in (0, -1))
    inside = ((weights > low) & (weights < high)).all(axis=1)
    assert inside.sum() > 50
    told = between(weights[inside][:, ::-1])
    own = film["cost"].ravel()[inside]
    assert own == pytest.approx(told, abs=0.002 * np.ptp(told))  # measured 0.0003


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_the_grid_holds_the_paths_and_the_contours_around_them(scene):
    """Its round border costs twice the excess of the start's weights: that contour is closed."""
    parts = filmed(*scene)[-1]
    moved = parts["path"][:, :, 1:] - parts["origin"][:, None]
    farthest = np.linalg.norm(moved @ np.linalg.inv(parts["basis"]), axis=2).max()
    along = parts["along"]
    assert along == pytest.approx(-along[::-1])
    margins = [1.6, 2.4, 3.6, 5.4]
    number = int(np.argmin(np.abs(along[-1] / farthest - margins)))
    assert along[-1] / farthest == pytest.approx(margins[number])
    closed = parts["lowest"] + 2 * (parts["level"] - parts["lowest"])
    away = np.hypot(along, along[:, None])
    assert parts["cost"][away >= along[-1]].min() >= closed * (1 - 1e-6)  # it is convex
    if number:  # a smaller grid would not have been enough
        assert parts["cost"][away <= margins[number - 1] * farthest].max() > closed
        inner = away <= 0.9 * margins[number - 1] * farthest
        ring = away >= 0.7 * margins[number - 1] * farthest
        assert parts["cost"][inner & ring].min() < closed


def test_each_key_frame_names_its_coordinates():
    """Those of the features until they are turned, of two directions then, the scheme's at last."""
    directions, features = ["direction 1", "direction 2"], ["x0", "x1"]
    _, job, _, parts = filmed("zca_sphere", "least_squares")
    own = job.scheme.get_feature_names_out(features)
    assert [word.split()[0] for word in parts["words"]] == [
        *("raw", "centred", "rotated", "scaled", "rotated"),
    ]
    rows = [list(row) for row in parts["names"]]
    assert rows == [features, features, directions, directions, list(own)]
    plain = filmed("standard", "least_squares")[-1]
    assert [list(row) for row in plain["names"][:-1]] == [features] * 2


@pytest.mark.parametrize("away", [0.0, 1e4])
@pytest.mark.parametrize(("across", "kept"), [(1e-4, True), (1e-8, False)])
def test_points_lie_on_a_line_wherever_it_is(away, across, kept):
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.standard_normal(50), across * rng.standard_normal(50)])
    x = x @ np.array([[1.0, 1.0], [-1.0, 1.0]]) + away
    affine = SimpleNamespace(matrix=np.eye(2), centre=x.mean(axis=0))
    assert _is_plane(affine, x) == kept
    assert not _is_plane(SimpleNamespace(matrix=np.eye(3)[:2], centre=x.mean(axis=0)), x)


@pytest.mark.parametrize("name", ["pca_sphere", "zca_sphere"])
def test_sphering_ends_at_condition_1_in_one_step_of_least_squares(name):
    parts = filmed(name, "least_squares")[-1]
    condition, made = parts["condition"], parts["iterations"]
    first = parts["keys"][list(parts["words"]).index("centred")]
    assert (np.diff(condition[first:]) <= 1e-9 * condition[first]).all()
    assert condition[-1] == pytest.approx(1, abs=1e-9)
    assert made[-1] == 1
    assert made[first] > 10
    assert made[0] == -1  # more than 1,000


def test_a_penalty_is_that_of_the_schemes_weights_in_every_frame():
    data, _, outcome = made(PCASphere(), least_squares, l2=0.3, start="normal")
    parts = outcome.arrays["film"]
    for frame in parts["keys"]:
        z = coordinates(parts, frame, data.x)
        slopes = parts["path"][frame, :, 1:]
        own = slopes @ parts["matrix"][frame] @ np.linalg.inv(parts["matrix"][-1])
        scores = parts["path"][frame, :, :1] + slopes @ z.T
        penalized = formula("least_squares", scores, data.y) + 0.3 * (own**2).sum(axis=1)
        assert parts["path_cost"][frame] == pytest.approx(penalized, rel=1e-12)
        hessian = np.zeros((3, 3))
        mixed = parts["matrix"][frame] @ np.linalg.inv(parts["matrix"][-1])
        hessian[1:, 1:] = 0.6 * mixed @ mixed.T
        ones = np.column_stack([np.ones(len(z)), z])
        largest = np.linalg.eigvalsh(hessian + 2 * ones.T @ ones / len(z))[-1]
        assert parts["lipschitz"][frame] == pytest.approx(largest, rel=1e-10)


def test_a_least_cost_at_infinity_has_contours_through_the_last_paths_end():
    x, _ = points()
    y = (x[:, 0] + x[:, 1] > 3).astype(int)
    parts = made(PCASphere(), softmax, x, y)[-1].arrays["film"]
    assert str(parts["through"]) == "the end of the last path"
    assert parts["origin"][-1] == pytest.approx(parts["path"][-1, -1, 1:], rel=1e-12)
    assert parts["level"] > parts["lowest"] > 0
    assert (np.diff(parts["path_cost"], axis=1) <= 0).all()


REASONS = {
    "no affine map": (QuantileTransformer(n_quantiles=20), softmax, {}),
    "one score a point": (StandardScaler(), multiclass_softmax, {}),
    "keeps two directions": (PCARotation(components=1), softmax, {}),
    "leaves the points as they are": (FunctionTransformer(), softmax, {}),
    "no largest curvature": (StandardScaler(), perceptron, {"start": "normal"}),
}


@pytest.mark.parametrize("why", REASONS)
def test_without_a_film_one_sentence_says_why(why):
    scheme, cost, settings = REASONS[why]
    _, _, outcome = made(scheme, cost, **settings)
    assert "film" not in outcome.arrays
    (told,) = [
        note for note in outcome.findings.tags["theory_note"].split("; ") if note[:5] == "film:"
    ]
    assert why in told


@pytest.mark.parametrize("features", [1, 3])
def test_one_feature_and_three_are_refused_before_a_job_starts(features):
    rng = np.random.default_rng(0)
    data = make_dataset(
        "many",
        rng.standard_normal((20, features)),
        np.arange(20) % 2,
        class_names=["a", "b"],
        source="-",
    )
    job = Job(
        data, softmax, StandardScaler(), gradient_descent(), Settings((0.1,), record=("film",))
    )
    with pytest.raises(UserError, match=f"film: needs 2 features.* of {features} features, "):
        check(job)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("shrunk", "kept"), [(1e-5, True), (1e-7, False)])
def test_a_map_keeps_a_plane_by_what_it_makes_of_the_points(unit, shrunk, kept):
    """The scales of the features and their unit under the map play no part."""
    x = points()[0]
    x = (x - x.mean(axis=0)) / x.std(axis=0) * [1e8, 1e-8]
    matrix = unit * np.diag([1e-8, shrunk * 1e8])
    assert _is_plane(SimpleNamespace(matrix=matrix, centre=np.zeros(2)), x) == kept
