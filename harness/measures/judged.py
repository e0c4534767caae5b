"""Judge the descent of a job, keep its histories, and judge these again by other rules."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from normbench import names
from normbench.engine.descent import Histories
from normbench.engine.problem import Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.measures.contract import (
    STEP_VERDICTS,
    UNKNOWN,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    histories_by_key,
    measure,
    shadows_of,
)
from normbench.normalizers.decomposition import Moments
from normbench.optimizers import Optimizer
from normbench.theory.analysis import theorize
from normbench.theory.least_cost import find_least_cost
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules, shadow_tolerance_share
from normbench.verdicts.judging import JudgingContext, Shadows, Step
from normbench.verdicts.search import Search

# The fields of `JudgingContext` that are recorded, by the names of their arrays.
NUMBER_FIELDS = ("minimum", "reference", "epsilon", "fit_seconds", "seconds_a_step")
COUNT_FIELDS = {
    "points": "compared_points",
    "batch": "batch",
    "records_per_pass": "records_per_pass",
}


def judge_descent(
    train: Problem,
    optimizer: Optimizer,
    settings: Settings,
    rules: Rules,
    search: Search,
    start: Array,
    rounds: Rounds,
    histories: Histories,
    points_cache: Moments,
    seconds: tuple[float, float],
) -> JudgedDescent:
    """Judge the grid of a job: compute its theory and least cost, then the verdicts.

    Args:
        train: The training problem.
        optimizer: The optimizer.
        settings: The settings of the descent.
        rules: The rules of judging.
        search: The settings of the search for the critical step size.
        start: The starting weights, `(starts, *shape)`.
        rounds: Descends further runs.
        histories: The histories of the grid.
        points_cache: The moments of the points of the data set, before the scheme.
        seconds: The seconds of the fit of the scheme, and of the descent of the grid.

    Returns:
        The judged descent.
    """
    theory = theorize(train, start[0], settings.theory)
    epsilon = float(np.finfo(start.dtype).eps)
    at_zero_weights = train.evaluate(np.zeros_like(start[:1]), with_gradient=False)
    reference = float(at_zero_weights.costs[0])
    # A positively homogeneous cost grows with the length of the weights, and so cannot compare
    # runs; the number of misclassified points does not change with that length.
    linear = train.linear
    compares_counts = linear and linear.traits.positively_homogeneous and train.classify
    compared_points = len(linear.targets) if linear and compares_counts else 0
    lowest = _find_lowest(histories, epsilon)
    # No run may have come below zero weights. Where counts are compared, the cost there is 0.
    if not compared_points and np.isfinite(reference):
        lowest = min(lowest, reference)
    proof = find_separating_weights(histories)
    solver_inputs = (train, points_cache, lowest, settings.theory, proof, theory.moments)
    least = find_least_cost(*solver_inputs)
    # Every finite cost but the start's took a step; with batches, a record's part of a pass.
    steps_made = int(np.isfinite(histories.cost).sum()) - len(histories.cost)
    has_tie = theory.exact and optimizer.plain and rounds.plan.full_batch
    context = JudgingContext(
        rules=rules,
        minimum=min(least.value, lowest),  # no higher than the lowest cost seen
        reference=reference,
        # At 2/L exactly, plain descent on a quadratic cost neither falls nor rises.
        tie_step_size=theory.threshold if has_tie else None,
        epsilon=epsilon,
        fit_seconds=seconds[0],
        # Records were counted: an iteration is `records_per_pass` of them.
        seconds_a_step=seconds[1] * settings.records_per_pass / max(1, steps_made),
        compared_points=compared_points,
        batch=settings.batch or 0,
        records_per_pass=settings.records_per_pass,
    )
    steps = judging.judge_steps(
        *(histories_by_key(histories), histories.diverged_at, settings.step_sizes, context),
        shadows_of(histories, context),
    )
    best, chosen = judging.find_shown_step(steps, settings.shown_step)
    outcome = (theory, least, context, steps, best, chosen)
    return JudgedDescent(train, optimizer, settings, search, start, rounds, histories, *outcome)


def _find_lowest(histories: Histories, epsilon: float) -> float:
    """Return the lowest recorded cost of all runs; infinite where none is finite.

    Left out are runs whose end rounding decides: they end elsewhere than their shadows, the same
    runs from starts perturbed by rounding. Where all runs are such runs, all count.

    Args:
        histories: The histories of the grid.
        epsilon: Machine epsilon of the runs' type.
    """
    cost = histories.cost
    with np.errstate(all="ignore"):
        lowest_by_run = np.nanmin(cost, axis=1, initial=np.inf)
        tolerance = shadow_tolerance_share(epsilon) * (cost[:, 0] - lowest_by_run.min())
        is_reproducible = np.ones(len(cost), bool)
        for run, shadows in histories.shadows.items():
            distances = np.abs(shadows[:, -1] - cost[run, -1])
            is_reproducible[run] = np.all(distances <= tolerance[run])
    counted = lowest_by_run[is_reproducible] if is_reproducible.any() else lowest_by_run
    return float(counted.min(initial=np.inf))


def find_separating_weights(histories: Histories) -> Array | None:
    """Return weights that misclassify no training point, by which the least cost may be proved 0.

    They are the last weights of the run of lowest last cost among those that misclassify no point
    at their end; None where every run misclassifies some, and for real targets.
    """
    counts = histories.misclassifications
    if counts is None or not np.any(counts[:, -1] == 0):
        return None
    ends = np.where(counts[:, -1] == 0, histories.cost[:, -1], np.inf)
    return np.asarray(histories.weights[np.argmin(ends)])


@measure()
def histories(job: FinishedJob) -> Findings:
    """Return the histories of S step sizes, each from A starts, of K iterations, as arrays.

    `step_sizes` (S,). The recorded histories by the keys under which they are logged,
    (S, A, K + 1), NaN from the iteration at which a run stopped being finite. `diverged_at` (S, A)
    is that iteration, -1 for a finite run. Where any run has a shadow, the same run from a start
    perturbed by rounding: `shadows` (S, A, M), the last costs of shadows, and `shadows_reached`
    (S, A, M, T), their iterations to each target. `minimum`, `reference` (the cost at zero
    weights), `tie` (NaN for none), `epsilon`, `fit_seconds`, `seconds_a_step`, `points`, `batch`,
    `records_per_pass`, each (): see `JudgingContext`. A tag marks an optimizer that finds its own
    step sizes: its recorded step size 1 is a placeholder.
    """
    descent = job.descent
    context = descent.judging_context
    runs = histories_by_key(descent.histories) | {"diverged_at": descent.histories.diverged_at}
    shadows = shadows_of(descent.histories, context)
    if shadows is not None:
        reached = [shadows.reached[name] for name in names.TARGETS]
        runs |= {"shadows": shadows.ends, "shadows_reached": np.stack(reached, -1)}
    by_step = (len(descent.steps), len(descent.start))
    fields = {name: name for name in NUMBER_FIELDS} | COUNT_FIELDS
    return Findings(
        tags={names.GRIDLESS.key: "true"} if descent.optimizer.gridless else {},
        arrays={
            "step_sizes": np.array([step.step_size for step in descent.steps]),
            **{name: array.reshape(*by_step, *array.shape[1:]) for name, array in runs.items()},
            **{name: np.array(getattr(context, field)) for name, field in fields.items()},
            "tie": np.array(context.tie_step_size or np.nan),
        },
    )


def rejudge_histories(arrays: Mapping[str, Array], rules: Rules) -> tuple[Step, ...]:
    """Judge recorded histories again, by other rules.

    Args:
        arrays: The recorded arrays of `histories`, by their names.
        rules: The thresholds of the verdicts.

    Returns:
        A `Step` for each step size, in their recorded order.
    """
    tie = float(arrays["tie"])
    numbers: dict[str, Any] = {name: float(arrays[name]) for name in NUMBER_FIELDS}
    # A count that an older record lacks has the default of `JudgingContext`.
    numbers |= {field: int(arrays[name]) for name, field in COUNT_FIELDS.items() if name in arrays}
    context = JudgingContext(rules, tie_step_size=None if np.isnan(tie) else tie, **numbers)
    # The runs, one for each step size and start, in one row: (R, K + 1).
    runs = {
        metric.key: arrays[metric.key].reshape(-1, arrays[metric.key].shape[-1])
        for metric in names.HISTORIES
        if metric.key in arrays
    }
    shadows = None  # recorded only where some run has one
    if "shadows" in arrays:
        ends = arrays["shadows"].reshape(-1, arrays["shadows"].shape[-1])
        counts = arrays["shadows_reached"].reshape(*ends.shape, -1)
        shadows = Shadows(ends, dict(zip(names.TARGETS, np.moveaxis(counts, -1, 0))))
    sizes = [float(size) for size in arrays["step_sizes"]]
    return judging.judge_steps(runs, arrays["diverged_at"].reshape(-1), sizes, context, shadows)


@measure(depends_on=STEP_VERDICTS)
def grid(job: FinishedJob) -> Findings:
    """Return the findings of the grid of a job, see `summarize_grid`."""
    return summarize_grid(job.descent.steps, job.descent.chosen)


def summarize_grid(steps: Sequence[Step], chosen: bool) -> Findings:
    """Return the largest convergent and falling step sizes, and how many step sizes converged.

    A tag for each of the two largest says whether no larger step size failed, so that the grid ends
    too early to show the limit (`censored`).

    Args:
        steps: The judged step sizes of the grid.
        chosen: Whether the setting `shown_step` chose the step size that represents the scheme;
            the tag `step_chosen` then says so.
    """
    convergent, falling = judging.largest_convergent(steps), judging.largest_falling(steps)
    metrics = {
        names.LARGEST_CONVERGENT.key: convergent.step_size or UNKNOWN,
        names.LARGEST_FALLING.key: falling.step_size or UNKNOWN,
        names.STEPS_LEVELLED.key: sum(step.verdict == names.CONVERGED for step in steps),
    }
    tags = {
        names.CENSORED.key: str(convergent.censored).lower(),
        names.CENSORED_FALLING.key: str(falling.censored).lower(),
        **({names.STEP_CHOSEN.key: "true"} if chosen else {}),
    }
    return Findings(metrics, tags)
