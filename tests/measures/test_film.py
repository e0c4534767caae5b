"""The film: one function in every frame, its counters against plain numpy, and why there is none.

What a frame's coordinates are is computed here from the data and the scheme alone.
"""

from dataclasses import replace
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
    SCORE_BUDGET,
    Scene,
    _descend_frames,
    _is_plane,
    _make_grid,
)
from normbench.normalizers import CholeskySphere, PCARotation, PCASphere, ZCASphere
from normbench.optimizers import gradient_descent, momentum

SCHEMES = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "pca": PCARotation(),
    "pca_sphere": PCASphere(ridge=0),
    "zca_sphere": ZCASphere(ridge=0),
    "cholesky": CholeskySphere(),
}
COSTS = {"least_squares": least_squares, "softmax": softmax}
# Each scheme once; both costs meet points of both kinds.
SCENES = [
    ("standard", "least_squares", False),
    ("minmax", "softmax", True),
    ("pca", "least_squares", True),
    ("pca_sphere", "softmax", False),
    ("zca_sphere", "least_squares", False),
    ("cholesky", "softmax", True),
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


@cache
def sphered():
    return made(PCASphere(), softmax)


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


@pytest.mark.parametrize("margin", [1.6, 2.4, 3.6, 5.4])
@pytest.mark.parametrize("share", [0.99, 1.01])
def test_the_grid_is_the_first_whose_round_border_costs_twice_the_excess(margin, share):
    """The cost is the squared distance, in units that make the Gram matrix I: no circle is nearer.

    share: the border's cost that is asked for, of that at the margin.
    """
    rng = np.random.default_rng(0)
    points = rng.standard_normal((40, 2)) @ [[2.0, 0.5], [0.0, 0.3]]
    points -= points.mean(axis=0)
    gram = points.T @ points / len(points)
    root = np.linalg.cholesky(gram)
    origin, lowest = np.array([0.5, 1.0, -2.0]), 0.25
    level = lowest + share * margin**2 / 2

    def costs(weights):
        return lowest + (((weights - origin)[:, 1:] @ root) ** 2).sum(axis=1)

    scene = SimpleNamespace(
        problem=SimpleNamespace(points=points),
        costs=costs,
        cost_range=lambda weights: (lowest, level),
    )
    far = origin[1:] + np.array([[1.0, 0.0], [0.0, 0.5]]) @ np.linalg.inv(root)
    paths = np.insert(np.stack([far, far]), 0, 0.5, axis=2)
    along, directions, grid = _make_grid(scene, paths, origin)
    margins = [1.6, 2.4, 3.6, 5.4, 5.4]  # where none is wide enough, the last
    assert along[-1] == pytest.approx(margins[margins.index(margin) + (share > 1)])
    assert along == pytest.approx(-along[::-1])
    assert (np.diff(along) > 0).all()
    assert np.diff(along)[len(along) // 2] < 0.1 * np.diff(along)[0]
    assert directions[:, 0].tolist() == [0, 0]
    assert directions[:, 1:] @ gram @ directions[:, 1:].T == pytest.approx(np.eye(2), abs=1e-9)
    assert grid.shape == (len(along), len(along))
    assert len(along) % 2 == 1  # the origin is a place of the grid
    distances = along**2 + along[:, None] ** 2
    assert grid == pytest.approx(lowest + distances, rel=1e-9)


def test_work_is_bounded_from_both_sides():
    def most(count, frames):
        problem = SimpleNamespace(points=np.zeros((count, 2)))
        return Scene.max_iterations.fget(SimpleNamespace(problem=problem, maps=range(frames)))

    assert most(100, 25) == 1000
    assert most(10_000, 40) == SCORE_BUDGET / 400_000 == 500
    assert most(10**7, 40) == 100


@pytest.mark.parametrize("away", [0.0, 1e4])
@pytest.mark.parametrize(("across", "kept"), [(1e-4, True), (1e-8, False)])
def test_points_lie_on_a_line_wherever_it_is(away, across, kept):
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.standard_normal(50), across * rng.standard_normal(50)])
    x = x @ np.array([[1.0, 1.0], [-1.0, 1.0]]) + away
    affine = SimpleNamespace(matrix=np.eye(2), centre=x.mean(axis=0))
    assert _is_plane(affine, x) == kept
    assert not _is_plane(SimpleNamespace(matrix=np.eye(3)[:2], centre=x.mean(axis=0)), x)


