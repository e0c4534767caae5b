"""Readable ticks of an axis, and numbers as text."""

import math
from typing import Any

from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def set_log_ticks(axis: Any, max_powers: int = 8) -> None:
    """Set 3 or more readable ticks on a logarithmic axis, all as 0.01 or all as 10⁻².

    The labels are plain text, because matplotlib renders a formula much more slowly.

    Args:
        axis: the x or y axis of a panel whose limits are set.
        max_powers: the approximate largest number of powers of ten.
    """
    low, high = sorted(axis.get_view_interval())
    tick_values = log_tick_values(low, high, max_powers)
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(FixedLocator(tick_values))
    as_powers = any(not 1e-3 <= tick < 1e4 for tick in tick_values)
    axis.set_major_formatter(lambda value, _: power_text(value) if as_powers else f"{value:g}")


def log_tick_values(low: float, high: float, max_powers: int) -> list[float]:
    """Return the ticks of a logarithmic axis: powers of ten, or closer values on a short axis.

    If fewer than three evenly spaced powers lie within the limits, the ticks are the multiples by
    1 and 3, or by 1, 2 and 5; if these are too few as well, they are evenly spaced.

    Args:
        low: The lower limit of the axis, above 0.
        high: The upper limit.
        max_powers: The approximate largest number of powers of ten.

    Returns:
        Increasing values, three or more where the limits allow it.
    """
    # The tolerance keeps a power of ten that is a limit in spite of rounding.
    first_power, last_power = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    # The smallest stride that does not give too many powers; smaller ones if these are too few.
    # `-(-a // b)` is a / b rounded up.
    for stride in range(max(1, -(-(last_power - first_power) // max_powers)), 0, -1):
        powers = [
            10.0**power for power in range(first_power, last_power + 1) if power % stride == 0
        ]
        if len(powers) > 2:
            return powers
    # From the power of ten below the lower limit, whose multiples may lie within the limits.
    for units in ((1, 3), (1, 2, 5)):
        candidates = [
            unit * 10.0**power for power in range(first_power - 1, last_power + 1) for unit in units
        ]
        visible_ticks = [candidate for candidate in candidates if low <= candidate <= high]
        if len(visible_ticks) > 2:
            return visible_ticks
    linear_ticks = MaxNLocator(4, min_n_ticks=3).tick_values(low, high)
    return [float(tick) for tick in linear_ticks if low <= tick <= high and tick > 0]


def set_even_ticks(axis: Any, max_steps: int = 5) -> None:
    """Set 3 or more evenly spaced ticks on a linear axis.

    Args:
        axis: The x or y axis of a panel.
        max_steps: The largest number of intervals between ticks.
    """
    axis.set_major_locator(MaxNLocator(max_steps, min_n_ticks=3))


def power_text(value: float) -> str:
    """Return the label of a tick on an axis of powers of ten: 10⁻⁵, 2·10⁶, 10⁰.

    A number that is not positive, or has several significant digits, is written as `:g` does.
    """
    # With one significant digit, as in 2e+06, the next four digits are 0.
    if value <= 0 or f"{value:.0e}" != f"{value:.4e}".replace(".0000", ""):
        return f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    unit, exponent = round(value / 10.0**power), str(power).translate(SUPERSCRIPTS)
    return f"10{exponent}" if unit == 1 else f"{unit}·10{exponent}"


def short_text(value: float) -> str:
    """Return a number with three digits and its power of ten: 4.52·10⁻⁶, but 5210."""
    if 1e-3 <= abs(value) < 1e4 or not value:  # without a power; `:g` drops trailing zeros
        return f"{float(f'{value:.3g}'):g}"
    digits, power = f"{value:.2e}".split("e")
    return f"{float(digits):g}·10{str(int(power)).translate(SUPERSCRIPTS)}"
