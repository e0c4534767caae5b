"""Timing sides in turns: the machines are shared, so ratios of medians, never seconds."""

import resource
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

# Before each run: the threads of a matrix library spin for some 30 ms after its last product,
# and would take a core from whichever side comes next.
PAUSE = 0.1  # seconds


def of_children() -> float:
    """Return the processor's seconds of the processes that this one has started, and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def in_turns(
    sides: Mapping[str, Callable[[], Any]],
    turns: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds of each side, in turns, after one run of each that is not counted."""
    for run in sides.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, run in sides.items():
            time.sleep(PAUSE)
            tick = clock()
            run()
            seconds[name].append(clock() - tick)
    return seconds


def ratio(over: list[float], under: list[float]) -> float:
    """Return the median over turns of the ratio of two sides in the same turn."""
    return median(a / b for a, b in zip(over, under, strict=True))
