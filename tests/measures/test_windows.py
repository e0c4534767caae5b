"""The directions of a cost at the start, against brute force."""

import numpy as np
import pytest

from normbench import costs, names
from normbench.choices import build, options
from normbench.datasets.bundled import breast_cancer, diabetes
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.theory.analysis import find_uniform_curvature
from tests import door


def found(data, cost, scheme, optimizer="gradient_descent", step=1e-6, **settings):
    l2 = settings.pop("l2", 0.0)
    settings = {"theory": "full", "iterations": 1, "refine": False, **settings}
    schemes = build("normalizer", options("normalizer", scheme))
    rule = build("optimizer", options("optimizer", optimizer))
    made = run(Job(data, cost, schemes, rule, Settings((step,), **settings), l2))
    kept = made.arrays["descent"]
    parts = ("layer_curvature", "layer_share")
    return made, tuple(kept.get(name) for name in parts)


def dense(data, cost, scheme, start, l2=0.0):
    """Return live eigenvalues and shares by finite differences of the cost alone."""
    z = build("normalizer", options("normalizer", scheme)).fit(data.x).transform(data.x)
    classes = 1 if data.classes == 2 or not data.classes else data.classes
    targets = np.where(data.y == 1, 1.0, -1.0) if data.classes == 2 else data.y
    full = np.hstack([np.ones((len(z), 1)), z])

    def value(w):
        w = w.reshape(classes, -1)
        return float(cost((w @ full.T)[None], targets)[0]) / len(z) + l2 * (w[:, 1:] ** 2).sum()

    size, e = classes * full.shape[1], 1e-3
    eye = np.eye(size) * e
    w = np.zeros(size) + start
    plus = [value(w + row) for row in eye]
    minus = [value(w - row) for row in eye]
    gradient = (np.array(plus) - minus) / (2 * e)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            crossed = value(w + eye[i] + eye[j]) - value(w + eye[i] - eye[j])
            crossed -= value(w - eye[i] + eye[j]) - value(w - eye[i] - eye[j])
            hessian[i, j] = hessian[j, i] = crossed / (4 * e * e)
    values, vectors = np.linalg.eigh(hessian)
    live = values > 1e-6 * values[-1]
    values, vectors = values[live][::-1], vectors[:, live][:, ::-1]
    return values, (gradient @ vectors) ** 2 / (2 * values)


def test_the_directions_of_softmax_and_from_any_start():
    data = breast_cancer()
    made, (values, shares) = found(data, costs.softmax, "standard")
    assert values[0] == pytest.approx(made.findings.metrics["theory/lipschitz"], rel=1e-9)
    start = [0.0, *[0.1] * 30]
    _, (values, shares) = found(data, costs.softmax, "standard", start=start)
    wanted, parts = dense(data, costs.softmax, "standard", start)
    big = wanted > 1e-3 * wanted[0]
    np.testing.assert_allclose(values[: big.sum()], wanted[big], rtol=1e-3)
    np.testing.assert_allclose(shares[: big.sum()], parts[big], rtol=0.02, atol=1e-6)


def test_the_curvatures_at_the_best_weights_are_those_of_the_hessian_there():
    data = breast_cancer()
    made, _ = found(data, costs.softmax, "standard", step=10.0, iterations=30)
    values = made.arrays["descent"]["window_best"]
    assert (np.diff(values) <= 0).all()
    wanted = made.findings.metrics[names.LIPSCHITZ_BEST.key]
    assert values[0] == pytest.approx(wanted, rel=1e-6)
    assert values[0] < made.findings.metrics[names.LIPSCHITZ.key] / 2  # it falls on the way
    exact, _ = found(diabetes(), costs.least_squares, "standard")
    assert "window_best" not in exact.arrays["descent"]


def test_of_least_squares_the_shares_are_the_whole_excess_and_windows_say_what_shrinks():
    data = diabetes()
    made, (values, shares) = found(data, costs.least_squares, "standard", iterations=50)
    history = made.steps[0].histories["train/cost"]
    least = made.findings.metrics[names.MINIMUM.key]
    assert shares.sum() == pytest.approx(history[0] - least, rel=1e-9)
    low, high = ((1 + sign * np.exp(-1 / 50)) / values for sign in (-1, 1))
    for step in np.geomspace(1e-4, 10, 60):
        shrinks = np.abs(1 - step * values) ** 50 <= np.exp(-1)
        assert (((low <= step) & (step <= high)) == shrinks).all()


@pytest.mark.parametrize("classes", [50, 51])
def test_many_classes_are_not_tried(classes):
    """A second derivative for each pair of scores at a point of each class: 8 GB of a thousand."""
    x = np.random.default_rng(0).standard_normal((classes, 2))
    train = door.problem(costs.multiclass_softmax, x, np.arange(classes), True, 0.0, classes)
    found = find_uniform_curvature(train, np.zeros(train.shape))
    assert (found is None) == (classes > 50)
    assert found is None or found == pytest.approx((1 / classes, classes - 1))
    quadratic = door.problem(costs.least_squares, x, np.arange(classes), True, 0.0, classes)
    assert find_uniform_curvature(quadratic, np.ones(quadratic.shape)) == pytest.approx(
        (2, classes)
    )
