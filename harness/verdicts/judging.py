"""The verdicts of a job: what its histories are judged against the least cost and the theory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.engine.descent import Histories
from normbench.results import names
from normbench.theory.analysis import Theory
from normbench.verdicts import convergence
from normbench.verdicts.convergence import Judgement, Rules

Array = NDArray[np.float64]
AT_THRESHOLD = 1e-6  # relative: sphering leaves up to 3e-8 of rounding in 2/L, by the kernels


@dataclass(frozen=True)
class Step:
    """One step size: its histories (k,) from step 0 on, its verdict and what it reached.

    With several starts a history is the median over them, and `quartiles` holds, under the same
    names, the quartiles (2, k); a history ends where the first start stopped being finite.
    starts: what each start came to, `(starts,)` each: its final cost and the iterations
    to every target, NaN where it was not reached. metrics: medians and quartiles of that, by the
    names they log under. predicted: the least-squares history (k,), where theory has it.
    """

    step_size: float
    judgement: Judgement
    histories: dict[str, Array]
    quartiles: dict[str, Array]
    starts: dict[str, Array]
    verdicts: tuple[str, ...]
    metrics: dict[str, float]
    predicted: Array | None = None

    @property
    def verdict(self) -> str:
        """The verdict in one word."""
        return self.judgement.verdict

    @property
    def reason(self) -> str:
        """Why, where the word alone does not say it."""
        return self.judgement.reason

    @property
    def final_cost(self) -> float:
        """The last finite training cost; infinite for a run that had none."""
        costs = self.histories[names.TRAIN_COST.key]
        return float(costs[-1]) if len(costs) else float("inf")


@dataclass(frozen=True)
class Bench:
    """What every step size of a job is judged with.

    minimum: g*. reference: g(0), the cost at zero weights. epsilon: of the runs' type. plain: the
    optimizer is plain descent, so that `2/L` speaks of it. fit_seconds; seconds a run and step.
    """

    rules: Rules
    minimum: float
    reference: float
    theory: Theory
    plain: bool
    epsilon: float
    fit_seconds: float
    seconds_a_step: float

    def judge(self, history: Array, step_size: float, diverged_at: int) -> Judgement:
        """Return the judgement on one run of costs `(K + 1,)`."""
        diverged = diverged_at >= 0
        finite = history[:diverged_at] if diverged else history
        found = convergence.judge(finite, diverged, self.minimum, self.rules, self.epsilon)
        if found.verdict == names.DIVERGED or not (self.plain and self.theory.exact):
            return found
        threshold = self.theory.threshold
        if threshold and abs(step_size / threshold - 1) <= AT_THRESHOLD:
            reason = "tie: at exactly 2/L the steepest part of the cost neither falls nor rises"
            return Judgement(names.UNSETTLED, reason, tied=True)
        return found


def steps(histories: Histories, step_sizes: Sequence[float], bench: Bench) -> tuple[Step, ...]:
    """Return a `Step` for each step size; the runs of one step size, its starts, stand together."""
    starts = len(histories.cost) // len(step_sizes)
    return tuple(
        _step(histories, size, slice(number * starts, (number + 1) * starts), bench)
        for number, size in enumerate(step_sizes)
    )


def _step(histories: Histories, step_size: float, runs: slice, bench: Bench) -> Step:
    named = {
        names.TRAIN_COST.key: histories.cost,
        names.TRAIN_MISCLASSIFICATIONS.key: histories.misclassifications,
        names.TEST_COST.key: histories.test_cost,
        names.TEST_MISCLASSIFICATIONS.key: histories.test_misclassifications,
    }
    left = histories.diverged_at[runs]
    stops = left[left >= 0]
    length = int(stops.min()) if len(stops) else histories.cost.shape[1]
    parts = {key: part[runs, :length] for key, part in named.items() if part is not None}
    costs = histories.cost[runs]
    judgements = [bench.judge(cost, step_size, int(at)) for cost, at in zip(costs, left)]
    reached = _reached(costs, bench)
    return Step(
        step_size=step_size,
        judgement=convergence.together(judgements),
        histories={key: np.median(part, axis=0) for key, part in parts.items()},
        quartiles={
            key: np.quantile(part, [0.25, 0.75], axis=0)
            for key, part in parts.items()
            if len(costs) > 1
        },
        starts={
            names.START_COST.key: _finals(costs),
            **{names.start_reached(name).key: found for name, found in reached.items()},
        },
        verdicts=tuple(each.verdict for each in judgements),
        metrics=_summary(reached, bench),
    )


def _finals(costs: Array) -> Array:
    """Return each run's last cost `(starts,)`, NaN for one that diverged."""
    return costs[:, -1].copy()


def _reached(costs: Array, bench: Bench) -> dict[str, Array]:
    """Return, by target, the iterations that each run takes to it; NaN where it does not."""
    goals = convergence.targets(bench.minimum, bench.reference)
    return {
        name: np.array([convergence.reached(cost, goal) for cost in costs])
        for name, goal in goals.items()
    }


def _summary(reached: dict[str, Array], bench: Bench) -> dict[str, float]:
    """Return medians and quartiles of iterations and seconds to each target; NaN: unreached."""
    entries: dict[str, float] = {}
    for name, values in reached.items():
        found = convergence.spread(values)
        goals = [names.reached(name, measure) for measure in names.MEASURES]
        shown = found._asdict() if len(values) > 1 else {"median": found.median}
        for part, value in shown.items():
            seconds = bench.fit_seconds + value * bench.seconds_a_step
            for metric, number in zip(goals, (value, seconds)):
                logged = metric if part == "median" else names.quartile(metric, part)
                entries[logged.key] = number
    return entries


def with_prediction(step: Step, predicted: Array | None, gaps: dict[str, float]) -> Step:
    """Return a step with its predicted history, and how far the measured one is from it.

    gaps: predicted iterations to each target. The error is the largest, relative to the measured
    cost; where the cost is 0 a relative error says nothing and the point is left out.
    """
    if predicted is None:
        return step
    metrics = dict(step.metrics)
    metrics |= {names.predicted(name).key: value for name, value in gaps.items()}
    measured = step.histories[names.TRAIN_COST.key]
    error = np.abs(predicted[: len(measured)] - measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = error / np.abs(measured)
    finite = relative[np.isfinite(relative)]
    if len(finite):
        metrics[names.PREDICTION_ERROR.key] = float(finite.max())
    return replace(step, predicted=predicted, metrics=metrics)


def is_plain_descent(optimizer: Any) -> bool:
    """Return whether a step rule keeps no state and steps to `w - a g`: tried on a few numbers."""
    weights = np.array([[[0.5, -2.0]], [[3.0, 0.25]]])
    gradient = np.array([[[2.0, 0.125]], [[-0.75, 40.0]]])
    sizes = np.array([0.5, 0.25]).reshape(-1, 1, 1)
    state = optimizer.init(weights)
    if state or optimizer.uses_objective:
        return False
    stepped, _ = optimizer.step(weights.copy(), gradient.copy(), state, sizes)
    return bool(np.allclose(stepped, weights - sizes * gradient, rtol=1e-12, atol=0))
