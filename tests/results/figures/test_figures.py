"""Each figure, drawn from a small store: what is on it, not only that there is a file."""

import itertools
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from PIL import Image
from scipy.optimize import isotonic_regression

from normbench import names
from normbench.command.results.commands import main
from normbench.results.compare import comparisons, passes
from normbench.results.figures import (
    NAMES,
    components,
    contours,
    data,
    drawing,
    features,
    histories,
    phase_diagram,
    profiles,
    sharpness,
    spectrum,
    step_sizes,
)
from normbench.results.figures.base import material, output, style, ticks
from normbench.results.figures.base.labels import spread_apart
from normbench.results.figures.base.material import Options
from normbench.results.store.errors import ResultsError
from normbench.results.store.looks import LOOKS
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep


def draw(store, name, **options):
    figure = drawing.figure(store.sweep, store.name, name, Options(**options))
    figure.draw_without_rendering()  # a figure that cannot be laid out fails here
    return figure


def named(axis):
    """Return the curves of a panel, by label; helpers' labels begin with an underscore."""
    return {line.get_label(): line for line in axis.lines if line.get_label()[0] != "_"}


def marked(axis, label):
    return [line for line in axis.lines if line.get_label() == f"_{label}"]


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_every_figure_has_a_maker_and_a_line_of_help():
    for name in NAMES:
        assert callable(import_module(f"normbench.results.figures.{name}").make)


@pytest.mark.parametrize("name", ["histories", "step_sizes", "phase_diagram"])
def test_a_figure_is_saved_without_formulas_and_texts_are_measured_once(
    three, name, tmp_path, monkeypatch
):
    def formula(parser, text, *args):
        raise AssertionError(text)  # for the first one matplotlib builds its whole parser

    measured = []
    measure = RendererAgg.get_text_width_height_descent

    def counted(renderer, text, font, is_formula):
        measured.append((text, font.get_size(), font.get_weight()))
        return measure(renderer, text, font, is_formula)

    monkeypatch.setattr(MathTextParser, "parse", formula)
    monkeypatch.setattr(RendererAgg, "get_text_width_height_descent", counted)
    figure = drawing.figure(three.sweep, three.name, name)
    output.save(figure, tmp_path / name, {}, ("png", "svg"))
    assert measured
    assert len(measured) == len(set(measured))


def test_titles_stay_where_they_are_without_a_search_for_what_stands_in_their_way(
    three, monkeypatch
):
    figure = draw(three, "step_sizes")
    searched = []
    measure = Text.get_window_extent
    titles = [axis.title for axis in figure.axes]

    def counted(text, *args, **kwargs):
        searched.extend(title for title in titles if title is text)
        return measure(text, *args, **kwargs)

    monkeypatch.setattr(Text, "get_window_extent", counted)
    figure.set_layout_engine("none")
    figure.draw_without_rendering()
    assert not searched
    above = [title.get_window_extent().y0 - title.axes.bbox.y1 for title in titles]
    assert min(above) > 0


def test_the_arrows_of_step_sizes_are_the_signs_of_the_font():
    for sign, arrow in (("↑", step_sizes.UP_ARROW), ("→", step_sizes.RIGHT_ARROW)):
        letter = TextPath((0, 0), sign)
        box = letter.get_extents()
        corners = letter.vertices[:-1] - (box.p0 + box.p1) / 2
        corners /= max(box.width, box.height)
        off = np.abs(corners[:, None] - arrow.vertices[None]).max(axis=2).min(axis=1)
        assert off.max() < 0.002  # of the arrow's length


def test_histories_of_three_schemes_in_ten_iterations(three):
    cost, counts = draw(three, "histories").axes
    assert [label.split(",")[0] for label in named(cost)] == ["identity", "standard", "pca_sphere"]
    assert cost.get_ylabel() == "cost, mean over points"
    assert counts.get_ylabel() == "misclassified points, percent"  # of 60 and of 20 points
    assert cost.get_xlim() == (0, 10)
    for axis in (cost, counts):
        assert {line.get_linestyle() for line in marked(axis, "test")} == {"--"}
        assert len(marked(axis, "test")) == 3
        assert len(axis.collections) == 3  # the quartiles' bands
        assert len(texts(axis)) == 3


def test_histories_agree_with_the_store(three):
    rows = three.sweep.histories(material.schemes(three.sweep, three.name))
    for label, line in named(draw(three, "histories").axes[0]).items():
        own = rows[rows["label"] == label.split(",")[0]]
        assert np.array_equal(line.get_ydata(), own["train/cost"])
        assert np.array_equal(line.get_xdata(), own["iteration"])


