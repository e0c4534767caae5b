"""Judge a job: the histories of every step size against the least cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.verdicts import convergence
from normbench.verdicts.best_step import best_step
from normbench.verdicts.convergence import Judgement, Rules

Array = NDArray[np.float64]
# Relative: sphering leaves up to 3e-8 of rounding in 2/L, by the kernels.
THRESHOLD_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Step:
    """One step size: its histories (k,) from iteration 0 on, its verdict and reached targets.

    With several starts a history is the median over them, and `quartiles` holds, under the same
    names, the quartiles (2, k); a history ends where the first start stopped being finite. starts:
    of each start `(starts,)`: its final cost and the iterations to every target, NaN where it was
    not reached. metrics: medians and quartiles of those, by their recorded names. series: what a
    measure adds by step, (k,) each.
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

    @property
    def predicted(self) -> Array | None:
        """The history (k,) that theory predicts, where it does."""
        return self.series.get(names.PREDICTED_COST.key)


class Shadows(NamedTuple):
    """The ends of the shadows of R runs: `(R, M)` each, NaN where a run has none.

    ends: their last costs, infinite where one diverged. reached: by target, the iterations that
    they take, infinite where one does not reach it.
    """

    ends: Array
    reached: Mapping[str, Array]

    def select_runs(self, runs: slice) -> "Shadows":
        """Return the shadows of some of the runs."""
        return Shadows(
            self.ends[runs], {name: iterations[runs] for name, iterations in self.reached.items()}
        )


@dataclass(frozen=True)
class Bench:
    """What every step size of a job is judged with.

    minimum: g*. reference: g(0), the cost at zero weights. tie: the step size at which the cost
    neither falls nor rises, if there is one: `2/L` of plain descent on a quadratic. epsilon: of the
    runs' type. fit_seconds: of the scheme; seconds_a_step: of a run and step. points: how many
    there are, where step sizes are compared by misclassified points; 0 where they are compared by
    the cost. batch: how many points a step sees, 0 for all; the records of a batch
    are noisy, and its iterations are passes of `records_per_pass` records each.
    """

    rules: Rules
    minimum: float
    reference: float
    tie: float | None
    epsilon: float
    fit_seconds: float
    seconds_a_step: float
    points: int = 0
    batch: int = 0
    records_per_pass: int = 1

    @property
    def compared(self) -> str:
        """The history that step sizes are compared by."""
        return names.TRAIN_MISCLASSIFICATIONS.key if self.points else names.TRAIN_COST.key

    @property
    def span(self) -> tuple[float, float]:
        """The lowest value of the compared history, and its value at zero weights."""
        return (0.0, float(self.points)) if self.points else (self.minimum, self.reference)

    @property
    def targets(self) -> dict[str, float]:
        """The cost, or the count, of each target by its name."""
        return convergence.targets(*self.span)

    def smooth(self, history: Array) -> Array:
        """Return the history that rules apply to: of a batch, the running median of its records."""
        return convergence.running_median(history) if self.batch else history

    def judge(
        self, history: Array, step_size: float, diverged_at: int, shadows: Sequence[float] = ()
    ) -> Judgement:
        """Return the judgement on one run.

        Args:
            history: Costs `(K + 1,)`.
            step_size: Of the run; at exactly 2/L of a quadratic the run is a tie.
            diverged_at: The iteration at which it stopped being finite, -1 for never.
            shadows: The last costs of its shadows.

        Returns:
            The verdict and its reason.
        """
        diverged = diverged_at >= 0
        finite = self.smooth(history[:diverged_at] if diverged else history)
        judgement = convergence.judge(
            *(finite, diverged, self.minimum, self.rules, self.epsilon, shadows),
            scaled=not self.points,
            noisy=self.batch > 0,
        )
        if judgement.verdict in (names.DIVERGED, names.BY_ROUNDING) or not self.tie:
            return judgement
        if abs(step_size / self.tie - 1) <= THRESHOLD_TOLERANCE:
            reason = "tie: at exactly 2/L the steepest part of the cost neither falls nor rises"
            return Judgement(names.NOT_CONVERGED, reason, tied=True)
        return judgement

    def judge_starts(
        self,
        costs: Array,
        diverged_at: NDArray[np.int64],
        step_size: float,
        shadows: Shadows | None = None,
    ) -> tuple[Judgement, tuple[str, ...]]:
        """Return the judgement on a step size from all its starts, and each start's verdict.

        Args:
            costs: `(starts, K + 1)`.
            diverged_at: `(starts,)`, -1 for never.
            step_size: The step size of these runs.
            shadows: Of these runs; None without any.

        Returns:
            See `convergence.judge_starts` for the judgement; the verdicts in the order of the
            starts.
        """
        ends_by_run = [()] * len(costs) if shadows is None else shadows.ends
        judged = [
            self.judge(cost, step_size, int(at), shadow_ends)
            for cost, at, shadow_ends in zip(costs, diverged_at, ends_by_run)
        ]
        return convergence.judge_starts(judged), tuple(judgement.verdict for judgement in judged)