@pytest.mark.parametrize(("shrunk", "kept"), [(1e-11, True), (1e-13, False)])
def test_a_map_that_shrinks_one_direction_away_keeps_no_plane(shrunk, kept):
    x = points()[0]
    affine = SimpleNamespace(matrix=np.diag([1 / 2, shrunk]), centre=x.mean(axis=0))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    affine.centre = np.zeros(2)
    assert _is_plane(affine, x) == kept


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


def test_all_that_is_kept_is_small():
    for scene in SCENES:
        parts = filmed(*scene)[-1]
        assert sum(part.nbytes for part in parts.values()) < 300_000  # measured 87,000
        assert len(parts["matrix"]) == 12 * (len(parts["keys"]) - 1) + 1


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


def test_a_penalty_on_the_weights_of_the_features_is_in_every_frames_curvature():
    data, job, _ = made(ZCASphere(), least_squares)
    outcome = run(replace(job, l2=0.3, l2_in="features"))
    parts = outcome.arrays["film"]
    for frame in parts["keys"]:
        z = coordinates(parts, frame, data.x)
        ones = np.column_stack([np.ones(len(z)), z])
        hessian = 2 * ones.T @ ones / len(z)
        hessian[1:, 1:] += 0.6 * parts["matrix"][frame] @ parts["matrix"][frame].T
        largest = np.linalg.eigvalsh(hessian)[-1]
        assert parts["lipschitz"][frame] == pytest.approx(largest, rel=1e-10)


def test_in_float32_the_film_is_the_same_to_its_digits():
    parts = made(PCASphere(), softmax, precision="float32")[-1].arrays["film"]
    other = sphered()[-1].arrays["film"]
    assert np.array_equal(parts["iterations"], other["iterations"])
    assert parts["path"] == pytest.approx(other["path"], abs=1e-4)


def test_a_least_cost_at_infinity_has_contours_through_the_last_paths_end():
    x, _ = points()
    y = (x[:, 0] + x[:, 1] > 3).astype(int)
    parts = made(PCASphere(), softmax, x, y)[-1].arrays["film"]
    assert str(parts["through"]) == "the end of the last path"
    assert parts["origin"][-1] == pytest.approx(parts["path"][-1, -1, 1:], rel=1e-12)
    assert parts["level"] > parts["lowest"] > 0
    assert (np.diff(parts["path_cost"], axis=1) <= 0).all()


def test_more_iterations_than_a_film_makes_are_said_to_be_more(monkeypatch):
    x, y = points()
    parts = made(PCASphere(), softmax, x + np.array([300.0, 0.0]), y)[-1].arrays["film"]
    assert parts["iterations"][0] == -1
    assert parts["iterations"][-1] > 0
    monkeypatch.setattr(
        "normbench.measures.planes.SCORE_BUDGET", 500_000
    )  # as 36,000 points would have it
    few = made(PCASphere(), softmax)[-1].arrays["film"]
    assert few["most"] == 500_000 // (90 * len(few["matrix"]))
    assert few["cost"].shape == (74, 74)


