"""Figures drawn from small stores: that they agree with what is recorded, and their files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy.optimize import isotonic_regression
from sklearn.preprocessing import StandardScaler

from normbench import names
from normbench.command.results.commands import main
from normbench.costs import softmax
from normbench.datasets import make_dataset, split
from normbench.engine.settings import Settings
from normbench.results.compare.merging import merged
from normbench.results.figures import (
    NAMES,
    contours,
    descent,
    drawing,
    histories,
)
from normbench.results.figures import points as point_figures
from normbench.results.figures.base import material, output, style, ticks
from normbench.results.figures.base.labels import spread_apart, spread_beside
from normbench.results.figures.base.material import Options
from normbench.results.store.errors import ResultsError
from normbench.results.store.rows import as_rows
from tests.recorded import points, write_sweep
from tests.results.figures.pictures import (
    bowl,
    curves,
    marked,
    of_data,
    of_schemes,
    rows,
    texts,
)


def draw(store, name, **options):
    return drawing.figure(store.sweep, store.name, name, Options(**options))


OF_THREE = {"histories", "step_sizes", "phase_diagram", "contours", "data", "spectrum", "sharpness"}
OF_THREE |= {"melt"}
OF_IMAGES = {"data", "spectrum", "components", "weighted", "reconstruction"}


@pytest.mark.commands
@pytest.mark.parametrize(("name", "expected"), [("three", OF_THREE), ("images", OF_IMAGES)])
def test_every_figure_of_every_record_is_drawn_and_no_other(name, expected, request):
    store = request.getfixturevalue(name)
    drawn = {name: draw(store, name) for name in NAMES}
    assert {name for name, figure in drawn.items() if figure is not None} == expected
    for name in expected:
        drawn[name].draw_without_rendering()  # a figure that cannot be laid out fails here


def test_histories_agree_with_the_store(three):
    table = three.sweep.histories(material.schemes(three.sweep, three.name))
    for label, line in curves(draw(three, "histories").axes[0]).items():
        own = table[table["label"] == label.split(",")[0]]
        assert np.array_equal(line.get_ydata(), own["train/cost"])
        assert np.array_equal(line.get_xdata(), own["iteration"])


def test_histories_of_chosen_steps(three):
    axis = draw(three, "histories", steps=(0.01, 1e200)).axes[0]
    steps = [label.rpartition(" ")[2] for label in curves(axis)]
    assert sorted(steps) == ["0.01"] * 3 + ["1e+200"] * 3
    assert sum("diverged at" in text for text in texts(axis)) == 3
    with pytest.raises(
        ResultsError, match=r"--steps 7: was not tried; choose of 0.01, 0.1, 1e\+200"
    ):
        draw(three, "histories", steps=(7.0,))


def test_a_step_size_is_known_by_the_six_digits_that_are_shown(three):
    runs = three.sweep.runs.replace({"metrics.step_size": {0.1: 10 ** (-2 / 3)}})
    sweep = replace(three.sweep, runs=runs)
    shown = f"{10 ** (-2 / 3):g}"
    figure = drawing.figure(sweep, three.name, "histories", Options(steps=(float(shown),)))
    assert len(curves(figure.axes[0])) == 3


def test_closer_draws_the_named_schemes_from_iteration_1(three):
    assert draw(three, "closer") is None
    runs = three.sweep.runs.assign(**{histories.CLOSER_SCHEMES: "['standard', 'pca_sphere']"})
    figure = drawing.figure(replace(three.sweep, runs=runs), three.name, "closer")
    for axis in figure.axes:
        assert [name.split(",")[0] for name in curves(axis)] == ["standard", "pca_sphere"]
        assert axis.get_xlim() == (1, 10)


@pytest.mark.parametrize("name", ["step_sizes", "phase_diagram"])
def test_the_threshold_is_drawn_only_where_it_speaks_of_the_optimizer(three, name):
    for plain, drawn in (("true", True), ("false", False)):
        runs = three.sweep.runs.assign(**{"tags.plain_descent": plain})
        figure = drawing.figure(replace(three.sweep, runs=runs), three.name, name)
        assert all(bool(marked(axis, "threshold")) == drawn for axis in figure.axes)
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("2/L, predicted" in legend) == drawn


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


def test_contour_levels_of_a_bowl_are_evenly_spaced_rings():
    rings = np.sqrt(contours.levels([bowl(1.0, path_cost=[2.0])])[0])
    # 1e-12: levels and roots of numbers around 1, measured 3e-16.
    assert np.allclose(np.diff(rings), rings[0], atol=1e-12)


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
    figure = of_schemes(point_figures.draw_data, of_data(x, 0) | {"target": np.zeros(3)})()
    assert len(figure.axes[0].patches) == 1 + seen
    assert ("unit circle" in figure.get_supxlabel()) == seen


def test_the_signs_of_principal_directions_are_those_of_the_first_panel():
    kept = of_data(np.random.default_rng(3).normal([1, 0], 1, (20, 2)))
    for labels, same in ((["principal direction 1", "principal direction 2"], True), ("xy", False)):
        first = kept | {"names": np.array(list(labels))}
        turned = first | {key: 3 * first[key] * [-1, 1] for key in ("points", "mean", "axes")}
        one, other = (
            np.concatenate([dots.get_offsets() for dots in axis.collections])
            for axis in of_schemes(point_figures.draw_data, first, turned)().axes
        )
        assert np.allclose(other, 3 * one) == same
        assert np.allclose(other, 3 * one * [-1, 1]) != same


def test_sharpness_of_least_squares_is_that_of_its_curvature(three):
    lipschitz = three.sweep.of_role("scheme").set_index("label")["metrics.theory/lipschitz"]
    drawn = curves(draw(three, "sharpness").axes[0])
    assert len(drawn) == 3
    for label, line in drawn.items():
        scheme, _, step = label.partition(", step ")
        # Least squares: the curvature is L everywhere.
        assert line.get_ydata() == pytest.approx(float(step) * lipschitz[scheme] / 2)


def test_a_sharpness_of_period_2_is_a_band():
    k = np.array([0, 1, 2, 3, 10, 11, 12])
    values = 1.0 + 0.5 * (-1.0) ** k
    low, high = descent.bands(k, values)
    assert np.array_equal(low, np.full(7, 0.5))
    assert np.array_equal(high, np.full(7, 1.5))
    alone = descent.bands(5 * k, values)
    assert np.array_equal(alone, [values, values])  # every fifth is recorded


@pytest.fixture(scope="module")
def three_splits(tmp_path_factory):
    """Three splits; the best step size of the first one, 30, is not that of all, 1."""
    dataset = make_dataset("two", *points(2, 40), class_names=["no", "yes"], source="-")
    record = ("boundary", "points", "sharpness")
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


@pytest.mark.parametrize("count", [2, 3])
def test_the_plane_of_few_points_in_space_is_drawn(count):
    points = np.array([[1.0, 2, 3], [2, 5, 1], [0, 4, 4]])[:count]
    parts = {"points": points, "back": points, "kept": np.array(2), "lost": np.array(0.0)}
    parts |= {"target": np.zeros(count), "class_names": np.array([]), "names": np.array([*"xyz"])}
    (axis,) = of_schemes(point_figures.draw_projection, parts)().axes
    directions = point_figures._image_directions(parts)
    np.testing.assert_allclose(directions @ directions.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose((points - points[0]) @ directions[2], 0, atol=1e-12)
    assert axis.elev >= 0


def test_the_number_of_components_is_one_that_is_recorded(images):
    few = draw(images, "components", components=4)
    assert few.axes[0].images[0].get_array().shape == (9, 9)
    with pytest.raises(ResultsError, match="--components 17: 16 are recorded of a scheme"):
        draw(images, "components", components=17)


@pytest.mark.commands
def test_an_animation_of_images_keeps_the_original_beside_them(images, tmp_path):
    files = drawing.write(images.sweep, tmp_path, ["reconstruction"])["images"]
    with Image.open(files[-1]) as picture:
        assert files[-1].suffix == ".gif"
        assert picture.n_frames > 5
        thirds = []
        for frame in range(picture.n_frames):
            picture.seek(frame)
            grey = np.asarray(picture.convert("L"))
            thirds.append(grey[:, -grey.shape[1] // 3 :] > 128)  # black or white
        assert all((third == thirds[-1]).all() for third in thirds)
        assert b"sweep-1" in picture.info["comment"]
        assert b"secret" not in picture.info["comment"]


@pytest.mark.commands
def test_the_profile_command_draws_its_figure(three, images, tmp_path, capsys):
    arguments = ["profile", "--folder", three.home, "--out", str(tmp_path), "--format", "page"]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    files = [tmp_path / f"profiles.{kind}" for kind in ("png", "svg", "pdf")]
    assert all(file.is_file() and str(file) in told for file in files)
    with Image.open(files[0]) as picture:
        assert picture.width == 6.5 * 300
    nothing = tmp_path / "nothing"
    assert main(["profile", "--folder", images.home, "--out", str(nothing)]) == 2
    told = capsys.readouterr()
    assert "leaderboard: nothing to compare (no problem on which every scheme was run" in told.out
    assert told.err.startswith(f"normbench: --out {nothing}: nothing to draw")
    assert not nothing.exists()


def test_files_are_the_same_each_time_and_say_where_they_come_from_and_no_password(three, tmp_path):
    once, again = (
        drawing.write(three.sweep, tmp_path / name, ["phase_diagram"])[three.name] for name in "ab"
    )
    assert [file.name for file in once] == [f"phase_diagram.{kind}" for kind in ("png", "svg")]
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]
    assert not [file for file in once if b"secret" in file.read_bytes()]
    with Image.open(once[0]) as picture:
        assert picture.info["Description"].startswith("sweep: sweep-1; command: normbench")
    assert "sweep: sweep-1" in once[1].read_text()


def test_matplotlib_is_left_as_it_was(images, tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    output.save(draw(images, "data"), tmp_path / "data", {})
    assert dict(matplotlib.rcParams) == before


def test_labels_are_as_close_to_their_places_as_least_squares_allows():
    for seed in range(50):
        fractions = np.sort(np.random.default_rng(seed).random(12))
        gaps = 0.05 * np.arange(12)
        places = isotonic_regression(fractions - gaps).x
        expected = np.clip(places, 0, 1 - gaps[-1]) + gaps
        assert spread_apart(fractions, 0.05) == pytest.approx(expected)


def test_places_keep_apart_from_each_other_and_from_those_that_are_taken():
    places = spread_beside([0.1, 0.48, 0.5, 0.52, 0.9], 0.05, [0.5], 0.1)
    assert places == sorted(places)
    assert min(np.diff(places)) >= 0.05 - 1e-12
    assert min(abs(place - 0.5) for place in places) >= 0.1 - 1e-12
    assert spread_beside([0.1, 0.9], 0.05, [], 0.1) == [0.1, 0.9]


def test_titles_are_words(three, images):
    known = material.schemes(three.sweep, three.name)
    assert material.title(three.name, known) == "two, 60 x 2, least squares, 20 test points"
    assert draw(three, "data").get_suptitle().startswith("two, 60 x 2, least squares")
    known = known.assign(train_points=range(len(known)))  # what differs is left out
    assert material.title(three.name, known) == "two, least squares, 20 test points"
    known = material.schemes(images.sweep, images.name)
    assert material.title(images.name, known) == "images, 40 x 16"
    for fit_on, leaks in ((["all", "train"], True), (["train"] * 2, False)):
        known = pd.DataFrame({names.FIT_ON: fit_on})
        assert ("fitted on the test points" in material.title("x", known)) == leaks


def test_curves_are_equal_in_groups_of_two_and_more():
    cost = names.TRAIN_COST.key
    table = pd.DataFrame({"run_id": list("aabbcc"), cost: [2.0, 1.0, 2.0, 1.0 + 1e-9, 2.0, 1.1]})
    assert histories.equal_runs(table, rows(3)) == [["a", "b"]]
    assert histories.equal_runs(table.drop(columns=cost), rows(3)) == []


def test_long_lines_are_broken_behind_commas():
    text = "breast cancer, 569 x 30, softmax, in 100 iterations of gradient descent"
    lines = style.wrap_text(text, 3.3, 7.7).split("\n")
    assert lines == ["breast cancer, 569 x 30, softmax", "in 100 iterations of gradient descent"]
    assert style.wrap_text(text, 10, 7.7) == text


def test_a_label_of_shared_options_alone_stays():
    labels = ["standard, points=9", "standard, points=9, scale=2", "standard, points=9, scale=3"]
    assert point_figures.shorten_labels(labels) == [labels[0], "scale=2", "scale=3"]
    assert point_figures.shorten_labels(labels[1:]) == ["scale=2", "scale=3"]


def test_a_start_cost_is_that_of_iteration_0_and_unknown_without_histories(three):
    known = material.schemes(three.sweep, three.name)
    costs = material.with_start_costs(three.sweep, known)[material.START_COST_COLUMN]
    table = three.sweep.histories(known)
    first = table[table["iteration"] == 0].set_index("run_id")[names.TRAIN_COST.key]
    assert costs.tolist() == [first[run_id] for run_id in known["run_id"]]
    none = material.with_start_costs(three.sweep, known.iloc[:0])
    assert material.START_COST_COLUMN in none
