"""Cost and error over a setting that was varied: what stands where, and when there is a figure."""

import pandas as pd
import pytest

from normbench import names
from normbench.results.figures import drawing
from normbench.results.figures import settings as setting_figures
from tests.results.figures.pictures import curves as lines_by_label
from tests.results.figures.pictures import varied_sweep as sweep
from tests.results.made import runs

FOLD_COLUMNS, TEST_COLUMNS, TRAIN_COLUMNS = (
    [metric.column for metric in columns[1:3]] for columns in setting_figures.DIAL_COLUMNS
)

VALUES = ("1000", "50", "200")


def curves(axis):
    return {label: [*zip(*line.get_data())] for label, line in lines_by_label(axis).items()}


def test_a_curve_a_scheme_in_the_order_of_the_values():
    (axis,) = drawing.figure(sweep(), "x", "dial").axes
    assert curves(axis) == {
        "standard": [(50, 0.3), (200, 0.2), (1000, 0.1)],
        "pca_sphere": [(50, 1.3), (200, 1.2), (1000, 1.1)],
    }


def test_splits_are_their_median_and_said():
    jobs = []
    for cost, value in zip((1, 3, 2), VALUES):
        for split in (0, 1, 5):
            own = {"dataset.points": value, "dataset.split_seed": f"{split}"}
            jobs.append(("x", "a", {1.0: (3, cost + split)}, own | {"data": f"{len(jobs)}"}))
    figure = drawing.figure(runs(*jobs), "x", "dial")
    assert curves(figure.axes[0])["a"] == [(50, 4), (200, 3), (1000, 2)]
    bottom, top = figure.axes[0].get_ylim()
    assert (bottom, top > 1.05 * 4) == (0, True)  # the highest marker is whole
    assert figure.legends[0].get_title().get_text().endswith("medians over 3 splits")


@pytest.mark.parametrize(
    ("known", "words", "share"),
    [
        ([FOLD_COLUMNS, TEST_COLUMNS], "cross-validation held out", 100),
        ([TEST_COLUMNS, TRAIN_COLUMNS], "of test points", 2),
        ([TRAIN_COLUMNS], "of training points", 1),
    ],
)
def test_points_that_were_held_out_come_first(known, words, share):
    made = sweep().runs
    for number, (cost, error) in enumerate(known):
        made[cost], made[error] = 7 + number, 5 + number
    rows = made[made["role"] == "scheme"].assign(scheme="a", test_points=50, train_points=100)
    rows = rows[:3]
    figure = setting_figures.draw_dial(rows, names.setting("dataset.points"), "")
    left, right = figure.axes
    assert {cost for _, cost in curves(left)["a"]} == {7}
    assert {error for _, error in curves(right)["a"]} == {5 * share}
    assert words in figure.legends[0].get_title().get_text()


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ([{"a": "1"}, {"a": "2"}, {"a": "3"}], "params.a"),
        ([{"a": "1"}, {"a": "2"}], ""),  # two values
        ([{"a": "1"}, {"a": "2"}, {"a": "x"}], ""),  # no number
        ([{"a": "1", "b": "1"}, {"a": "2", "b": "1"}, {"a": "3", "b": "2"}], ""),  # two settings
        ([{"a": "1"}, {"a": "2"}, {"a": "3"}, {"a": "3"}], ""),  # a value twice
        ([{"seed": "1"}, {"seed": "2"}, {"seed": "3"}], ""),  # draws
        ([{"study.x": "1"}, {"study.x": "2"}, {"study.x": "3"}], ""),  # of a study
    ],
)
def test_one_number_is_varied_or_there_is_no_figure(settings, found):
    rows = pd.DataFrame([{f"params.{key}": text for key, text in own.items()} for own in settings])
    assert setting_figures.find_varied_setting(rows.assign(scheme="s")) == found


def test_a_job_that_diverged_or_failed_is_no_point_of_a_curve():
    lost = [("x", "standard", {1.0: (3, 9.0)}, {"dataset.points": "9"}), ("x", "pca_sphere", None)]
    made = sweep(*lost)
    made.runs.loc[made.runs["run_id"].str.startswith("x6"), "verdict"] = names.DIVERGED
    figure = drawing.figure(made, "x", "dial")
    assert curves(figure.axes[0]) == curves(drawing.figure(sweep(), "x", "dial").axes[0])


def test_without_a_descent_or_a_varied_setting_there_is_none():
    assert drawing.figure(runs(("x", "a", {1.0: 2}), ("x", "b", {1.0: 3})), "x", "dial") is None
