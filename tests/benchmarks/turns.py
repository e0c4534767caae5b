"""Timing sides in turns: the machines are shared, so ratios of medians, never seconds."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

# Before each run: the threads of a matrix library spin for some 30 ms after its last product,
# and would take a core from whichever side comes next.
PAUSE = 0.1  # seconds


def in_turns(sides: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Return the seconds of each side, in turns, after one run of each that is not counted."""
    for run in sides.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, run in sides.items():
            time.sleep(PAUSE)
            tick = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - tick)
    return seconds


def ratio(over: list[float], under: list[float]) -> float:
    """Return the median over turns of the ratio of two sides in the same turn."""
    return median(a / b for a, b in zip(over, under, strict=True))
