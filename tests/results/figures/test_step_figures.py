"""What the figures over the step sizes say of each: too small, too large, off the scale."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from normbench import names
from normbench.results.figures import phase_diagram, step_sizes
from normbench.results.figures.base import material, style
from normbench.results.figures.phase_diagram import TOO_LARGE, TOO_SMALL
from tests.results.figures.pictures import CHAOS, GOALS, SHADOWS, SIZES, marked, scheme, table


@pytest.mark.parametrize(
    ("verdicts", "costs", "expected"),
    [
        (
            ["not converged", "converged", "not converged", "cycling"],
            [0.9, 0.1, 0.2, 3.0],
            [TOO_SMALL, "converged", "not converged", TOO_LARGE],
        ),
        (
            ["not converged", "not converged", "not converged", "diverged"],
            [0.9, 0.5, 2.0, 9.0],
            [TOO_SMALL, "not converged", TOO_LARGE, "diverged"],
        ),
        (["cycling"] * 4, [0.5] * 4, ["cycling"] * 4),
        (["diverged"] * 4, [np.nan] * 4, ["diverged"] * 4),
        (  # no word on where it ends, above the start or the lowest of all
            ["not converged", "not converged", names.BY_ROUNDING, names.BY_ROUNDING],
            [0.9, 0.5, 0.1, 3.0],
            [TOO_SMALL, "not converged", names.BY_ROUNDING, names.BY_ROUNDING],
        ),
    ],
)
def test_a_step_size_is_too_small_or_too_large(verdicts, costs, expected):
    assert phase_diagram.classify_steps(table("a", verdicts, costs), scheme("a")) == expected


def test_a_step_size_is_judged_by_misclassified_points_where_these_are_compared():
    """The cost of a perceptron grows with the length of the weights, from 0 at zero weights."""
    counts = {names.FINAL_MISCLASSIFICATIONS.column: [30.0, 9.0, 2.0, 5.0]}
    steps = table("a", ["not converged"] * 4, [0.1, 0.9, 7.0, 50.0]).assign(**counts)
    counted = scheme("a", **{names.COMPARED.column: names.MISCLASSIFICATIONS})
    marks = phase_diagram.classify_steps(steps, counted)
    assert marks == [TOO_SMALL, TOO_SMALL, "not converged", "not converged"]


def lightness(color):
    return sum(to_rgb(color))


def test_the_darker_a_cell_the_less_is_left_and_what_diverged_is_apart():
    row = scheme("a", **GOALS)
    ends = [1.5, 0.9, 0.3, 0.05, 0.001]
    words = [
        phase_diagram.band_label({"verdict": "not converged", step_sizes.FINAL_COST: end}, row)
        for end in ends
    ]
    assert words == [words for _, words, _ in reversed(phase_diagram.EXCESS_BANDS)]
    greys = [lightness(phase_diagram.CELL_COLORS[word]) for word in words]
    assert greys == sorted(greys, reverse=True)
    assert min(-np.diff(greys)) > 0.4
    for verdict in ("diverged", names.BY_ROUNDING):
        assert (
            phase_diagram.band_label({"verdict": verdict, step_sizes.FINAL_COST: 0.1}, row)
            == verdict
        )
    assert (
        phase_diagram.band_label({"verdict": "converged", step_sizes.FINAL_COST: 0.1}, scheme("a"))
        == (phase_diagram.UNKNOWN_BAND[0])
    )


def test_a_run_from_a_drawn_start_is_above_zero_weights_and_below_its_start():
    row = scheme("a", **GOALS) | {material.START_COST_COLUMN: 5.0}
    steps = table("a", ["not converged"] * 4, [4.0, 3.0, 2.0, 0.5])
    assert TOO_LARGE not in phase_diagram.classify_steps(steps, row)
    labels = [phase_diagram.band_label(step, row) for step in steps.to_dict("records")]
    assert labels == ["more than at zero weights"] * 3 + ["10 to 50 % left"]


def test_a_label_has_a_step_size_of_two_digits():
    assert style.step_text("8.11131e-06") == ", step 8.1e-06"
    assert [style.step_text(size) for size in ("100", "10000", "0.0001")] == [
        ", step 100",
        ", step 10000",
        ", step 0.0001",
    ]
    assert [style.step_text(size) for size in ("10", "0.001", None)] == [
        ", step 10",
        ", step 0.001",
        "",
    ]


def test_nothing_is_too_large_where_the_start_is_not_known():
    own = table("a", ["not converged"] * 4, [0.9, 0.5, 2.0, 9.0])
    assert TOO_LARGE not in phase_diagram.classify_steps(
        own, scheme("a") | {material.START_COST_COLUMN: np.nan}
    )


def test_rows_are_sorted_by_2_over_l_and_equal_schemes_share_one():
    verdicts, costs = (
        ["not converged", "converged", "converged", "diverged"],
        [0.9, 0.1, 0.1, np.nan],
    )
    steps = pd.concat([table(name, verdicts, costs) for name in "abcd"])
    rows = [scheme("a", 3.0), scheme("b"), scheme("c", 0.5), scheme("d", 3.0 * (1 + 1e-9))]
    found = phase_diagram.group_equal_schemes(steps, pd.DataFrame(rows))
    assert [[row["label"] for row in same] for same in found] == [["c"], ["a", "d"], ["b"]]


def test_schemes_of_one_2_over_l_and_other_costs_are_not_called_equal():
    """As are centred features and sphered ones, where the bias is the stiffest direction."""
    verdicts, costs = ["not converged", "converged", "converged", "cycling"], [0.9, 0.1, 0.1, 0.3]
    found = {}
    for place, factor in ((0, 0.99), (1, 1 + 1e-4), (3, 3.0)):  # the last is above 2/L
        other = [factor * one if n == place else one for n, one in enumerate(costs)]
        steps = pd.concat([table("a", verdicts, costs), table("b", verdicts, other)])
        rows = pd.DataFrame([scheme("a", 3.0), scheme("b", 3.0)])
        found[place] = len(phase_diagram.group_equal_schemes(steps, rows))
    assert found == {0: 2, 1: 2, 3: 1}


def test_where_everything_diverged_there_is_no_figure(three):
    lost = three.sweep.runs.assign(verdict="diverged")
    lost = replace(three.sweep, runs=lost)
    assert step_sizes.make(lost, three.name, material.Options()) is None


def test_shadows_of_runs_that_end_where_theirs_do_have_no_band():
    steps = table(
        "a", ["not converged", "converged", "converged", "converged"], [0.9, 0.1, 0.2, 0.5]
    )
    assert step_sizes.final_cost_ranges(steps, {"step_sizes": SIZES, "shadows": SHADOWS}) == {}


@pytest.mark.parametrize("verdict", names.UNRANKED)
@pytest.mark.parametrize("figure", [step_sizes, phase_diagram])
def test_no_star_stands_on_a_step_size_that_is_never_the_best(figure, verdict):
    verdicts = ["not converged", "converged", "converged", verdict]
    steps = table("a", verdicts, [0.9, 0.1, 0.2, 0.5])
    for best, stars in (("1", 1), ("10", 0)):  # by splits some step size always stands for them
        drawn = figure.draw(steps, pd.DataFrame([scheme("a", best=best)]), "")
        (axis,) = drawn.axes
        assert len(marked(axis, "best")) == stars
        (mark,) = marked(axis, verdict)
        assert list(mark.get_xdata()) == [10.0]


def test_schemes_are_equal_however_rounding_ends_them():
    steps = pd.concat(
        [table(name, CHAOS, [0.9, 0.1, end, 0.5]) for name, end in (("a", 0.2), ("b", 0.3))]
    )
    rows = pd.DataFrame([scheme("a"), scheme("b")])
    assert len(phase_diagram.group_equal_schemes(steps, rows)) == 1


@pytest.mark.parametrize(("start", "is_cut"), [(1.0, False), (np.nan, True)])
def test_costs_below_ten_times_the_start_are_drawn_where_the_smallest_step_converges(start, is_cut):
    """Where the start is not known, the end of the smallest step size stands in."""
    steps = table("a", ["converged"] * 4, [0.01, 0.01, 0.01, 0.9])
    known = scheme("a") | {material.START_COST_COLUMN: start}
    figure = step_sizes.draw(steps, pd.DataFrame([known]), "")
    assert (figure.axes[0].get_ylim()[1] < 0.9) == is_cut
    assert bool(marked(figure.axes[0], "above")) == is_cut
