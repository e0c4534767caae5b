"""What the figures over the step sizes say of each: too small, too large, off the scale."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from normbench import names
from normbench.results.compare.merging import REPEATS
from normbench.results.figures import phase_diagram, step_sizes
from normbench.results.figures.base import material, style
from normbench.results.figures.phase_diagram import TOO_LARGE, TOO_SMALL
from tests.results.figures.test_figures import marked, texts

SIZES = [0.01, 0.1, 1.0, 10.0]


def table(label, verdicts, costs):
    rows = {
        "label": label,
        "verdict": verdicts,
        step_sizes.STEP_SIZE: SIZES,
        step_sizes.FINAL_COST: costs,
    }
    return pd.DataFrame(rows)


def scheme(label, threshold=np.nan, best="1", start=1.0, **more):
    known = {"label": label, "normalizer": label, step_sizes.THRESHOLD: threshold}
    return known | {names.STEP_TAG.column: best, material.START_COST_COLUMN: start} | more


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
    counted = scheme("a", start=0.0, **{names.COMPARED.column: names.MISCLASSIFICATIONS})
    marks = phase_diagram.classify_steps(steps, counted)
    assert marks == [TOO_SMALL, TOO_SMALL, "not converged", "not converged"]


def lightness(color):
    return sum(to_rgb(color))


def test_the_darker_a_cell_the_less_is_left_and_what_diverged_is_apart():
    known = {names.MINIMUM.column: 0.0, names.target("1e-1").column: 0.1}
    row = scheme("a", **known)
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
    row = scheme("a", start=5.0, **{names.MINIMUM.column: 0.0, names.target("1e-1").column: 0.1})
    steps = table("a", ["not converged"] * 4, [4.0, 3.0, 2.0, 0.5])
    assert TOO_LARGE not in phase_diagram.classify_steps(steps, row)
    labels = [phase_diagram.band_label(step, row) for step in steps.to_dict("records")]
    assert labels == ["more than at zero weights"] * 3 + ["10 to 50 % left"]


def test_two_limits_beside_each_other_do_not_merge():
    steps = table(
        "a", ["not converged", "converged", "converged", "converged"], [0.9, 0.1, 0.1, 0.1]
    )
    rows = pd.DataFrame([scheme("a", 8.0, **{step_sizes.LARGEST_CONVERGENT: 10.0})])
    (axis,) = phase_diagram.draw(steps, rows, "").axes
    ends = {name: marked(axis, name)[0].get_ydata() for name in ("threshold", "largest")}
    assert max(ends["threshold"]) <= min(ends["largest"])


@pytest.mark.parametrize("count", [40, 41])
def test_above_40_step_sizes_a_mark_stands_for_all_neighbours_of_one_verdict(count):
    sizes = np.geomspace(1e-4, 1e2, count)
    verdicts = np.where(sizes < 1, "converged", "diverged")
    steps = pd.DataFrame({"label": "a", "verdict": verdicts, step_sizes.STEP_SIZE: sizes})
    steps[step_sizes.FINAL_COST] = 0.1
    (axis,) = phase_diagram.draw(steps, pd.DataFrame([scheme("a", best=None)]), "").axes
    marks = sum(
        len(mark.get_xdata()) for v in ("converged", "diverged") for mark in marked(axis, v)
    )
    assert marks == (count if count == 40 else 2)
    reach = [line.get_xdata() for line in marked(axis, "span")][::2]
    if count > 40:
        assert [list(ends) for ends in reach] == [
            [sizes[0], sizes[verdicts == "converged"][-1]],
            [sizes[verdicts == "diverged"][0], sizes[-1]],
        ]


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
    assert TOO_LARGE not in phase_diagram.classify_steps(own, scheme("a", start=np.nan))


def test_rows_are_sorted_by_2_over_l_and_equal_schemes_share_one():
    verdicts, costs = (
        ["not converged", "converged", "converged", "diverged"],
        [0.9, 0.1, 0.1, np.nan],
    )
    steps = pd.concat([table(name, verdicts, costs) for name in "abcd"])
    rows = [scheme("a", 3.0), scheme("b"), scheme("c", 0.5), scheme("d", 3.0 * (1 + 1e-9))]
    found = phase_diagram.group_equal_schemes(steps, pd.DataFrame(rows))
    assert [[row["label"] for row in same] for same in found] == [["c"], ["a", "d"], ["b"]]
    (axis,) = phase_diagram.draw(steps, pd.DataFrame(rows), "").axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["c", "a = d", "b"]


def test_it_says_what_stands_for_several_splits():
    """2/L may lie in a cell whose worst split does not converge: it is a median."""
    steps = table("a", ["not converged"] * 4, [0.9, 0.5, 0.4, 0.3])
    for over, expected in (("4 splits", "over 4 splits: the worst verdict"), ("", "")):
        row = scheme("a", 2.0, **{step_sizes.LARGEST_CONVERGENT: 10.0, REPEATS: over})
        figure = phase_diagram.draw(steps, pd.DataFrame([row]), "")
        assert figure.legends[0].get_title().get_text().startswith(expected)
        assert bool(figure.legends[0].get_title().get_text()) == bool(expected)


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


def test_limits_stand_on_their_step_and_say_where_the_grid_ends():
    steps = table(
        "a", ["not converged", "converged", "converged", "converged"], [0.9, 0.1, 0.1, 0.1]
    )
    told = {step_sizes.LARGEST_CONVERGENT: 10.0, names.CENSORED.column: "true"}
    for more, threshold, words in (
        (told, 2.0, [">="]),
        (told | {names.CENSORED.column: "false"}, 2.0, []),
        ({}, 4e-7, ["← 2/L = 4·10⁻⁷"]),
        ({}, 5e4, ["2/L = 5·10⁴ →"]),
    ):
        rows = pd.DataFrame([scheme("a", threshold, **more)])
        figure = phase_diagram.draw(steps, rows, "")
        (axis,) = figure.axes
        assert texts(axis) == words
        assert {line.get_xdata()[0] for line in marked(axis, "largest")} == (
            {10.0} if more else set()
        )
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert ("2/L, predicted" in legend) == (threshold == 2.0)
        assert ("largest step that converges" in legend) == bool(more)


def test_where_everything_diverged_nothing_is_drawn_or_named_that_is_not_there(three):
    steps = table("a", ["diverged"] * 4, [1e300] * 4)
    rows = pd.DataFrame([scheme("a", 1e-9, best=None)])
    figure = phase_diagram.draw(steps, rows, "")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["diverged"]
    lost = three.sweep.runs.assign(verdict="diverged")
    lost = type(three.sweep)(three.uri, "sweep-1", lost)
    assert step_sizes.make(lost, three.name, material.Options()) is None


def test_a_scheme_that_diverged_has_no_cost_and_the_others_no_curve_of_it():
    steps = pd.concat(
        [
            table("a", ["diverged"] * 4, [1e300] * 4),
            table(
                "b",
                ["not converged", "converged", "not converged", "diverged"],
                [0.9, 0.1, 50.0, 1e9],
            ),
        ]
    )
    rows = pd.DataFrame([scheme("a", best=None), scheme("b", best="0.1")])
    figure = step_sizes.draw(steps, rows, "")
    lost, other = figure.axes
    assert texts(lost) == ["diverged at every step size tried"]
    assert not marked(lost, "best")
    assert [list(line.get_xdata()) for line in marked(other, "above")] == [[1.0]]
    assert [list(line.get_xdata()) for line in marked(other, "best")] == [[0.1]]
    assert other.get_ylim()[1] < 1e3
    (behind,) = [part for part in other.collections if hasattr(part, "get_segments")]
    assert not any(len(segment) for segment in behind.get_segments())
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "off the scale" in legend


CHAOS = ["not converged", "converged", names.BY_ROUNDING, names.BY_ROUNDING]
# Three shadows of each step size: of the third three ends, of the fourth one that stopped early.
SHADOWS = np.array([[np.nan] * 3, [np.nan] * 3, [0.05, 0.4, 0.2], [0.3, np.inf, 0.7]])[:, None]


def chaotic(**more):
    parts = {"step_sizes": np.array(SIZES), "shadows": SHADOWS, **more}
    steps = table("a", CHAOS, [0.9, 0.1, 0.2, 0.5])
    rows = pd.DataFrame([scheme("a", best="0.1")])
    return step_sizes.draw(steps, rows, "", {"a": parts})


def test_what_rounding_decides_has_a_mark_and_a_band_of_its_ends_and_no_curve():
    figure = chaotic()
    (axis,) = figure.axes
    (mark,) = marked(axis, names.BY_ROUNDING)
    assert list(mark.get_xdata()) == [1.0, 10.0]
    bands = [line.get_xydata().tolist() for line in marked(axis, "ends")]
    low, top = axis.get_ylim()
    assert bands == [[[1.0, 0.05], [1.0, 0.4]], [[10.0, 0.3], [10.0, top]]]
    assert low < 0.05  # the band is seen whole
    (curve,) = [line for line in axis.lines if line.get_label() == "a"]
    assert list(curve.get_xdata()) == [0.01, 0.1]
    assert "typical ends" in [text.get_text() for text in figure.legends[0].get_texts()]
    without = step_sizes.draw(
        table("a", CHAOS, [0.9, 0.1, 0.2, 0.5]), pd.DataFrame([scheme("a")]), ""
    )
    assert not marked(without.axes[0], "ends")
    assert "typical ends" not in [text.get_text() for text in without.legends[0].get_texts()]


def test_shadows_of_runs_that_end_where_theirs_do_have_no_band():
    steps = table(
        "a", ["not converged", "converged", "converged", "converged"], [0.9, 0.1, 0.2, 0.5]
    )
    assert step_sizes.final_cost_ranges(steps, {"step_sizes": SIZES, "shadows": SHADOWS}) == {}


@pytest.mark.parametrize("censored", ["true", "false"])
def test_an_arrow_marks_the_largest_step_size_where_no_larger_one_was_tried(censored):
    limits = {step_sizes.LARGEST_CONVERGENT: 10.0, names.CENSORED.column: censored}
    steps = table("a", ["converged"] * 4, [0.9, 0.1, 0.1, 0.1])
    figure = step_sizes.draw(steps, pd.DataFrame([scheme("a", **limits)]), "")
    (mark,) = marked(figure.axes[0], "largest")
    is_triangle = isinstance(mark.get_marker(), str)  # the arrow is a path
    assert is_triangle == (censored == "false")
    texts_by_bound = {
        "true": "converges, and no larger one failed",
        "false": "largest step that converges",
    }
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [text for text in texts_by_bound.values() if text in legend] == [
        texts_by_bound[censored]
    ]


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


def test_finer_step_sizes_are_points_at_their_median_end():
    sizes = np.array([0.2, 0.3, 0.4])
    cost = np.ones((3, 3, 5))  # of three starts, and four iterations
    cost[:, :, -1] = [[0.01, 0.02, 0.9], [0.3, 0.2, 0.1], [0.3, np.nan, 0.1]]
    figure = chaotic(refined_step_sizes=sizes, refined_cost=cost)
    (axis,) = figure.axes
    (points,) = marked(axis, "finer")
    assert points.get_xydata().tolist() == [[0.2, 0.02], [0.3, 0.2]]  # one of the third diverged
    assert axis.get_ylim()[0] < 0.02
    (curve,) = (line for line in axis.lines if line.get_label() == "a")  # goes through them
    assert {(0.2, 0.02), (0.3, 0.2)} <= set(map(tuple, curve.get_xydata().tolist()))
    assert "finer step sizes" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert "finer step sizes" not in [text.get_text() for text in chaotic().legends[0].get_texts()]


def test_no_two_verdicts_have_one_mark_and_none_has_that_of_the_best_step():
    marks = [mark for _, mark in style.VERDICT_LOOKS.values()]
    assert len({*marks, "*", "^"}) == len(marks) + 2


def test_schemes_are_equal_however_rounding_ends_them():
    steps = pd.concat(
        [table(name, CHAOS, [0.9, 0.1, end, 0.5]) for name, end in (("a", 0.2), ("b", 0.3))]
    )
    rows = pd.DataFrame([scheme("a"), scheme("b")])
    assert len(phase_diagram.group_equal_schemes(steps, rows)) == 1


def test_a_run_that_diverged_has_no_height_of_a_cost():
    """Its mark stood as high as the largest cost, as if it ended there."""
    steps = pd.concat(
        [table("a", ["diverged"] * 4, [1e300] * 4), table("b", ["converged"] * 4, [0.9] * 4)]
    )
    figure = step_sizes.draw(steps, pd.DataFrame([scheme("a", best=None), scheme("b")]), "")
    (crosses,) = marked(figure.axes[0], "diverged")
    top = figure.axes[0].get_ylim()[1]
    assert (crosses.get_ydata() > 0.9).all()
    assert (crosses.get_ydata() < top).all()
    # As far from the largest cost as half of the room above it.
    assert crosses.get_ydata()[0] == pytest.approx((0.9 * top) ** 0.5)


@pytest.mark.parametrize("count", [10, 200])
def test_marks_of_many_step_sizes_do_not_hide_each_other(count):
    sizes = np.geomspace(1e-7, 1e2, count)
    steps = pd.DataFrame({"label": "a", "verdict": "converged", step_sizes.STEP_SIZE: sizes})
    steps[step_sizes.FINAL_COST] = np.linspace(1.0, 0.1, count)
    (axis,) = step_sizes.draw(steps, pd.DataFrame([scheme("a", best=None)]), "").axes
    (marks,) = marked(axis, "converged")
    assert marks.get_markersize() == pytest.approx(6 if count == 10 else 1.2)


@pytest.mark.parametrize(("start", "is_cut"), [(1.0, False), (np.nan, True)])
def test_costs_below_ten_times_the_start_are_drawn_where_the_smallest_step_converges(start, is_cut):
    """Where the start is not known, the end of the smallest step size stands in."""
    steps = table("a", ["converged"] * 4, [0.01, 0.01, 0.01, 0.9])
    figure = step_sizes.draw(steps, pd.DataFrame([scheme("a", start=start)]), "")
    assert (figure.axes[0].get_ylim()[1] < 0.9) == is_cut
    assert bool(marked(figure.axes[0], "above")) == is_cut
