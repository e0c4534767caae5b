"""The figures that the studies end in: what is on each."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import names
from normbench.costs import least_squares, softmax
from normbench.datasets import make_dataset, split
from normbench.engine.settings import Settings
from normbench.normalizers import PCARotation
from normbench.results.compare.merging import merged
from normbench.results.figures import (
    boundary,
    closer,
    contours,
    data,
    drawing,
    features,
    fit,
    histories,
    landing,
    projection,
)
from normbench.results.figures.base import material, style, ticks
from normbench.results.store.rows import as_rows
from tests.recorded import points, write_sweep
from tests.results.figures.pictures import CURVES, curved, of_boundary, rows
from tests.results.figures.test_figures import draw, marked, named, texts


def test_a_shorter_run_is_led_to_its_label():
    k = np.arange(11)
    table = pd.concat(
        pd.DataFrame({"run_id": name, "iteration": k[:length], "train/cost": 1.0 + k[:length]})
        for name, length in (("a", 11), ("b", 5))
    )
    runs = pd.DataFrame(
        {
            "run_id": ["a", "b"],
            "label": ["a", "b"],
            "normalizer": ["a", "b"],
            "verdict": "converged",
        }
    )
    (axis,) = histories.draw(table, runs, "").axes
    (lead,) = marked(axis, "lead")
    assert lead.get_xydata().tolist() == [[4, 5], [10, 5]]
    assert list(named(axis)) == ["a", "b"]


def test_data_shows_how_far_from_sphered_the_points_are(three):
    axes = draw(three, "data").axes
    rows = material.schemes(three.sweep, three.name)
    for axis, known in zip(axes, rows["metrics.theory/covariance_condition"], strict=True):
        words = axis.get_title().replace("\n", ", ")
        assert words.endswith(f", condition {ticks.short_text(known)}")
    # Sphered but for the ridge of 1e-7, against variances of 0.1 and more: measured 8e-7 off.
    assert known == pytest.approx(1, abs=1e-5)
    assert "scaled" in axes[2].get_xlabel()
    assert "scaled" not in axes[0].get_xlabel()
    ellipse = draw(three, "data").axes[2].patches[0]
    # Sphered: the ellipse is the unit circle, but for the ridge of 1e-7.
    assert (ellipse.width, ellipse.height) == pytest.approx((2, 2), abs=1e-5)
    assert ellipse.center == pytest.approx((0, 0), abs=1e-12)


def test_the_signs_of_principal_directions_are_those_of_the_first_panel():
    points = np.random.default_rng(3).normal([1, 0], 1, (20, 2))
    kept = {"points": points, "mean": points.mean(axis=0), "axes": np.eye(2)}
    kept |= {"target": np.arange(20) % 2, "class_names": np.array(["a", "b"])}
    for labels, same in ((["principal direction 1", "principal direction 2"], True), ("xy", False)):
        first = kept | {"names": np.array(list(labels))}
        turned = first | {key: 3 * first[key] * [-1, 1] for key in ("points", "mean", "axes")}
        rows = pd.DataFrame({"label": ["a", "b"], "normalizer": ["a", "b"]})
        one, other = (
            np.concatenate([dots.get_offsets() for dots in axis.collections])
            for axis in data.draw({"a": first, "b": turned}, rows, "").axes
        )
        assert np.allclose(other, 3 * one) == same
        assert np.allclose(other, 3 * one * [-1, 1]) != same


def test_contours_tell_the_condition_number_of_their_own_slice(three):
    schemes = material.schemes(three.sweep, three.name)
    found = three.sweep.arrays(schemes, "contours")
    drawn = [axis for axis in draw(three, "contours").axes if named(axis)]
    whole = schemes["metrics.theory/condition_number"]
    for axis, (label, parts), known in zip(drawn, found.items(), whole):
        assert (
            f"slice's condition {ticks.short_text(float(parts['condition']))}" in axis.get_title()
        )
        # The bias is held: of two weights alone. To centred points it makes no difference.
        assert (f"{parts['condition']:.3g}" == f"{known:.3g}") == (label != "identity")


@pytest.fixture(scope="module")
def one_feature(tmp_path_factory):
    """A regression on one feature, two schemes."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 3, (30, 1))
    dataset = make_dataset("line", x, 2 * x[:, 0] + rng.standard_normal(30), source="-")
    settings = Settings((0.1, 0.3), iterations=8, record=("fit", "features"))
    schemes = [("identity", FunctionTransformer()), ("standard", StandardScaler())]
    folder = tmp_path_factory.mktemp("line")
    return write_sweep(folder, dataset, least_squares, schemes, settings, "line-least_squares")


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """Points in space without targets: two components kept, and one."""
    x = np.random.default_rng(1).standard_normal((30, 3)) * [3, 2, 1] + 5
    dataset = make_dataset("space", x, source="-")
    settings = Settings((1.0,), iterations=0, record=("features", "projection"))
    schemes = [("pca", PCARotation(components=2)), ("pca", PCARotation(components=1))]
    folder = tmp_path_factory.mktemp("space")
    return write_sweep(folder, dataset, softmax, schemes, settings, "space")


