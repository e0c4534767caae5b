"""Costs a second time: functions of one run's weights after the textbook, and autograd on them."""

import warnings
from dataclasses import dataclass, field

import autograd.numpy as anp
import numpy as np
from autograd import grad, jacobian
from autograd.scipy.special import logsumexp

# The costs again. anp.abs has derivative 0 at 0, so `(|t| + t) / 2` has 1/2.


def margins(scores, y):
    return y * scores[:, 0]


def positive(t):
    return (anp.abs(t) + t) / 2


def own(scores, y):
    return anp.sum(scores * np.eye(scores.shape[1])[y], axis=1)


PLAIN = {
    "softmax": lambda s, y: anp.sum(logsumexp(anp.stack([0 * s[:, 0], -margins(s, y)]), axis=0)),
    "perceptron": lambda s, y: anp.sum(positive(-margins(s, y))),
    "squared_margin": lambda s, y: anp.sum(positive(1 - margins(s, y)) ** 2),
    "least_absolute_deviations": lambda s, y: anp.sum(anp.abs(s[:, 0] - y)),
    "least_squares": lambda s, y: (
        anp.sum((s - np.eye(s.shape[1])[y]) ** 2) if s.shape[1] > 1 else anp.sum((s[:, 0] - y) ** 2)
    ),
    "multiclass_softmax": lambda s, y: anp.sum(logsumexp(s, axis=1) - own(s, y)),
    "multiclass_perceptron": lambda s, y: anp.sum(anp.max(s, axis=1) - own(s, y)),
}


@dataclass
class Problem:
    """A cost of one run's weights (C, N + 1), by its name; it keeps what it has computed.

    l2: one number, or a matrix of the features (N, N).
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    l2: float | np.ndarray
    found: dict = field(default_factory=dict)
    costs: dict = field(default_factory=dict)

    def scores(self, w):
        return anp.dot(self.x, w[:, 1:].T) + w[:, 0]

    def total(self, w):
        if np.ndim(self.l2):
            penalty = len(self.x) * anp.sum(anp.dot(w[:, 1:], self.l2) * w[:, 1:])
        else:
            penalty = len(self.x) * self.l2 * anp.sum(w[:, 1:] ** 2)
        return PLAIN[self.name](self.scores(w), self.y) + penalty

    def cost(self, w):
        if w.tobytes() not in self.costs:
            self.costs[w.tobytes()] = self.total(w) / len(self.x)
        return self.costs[w.tobytes()]

    def slope(self, w):
        # Divided at last: a sum of +1 and -1 is 0 or not, and sign descent sees which.
        return grad(self.total)(w) / len(self.x)

    def gradient(self, w):
        if w.tobytes() not in self.found:
            self.found[w.tobytes()] = self.slope(w)
        return self.found[w.tobytes()]

    def hessian(self, w):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # autograd warns where a gradient is constant
            return jacobian(self.slope)(w).reshape(w.size, w.size)

    def misclassified(self, w):
        scores = self.scores(w)
        if scores.shape[1] == 1:
            return sum(np.sign(s) != k for s, k in zip(scores[:, 0], self.y))
        return sum(list(row).index(max(row)) != k for row, k in zip(scores, self.y))