def test_a_run_that_shoots_up_leaves_the_others_readable():
    converged, diverged = [1.0, 0.5, 0.3, 0.2, 0.2], [1.0, 1e150, 1e300]
    costs = [*converged, *diverged]
    table = pd.DataFrame({"run_id": ["a"] * 5 + ["b"] * 3, "label": ["a"] * 5 + ["b"] * 3})
    table = table.assign(iteration=[*range(5), *range(3)], **{"train/cost": costs})
    runs = pd.DataFrame({"run_id": ["a", "b"], "label": ["a", "b"], "normalizer": ["pca", "zca"]})
    runs["verdict"] = ["converged", "diverged"]
    from normbench.results.figures import histories

    low, high = histories.draw(table, runs, "").axes[0].get_ylim()
    assert 0.05 < low < 0.2
    assert high == 1000


@pytest.mark.parametrize(
    ("few", "verdict", "first", "uneven"),
    [
        (5, "converged", 0, True),
        (5, "converged", 1, True),
        (22, "converged", 0, True),
        (23, "converged", 0, False),
        (5, "diverged", 0, False),
    ],
)
def test_a_curve_of_few_iterations_is_seen_beside_one_of_many(few, verdict, first, uneven):
    lengths = {"a": few, "b": 460}
    table = pd.concat(
        pd.DataFrame(
            {
                "run_id": name,
                "iteration": range(last + 1),
                "train/cost": np.geomspace(2, 1, last + 1),
            }
        )
        for name, last in lengths.items()
    )
    runs = pd.DataFrame({"run_id": ["a", "b"], "label": ["a", "b"], "normalizer": ["pca", "zca"]})
    runs["verdict"] = [verdict, "converged"]
    figure = histories.draw(table, runs, "", first=first)
    figure.draw_without_rendering()
    (axis,) = figure.axes
    assert axis.get_xlim() == (first, 460)
    assert axis.get_xlabel().endswith(", logarithmic") == uneven
    width = axis.transLimits.transform(axis.transScale.transform([(few, 1)]))[0, 0]
    assert (width > 0.2) == uneven
    shown = [tick for tick in axis.get_xticks() if first <= tick <= 460]
    assert {first, 10, 100} <= set(shown) or not uneven
    # Every iteration of a zigzag is seen: markers at some of them would trace one of its edges.
    assert {line.get_marker() for line in named(axis).values()} == {"None"}


def test_histories_begin_where_they_are_asked_to(three):
    for axis in draw(three, "histories", first=4).axes:
        assert axis.get_xlim() == (4, 10)
        assert all(line.get_xdata()[0] == 4 for line in named(axis).values())


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_histories_take_a_scale(three, scale):
    assert draw(three, "histories", scale=scale).axes[0].get_yscale() == scale


def test_histories_of_chosen_steps(three):
    axis = draw(three, "histories", steps=(0.01, 1e200)).axes[0]
    steps = [label.rpartition(" ")[2] for label in named(axis)]
    assert sorted(steps) == ["0.01"] * 3 + ["1e+200"] * 3
    assert sum("diverged at" in text for text in texts(axis)) == 3
    with pytest.raises(
        ResultsError, match=r"--steps 7: was not tried; choose of 0.01, 0.1, 1e\+200"
    ):
        draw(three, "histories", steps=(7.0,))


def test_a_step_size_is_known_by_the_six_digits_that_are_shown(three):
    runs = three.sweep.runs.replace({"metrics.step_size": {0.1: 10 ** (-2 / 3)}})
    sweep = Sweep(three.uri, "sweep-1", runs)
    shown = f"{10 ** (-2 / 3):g}"
    figure = drawing.figure(sweep, three.name, "histories", Options(steps=(float(shown),)))
    assert len(named(figure.axes[0])) == 3


@pytest.mark.slow
def test_histories_of_twelve_schemes(twelve):
    figure = draw(twelve, "histories")
    cost, counts = figure.axes
    assert len(named(cost)) == len(named(counts)) == 12
    assert cost.get_xlim() == (0, 50)
    assert any("blown_up" in text and "diverged at" in text for text in texts(cost))
    assert len({line.get_color() for line in named(cost).values()}) == 12
    written = [text for text in cost.texts if text.get_text()]
    places = sorted(text.get_position()[1] for text in written)
    assert len({text.get_text() for text in written}) == len(written)
    # Labels stand a line apart: 12 of them at 10 points and 1.25 lines in a panel under 4 inches.
    assert np.diff(places).min() > 0.03


def test_a_bad_scheme_does_not_squash_the_misclassifications():
    k = np.arange(20)
    table = pd.concat(
        pd.DataFrame(
            {"run_id": name, "iteration": k, "train/cost": 1.0, "train/misclassifications": end}
        )
        for name, end in (("a", 3), ("b", 5), ("c", 400))
    )
    runs = pd.DataFrame(
        {"run_id": list("abc"), "label": list("abc"), "normalizer": list("abc"), "verdict": ""}
    )
    from normbench.results.figures import histories

    axis = histories.draw(table, runs, "")
    axis = axis.axes[1]
    heights = axis.transLimits.transform(axis.transScale.transform([(0, 3), (0, 5), (0, 400)]))
    # On a linear axis 3 and 5 of 400 are half a percent of the panel apart: here over 5 percent.
    assert np.diff(heights[:, 1]).min() > 0.05
    assert axis.get_ylim()[0] == 0


