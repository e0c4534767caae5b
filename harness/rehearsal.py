"""Rehearse a job on few points, to report its errors before anything is recorded."""

import math
import traceback
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from autograd.tracer import getval

from normbench import measures
from normbench.costs.declaration import traits
from normbench.datasets import Dataset, UserError
from normbench.datasets.on_disk.points import take_rows
from normbench.datasets.values import FLOAT64_BYTES, refuse_larger
from normbench.job import Job, run
from normbench.verdicts.search import Search

SMALL_SIZE = 200_000  # numbers in the points: a rehearsal with all of them takes no time
REHEARSED_POINTS = 64  # of larger data
ARRAYS_PER_STEP = 4  # of the size of all weights, in memory during a step


def rehearse(job: Job) -> None:
    """Check that the scheme, start and cost of a job accept its points.

    The job is run without a step, on a few points; if these are refused, on all points. Any error
    but a `UserError`, such as a bug in the code of the user, is left to the job itself.

    Args:
        job: The job, which stays as it is.

    Raises:
        UserError: The scheme, start or cost refuses the points, or the weights exceed the memory.
    """
    # With the columns of the schemes, which the sample of the points might have otherwise.
    short = replace(_short(job), normalizer=job.scheme, optimizer=job.step_rule)
    try:
        try:
            outcome = run(replace(short, dataset=_sample_points(job.dataset)))
        except UserError:
            if len(_sample_points(job.dataset).x) == len(job.dataset.x):  # all points were tried
                raise
            # A scheme may refuse the sample alone, such as one with fewer points than components.
            outcome = run(short)
    except UserError:
        raise
    except Exception:  # the job will fail by it, and record it
        return
    settings = job.effective_settings
    if measures.without_descent(settings):  # it has no weights
        return
    # The rehearsal had one run; the weights of all runs have to fit the memory, too.
    size = math.prod(job.scoring.shape(outcome.features, job.scores))
    weights = len(settings.step_sizes) * settings.starts * size
    refuse_larger(
        f"starts={settings.starts}, {len(settings.step_sizes)} step_sizes, "
        f"{outcome.features} features",
        ARRAYS_PER_STEP * FLOAT64_BYTES * weights,
        "choose fewer starts or step sizes, or a scheme that gives fewer features",
    )


def _short(job: Job) -> Job:
    """Return a job that ends where its descent would begin.

    A job without a descent keeps its settings, except that it shows the first point: a sample of
    the points may lack the one that was chosen.
    """
    if measures.without_descent(job.settings):
        return replace(job, settings=replace(job.settings, shown_point=0))
    # `record` is emptied: with one, a job of no iterations is a job without a descent, and computes
    # no cost. Batch and window may be larger than the sample of the points.
    settings = replace(
        job.settings,
        step_sizes=job.settings.step_sizes[:1],
        shown_step=None,
        shown_point=0,
        starts=1,
        iterations=0,
        batch=None,
        statistics="fitted",
        window=None,
        record=(),
        theory="none",
    )
    return replace(job, settings=settings, cost=_watched(job.cost), search=Search())


def _sample_points(data: Dataset) -> Dataset:
    """Return a data set of `REHEARSED_POINTS` evenly spaced training and first test points.

    A data set of at most `SMALL_SIZE` numbers is returned unchanged. The sample has a fingerprint
    of its own, by which caches tell it from the whole data set.
    """
    if data.x.size <= SMALL_SIZE:
        return data
    indices = np.unique(np.linspace(0, len(data.x) - 1, REHEARSED_POINTS).astype(int))
    test = data.x_test[:REHEARSED_POINTS]
    return replace(
        data,
        x=take_rows(data.x, indices),
        y=data.y[indices] if len(data.y) else data.y,
        x_test=test,
        y_test=data.y_test[: len(test)],
        fingerprint=f"{data.fingerprint} rehearsed",
        own_targets=None,  # of all points; only a measure reads them
    )


def _watched(cost: Any) -> Any:
    """Return a cost of the user, wrapped so that its errors become `UserError`.

    A cost with a fused derivative, as all built-in ones have, is returned unchanged. An error is a
    `UserError` too where the cost returns anything but one number for each run.
    """
    if hasattr(cost, "fused"):
        return cost
    name = getattr(cost, "__name__", type(cost).__name__)
    rule = "a cost takes scores (R, C, p) and targets (p,) and gives their sum over points, (R,)"

    @wraps(cost)
    def watched(scores: Any, targets: Any) -> Any:
        try:
            values = cost(scores, targets)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]  # where it was raised
            raise UserError(
                f"cost {name}: cannot be taken ({type(error).__name__}: {error}, in "
                f"{Path(frame.filename).name}, line {frame.lineno}); {rule}"
            ) from error
        shape = np.shape(getval(values))  # the values may be traced by autograd
        if shape != (len(scores),):
            raise UserError(f"cost {name}: gives shape {shape} for {len(scores)} runs; {rule}")
        return values

    watched.traits = traits(cost)  # type: ignore[attr-defined] # `wraps` copies none of a class
    return watched
