"""Every problem of a sweep in one figure: what it shows of numbers made by hand."""

import numpy as np
import pytest

from normbench import names
from normbench.results.figures import drawing, overview
from normbench.results.figures.base import style
from tests.results.figures.pictures import split_problems, two_problems
from tests.results.made import runs


def shown(axis):
    """What stands at which height: the number, or the word of the column beside the numbers."""
    labels = zip(axis.get_xticks(), (text.get_text() for text in axis.get_xticklabels()))
    texts = {place: text for place, text in labels if text.islower()}
    marks = [line for line in axis.lines if line.get_label() == "_value"]
    return [texts.get(line.get_xdata()[0], line.get_xdata()[0]) for line in marks]


def test_numbers_stand_on_their_axis_and_everything_else_beside_it():
    figure = drawing.figure(two_problems(), "x", "overview")
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


def test_splits_are_their_median_with_quartiles():
    right = drawing.figure(split_problems(), "x", "overview").axes[1]
    assert shown(right) == [2, 2, 12, 12]
    spans = [tuple(line.get_xdata()) for line in right.lines if line.get_label() == "_quartiles"]
    assert spans == [(2, 4)] * 2 + [(12, 14)] * 2


def test_counted_points_are_told():
    made = two_problems()
    made.runs.loc[made.runs["experiment"] == "x", names.COMPARED.column] = names.MISCLASSIFICATIONS
    labels = drawing.figure(made, "x", "overview").axes[0].get_yticklabels()
    assert [text.get_text() for text in labels] == ["x*", "y"]
    assert overview._notes(overview.table(made)) == [overview.COUNTED_NOTE]
    penalty = {names.setting("cost.l2"): "0.1", names.setting("cost.l2_in"): "transformed"}
    rows = overview.table(two_problems()).assign(**penalty)
    assert overview._notes(rows) == [overview.OWN_COST_NOTE]


def test_an_unknown_least_cost_leaves_no_excess():
    made = two_problems()
    made.runs.loc[made.runs["experiment"] == "x", names.MINIMUM_REACHED.column] = "false"
    assert shown(drawing.figure(made, "x", "overview").axes[0])[:2] == ["not\nknown"] * 2


@pytest.mark.parametrize("high", [100.0, 300.0, 1000.0])
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
    written = drawing.write(two_problems(), tmp_path, ["overview"], file_formats=["svg"])
    assert written == {name: [tmp_path / "overview.svg"] for name in "xy"}