def test_a_cost_that_shoots_up_and_ends_at_0_leaves_the_others_readable():
    """A cost of 0 keeps the axis linear; the margin below was that of the curve that is cut."""
    from normbench.results.figures import histories

    costs = [2.3, 5e4, 1.0, 0.0, 2.3, 1.0, 0.5, 0.2]
    table = pd.DataFrame({"run_id": ["a"] * 4 + ["b"] * 4, "iteration": [0, 1, 2, 3] * 2})
    table = table.assign(**{names.TRAIN_COST.key: costs})
    runs = pd.DataFrame({"run_id": ["a", "b"], "label": ["a", "b"], "normalizer": ["pca", "zca"]})
    runs = runs.assign(**{"verdict": "converged", names.STEP_TAG.column: "1"})
    (axis,) = histories.draw(table, runs, "").axes
    low, high = axis.get_ylim()
    assert axis.get_yscale() == "linear"
    assert -0.5 < low < 0
    assert 2.3 < high < 5


def test_a_run_without_curvature_leaves_the_sharpness_of_others_readable():
    from normbench.results.figures import sharpness

    steep, steady = [3e4, 50.0, 0.0, 0.0], [0.5, 0.8, 0.9, 1.0]
    table = pd.DataFrame({"run_id": ["a"] * 4 + ["b"] * 4, "iteration": [0, 10, 20, 30] * 2})
    table = table.assign(**{sharpness.SHARPNESS: steep + steady})
    runs = pd.DataFrame({"run_id": ["a", "b"], "label": ["a", "b"], "normalizer": ["pca", "zca"]})
    (axis,) = sharpness.draw(table, runs, "").axes
    assert axis.get_yscale() == "log"
    low, high = axis.get_ylim()
    assert 0.05 < low < 0.5
    assert high > 3e4
    assert [text.split(",")[0] for text in texts(axis) if text in "ab"] == ["a", "b"]


def test_step_sizes_have_a_panel_a_scheme_with_verdicts_and_predictions(three):
    axes = draw(three, "step_sizes").axes
    assert [axis.get_title() for axis in axes] == ["identity", "standard", "pca_sphere"]
    steps, counts = material.steps(three.sweep, three.name), []
    for axis in axes:
        own = steps[steps["label"] == axis.get_title()]
        lost = own["verdict"] == names.DIVERGED
        (curve,) = named(axis).values()
        grid = set(own.loc[~lost, step_sizes.STEP_SIZE])
        assert grid <= set(curve.get_xdata())  # the finer step sizes stand between them
        counts.append(len(curve.get_xdata()) - len(grid))
        (cross,) = marked(axis, "diverged")
        assert list(cross.get_xdata()) == list(own.loc[lost, step_sizes.STEP_SIZE])
        assert cross.get_xdata()[-1] == 1e200
        roof = cross.get_ydata()[0]
        assert axis.get_ylim()[0] < roof < axis.get_ylim()[1]  # with room for arrows above
        assert not marked(axis, "above")
        (threshold,) = marked(axis, "threshold")
        assert threshold.get_xdata()[0] == 0.5
        (largest,) = marked(axis, "largest")
        assert largest.get_xdata()[0] == 0.1
        assert axis.get_xscale() == "log"
    assert max(counts) > 0
    assert axes[0].get_ylabel() == "final mean cost"


@pytest.mark.parametrize("equal", [False, True])
def test_the_names_of_twelve_curves_stand_beside_their_panel(equal):
    """They were cut off at the top, and those of one panel stood in the other."""
    labels = [f"scheme {n}" for n in range(12)]
    runs = pd.DataFrame({"run_id": labels, "label": labels, "normalizer": labels})
    runs = runs.assign(verdict="not converged", **{names.STEP_TAG.column: "0.1"})
    rows = [
        {
            "run_id": label,
            "iteration": iteration,
            names.TRAIN_COST.key: 0.5**iteration * (1.0 if equal and n < 3 else 1 + 0.01 * n),
            names.TRAIN_MISCLASSIFICATIONS.key: 100.0 / (1 + iteration),
        }
        for n, label in enumerate(labels)
        for iteration in range(3)
    ]
    figure = histories.draw(pd.DataFrame(rows), runs, "twelve schemes")
    figure.draw_without_rendering()
    for axis in figure.axes:
        panel = axis.get_window_extent()
        names_of_curves = map(Text.get_window_extent, axis.texts)  # without the line to the curve
        boxes = sorted(names_of_curves, key=lambda box: box.y0)
        assert len(boxes) == (10 if equal else 12)
        assert boxes[0].y0 > panel.y0 - 10
        assert boxes[-1].y1 < panel.y1 + 10
        for below, above in itertools.pairwise(boxes):
            assert below.y1 < above.y0 + 1