REASONS = {
    "no affine map": (QuantileTransformer(n_quantiles=20), softmax, {}),
    "each class has a score": (StandardScaler(), multiclass_softmax, {}),
    "keep two directions": (PCARotation(components=1), softmax, {}),
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


def test_points_on_a_line_have_no_film():
    x, y = points()
    _, _, outcome = made(StandardScaler(), softmax, np.column_stack([x[:, 0], 2 * x[:, 0]]), y)
    assert "keep two directions" in outcome.findings.tags["theory_note"]


def test_a_start_at_the_least_cost_has_no_film():
    data = points()
    weights = [
        float(v)
        for v in np.linalg.lstsq(
            np.column_stack([np.ones(90), StandardScaler().fit_transform(data[0])]),
            2.0 * data[1] - 1,
            rcond=None,
        )[0]
    ]
    _, _, outcome = made(StandardScaler(), least_squares, *data, start=tuple(weights))
    assert "film: the start has the least cost" in outcome.findings.tags["theory_note"]


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


def test_the_film_is_plain_descent_whatever_the_job_descends_by():
    data, job, outcome = sphered()
    other = run(Job(data, softmax, PCASphere(), momentum(), job.settings))
    assert np.array_equal(outcome.arrays["film"]["path"], other.arrays["film"]["path"])


def test_the_path_is_kept_at_iterations_that_are_close_together_at_first():
    iteration = filmed("standard", "softmax")[-1]["iteration"].tolist()
    powers = [round(100 ** (number / 23)) for number in range(24)]
    assert iteration == sorted({0, *powers})


@pytest.mark.parametrize("cost", COSTS)
def test_the_level_is_the_cost_of_the_starts_two_weights_at_the_bias_that_is_held(cost):
    data, _, _, parts = filmed("pca", cost)
    z = coordinates(parts, -1, data.x)
    bias = _held(parts, [z], data.y, cost)
    scores = bias + z @ parts["path"][-1, 0, 1:]
    assert parts["level"] == pytest.approx(formula(cost, scores, data.y), rel=1e-9)


def test_little_work_makes_a_small_film(monkeypatch):
    assert filmed("standard", "softmax")[-1]["cost"].shape == (121, 121)
    monkeypatch.setattr("normbench.measures.planes.SCORE_BUDGET", 1.0)
    few = made(StandardScaler(), softmax)[-1].arrays["film"]
    assert few["cost"].shape == (31, 31)
    assert few["most"] == 100


def test_the_border_of_the_grid_is_looked_at_all_around_the_origin():
    """Of points whose Gram matrix is I, at weights equally far apart on a circle."""
    asked = []

    def costs(weights):
        asked.append(weights)
        return np.full(len(weights), 100.0)

    points = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    scene = SimpleNamespace(
        problem=SimpleNamespace(points=points), costs=costs, cost_range=lambda origin: (0.0, 1.0)
    )
    origin = np.array([5.0, 1.0, -2.0])
    along, _, _ = _make_grid(scene, np.array([[[5.0, 1.0, 0.0]]]), origin)
    assert along[-1] == pytest.approx(1.6 * 2)  # the path is 2 away
    circle = asked[0] - origin
    assert circle[:, 0].tolist() == [0] * 32
    assert np.linalg.norm(circle, axis=1) == pytest.approx(np.full(32, 3.2))
    apart = np.linalg.norm(circle - np.roll(circle, 1, axis=0), axis=1)
    assert apart == pytest.approx(np.full(32, 2 * 3.2 * np.sin(np.pi / 32)))


class Falling:
    """A cost that falls by 1 an iteration from the first weight on, whatever the frame."""

    def evaluate(self, weights):
        gradient = np.zeros_like(weights)
        gradient[..., 0] = 1.0
        return SimpleNamespace(costs=weights[:, 0, 0], gradient=gradient)


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        (150.0, [0, 0]),  # from the start on
        (145.0, [5, 3]),  # exactly there
        (30.5, [120, 60]),
        (30.0, [120, 60]),  # at the last iteration
        (29.5, [-1, 61]),  # an iteration later
        (-100.0, [-1, -1]),
    ],
)
def test_a_frame_arrives_at_the_first_iteration_that_costs_no_more_than_the_target(target, reached):
    """Two frames whose steps lower the cost by 1 and by 2, from 150 on, 120 times at most."""
    maps = np.array([np.eye(3), np.diag([2.0, 1.0, 1.0])])
    start = np.array([150.0, 7.0, 8.0])
    scene = SimpleNamespace(problem=Falling(), maps=maps, start=start, max_iterations=120)
    steps = np.array([1.0, 0.5])  # times the square of the map's 2
    iteration, path, cost, arrivals = _descend_frames(scene, steps, target)
    assert arrivals.tolist() == reached
    np.testing.assert_array_equal(cost, 150 - np.outer([1, 2], iteration))
    np.testing.assert_array_equal(path[..., 0], cost)
    assert (path[..., 1:] == [7, 8]).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_a_film_is_made_whatever_the_unit_of_the_targets(unit):
    x, _ = points()
    data = make_dataset("two", x, unit * (x @ [1.0, 2.0] + np.sin(x[:, 0])), source="-")
    settings = Settings((0.1,), iterations=5, record=("film",), refine=False)
    outcome = run(Job(data, least_squares, StandardScaler(), gradient_descent(), settings))
    assert outcome.arrays["film"]["iterations"][-1] > 0


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("shrunk", "kept"), [(1.0, True), (1e-11, True), (1e-13, False)])
def test_a_map_keeps_a_plane_by_what_it_makes_of_the_points(unit, shrunk, kept):
    """The scales of the features and their unit under the map play no part."""
    x = points()[0]
    x = (x - x.mean(axis=0)) / x.std(axis=0) * [1e8, 1e-8]
    matrix = unit * np.diag([1e-8, shrunk * 1e8])
    assert _is_plane(SimpleNamespace(matrix=matrix, centre=np.zeros(2)), x) == kept