def steps(
    histories: Mapping[str, Array],
    diverged_at: NDArray[np.int64],
    step_sizes: Sequence[float],
    bench: Bench,
    shadows: Shadows | None = None,
) -> tuple[Step, ...]:
    """Return a `Step` for each step size; the runs of one step size, its starts, are consecutive.

    Args:
        histories: `(R, K + 1)` each, by their recorded names; of test points only where there are
            any.
        diverged_at: `(R,)`, -1 for never.
        step_sizes: `(S,)`; R is a multiple of S.
        bench: Of the job.
        shadows: Of the runs, if any has some.

    Returns:
        The steps, in the order of the step sizes. Each has the iterations to the lowest final cost
        of all of them, in passes where steps see batches.
    """
    starts = len(diverged_at) // len(step_sizes)
    judged_steps = [
        _judge_step(
            *(histories, diverged_at, size, slice(number * starts, (number + 1) * starts), bench),
            shadows,
        )
        for number, size in enumerate(step_sizes)
    ]
    finite = [
        None if step.verdict in names.UNRANKED else bench.smooth(step.histories[bench.compared])
        for step in judged_steps
    ]
    counts = convergence.to_lowest(finite, bench.span[0])
    return tuple(
        replace(step, metrics={**step.metrics, names.TO_LOWEST.key: count / bench.records_per_pass})
        for step, count in zip(judged_steps, counts)
    )


def _judge_step(
    histories: Mapping[str, Array],
    diverged_at: NDArray[np.int64],
    step_size: float,
    runs: slice,
    bench: Bench,
    shadows: Shadows | None,
) -> Step:
    """Return the `Step` of one step size from its runs."""
    diverged_at_runs = diverged_at[runs]
    stops = diverged_at_runs[diverged_at_runs >= 0]
    costs = histories[names.TRAIN_COST.key][runs]
    length = int(stops.min()) if len(stops) else costs.shape[1]
    finite_histories = {key: values[runs, :length] for key, values in histories.items()}
    run_shadows = None if shadows is None else shadows.select_runs(runs)
    judgement, verdicts = bench.judge_starts(costs, diverged_at_runs, step_size, run_shadows)
    reached = _reached(histories[bench.compared][runs], bench)
    if judgement.verdict == names.BY_ROUNDING and run_shadows is not None:
        reached = {
            name: _drop_unsure(counts, run_shadows.reached[name])
            for name, counts in reached.items()
        }
    return Step(
        step_size=step_size,
        judgement=judgement,
        histories={key: np.median(values, axis=0) for key, values in finite_histories.items()},
        quartiles={
            key: np.quantile(values, [0.25, 0.75], axis=0)
            for key, values in finite_histories.items()
            if len(costs) > 1
        },
        starts={
            names.START_COST.key: _final_costs(costs),
            **{names.start_reached(name).key: iterations for name, iterations in reached.items()},
        },
        verdicts=verdicts,
        metrics=_summarize(reached, bench),
    )


def find_shown_step(steps: Sequence[Step], chosen: float | None) -> tuple[int | None, bool]:
    """Return the step that represents its scheme in figures and tables.

    Args:
        steps: Of all step sizes of a job.
        chosen: The step size that the user chose; None for none.

    Returns:
        The index of the chosen step, unless that diverged; otherwise of the best, see `best_step`;
        None where none stays finite. And whether it is the chosen one.
    """
    for number, step in enumerate(steps):
        if step.step_size == chosen and step.verdict != names.DIVERGED:
            return number, True
    best = fastest(steps, names.TO_LOWEST)
    return best, best is not None and steps[best].step_size == chosen


def fastest(steps: Sequence[Step], goal: names.Metric) -> int | None:
    """Return the index of the step size with the fewest iterations to a goal.

    Args:
        steps: Of all step sizes of a job.
        goal: The metric that counts the iterations.

    Returns:
        The index, see `best_step`; None where no step size reaches the goal.
    """
    counts = [step.metrics.get(goal.key, float("nan")) for step in steps]
    return best_step([step.step_size for step in steps], counts)


def _final_costs(costs: Array) -> Array:
    """Return each run's last cost `(starts,)`, NaN for one that diverged."""
    return costs[:, -1].copy()


def _reached(values: Array, bench: Bench) -> dict[str, Array]:
    """Return, by target, the iterations that each run takes to it; NaN where it does not.

    values: the history that step sizes are compared by, `(starts, K + 1)`.
    """
    smooth_values = [bench.smooth(run) for run in values]
    return {
        name: np.array([convergence.reached(run, goal) for run in smooth_values])
        / bench.records_per_pass
        for name, goal in bench.targets.items()
    }


def _drop_unsure(counts: Array, of_shadows: Array) -> Array:
    """Return iterations `(starts,)`, NaN where a shadow takes another number of them.

    of_shadows: the iterations of the shadows `(starts, M)`, NaN where a run has no such shadow.
    """
    agrees = (of_shadows == counts[:, None]) | np.isnan(of_shadows)
    return np.where(agrees.all(axis=1), counts, np.nan)


def _summarize(reached: dict[str, Array], bench: Bench) -> dict[str, float]:
    """Return medians and quartiles of iterations and seconds to each target, NaN if unreached."""
    entries: dict[str, float] = {}
    for name, values in reached.items():
        quartiles = convergence.spread(values)
        goals = [names.reached(name, measure) for measure in names.MEASURES]
        quantiles = quartiles._asdict() if len(values) > 1 else {"median": quartiles.median}
        for quantile, value in quantiles.items():
            seconds = bench.fit_seconds + value * bench.seconds_a_step
            for metric, metric_value in zip(goals, (value, seconds)):
                logged = metric if quantile == "median" else names.quartile(metric, quantile)
                entries[logged.key] = metric_value
    return entries