def test_step_sizes_of_twelve_schemes(twelve):
    axes = draw(twelve, "step_sizes").axes
    assert len(axes) == 12
    (blown,) = [axis for axis in axes if axis.get_title() == "blown_up"]
    assert len(marked(blown, "diverged")[0].get_xdata()) == 2
    assert texts(blown) == ["diverged at every step size tried"]
    rows = material.schemes(twelve.sweep, twelve.name).set_index("label")
    for axis in axes:
        left, right = axis.get_xlim()
        threshold = rows[step_sizes.THRESHOLD][axis.get_title().replace("\n", ", ")]
        # Theory says nothing of points too large to be squared.
        assert bool(marked(axis, "threshold")) == (left <= threshold <= right)
    assert not marked(blown, "threshold")


@pytest.mark.parametrize("name", ["three", "twelve"])
def test_phase_diagram_has_a_cell_a_scheme_and_step(name, request):
    store = request.getfixturevalue(name)
    (axis,) = draw(store, "phase_diagram").axes
    schemes = material.with_start_costs(store.sweep, material.schemes(store.sweep, store.name))
    steps = material.steps(store.sweep, store.name)
    rows = phase_diagram.group_equal_schemes(steps, schemes)
    shown = [label.get_text().replace("\n", " ") for label in axis.get_yticklabels()]
    assert shown == [" = ".join(row["label"] for row in same) for same in rows]
    thresholds = [same[0][step_sizes.THRESHOLD] for same in rows]
    known = [value for value in thresholds if value == value]
    assert known == sorted(known)
    (cells,) = [part for part in axis.collections if isinstance(part, QuadMesh)]
    codes = cells.get_array()
    words = [[list(phase_diagram.CELL_COLORS)[int(code)] for code in row] for row in codes]
    for same, own in zip(rows, words):
        for row in same:  # all that share a row have its colours
            mine = steps[steps["label"] == row["label"]].sort_values(step_sizes.STEP_SIZE)
            assert [phase_diagram.band_label(step, row) for step in as_rows(mine)] == own
    assert sum(map(len, rows)) == len(schemes)
    stars = [len(line.get_xdata()) for line in marked(axis, "best")]
    assert sum(stars) == sum(isinstance(same[0]["tags.step_size"], str) for same in rows)
    left, right = axis.get_xlim()
    # A halo and a line each; those beyond the grid are told at its edge.
    assert len(marked(axis, "threshold")) == 2 * sum(left <= value <= right for value in known)
    outside = sum(not left <= value <= right for value in known)
    assert sum("2/L = " in text for text in texts(axis)) == outside
    for line in marked(axis, "largest"):
        assert line.get_xdata()[0] in set(steps[step_sizes.STEP_SIZE])  # on its step
    assert axis.get_xlabel() == "step size"


def test_a_star_is_the_best_step_only_where_none_was_chosen(three):
    schemes = material.schemes(three.sweep, three.name)
    steps = material.steps(three.sweep, three.name)
    counted = {"tags.compared_by": "misclassifications"}
    for tags, words in (
        ({}, "best step of the grid: first to the lowest cost"),
        (counted, "best step of the grid: first to the fewest misclassified"),
        ({"tags.step_chosen": "true"}, "shown step, by choice"),
    ):
        for figure in (phase_diagram, step_sizes):
            drawn = figure.draw(steps, schemes.assign(**tags), "")
            assert words in [text.get_text() for text in drawn.legends[0].get_texts()]


@pytest.mark.parametrize("name", ["step_sizes", "phase_diagram"])
def test_the_threshold_is_drawn_only_where_it_speaks_of_the_optimizer(three, name):
    for plain, drawn in (("true", True), ("false", False)):
        runs = three.sweep.runs.assign(**{"tags.plain_descent": plain})
        figure = drawing.figure(Sweep(three.uri, "sweep-1", runs), three.name, name)
        assert all(bool(marked(axis, "threshold")) == drawn for axis in figure.axes)
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("2/L, predicted" in legend) == drawn


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("name", ["three", "twelve"])
def test_contours_hold_the_whole_path(name, request):
    store = request.getfixturevalue(name)
    figure = draw(store, "contours")
    drawn = [axis for axis in figure.axes if named(axis)]  # not points, nor the colour bar
    assert len(drawn) == (3 if name == "three" else 11)  # a diverged scheme has no best step
    for axis in drawn:
        (path,) = named(axis).values()
        for values, limits in (
            (path.get_xdata(), axis.get_xlim()),
            (path.get_ydata(), axis.get_ylim()),
        ):
            assert limits[0] <= min(values) <= max(values) <= limits[1]
        assert len(path.get_xdata()) == (11 if name == "three" else 51)
        assert axis.get_xlabel()
        assert axis.get_ylabel()
        (least,) = marked(axis, "minimum")
        assert axis.get_xlim()[0] < least.get_xdata()[0] < axis.get_xlim()[1]
        assert axis.get_ylim()[0] < least.get_ydata()[0] < axis.get_ylim()[1]
    above = [axis for axis in figure.axes[:-1] if axis not in drawn]
    assert len(above) == (3 if name == "three" else 0)  # the points of two features
    for points, axis in zip(above, drawn):
        assert points.get_subplotspec().colspan == axis.get_subplotspec().colspan
        assert f"weight of {points.get_xlabel()}" == axis.get_xlabel()
        assert sum(len(dots.get_offsets()) for dots in points.collections) == 60
        assert "bias held at" in axis.get_title()


