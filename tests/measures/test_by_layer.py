"""Measures by layer of networks that are made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from normbench import costs
from normbench.datasets.bundled import breast_cancer
from normbench.measures.curvature import excess_along, reason_against_layers
from normbench.measures.networks import find_owners, measure_cosines
from normbench.theory.sizes import LEFT_OUT
from tests.measures.test_layers import job as layered
from tests.measures.test_layers import kept

RNG = np.random.default_rng(21)


COUPLED = np.array([[2.0, 0.3, 1.0], [0.3, 1.0, -1.0], [1.0, -1.0, 3.0]])


class Quadratic:
    """A network of two layers, of two weights and of one, with two running statistics."""

    layout = SimpleNamespace(
        groups=[SimpleNamespace(layer=n, size=size) for n, size in ((0, 2), (1, 1), (1, 2))],
        trained=3,
    )
    model = SimpleNamespace(layout=lambda network: network.layout)

    def evaluate(self, weights):
        gradient = np.column_stack([weights[:, :3] @ COUPLED, np.zeros((len(weights), 2))])
        return SimpleNamespace(gradient=gradient)


def test_a_layers_cosine_is_between_its_gradients_before_and_after_the_others_moved():
    network = Quadratic()
    assert find_owners(network).tolist() == [0, 0, 1, -1, -1]
    before, after = np.array([1.0, 2.0, 3.0, 0, 0]), np.array([3.0, -1.0, 0.5, 9, 9])
    first = COUPLED @ before[:3]
    others = [COUPLED @ [1.0, 2.0, 0.5], COUPLED @ [3.0, -1.0, 3.0]]
    wanted = [
        first[:2] @ others[0][:2] / np.linalg.norm(first[:2]) / np.linalg.norm(others[0][:2]),
        np.sign(first[2] * others[1][2]),
    ]
    assert measure_cosines(network, before, after) == pytest.approx(wanted)
    assert np.isnan(measure_cosines(network, np.zeros(5), after)).all()


def layered_descent(**changed):
    given = {
        **{"gridless": False, "iterations": 5, "convex": True, "linear": "scores"},
        **{"threshold": 0.5, "curvature": np.ones(2), "indefinite": False, **changed},
    }
    directions = SimpleNamespace(curvature=given["curvature"], indefinite=given["indefinite"])
    return SimpleNamespace(
        optimizer=SimpleNamespace(gridless=given["gridless"]),
        settings=SimpleNamespace(iterations=given["iterations"]),
        train=SimpleNamespace(convex=given["convex"], linear=given["linear"]),
        theory=SimpleNamespace(threshold=given["threshold"]),
        at_start=SimpleNamespace(directions=None if given["curvature"] is None else directions),
    )


NO_LAYERS_OF_NETWORKS = (
    "layers are of linear models, and these scores are not linear in the weights"
)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ""),
        ({"gridless": True}, "the optimizer finds its own step sizes"),
        ({"iterations": 0}, "no step was made"),
        ({"convex": False}, "the cost curves down along some direction of the start"),
        ({"convex": False, "linear": None}, NO_LAYERS_OF_NETWORKS),
        ({"threshold": None}, "the cost has no curvature at the start"),
        (
            {"curvature": None},
            f"the Hessian, no multiple of the points' Gram matrix, is {LEFT_OUT}",
        ),
        ({"curvature": np.ones(0)}, "the cost has no curvature at the start"),
        ({"indefinite": True}, "the cost curves down along some direction of the start"),
    ],
)
def test_a_descent_without_layers_has_a_reason(changed, reason):
    assert reason_against_layers(layered_descent(**changed)) == reason


def test_layers_of_several_starts_are_those_of_the_first():
    parts_of = kept(layered(breast_cancer(), costs.softmax, starts=2, start="normal"))
    best = np.flatnonzero(parts_of["step_sizes"] == parts_of["layer_step"])[0]
    np.testing.assert_allclose(parts_of["layer_ends"][best], parts_of["layer_path"][-1], atol=1e-6)


@pytest.mark.parametrize(("most", "sizes"), [(1, [1] * 5), (24, [2, 2, 1]), (10**9, [5])])
def test_layers_are_measured_of_so_many_weights_at_a_time(monkeypatch, most, sizes):
    """Three scores of four points: 12 numbers for each of five models."""
    evaluated = []
    weights = RNG.standard_normal((5, 3, 2))

    def evaluate(models):
        evaluated.append(len(models))
        return SimpleNamespace(gradient=models)

    directions = SimpleNamespace(
        squared_components=lambda gradient: gradient[:, 0] ** 2, curvature=np.array([4.0, 0.5])
    )
    descent = SimpleNamespace(
        train=SimpleNamespace(shape=(3, 2), evaluate=evaluate),
    )
    monkeypatch.setattr("normbench.measures.curvature.MAX_SCORES", most)
    found = excess_along(SimpleNamespace(descent=descent, z=range(4)), directions, weights)
    np.testing.assert_allclose(found, weights[:, 0] ** 2 / [8.0, 1.0])
    assert evaluated == sizes
