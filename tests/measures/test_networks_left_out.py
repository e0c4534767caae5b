"""What is of linear models alone is left out for networks, and the reason is said."""

import numpy as np
import pytest

from normbench import names
from normbench.costs import multiclass_softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures.descents import BATCHES, NOT_LINEAR
from normbench.models import Mlp
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent


def network_outcome(record=(), **settings):
    """Return the outcome of a small network on two features."""
    x = np.random.default_rng(3).standard_normal((30, 2))
    y = (x[:, 0] > 0) + (x[:, 1] > 0)
    dataset = make_dataset("drawn", x, y, class_names=[*"abc"], source="-")
    chosen = Settings((0.1, 0.5), 5, "normal", record=record, **settings)
    return run(
        Job(dataset, multiclass_softmax, PCASphere(), gradient_descent(), chosen, model=Mlp([4]))
    )


@pytest.mark.parametrize("record", ["contours", "hessian"])
def test_a_record_of_linear_models_is_left_out_with_its_reason(record):
    outcome = network_outcome(record=(record,))
    assert record not in outcome.arrays
    notes = outcome.findings.tags[names.NOTE.key].split("; ")
    assert f"{record}: {NOT_LINEAR}" in notes


def test_layers_of_the_excess_are_left_out_for_the_scores():
    tags = network_outcome().findings.tags
    assert tags[names.NO_LAYERS.key].startswith("layers are of linear models")


def test_of_a_network_in_batches_it_is_said_what_a_step_sees():
    assert BATCHES in network_outcome(batch=10).findings.tags[names.NOTE.key].split("; ")
