"""Ticks that can be read, and numbers as text."""

import math
from typing import Any

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_ticks(axis: Any, most: int = 8) -> None:
    """Set readable ticks on a logarithmic axis, 3 or more, all as 0.01 or all as 10⁻².

    axis: an x or y axis of a panel whose limits stand. most: of the powers of ten. The text is
    plain: matplotlib draws a formula much more slowly.
    """
    low, high = sorted(axis.get_view_interval())
    ticks = log_places(low, high, most)
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(ticks))
    powers = any(not 1e-3 <= tick < 1e4 for tick in ticks)
    axis.set_major_formatter(lambda value, _: power_text(value) if powers else f"{value:g}")


def log_places(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten within limits, evenly spaced; where few, with others between."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    for every in range(max(1, -(-(last - first) // most)), 0, -1):
        powers = [10.0**power for power in range(first, last + 1) if power % every == 0]
        if len(powers) > 2:
            return powers
    for units in ((1, 3), (1, 2, 5)):
        places = [unit * 10.0**power for power in range(first - 1, last + 1) for unit in units]
        shown = [place for place in places if low <= place <= high]
        if len(shown) > 2:
            return shown
    even = MaxNLocator(4, min_n_ticks=3).tick_values(low, high)
    return [float(tick) for tick in even if low <= tick <= high and tick > 0]


def even_ticks(axis: Any, most: int = 5) -> None:
    """Set ticks in even steps on a linear axis, 3 or more."""
    axis.set_major_locator(MaxNLocator(most, min_n_ticks=3))


def power_text(value: float) -> str:
    """Return a tick's number on an axis of powers: 10⁻⁵, 2·10⁶, 10⁰."""
    if value <= 0 or f"{value:.0e}" != f"{value:.4e}".replace(".0000", ""):
        return f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    unit, raised = round(value / 10.0**power), str(power).translate(SUPERSCRIPTS)
    return f"10{raised}" if unit == 1 else f"{unit}·10{raised}"


def short(value: float) -> str:
    """Return a number of three digits, its power of ten raised: 4.52·10⁻⁶, but 5210."""
    if 1e-3 <= abs(value) < 1e4 or not value:
        return f"{float(f'{value:.3g}'):g}"
    digits, power = f"{value:.2e}".split("e")
    return f"{float(digits):g}·10{str(int(power)).translate(SUPERSCRIPTS)}"
