"""Timing sides in turns: the machines are shared, so ratios of medians, never seconds."""

import importlib.util
import resource
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

# Before each run: the threads of a matrix library spin for some 30 ms after its last product,
# and would take a core from whichever side comes next.
PAUSE = 0.1  # seconds
Row = dict[str, Any]


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


def judged(name: str, value: float, sense: str = "", target: float | None = None) -> Row:
    """Return a row of the table, with its verdict where it has a target."""
    row: Row = {"name": name, "ratio": value}
    if target is not None:
        met = value <= target if sense == "at most" else value >= target
        row |= {"sense": sense, "target": target, "met": bool(met)}
    return row


def is_installed(package: str) -> bool:
    """Return whether a package that a side needs is here."""
    return importlib.util.find_spec(package) is not None


def absent(name: str, package: str) -> Row:
    """Return the row that says that a package is not installed."""
    return {"name": name, "ratio": None, "note": f"{package} is not installed"}


def line(row: Row) -> str:
    """Return a row of the table: what, ratio, target, whether it was met, threads and kernels."""
    if row.get("ratio") is None:
        return f"{row['name']:69}  {row['note']}"
    bound = f"{row['sense']} {row['target']:g}" if "target" in row else "reported"
    met = {True: "met", False: "MISSED", None: ""}[row.get("met")]
    ran = "; ".join(filter(None, (row.get("threads"), row.get("kernels"))))
    return f"{row['name']:69}  {row['ratio']:7.2f}  {bound:14} {met:6}  {ran}".rstrip()
