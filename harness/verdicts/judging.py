"""Judge a job: the histories of every step size against the least cost.

The best step size has one definition, for jobs, splits and targets. It takes the fewest iterations
to a goal; among equal ones it is the smallest, so that rounding does not choose. The goal names the
variant:

- *best*: the lowest final cost of the grid, to within `names.TIED` of the start's excess, for good.
- *best for a target*: a share of the start's excess (`final/step_to_*`).
- *best over splits*: the fewest splits that miss the goal, then the fewest iterations by the upper
  quartile over the splits: a median can choose a step size that fails on some.
- *shown*: the one that `shown_step` chose in its place, unless it diverged; see `find_shown_step`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normbench import names
from normbench.settings import find_step_size
from normbench.verdicts import convergence
from normbench.verdicts.convergence import Judgement, Rules

Array = NDArray[np.float64]
# Relative: sphering leaves up to 3e-8 of rounding in 2/L, by the kernels.
THRESHOLD_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Step:
    """One step size: its histories from iteration 0 on, its verdict and reached targets.

    All mappings have the names under which their entries are recorded.

    Attributes:
        step_size: The step size.
        judgement: The judgement from all starts.
        histories: The histories `(k,)`, medians over the starts; they end where the first start
            stopped being finite.
        quartiles: The quartiles of the histories over several starts, `(2, k)`; empty for one.
        starts: For each start `(starts,)` the final cost, and the iterations to every target, NaN
            where it was not reached.
        verdicts: The verdict on each start.
        metrics: Medians and quartiles over the starts of iterations and seconds to every target,
            and the iterations to the lowest final cost.
        series: Further histories `(k,)` that a measure adds.
    """

    step_size: float
    judgement: Judgement
    histories: dict[str, Array]
    quartiles: dict[str, Array]
    starts: dict[str, Array]
    verdicts: tuple[str, ...]
    metrics: dict[str, float]
    series: Mapping[str, Array] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The verdict in one word."""
        return self.judgement.verdict

    @property
    def reason(self) -> str:
        """The reason, where the verdict alone does not say it."""
        return self.judgement.reason


class Shadows(NamedTuple):
    """The ends of the shadows of R runs, M of each at most.

    A shadow is a run repeated from a start perturbed by rounding.

    Attributes:
        ends: The last costs of the shadows `(R, M)`, infinite where one diverged, NaN where a run
            has fewer.
        reached: The iterations to each target `(R, M)`, by its name; infinite where a shadow does
            not reach it, NaN where a run has fewer.
    """

    ends: Array
    reached: Mapping[str, Array]


class Largest(NamedTuple):
    """The largest step size of a grid that passes a rule.

    Attributes:
        step_size: The step size; None where none passes.
        censored: Whether no larger step size of the grid fails, so that the limit may lie beyond
            the grid.
    """

    step_size: float | None
    censored: bool


@dataclass(frozen=True)
class JudgingContext:
    """The rules and numbers by which every step size of a job is judged.

    Attributes:
        rules: The thresholds of the verdicts.
        minimum: The least cost g*.
        reference: The cost g(0) at zero weights.
        tie_step_size: The step size at which the cost neither falls nor rises: `2/L` of plain
            descent on a quadratic cost; None elsewhere.
        epsilon: Machine epsilon of the runs' type.
        fit_seconds: The seconds of fitting the scheme.
        seconds_a_step: The seconds of one iteration of one run.
        compared_points: The number of training points, where step sizes are compared by
            misclassified points; 0 where they are compared by the cost.
        batch: The number of points that a step sees, 0 for all. The records of batches are noisy,
            and are judged by their running median.
        records_per_pass: The number of records of an iteration, which is a pass where steps see
            batches.
    """

    rules: Rules
    minimum: float
    reference: float
    tie_step_size: float | None
    epsilon: float
    fit_seconds: float
    seconds_a_step: float
    compared_points: int = 0
    batch: int = 0
    records_per_pass: int = 1

    @property
    def compared(self) -> str:
        """The key of the history that step sizes are compared by."""
        return names.TRAIN_MISCLASSIFICATIONS.key if self.compared_points else names.TRAIN_COST.key

    @property
    def compared_range(self) -> tuple[float, float]:
        """The lowest value of the compared history, and its value at zero weights."""
        points = float(self.compared_points)
        return (0.0, points) if points else (self.minimum, self.reference)

    @property
    def targets(self) -> dict[str, float]:
        """The cost of each target by its name, or the count of misclassified points."""
        return convergence.target_costs(*self.compared_range)

    def smooth(self, history: Array) -> Array:
        """Return the history that rules apply to: of a batch, the running median of its records."""
        return convergence.running_median(history) if self.batch else history

    def judge(
        self, history: Array, step_size: float, diverged_at: int, shadows: Sequence[float] = ()
    ) -> Judgement:
        """Return the judgement on one run.

        Args:
            history: The costs `(K + 1,)` of the run.
            step_size: The step size of the run; at exactly 2/L of a quadratic the run is a tie.
            diverged_at: The iteration at which the run stopped being finite, -1 for never.
            shadows: The last costs of the shadows of the run, see `Shadows`.
        """
        diverged = diverged_at >= 0
        judgement = convergence.judge(
            self.smooth(history[:diverged_at] if diverged else history),
            *(diverged, self.minimum, self.rules, self.epsilon, shadows),
            scaled=not self.compared_points,
            noisy=self.batch > 0,
        )
        # These two verdicts hold at 2/L as well; other costs and optimizers have no tie.
        if judgement.verdict in (names.DIVERGED, names.BY_ROUNDING) or not self.tie_step_size:
            return judgement
        if abs(step_size / self.tie_step_size - 1) > THRESHOLD_TOLERANCE:
            return judgement
        reason = "tie: at exactly 2/L the steepest part of the cost neither falls nor rises"
        return Judgement(names.NOT_CONVERGED, reason, tied=True)


