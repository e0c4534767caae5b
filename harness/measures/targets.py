"""The iterations to each target, at the best step size for it, on the grid or a finer one."""

import json
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, FinishedJob, JudgedDescent, Measure
from normbench.verdicts import refinement
from normbench.verdicts.judging import Step, find_fastest
from normbench.verdicts.refinement import Fewest

UNKNOWN = float("nan")
REPORTED, EASIER = "1e-2", "1e-1"  # the target that is reported; where none reaches it, the easier
MAX_SMALL_PRODUCTS = 1e9  # of points and weights, over a descent that takes about a second


def take(job: FinishedJob) -> Findings:
    """Return iterations and seconds to each target, the step size, and a bound of the iterations.

    They are NaN where no step size reaches the target. Step sizes beside the grid lie on a lattice
    `10^(n/16)` and are named by the number n, see `verdicts.refinement`. `refined_step_sizes` (S,)
    are these step sizes, with their training costs `refined_cost` (S, A, K + 1) from A starts. The
    tag `refined` is JSON: `numbers`, the lattice numbers of these step sizes; for each target, the
    iterations of each step size; `targets`, the targets whose number of iterations is that of
    finer step sizes, or which finer ones were found not to reach either; and `by_rounding`, the
    numbers of the step sizes whose runs rounding decides, where there are any.
    """
    descent = job.descent
    grid = {refinement.lattice_number(step.step_size): step for step in descent.steps}
    # By lattice number, which is no integer for a step size of the grid beside the lattice.
    tried, finer_costs = dict(grid), dict[int, Array]()
    windows = _descend_finer(job, tried, finer_costs)
    metrics: dict[str, float] = {}
    counts = {target: _count_iterations(tried, target) for target in names.TARGETS}
    refined = []
    for target, target_counts in counts.items():
        on_grid = _on_grid(grid, target_counts)
        window = windows.get(target)
        # None where no step size of the window reaches it, or only isolated ones do.
        fewest = refinement.fewest_iterations(target_counts, window) if window else None
        if fewest or (window == [] and on_grid is None):
            refined.append(target)
        metrics |= _target_metrics(descent, tried, target, fewest or on_grid)
    if not refined and not finer_costs:
        return Findings(metrics)
    numbers = sorted(finer_costs)
    refined_facts = {
        "numbers": numbers,
        **{target: [_json_number(counts[target][n]) for n in numbers] for target in names.TARGETS},
        "targets": refined,
    }
    unsure = [number for number in numbers if tried[number].verdict == names.BY_ROUNDING]
    if unsure:
        refined_facts[refinement.DECIDED_BY_ROUNDING] = unsure
    arrays = {}
    if numbers:
        arrays = {
            "refined_step_sizes": np.array([refinement.step_size_of(n) for n in numbers]),
            "refined_cost": np.stack([finer_costs[number] for number in numbers]),
        }
    return Findings(metrics, {names.REFINED.key: json.dumps(refined_facts)}, arrays=arrays)


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
            sizes = [refinement.step_size_of(number) for number in missing]
            steps, costs = descent.descend_finer(sizes)
            tried.update(zip(missing, steps))
            finer_costs.update(zip(missing, costs))

    coarse = {}
    for target in _refined_targets(job):
        best = find_fastest(descent.steps, names.reached(target))
        if best is None:  # the grid misses the target
            best = find_fastest(descent.steps, names.TO_LOWEST)
        if best is not None:
            coarse[target] = refinement.coarse_numbers(descent.steps[best].step_size)
    descend(coarse.values())
    fine = {}
    for target, numbers in coarse.items():
        counts = _count_iterations({number: tried[number] for number in numbers}, target)
        best_number = _number_of_fewest(counts)
        is_reached = np.isfinite(counts[best_number])
        fine[target] = refinement.fine_numbers(int(best_number)) if is_reached else []
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
    if not isinstance(job.dataset.x, np.ndarray):
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
    """Return the iterations to a target of each step size, infinite where it is not reached.

    Args:
        tried: The steps by lattice number: the place of a step size on the lattice of finer step
            sizes, see `refinement.lattice_number`.
        target: The target, a key of `names.TARGETS`.

    Returns:
        The iterations, by lattice number.
    """
    key = names.reached(target).key
    counts = {number: step.metrics.get(key, UNKNOWN) for number, step in tried.items()}
    return {number: np.inf if np.isnan(count) else count for number, count in counts.items()}


def _on_grid(grid: Mapping[float, Step], counts: Mapping[float, float]) -> Fewest | None:
    """Return the fewest iterations over the grid alone; None where it does not reach the target.

    Args:
        grid: The step sizes of the grid, by lattice number.
        counts: The iterations of all step sizes that were tried, by lattice number: step sizes
            beside the grid still bound the iterations.
    """
    best = _number_of_fewest({number: counts[number] for number in grid})
    if np.isinf(counts[best]):
        return None
    bounded = refinement.bound_iterations(counts[best], best, counts)
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
    seconds = (
        descent.judging_context.fit_seconds + iterations * descent.judging_context.seconds_a_step
    )
    metrics = {
        names.best_step_for_target(target).key: size,
        names.reached(target).key: iterations,
        names.reached(target, "seconds").key: seconds,
        names.least(target).key: least,
    }
    step_metrics = tried[refinement.lattice_number(size)].metrics if fewest else {}
    for measure in names.MEASURES:
        for quartile_name in names.QUARTILES:
            quartile = names.quartile(names.reached(target, measure), quartile_name).key
            # A single start has no quartiles. Of several, an unreached target has NaN.
            if quartile in step_metrics or len(descent.start) > 1:
                metrics[quartile] = step_metrics.get(quartile, UNKNOWN)
    return metrics


def _json_number(count: float) -> float | None:
    """Return a count as JSON can hold it: None where it is not finite."""
    return float(count) if np.isfinite(count) else None


MEASURE = Measure(take)
