"""A job's descent, judged: theory first, then the verdicts that follow, then the best step."""

import numpy as np

from normbench.engine.descent import Histories
from normbench.engine.problem import Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.measures.contract import Array, Descended, named, shadows_of
from normbench.optimizers import Optimizer
from normbench.theory.analysis import find_least_cost, theorize
from normbench.theory.budget import Budget, allowance
from normbench.theory.shared import PointsCache
from normbench.verdicts import judging
from normbench.verdicts.convergence import Rules, sensitivity
from normbench.verdicts.judging import Bench
from normbench.verdicts.search import Search


def judged(
    train: Problem,
    optimizer: Optimizer,
    settings: Settings,
    rules: Rules,
    search: Search,
    start: Array,
    rounds: Rounds,
    histories: Histories,
    known: PointsCache,
    seconds: tuple[float, float],
) -> tuple[Descended, Budget | None]:
    """Return what a descent came to, and the budget that is left for more theory.

    start: `(starts, *shape)`. known: of the data set's own points. seconds: of the fit, and of the
    descent.
    """
    passes = settings.iterations * len(settings.step_sizes) * settings.starts
    asked = settings.theory != "none"
    size = int(np.prod(train.shape))
    allowed = allowance(settings.theory, passes, len(known.x), size) if asked else None
    budget = Budget(allowed) if allowed else None
    theory = theorize(train, start[0], budget)
    lowest = _lowest(histories, float(np.finfo(start.dtype).eps))
    proof = _without_mistake(histories)
    found = find_least_cost(train, known, lowest, settings.theory, passes, proof)
    steps_made = int(np.isfinite(histories.cost).sum()) - len(histories.cost)
    zero = train.evaluate(np.zeros_like(start[:1]), with_gradient=False)
    bench = Bench(
        rules=rules,
        minimum=min(found.value, lowest),  # no higher than the lowest cost that was seen
        reference=float(zero.costs[0]),
        tie=theory.threshold if theory.exact and optimizer.plain and train.full_batch else None,
        epsilon=float(np.finfo(start.dtype).eps),
        fit_seconds=seconds[0],
        seconds_a_step=seconds[1] / max(1, steps_made),
        points=_points(train),
    )
    steps = judging.steps(
        *(named(histories), histories.diverged_at, settings.step_sizes, bench),
        shadows_of(histories, bench),
    )
    best, chosen = judging.find_shown_step(steps, settings.shown_step)
    parts = (settings, search, start, rounds, histories, theory, found, bench, steps, best, chosen)
    return Descended(train, optimizer, *parts), budget


def _lowest(histories: Histories, epsilon: float) -> float:
    """Return the lowest cost that was seen, of runs whose end rounding does not decide, if any."""
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
    """Return how many points there are, where the cost tells no two runs apart; 0 elsewhere.

    A positively homogeneous cost is the larger, the larger the weights are: counts do not change
    with their length.
    """
    linear = train.linear
    if linear is None or not linear.traits.positively_homogeneous:
        return 0
    return len(linear.targets) if train.classify else 0


def _without_mistake(histories: Histories) -> Array | None:
    """Return the last weights of a run that left no point misclassified; None without one."""
    counts = histories.misclassifications
    if counts is None or not np.any(counts[:, -1] == 0):
        return None
    ends = np.where(counts[:, -1] == 0, histories.cost[:, -1], np.inf)
    return np.asarray(histories.weights[np.argmin(ends)])
