"""Step-size windows: the bars, what a step size serves, and the figure."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare.merging import REPEATS
from normbench.results.figures import drawing, windows
from normbench.results.figures.base import material, style
from tests.results.figures.shapes import SHAPES

RNG = np.random.default_rng(5)


def parts(curvature, share, times=None):
    times = np.ones(len(curvature), dtype=int) if times is None else np.array(times)
    return {
        windows.WINDOW_CURVATURE: np.array(curvature, dtype=float),
        windows.WINDOW_SHARE: np.array(share, dtype=float),
        windows.WINDOW_TIMES: times,
    }


def test_a_window_holds_the_steps_under_which_a_direction_shrinks_to_1_over_e():
    found = windows.training_windows(parts([100.0, 1.0, 0.01], [1.0, 2.0, 1.0]), 50)
    for step in np.geomspace(1e-5, 1e3, 200):
        shrinks = np.abs(1 - step * np.array([100.0, 1.0, 0.01])) ** 50 <= np.exp(-1)
        count, share = found.count_trained(step)
        assert count == shrinks.sum()
        assert share == pytest.approx(np.array([0.25, 0.5, 0.25])[shrinks].sum())
    # For many iterations, from about 1 / (K h) to about 2 / h.
    many = windows.training_windows(parts([4.0], [1.0]), 10_000)
    assert many.low[0] == pytest.approx(1 / (10_000 * 4.0), rel=1e-3)
    assert many.high[0] == pytest.approx(2 / 4.0, rel=1e-3)


def test_the_largest_step_size_of_a_window_shrinks_its_direction_to_1_over_e():
    window = windows.training_windows(parts([4.0], [1.0]), 2)
    for limit in (window.low[0], window.high[0]):
        assert (1 - limit * 4.0) ** 2 == pytest.approx(np.exp(-1))


@pytest.mark.parametrize(("condition", "one"), [(50.0, True), (99.0, True), (101.0, False)])
def test_one_step_serves_all_up_to_a_condition_number_of_about_twice_the_iterations(condition, one):
    iterations = 50
    bound = 1 / np.tanh(1 / (2 * iterations))
    assert bound == pytest.approx(2 * iterations, rel=1e-3)
    found = windows.training_windows(parts([condition, 1.0], [1.0, 1.0]), iterations)
    best = max(
        found.count_trained(step)[0] for step in np.geomspace(found.low[0], found.high[1], 20_000)
    )
    assert (best == 2) == one == (condition <= bound)


def test_directions_of_one_curvature_count_each():
    found = windows.training_windows(parts([2.0, 1.0], [1.0, 3.0], [9, 1]), 10)
    assert found.count_trained(0.5) == (10, 1.0)


def test_many_directions_become_groups_that_lose_nothing():
    curvature = np.sort(10 ** RNG.uniform(-6, 3, 500))[::-1]
    share = RNG.random(500) ** 8
    found = windows.training_windows(parts(curvature, share), 100)
    shown = windows.group_bars(found)
    assert len(shown.low) <= windows.MAX_BARS
    assert shown.direction_counts.sum() == 500
    assert shown.share.sum() == pytest.approx(1)
    assert (shown.low.min(), shown.high.max()) == (found.low.min(), found.high.max())
    assert shown.share.max() < 0.2  # a direction with much of the excess is not lost in a crowd
    few = windows.training_windows(parts(curvature[:7], share[:7]), 100)
    assert windows.group_bars(few) is few


def test_the_figure_shows_every_scheme_with_its_numbers(three):
    rows = material.schemes(three.sweep, three.name)
    rows = rows.assign(**{names.setting("iterations"): "10"})
    arrays = {label: parts([5.0, 1.0, 0.1], [1.0, 2.0, 7.0]) for label in rows["label"]}
    steps = material.steps(three.sweep, three.name)
    figure = windows.draw(arrays, rows, steps, "title")
    uppers = [axis for axis in figure.axes if axis.collections]
    assert 2 * len(uppers) == len(figure.axes) == 2 * len(rows)
    limits = {axis.get_xlim() for axis in figure.axes}
    assert len(limits) == 1  # one axis of step sizes
    for axis, row in zip(uppers, rows.to_dict("records")):
        assert len(axis.collections[0].get_paths()) == 3
        best = float(row[names.STEP_TAG.column])
        count, share = windows.training_windows(arrays[row["label"]], 10).count_trained(best)
        assert f"trains {count} of 3 directions" in axis.get_title()
        assert f"holding {share:.0%} of the excess" in axis.get_title()
        shades = axis.collections[0].get_facecolors()[:, 0]
        assert shades[2] < shades[1] < shades[0]  # dark where much of the excess lies


def test_the_windows_at_the_best_weights_are_outlined(three):
    rows = material.schemes(three.sweep, three.name).iloc[:1]
    rows = rows.assign(**{names.setting("iterations"): "10"})
    steps = material.steps(three.sweep, three.name)
    best = float(rows[names.STEP_TAG.column].iloc[0])
    kept = parts([1e3 / best] * 1, [1.0]) | {
        windows.BEST_CURVATURES: np.array([1.0, 0.9, 1e-9]) / best
    }
    figure = windows.draw({rows["label"].iloc[0]: kept}, rows, steps, "title")
    upper = next(axis for axis in figure.axes if axis.collections)
    _, outlined = upper.collections
    assert len(outlined.get_paths()) == 3
    assert not len(outlined.get_facecolor())
    assert "trains 0 of 1 direction\n" in upper.get_title()
    assert "trains 2 of 3 at the end" in upper.get_title()
    bent = rows.assign(**{names.BASIS.column: "a bound"})  # the curvature may fall on the way
    figure = windows.draw({rows["label"].iloc[0]: kept}, bent, steps, "title")
    upper = next(axis for axis in figure.axes if axis.collections)
    assert "is too large\nfor the only direction of the start" in upper.get_title()


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("count", [1, 3, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", SHAPES)
def test_panels_keep_their_room(count, shape):
    """A layout that finds no room warns, and a warning is an error here."""
    labels = [f"scheme {n}, ridge=0.1" for n in range(count)]
    known = {names.THRESHOLD.column: 0.4, names.STEP_TAG.column: "0.1", "normalizer": "pca"}
    known |= {names.setting("iterations"): "20", names.MINIMUM.column: 0.0}
    known |= {names.target("1e-1").column: 0.1}
    rows = pd.DataFrame([{"label": label, "run_id": label, **known} for label in labels])
    steps = pd.DataFrame(
        {"label": label, windows.STEP_SIZE: size, "verdict": verdict, names.FINAL_COST.column: 0.5}
        for label in labels
        for size, verdict in ((0.01, "not converged"), (0.1, "converged"), (1.0, "diverged"))
    )
    kept = parts([5.0, 1.0, 0.1], [1.0, 2.0, 3.0]) | {windows.BEST_CURVATURES: np.array([4.0, 1.0])}
    figure = windows.draw(dict.fromkeys(labels, kept), rows, steps, "t", shape=style.FORMATS[shape])
    figure.draw_without_rendering()
    assert len(figure.axes) == 2 * count
    columns = min(count, style.FORMATS[shape].columns)
    for axis in figure.axes:
        assert axis.get_position().width > 0.5 / columns


def words_below(rows, steps):
    """The words of the legend, and the note above it."""
    kept = parts([5.0, 1.0], [1.0, 2.0])
    rows = rows.assign(**{names.setting("iterations"): "10"})
    figure = windows.draw(dict.fromkeys(rows["label"], kept), rows, steps, "t")
    (below,) = figure.legends
    return [text.get_text() for text in below.get_texts()], below.get_title().get_text()


def test_the_legend_names_what_is_drawn_and_what_it_is(three):
    rows = material.schemes(three.sweep, three.name)
    steps = material.steps(three.sweep, three.name)
    assert "best step" in words_below(rows, steps)[0]
    chosen, _ = words_below(rows.assign(**{names.STEP_CHOSEN.column: "true"}), steps)
    assert "shown step" in chosen
    assert "best step" not in chosen
    none, _ = words_below(rows.assign(**{names.STEP_TAG.column: None}), steps)  # all diverged
    assert not [word for word in none if "step" in word]


def test_an_excess_over_a_guess_is_told(three):
    rows = material.schemes(three.sweep, three.name)
    steps = material.steps(three.sweep, three.name)
    for known, told in (("true", False), ("false", True)):
        _, note = words_below(rows.assign(**{names.MINIMUM_REACHED.column: known}), steps)
        assert (windows.LOWEST_COST_NOTE in note) == told


def test_it_says_what_is_shown_of_several_splits(three):
    rows = material.schemes(three.sweep, three.name)
    steps = material.steps(three.sweep, three.name)
    for repeats, expected in (("", ""), ("4 splits", f"over 4 splits: {windows.MERGED_NOTE}")):
        _, note = words_below(rows.assign(**{REPEATS: repeats}), steps)
        assert " ".join(note.split()) == expected


def test_a_scheme_without_directions_has_no_panel(three):
    rows = material.schemes(three.sweep, three.name)
    rows = rows.assign(**{names.setting("iterations"): "10"})
    steps = material.steps(three.sweep, three.name)
    one = {rows["label"].iloc[0]: parts([1.0], [1.0])}
    assert len(windows.draw(one, rows, steps, "title").axes) == 2


def test_it_is_drawn_from_what_a_job_keeps(three):
    known = three.sweep.arrays(material.schemes(three.sweep, three.name), names.DESCENT_ARRAYS)
    figure = drawing.figure(three.sweep, three.name, "windows")
    drawn = [label for label, kept in known.items() if windows.WINDOW_CURVATURE in kept]
    assert (figure is None) == (not drawn)
    if figure:
        assert len(figure.axes) == 2 * len(drawn)


def test_networks_have_no_windows_and_the_reason_is_said(three, monkeypatch):
    assert windows.why_not(three.sweep, three.name) == []
    monkeypatch.setattr(windows, "has_networks", lambda schemes: True)
    assert windows.why_not(three.sweep, three.name) == [windows.OF_LINEAR]
    assert windows.OF_LINEAR in drawing.missing_figure_message(three.sweep, "windows")
