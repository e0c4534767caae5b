"""Sweeps made by hand, as the reader returns them: no store is needed."""

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep

ENCODING = names.setting("dataset.encoding")


def runs(*jobs, **params):
    """A sweep of jobs, each (experiment, scheme, iterations to 1e-2 by step size, own settings).

    Iterations: a number, or (a number, the final cost), infinite where the target is not reached;
    None for a job that failed. A setting `data` is the fingerprint of the data.
    """
    rows = []
    for number, (experiment, scheme, grid, *own) in enumerate(jobs):
        settings = {**params, **dict(*own)}
        data = settings.pop("data", "")
        run_id = f"{experiment}{number}"
        row = {"run_id": run_id, "experiment": experiment, "normalizer": scheme, "parent": ""}
        row |= {names.setting(key): text for key, text in settings.items()}
        row |= {"role": "scheme", "verdict": "failed", "label": scheme, "data": data}
        rows.append(row)
        if grid is None:
            continue
        row |= {"verdict": "unsettled", ENCODING: "0, 1", names.MINIMUM.column: 0.0}
        row |= {names.target("1e-1").column: 0.1, names.target("1e-2").column: 0.01}
        steps = [_step(row, size, value) for size, value in grid.items()]
        rows += steps
        best = min(steps, key=lambda step: step[names.FINAL_COST.column])
        row |= {key: best[key] for key in (names.FINAL_COST.column, names.STEP_TAG.column)}
    every = dict.fromkeys(job[0] for job in jobs)
    sweeps = [{"role": "sweep", "run_id": name, "experiment": name} for name in every]
    return Sweep("-", "s", pd.DataFrame([*sweeps, *rows]))


def _step(scheme, size, value):
    iterations, cost = value if isinstance(value, tuple) else (value, 0.001)
    step = {"role": "step", "run_id": f"{scheme['run_id']}-{size}", "parent": scheme["run_id"]}
    step |= {"experiment": scheme["experiment"], "normalizer": scheme["normalizer"]}
    step |= {names.STEP_TAG.column: f"{size:g}", "verdict": "unsettled", "label": scheme["label"]}
    step[names.FINAL_COST.column] = cost
    step[names.reached("1e-2").column] = iterations if np.isfinite(iterations) else np.nan
    return step
