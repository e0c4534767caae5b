"""The report's explorer: its data, its script, and what the page allows."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest

import normbench
from normbench import names
from normbench.datasets.bundled import diabetes
from normbench.results.report import explorer
from normbench.results.report import page as report
from tests.results.made import runs

JSON = re.compile(r'<script type="application/json" class="explored">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def squares():
    data = diabetes()
    grid = {"step_sizes": [0.01, 0.1, 0.3, 1e3], "iterations": 200}
    return normbench.compare(data.x, data.y, "least_squares", ["standard", "pca_sphere"], **grid)


def explored(found):
    (text,) = JSON.findall(report.render(found.sweep, {}))
    return json.loads(text)


def test_of_least_squares_the_closed_form_is_what_was_recorded(squares):
    """So that it is exact between the step sizes of the grid, too."""
    data = explored(squares)
    assert [scheme["label"] for scheme in data["schemes"]] == ["standard", "pca_sphere"]
    for scheme in data["schemes"]:
        curvature, share = np.array(scheme["curvature"]), np.array(scheme["share"])
        grouped = np.add.reduceat(share, scheme["first"])
        assert grouped == pytest.approx(np.array(scheme["thickness"]), rel=1e-8)
        assert share.sum() == pytest.approx(1)
        assert scheme["at"] == list(range(201))  # every iteration
        for size, left in zip(scheme["sizes"][:2], scheme["left"]):
            told = (share * (1 - size * curvature) ** (2 * np.array(scheme["at"])[:, None])).sum(1)
            assert told == pytest.approx(np.array(left), rel=1e-4, abs=1e-12)  # of five digits
    assert data["iterations"] == 200


def test_a_run_that_diverged_has_no_excess_from_there(squares):
    scheme = explored(squares)["schemes"][0]
    assert scheme["verdicts"][-1] == "diverged"
    assert scheme["left"][-1][-1] is None


def test_of_many_iterations_the_least_and_the_greatest_of_each_bin_stand():
    """A zigzag that is thinned to some of its iterations would seem to calm down."""
    costs = 1.0 / np.arange(1, 2002) + np.where(np.arange(2001) % 2, 0.5, 0.0)
    costs[0] = 2.0
    parts = {explorer.TRAIN_COST: costs[None, None], "minimum": 0.0, "step_sizes": np.array([0.1])}
    found = explorer._steps(parts, {0.1: "cycling"}, 1)
    (left,) = found["left"]
    assert len(left) == len(found["at"]) == 502
    low, high = np.array(left[1:-1:2]), np.array(left[2:-1:2])
    assert (high - low > 0.24).all()
    assert left[-1] == pytest.approx(costs[-1] / 2, rel=1e-4)
    assert found["at"][-1] == 2000
    assert found["verdicts"] == ["cycling"]


def test_of_several_starts_the_first_is_shown():
    costs = np.array([[[2.0, 1.0, 0.5], [2.0, 1.8, 1.6]]])  # one step size, two starts
    arrays = {explorer.TRAIN_COST: costs, "minimum": 0.0, "step_sizes": np.array([0.1])}
    assert explorer._steps(arrays, {}, 1)["left"] == [[1.0, 0.5, 0.25]]


def test_measured_layers_are_those_of_the_runs_and_of_the_best_way():
    x = np.random.default_rng(0).standard_normal((60, 3)) * [1, 5, 20]
    found = normbench.compare(
        x, (x.sum(axis=1) > 0).astype(int), "softmax", ["identity"], [1e-4, 1e-3], 30
    )
    (scheme,) = json.loads(explorer.data(found.sweep, "x-softmax"))["schemes"]
    assert sum(scheme["thickness"]) == pytest.approx(1)
    assert np.shape(scheme["ends"]) == (2, len(scheme["thickness"]))
    place = scheme["sizes"].index(scheme["path_step"])
    edge = np.sum(scheme["path"], axis=1)
    assert edge == pytest.approx(np.array(scheme["left"][place])[scheme["path_at"]], rel=0.02)
    assert "curvature" not in scheme


def test_the_page_runs_this_script_and_no_other(squares):
    page = report.render(squares.sweep, {})
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'"
    )
    assert len(script.splitlines()) <= 330


@pytest.fixture(scope="module")
def plane():
    """Two features, so that the weights' paths lie in a picture."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((50, 2)) @ [[1, 0.5], [0, 0.3]] + 1
    y = x @ [1.0, -2.0] + 0.3 * rng.standard_normal(50)
    grid = {"step_sizes": [0.01, 0.1, 10.0], "iterations": 100, "record": ["contours"]}
    return normbench.compare(x, y, "least_squares", ["identity", "pca_sphere"], **grid)