@pytest.fixture(scope="module")
def three_splits(tmp_path_factory):
    """Three splits; the best step size of the first one, 30, is not that of all, 1."""
    dataset = make_dataset("two", *points(2, 40), class_names=["no", "yes"], source="-")
    record = ("boundary", "points", "contours", "sharpness")
    settings = Settings((1.0, 30.0), iterations=8, record=record, refine=False)
    folder = tmp_path_factory.mktemp("splits")
    for seed in range(3):
        part, params = split(dataset, 0.5, seed), {"dataset.split_seed": str(seed)}
        schemes = [("standard", StandardScaler())]
        made = write_sweep(folder, part, softmax, schemes, settings, "two-softmax", params=params)
    return made


def test_a_figure_of_the_first_split_states_the_numbers_of_that_split(three_splits):
    first = three_splits.sweep.of_role(names.SCHEME).iloc[0]
    (row,) = as_rows(material.schemes(merged(three_splits.sweep), three_splits.name))
    numbers = []
    for run in (first, row):
        condition = ticks.short_text(float(run[names.COVARIANCE_CONDITION.column]))
        count = f"{run[names.FINAL_MISCLASSIFICATIONS.column]:.0f} misclassified"
        numbers.append([f"step {run[names.STEP_TAG.column]}", count, f"condition {condition}"])
    (step, count, condition), of_all = numbers
    assert not {step, count, condition} & {*of_all}
    for name, expected in (("boundary", [step, count]), ("data", [condition])):
        figure = draw(three_splits, name)
        assert "the first of 3 splits" in " ".join(figure.get_suptitle().split())
        title = figure.axes[0].get_title().replace("\n", " ")
        assert title == ", ".join(["standard", *expected])
    assert texts(draw(three_splits, "sharpness").axes[0])[-1] == f"standard, {step}"


def test_an_optimizer_that_finds_its_own_step_sizes_has_none_in_a_label():
    for module, arrays in (
        (fit, CURVES | {"prediction": CURVES["x"]}),
        (boundary, of_boundary(0.2)),
        (contours, curved(1.0)),
    ):
        for is_gridless, count in (("true", 0), ("false", 1)):
            schemes = rows(1, **{names.GRIDLESS.column: is_gridless})
            axis = module.draw({"a": arrays}, schemes, "").axes[0]
            labels = [*texts(axis), axis.get_title()]
            assert sum("step" in label for label in labels) == count


def test_fit_draws_a_curve_a_scheme_over_the_points(one_feature):
    (axis,) = draw(one_feature, "fit").axes
    assert list(named(axis)) == ["identity", "standard"]
    (dots,) = axis.collections
    assert len(dots.get_offsets()) == 30
    assert sorted(text.split(",")[0] for text in texts(axis)) == ["identity", "standard"]
    # Both are lines, whatever the space that they were fitted in: measured 1e-15 off.
    for line in named(axis).values():
        assert line.get_marker() in ("None", "")  # a marker would hide the points
        assert line.get_zorder() > dots.get_zorder()
        assert np.allclose(np.diff(line.get_ydata(), 2), 0, atol=1e-12)


def test_features_have_a_box_each_and_names_to_be_read(one_feature, space):
    for axis in draw(space, "features").axes:
        assert {text.get_rotation() for text in axis.get_yticklabels()} == {0.0}
        low, high = axis.get_ylim()
        assert low > high  # the first feature is on top
    assert len(draw(one_feature, "features").axes) == 2
    axes = draw(space, "features").axes
    assert [len(axis.get_yticks()) for axis in axes] == [2, 1]
    for axis in axes:
        (dots,) = axis.collections
        assert len(dots.get_offsets()) == 30 * len(axis.get_yticks())


@pytest.mark.commands
def test_thirty_features_have_a_row_and_a_name_each():
    parts = {"values": np.random.default_rng(1).random((9, 30)), "all": np.array(64)}
    parts["names"] = np.array([f"feature {n}" for n in range(30)])
    rows = pd.DataFrame({"label": list("abcd"), "normalizer": list("abcd")})
    for shape in (style.FORMATS["column"], style.FORMATS["slide"]):  # the narrowest, the lowest
        figure = features.draw(dict.fromkeys("abcd", parts), rows, "t", shape=shape)
        figure.draw_without_rendering()
        for axis in figure.axes:
            boxes = [text.get_window_extent() for text in axis.get_yticklabels()]
            assert len(boxes) == 30
            assert all(upper.y0 >= lower.y1 - 1 for upper, lower in itertools.pairwise(boxes))


