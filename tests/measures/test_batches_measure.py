"""What a job with a batch records of theory: the knee, the limits, the floors; and when not."""

import numpy as np
import pytest

from normbench import costs, names, optimizers
from normbench.datasets.made import gaussian
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers import PCASphere

KEYS = [names.KNEE.key, names.BATCH_STEP.key, names.BATCH_STEP_EXACT.key]


def found(cost=costs.least_squares, l2=0.0, task="regression", rule=None, **settings):
    data = gaussian(200, 5, task=task, noise=0.1 if task == "regression" else 0.0)
    chosen = Settings((0.01, 10.0), **{"iterations": 3, "batch": 4, "theory": "full", **settings})
    rule = rule or optimizers.gradient_descent()
    return run(Job(data, cost, PCASphere(ridge=0), rule, chosen, l2=l2))


def test_a_sphered_problem_has_its_knee_at_the_number_of_features():
    outcome = found()
    metrics = outcome.findings.metrics
    assert metrics[names.KNEE.key] == pytest.approx(6, rel=1e-6)  # and one for the bias
    assert metrics[names.BATCH_STEP.key] == pytest.approx(4 / 9, rel=1e-6)  # 2/L is 1
    assert metrics[names.BATCH_STEP_EXACT.key] == pytest.approx(4 / 9, rel=0.2)
    floors = [step.metrics.get(names.NOISE_FLOOR.key) for step in outcome.steps]
    assert 0 < floors[0] < 0.01
    assert floors[1] is None  # the step is not stable
    replaced = found(batch_order="replacement").findings.metrics
    assert replaced[names.BATCH_STEP_EXACT.key] < metrics[names.BATCH_STEP_EXACT.key]


def test_other_costs_have_the_knee_alone_and_a_full_batch_nothing():
    metrics = found(costs.softmax, task="classes").findings.metrics
    assert metrics[names.KNEE.key] == pytest.approx(6, rel=1e-6)
    assert not {*KEYS[1:]} & {*metrics}
    for settings in ({"batch": None}, {"l2": 0.1}, {"rule": optimizers.momentum()}):
        assert not {*KEYS} & {*found(**settings).findings.metrics}, settings
    assert np.isfinite(found().steps[0].histories["train/cost"]).all()


def test_a_function_that_moves_without_a_step_is_said_to():
    for statistics, is_said in (("running", True), ("batch", False), ("fitted", False)):
        note = found(statistics=statistics).findings.tags[names.NOTE.key]
        assert ("moves without a step" in note) == is_said
