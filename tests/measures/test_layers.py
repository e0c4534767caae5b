"""The layers of the start's excess: exact for least squares, measured elsewhere, and why not."""

import numpy as np
import pytest

from normbench import costs, names
from normbench.choices import build, options
from normbench.costs.declaration import declare
from normbench.datasets.bundled import breast_cancer, diabetes, iris
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.results.figures.melt.layers import layers_from_arrays
from normbench.theory.analysis import Directions

STEPS = (1e-3, 1e-2, 0.1)


def job(data, cost, scheme="standard", optimizer="gradient_descent", **settings):
    settings = {"step_sizes": STEPS, "theory": "full", "iterations": 40} | settings
    settings = {"refine": False, **settings}
    schemes = build("normalizer", options("normalizer", scheme))
    rule = build("optimizer", options("optimizer", optimizer))
    return Job(data, cost, schemes, rule, Settings(**settings))


def kept(made):
    return run(made).arrays[names.DESCENT_ARRAYS]


@pytest.mark.parametrize(
    ("data", "scheme"),
    [(diabetes, "standard"), (breast_cancer, "pca_sphere"), (breast_cancer, "identity")],
)
def test_of_least_squares_the_closed_form_is_the_recorded_excess(data, scheme):
    parts = kept(job(data(), costs.least_squares, scheme, step_sizes=(1e-7, 1e-3, 0.05)))
    assert "layer_ends" not in parts
    found = layers_from_arrays(parts)
    assert found.exact
    costs_of = parts[names.TRAIN_COST.key][:, 0]
    assert parts["layer_share"].sum() == pytest.approx(costs_of[0, 0] - parts["minimum"], rel=1e-9)
    for step in found.step_sizes:
        edge = found.excess[found.run_index(step)]
        if np.nanmax(edge) > 1:  # it grows, and so does the rounding
            continue
        at, rows = found.history(step)
        # Measured 4e-12 at most, of the raw breast cancer data.
        np.testing.assert_allclose(rows.sum(axis=1), edge[at], atol=1e-9)
        assert rows.min() >= 0


@pytest.mark.parametrize(
    ("cost", "data", "settings"),
    [
        (costs.softmax, breast_cancer, {}),
        (costs.softmax, breast_cancer, {"start": [0.0, *[0.1] * 30]}),
        (costs.multiclass_softmax, iris, {}),
        (costs.squared_margin, breast_cancer, {"optimizer": "momentum"}),
        (costs.least_squares, diabetes, {"optimizer": "adam"}),
    ],
)
def test_measured_layers_are_never_negative_and_add_up_to_the_excess(cost, data, settings):
    parts = kept(job(data(), cost, **settings))
    found = layers_from_arrays(parts)
    assert not found.exact
    assert parts["layer_ends"].min() >= 0
    np.testing.assert_allclose(parts["layer_ends"].sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(parts["layer_path"].sum(axis=1), 1, rtol=1e-6)
    best = found.path_step
    at, rows = found.history(best)
    np.testing.assert_array_equal(at, np.arange(41))
    np.testing.assert_allclose(rows.sum(axis=1), found.excess[found.run_index(best)], rtol=1e-5)
    np.testing.assert_allclose(rows[0], found.thickness, atol=1e-6)  # the left panel's
    np.testing.assert_allclose(found.remaining_excess(best).sum(), rows[-1].sum(), rtol=1e-5)
    assert found.ratios(found.step_sizes).min() >= 0


def test_of_many_iterations_some_are_measured(monkeypatch):
    monkeypatch.setattr("normbench.measures.curvature.MAX_LAYER_ITERATIONS", 11)
    parts = kept(job(breast_cancer(), costs.softmax, step_sizes=(0.1,)))
    assert len(parts["layer_at"]) == 11
    assert (parts["layer_at"][0], parts["layer_at"][-1]) == (0, 40)


@declare("binary", convex=False)
def bent(scores, targets):
    import autograd.numpy as anp

    return anp.sum(anp.tanh(-targets * scores[:, 0]), axis=-1)


@pytest.mark.parametrize(
    ("cost", "settings", "reason"),
    [
        (costs.softmax, {"optimizer": "lbfgs"}, "the optimizer finds its own step sizes"),
        (costs.perceptron, {"start": "normal"}, "the cost has no curvature at the start"),
        (bent, {"start": "normal"}, "the cost curves down along some direction of the start"),
    ],
)
def test_where_there_are_none_a_tag_says_why(cost, settings, reason):
    made = run(job(breast_cancer(), cost, **{"iterations": 3, **settings}))
    assert "layer_share" not in made.arrays[names.DESCENT_ARRAYS]
    assert made.findings.tags[names.NO_LAYERS.key] == reason


def test_negative_curvature_is_a_reason():
    values = np.array([2.0, 1.0])
    assert Directions(values, np.eye(2), 1, -0.1).indefinite
    assert not Directions(values, np.eye(2), 1, -1e-17).indefinite


def test_without_theory_there_are_none():
    made = run(job(iris(), costs.multiclass_softmax, theory="none", iterations=3))
    assert "layer_share" not in made.arrays[names.DESCENT_ARRAYS]
