"""Figures of networks: by layer, boundaries of classes, and the rows of the phase diagram."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import names
from normbench.costs import multiclass_softmax, softmax
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.models import Mlp
from normbench.optimizers import gradient_descent
from normbench.results.figures import boundary, by_layer, phase_diagram
from normbench.results.figures.base import style
from tests.results.figures.pictures import (
    grid,
    of_boundary,
    of_layers_of_network,
    of_networks,
    of_schemes,
)
from tests.results.figures.shapes import SHAPES


def drawn_lines(axis, label):
    return [line.get_ydata().tolist() for line in axis.lines if line.get_label() == label]


def test_each_quantity_has_a_panel_with_the_start_and_the_end_of_each_scheme():
    arrays = of_layers_of_network(4), of_layers_of_network(6)
    axes = of_schemes(by_layer, *arrays).axes
    assert [axis.get_title() for axis in axes] == [metric.label for metric in by_layer.PANELS]
    for axis, metric in zip(axes[:3], by_layer.PANELS):
        for label, row in (("_start", 0), ("_end", -1)):
            expected = [each[metric.key][row].tolist() for each in arrays]
            assert drawn_lines(axis, label) == expected
    # The median over iterations, without those that have no cosine.
    medians = [np.median(each[names.LAYER_COSINE.key][:2], axis=0) for each in arrays]
    assert drawn_lines(axes[3], "_end") == [each.tolist() for each in medians]


def test_a_layer_without_a_cosine_has_a_gap():
    assert by_layer._median_over_iterations(np.array([[np.nan, 1.0]])).tolist()[1] == 1.0
    assert np.isnan(by_layer._median_over_iterations(np.array([[np.nan, 1.0]]))[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_titles_of_panels_fit_their_width(shape):
    figure = of_schemes(by_layer, of_layers_of_network(3), shape=style.FORMATS[shape])
    figure.draw_without_rendering()
    for axis in figure.axes:
        assert axis.title.get_window_extent().width <= 1.02 * axis.get_window_extent().width


def outcome(cost=softmax, model=None, classes=2):
    x = np.random.default_rng(0).uniform(-1, 1, (80, 2)) * [1, 20]
    y = (x[:, 0] > 0.3).astype(int) + (x[:, 1] > 0) * (classes > 2)
    data = make_dataset("drawn", x, y, class_names=list("abc")[:classes], source="-")
    start = "normal" if model else "zeros"
    settings = Settings((1.0,), 400, start, record=("boundary",), shadows=False, theory="none")
    return data, run(Job(data, cost, StandardScaler(), gradient_descent(), settings, model=model))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("model", [None, Mlp([8], normalize="batch")], ids=["linear", "mlp"])
def test_the_regions_of_a_boundary_are_the_classes_that_the_model_predicts(model, classes):
    cost = softmax if classes == 2 else multiclass_softmax
    data, made = outcome(cost, model, classes)
    arrays = made.arrays["boundary"]
    a, b = arrays["a"], arrays["b"]
    assert a[0] < data.x[:, 0].min() < data.x[:, 0].max() < a[-1]
    cells = [
        np.abs(axis - column[:, None]).argmin(axis=1) for axis, column in zip((a, b), data.x.T)
    ]
    wrong = np.count_nonzero(arrays["predicted"][cells[1], cells[0]] != data.y)
    told = made.steps[0].histories["train/misclassifications"][-1]
    assert abs(wrong - told) <= 4  # of 80: points beside a boundary, which are less than a cell off
    assert told < 24  # a line parts two of the classes, not three
    if model is None and classes == 2:  # a line: each row changes once, and all at about 0.3
        changes = np.diff(arrays["predicted"], axis=1)
        assert np.abs(changes).sum(axis=1).max() <= 1


def test_a_boundary_counts_the_misclassified_points_of_the_start_that_it_shows():
    """The verdicts have the median over the starts."""
    x = np.random.default_rng(1).standard_normal((60, 2))
    data = make_dataset("drawn", x, x.prod(axis=1) > 0, class_names=["a", "b"], source="-")
    settings = Settings((0.1, 3.0), 30, "normal", starts=4, record=("boundary",), shadows=False)
    cost, scheme, rule = softmax, StandardScaler(), gradient_descent()
    made = run(Job(data, cost, scheme, rule, settings, model=Mlp([5])))
    counts = made.arrays[names.DESCENT_ARRAYS][names.TRAIN_MISCLASSIFICATIONS.key][made.best, :, -1]
    assert counts[0] != np.median(counts)
    arrays = made.arrays["boundary"]
    assert arrays["misclassified"] == counts[0]
    (axis,) = of_schemes(boundary, arrays).axes
    assert axis.get_title().endswith(f", {counts[0]:.0f} misclassified")
    for wrong in (arrays | {"misclassified": np.array(np.nan)}, of_boundary(0.2)):
        assert "misclassified" not in of_schemes(boundary, wrong).axes[0].get_title()


def test_a_boundary_is_of_two_features_and_classes():
    x = np.random.default_rng(0).standard_normal((9, 3))
    data = make_dataset("drawn", x, [0, 1, 1] * 3, class_names=[*"ab"], source="-")
    settings = Settings((1.0,), 3, record=("boundary",))
    with pytest.raises(UserError, match="is of classes in two features; drawn has 3 features"):
        check(Job(data, softmax, StandardScaler(), gradient_descent(), settings))


def test_boundaries_are_drawn_between_regions_and_points_in_the_looks_of_their_classes():
    axes = of_schemes(boundary, of_boundary(0.2), of_boundary(0.9)).axes
    for axis, slope in zip(axes, (0.2, 0.9)):
        regions = axis.collections[0].get_array()
        assert np.array_equal(regions, of_boundary(slope)["predicted"])
        lines = [each for each in axis.collections if hasattr(each, "levels")]
        assert len(lines) == 2  # of three regions
    assert axes[0].get_title(loc="left") or axes[0].get_title()


@pytest.mark.parametrize(
    ("label", "inputs", "inside"),
    [
        ("standard", "standard", ""),
        ("standard, ridge=1", "standard, ridge=1", ""),
        ("standard, model.normalize=batch", "standard", "batch"),
        ("a, b=1, model.normalize=zca, model.groups=2", "a, b=1", "zca, groups=2"),
    ],
)
def test_a_label_is_split_into_the_inputs_and_the_inside(label, inputs, inside):
    assert phase_diagram.split_label(label) == (inputs, inside)
    assert phase_diagram.row_label(label) == (f"{inputs} / {inside}" if inside else inputs)


def test_rows_of_networks_stand_together_by_their_inputs():
    (axis,) = of_networks().axes
    labels = [text.get_text() for text in axis.get_yticklabels()]
    assert labels == ["identity / none", "identity / batch, place=after", "standard / none"]
    between = [line for line in axis.lines if line.get_label() == "_inputs"]
    assert [line.get_ydata()[0] for line in between] == [1.5]
    assert axis.get_ylabel() == phase_diagram.NETWORK_ROWS
    (linear,) = phase_diagram.draw(*grid(9), "title").axes
    assert not linear.get_ylabel()
    assert "_inputs" not in [line.get_label() for line in linear.lines]
