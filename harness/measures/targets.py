"""The iterations to each target, at the best step size for it, on the grid or a finer one."""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from normbench import names
from normbench.datasets.on_disk.points import is_in_memory
from normbench.engine.descent import Leave
from normbench.measures.contract import Findings, FinishedJob, JudgedDescent, Measure
from normbench.theory.budget import FREE_PRODUCTS
from normbench.verdicts import refinement
from normbench.verdicts.convergence import shadow_tolerance
from normbench.verdicts.judging import Step, find_fastest
from normbench.verdicts.refinement import Fewest

UNKNOWN = float("nan")
# The order in which targets are refined, within those that the grid reaches, which come first, and
# within the others. The first is the target that is reported first.
REFINEMENT_ORDER = ("1e-2", "1e-1", "1e-3")


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
    descent = job.judged_descent
    assert descent is not None
    # By lattice number, which is no integer for a step size of the grid beside the lattice. The
    # refiner adds its step sizes to `tried`.
    tried = {refinement.lattice_number(step.step_size): step for step in descent.steps}
    grid = dict(tried)
    windows: dict[str, list[int]] = {}  # the lattice numbers of the finest step sizes, by target
    refiner = _Refiner(descent, tried)
    if _refines(job):
        for target in refiner.order:
            window = refiner.window(target)
            if window is None:
                break  # the passes are spent: later targets, which matter less, stay unrefined
            windows[target] = window
    metrics: dict[str, float] = {}
    for target in names.TARGETS:
        counts = _count_iterations(tried, target)
        fewest = (
            refinement.fewest_iterations(counts, windows[target]) if windows.get(target) else None
        )
        if fewest is None:
            fewest = _on_grid(grid, counts)
            # Not refined: only isolated step sizes reach it. An empty window is kept, since it says
            # that finer step sizes do not reach the target, either.
            if fewest or windows.get(target):
                windows.pop(target, None)
        metrics |= _target_metrics(descent, tried, target, fewest)
    if not windows and not refiner.added:
        return Findings(metrics)
    numbers = sorted(refiner.added)
    # `_count_iterations` is called once for each target; the list of one element holds its result.
    refined_facts = {
        "numbers": numbers,
        **{
            target: [_json_number(counts[number]) for number in numbers]
            for target in names.TARGETS
            for counts in [_count_iterations(tried, target)]
        },
        "targets": sorted(windows),
    }
    unsure = [
        number
        for number in numbers
        if tried[number].judgement and tried[number].verdict == names.BY_ROUNDING
    ]
    if unsure:
        refined_facts[refinement.DECIDED_BY_ROUNDING] = unsure
    arrays = {}
    if numbers:
        arrays = {
            "refined_step_sizes": np.array([refinement.step_size_of(n) for n in numbers]),
            "refined_cost": np.stack([refiner.added[number] for number in numbers]),
        }
    return Findings(metrics, {names.REFINED.key: json.dumps(refined_facts)}, arrays=arrays)


