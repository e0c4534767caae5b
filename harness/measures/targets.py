"""When a scheme reaches each target, at its best step size for it, on the grid or a finer one."""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from normbench import names
from normbench.engine.descent import Leave
from normbench.measures.contract import Descended, Findings, Finished, Measure
from normbench.theory.budget import FREE_PRODUCTS
from normbench.verdicts import refinement
from normbench.verdicts.convergence import shadow_tolerance
from normbench.verdicts.judging import Step, fastest
from normbench.verdicts.refinement import Fewest

NOTHING = float("nan")
# In which the targets are refined: those that the grid reaches first, as they are reported.
ORDER = ("1e-2", "1e-1", "1e-3")


def take(made: Finished) -> Findings:
    """Return iterations and seconds to each target, the step size, and the range of iterations.

    NaN where no step size gets there. `refined_step_sizes` (S,) are those beside the grid's, with
    their training costs `refined_cost` (S, A, K + 1). The tag `refined` is JSON: `numbers`, the
    step sizes' places on the lattice, by target what each takes, and `targets`, those for which
    the finest step sizes were tried.
    """
    here = made.descended
    assert here is not None
    tried = {refinement.number_of(step.step_size): step for step in here.steps}
    grid = dict(tried)
    windows: dict[str, list[int]] = {}
    finer = _Finer(here, tried)
    if _refines(made):
        for target in finer.order:
            window = finer.window(target)
            if window is None:
                break
            windows[target] = window
    metrics: dict[str, float] = {}
    for target in names.TARGETS:
        counts = _counts(tried, target)
        found = refinement.fewest(counts, windows[target]) if windows.get(target) else None
        if found is None:
            found = _on_grid(grid, counts)
            if found or windows.get(target):  # single step sizes reach it, and no neighbours
                windows.pop(target, None)
        metrics |= _told(here, tried, target, found)
    if not windows and not finer.added:
        return Findings(metrics)
    numbers = sorted(finer.added)
    told = {
        "numbers": numbers,
        **{
            target: [_whole(counts[number]) for number in numbers]
            for target in names.TARGETS
            for counts in [_counts(tried, target)]
        },
        "targets": sorted(windows),
    }
    arrays = {}
    if numbers:
        arrays = {
            "refined_step_sizes": np.array([refinement.step_size_of(n) for n in numbers]),
            "refined_cost": np.stack([finer.added[number] for number in numbers]),
        }
    return Findings(metrics, {names.REFINED.key: json.dumps(told)}, arrays=arrays)


