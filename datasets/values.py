"""Checks of single settings: each returns the value, or raises `UserError` in one line."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any


class UserError(ValueError):
    """A user's mistake, told in one line: the setting, its value, the rule and the remedy."""


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return value as an int; raise `UserError` unless it is a whole number within the bounds."""
    rule = f"{least} or more" if most is None else f"from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
        raise UserError(f"{name}={value}: must be a whole number, {rule}")
    count = int(float(value))
    if count < least or (most is not None and count > most):
        raise UserError(f"{name}={value}: must be {rule}")
    return count


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Return value as a float; raise `UserError` unless it is finite and within the bounds."""
    rules = [f"{least:g} or more"] if least is not None else []
    rules += [f"above {above:g}"] if above is not None else []
    rules += [f"below {below:g}"] if below is not None else []
    rules += [f"{most:g} or less"] if most is not None else []
    wrong = isinstance(value, bool) or not isinstance(value, Real)
    if (
        wrong
        or not math.isfinite(value)
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
        or (most is not None and value > most)
    ):
        bounds = f", {' and '.join(rules)}" if rules else ""
        raise UserError(f"{name}={value}: must be a finite number{bounds}")
    return float(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return value; raise `UserError` that lists the choices unless it is one of them."""
    if value not in choices:
        raise UserError(f"{name}={value}: must be one of {', '.join(choices)}")
    return str(value)


def switch(name: str, value: Any) -> bool:
    """Return value; raise `UserError` unless it is true or false."""
    if not isinstance(value, bool):
        raise UserError(f"{name}={value}: must be true or false")
    return value
