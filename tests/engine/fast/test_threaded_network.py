"""Networks on several threads: the numbers of one thread."""

import numpy as np
import pytest

from normbench.costs import multiclass_softmax
from normbench.engine.fast import threaded_network
from normbench.engine.fast.threaded_network import ThreadedNetwork
from normbench.engine.network import Network
from normbench.models import Mlp

POINTS, FEATURES, CLASSES, RUNS = 30, 4, 3, 5


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def threads(monkeypatch):
    """Take three threads, for however little work."""
    monkeypatch.setattr(threaded_network, "PARALLEL_ACTIVATIONS", 1)
    monkeypatch.setattr(threaded_network.threads, "available_threads", lambda: 3)


def pair(rng, cost=multiclass_softmax, **options):
    """Return a problem, the same one on threads, and weights."""
    x, targets = rng.standard_normal((POINTS, FEATURES)), rng.integers(0, CLASSES, POINTS)
    arguments = Mlp([6, 5], **options), cost, x, targets, True, CLASSES
    network = Network(*arguments)
    weights = network.model.start(network.layout, RUNS, rng)
    return network, ThreadedNetwork(*arguments), weights


@pytest.mark.parametrize("normalize", ["none", "batch", "layer", "zca"])
def test_evaluations_and_batches_are_those_of_one_thread(rng, threads, normalize):
    network, threaded, weights = pair(rng, normalize=normalize)
    for with_gradient in (True, False):
        expected = network.evaluate(weights, with_gradient)
        memory = {}
        for _ in range(2):  # the second one in the memory of the first
            evaluation = threaded.evaluate(weights, with_gradient, memory)
            np.testing.assert_allclose(evaluation.costs, expected.costs, rtol=1e-12)
            np.testing.assert_array_equal(
                evaluation.misclassifications, expected.misclassifications
            )
        if with_gradient:
            np.testing.assert_allclose(evaluation.gradient, expected.gradient, atol=1e-14)
        else:
            assert evaluation.gradient is None
    points = np.arange(7)
    np.testing.assert_allclose(
        threaded.sum_gradients(weights, points, True, {}),
        network.sum_gradients(weights, points, True, {}),
        atol=1e-13,
    )


def test_running_statistics_on_threads(rng, threads):
    network, threaded, weights = pair(rng, normalize="batch", statistics="running")
    points = np.arange(9)
    expected = network.sum_gradients(weights, points, True, {})
    np.testing.assert_allclose(
        threaded.sum_gradients(weights, points, True, {}), expected, atol=1e-13
    )


def test_a_cost_without_a_derivative_of_its_own_stays_on_one_thread(rng, threads, monkeypatch):
    """Autograd traces in one thread."""
    shares = []
    monkeypatch.setattr(
        threaded_network.threads,
        "map_parallel",
        lambda work, spans: shares.append(len(spans)) or [work(span) for span in spans],
    )
    for cost in (multiclass_softmax, multiclass_softmax.formula):
        _, threaded, weights = pair(rng, cost)
        threaded.evaluate(weights)
    assert shares == [3, 1]
