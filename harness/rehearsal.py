"""A rehearsal of a job: what would stop its descent is told before anything is recorded."""

import traceback
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from autograd.tracer import getval

from normbench.datasets import Dataset, UserError
from normbench.datasets.values import FLOAT64_BYTES, refuse_larger
from normbench.job import Job, run
from normbench.verdicts.search import Search

SMALL = 200_000  # numbers in the points: below, a rehearsal with all of them takes no time
FEW = 64  # points of larger data
ARRAYS = 4  # of the size of all weights, that a step keeps at a time


def rehearse(job: Job) -> None:
    """Raise `UserError` where a job's scheme, start or cost does not take its points.

    A few points tell, without a step; where they do not pass, all of them decide. Anything else
    that goes wrong, as a bug in the user's own code, is told by the job itself.
    """
    short = _short(job)
    try:
        try:
            outcome = run(replace(short, dataset=_few(job.dataset)))
        except UserError:
            if len(_few(job.dataset).x) == len(job.dataset.x):
                raise
            outcome = run(short)
    except UserError:
        raise
    except Exception:
        return
    settings = job.settings
    runs = len(settings.step_sizes) * settings.starts
    weights = runs * max(1, job.dataset.classes) * (outcome.features + 1)
    refuse_larger(
        f"starts={settings.starts}, {len(settings.step_sizes)} step_sizes, "
        f"{outcome.features} features",
        ARRAYS * FLOAT64_BYTES * weights,
        "choose fewer starts or step sizes, or a scheme that gives fewer features",
    )


def _short(job: Job) -> Job:
    """Return a job that ends where its descent would begin; one without a descent whole."""
    if not job.settings.iterations and job.settings.record:
        return replace(job, settings=replace(job.settings, shown_point=0))
    settings = replace(
        job.settings,
        step_sizes=job.settings.step_sizes[:1],
        shown_step=None,
        shown_point=0,
        starts=1,
        iterations=0,
        record=(),
        theory="none",
    )
    return replace(job, settings=settings, cost=_watched(job.cost), search=Search())


def _few(data: Dataset) -> Dataset:
    """Return a data set of some of its points, of all where they are few."""
    if data.x.size <= SMALL:
        return data
    chosen = np.unique(np.linspace(0, len(data.x) - 1, FEW).astype(int))
    test = data.x_test[:FEW]
    return replace(
        data,
        x=data.x[chosen],
        y=data.y[chosen] if len(data.y) else data.y,
        x_test=test,
        y_test=data.y_test[: len(test)],
        fingerprint=f"{data.fingerprint} rehearsed",
    )


def _watched(cost: Any) -> Any:
    """Return a cost of the user's own that says what is wrong with itself; ours as it is."""
    if hasattr(cost, "fused"):
        return cost
    name = getattr(cost, "__name__", type(cost).__name__)
    rule = "a cost takes scores (R, C, p) and targets (p,) and gives their sum over points, (R,)"

    @wraps(cost)
    def watched(scores: Any, targets: Any) -> Any:
        try:
            values = cost(scores, targets)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise UserError(
                f"cost {name}: cannot be taken ({type(error).__name__}: {error}, in "
                f"{Path(frame.filename).name}, line {frame.lineno}); {rule}"
            ) from error
        shape = np.shape(getval(values))
        if shape != (len(scores),):
            raise UserError(f"cost {name}: gives shape {shape} for {len(scores)} runs; {rule}")
        return values

    return watched