def test_paths_of_two_weights_follow_the_contours(plane, squares):
    """Each contour has one cost: found from the least cost and the curvature in the plane."""
    assert not any("plane" in scheme for scheme in explored(squares)["schemes"])
    for scheme in explored(plane)["schemes"]:
        drawn = scheme["plane"]
        assert len(drawn["paths"]) == 3
        assert all(len(path) == 2 * len(drawn["at"]) for path in drawn["paths"])
        swing = np.reshape(drawn["swing"], (-1, 2))
        for size, path in zip(scheme["sizes"][:2], drawn["paths"]):
            for k, place in zip(drawn["at"], np.reshape(path, (-1, 2))):
                shrunk = (1 - size * np.array(drawn["curvature"])) ** k
                # Paths have five digits.
                assert drawn["minimum"] + shrunk @ swing == pytest.approx(place, abs=1e-4)
        inside = [np.array(line) for line in drawn["lines"]]
        assert len(inside) >= 4
        assert all(((line >= -1e-9) & (line <= 1 + 1e-9)).all() for line in inside)
        assert max(map(len, inside)) <= 2 * explorer.MAX_LINE_POINTS


def test_a_hostile_name_cannot_leave_its_data():
    bad = "</script><script>alert(1)</script>"
    x = np.arange(20.0).reshape(10, 2) % 7
    found = normbench.compare(x, [0, 1] * 5, name=bad, iterations=2)
    text = explorer.data(found.sweep, found.sweep.experiments[0])
    assert "<" not in text
    assert json.loads(text)["iterations"] == 2
    assert report.render(found.sweep, {}).count("<script") == 2


@pytest.mark.slow
def test_many_schemes_and_steps_stay_small():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 30)), np.arange(40) % 2
    names = [
        "identity",
        "standard",
        "pca_sphere",
        "minmax",
        "maxabs",
        "robust",
        "centre",
        "zca_sphere",
    ]
    steps = list(10.0 ** np.arange(-7, 3))
    less = {"refine": False, "shadows": False, "theory": "none"}
    found = normbench.compare(x, y, "softmax", names, steps, 1000, **less)
    assert (
        len(explorer.data(found.sweep, found.sweep.experiments[0])) < 600_000
    )  # 80 runs of 500 numbers


def test_black_is_the_colour_of_the_text_which_is_light_in_the_dark():
    found = normbench.compare(np.eye(4), [0, 1, 0, 1], iterations=2, step_sizes=[0.1, 1])
    data = json.loads(explorer.data(found.sweep, "x-softmax"))
    assert data["schemes"][0]["color"] == "currentColor"
    assert all(scheme["color"][0] == "#" for scheme in data["schemes"][1:])


def test_numbers_are_short_and_thinned_evenly():
    assert explorer._rounded([1.23456, np.nan, np.inf, 123456.0], 3) == [1.23, None, None, 123000.0]
    assert explorer._spread_indices(5).tolist() == [0, 1, 2, 3, 4]
    assert explorer._spread_indices(explorer.MAX_LINE_POINTS).tolist() == list(range(40))
    thinned = explorer._spread_indices(101, 6)
    assert thinned.tolist() == [0, 20, 40, 60, 80, 100]
    assert explorer._spread_indices(1).tolist() == [0]


def test_records_are_counted_in_iterations_of_several():
    assert explorer._in_iterations(np.array([0, 1, 4]), 1) == [0, 1, 4]
    assert explorer._in_iterations(np.array([0, 1, 4]), 2) == [0, 0.5, 2]