def bowl(height, **more):
    """Arrays of contours over a bowl: its height at the edge; the least cost, 0, in the middle."""
    side = np.linspace(-1, 1, 51)
    radius = np.hypot(*np.meshgrid(side, side))
    path = np.array([[0.6, 0.0], [0.1, 0.0]])
    parts = {"a": side, "b": side, "cost": height * radius**2, "path": path, "step_size": 1.0}
    parts |= {"minimum": np.zeros(2), "least": 0.0, "path_cost": [0.36], "condition": np.nan}
    parts |= {"held": "", "through": "the least cost", "iteration": np.arange(2)}
    return {**parts, "names": np.array(["u", "v"]), **more}


def test_contours_stand_for_the_same_costs_in_every_panel():
    found = [bowl(1.0), bowl(1e-3)]
    shared, finer = contours.levels(found)
    steep, flat = (
        set(contours.select_panel_levels(shared, finer, parts["cost"])) for parts in found
    )
    assert len(flat) >= contours.MIN_CONTOURS
    assert contours.MIN_CONTOURS <= len(steep) <= 2 * contours.LEVEL_COUNT
    assert steep | flat <= set(shared)
    assert any(np.isclose(shared, 0.36))  # the start's cost is one of them


@pytest.mark.parametrize("has_names", [True, False])  # older records have none
def test_points_above_contours_have_the_names_of_the_features(has_names):
    """With several classes, the axes of the contours are directions of all weights."""
    points = {"points": np.eye(2), "target": np.zeros(2), "class_names": np.array(["no"])}
    names_of_points = {"point_names": np.array(["height", "weight"])} if has_names else {}
    rows = pd.DataFrame({"label": ["a"], "normalizer": ["identity"]})
    axis, *_ = contours.draw({"a": bowl(1.0, **points, **names_of_points)}, rows, "").axes
    labels = (axis.get_xlabel(), axis.get_ylabel())
    assert labels == (("height", "weight") if has_names else ("", ""))


def test_contours_without_curvature_or_least_cost_do_not_show_them():
    rows = pd.DataFrame({"label": ["s"], "normalizer": ["s"]})
    axis, _ = contours.draw({"s": bowl(1.0, minimum=np.zeros(0))}, rows, "").axes
    assert axis.get_title() == "s, step 1"
    assert not marked(axis, "minimum")


def test_a_least_cost_at_infinity_is_told_on_contours():
    rows = pd.DataFrame(
        {"label": ["s"], "normalizer": ["s"], contours.MINIMUM_CASE: "strictly separable"}
    )
    parts = bowl(1.0, minimum=np.zeros(0), through="the end of the path", condition=2.0)
    figure = contours.draw({"s": parts}, rows, "")
    assert "no weights have the least cost: it is at infinity" in figure.get_supxlabel()
    assert "cross" not in figure.get_supxlabel()
    assert figure.axes[0].get_title().endswith("slice's condition 2")


def test_contour_levels_of_a_bowl_are_evenly_spaced_rings():
    rings = np.sqrt(contours.levels([bowl(1.0, path_cost=[2.0])])[0])
    # 1e-12: levels and roots of numbers around 1, measured 3e-16.
    assert np.allclose(np.diff(rings), rings[0], atol=1e-12)