class _Refiner:
    """Descends step sizes beside the grid, named by their numbers n on the lattice `10^(n/16)`.

    First come coarse step sizes within a decade of the best of the grid, then fine ones, the
    neighbours of the best of these.

    Attributes:
        descent: The judged descent of the grid.
        tried: All step sizes so far, those of the grid included, by lattice number.
        added: The training costs (A, K + 1) of the step sizes beside the grid, by lattice number.
        max_grid_passes: The passes that the grid could make at most.
        grid_passes: The passes that it made: its runs may have diverged before the last iteration.
        order: The targets, in the order in which they are refined.
    """

    def __init__(self, descent: JudgedDescent, tried: dict[float, Step]) -> None:
        self.descent, self.tried = descent, tried
        self.added: dict[int, np.ndarray] = {}
        settings = descent.settings
        self.max_grid_passes = settings.iterations * len(descent.steps) * settings.starts
        self.grid_passes = int(np.isfinite(descent.histories.cost[:, 1:]).sum())
        missed = {
            t: find_fastest(descent.steps, names.reached(t)) is None for t in REFINEMENT_ORDER
        }
        self.order = sorted(REFINEMENT_ORDER, key=lambda target: missed[target])

    def window(self, target: str) -> list[int] | None:
        """Descend finer step sizes for a target.

        Args:
            target: The name of the target, such as `1e-2`.

        Returns:
            The lattice numbers of the finest step sizes; empty where no finer step size reaches the
            target. None where no step size of the grid stays finite, or where the descents would
            take more passes than allowed.
        """
        descent, grid_fastest = (
            self.descent,
            find_fastest(self.descent.steps, names.reached(target)),
        )
        best = (
            find_fastest(descent.steps, names.TO_LOWEST) if grid_fastest is None else grid_fastest
        )
        if best is None:
            return None
        # Where the grid misses the target, the step size of the lowest cost is refined, unless it
        # is certain that no step size around it reaches the target.
        if grid_fastest is None and self._hopeless(best, target):
            return []
        coarse = refinement.coarse_numbers(descent.steps[best].step_size)
        work = self._work(coarse, grid_fastest, target)
        # With refine=true the user asks for the work, however much it is.
        if descent.settings.refine is not True and work > self._allowed(target):
            return None
        arrivals = self._arrivals(coarse, target)
        fine = self._descend_around(arrivals, target)
        # The full history of the best coarse step size, which is among the fine ones; 0.0 where no
        # coarse step size reaches the target, and there are no fine ones.
        full_count = self._tried_counts(fine, target).get(_number_of_fewest(arrivals), 0.0)
        if full_count > min(arrivals.values()):
            self._descend(coarse)  # it reached the target and left it again: full histories tell
            fine = self._descend_around(self._tried_counts(coarse, target), target)
        return fine

    def _descend_around(self, counts: Mapping[float, float], target: str) -> list[int]:
        """Descend the neighbours of the best of coarse step sizes.

        Args:
            counts: The iterations of the coarse step sizes to the target, by lattice number.
            target: The name of the target.

        Returns:
            The lattice numbers of the best step size and its neighbours; empty where no coarse step
            size reaches the target.
        """
        if np.isinf(min(counts.values())):
            return []
        fine = refinement.fine_numbers(int(_number_of_fewest(counts)))
        self._descend_neighbours(fine, target)
        return fine

    def _hopeless(self, best: int, target: str) -> bool:
        """Return whether no step size within a decade of the best one can reach a target.

        Args:
            best: The index of the grid's step size with the lowest cost.
            target: The name of the target.

        Returns:
            True where that is certain, of plain descent on a quadratic cost; else False.
        """
        descent = self.descent
        if (
            descent.judging_context.tie_step_size is None
        ):  # only plain descent on a quadratic cost has a tie
            return False
        history = descent.steps[best].histories[names.TRAIN_COST.key]
        return refinement.cannot_reach(
            history, descent.judging_context.minimum, descent.judging_context.targets[target]
        )

    def _work(self, coarse: list[int], grid_fastest: int | None, target: str) -> float:
        """Return the passes of all descents beside the grid, with those of a further window.

        Those of the window are estimated: the missing coarse step sizes and their shadows descend
        until the target is reached, as do six neighbours of the best one; of these four go on.

        Args:
            coarse: The lattice numbers of the coarse step sizes.
            grid_fastest: The index of the grid's step size that reaches the target first; None
                where none does.
            target: The name of the target.

        Returns:
            Passes over the points, each of one run's gradient, of all starts.
        """
        iterations = self.descent.settings.iterations
        arrival = float(iterations)
        # Runs that are compared by misclassified points do not end at the target.
        if grid_fastest is not None and not self.descent.judging_context.compared_points:
            arrival = self.descent.steps[grid_fastest].metrics[names.reached(target).key]
        missing = sum(number not in self.tried for number in coarse)
        coarse_passes = 2 * missing * arrival  # 2: each with its shadow
        fine_passes = 2 * refinement.FINE_RADIUS * arrival + 4 * (iterations - arrival)
        spent = self.descent.rounds.run_iterations - self.grid_passes
        return spent + (coarse_passes + fine_passes) * len(self.descent.start)

    def _allowed(self, target: str) -> float:
        """Return the passes that descents beside the grid may take: as many as those of the grid.

        The first target, and the one that is reported first, may take a tenth of a second.
        """
        points = len(self.descent.train.linear.targets) if self.descent.train.linear else np.inf
        # As in the budget of theory: a pass is 4 multiplications for each point and weight.
        free_passes = FREE_PRODUCTS / (4 * points * self.descent.start[0].size)
        comes_first = target in (self.order[0], REFINEMENT_ORDER[0])
        return max(self.max_grid_passes, free_passes) if comes_first else self.max_grid_passes

    def _arrivals(self, coarse: list[int], target: str) -> dict[float, float]:
        """Return the iterations of coarse step sizes to a target, by lattice number.

        Step sizes that were not tried descend only until the first of them arrives, so that all
        later ones count as infinite, and these histories are not kept. Where the targets are counts
        of misclassified points, which a descent does not know as it goes, they descend to the end.

        Args:
            coarse: The lattice numbers of the coarse step sizes.
            target: The name of the target.
        """
        descent, counts = self.descent, self._tried_counts(coarse, target)
        missing = [number for number in coarse if number not in counts]
        if descent.judging_context.compared_points:
            self._descend(missing)
            return self._tried_counts(coarse, target)
        if missing:
            # How far a run may be from its shadow before rounding decides where it ends.
            gap = shadow_tolerance(
                float(descent.histories.cost[0, 0]),
                descent.judging_context.minimum,
                descent.judging_context.epsilon,
            )
            earliest = min(counts.values(), default=np.inf)
            first = refinement.FirstArrival(
                earliest, gap, *self._arrival_arguments(len(missing), target)
            )
            descent.rounds.scout([refinement.step_size_of(number) for number in missing], first)
            counts |= dict(zip(missing, first.counts().tolist()))
        return counts

    def _descend_neighbours(self, fine: list[int], target: str) -> None:
        """Descend fine step sizes that were not tried, as far as the number of iterations needs.

        Args:
            fine: Consecutive lattice numbers around the best coarse step size.
            target: The name of the target.
        """
        missing = [number for number in fine if number not in self.tried]
        if self.descent.judging_context.compared_points or not missing:
            self._descend(missing)
            return
        arrival_arguments = self._arrival_arguments(len(missing), target)[1:]
        neighbours = refinement.EndLateNeighbours(
            self._tried_counts(fine, target), fine, missing, *arrival_arguments
        )
        self._descend(missing, neighbours)
        fewest = refinement.fewest_iterations(self._tried_counts(fine, target), fine)
        if neighbours.decided is not None and (
            not fewest or fewest.iterations > neighbours.decided
        ):
            self._descend(missing)  # those that had reached the target left it again

    def _tried_counts(self, numbers: list[int], target: str) -> dict[float, float]:
        """Return the iterations to a target by number, of the given numbers that were tried."""
        return _count_iterations({n: self.tried[n] for n in numbers if n in self.tried}, target)

    def _arrival_arguments(self, step_sizes: int, target: str) -> tuple[int, int, float]:
        """Return the arguments of `refinement.Arrivals`: step sizes, starts, the target's cost."""
        return step_sizes, len(self.descent.start), self.descent.judging_context.targets[target]

    def _descend(self, numbers: Iterable[int], leave: Leave | None = None) -> None:
        """Descend the step sizes that were not tried; add those that did not end early.

        Args:
            numbers: Lattice numbers.
            leave: Ends runs early, see `JudgedDescent.descend_finer`; None to descend to the end.
        """
        missing = [number for number in numbers if number not in self.tried]
        if not missing:
            return
        sizes = [refinement.step_size_of(number) for number in missing]
        for number, step, cost, complete in zip(missing, *self.descent.descend_finer(sizes, leave)):
            if complete:
                self.tried[number], self.added[number] = step, cost


def _number_of_fewest(counts: Mapping[float, float]) -> float:
    """Return the lattice number with the fewest iterations; of equal ones the smallest."""
    return min(counts, key=lambda number: (counts[number], number))


def _refines(job: FinishedJob) -> bool:
    """Return whether finer step sizes are tried: by default where the points are in memory."""
    descent = job.judged_descent
    assert descent is not None
    settings = descent.settings
    if settings.refine is False or settings.iterations == 0 or descent.optimizer.gridless:
        return False
    # Points that memory need not hold would be read again for each descent.
    return settings.refine is True or is_in_memory(job.dataset.x)


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
