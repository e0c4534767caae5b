"""When a scheme reaches each target, at its best step size for it, on the grid or a finer one."""

import json
from collections.abc import Iterable, Mapping

import numpy as np

from normbench import names
from normbench.measures.contract import Descended, Findings, Finished, Measure
from normbench.verdicts import refinement
from normbench.verdicts.judging import Step, fastest
from normbench.verdicts.refinement import Fewest

NOTHING = float("nan")
ORDER = ("1e-2", "1e-1", "1e-3")  # in which the targets are refined: the first is what is reported


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
        allowed = np.inf if here.settings.refine is True else len(here.steps)
        for target in ORDER:
            window = finer.window(target, allowed)
            if window is None:
                break
            windows[target] = window
    metrics: dict[str, float] = {}
    for target in names.TARGETS:
        counts = _counts(tried, target)
        found = refinement.fewest(counts, windows[target]) if windows.get(target) else None
        if found is None:
            found = _on_grid(grid, target, counts)
            if found or windows.get(target):  # single step sizes reach it, and no neighbours
                windows.pop(target, None)
        metrics |= _told(here, tried, target, found)
    if not finer.added:
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
    arrays = {
        "refined_step_sizes": np.array([refinement.step_size_of(number) for number in numbers]),
        "refined_cost": np.stack([finer.added[number] for number in numbers]),
    }
    return Findings(metrics, {names.REFINED.key: json.dumps(told)}, arrays=arrays)


class _Finer:
    """The step sizes that are tried beside the grid's; tried: by number, and those of the grid."""

    def __init__(self, here: Descended, tried: dict[float, Step]) -> None:
        self.here, self.tried = here, tried
        self.added: dict[int, np.ndarray] = {}  # their training costs, (A, K + 1)

    def window(self, target: str, allowed: float) -> list[int] | None:
        """Return the numbers of the finest step sizes for a target; empty where none reaches it.

        None where it would cost more than is allowed, in step sizes: the first descent must be
        within it, another begins while some of it is left.
        """
        goal = names.reached(target)
        best = fastest(self.here.steps, goal)
        best = fastest(self.here.steps, names.TO_LOWEST) if best is None else best
        if best is None:
            return None
        coarse = refinement.coarse_numbers(self.here.steps[best].step_size)
        if not self._try(coarse, allowed):
            return None
        counts = _counts({number: self.tried[number] for number in coarse}, target)
        centre = min(coarse, key=lambda number: (counts[number], number))
        if np.isinf(counts[centre]):
            return []
        fine = refinement.fine_numbers(centre)
        return fine if self._try(fine, allowed) else None

    def _try(self, numbers: Iterable[int], allowed: float) -> bool:
        """Descend step sizes that were not tried; return False where they cost too much."""
        missing = [number for number in numbers if number not in self.tried]
        spent = len(self.added)
        if missing and (spent >= allowed or (not spent and len(missing) > allowed)):
            return False
        if missing:
            sizes = [refinement.step_size_of(number) for number in missing]
            steps, cost = self.here.finer(sizes)
            self.tried |= dict(zip(missing, steps))
            self.added |= dict(zip(missing, cost))
        return True


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


def _on_grid(
    grid: Mapping[float, Step], target: str, counts: Mapping[float, float]
) -> Fewest | None:
    best = min(grid, key=lambda number: (counts[number], number))
    if np.isinf(counts[best]):
        return None
    found = refinement.with_range(counts[best], best, counts)
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
