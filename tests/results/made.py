"""Sweeps made by hand, as the reader returns them: no store is needed."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from tests import door

ENCODING = names.setting("dataset.encoding")
GOAL = names.reached("1e-2").column


@dataclass(frozen=True)
class Made(door.Sweep):
    """Runs from a cost of 1 to their final cost in an iteration, and arrays by scheme."""

    parts: Any = field(default_factory=dict)

    def histories(self, runs, metrics=()):
        ends = zip(runs["run_id"], runs[names.FINAL_COST.column])
        rows = [(run_id, k, cost) for run_id, end in ends for k, cost in enumerate((1.0, end))]
        return pd.DataFrame(rows, columns=["run_id", "iteration", metrics[0]])

    def arrays(self, runs, name):
        return {label: self.parts[label] for label in runs["label"] if label in self.parts}


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


def recorded(sweep, parts=None):
    """Return a sweep whose runs have histories, and its schemes arrays by their labels."""
    return Made(sweep.store, sweep.sweep_id, sweep.runs, parts=parts or {})


def tagged(sweep, where=(), role="", **columns):
    """Return a sweep with other columns, by their place in `names` or as they are.

    Args:
        sweep: The sweep.
        where: The normalizers of the runs that are changed; empty for all.
        role: The role of these runs; empty for schemes and steps.
        **columns: A value for all, one for each run, or by normalizer.
    """
    frame = sweep.runs.copy()
    chosen = frame["role"].isin([role] if role else ["scheme", "step"])
    chosen &= frame["normalizer"].isin([*where]) if where else True
    for name, value in columns.items():
        column = getattr(names, name).column if name.isupper() else name
        if column not in frame:
            frame[column] = np.nan
        values = frame.loc[chosen, "normalizer"].map(value) if isinstance(value, dict) else value
        if isinstance(values, str) or any(isinstance(each, str) for each in np.atleast_1d(values)):
            frame[column] = frame[column].astype(object)
        frame.loc[chosen, column] = values
    return replace(sweep, runs=frame)


def repeated(count, setting="dataset.split_seed", **iterations):
    """Return jobs over splits, of schemes with these iterations in turn; None: they failed."""
    return [
        (
            *("x", name, each and {1.0: (each[n % len(each)], 0.001 + n / 1e4)}),
            {setting: str(n), "data": "same" if setting == "batch_seed" else str(n)},
        )
        for name, each in iterations.items()
        for n in range(count)
    ]


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
