"""Figures of networks: by layer, boundaries of classes, and the rows of the phase diagram."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import names
from normbench.costs import multiclass_softmax, softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.models import Mlp
from normbench.optimizers import gradient_descent
from normbench.results.figures import descent
from tests.results.figures.pictures import of_boundary, of_schemes


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
    (axis,) = of_schemes(descent.draw_boundary, arrays)().axes
    assert axis.get_title().endswith(f", {counts[0]:.0f} misclassified")
    for wrong in (arrays | {"misclassified": np.array(np.nan)}, of_boundary(0.2)):
        assert "misclassified" not in of_schemes(descent.draw_boundary, wrong)().axes[0].get_title()
