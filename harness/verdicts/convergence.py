"""The verdict on a history, and what follows from a grid's verdicts: pure functions, one per rule.

A verdict is `converged`, `not converged`, `cycling`, `decided by rounding` or `diverged` (a job
that fails has `failed`). A history is the costs `(k,)` of one run, from iteration 0 (the start) on.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.settings import check, default

History = NDArray[np.float64]
# Machine epsilons, relative to the start: a smaller rise or fall is rounding.
ROUNDING_EPSILONS = 64
SMOOTHED_RECORDS = 5  # of a batch, whose median stands for the one in their middle
# From good to bad.
VERDICT_ORDER = tuple(verdict for verdict in names.VERDICTS if verdict != names.FAILED)


@dataclass(frozen=True)
class Rules:
    """The thresholds of the verdicts.

    Attributes:
        tail: Share of the run's iterations that is its tail.
        least_tail: The fewest iterations of a tail.
        variation: A converged tail varies by less than this share of the run's total drop.
        excess: A converged run ends under this share of the starting excess cost.
        last: Share of the run in which a cycling run rises and finds no new low.
        diverged: A run that ends with more than so many times the starting excess cost has
            diverged, however finite it is.

    Raises:
        UserError: A value is out of its range.
    """

    tail: float = default("rules.tail")
    least_tail: int = default("rules.least_tail")
    variation: float = default("rules.variation")
    excess: float = default("rules.excess")
    last: float = default("rules.last")
    diverged: float = default("rules.diverged")

    def __post_init__(self) -> None:
        for field in fields(self):
            value = check(f"rules.{field.name}", getattr(self, field.name))
            object.__setattr__(self, field.name, value)


@dataclass(frozen=True)
class Judgement:
    """The verdict on one run, and its reason.

    Attributes:
        verdict: One of `VERDICT_ORDER`.
        reason: The reason in words; empty where the verdict says all.
        falls: Whether the cost falls throughout: it ends strictly lower than it began, and never
            rises.
        tied: Whether the cost stays where it began.
        sinks: Whether the cost ends strictly lower, and all its rises together are small.
    """

    verdict: str
    reason: str = ""
    falls: bool = False
    tied: bool = False
    sinks: bool = False

    @property
    def fails(self) -> bool:
        """Whether the step size was too large, so that no larger one counts as convergent.

        The run diverged, cycles, was decided by rounding, is a tie, made no step, or rises without
        having converged. A run that falls too slowly, or with small rises, does not fail.
        """
        is_slow = self.verdict == names.NOT_CONVERGED and (self.falls or self.sinks)
        return self.verdict != names.CONVERGED and not is_slow


def judge(
    history: History,
    diverged: bool,
    minimum: float,
    rules: Rules = Rules(),
    epsilon: float = float(np.finfo(np.float64).eps),
    shadows: Sequence[float] = (),
    scaled: bool = True,
    noisy: bool = False,
) -> Judgement:
    """Return the judgement on one run.

    Args:
        history: The costs of the run `(k,)`, finite, from iteration 0 on.
        diverged: Whether the run stopped being finite after this history.
        minimum: The cost from which the start's excess is measured: the least cost where it is
            known, else the lowest that was seen.
        rules: The thresholds.
        epsilon: Machine epsilon of the run's type, which defines rounding.
        shadows: The last costs of the shadows of the run, which repeat it from starts perturbed by
            rounding; infinite where one diverged, NaN for none.
        scaled: Whether a run has diverged that ends far above the start's excess. False for a cost
            that grows with the length of the weights, even if the weights classify as well.
        noisy: Whether steps see batches, so that the history is a running median. If its tail then
            covers the whole history, the history is too short to tell whether the cost is at rest.

    Returns:
        The first verdict that holds, of diverged, decided by rounding, a tie, converged, cycling,
        not converged.
    """
    if diverged:
        unit = "record" if noisy else "step"  # of batches, several steps lie between two records
        reason = f"the cost or its gradient stopped being finite at {unit} {len(history)}"
        return Judgement(names.DIVERGED, reason)
    if len(history) < 2:
        return Judgement(names.NOT_CONVERGED, "no step was made")
    first, last = float(history[0]), float(history[-1])
    # The excess at the end of the run, first, and of its shadows.
    ends = np.array([last, *shadows]) - minimum
    ends = ends[~np.isnan(ends)]
    scale = starting_excess(first, minimum, epsilon)
    if scaled and scale > 0 and np.all(ends > rules.diverged * scale):
        # `starting_excess` gives the cost itself where the excess is rounding.
        start_quantity = "excess" if scale == first - minimum else "cost"
        reason = f"the cost ends at over {rules.diverged:g} times the start's {start_quantity}"
        return Judgement(names.DIVERGED, reason)
    if np.any(np.abs(ends - ends[0]) > shadow_tolerance_share(epsilon) * scale):
        reason = "a shadow that starts next to it ends elsewhere"
        return Judgement(names.BY_ROUNDING, reason)
    rounding = ROUNDING_EPSILONS * epsilon * abs(first)
    if np.abs(history - first).max() <= rounding:  # as at exactly `2/L` on a sphere
        return Judgement(names.NOT_CONVERGED, "tie: the cost neither falls nor rises", tied=True)
    # `down`: the cost falls at every step; `low`: overall, with small rises.
    down = falls_throughout(history, rounding)
    low = falls_overall(history, rules, rounding)
    if has_converged(history, minimum, rules):
        return Judgement(names.CONVERGED, "", down, sinks=low)
    if is_cycling(history, rules, rounding):
        above = ", and it ends above the start" if last > first else ""
        reason = f"the cost rises at the end of the run and finds no new low{above}"
        return Judgement(names.CYCLING, reason)
    records, tail = len(history) - 1, tail_length(history, rules)
    if noisy and tail >= records:
        reason = (
            f"{records} records are too few to say whether the cost is at rest: the tail is {tail}"
        )
    elif is_flat(history, rules):
        reason = f"flat, but not under {rules.excess:g} of the starting excess cost"
    elif down:
        reason = "the cost still falls at the end"
    else:
        reason = "the cost rises at times and is not at rest at the end"
    return Judgement(names.NOT_CONVERGED, reason, down, sinks=low)


def starting_excess(first: float, minimum: float, epsilon: float) -> float:
    """Return the excess of the start's cost, against which costs are compared.

    Where no run goes below the start, and no lower cost is known, the start's cost is itself the
    lowest that was seen. Its excess is then only rounding, and the cost stands in for it.

    Args:
        first: The cost at the start.
        minimum: The least cost that is known.
        epsilon: Machine epsilon of the run's type.

    Returns:
        The excess; the size of the cost itself, where it equals the minimum up to rounding.
    """
    excess = first - minimum
    return excess if excess > ROUNDING_EPSILONS * epsilon * abs(first) else abs(first)


def shadow_tolerance_share(epsilon: float) -> float:
    """Return how far apart a run and its shadow may end, as a share of the start's excess.

    In float64 it is a tenth of the difference that distinguishes final costs (`names.TIED`), so
    that rounding moves no compared run across it; in float32, which rounds more, it is 1e-5.

    Args:
        epsilon: Machine epsilon of the run's type.
    """
    is_float64 = epsilon < 1e-10  # 2e-16, and 1e-7 of float32
    return 1e-7 if is_float64 else 1e-5


def needs_shadow(
    history: History, steady: bool, epsilon: float, diverged_factor: float = float("inf")
) -> bool:
    """Return whether a finite run must be repeated from a start perturbed by rounding, its shadow.

    It must where rounding may decide where the run ends: where its cost rises by more than
    rounding, or where its step rule can drive two runs apart even while both costs fall.

    Args:
        history: The costs of the run `(K + 1,)`, NaN after a divergence.
        steady: Whether the step rule never separates two runs whose costs do not rise. If it may,
            every finite run may be chaotic.
        epsilon: Machine epsilon of the run's type.
        diverged_factor: A multiple of the start's cost. A run whose whole later half is above it
            has diverged, whatever its shadow would do, and needs none.

    Returns:
        Whether the run needs a shadow.
    """
    # A run that made no step has no end to decide; the verdict on one that diverged is known.
    if len(history) < 2 or not np.isfinite(history[-1]):
        return False
    first = abs(float(history[0]))
    if first > 0 and history[len(history) // 2 :].min() > diverged_factor * first:
        return False
    rounding = ROUNDING_EPSILONS * epsilon * first
    return not steady or bool(np.any(np.diff(history) > rounding))


def has_converged(history: History, minimum: float, rules: Rules) -> bool:
    """Return whether the tail is flat, and little of the excess is left.

    Args:
        history: Costs `(k,)`.
        minimum: The cost from which the excess is measured.
        rules: The thresholds. Little is less than the share `rules.excess` of the start's excess.

    Returns:
        Whether both hold.
    """
    is_low = history[-1] - minimum < rules.excess * (history[0] - minimum)
    return bool(is_low and is_flat(history, rules))


def is_flat(history: History, rules: Rules) -> bool:
    """Return whether the tail varies by less than a share of the run's total drop.

    Args:
        history: Costs `(k,)`.
        rules: The thresholds. The tail is the last `rules.tail` of the run, and `rules.least_tail`
            iterations at least; the share is `rules.variation`.

    Returns:
        Whether it does; False for a run that never falls.
    """
    tail = history[-(tail_length(history, rules) + 1) :]
    return bool(np.ptp(tail) < rules.variation * (history[0] - history.min()))


def tail_length(history: History, rules: Rules) -> int:
    """Return the number of iterations of the tail, the last part of a run.

    Args:
        history: Costs `(k,)`.
        rules: The thresholds. `rules.tail` is a share of the run, `rules.least_tail` the fewest
            iterations.

    Returns:
        A number of iterations, more than those of a short run.
    """
    return max(rules.least_tail, round(rules.tail * (len(history) - 1)))


def running_median(history: History) -> History:
    """Return the median of each record and its neighbours, two on either side, `(k,)`.

    Near the ends there are as many neighbours on both sides as the shorter side has, so that a
    monotone history stays as it is. It is NaN beside a NaN.

    Args:
        history: The records `(k,)`.
    """
    smooth = np.array(history)
    for width in range(3, SMOOTHED_RECORDS + 1, 2):  # the wider ones replace the narrower
        if width <= len(history):
            windows = np.lib.stride_tricks.sliding_window_view(history, width)
            smooth[width // 2 : len(history) - width // 2] = np.median(windows, axis=-1)
    return smooth


def is_cycling(history: History, rules: Rules, rounding: float) -> bool:
    """Return whether the cost rises in the last part of the run and finds no new low there.

    No new low: the lowest cost of that part is no lower than that of the part before it, of the
    same length.

    Args:
        history: Costs `(k,)`.
        rules: The thresholds. The last part is the share `rules.last` of the iterations.
        rounding: A difference of costs; a rise up to it is none.

    Returns:
        Whether both hold; False where the last part has no iteration.
    """
    length = int((len(history) - 1) * rules.last)
    if length < 1:
        return False
    last, before = history[-length:], history[-2 * length : -length]
    rises = np.any(np.diff(history[-length - 1 :]) > rounding)
    return bool(rises and last.min() >= before.min())


def falls_throughout(history: History, rounding: float) -> bool:
    """Return whether the cost ends strictly lower than it began and rises at no step.

    Args:
        history: Costs `(k,)`.
        rounding: A difference of costs; a rise or fall up to it is none.

    Returns:
        Whether both hold.
    """
    return bool(history[0] - history[-1] > rounding and np.all(np.diff(history) <= rounding))


def falls_overall(history: History, rules: Rules, rounding: float) -> bool:
    """Return whether the cost ends strictly lower, and all its rises are small together.

    Args:
        history: Costs `(k,)`.
        rules: The thresholds. Small rises add up to no more than a flat tail may vary by:
            `rules.variation` of the total drop.
        rounding: A difference of costs; a rise or fall up to it is none.

    Returns:
        Whether both hold.
    """
    changes = np.diff(history)
    rise_sum = float(changes[changes > rounding].sum())
    ends_lower = history[0] - history[-1] > rounding
    return bool(ends_lower and rise_sum <= rules.variation * (history[0] - history.min()))


def judge_starts(judgements: Sequence[Judgement]) -> Judgement:
    """Return the judgement on one step size from those of its starts: the worst of them.

    A step size that has `converged` thus did so from every start. The reason counts the verdicts
    where they differ. A flag (`falls`, `tied`, `sinks`) holds if it holds for every start.
    """
    if len(judgements) == 1:
        return judgements[0]
    # Of equal verdicts, one that fails is worse.
    worst = max(
        judgements, key=lambda judgement: (VERDICT_ORDER.index(judgement.verdict), judgement.fails)
    )
    counts = Counter(judgement.verdict for judgement in judgements)
    counts_text = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in VERDICT_ORDER if counts[verdict]
    )
    starts = f"of {len(judgements)} starts: {counts_text}" if len(counts) > 1 else ""
    reason = "; ".join(filter(None, (starts, worst.reason)))
    flags = zip(*((judgement.falls, judgement.tied, judgement.sinks) for judgement in judgements))
    return Judgement(worst.verdict, reason, *(all(flag) for flag in flags))


def to_lowest(histories: Sequence[History | None], minimum: float) -> list[float]:
    """Return, for each run, the iteration from which its cost stays as low as the lowest final one.

    As low means up to `names.TIED` of the start's excess over the minimum, since the costs of
    converged step sizes differ by rounding. All runs have the same start.

    Args:
        histories: The costs `(k,)` of each run; None for a run that is not ranked.
        minimum: The cost from which the excess is measured.

    Returns:
        An iteration for each run; NaN where a run never stays as low.
    """
    ranked = [history for history in histories if history is not None]
    start_excess = max(float(ranked[0][0]) - minimum, 0.0) if ranked else 0.0
    goal = min((history[-1] for history in ranked), default=0.0) + names.TIED * start_excess
    return [
        float("nan") if history is None else arrival_iteration(history, goal)
        for history in histories
    ]


def target_costs(minimum: float, reference: float) -> dict[str, float]:
    """Return the target costs: `g* + eps (g(0) - g*)` for each eps of `names.TARGETS`.

    Args:
        minimum: The least cost g*. It is 0 for strictly separable classes, whose targets are thus
            absolute, `eps g(0)`. For counts of misclassified points it is 0, too.
        reference: The cost g(0) at zero weights, the same under every scheme; or the number of
            points.

    Returns:
        Costs by the names of the targets, such as `1e-2`.
    """
    return {name: minimum + eps * (reference - minimum) for name, eps in names.TARGETS.items()}


def arrival_iteration(history: History, target: float) -> float:
    """Return the iteration from which the cost stays at most the target.

    A curve that touches the target and leaves it, or diverges later, has not reached it.

    Args:
        history: The costs, or counts, of the whole run `(K + 1,)`, NaN after a divergence.
        target: A cost, or a count.

    Returns:
        A whole number; NaN where the run does not end at most at the target.
    """
    above = np.flatnonzero(~(history <= target))  # NaN is above, too
    arrival = int(above[-1]) + 1 if len(above) else 0
    return float(arrival) if arrival < len(history) else float("nan")


def spread(values: History) -> tuple[float, ...]:
    """Return the median and both quartiles over starts of the iterations to a target.

    They are order statistics, not interpolated. A start that does not reach the target counts as
    infinite, and a quantile that falls on it is NaN.

    Args:
        values: The iterations of each start `(starts,)`, NaN where the target is not reached.
    """
    filled = np.where(np.isnan(values), np.inf, values)
    quantiles = np.quantile(filled, [0.5, 0.25, 0.75], method="higher")
    return tuple(np.where(np.isfinite(quantiles), quantiles, np.nan).tolist())
