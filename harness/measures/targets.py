"""The targets of a job, and the step sizes that reach them or fail, on finer grids too."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from normbench import names
from normbench.datasets.on_disk.points import is_in_memory
from normbench.measures.contract import (
    RULES,
    UNKNOWN,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    measure,
)
from normbench.verdicts import search
from normbench.verdicts.judging import Step, find_fastest
from normbench.verdicts.search import Fewest, critical_step

REPORTED, EASIER = "1e-2", "1e-1"  # the target that is reported; where none reaches it, the easier
MAX_SMALL_PRODUCTS = 1e9  # of points and weights, over a descent that takes about a second


@measure()
def least_cost(job: FinishedJob) -> Findings:
    """Return the least cost, its gradient norm, its source, and the targets that follow from it.

    The targets are counts where step sizes are compared by misclassified points, and a tag says so.
    Otherwise they are costs.
    """
    least, context = job.descent.least, job.descent.judging_context
    # No higher than the lowest recorded cost, as the targets that runs are judged by.
    metrics = {names.MINIMUM.key: context.minimum, names.MINIMUM_GRADIENT.key: least.gradient_norm}
    metrics |= {names.target(name).key: goal for name, goal in context.targets.items()}
    tags = {
        names.MINIMUM_SOURCE.key: least.source,
        names.MINIMUM_REACHED.key: str(least.is_solved).lower(),
        names.AT_INFINITY.key: str(least.at_infinity).lower(),
        names.MINIMUM_CASE.key: least.case,
    }
    if context.compared_points:
        tags[names.COMPARED.key] = names.MISCLASSIFICATIONS
    return Findings(metrics, tags)


@measure(on_request=True, depends_on=RULES)
def critical(job: FinishedJob) -> Findings:
    """Return the bracket of the critical step size, and the number of descents of the search.

    The critical step size is the smallest that fails, see `Judgement.fails`; each round of the
    bisection descends a few step sizes. An end of the bracket is NaN where nothing passed, or
    nothing failed. The tag says whether the search ended without a failure, so that the bracket has
    no upper end. Nothing where the user did not ask for it.
    """
    descent = job.descent
    if not descent.search.critical:
        return Findings()

    def fails(step_sizes: Sequence[float]) -> list[bool]:
        """Descend step sizes from all starts; return for each whether it was too large."""
        return [step.judgement.fails for step in descent.descend_finer(step_sizes)[0]]

    # Without a finite threshold 2/L the search starts from the first step size of the grid.
    first = descent.theory.threshold or np.inf
    first = first if np.isfinite(first) else descent.settings.step_sizes[0]
    # Half of it: the first descent then has step sizes on both sides of 2/L.
    bracket = critical_step(fails, first / 2, descent.search.width)
    metrics = {
        names.CRITICAL.key: bracket.lower or np.nan,
        names.CRITICAL_UPPER.key: bracket.upper or np.nan,
        names.CRITICAL_DESCENTS.key: bracket.descents,
    }
    return Findings(metrics, {names.CENSORED_CRITICAL.key: str(bracket.upper is None).lower()})


@measure()
def targets(job: FinishedJob) -> Findings:
    """Return iterations and seconds to each target, the step size, and a bound of the iterations.

    They are those of the best step size for the target, and NaN where no step size reaches it. Step
    sizes beside the grid lie on a lattice `10^(n/16)` and are named by the number n, see
    `verdicts.search`. `refined_step_sizes` (S,) are these step sizes, with their training costs
    `refined_cost` (S, A, K + 1) from A starts. The tag `refined` is JSON: `numbers`, the lattice
    numbers of these step sizes; for each target, the iterations of each step size; `targets`, the
    targets whose number of iterations is that of finer step sizes, or which finer ones were found
    not to reach either; and `by_rounding`, the numbers of the step sizes whose runs rounding
    decides, where there are any.
    """
    descent = job.descent
    grid = {search.lattice_number(step.step_size): step for step in descent.steps}
    # By lattice number, which is no integer for a step size of the grid beside the lattice.
    tried, finer_costs = dict(grid), dict[int, Array]()
    windows = _descend_finer(job, tried, finer_costs)
    metrics: dict[str, float] = {}
    counts = {target: _count_iterations(tried, target) for target in names.TARGETS}
    refined = []
    for target, target_counts in counts.items():
        on_grid = _find_fewest_on_grid(grid, target_counts)
        window = windows.get(target)
        # None where no step size of the window reaches it, or only isolated ones do.
        fewest = search.fewest_iterations(target_counts, window) if window else None
        if fewest or (window == [] and on_grid is None):
            refined.append(target)
        metrics |= _target_metrics(descent, tried, target, fewest or on_grid)
    if not refined and not finer_costs:
        return Findings(metrics)
    numbers = sorted(finer_costs)
    finite_counts = {
        target: [counts[target][n] if np.isfinite(counts[target][n]) else None for n in numbers]
        for target in names.TARGETS
    }
    facts = {"numbers": numbers, **finite_counts, "targets": refined}
    unsure = [number for number in numbers if tried[number].verdict == names.BY_ROUNDING]
    if unsure:
        facts[search.DECIDED_BY_ROUNDING] = unsure
    arrays = {}
    if numbers:
        arrays["refined_step_sizes"] = np.array([search.step_size_of(n) for n in numbers])
        arrays["refined_cost"] = np.stack([finer_costs[number] for number in numbers])
    return Findings(metrics, {names.REFINED.key: json.dumps(facts)}, arrays=arrays)


def _descend_finer(
    job: FinishedJob, tried: dict[float, Step], finer_costs: dict[int, Array]
) -> dict[str, list[int]]:
    """Descend coarse step sizes around the best of the grid, then fine ones around these.

    Args:
        job: The finished job.
        tried: The steps by lattice number, to which the finer ones are added.
        finer_costs: Gets the training costs (A, K + 1) of the finer step sizes, by lattice number.

    Returns:
        By target, the lattice numbers of its fine step sizes; empty where no coarse one reaches
        the target. Targets that are not refined are left out, as are all where no run is ranked.
    """
    descent = job.descent

    def descend(numbers_by_target: Iterable[list[int]]) -> None:
        """Descend and add those step sizes that were not tried."""
        missing = sorted(set(chain.from_iterable(numbers_by_target)) - tried.keys())
        if missing:
            sizes = [search.step_size_of(number) for number in missing]
            steps, costs = descent.descend_finer(sizes)
            tried.update(zip(missing, steps))
            finer_costs.update(zip(missing, costs))

    coarse = {}
    for target in _refined_targets(job):
        best = find_fastest(descent.steps, names.reached(target))
        if best is None:  # the grid misses the target
            best = find_fastest(descent.steps, names.TO_LOWEST)
        if best is not None:
            coarse[target] = search.coarse_numbers(descent.steps[best].step_size)
    descend(coarse.values())
    fine = {}
    for target, numbers in coarse.items():
        counts = _count_iterations({number: tried[number] for number in numbers}, target)
        best_number = _number_of_fewest(counts)
        is_reached = np.isfinite(counts[best_number])
        fine[target] = search.fine_numbers(int(best_number)) if is_reached else []
    descend(fine.values())
    return fine


def _refined_targets(job: FinishedJob) -> Iterable[str]:
    """Return the targets to which finer step sizes are tried.

    They are all with `refine=true`. With `auto` it is the one that is reported; where the grid
    misses it, both that may be, if the descent is small. None are where points are read from a
    disk, since they would be read again for each descent.
    """
    descent, settings = job.descent, job.descent.settings
    if settings.refine is False or settings.iterations == 0 or descent.optimizer.gridless:
        return ()
    if settings.refine is True:
        return names.TARGETS
    if not is_in_memory(job.dataset.x):
        return ()
    if find_fastest(descent.steps, names.reached(REPORTED)) is not None:
        return (REPORTED,)
    weights = descent.start.size * len(descent.steps)  # of all runs
    is_small = weights * settings.iterations * len(job.dataset.x) <= MAX_SMALL_PRODUCTS
    return (EASIER, REPORTED) if is_small else ()


def _number_of_fewest(counts: Mapping[float, float]) -> float:
    """Return the lattice number with the fewest iterations; of equal ones the smallest."""
    return min(counts, key=lambda number: (counts[number], number))


def _count_iterations(tried: Mapping[float, Step], target: str) -> dict[float, float]:
    """Return the iterations to a target by lattice number, infinite where it is not reached."""
    key = names.reached(target).key
    counts = {number: step.metrics.get(key, UNKNOWN) for number, step in tried.items()}
    return {number: np.inf if np.isnan(count) else count for number, count in counts.items()}


def _find_fewest_on_grid(
    grid: Mapping[float, Step], counts: Mapping[float, float]
) -> Fewest | None:
    """Return the fewest iterations over the grid alone; None where it does not reach the target.

    Args:
        grid: The step sizes of the grid, by lattice number.
        counts: The iterations of all step sizes that were tried, by lattice number: step sizes
            beside the grid still bound the iterations.
    """
    best = _number_of_fewest({number: counts[number] for number in grid})
    if np.isinf(counts[best]):
        return None
    bounded = search.bound_iterations(counts[best], best, counts)
    return bounded._replace(step_size=grid[best].step_size)  # as the user wrote it


def _target_metrics(
    descent: JudgedDescent, tried: Mapping[float, Step], target: str, fewest: Fewest | None
) -> dict[str, float]:
    """Return the metrics of a target, by their keys.

    Args:
        descent: The judged descent, which has the seconds of the fit and of an iteration.
        tried: All step sizes that were tried, by lattice number, for the quartiles over the starts.
        target: The name of the target.
        fewest: The fewest iterations to the target; None where no step size reaches it.
    """
    iterations, size, least = fewest or (UNKNOWN, UNKNOWN, UNKNOWN)
    context = descent.judging_context
    metrics = {
        names.best_step_for_target(target).key: size,
        names.reached(target).key: iterations,
        names.reached(target, "seconds").key: (
            context.fit_seconds + iterations * context.seconds_a_step
        ),
        names.least(target).key: least,
    }
    step_metrics = tried[search.lattice_number(size)].metrics if fewest else {}
    for unit in names.MEASURES:
        for quartile_name in names.QUARTILES:
            quartile = names.quartile(names.reached(target, unit), quartile_name).key
            # A single start has no quartiles. Of several, an unreached target has NaN.
            if quartile in step_metrics or len(descent.start) > 1:
                metrics[quartile] = step_metrics.get(quartile, UNKNOWN)
    return metrics
