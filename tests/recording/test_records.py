"""The record of a job: what is written of its outcome."""

import numpy as np

from normbench import names
from normbench.job import Outcome
from normbench.measures.contract import Findings
from normbench.recording.store import records
from normbench.verdicts.convergence import Judgement
from normbench.verdicts.judging import Step

HEADER = records.RecordHeader("-", "x", "", {}, {names.NORMALIZER.key: "standard"})
REACHED = names.reached("1e-2").key


def step(size, iterations):
    costs = {names.TRAIN_COST.key: np.array([1.0, 0.1])}
    judgement = Judgement("converged", "", True)
    return Step(size, judgement, costs, {}, {}, ("converged",), {REACHED: iterations})


def test_the_iterations_to_a_target_are_those_of_the_best_step_size_for_it():
    """The step size that is shown is the first to the lowest cost, not the first to 1e-2."""
    findings = Findings(metrics={REACHED: 3.0})
    outcome = Outcome((step(0.1, 9.0), step(1.0, 3.0)), 0, None, 2, 0.0, 0.0, findings)
    record = records.build_record(HEADER, {}, outcome)
    assert [value for key, value, _ in record.scheme.metrics if key == REACHED] == [3.0]
    assert [[v for key, v, _ in run.metrics if key == REACHED] for run in record.steps] == [
        [9.0],
        [3.0],
    ]