def test_projection_draws_points_images_and_the_plane(space):
    plane, line = draw(space, "projection").axes
    assert plane.get_title().startswith("pca, components=2")
    assert "% of the variance lost" in plane.get_title()
    labels = [part.get_label() for part in plane.collections]
    assert labels == ["_points", "_back", "_plane"]
    assert [part.get_label() for part in line.collections] == ["_points", "_back"]
    assert len(marked(plane, "thread")) == 30
    for axis in (plane, line):  # the box of three features reaches up to its title, not into it
        assert axis.title.get_position()[1] == 1


@pytest.mark.parametrize("count", [2, 3])
def test_the_plane_of_few_points_in_space_is_drawn(count):
    points = np.array([[1.0, 2, 3], [2, 5, 1], [0, 4, 4]])[:count]
    parts = {"points": points, "back": points, "kept": np.array(2), "lost": np.array(0.0)}
    parts |= {"target": np.zeros(count), "class_names": np.array([]), "names": np.array([*"xyz"])}
    (axis,) = projection.draw({"a": parts}, rows(1), "").axes
    directions = projection._image_directions(parts)
    np.testing.assert_allclose(directions @ directions.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose((points - points[0]) @ directions[2], 0, atol=1e-12)
    assert axis.elev >= 0


@pytest.mark.parametrize(
    ("class_names", "colors"),
    [([], ["#0072b24c", "#0072b2ff"]), (["no"], ["#b2b2b2ff", "#000000ff"])],
)
def test_the_legend_of_a_projection_has_the_colours_of_points_without_classes(class_names, colors):
    points = np.arange(8.0).reshape(4, 2)
    parts = {"points": points, "back": points, "kept": np.array(2), "lost": np.array(0.0)}
    parts |= {
        "target": np.zeros(4),
        "class_names": np.array(class_names),
        "names": np.array([*"xy"]),
    }
    figure = projection.draw({"a": parts}, rows(1), "")
    handles = figure.legends[0].legend_handles[len(class_names) :]
    assert [to_hex(handle.get_color(), keep_alpha=True) for handle in handles] == colors
    if not class_names:
        drawn = [dots.get_facecolors()[0] for dots in figure.axes[0].collections]
        assert [to_hex(color, keep_alpha=True) for color in drawn] == colors


@pytest.mark.parametrize("known", [True, False])
def test_circles_of_landings_are_explained_where_there_are_some(known):
    parts = {"position": np.array([0.5])} | ({"direction": np.array([1.0])} if known else {})
    note = landing.draw({"a": parts}, rows(1), "").get_supxlabel()
    assert note.startswith("ticks: the steps")
    assert ("circles" in note) == known


def test_closer_draws_the_named_schemes_from_iteration_1(three):
    assert drawing.figure(three.sweep, three.name, "closer") is None
    told = dataclasses.replace(
        three.sweep,
        runs=three.sweep.runs.assign(**{closer.CLOSER_SCHEMES: "['standard', 'pca_sphere']"}),
    )
    figure = drawing.figure(told, three.name, "closer")
    for axis in figure.axes:
        assert [name.split(",")[0] for name in named(axis)] == ["standard", "pca_sphere"]
        assert axis.get_xlim() == (1, 10)


def test_the_plane_of_two_components_is_looked_at_from_30_degrees_above(space):
    """Along its second direction, so that the first one runs across the picture."""
    plane, line = draw(space, "projection").axes
    images = next(part for part in plane.collections if part.get_label() == "_back")._offsets3d
    points = np.stack([np.asarray(values) for values in images], axis=1)
    centred = points - points.mean(axis=0)
    across, along, normal = np.linalg.svd(centred, full_matrices=False)[2]
    elevation, azimuth = np.radians([plane.elev, plane.azim])
    camera = [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth)]
    camera = np.array([*camera, np.sin(elevation)])
    assert abs(camera @ across) < 1e-6
    assert abs(camera @ along) == pytest.approx(np.cos(np.radians(30)))
    assert abs(camera @ normal) == pytest.approx(0.5)
    assert camera[2] > 0
    assert (line.elev, line.azim) == (25, -60)
    (surface,) = [part for part in plane.collections if part.get_label() == "_plane"]
    corners = np.asarray(surface._faces[0, :4]) - points.mean(axis=0)
    reach = 1.1 * np.abs(centred @ np.stack([across, along]).T).max(axis=0)
    assert np.abs(corners @ across) == pytest.approx(reach[0])
    assert np.abs(corners @ along) == pytest.approx(reach[1])
    assert np.abs(corners @ normal).max() < 1e-9
