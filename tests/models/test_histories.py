"""Histories of networks against a network in plain numpy with its own derivatives."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import costs, optimizers
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.models import Mlp

POINTS, FEATURES, CLASSES, ITERATIONS = 40, 5, 3, 25
STEP_SIZES = (0.1, 1.0)
EPSILON = 1e-5


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((POINTS, FEATURES))
    y = (x[:, 0] * x[:, 1] > 0) + (x[:, 2] > 0.5)
    return make_dataset("drawn", x, y, class_names=[*"abc"], source="-")


class PlainLayer:
    """A layer on rows of points: its values, and its derivatives by hand."""

    def __init__(self, weight, bias, normalizes, is_last):
        self.weight, self.bias = weight.copy(), bias.copy()
        self.normalizes, self.is_last = normalizes and not is_last, is_last
        self.gain, self.shift = np.ones(len(bias)), np.zeros(len(bias))

    def forward(self, h):
        self.inputs = h
        values = h @ self.weight.T + self.bias
        if self.normalizes:
            self.deviation = np.sqrt(values.var(axis=0) + EPSILON)
            self.standardized = (values - values.mean(axis=0)) / self.deviation
            values = self.gain * self.standardized + self.shift
        self.outputs = values if self.is_last else np.tanh(values)
        return self.outputs

    def step_back(self, slopes, step_size):
        """Make a step, and return the derivatives in the inputs at the weights before it."""
        if not self.is_last:
            slopes = slopes * (1 - self.outputs**2)
        if self.normalizes:
            of_gain, of_shift = (slopes * self.standardized).sum(axis=0), slopes.sum(axis=0)
            slopes = slopes * self.gain
            centred = slopes - slopes.mean(axis=0)
            along = self.standardized * (slopes * self.standardized).mean(axis=0)
            slopes = (centred - along) / self.deviation
            self.gain -= step_size * of_gain
            self.shift -= step_size * of_shift
        below = slopes @ self.weight
        self.weight -= step_size * slopes.T @ self.inputs
        self.bias -= step_size * slopes.sum(axis=0)
        return below


def plain_history(model, start, x, y, step_size, iterations, order=None):
    """Return the costs of a descent; order: the batches of each iteration, None for all points."""
    layout = model.layout(FEATURES, CLASSES)
    groups = {key: part[0] for key, part in layout.split(start[None]).items()}
    count = len(model.hidden)
    layers = [
        PlainLayer(
            groups[n, "weight"], groups[n, "bias"][:, 0], model.normalize == "batch", n == count
        )
        for n in range(count + 1)
    ]

    def shares(points):
        h = x[points]
        for layer in layers:
            h = layer.forward(h)
        exponentials = np.exp(h - h.max(axis=1, keepdims=True))
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    history, everything = [], np.arange(len(x))
    for iteration in range(iterations + 1):
        history.append(-np.mean(np.log(shares(everything)[everything, y])))
        for points in [everything] if order is None else order(iteration):
            slopes = shares(points)
            slopes[np.arange(len(points)), y[points]] -= 1
            slopes /= len(points)
            for layer in layers[::-1]:
                slopes = layer.step_back(slopes, step_size)
    return history


def job(data, model, **settings):
    settings = {"step_sizes": STEP_SIZES, **settings}
    chosen = Settings(
        iterations=ITERATIONS, start="normal", theory="none", shadows=False, **settings
    )
    scheme, rule = FunctionTransformer(), optimizers.gradient_descent()
    return Job(data, costs.multiclass_softmax, scheme, rule, chosen, model=model)


@pytest.mark.parametrize("normalize", ["none", "batch"])
@pytest.mark.parametrize("hidden", [[6], [5, 4]])
def test_histories_are_those_of_a_plain_network(data, normalize, hidden):
    model = Mlp(hidden, normalize=normalize, epsilon=EPSILON)
    steps = run(job(data, model)).steps
    start = model.start(model.layout(FEATURES, CLASSES), 1, np.random.default_rng([0]))[0]
    for step, step_size in zip(steps, STEP_SIZES):
        expected = plain_history(model, start, data.x, data.y, step_size, ITERATIONS)
        np.testing.assert_allclose(step.histories["train/cost"], expected, rtol=1e-10)


def test_histories_of_batches_are_those_of_a_plain_network(data):
    model = Mlp([6], normalize="batch", epsilon=EPSILON)
    steps = run(job(data, model, batch=10, batch_order="cyclic")).steps
    start = model.start(model.layout(FEATURES, CLASSES), 1, np.random.default_rng([0]))[0]
    batches = np.arange(POINTS).reshape(-1, 10)
    for step, step_size in zip(steps, STEP_SIZES):
        expected = plain_history(
            model, start, data.x, data.y, step_size, ITERATIONS, lambda iteration: batches
        )
        np.testing.assert_allclose(step.histories["train/cost"], expected, rtol=1e-10)
