"""The settings of a descent, checked where they come in."""

import math
from dataclasses import dataclass
from typing import Any

from normbench.datasets.values import NUMBER, did_you_mean, refuse_larger
from normbench.datasets.values import UserError as UserError
from normbench.datasets.values import number as number
from normbench.datasets.values import one_of as one_of
from normbench.datasets.values import switch as switch
from normbench.datasets.values import whole as whole

THEORY = ("auto", "full", "none")
PRECISIONS = ("float64", "float32")
STARTS = ("zeros", "normal", "same_function")
DRAWN = STARTS[1:]  # by a seed, so that there can be several
MOST_STEP_SIZES = 1000
HISTORIES = 4  # of a run: costs and counts, of the training and of the test points


@dataclass(frozen=True)
class Settings:
    """How the runs of one job start, step and end; every field is checked when it is made.

    step_sizes: distinct positive numbers. iterations: steps after the start. start: `zeros`,
    `normal` (start_scale times a standard normal, the same weights under every scheme),
    `same_function` (the same function under every affine scheme: see `engine.start`), or weights,
    bias first (one list, or one a class). starts: how many starts. seed: of the starts. theory:
    `auto` (what costs no more than the descent), `full` or `none`. shown_step: the step size whose
    run stands for its scheme, one of step_sizes; None for the best. shown_point: the training
    point, from 0, that `record=[components]` builds up. draws: the seeds that drew the data:
    another draw has other starts; zeros change nothing. fold: make no copy of the points under the
    scheme; the numbers are the same to rounding. Raises `UserError`.
    """

    step_sizes: tuple[float, ...]
    iterations: int = 100
    start: Any = "zeros"
    start_scale: float = 0.1
    starts: int = 1
    seed: int = 0
    precision: str = "float64"
    record: tuple[str, ...] = ()
    theory: str = "auto"
    shown_step: float | None = None
    shown_point: int = 0
    draws: tuple[int, ...] = ()
    fold: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "step_sizes", _step_sizes(self.step_sizes))
        put(self, "iterations", whole("iterations", self.iterations, 0))
        put(self, "start", _start(self.start))
        put(self, "start_scale", number("start_scale", self.start_scale, above=0))
        put(self, "starts", whole("starts", self.starts, 1))
        put(self, "seed", whole("seed", self.seed, 0))
        put(self, "precision", one_of("precision", self.precision, PRECISIONS))
        put(self, "record", _record(self.record))
        put(self, "theory", one_of("theory", self.theory, THEORY))
        put(self, "shown_step", _shown_step(self.shown_step, self.step_sizes))
        put(self, "shown_point", whole("shown_point", self.shown_point, 0))
        put(self, "fold", switch("fold", self.fold))
        runs = len(self.step_sizes) * self.starts
        refuse_larger(
            f"iterations={self.iterations}, starts={self.starts}, "
            f"{len(self.step_sizes)} step_sizes",
            HISTORIES * NUMBER * runs * (self.iterations + 1),
            "choose fewer",
        )
        if self.starts > 1 and self.start not in DRAWN:
            raise UserError(
                f"starts={self.starts}: start={self.start} is the same start every time; "
                "use start=normal or start=same_function with several starts"
            )


def decades(first: Any, last: Any, per_decade: Any = 1) -> list[float]:
    """Return the powers of ten from 10^first to 10^last, ends included, per_decade a decade.

    Whole exponents give the float that the literal gives (10^-3 is 0.001 to the last digit).
    """
    name = f"step_sizes=${{decades:{first},{last},{per_decade}}}"
    for part in (first, last, per_decade):
        if isinstance(part, bool) or not isinstance(part, int):
            raise UserError(f"{name}: {part} is not a whole number; write ${{decades:-7,2}}")
    if last < first or per_decade < 1 or not -300 <= first <= last <= 300:
        raise UserError(
            f"{name}: must run upwards between -300 and 300 with 1 point a decade or more; "
            "write ${decades:-7,2}"
        )
    count = (last - first) * per_decade + 1
    if count > MOST_STEP_SIZES:
        raise UserError(f"{name}: makes {count} step sizes; {MOST_STEP_SIZES} at most")
    exponents = [(first * per_decade + i, per_decade) for i in range(count)]
    return [float(f"1e{n // d}") if n % d == 0 else 10.0 ** (n / d) for n, d in exponents]


def _step_sizes(values: Any) -> tuple[float, ...]:
    remedy = "give a list of distinct positive numbers, such as step_sizes=[0.01,0.1,1]"
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise UserError(f"step_sizes={values}: is not a list; {remedy}")
    sizes = list(values)
    if not sizes:
        raise UserError(f"step_sizes=[]: is empty; {remedy}")
    for size in sizes:
        if isinstance(size, bool) or not hasattr(size, "__float__"):
            raise UserError(f"step_sizes={sizes}: {size!r} is not a number; {remedy}")
        if not (math.isfinite(size) and size > 0):
            raise UserError(f"step_sizes={sizes}: {size} is not positive and finite; {remedy}")
    sizes = [float(size) for size in sizes]
    if len(set(sizes)) < len(sizes):
        twice = next(size for size in sizes if sizes.count(size) > 1)
        raise UserError(f"step_sizes={sizes}: {twice:g} stands in it twice; {remedy}")
    return tuple(sizes)


def _shown_step(value: Any, step_sizes: tuple[float, ...]) -> float | None:
    if value is None:
        return None
    size = number("shown_step", value, above=0)
    if size not in step_sizes:
        tried = ", ".join(f"{one:g}" for one in step_sizes)
        raise UserError(f"shown_step={size:g}: is not one of step_sizes; choose of {tried}")
    return size


def _start(value: Any) -> Any:
    if isinstance(value, str) and value in STARTS:
        return value
    remedy = f"must be null, {', '.join(STARTS)}, or a list of weights with the bias first"
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        near = did_you_mean(value, ("null", *STARTS))
        raise UserError(f"start={value}: {remedy}{near}")
    rows = [list(row) if hasattr(row, "__iter__") else row for row in value]
    flat = [entry for row in rows for entry in (row if isinstance(row, list) else [row])]
    for entry in flat:
        number("start", entry, least=-math.inf)
    if not flat:
        raise UserError(f"start={value}: {remedy}")
    return tuple(tuple(row) if isinstance(row, list) else row for row in rows)


def _record(values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise UserError(f"record={values}: must be a list, such as record=[path,points]")
    return tuple(str(value) for value in values)  # which words there are, the measures say
