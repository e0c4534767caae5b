"""What a figure must not say: an axis that is not there, a star that helps nobody, two labels."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import normbench
from normbench import names
from normbench.results.compare.reached import with_lowest_seen
from normbench.results.figures import (
    contours,
    descent,
    drawing,
    histories,
    phase_diagram,
    step_sizes,
)
from normbench.results.figures.base import material
from tests.results.figures.pictures import CURVES, curved, of_boundary, of_schemes, texts

STEP, COST = names.STEP_SIZE.column, names.FINAL_COST.column


def without_steps(three, count):
    """The same sweep, as if the optimizer of so many schemes had found its own step sizes."""
    runs = three.sweep.runs.copy()
    schemes = runs.index[runs["role"] == names.SCHEME][:count]
    runs[names.GRIDLESS.column] = pd.Series("true", index=schemes)
    return replace(three.sweep, runs=runs)


@pytest.mark.parametrize("name", ["step_sizes", "phase_diagram"])
def test_without_step_sizes_there_is_no_axis_of_them(three, name, monkeypatch):
    every = without_steps(three, 3)
    assert drawing.figure(every, three.name, name) is None
    assert drawing.figure(without_steps(three, 1), three.name, name) is not None
    monkeypatch.setattr(drawing, "figure", lambda *_: None)  # those that there are take seconds
    told = "the optimizer finds its own step sizes"
    assert told in drawing.missing_figure_message(every, name)
    assert told not in drawing.missing_figure_message(
        every, "spectrum"
    )  # which is not of step sizes
    assert told not in drawing.missing_figure_message(without_steps(three, 1), name)
    every.runs.loc[every.runs["role"] == names.SCHEME, names.STEP_TAG.column] = None
    labels = histories.make(every, three.name, material.Options()).axes[0].texts
    assert not any("step" in text.get_text() for text in labels)


def test_an_optimizer_that_finds_its_own_step_sizes_has_none_in_a_label():
    for draw, arrays in (
        (descent.draw_fit, CURVES | {"prediction": CURVES["x"]}),
        (descent.draw_boundary, of_boundary(0.2)),
        (contours.draw, curved(1.0)),
    ):
        for is_gridless, count in (("true", 0), ("false", 1)):
            figure = of_schemes(draw, arrays, columns={names.GRIDLESS.column: is_gridless})()
            labels = [*texts(figure.axes[0]), figure.axes[0].get_title()]
            assert sum("step" in label for label in labels) == count


def tables(costs_of, best="0.1", verdicts=("not converged", "cycling")):
    steps = pd.DataFrame({"label": "a", STEP: [0.01, 0.1], COST: costs_of, "verdict": verdicts})
    known = {"label": ["a"], "normalizer": ["pca"], names.STEP_TAG.column: [best]}
    return steps, pd.DataFrame(known | {material.START_COST_COLUMN: [1.0]})


@pytest.mark.parametrize(("costs_of", "helps"), [([1.5, 1.2], False), ([1.5, 0.9], True)])
def test_where_no_step_size_helps_none_has_a_star(costs_of, helps):
    steps, schemes = tables(costs_of)
    axis = step_sizes.draw(steps, schemes, "t").axes[0]
    stars = [line for line in axis.lines if line.get_label() == "_best"]
    told = any(step_sizes.NO_IMPROVEMENT_TEXT in text.get_text() for text in axis.texts)
    assert (bool(stars), told) == (helps, not helps)
    (chart,) = phase_diagram.draw(steps, schemes, "t").axes
    assert any(line.get_label() == "_best" for line in chart.lines) == helps
    counted = schemes.assign(**{names.COMPARED.column: names.MISCLASSIFICATIONS})
    chart = phase_diagram.draw(steps, counted, "t").axes[0]  # costs say nothing of counts
    assert any(line.get_label() == "_best" for line in chart.lines)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("the cost or its gradient stopped being finite at step 2", "a diverged at 2"),
        ("the cost ends at over 10 times the start's excess", "a diverged"),
    ],
)
def test_a_run_that_stays_finite_diverges_at_no_iteration(reason, text):
    costs_of = pd.DataFrame({"run_id": "r", "iteration": [0, 1], names.TRAIN_COST.key: [1.0, 90.0]})
    run = {"run_id": "r", "label": "a", "normalizer": "a", "verdict": "diverged"}
    runs = pd.DataFrame([{**run, names.REASON.column: reason, names.STEP_TAG.column: None}])
    axis = histories.draw(costs_of, runs, "t", scale="linear").axes[0]
    assert any(label.get_text().startswith(text + ",") for label in axis.texts)


def test_of_schemes_that_did_not_solve_for_the_least_cost_one_lowest_is_the_measure_of_all():
    known = {"experiment": "x", names.MINIMUM_REACHED.column: "false"}
    rows = [{"label": "slow", "normalizer": "a", names.MINIMUM.column: 0.5}]
    rows += [{"label": "fast", "normalizer": "b", names.MINIMUM.column: 0.1}]
    schemes = pd.DataFrame([{**row, **known} for row in rows])
    schemes[names.target("1e-1").column] = 0.1 + 0.9 * schemes[names.MINIMUM.column]
    shared = with_lowest_seen(schemes)
    assert shared[names.MINIMUM.column].tolist() == [0.1, 0.1]
    step = {"verdict": "not converged", COST: 0.5}
    slow = shared.to_dict("records")[0]
    assert phase_diagram.band_label(step, slow) == "10 to 50 % left"  # of its own lowest, none
    solved = schemes.assign(**{names.MINIMUM_REACHED.column: "true"})
    assert with_lowest_seen(solved) is solved
    penalized = schemes.assign(**{names.setting("cost.l2"): "0.1"})
    assert with_lowest_seen(penalized) is penalized


@pytest.mark.parametrize("verdict", ["converged", "not converged"])
def test_the_largest_step_that_levels_stands_on_one_that_does(verdict):
    steps, schemes = tables([0.5, 0.4], verdicts=("converged", verdict))
    schemes[names.LARGEST_CONVERGENT.column] = 0.1
    (axis,) = phase_diagram.draw(steps, schemes, "t").axes
    drawn = any(line.get_label() == "_largest" for line in axis.lines)
    assert drawn == (verdict == "converged")


def test_curves_of_other_step_sizes_are_not_called_equal():
    """Each scheme has a run for each step size: those of step 1 agree, those of step 10 do not."""
    costs = [[1.0, 0.5], [1.0, 0.5], [1.0, 0.2], [1.0, 0.1]]
    run_ids = ["pca-1", "zca-1", "pca-10", "zca-10"]
    table = pd.DataFrame({"run_id": np.repeat(run_ids, 2), "iteration": [0, 1] * 4})
    table = table.assign(**{"train/cost": np.ravel(costs)})
    runs = pd.DataFrame({"run_id": run_ids, "label": ["pca", "zca"] * 2})
    runs = runs.assign(normalizer=runs["label"], verdict="converged")
    runs = runs.assign(**{names.STEP_TAG.column: ["1", "1", "10", "10"]})
    (axis,) = histories.draw(table, runs, "t").axes
    labels = sorted(text.get_text() for text in axis.texts)
    assert labels == ["pca = zca, step 1", "pca, step 10", "zca, step 10"]
    # The label has one step size, so that equal costs of two step sizes are two curves.
    table["train/cost"] = [1.0, 0.5] * 4
    assert histories.equal_runs(table, runs) == [run_ids[:2], run_ids[2:]]


def test_the_points_of_a_sphered_scheme_are_not_drawn_as_pixels():
    """Of a recorded comparison: each picture is a point, or a coordinate for each pixel."""
    rng = np.random.default_rng(0)
    x = rng.random((40, 16)) @ rng.random((16, 16))
    schemes = ["standard", "pca", "pca_sphere", "zca_sphere"]
    found = normbench.compare(
        x, np.arange(40) % 2, "softmax", schemes, [0.1], 2, record=["components"]
    )
    figure = drawing.figure(found.sweep, found.sweep.experiments[0], "components")
    titles = [axis.get_title() for axis in figure.axes]
    shown = [n for n, title in enumerate(titles) if title]
    assert [titles[n] for n in shown] == schemes
    pictures = {}
    for name, axis in zip(schemes, [axis for axis in figure.axes if not axis.get_title()]):
        (image,) = axis.images
        pictures[name] = np.asarray(image.get_array(), dtype=float)
    side = 4
    shapes = {name: picture.shape for name, picture in pictures.items()}
    once, twice = (side, 8 * (side + 1) - 1), (2 * side + 1, 8 * (side + 1) - 1)
    assert shapes == {"standard": twice, "pca": once, "pca_sphere": once, "zca_sphere": twice}
    # The points themselves: the same under every scheme, in the order of the pixels.
    points = x[:8].reshape(8, side, side)
    low, high = (edge(axis=(1, 2), keepdims=True) for edge in (points.min, points.max))
    stretched = 2 * (points - low) / (high - low) - 1
    for picture in pictures.values():
        own = np.stack(
            [picture[:side, n : n + side] for n in range(0, 8 * (side + 1) - 1, side + 1)]
        )
        np.testing.assert_allclose(own, stretched, atol=1e-5)  # float32; measured 4e-7
    # Below them each pixel standardized.
    below = ((x - x.mean(axis=0)) / x.std(axis=0))[0].reshape(side, side)
    below = 2 * (below - below.min()) / np.ptp(below) - 1
    np.testing.assert_allclose(pictures["standard"][side + 1 :, :side], below, atol=1e-5)


@pytest.mark.parametrize(
    ("note", "name", "told"),
    [
        ("least cost, melt left out by size (theory=full)", "melt", "by size"),
        ("x; film: each class has a score", "film", "it, each class has a score; it shows"),
    ],
)
def test_what_is_lacking_has_the_reason_of_its_note(three, note, name, told, monkeypatch):
    runs = three.sweep.runs.assign(**{names.NOTE.column: note})
    monkeypatch.setattr(drawing, "figure", lambda *_: None)
    message = drawing.missing_figure_message(replace(three.sweep, runs=runs), name)
    assert told in message
    assert ("theory=full" in message) == (told == "by size")
