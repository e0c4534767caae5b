"""Every problem of a sweep in one figure: what it shows of numbers made by hand."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare import passes
from normbench.results.figures import drawing, overview
from normbench.results.figures.base import style
from normbench.results.figures.base.material import Options
from normbench.results.report import captions
from normbench.results.report import page as report
from normbench.results.store.looks import LOOKS
from normbench.results.store.runs import Sweep
from tests.results.figures.shapes import SHAPES
from tests.results.made import runs
from tests.results.report.test_report import Page

NEVER = np.inf


def sweep():
    """Two problems: `a` is fast on both; `b` does not reach the target, and diverges; `c` fails."""
    made = runs(
        *(("x", "a", {1.0: (3, 0.001)}), ("x", "b", {1.0: (NEVER, 0.5)}), ("x", "c", None)),
        *(("y", "a", {1.0: (9, 0.0)}), ("y", "b", {1.0: (NEVER, 1.0)}), ("y", "c", None)),
        iterations="10",
    )
    rows = made.runs
    rows[names.MINIMUM_REACHED.column] = "true"
    own = (rows["experiment"] == "y") & (rows["normalizer"] == "b")
    rows.loc[own, "verdict"] = "diverged"
    return Sweep("-", "s", rows)


def shown(axis):
    """What stands at which height: the number, or the word of the column beside the numbers."""
    labels = zip(axis.get_xticks(), (text.get_text() for text in axis.get_xticklabels()))
    texts = {place: text for place, text in labels if text.islower()}
    marks = [line for line in axis.lines if line.get_label() == "_value"]
    return [texts.get(line.get_xdata()[0], line.get_xdata()[0]) for line in marks]


def test_numbers_stand_on_their_axis_and_everything_else_beside_it():
    figure = drawing.figure(sweep(), "x", "overview")
    left, right = figure.axes
    assert shown(left) == [
        *(pytest.approx(0.001), pytest.approx(0.5), "failed"),
        *("under\n10⁻⁶", "diverged", "failed"),
    ]
    assert shown(right) == [3, "not\nreached", "failed", 9, "diverged", "failed"]
    hollow = [line.get_mfc() == "none" for line in right.lines if line.get_label() == "_value"]
    assert hollow == [False, True, True, False, True, True]
    low, high = left.get_xlim()
    ticks = left.get_xticks()
    assert low < min(ticks)
    assert max(ticks) < high
    assert [text.get_text() for text in left.get_yticklabels()] == ["x", "y"]
    assert figure.get_suptitle() == "2 problems, in 10 iterations of gradient descent"
    assert left.get_xlabel().startswith("share of the excess cost left (zero weights: 1)")


def test_an_unknown_least_cost_leaves_no_excess():
    made = sweep()
    made.runs.loc[made.runs["experiment"] == "x", names.MINIMUM_REACHED.column] = "false"
    assert shown(drawing.figure(made, "x", "overview").axes[0])[:2] == ["not\nknown"] * 2


def test_counted_points_and_functions_of_their_own_are_told():
    made = sweep()
    rows = overview.table(made)
    assert overview._notes(rows) == []
    assert overview._notes(rows.assign(counted=True)) == [overview.COUNTED_NOTE]
    penalty = {names.setting("cost.l2"): "0.1", names.setting("cost.l2_in"): "transformed"}
    assert overview._notes(rows.assign(**penalty)) == [overview.OWN_COST_NOTE]
    made = sweep()
    made.runs.loc[made.runs["experiment"] == "x", names.COMPARED.column] = names.MISCLASSIFICATIONS
    labels = drawing.figure(made, "x", "overview").axes[0].get_yticklabels()
    assert [text.get_text() for text in labels] == ["x*", "y"]


def test_splits_are_their_median_with_quartiles():
    jobs = [
        (name, scheme, {1.0: (count + extra, 0.01 * count)}, {"data": f"{name}{split}"})
        for name, extra in (("x", 0), ("y", 10))
        for scheme in "ab"
        for split, count in enumerate((1, 2, 4))
    ]
    jobs = [(*job[:3], {**job[3], "dataset.split_seed": job[3]["data"][1]}) for job in jobs]
    figure = drawing.figure(runs(*jobs), "x", "overview")
    right = figure.axes[1]
    assert shown(right) == [2, 2, 12, 12]
    spans = [tuple(line.get_xdata()) for line in right.lines if line.get_label() == "_quartiles"]
    assert spans == [(2, 4)] * 2 + [(12, 14)] * 2
    assert figure.legends[0].get_title().get_text() == overview.QUARTILE_NOTE


@pytest.mark.parametrize("shape", SHAPES)
def test_twelve_schemes_on_four_problems_have_a_line_each(shape):
    schemes = list(LOOKS)[:12]
    made = runs(
        *((name, s, {1.0: (3 + n, 0.001)}) for name in "wxyz" for n, s in enumerate(schemes))
    )
    figure = drawing.figure(made, "w", "overview", Options(shape=style.FORMATS[shape]))
    figure.draw_without_rendering()
    axis = figure.axes[1]
    marks = [line for line in axis.lines if line.get_label() == "_value"]
    heights = [line.get_ydata()[0] for line in marks]
    assert len(set(heights)) == 48
    points = axis.transData.transform(np.column_stack([np.full(48, 3), heights]))[:, 1]
    font = style.FORMATS[shape].font * figure.dpi / 72  # pixels
    assert np.abs(np.diff(points)).min() > 0.6 * font  # a mark is so high
    looks = {(line.get_color(), line.get_marker()) for line in marks}
    assert len(looks) == 12


def test_names_of_three_lines_and_numbers_beside_words_keep_apart():
    jobs = [
        ("x", scheme, {1.0: (count, left)}, {"dataset.correlation": f"0.{number}"})
        for number, excess in enumerate((0.0, 0.0145, 0.5))
        for scheme, count, left in (("standard", 28, excess), ("pca_sphere", 1, 0.0))
    ]
    made = runs(*jobs, iterations="10")
    made.runs[names.MINIMUM_REACHED.column] = "true"
    rows = overview.table(made)
    problem = "gaussian, 1000 x 10, least squares, dataset.correlation=" + rows["setting"].str[-3:]
    figure = overview.draw(rows.assign(problem=problem), "3 problems")
    figure.draw_without_rendering()
    for axis in figure.axes:
        for texts in (axis.get_yticklabels(), axis.get_xticklabels()):
            boxes = [text.get_window_extent() for text in texts if text.get_text()]
            assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("high", np.geomspace(100, 1000, 10))
def test_numbers_keep_apart_from_a_word_on_either_side(high):
    words = ["", "", "0", overview.UNREACHED_TEXT]
    with style.figure_style(style.SCREEN):
        figure, (axis, _) = style.panels(2, style.SCREEN, "", 0.3)
        spots = overview._set_log_scale(axis, [1.0, high, 0.0, np.inf], words)
        figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axis.get_xticklabels() if text.get_text()]
    assert spots[2] < 1 < high < spots[3]
    assert len(boxes) > 3
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


@pytest.mark.slow
def test_it_needs_several_problems_and_several_settings_are_several(three):
    one = runs(("x", "a", {1.0: 2.0}), ("x", "b", {1.0: 3.0}))
    assert drawing.figure(one, "x", "overview") is None
    assert "nothing recorded for it, for it has one problem; " in drawing.missing_figure_message(
        three.sweep, "overview"
    )
    jobs = [("x", s, {1.0: 2.0}, {"iterations": n}) for s in "ab" for n in ("10", "20")]
    labels = drawing.figure(runs(*jobs), "x", "overview").axes[0].get_yticklabels()
    assert [text.get_text() for text in labels] == ["x, iterations=10", "x, iterations=20"]


def test_it_is_drawn_once_and_is_a_file_of_every_experiment(tmp_path):
    written = drawing.write(sweep(), tmp_path, ["overview"], file_formats=["svg"])
    assert written == {name: [tmp_path / "overview.svg"] for name in "xy"}


@pytest.mark.commands
def test_a_report_of_several_begins_with_it_and_folds_each_away(three, tmp_path):
    again = three.sweep.runs.assign(experiment="again")
    made = Sweep(three.uri, "sweep-1", pd.concat([three.sweep.runs, again], ignore_index=True))
    page = Page(
        report.render(made, drawing.write(made, tmp_path, ["overview"], file_formats=["svg"]))
    )
    assert [inside[-1] for tag, _, inside in page.elements if tag == "figure"] == ["main"]
    assert captions.describe_figure(made, "again", "overview") in page.text
    folded = [own for own in page.all("details") if own.get("class") == "problem"]
    assert len(folded) == 2
    assert not any("open" in own for own in folded)
    assert all("details" in inside for tag, _, inside in page.elements if tag == "table")
    alone = Page(report.render(three.sweep, drawn={}))
    assert "problem" not in {own.get("class") for own in alone.all("details")}


def test_with_batches_it_counts_passes():
    batched = sweep()
    batched.runs[passes.BATCH_SETTING] = "30"
    assert "the mean rank by the passes until 1 %" in captions.describe_figure(
        batched, "x", "overview"
    )
    _, axis = overview.make(batched, "x", Options()).axes
    assert axis.get_xlabel().startswith("passes until 1%")


def test_its_caption_is_the_leaderboard():
    assert captions.describe_figure(sweep(), "x", "overview") == (
        "Over 2 problems, the mean rank by the iterations until 1 % of the excess cost is left "
        "(and the share of problems where that happens): a 1 (100%), b 2.25 (0%), c 2.75 (0%)."
    )
