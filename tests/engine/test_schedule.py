"""Step sizes that shrink on a schedule, for every optimizer."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from normbench import costs, optimizers
from normbench.choices import build, options
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.models import Mlp
from tests.cases import names

POINTS, ITERATIONS, STEP_SIZE = 20, 7, 0.05
OPTIMIZERS = [name for name in names("optimizer") if name not in ("lbfgs", "preconditioned")]


def job(optimizer=None, model=None, step_size=STEP_SIZE, **settings):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((POINTS, 2))
    data = make_dataset("drawn", x, x @ [1.0, -2.0] + rng.standard_normal(POINTS), source="-")
    chosen = Settings((step_size,), **{"iterations": ITERATIONS, "theory": "none", **settings})
    rule = optimizer or optimizers.gradient_descent()
    return Job(data, costs.least_squares, FunctionTransformer(), rule, chosen, model=model)


def history(outcome):
    return outcome.steps[0].histories["train/cost"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_takes_the_steps_of_its_schedule(name):
    """Up to the first change it is the rule itself; a factor near 1 changes nothing visible."""
    rule = build("optimizer", options("optimizer", name))
    plain = history(run(job(rule)))
    scheduled = history(run(job(rule, step_schedule=(3, 0.1))))
    np.testing.assert_array_equal(scheduled[:4], plain[:4])
    assert not np.allclose(scheduled[4:], plain[4:], rtol=1e-9, atol=0)
    hardly = history(run(job(rule, step_schedule=(3, 1 - 1e-13))))
    np.testing.assert_allclose(hardly, plain, rtol=1e-9)


@pytest.mark.parametrize("batch", [None, 6])
def test_the_step_size_is_multiplied_after_so_many_passes(batch):
    settings = {"batch": batch, "batch_order": "cyclic"}
    small = job(step_schedule=(2, 0.5), iterations=5, **settings)
    x, y = np.insert(small.dataset.x, 0, 1, axis=1), small.dataset.y
    weights, size, expected = np.zeros(3), batch or POINTS, []
    for number in range(6):
        expected.append(np.mean((x @ weights - y) ** 2))
        for first in range(0, POINTS, size):
            rows, targets = x[first : first + size], y[first : first + size]
            gradient = 2 * rows.T @ (rows @ weights - targets) / size
            weights = weights - STEP_SIZE * 0.5 ** (number // 2) * gradient
    np.testing.assert_allclose(history(run(small)), expected, rtol=1e-10)


def test_gains_step_by_the_schedule_or_by_their_own_size():
    model = Mlp([3], normalize="batch", affine_step=0.01)
    outcome = run(job(model=model, start="normal", step_schedule=(2, 0.5)))
    plain = run(job(model=model, start="normal"))
    np.testing.assert_array_equal(history(outcome)[:3], history(plain)[:3])
    assert not np.allclose(history(outcome)[3:], history(plain)[3:], rtol=1e-9, atol=0)


@pytest.mark.parametrize("wrong", [3, [3], [0, 0.5], [3, 1], [3, 0], [2.5, 0.5], "3,0.5"])
def test_a_schedule_is_passes_and_a_factor(wrong):
    with pytest.raises(UserError, match="step_schedule="):
        job(step_schedule=wrong)