def judge_steps(
    histories: Mapping[str, Array],
    diverged_at: NDArray[np.int64],
    step_sizes: Sequence[float],
    context: JudgingContext,
    shadows: Shadows | None = None,
) -> tuple[Step, ...]:
    """Return a `Step` for each step size; the runs of one step size, its starts, are consecutive.

    Args:
        histories: The histories of R runs by their recorded names, `(R, K + 1)` each; of test
            points only where there are any.
        diverged_at: The iteration at which each run stopped being finite `(R,)`, -1 for never.
        step_sizes: S step sizes; R is a multiple of S.
        context: The rules and numbers by which the job is judged.
        shadows: The shadows of the runs; None without any.

    Returns:
        The steps, in the order of the step sizes. Each has the iterations to the lowest final cost
        of all of them, in passes where steps see batches.
    """
    starts = len(diverged_at) // len(step_sizes)
    steps = []
    for number, size in enumerate(step_sizes):
        runs = slice(number * starts, (number + 1) * starts)
        own_histories = {key: values[runs] for key, values in histories.items()}
        ends = np.empty((starts, 0)) if shadows is None else shadows.ends[runs]
        costs = own_histories[names.TRAIN_COST.key]
        judgements = [
            context.judge(*run)
            for run in zip(costs, [size] * starts, diverged_at[runs].tolist(), ends)
        ]
        judgement = convergence.judge_starts(judgements)
        counts = _count_to_targets(own_histories[context.compared], context)
        # Iterations that another processor would count otherwise are not recorded.
        if judgement.verdict == names.BY_ROUNDING and shadows is not None:
            reached = shadows.reached
            counts = {name: _drop_unsure(counts[name], reached[name][runs]) for name in counts}
        # All runs are finite up to the first stop.
        stops = diverged_at[runs][diverged_at[runs] >= 0]
        length = stops.min(initial=costs.shape[1])
        finite = {key: values[:, :length] for key, values in own_histories.items()}
        quartiles = {key: np.quantile(h, [0.25, 0.75], axis=0) for key, h in finite.items()}
        step = Step(
            step_size=size,
            judgement=judgement,
            histories={key: np.median(values, axis=0) for key, values in finite.items()},
            quartiles=quartiles if starts > 1 else {},
            starts={
                names.START_COST.key: costs[:, -1].copy(),  # NaN for a run that diverged
                **{names.start_reached(name).key: reached for name, reached in counts.items()},
            },
            verdicts=tuple(judgement.verdict for judgement in judgements),
            metrics=_summarize(counts, context),
        )
        steps.append(step)
    ranked_histories = [
        None if step.verdict in names.UNRANKED else context.smooth(step.histories[context.compared])
        for step in steps
    ]
    to_lowest = convergence.to_lowest(ranked_histories, context.compared_range[0])
    for step, count in zip(steps, to_lowest):
        step.metrics[names.TO_LOWEST.key] = count / context.records_per_pass
    return tuple(steps)


def largest_convergent(steps: Sequence[Step]) -> Largest:
    """Return the largest converged step size from the smallest that converges up to one that fails.

    A step size that converges above one that fails does not count. Failures below the smallest step
    size that converges are ignored, since those step sizes were not too large. Where none
    converges, the limit may still lie above the grid, unless some step size was too large.
    """
    increasing = sorted(steps, key=lambda step: step.step_size)
    converging = [*dropwhile(lambda step: step.verdict != names.CONVERGED, increasing)]
    largest = None
    for step in converging or _without_leading_ties(steps):
        if step.judgement.fails:
            return Largest(largest, False)
        if step.verdict == names.CONVERGED:
            largest = step.step_size
    return Largest(largest, True)


def largest_falling(steps: Sequence[Step]) -> Largest:
    """Return the largest step size up to which the cost falls throughout at every step size.

    Step sizes that are too small to move the cost do not count.
    """
    moving = _without_leading_ties(steps)
    falling = [*takewhile(lambda step: step.judgement.falls, moving)]
    return Largest(falling[-1].step_size if falling else None, len(falling) == len(moving))


def _without_leading_ties(steps: Sequence[Step]) -> list[Step]:
    """Return steps by increasing step size, without the ties at the small end.

    Those ties are of step sizes so small that they move the cost by less than rounding. A tie above
    a step size that moves the cost is kept: it is one at `2/L`. Where all are ties, all are kept.
    """
    increasing = sorted(steps, key=lambda step: step.step_size)
    return [*dropwhile(lambda step: step.judgement.tied, increasing)] or increasing


