"""Sweeps made by hand, as the reader returns them: no store is needed."""

import json

import numpy as np

from normbench import names
from tests import door

ENCODING = names.setting("dataset.encoding")
GOAL = names.reached("1e-2").column


def runs(*jobs, **params):
    """A sweep of jobs, each (experiment, scheme, iterations to 1e-2 by step size, own settings).

    Iterations: a number, or (a number, the final cost), infinite where the target is not reached;
    None for a job that failed. A setting `data` is the fingerprint of the data; `finer` has the
    iterations of step sizes between those of the grid, by their numbers on the lattice.
    """
    rows = []
    for number, (experiment, scheme, grid, *own) in enumerate(jobs):
        settings = {**params, **dict(*own)}
        data, finer = settings.pop("data", ""), settings.pop("finer", {})
        run_id = f"{experiment}{number}"
        row = {"run_id": run_id, "experiment": experiment, "normalizer": scheme, "parent": ""}
        row |= {names.setting(key): text for key, text in settings.items()}
        row |= {"role": "scheme", "verdict": "failed", "label": scheme, "data": data}
        rows.append(row)
        if grid is None:
            continue
        row |= {"verdict": "not converged", ENCODING: "0, 1", names.MINIMUM.column: 0.0}
        row |= {names.target("1e-1").column: 0.1, names.target("1e-2").column: 0.01}
        steps = [_step(row, size, value) for size, value in grid.items()]
        rows += steps
        best = min(steps, key=lambda step: step[names.FINAL_COST.column])
        row |= {key: best[key] for key in (names.FINAL_COST.column, names.STEP_TAG.column)}
        row |= _reached(steps, finer)
    every = dict.fromkeys(job[0] for job in jobs)
    sweeps = [{"role": "sweep", "run_id": name, "experiment": name} for name in every]
    return door.frame([*sweeps, *rows])


def _reached(steps, finer):
    """What a scheme run has of 1e-2: the fewest iterations of its steps, and the step size."""
    counts = {float(step[names.STEP_TAG.column]): step[GOAL] for step in steps}
    counts |= {door.step_size_of(number): count for number, count in finer.items()}
    tag = {"numbers": [*finer], "1e-2": [*finer.values()], "targets": ["1e-2"]}
    own = {names.REFINED.column: json.dumps(tag)} if finer else {}
    there = {size: count for size, count in sorted(counts.items()) if count == count}
    if there:
        size = min(there, key=there.get)
        own |= {GOAL: there[size], names.best_step_for_target("1e-2").column: size}
    return own


def _step(scheme, size, value):
    iterations, cost = value if isinstance(value, tuple) else (value, 0.001)
    step = {"role": "step", "run_id": f"{scheme['run_id']}-{size}", "parent": scheme["run_id"]}
    step |= {"experiment": scheme["experiment"], "normalizer": scheme["normalizer"]}
    step |= {
        names.STEP_TAG.column: f"{size:g}",
        "verdict": "not converged",
        "label": scheme["label"],
    }
    step[names.FINAL_COST.column] = cost
    step[GOAL] = iterations if np.isfinite(iterations) else np.nan
    return step
