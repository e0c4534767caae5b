"""Where steps land: exact for least squares, of any step rule, and near 0 along soft directions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import costs, names
from normbench.datasets import make_dataset
from normbench.job import run
from normbench.optimizers import gradient_descent, momentum
from normbench.results.figures import descent
from tests.measures.test_measures import job


def landed(x, rule=None, **settings):
    points = make_dataset("drawn", x, x @ np.arange(1.0, x.shape[1] + 1), source="drawn")
    record = {"record": ("landing", "path"), "iterations": 12, "refine": False, **settings}
    asked = job(points, costs.least_squares, FunctionTransformer(), **record)
    return run(replace(asked, optimizer=rule or gradient_descent()))


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 0.5, 1e-3] + 0.3


def hessian(x):
    ones = np.column_stack([np.ones(len(x)), x])
    return 2 * ones.T @ ones / len(x)


@pytest.mark.parametrize("rule", [gradient_descent(), momentum()])
def test_a_step_of_least_squares_lands_where_the_hessian_says(x, rule):
    descended = landed(x, rule, step_sizes=(0.3,))
    arrays = descended.arrays
    weights, second = arrays["path"]["weights"].reshape(13, -1), hessian(x)
    steps = np.diff(weights, axis=0)
    least = np.r_[0.0, np.arange(1.0, 4.0)]
    slopes = np.einsum("kn,kn->k", (weights[:-1] - least) @ second, steps)
    exact = -np.einsum("kn,nm,km->k", steps, second, steps) / slopes
    assert arrays["landing"]["iteration"].tolist() == list(range(12))
    np.testing.assert_allclose(arrays["landing"]["position"], exact, rtol=1e-9)  # measured: 1e-12
    assert ("direction" in arrays["landing"]) == rule.plain


def test_along_a_direction_a_plain_step_lands_at_its_curvature(x):
    descended = landed(x, step_sizes=(0.3,))
    arrays, metrics = descended.arrays["landing"], descended.findings.metrics
    curvatures = np.linalg.eigvalsh(hessian(x))[::-1]
    np.testing.assert_allclose(arrays["direction"], 0.3 * curvatures, rtol=1e-6)
    assert metrics[names.LANDING_SOFT.key] == 0.25  # the feature of small units
    assert metrics[names.LANDING.key] == np.median(arrays["position"])


def test_steps_decided_by_rounding_have_no_position(x):
    arrays = landed(x[:, :2], step_sizes=(0.3,), iterations=2000).arrays["landing"]
    assert 0 < len(arrays["position"]) < 1000
    largest = arrays["direction"].max()
    assert arrays["position"].min() > 0
    assert arrays["position"].max() <= largest * (1 + 1e-6)


def test_the_figure_has_a_circle_a_direction_and_a_tick_a_step(x):
    arrays = {"raw": landed(x, step_sizes=(0.3,)).arrays["landing"]}
    arrays["momentum"] = landed(x, momentum(), step_sizes=(0.3,)).arrays["landing"]
    schemes = pd.DataFrame({"label": [*arrays], "normalizer": ["identity", "standard"]})
    for axis, scheme in zip(descent.draw_landing(arrays, schemes, "").axes, arrays):
        circles = axis.collections[0].get_offsets()
        assert len(circles) == len(arrays[scheme].get("direction", ()))
        np.testing.assert_allclose(circles[:, 1], (circles[:, 0] - 1) ** 2)
        assert len(axis.lines[1].get_xdata()) == 12