class _Finer:
    """The step sizes that are tried beside the grid's; tried: by number, and those of the grid."""

    def __init__(self, here: Descended, tried: dict[float, Step]) -> None:
        self.here, self.tried = here, tried
        self.added: dict[int, np.ndarray] = {}  # their training costs, (A, K + 1)
        settings = here.settings
        self.grid = settings.iterations * len(here.steps) * settings.starts
        self.made = int(np.isfinite(here.histories.cost[:, 1:]).sum())
        missed = {t: fastest(here.steps, names.reached(t)) is None for t in ORDER}
        self.order = sorted(ORDER, key=lambda target: missed[target])

    def window(self, target: str) -> list[int] | None:
        """Return the numbers of the finest step sizes for a target; empty where none reaches it.

        None where it would cost more than is allowed.
        """
        here, known = self.here, fastest(self.here.steps, names.reached(target))
        best = fastest(here.steps, names.TO_LOWEST) if known is None else known
        if best is None:
            return None
        if known is None and self._hopeless(best, target):
            return []
        coarse = refinement.coarse_numbers(here.steps[best].step_size)
        work = self._work(coarse, known, target)
        if here.settings.refine is not True and work > self._allowed(target):
            return None
        arrivals = self._arrivals(coarse, target)
        fine = self._around(arrivals, target)
        if self._known(fine, target).get(_first(arrivals), 0.0) > min(arrivals.values()):
            self._descend(coarse)  # it arrived and did not stay: who stays is seen at the end
            fine = self._around(self._known(coarse, target), target)
        return fine

    def _around(self, counts: Mapping[float, float], target: str) -> list[int]:
        """Descend the neighbours of the best of some step sizes; return the numbers of all."""
        if np.isinf(min(counts.values())):
            return []
        fine = refinement.fine_numbers(int(_first(counts)))
        self._neighbours(fine, target)
        return fine

    def _hopeless(self, best: int, target: str) -> bool:
        here = self.here
        if here.bench.tie is None:  # which only plain descent on a quadratic cost has
            return False
        history = here.steps[best].histories[names.TRAIN_COST.key]
        return refinement.hopeless(history, here.bench.minimum, here.bench.targets[target])

    def _work(self, coarse: list[int], known: int | None, target: str) -> float:
        """Return the passes of all that was descended beside the grid, with a window to come."""
        iterations = self.here.settings.iterations
        first = float(iterations)
        if known is not None and not self.here.bench.points:
            first = self.here.steps[known].metrics[names.reached(target).key]
        missing = sum(number not in self.tried for number in coarse)
        fine = 2 * refinement.FINE_RADIUS * first + 4 * (iterations - first)
        spent = self.here.rounds.passes - self.made
        return spent + (2 * missing * first + fine) * len(self.here.start)

    def _allowed(self, target: str) -> float:
        """Return the passes that may be made beside the grid: as many, or a tenth of a second's.

        The latter for the first target and for the one that is reported first.
        """
        points = len(self.here.train.linear.targets) if self.here.train.linear else np.inf
        small = FREE_PRODUCTS / (4 * points * self.here.start[0].size)  # as of theory's budget
        return max(self.grid, small) if target in (self.order[0], ORDER[0]) else self.grid

    def _arrivals(self, coarse: list[int], target: str) -> dict[float, float]:
        """Return by number when step sizes come to the target; infinite for those after the first.

        Those that are not of the grid go no further than that.
        """
        here, counts = self.here, self._known(coarse, target)
        missing = [number for number in coarse if number not in counts]
        if here.bench.points:  # whose targets are not costs
            self._descend(missing)
            return self._known(coarse, target)
        if missing:
            gap = shadow_tolerance(
                float(here.histories.cost[0, 0]), here.bench.minimum, here.bench.epsilon
            )
            known = min(counts.values(), default=np.inf)
            first = refinement.FirstArrival(known, gap, *self._parts(len(missing), target))
            here.rounds.scout([refinement.step_size_of(number) for number in missing], first)
            counts |= dict(zip(missing, first.counts().tolist()))
        return counts

    def _neighbours(self, fine: list[int], target: str) -> None:
        """Descend the neighbours of a centre, as far as they are needed for the number."""
        missing = [number for number in fine if number not in self.tried]
        if self.here.bench.points or not missing:
            self._descend(missing)
            return
        parts = self._parts(len(missing), target)[1:]
        neighbours = refinement.Neighbours(self._known(fine, target), fine, missing, *parts)
        self._descend(missing, neighbours)
        found = refinement.fewest(self._known(fine, target), fine)
        if neighbours.decided is not None and (not found or found.iterations > neighbours.decided):
            self._descend(missing)  # those that had arrived did not stay

    def _known(self, numbers: list[int], target: str) -> dict[float, float]:
        return _counts({n: self.tried[n] for n in numbers if n in self.tried}, target)

    def _parts(self, step_sizes: int, target: str) -> tuple[int, int, float]:
        """Return what `refinement.Arrivals` needs."""
        return step_sizes, len(self.here.start), self.here.bench.targets[target]

    def _descend(self, numbers: Iterable[int], leave: Leave | None = None) -> None:
        """Descend the step sizes that were not tried; keep those that did not leave."""
        missing = [number for number in numbers if number not in self.tried]
        if not missing:
            return
        sizes = [refinement.step_size_of(number) for number in missing]
        for number, step, cost, ended in zip(missing, *self.here.finer(sizes, leave)):
            if ended:
                self.tried[number], self.added[number] = step, cost


def _first(counts: Mapping[float, float]) -> float:
    """Return the number that takes the fewest iterations; of equal ones the smallest."""
    return min(counts, key=lambda number: (counts[number], number))


def _refines(made: Finished) -> bool:
    here = made.descended
    assert here is not None
    settings = here.settings
    if settings.refine is False or settings.iterations == 0 or here.optimizer.gridless:
        return False
    # Points that are read would be read again for each descent.
    return settings.refine is True or isinstance(made.dataset.x, np.ndarray)


def _counts(tried: Mapping[float, Step], target: str) -> dict[float, float]:
    """Return iterations to a target by number, infinite where it is not reached."""
    key = names.reached(target).key
    counts = {number: step.metrics.get(key, NOTHING) for number, step in tried.items()}
    return {number: np.inf if np.isnan(count) else count for number, count in counts.items()}


def _on_grid(grid: Mapping[float, Step], counts: Mapping[float, float]) -> Fewest | None:
    best = _first({number: counts[number] for number in grid})
    if np.isinf(counts[best]):
        return None
    found = refinement.bound_iterations(counts[best], best, counts)
    return found._replace(step_size=grid[best].step_size)


def _told(
    here: Descended, tried: Mapping[float, Step], target: str, found: Fewest | None
) -> dict[str, float]:
    """Return the metrics of a target; found: None where nothing reaches it."""
    iterations, size, least = found or (NOTHING, NOTHING, NOTHING)
    seconds = here.bench.fit_seconds + iterations * here.bench.seconds_a_step
    metrics = {
        names.own_step(target).key: size,
        names.reached(target).key: iterations,
        names.reached(target, "seconds").key: seconds,
        names.least(target).key: least,
    }
    own = tried[refinement.number_of(size)].metrics if found else {}
    for measure in names.MEASURES:
        for part in names.QUARTILES:
            quartile = names.quartile(names.reached(target, measure), part).key
            if quartile in own or len(here.start) > 1:
                metrics[quartile] = own.get(quartile, NOTHING)
    return metrics


def _whole(count: float) -> float | None:
    return float(count) if np.isfinite(count) else None


MEASURE = Measure(take)
