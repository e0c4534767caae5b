"""The numbers of each cost, scheme and optimizer stay as they are as long as `NUMBERS` does.

`python -m tests.record.test_numbers` writes the reference anew, once `NUMBERS` was raised.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from normbench import names as recorded
from normbench.choices import build, options
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.models import Mlp, linear
from normbench.record.identity import NUMBERS
from tests.cases import COSTS, names, takes, tasks

REFERENCE = Path(__file__).with_name("numbers.json")
POINTS, FEATURES, ITERATIONS, STEP_SIZE = 30, 3, 5, 0.01
START = [[0.1, -0.2, 0.3, -0.1], [0.0, 0.1, 0.0, 0.2], [0.2, 0.1, -0.3, 0.0]]
STARTS = {f"start/{start}": {"start": start} for start in ("normal", "same_function")}
JOBS = [f"{group}/{name}" for group in ("cost", "normalizer", "optimizer") for name in names(group)]
MODELS = {f"model/{inside}": Mlp([4], normalize=inside) for inside in ("none", "batch", "layer")}
MODELS["model/newton"] = Mlp([4], normalize="newton")
MODELS["model/linear"] = linear("batch")
JOBS += [*STARTS, *MODELS, "l2_in/features", "l2_in/transformed"]
# Relative, of a cost and of how far it fell: measured 1.4e-13 between OpenBLAS's Haswell and
# SkylakeX kernels, with 1 and 2 threads, and 5e-13 for the digits that are written.
ROUNDING = 1e-9
# scikit-learn finds the power by Brent's method, to the root of the machine's epsilon: 2.8e-9 was
# measured between two processors whose logarithms differ in the last place.
TOLERANCES = {"normalizer/power": 1e-6}


def data(task):
    """Return points with different means and scales, and labels that follow them; no draw."""
    angle = np.arange(POINTS)[:, None] * np.sqrt([2.0, 3.0, 5.0])
    x = np.sin(angle) * [0.5, 1.0, 2.0] + [0.3, -1.0, 0.5] + 0.1 * np.cos(3 * angle)
    score = x @ [1.0, -0.5, 0.25] + 0.5 * np.sin(7.0 * np.arange(POINTS))
    if task == "regression":
        return make_dataset("waves", x, score, source="-")
    classes = 2 if task == "binary" else 3
    label = np.argsort(np.argsort(score)) * classes // POINTS
    return make_dataset("waves", x, label, class_names=[*"abc"[:classes]], source="-")


def costs_of(case):
    """Return the costs of a small job, iteration by iteration."""
    group, name = case.split("/")
    cost = name if group == "cost" else "softmax"
    alone = takes(COSTS[cost], 1)  # one score a point
    start = "normal" if case in MODELS else START[0] if alone else START
    scheme = "pca_sphere" if group in ("start", "l2_in") else "standard"
    chosen = {"normalizer": scheme, "optimizer": "gradient_descent"} | {group: name}
    step_size = 100.0 if name == "line_search" else STEP_SIZE  # from which it goes back
    outcome = run(
        Job(
            data(tasks(COSTS[cost])[0] if alone else "multiclass"),
            COSTS[cost],
            build("normalizer", options("normalizer", chosen["normalizer"])),
            build("optimizer", options("optimizer", chosen["optimizer"])),
            Settings(
                (step_size,), ITERATIONS, theory="none", **{"start": start, **STARTS.get(case, {})}
            ),
            l2=0.1 if group == "l2_in" else 0.0,
            l2_in=name if group == "l2_in" else "transformed",
            model=MODELS.get(case),
        )
    )
    return outcome.arrays[recorded.DESCENT_ARRAYS][recorded.TRAIN_COST.key].ravel()


def numbers(case):
    """Return the cost at the start, and how far it has fallen after 1 iteration and after all."""
    cost = costs_of(case)
    return [float(cost[0]), float(cost[0] - cost[1]), float(cost[0] - cost[-1])]


@pytest.mark.parametrize("case", JOBS)
def test_numbers_change_with_their_number_alone(case):
    reference = json.loads(REFERENCE.read_text())
    assert reference["NUMBERS"] == NUMBERS, "write the reference anew"
    tolerance = TOLERANCES.get(case, ROUNDING)
    assert numbers(case) == pytest.approx(reference[case], rel=tolerance), "raise NUMBERS"


def test_every_job_has_a_reference_and_its_cost_never_rises():
    """What rises may double a difference of rounding at every iteration."""
    assert {*json.loads(REFERENCE.read_text())} == {*JOBS, "NUMBERS"}
    assert [case for case in JOBS if (np.diff(costs_of(case)) > 0).any()] == []


if __name__ == "__main__":
    reference = {case: [float(f"{number:.12g}") for number in numbers(case)] for case in JOBS}
    lines = [f'  "{case}": {json.dumps(values)}' for case, values in reference.items()]
    REFERENCE.write_text("{\n" + ",\n".join([f'  "NUMBERS": {NUMBERS}', *lines]) + "\n}\n")