@pytest.mark.parametrize(
    ("fit", "step", "shown"),
    [
        (1.23456, 0.00123456, {"fit": 1.23, "step": 0.00123}),
        (np.nan, 1.0, {}),
        (1.0, 0.0, {}),
        (1.0, np.nan, {}),
        (None, 1.0, {}),
        (0.0, 1.0, {"fit": 0.0, "step": 1.0}),
    ],
)
def test_seconds_are_shown_where_both_are_recorded(fit, step, shown):
    row = {names.FIT_SECONDS.column: fit, names.SECONDS_A_STEP.column: step}
    assert explorer._seconds(row) == shown


def test_a_best_step_size_is_shown_where_there_is_one():
    assert explorer._best({names.STEP_TAG.column: "0.25"}) == {"best": 0.25}
    assert explorer._best({}) == {}


def steps_of(costs, minimum=0.0, sizes=(0.1,), verdicts=None, records=1):
    arrays = {explorer.TRAIN_COST: np.array(costs, dtype=float)[:, None], "minimum": minimum}
    return explorer._steps(arrays | {"step_sizes": np.array(sizes)}, verdicts or {}, records)


def test_the_excess_of_each_step_size_is_a_share_of_the_first_ones_start():
    shown = steps_of([[5, 3, 1], [5, 9, 2]], 1.0, (0.1, 1 / 3), {0.333333: "x"}, records=2)
    assert shown == {
        "sizes": [0.1, 0.333333],
        "verdicts": ["", "x"],
        "at": [0.0, 0.5, 1.0],
        "left": [[1.0, 0.5, 0.0], [1.0, 2.0, 0.25]],
    }
    assert steps_of([[1, 1]], 1.0)["left"] == [[0.0, 0.0]]
    assert steps_of([[1, 3]], 2.0)["left"] == [[0.0, 0.0]]


def test_a_history_is_reduced_only_where_it_is_longer_than_the_most():
    most = explorer.MAX_HISTORY_RECORDS
    costs = np.linspace(2, 1, most + 1)
    assert steps_of([costs])["at"] == list(range(most + 1))
    longer = np.linspace(2, 1, most + 2)
    shown = steps_of([longer, longer[::-1]])
    assert shown["at"][0] == 0
    assert shown["at"][-1] == most + 1
    assert len(shown["at"]) == len(shown["left"][0]) == most + 2
    assert shown["left"][0][0] == 1
    # Each bin has its least and its greatest excess, at its first iteration.
    first, second = shown["at"][1:3]
    assert first == second == 1
    assert shown["left"][0][1] <= shown["left"][0][2]
    assert max(shown["left"][0][1:]) < 1
    assert (shown["left"][1][0], shown["left"][1][-1]) == (0.5, 1)


class Measured:
    """Layers as they are drawn, either of a closed form or measured."""

    def __init__(self, exact, history=None):
        self.exact, self._history = exact, history
        self.thickness, self.curvature = np.array([0.25, 0.75]), np.array([2.0, 1 / 3])
        self.excess_share, self.drawn_offsets = np.array([0.5, 0.5]), np.array([0, 1])
        self.step_sizes, self.path_step = [0.1, 0.2, 0.3], 0.123456789

    def ratios(self, sizes):
        return np.outer(sizes, [1.0, 1 / 3])

    def history(self, step):
        assert step == self.path_step
        return self._history


def test_layers_are_terms_of_the_closed_form_or_measured():
    assert explorer._layers(Measured(True), 1) == {
        "thickness": [0.25, 0.75],
        "curvature": [2.0, 0.33333333333333],
        "share": [0.5, 0.5],
        "first": [0, 1],
    }
    ends = [[0.1, 0.0333], [0.2, 0.0667], [0.3, 0.1]]
    assert explorer._layers(Measured(False), 1) == {"thickness": [0.25, 0.75], "ends": ends}
    iterations = np.arange(201)
    history = iterations, np.outer(iterations, [1 / 3, 2.0])
    measured = explorer._layers(Measured(False, history), 2)
    assert len(measured["path_at"]) == len(measured["path"]) == 101
    assert measured["path_at"][:3] == [0, 1, 2]
    assert measured["path"][1] == [0.667, 4.0]
    assert measured["path_step"] == 0.123457


