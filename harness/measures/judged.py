"""Judge the descent of a job: theory first, then the verdicts, then the best step size."""

import numpy as np

from normbench.engine.descent import Histories
from normbench.engine.problem import Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.measures.contract import Array, JudgedDescent, histories_by_key, shadows_of
from normbench.optimizers import Optimizer
from normbench.theory.analysis import find_least_cost, theorize
from normbench.theory.shared import PointsCache
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules, shadow_tolerance_share
from normbench.verdicts.judging import JudgingContext
from normbench.verdicts.search import Search


def judge_descent(
    train: Problem,
    optimizer: Optimizer,
    settings: Settings,
    rules: Rules,
    search: Search,
    start: Array,
    rounds: Rounds,
    histories: Histories,
    points_cache: PointsCache,
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
        points_cache: Cached statistics and decompositions of the points of the data set.
        seconds: The seconds of the fit of the scheme, and of the descent of the grid.

    Returns:
        The judged descent.
    """
    theory = theorize(train, start[0], settings.theory)
    epsilon = float(np.finfo(start.dtype).eps)
    reference = _cost_at_zero_weights(train, start)
    lowest, compared_points = _lowest(histories, epsilon), _points(train)
    # No run may have come below zero weights. Where counts are compared, the cost there is 0.
    if not compared_points and np.isfinite(reference):
        lowest = min(lowest, reference)
    proof = _separating_weights(histories)
    solver_inputs = (train, points_cache, lowest, settings.theory, proof, theory.moments)
    least = find_least_cost(*solver_inputs)
    # Every finite cost but the start's took a step; with batches, a record's part of a pass.
    steps_made = int(np.isfinite(histories.cost).sum()) - len(histories.cost)
    context = JudgingContext(
        rules=rules,
        minimum=min(least.value, lowest),  # no higher than the lowest cost seen
        reference=reference,
        # At 2/L exactly, plain descent on a quadratic cost neither falls nor rises.
        tie_step_size=theory.threshold
        if theory.exact and optimizer.plain and rounds.plan.full_batch
        else None,
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


def _cost_at_zero_weights(train: Problem, start: Array) -> float:
    """Return the cost of zero weights, in the type of the starting weights `(starts, *shape)`."""
    return float(train.evaluate(np.zeros_like(start[:1]), with_gradient=False).costs[0])


def _lowest(histories: Histories, epsilon: float) -> float:
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
        if is_reproducible.any():
            lowest_by_run = lowest_by_run[is_reproducible]
    return float(lowest_by_run.min(initial=np.inf))


def _points(train: Problem) -> int:
    """Return the number of points where runs are compared by misclassifications; 0 elsewhere.

    A positively homogeneous cost grows with the length of the weights, and so cannot compare runs;
    the number of misclassified points does not change with that length.
    """
    linear = train.linear
    if linear is None or not linear.traits.positively_homogeneous:
        return 0
    return len(linear.targets) if train.classify else 0


def _separating_weights(histories: Histories) -> Array | None:
    """Return weights that misclassify no training point, by which the least cost may be proved 0.

    They are the last weights of the run of lowest last cost among those that misclassify no point
    at their end; None where every run misclassifies some, and for real targets.
    """
    counts = histories.misclassifications
    if counts is None or not np.any(counts[:, -1] == 0):
        return None
    ends = np.where(counts[:, -1] == 0, histories.cost[:, -1], np.inf)
    return np.asarray(histories.weights[np.argmin(ends)])
