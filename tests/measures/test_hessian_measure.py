"""The condition number at the start and at the minimum, against matrices made by hand."""

import numpy as np
import pytest

from normbench import costs
from normbench.choices import build, options
from normbench.datasets import label_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3)) * [1, 5, 0.2] + [0, 2, 1]
LABELS = (X[:, 0] + X[:, 1] / 5 + RNG.standard_normal(80) > 0.5).astype(int)
DATA = label_dataset("made", X, LABELS, "classes", source="made")


def job(data, scheme="identity", cost=costs.softmax):
    normalizer = build("normalizer", options("normalizer", scheme))
    rule = build("optimizer", options("optimizer", "gradient_descent"))
    settings = Settings((0.1,), 5, theory="full", record=("hessian",))
    return Job(data, cost, normalizer, rule, settings)


def by_newton(points, y):
    """The condition number of the softmax cost's second derivatives at 0, and at its minimum."""
    wide, weights, found = np.c_[np.ones(len(points)), points], np.zeros(points.shape[1] + 1), []
    for _ in range(50):
        margin = y * (wide @ weights)
        share = 1 / (1 + np.exp(margin))
        matrix = (wide * (share * (1 - share))[:, None]).T @ wide / len(y)
        found.append(np.linalg.cond(matrix))
        weights = weights + np.linalg.solve(matrix, (wide * (y * share)[:, None]).mean(axis=0))
    return found[0], found[-1]


@pytest.mark.parametrize("scheme", ["identity", "standard", "pca_sphere"])
def test_condition_numbers_are_those_of_the_matrices(scheme):
    made = run(job(DATA, scheme))
    expected = by_newton(made.scheme.transform(X), 2.0 * LABELS - 1)
    found = [made.findings.metrics[f"theory/condition_{where}"] for where in ("start", "minimum")]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if scheme == "pca_sphere":
        assert found[0] == pytest.approx(1, abs=1e-5)
        assert found[1] > 1.1


def test_without_an_attained_minimum_there_is_none():
    apart = label_dataset("apart", X, (X[:, 1] > 2).astype(int), "classes", source="made")
    made = run(job(apart))
    assert np.isnan(made.findings.metrics["theory/condition_minimum"])
    assert len(made.arrays["hessian"]["minimum"]) == 0
