"""Judge the descent of a job: theory first, then the verdicts, then the best step size."""

import numpy as np

from normbench.engine.descent import Histories
from normbench.engine.problem import Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.measures.contract import Array, JudgedDescent, histories_by_key, shadows_of
from normbench.optimizers import Optimizer
from normbench.theory.analysis import find_least_cost, theorize
from normbench.theory.budget import Budget, allowance
from normbench.theory.shared import PointsCache
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules, sensitivity
from normbench.verdicts.judging import Bench
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
) -> tuple[JudgedDescent, Budget | None]:
    """Judge a descent.

    Args:
        train: The training problem.
        optimizer: The optimizer.
        settings: The settings of the descent.
        rules: The rules of judging.
        search: The settings of the search for the critical step size.
        start: The starting weights, `(starts, *shape)`.
        rounds: Descends further runs.
        histories: The histories of the grid.
        points_cache: Cached facts about the points of the data set.
        seconds: The seconds of the fit, and of the descent.

    Returns:
        The judged descent, and the remaining budget for more theory (None without theory).
    """
    passes = settings.iterations * len(settings.step_sizes) * settings.starts
    wants_theory = settings.theory != "none"
    size = int(np.prod(train.shape))
    allowed = (
        allowance(settings.theory, passes, len(points_cache.x), size) if wants_theory else None
    )
    budget = Budget(allowed) if allowed else None
    theory = theorize(train, start[0], budget)
    lowest = _lowest(histories, float(np.finfo(start.dtype).eps))
    proof = _separating_weights(histories)
    least = find_least_cost(train, points_cache, lowest, settings.theory, passes, proof)
    # Every finite cost but the start's took a step.
    steps_made = int(np.isfinite(histories.cost).sum()) - len(histories.cost)
    zero = train.evaluate(np.zeros_like(start[:1]), with_gradient=False)
    bench = Bench(
        rules=rules,
        minimum=min(least.value, lowest),  # no higher than the lowest recorded cost
        reference=float(zero.costs[0]),
        tie=theory.threshold if theory.exact and optimizer.plain and train.full_batch else None,
        epsilon=float(np.finfo(start.dtype).eps),
        fit_seconds=seconds[0],
        seconds_a_step=seconds[1] * settings.records_per_pass / max(1, steps_made),
        points=_points(train),
        batch=settings.batch or 0,
        records_per_pass=settings.records_per_pass,
    )
    steps = judging.steps(
        *(histories_by_key(histories), histories.diverged_at, settings.step_sizes, bench),
        shadows_of(histories, bench),
    )
    best, chosen = judging.find_shown_step(steps, settings.shown_step)
    outcome = (theory, least, bench, steps, best, chosen)
    descent = JudgedDescent(train, optimizer, settings, search, start, rounds, histories, *outcome)
    return descent, budget


def _lowest(histories: Histories, epsilon: float) -> float:
    """Return the lowest recorded cost.

    Runs whose end is decided by rounding, which end elsewhere than their shadows, are left out,
    unless all runs are such runs. epsilon: machine epsilon of the runs' type.
    """
    cost = histories.cost
    with np.errstate(all="ignore"):
        lowest = np.nanmin(cost, axis=1, initial=np.inf)
        far = sensitivity(epsilon) * (cost[:, 0] - lowest.min())
        firm = np.ones(len(cost), bool)
        for run, shadows in histories.shadows.items():
            firm[run] = np.all(np.abs(shadows[:, -1] - cost[run, -1]) <= far[run])
        lowest = lowest[firm] if firm.any() else lowest
    return float(lowest.min(initial=np.inf))


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
    """Return the last weights of the run of lowest cost among those that misclassify no point.

    None where every run misclassifies some point at its end.
    """
    counts = histories.misclassifications
    if counts is None or not np.any(counts[:, -1] == 0):
        return None
    ends = np.where(counts[:, -1] == 0, histories.cost[:, -1], np.inf)
    return np.asarray(histories.weights[np.argmin(ends)])