def find_shown_step(steps: Sequence[Step], chosen: float | None) -> tuple[int | None, bool]:
    """Return the step that represents its scheme in figures and tables.

    Args:
        steps: The judged step sizes of a job.
        chosen: The step size that the user chose; None for none.

    Returns:
        The index of the chosen step, unless that diverged; otherwise of the best, see `best_step`;
        None where no step size is ranked. And whether the step is the chosen one.
    """
    chosen = find_step_size(chosen, [step.step_size for step in steps])
    for number, step in enumerate(steps):
        if step.step_size == chosen and step.verdict != names.DIVERGED:
            return number, True
    best = find_fastest(steps, names.TO_LOWEST)
    return best, best is not None and steps[best].step_size == chosen


def find_fastest(steps: Sequence[Step], goal: names.Metric) -> int | None:
    """Return the index of the step size with the fewest iterations to a goal.

    Args:
        steps: The judged step sizes of a job.
        goal: The metric that counts the iterations to the goal.

    Returns:
        The index, see `best_step`; None where no step size reaches the goal.
    """
    counts = [step.metrics.get(goal.key, float("nan")) for step in steps]
    return best_step([step.step_size for step in steps], counts)


def best_step(
    step_sizes: Sequence[float],
    counts: ArrayLike,
    unreached: ArrayLike | None = None,
    excess: ArrayLike | None = None,
) -> int | None:
    """Return the index of the best step size: the fewest iterations, of equal ones the smaller.

    Args:
        step_sizes: S step sizes, in any order.
        counts: The iterations to the goal `(S,)`, NaN or infinite where it is not reached; upper
            quartiles over the splits, if there are several.
        unreached: The number of splits that do not reach the goal, `(S,)`: only the step sizes with
            the fewest are compared. None without splits.
        excess: The final excess `(S,)`, as a share of the start's, by which a step size is chosen
            where none reaches the goal; None to choose none.

    Returns:
        The index; None where none reaches the goal and there is no excess.
    """
    candidates = np.argsort(step_sizes, kind="stable")  # of equal ones the smaller comes first
    if unreached is not None:
        unreached_counts = np.asarray(unreached)[candidates]
        candidates = candidates[unreached_counts == unreached_counts.min()]
    candidate_counts = np.asarray(counts, dtype=float)[candidates]
    if np.isfinite(candidate_counts).any():
        return int(candidates[np.nanargmin(candidate_counts)])
    if excess is None:
        return None
    # The smallest whose final excess is tied with the lowest, or the smallest of all where none is
    # finite.
    final_excess = np.nan_to_num(np.asarray(excess, dtype=float)[candidates], nan=np.inf)
    return int(candidates[(final_excess <= final_excess.min() + names.TIED).argmax()])


def _count_to_targets(histories: Array, context: JudgingContext) -> dict[str, Array]:
    """Return the iterations of each run to each target, by the target's name.

    Args:
        histories: The history by which step sizes are compared, of each run `(starts, K + 1)`.
        context: The rules and numbers by which the job is judged.

    Returns:
        `(starts,)` each, in passes where steps see batches; NaN where the target is not reached.
    """
    smooth = [context.smooth(history) for history in histories]
    return {
        name: np.array([convergence.arrival_iteration(history, goal) for history in smooth])
        / context.records_per_pass
        for name, goal in context.targets.items()
    }


def _drop_unsure(counts: Array, of_shadows: Array) -> Array:
    """Return the iterations of runs to a target, NaN where rounding may have decided them.

    It may where a shadow, the same run from a start perturbed by rounding, takes another number.

    Args:
        counts: The iterations of the runs `(starts,)`, NaN where the target is not reached.
        of_shadows: The iterations of the shadows `(starts, M)`, infinite where the target is not
            reached, NaN where a run has no such shadow.
    """
    agrees = (of_shadows == counts[:, None]) | np.isnan(of_shadows)
    return np.where(agrees.all(axis=1), counts, np.nan)


def _summarize(counts_by_target: dict[str, Array], context: JudgingContext) -> dict[str, float]:
    """Return medians and quartiles of iterations and seconds to each target, by recorded names.

    Args:
        counts_by_target: The iterations of each start to each target `(starts,)`, NaN where the
            target is not reached.
        context: Has the seconds of the fit and of an iteration.

    Returns:
        NaN where a target is not reached; no quartiles for a single start.
    """
    entries: dict[str, float] = {}
    for name, counts in counts_by_target.items():
        quantiles = convergence.spread(counts)[: None if len(counts) > 1 else 1]
        for measure in names.MEASURES:
            median = names.reached(name, measure)
            quartiles = [names.quartile(median, quartile) for quartile in names.QUARTILES]
            for metric, iterations in zip([median, *quartiles], quantiles):
                seconds = context.fit_seconds + iterations * context.seconds_a_step
                entries[metric.key] = seconds if measure == "seconds" else iterations
    return entries