def test_data_shows_classes_axes_and_the_circle(three):
    axes = draw(three, "data").axes
    assert len(axes) == 3
    for axis in axes:
        dots = [part for part in axis.collections if isinstance(part, PathCollection)]
        assert sum(len(part.get_offsets()) for part in dots) == 60
        assert len(dots) == 2
        assert len(marked(axis, "axis")) == 2
        assert len(axis.patches) == 2  # the ellipse and the unit circle
    sphere = axes[2]
    arms = [np.hypot(*np.diff(line.get_xydata(), axis=0)[0]) / 2 for line in marked(sphere, "axis")]
    # Sphered points have variance 1 but for the ridge of 1e-7: measured 1e-7 off.
    assert np.allclose(arms, 1, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_the_target_of_a_single_feature_is_not_called_scaled(count):
    x = np.random.default_rng(0).standard_normal((9, 2))
    parts = {"points": x, "names": np.array(["a", "b"]), "mean": x.mean(axis=0)}
    parts |= {"axes": np.eye(2)[: 2 * (count - 1)], "target": x[:, 1], "class_names": np.array([])}
    rows = pd.DataFrame({"label": ["a"], "normalizer": ["standard"], names.SCALES.column: "true"})
    axis = data.draw({"a": parts}, rows, "").axes[0]
    labels = axis.get_xlabel(), axis.get_ylabel()
    assert labels == ("a, scaled", "b, scaled" if count == 2 else "b")


@pytest.mark.parametrize(
    ("middle", "half", "seen"),
    [
        ((0, 0), 2.0, True),
        ((0, 0), 0.5, False),  # it goes around what is shown
        ((5, 0), 2.0, False),
        ((2.5, 0), 2.0, True),
        ((0, 0), 99.0, True),
        ((0, 0), 101.0, False),  # a dot
    ],
)
def test_a_circle_that_is_not_seen_is_not_told_of(middle, half, seen):
    x = np.array(middle) + half / 1.08 * np.array([[-1.0, -1.0], [1.0, 1.0], [0.3, -0.2]])
    parts = {
        "points": x,
        "names": np.array(["a", "b"]),
        "mean": x.mean(axis=0),
        "axes": np.eye(2),
        "target": np.zeros(3),
        "class_names": np.array([]),
    }
    rows = pd.DataFrame({"label": ["a"], "normalizer": ["identity"]})
    figure = data.draw({"a": parts}, rows, "made")
    assert len(figure.axes[0].patches) == 1 + seen
    assert ("unit circle" in figure.get_supxlabel()) == seen


@pytest.mark.parametrize(("label", "columns"), [("standard", 2), ("standard, augment=aligned", 1)])
def test_long_names_leave_curves_room_below_each_other(label, columns):
    runs = pd.DataFrame(
        {"run_id": ["r"], "label": [label], "normalizer": ["standard"], "verdict": ["converged"]}
    ).assign(**{names.STEP_TAG.column: "1"})
    columns_of = {"run_id": "r", "iteration": range(5), names.TRAIN_COST.key: 1.0}
    found = pd.DataFrame(columns_of | {names.TRAIN_MISCLASSIFICATIONS.key: 2.0})
    figure = histories.draw(found, runs, "made")
    first, second = (axis.get_position() for axis in figure.axes)
    assert (first.x0 < second.x0) == (columns == 2)


def test_data_without_labels(images):
    for axis in draw(images, "data").axes:
        (dots,) = axis.collections
        assert len(dots.get_offsets()) == 40


def test_spectrum_before_and_after_with_the_dead_and_the_ridge(images):
    values, shares = draw(images, "spectrum").axes
    assert list(named(values)) == ["before", "standard", "pca_sphere"]
    assert len([patch for patch in values.patches if patch.get_label() == "_dead"]) == 1
    assert "1 dead " in texts(values)
    assert any(text.startswith("ridge 1e-07") for text in texts(values))
    for line in named(shares).values():
        # The last share is a sum of 16 terms over their sum: measured 4e-16 off.
        assert line.get_ydata()[-1] == pytest.approx(1, abs=1e-12)
    after = named(values)["pca_sphere"].get_ydata()
    assert np.allclose(after[:-1], 1, atol=1e-4)  # the ridge of 1e-7 against 0.02, the smallest


def test_spectrum_draws_a_ridge_that_is_near_and_the_dead_below_it():
    arrays = {"before": np.array([1.0, 0.1, 0.0]), "dead": np.array(1)}
    schemes = pd.DataFrame({"label": ["s", "t"], "normalizer": ["s", "t"]})
    of_near = arrays | {"after": np.array([1.0, 0.9, 0.0]), "ridge": np.array(0.001)}
    of_far = arrays | {"after": np.array([1.0, 0.9, 0.0]), "ridge": np.array(1e-9)}
    axis = spectrum.draw({"s": of_near, "t": of_far}, schemes, "").axes[0]
    (line,) = marked(axis, "ridge")
    assert line.get_ydata()[0] == 0.001
    edge = axis.get_ylim()[0]
    assert edge < 0.001
    for curve in named(axis).values():
        assert curve.get_ydata()[-1] == edge
    (note,) = (text for text in axis.texts if "1e-09, far below" in text.get_text())
    assert note.get_position()[1] == edge


def test_sharpness_against_one(three):
    (axis,) = draw(three, "sharpness").axes
    curves = named(axis)
    assert len(curves) == 3
    lipschitz = three.sweep.of_role("scheme").set_index("label")["metrics.theory/lipschitz"]
    for label, line in curves.items():
        scheme, _, step = label.partition(", step ")
        # Least squares: the curvature is L everywhere.
        assert line.get_ydata() == pytest.approx(float(step) * lipschitz[scheme] / 2)
    assert marked(axis, "one")[0].get_ydata()[0] == 1
    assert axis.get_ylim()[1] > 1


def test_a_sharpness_of_period_2_is_a_band():
    k = np.array([0, 1, 2, 3, 10, 11, 12])
    values = 1.0 + 0.5 * (-1.0) ** k
    low, high = sharpness.bands(k, values)
    assert np.array_equal(low, np.full(7, 0.5))
    assert np.array_equal(high, np.full(7, 1.5))
    alone = sharpness.bands(5 * k, values)
    assert np.array_equal(alone, [values, values])  # every fifth is recorded
    table = pd.DataFrame({"run_id": "a", "iteration": k, "theory/sharpness": values})
    runs = pd.DataFrame({"run_id": ["a"], "label": ["a"], "normalizer": ["a"]})
    figure = sharpness.draw(table, runs, "")
    assert figure.get_supxlabel() == sharpness.BAND_NOTE
    assert set(figure.axes[0].lines[0].get_ydata()) == {1.0}
    assert not sharpness.draw(table.assign(**{"theory/sharpness": 1.0}), runs, "").get_supxlabel()


@pytest.mark.parametrize(("pixels", "deep"), [(True, 9), (False, 4)])
def test_a_point_under_a_scheme_is_an_image_where_coordinates_are_pixels(pixels, deep):
    points = np.random.default_rng(0).standard_normal((8, 16))
    parts = {"points": points, "under": points, "original": points[0], "pixels": pixels}
    parts["components"] = np.eye(16)
    rows = pd.DataFrame({"label": ["pca"], "normalizer": ["pca"]})
    pairs = (
        components.draw({"pca": parts}, rows, "", component_count=8).axes[1].images[0].get_array()
    )
    assert pairs.shape == (deep, 8 * 4 + 7)


def originals(picture, frame):
    """Return the last third of a frame of two built-up images and the original, black or white."""
    picture.seek(frame)
    grey = np.asarray(picture.convert("L"))
    return grey[:, -grey.shape[1] // 3 :] > 128


@pytest.mark.commands
def test_components_and_reconstruction_of_images(images, tmp_path):
    figure = draw(images, "components")
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["standard", "pca_sphere", "", ""]
    mosaic = figure.axes[0].images[0].get_array()
    assert mosaic.shape == (4 * 4 + 3, 4 * 4 + 3)
    pairs = figure.axes[2].images[0].get_array()
    assert pairs.shape == (2 * 4 + 1, 8 * 4 + 7)  # 8 images, and the same below them
    few = draw(images, "components", components=4)
    assert few.axes[0].images[0].get_array().shape == (9, 9)
    assert few.get_supxlabel().startswith("the 4 components")
    with pytest.raises(ResultsError, match="--components 17: 16 are recorded of a scheme"):
        draw(images, "components", components=17)
    built = draw(images, "reconstruction").axes
    shown = {axis.get_title(): axis.images[0].get_array() for axis in built if axis.images}
    # float32 images: measured 6e-8 off.
    assert np.allclose(shown["k = 16"], shown["original"], atol=1e-5)
    assert not np.allclose(shown["k = 0"], shown["original"], atol=0.1)
    files = drawing.write(images.sweep, tmp_path, ["reconstruction"])["images"]
    with Image.open(files[-1]) as picture:
        assert files[-1].suffix == ".gif"
        assert picture.n_frames > 5
        last = originals(picture, picture.n_frames - 1)
        assert all((originals(picture, n) == last).all() for n in range(picture.n_frames))
        assert b"sweep-1" in picture.info["comment"]
        assert b"secret" not in picture.info["comment"]


def test_profiles_are_staircases():
    rows = [
        {"experiment": name, "setting": "", "split": 0, "scheme": scheme, "value": v, "excess": 1}
        for scheme, values in {
            "standard": (10.0, 30.0, 10.0),
            "pca_sphere, ridge=0": (30.0, 10.0, np.inf),
            "pca_sphere, ridge=1": (np.inf, np.inf, np.inf),
        }.items()
        for name, v in zip("xyz", values)
    ]
    table = comparisons.profile(pd.DataFrame(rows))
    (axis,) = profiles.draw(table, "profiles").axes
    curves = named(axis)
    assert list(curves) == ["standard", "pca_sphere, ridge=0", "pca_sphere, ridge=1"]
    assert [curve.get_ydata()[-1] for curve in curves.values()] == pytest.approx([1, 2 / 3, 0])
    assert curves["standard"].get_ydata().tolist() == pytest.approx([0, 2 / 3, 1, 1])
    assert axis.get_xlim()[0] == 1
    looks = [curve.get_color() for curve in curves.values()]
    assert looks[:2] == [style.look(name).color for name in ("standard", "pca_sphere")]
    assert len(set(looks)) == 3


def test_the_profile_command_draws_its_figure(three, images, tmp_path, capsys):
    arguments = ["profile", "--store", three.uri, "--out", str(tmp_path), "--format", "page"]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    files = [tmp_path / f"profiles.{kind}" for kind in ("png", "svg", "pdf")]
    assert all(file.is_file() and str(file) in told for file in files)
    with Image.open(files[0]) as picture:
        assert picture.width == 6.5 * 300
    nothing = tmp_path / "nothing"
    assert main(["profile", "--store", images.uri, "--out", str(nothing)]) == 2
    told = capsys.readouterr()
    assert "leaderboard: nothing to compare (no problem on which every scheme was run" in told.out
    assert "pairs" in told.out
    assert told.err.startswith(f"normbench: --out {nothing}: nothing to draw")
    assert not nothing.exists()


def test_a_figure_of_which_nothing_was_recorded_is_none(images, three):
    assert drawing.figure(images.sweep, "images", "histories") is None
    assert drawing.figure(images.sweep, "images", "contours") is None
    assert drawing.figure(three.sweep, three.name, "components") is None


def test_files_say_where_they_come_from_and_no_password(three, tmp_path):
    (files,) = drawing.write(three.sweep, tmp_path, ["phase_diagram"]).values()
    assert [file.name for file in files] == [f"phase_diagram.{kind}" for kind in ("png", "svg")]
    for file in files:
        content = file.read_bytes()
        assert b"secret" not in content
    with Image.open(files[0]) as picture:
        assert picture.info["Description"].startswith("sweep: sweep-1; command: normbench")
    assert "sweep: sweep-1" in files[1].read_text()


def test_the_same_sweep_gives_the_same_files(three, tmp_path):
    once, again = (
        drawing.write(three.sweep, tmp_path / name, ["histories"])[three.name] for name in "ab"
    )
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]


def test_matplotlib_is_left_as_it_was(three, tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(three, "histories")
    output.save(draw(three, "data"), tmp_path / "data", {})
    assert dict(matplotlib.rcParams) == before


def test_no_two_schemes_look_alike():
    looks = style.looks(list(LOOKS))
    assert len({look.marker for look in looks}) == len(looks) == len(LOOKS)
    assert len({look.color for look in looks}) == len(looks)
    several = style.looks(["pca_sphere"] * 12)
    assert len({(look.color, look.marker) for look in several}) == 12
    assert several[0] == LOOKS["pca_sphere"]


def test_labels_are_as_close_to_their_places_as_least_squares_allows():
    for seed in range(50):
        fractions = np.sort(np.random.default_rng(seed).random(12))
        gaps = 0.05 * np.arange(12)
        places = isotonic_regression(fractions - gaps).x
        expected = np.clip(places, 0, 1 - gaps[-1]) + gaps
        assert spread_apart(fractions, 0.05) == pytest.approx(expected)


def test_labels_are_spread_in_order_and_no_more_than_needed():
    assert spread_apart([0.2, 0.8], 0.1) == [0.2, 0.8]
    close = spread_apart([0.5, 0.5, 0.5], 0.1)
    assert close == pytest.approx([0.4, 0.5, 0.6])
    assert spread_apart([0.0, 0.0], 0.1) == pytest.approx([0.0, 0.1])
    assert spread_apart([1.0, 1.0], 0.1) == pytest.approx([0.9, 1.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.02, "2·10⁻²"), (1e-5, "10⁻⁵"), (2e6, "2·10⁶"), (1, "10⁰"), (0.025, "0.025")],
)
def test_ticks_are_plain_text(value, text):
    assert ticks.power_text(value) == text


def test_a_long_name_is_broken_between_its_settings(twelve):
    page = style.FORMATS["page"]
    titles = [axis.get_title() for axis in draw(twelve, "contours", shape=page).axes]
    assert any(title.startswith("pca_sphere, ridge=0.0001\nstep 1") for title in titles)


def test_a_sharpness_begins_at_a_pass_and_not_at_a_record():
    table = pd.DataFrame({"run_id": "a", "iteration": range(9), sharpness.SHARPNESS: 0.5})
    runs = pd.DataFrame({"run_id": ["a"], "label": ["a"], "normalizer": ["a"]})
    batched = runs.assign(**{passes.BATCH_SETTING: "32", passes.RECORDS: "4"})
    (axis,) = sharpness.draw(table, batched, "", first=2).axes
    assert axis.lines[0].get_xdata()[0] == 8
    (axis,) = sharpness.draw(table, runs, "", first=2).axes
    assert axis.lines[0].get_xdata()[0] == 2


@pytest.mark.parametrize("name", ["abcdefghijklmnopq$ a year", "income in US$, a year"])
def test_a_long_name_of_a_feature_is_cut_before_its_dollars_are_escaped(name):
    arrays = {"a": {"values": np.arange(6.0)[:, None], "names": np.array([name]), "all": 1}}
    schemes = pd.DataFrame({"label": ["a"], "normalizer": ["standard"]})
    figure = features.draw(arrays, schemes, "")
    (label,) = figure.axes[0].get_yticklabels()
    assert label.get_text() == name[:18].replace("$", r"\$")
