"""A rehearsal leaves the job as it is, and says when the weights of all runs exceed the memory."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench import costs, optimizers
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job
from normbench.models import Mlp
from normbench.rehearsal import rehearse

MEMORY = 40_000_000  # bytes


def job(model=None, **settings):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 3))
    data = make_dataset("drawn", x, np.arange(40) % 2, source="-", class_names=["a", "b"])
    settings = {"step_sizes": tuple(np.geomspace(1e-3, 1, 100)), "start": "normal"} | settings
    rule = optimizers.gradient_descent()
    return Job(data, costs.softmax, StandardScaler(), rule, Settings(**settings), model=model)


def test_the_scheme_stays_unfitted():
    rehearsed = job()
    before = vars(rehearsed.normalizer).copy()
    rehearse(rehearsed)
    assert vars(rehearsed.normalizer) == before


@pytest.mark.parametrize(
    ("rehearsed", "is_refused"),
    [
        (job(), False),
        (job(starts=1000, iterations=1), True),  # 4 weights a run
        (job(starts=1000, iterations=0, record=["points"]), False),  # no run
        (job(Mlp([1000]), iterations=1), True),  # 5,001 weights a run
    ],
    ids=["few", "many starts", "no descent", "network"],
)
def test_the_weights_of_all_runs_fit_the_memory(monkeypatch, rehearsed, is_refused):
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: MEMORY)
    if not is_refused:
        rehearse(rehearsed)
        return
    with pytest.raises(UserError, match=r"choose fewer starts or step sizes, or a scheme"):
        rehearse(rehearsed)