def test_a_plane_is_measured_from_its_lower_left_corner():
    a, b = np.linspace(-1, 3, 9), np.linspace(10, 12, 9)
    arrays = {
        **{"a": a, "b": b, "cost": np.add.outer((b - 11) ** 2, (a - 1) ** 2)},
        **{"names": ["one", "two"], "paths_at": np.array([0, 3])},
        "paths": np.array([[[-1.0, 10.0], [1.0, 11.0]], [[3.0, 12.0], [0.0, 10.5]]]),
        "minimum": np.array([1.0, 11.0]),
        **{"least": 0.0, "path_cost": [4.0]},
    }
    levels = explorer.contours.levels([arrays])
    plane = explorer._plane(arrays, levels)
    assert plane["names"] == ["one", "two"]
    assert plane["at"] == [0, 3]
    assert plane["paths"] == [[0, 0, 0.5, 0.5], [1, 1, 0.25, 0.25]]
    assert plane["minimum"] == [0.5, 0.5]
    assert "swing" not in plane
    for line in plane["lines"]:
        x, y = 4 * np.array(line[::2]) - 1, 2 * np.array(line[1::2]) + 10
        cost = (x - 1) ** 2 + (y - 11) ** 2
        assert np.ptp(cost) < 0.3
    more = {"curvature": np.array([2.0, 1.0]), "swing": np.array([[2.0, 1.0], [4.0, 0.5]])}
    plane = explorer._plane(arrays | more | {"minimum": np.array([])}, levels)
    assert "minimum" not in plane
    assert (plane["curvature"], plane["swing"]) == ([2, 1], [0.5, 0.5, 1, 0.25])


def of_many(monkeypatch, count, **columns):
    """Return the explorer's data of so many schemes, whose descents have five records each."""
    sweep = runs(*((("x", f"s{n}", {1.0: 3.0, 2.0: 3.0})) for n in range(count)), **columns)
    is_step = sweep.runs["role"] == names.STEP
    sweep.runs.loc[is_step, "verdict"] = ["converged", "diverged"] * count
    costs = {explorer.TRAIN_COST: np.full((2, 1, 5), 1.0), "minimum": 0.0}
    costs["step_sizes"] = np.array([1.0, 2.0])
    kept = {f"s{n}": costs for n in range(count)}

    def fitting(sweep, rows, record, fits):
        return kept if record == names.DESCENT_ARRAYS else {}

    monkeypatch.setattr(explorer.material, "drawable_arrays", fitting)
    monkeypatch.setattr(explorer.melt, "drawable_schemes", lambda arrays, rows, steps: [])
    return explorer.data(sweep, "x")


def test_more_than_twelve_schemes_are_not_explored(monkeypatch):
    assert len(json.loads(of_many(monkeypatch, 12))["schemes"]) == 12
    assert of_many(monkeypatch, 13) == ""
    assert of_many(monkeypatch, 1) != ""


def test_a_scheme_is_explored_over_its_iterations_with_its_own_verdicts(monkeypatch):
    data = json.loads(of_many(monkeypatch, 2))
    assert (data["iterations"], data["which_step"]) == (4, "best")
    first, second = data["schemes"]
    assert (first["label"], second["label"]) == ("s0", "s1")
    assert first["verdicts"] == second["verdicts"] == ["converged", "diverged"]
    assert first["best"] == 1
    assert not {"plane", "thickness", "fit"} & set(first)
    batched = json.loads(of_many(monkeypatch, 1, batch="8", records_per_pass="2"))
    assert batched["iterations"] == 2
    assert batched["schemes"][0]["at"] == [0, 0.5, 1, 1.5, 2]


def test_shares_have_five_digits_and_layers_up_to_fourteen():
    assert steps_of([[3, 1, 2]])["left"] == [[1.0, 0.33333, 0.66667]]
    layers = Measured(True)
    layers.thickness, layers.excess_share = np.array([1 / 3]), np.array([2 / 3])
    shown = explorer._layers(layers, 1)
    assert shown["thickness"] == [0.333333333]
    assert shown["share"] == [0.66666666666667]


@pytest.mark.parametrize(
    ("color", "ink"),
    [("#000000", "currentColor"), ("#000", "currentColor"), ("#000001", "#000001")],
)
def test_only_black_is_the_colour_of_the_text(color, ink):
    assert explorer._css_color(color) == ink
