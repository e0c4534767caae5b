"""Check the values of single settings: each function returns the value or raises a `UserError`."""

import operator
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any

LARGEST_FLOAT = sys.float_info.max
# Of the available memory, for one array: points are copied, normalized, multiplied.
ARRAY_SHARE = 1 / 4
FLOAT64_BYTES = 8  # bytes of a number in float64
# A number, and a unit: b, kb and kib to tb and tib.
SIZE_PATTERN = re.compile(r"\s*(\d+\.?\d*(?:e[+-]?\d{1,3})?)\s*(?:([kmgt]i?)?b)?\s*", re.IGNORECASE)
CONTAINER = Path("/sys/fs/cgroup")  # its files say what memory a container may use, and uses


class UserError(ValueError):
    """A user's mistake, in one line: the setting, its value, the rule and the remedy."""


RESERVED = ("true", "false", "null", "nan", "inf")  # as text they need quotes on the command line
# Within `python_spelling` its argument, else None.
_python_names: ContextVar[Mapping[str, str] | None] = ContextVar("in_python", default=None)


@contextmanager
def python_spelling(**names: str) -> Iterator[None]:
    """Spell settings in errors as arguments of `compare()`, until the context exits.

    Args:
        **names: The argument of `compare()` by the name of its setting, such as
            `normalizer="normalizers"`. Settings that are not listed have the last part of their
            name, `fill` for `dataset.fill`.
    """
    token = _python_names.set(names)
    try:
        yield
    finally:
        _python_names.reset(token)


def spell_setting(name: str, value: Any = ..., shell: bool = False) -> str:
    """Return a setting, with its value if there is one, as the user writes it.

    It is `dataset.fill=median` on the command line, and `fill='median'` in Python.

    Args:
        name: The name of the setting.
        value: The value; `...` for the name alone, since None is a value.
        shell: Whether to add the quotes that protect the option from a shell, and its text from
            Hydra's grammar. Errors name a setting without them, and remedies have them. Without
            effect in Python.
    """
    names = _python_names.get()
    if names is not None:  # in Python
        name = names.get(name, name.rpartition(".")[2])
        value_text = repr(value) if isinstance(value, (str, list)) else str(value)
        return name if value is ... else f"{name}={value_text}"
    if value is ...:
        return name
    if isinstance(value, (list, tuple)):
        value = f"[{','.join(map(quote_value, value))}]"
    elif isinstance(value, dict):
        value = f"{{{', '.join(f'{key}: {quote_value(entry)}' for key, entry in value.items())}}}"
    elif shell:
        value = quote_value(value)
    option = f"{name}={format_value(value)}"
    # A shell ends a quoted text at a quote: that one stands between double quotes, '"'"'.
    return "'" + option.replace("'", "'\"'\"'") + "'" if shell else option


def in_python() -> bool:
    """Return whether errors are for the caller of `compare()`, not for the command line."""
    return _python_names.get() is not None


def quote_value(value: Any) -> str:
    """Return a value as Hydra reads it on the command line: text in quotes if it needs them.

    A text needs them unless it is an identifier that does not stand for another value.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # -999 for -999.0
    if not isinstance(value, str):
        return format_value(value)
    if re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII) and value.lower() not in RESERVED:
        return value
    # Within quotes, Hydra takes doubled backslashes only before a quote and at the end.
    return '"' + re.sub(r'(\\*)("|$)', r"\1\1\2", value).replace('"', '\\"') + '"'


def format_value(value: Any) -> str:
    """Return a setting's value as on the command line: null, true, false, or its text."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)


def to_python_number(value: Any) -> Any:
    """Return a number of numpy as Python's, any other value unchanged.

    A float32 is infinite where it is compared with the largest float, which numpy casts to float32.
    """
    return value.item() if isinstance(value, Real) and hasattr(value, "item") else value


def check_integer(name: str, value: Any, at_least: int, at_most: int | None = None) -> int:
    """Return value as an int; raise `UserError` unless it is an integer within the bounds.

    A float without a fraction, such as 1e3, is an integer; a boolean is none.

    Args:
        name: The name of the setting, for the error.
        value: Its value, of any type.
        at_least: The lower bound, itself allowed.
        at_most: The upper bound, itself allowed; None for no bound.
    """
    rule = f"{at_least} or more" if at_most is None else f"from {at_least} to {at_most}"
    number = to_python_number(value)
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    if not (is_number and number == number // 1):  # infinite numbers and NaN are unequal
        rule = f"a whole number, {rule}{_range_remedy(name, value)}"
        raise UserError(f"{spell_setting(name, value)}: must be {rule}")
    count = int(number)
    if count < at_least or (at_most is not None and count > at_most):
        raise UserError(f"{spell_setting(name, value)}: must be {rule}")
    return count


def _range_remedy(name: str, value: Any) -> str:
    """Return how to type a range such as `0..6` or `0-6`, as the end of a message; else empty."""
    limits = re.fullmatch(r"(\d+)(?:\.\.\.?|-|:)(\d+)", str(value), re.ASCII)
    if limits is None or in_python():
        return ""
    first, last = map(int, limits.groups())
    return f"; for {first} to {last} type '{name}=range({first},{last + 1})'"


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return value as a float; raise `UserError` unless it is finite and within the bounds.

    Args:
        name: The name of the setting, for the error.
        value: Its value, of any type; a boolean is no number.
        at_least: A lower bound, itself allowed; None for no bound, as of the others.
        above: A lower bound, itself not allowed.
        below: An upper bound, itself not allowed.
        at_most: An upper bound, itself allowed.
    """
    bounds: tuple[tuple[str, Any, Any], ...] = (
        ("{:g} or more", at_least, operator.ge),
        ("above {:g}", above, operator.gt),
        ("below {:g}", below, operator.lt),
        ("{:g} or less", at_most, operator.le),
    )
    number: Any = to_python_number(value)
    is_real = isinstance(number, Real) and not isinstance(number, bool)
    # The comparisons are false of NaN, of infinite numbers and of a larger integer.
    is_usable = is_real and -LARGEST_FLOAT <= number <= LARGEST_FLOAT
    if not is_usable or any(b is not None and not holds(number, b) for _, b, holds in bounds):
        rules = " and ".join(rule.format(b) for rule, b, _ in bounds if b is not None)
        rule = f"must be a finite number{', ' if rules else ''}{rules}"
        raise UserError(f"{spell_setting(name, value)}: {rule}")
    return float(number)


def did_you_mean(text: Any, choices: Iterable[str], prefix: str = "") -> str:
    """Return `; did you mean X` where a choice resembles the text, otherwise an empty text.

    Args:
        text: What the user wrote.
        choices: What may be meant.
        prefix: A text put before the choice, such as `dataset.`, which is not compared.
    """
    matches = get_close_matches(str(text), list(choices), 1)
    return f"; did you mean {prefix}{matches[0]}" if matches else ""


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return value; raise `UserError` that lists the choices unless it is one of them."""
    if not isinstance(value, str) or value not in choices:
        suggestion = did_you_mean(value, choices)
        raise UserError(
            f"{spell_setting(name, value)}: must be one of {', '.join(choices)}{suggestion}"
        )
    return str(value)


def check_switch(name: str, value: Any) -> bool:
    """Return value; raise `UserError` unless it is true or false."""
    if not isinstance(value, bool):
        raise UserError(f"{spell_setting(name, value)}: must be true or false")
    return value


def check_list(name: str, value: Any, rule: str) -> list[Any]:
    """Return value as a list; raise `UserError` unless it is a list or another iterable.

    Args:
        name: The name of the setting, for the error.
        value: Its value, of any type.
        rule: What the value must be, such as `a list of columns`, for the error.
    """
    # A text is iterable, too, but its letters are not meant.
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise UserError(f"{spell_setting(name, value)}: must be {rule}")
    return list(value)


def check_path(name: str, value: Any, remedy: str) -> Path:
    """Return value as a path, `~` expanded; raise `UserError` unless the system accepts it.

    No file or folder needs to exist there.

    Args:
        name: The name of the setting, for the error.
        value: Its value, of any type.
        remedy: How to write it, such as `write dataset.path=my.csv`.
    """
    try:
        path = Path(value).expanduser()
        path.exists()  # raises where the system does not accept the name
    except (TypeError, OSError, RuntimeError, ValueError) as error:
        raise UserError(f"{name}={format_value(value)}: must be a path; {remedy}") from error
    return path


def find_file(option: str, path: Any, example: str = "my.csv") -> Path:
    """Return the file that a setting names; raise `UserError` where there is none.

    Args:
        option: The name of the setting, such as `dataset.path`.
        path: Its value.
        example: A file name, for the error that shows how to write the setting.
    """
    file = check_path(option, path, f"write {option}={example}")
    if file.is_dir():
        raise UserError(f"{option}={path}: is a folder; name a file in it")
    if not file.is_file():
        raise UserError(
            f"{option}={path}: no such file (seen from {Path.cwd()}); a path with a comma, "
            f"a space or = takes two pairs of quotes: {option}='\"a,b.csv\"'"
        )
    return file


@contextmanager
def translate_read_errors(setting: str, rule: str, remedy: str) -> Iterator[None]:
    """Turn whatever a library raises in the context, of a damaged file, into `UserError`.

    Args:
        setting: The setting that names the file, as `name=value`.
        rule: What is wrong with the file, such as `cannot be read as a table`. The library's reason
            follows in brackets.
        remedy: What the user can do, the end of the message.
    """
    try:
        yield
    except UserError:  # it says what is wrong better than the rule does
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160]
        raise UserError(f"{setting}: {rule} ({reason}); {remedy}") from error


# The memory limit of this process, in bytes and as the user wrote it.
_limit: list[tuple[int, str] | None] = [None]


def parse_memory_size(value: Any) -> int | None:
    """Return the setting `memory` in bytes.

    Args:
        value: A number of bytes, or a number with a unit, such as 500MB or 1.5GiB; None for no
            limit.

    Raises:
        UserError: The value is no size of memory.
    """
    if value is None:
        return None
    match = SIZE_PATTERN.fullmatch(str(value))
    if match is None:
        raise UserError(
            f"memory={value}: must be a size such as 1GiB, 500MB or 2e9 (bytes), or null for no "
            "limit"
        )
    unit = (match[2] or " ").lower()
    size = float(match[1]) * (1024 if unit.endswith("i") else 1000) ** " kmgt".index(unit[0])
    return int(min(size, sys.maxsize))


def limit_memory(value: Any) -> None:
    """Limit the memory that `available_bytes` reports to this process; see `parse_memory_size`.

    Raises `UserError` where the program itself takes more.
    """
    size = parse_memory_size(value)
    limit = None if size is None else (size, str(value))
    # A limit that is in force is not checked again: data now count as the program's.
    if limit and limit != _limit[0] and limit[0] < resident_bytes():
        taken = resident_bytes() >> 20
        raise UserError(f"memory={value}: the program itself takes {taken} MiB; set more")
    _limit[0] = limit


@contextmanager
def limited_memory(value: Any) -> Iterator[None]:
    """Limit the memory of this process until the context exits; see `limit_memory`."""
    previous = _limit[0]
    try:
        limit_memory(value)
        yield
    finally:
        _limit[0] = previous


def resident_bytes() -> int:
    """Return the memory that this process holds in bytes; outside Linux, its peak."""
    try:  # the second entry of the file is the number of resident pages
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of macOS, in bytes


def available_bytes() -> int:
    """Return the bytes of memory that are free, without swapping and within the limit."""
    limit, free = _limit[0], _free_memory()
    return free if limit is None else max(0, min(free, limit[0] - resident_bytes()))


def available_cores() -> int:
    """Return the cores that this process may use; all of them where the system does not tell."""
    if hasattr(os, "sched_getaffinity"):  # macOS has none
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_memory() -> int:
    """Return the bytes of memory that the machine, or its container, has free.

    Where the system does not tell, these are all that the machine has.
    """
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, StopIteration):  # of Linux
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    with suppress(OSError, ValueError):  # of a container with a limit
        limit, usage = (
            int((CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current")
        )
        free = min(free, limit - usage)
    return max(free, 0)


def refuse_larger(
    setting: str, needed_bytes: float, remedy: str, share: float = ARRAY_SHARE
) -> None:
    """Refuse a setting that needs more bytes than a share of the available memory.

    Args:
        setting: The setting, as `name=value`.
        needed_bytes: The bytes of memory that the setting needs, roughly.
        remedy: What the user can do, the end of the message.
        share: The largest share of the available memory.

    Raises:
        UserError: The setting needs more.
    """
    allowed_bytes = share * available_bytes()
    if needed_bytes > allowed_bytes:
        limit = _limit[0]
        memory_owner = f"memory={limit[1]} leaves" if limit else "this machine has"
        raise UserError(
            f"{setting}: takes {format_gigabytes(needed_bytes)} of memory, and at most "
            f"{format_gigabytes(allowed_bytes)} ({share:.0%} of what {memory_owner} free) may be; "
            f"{remedy}"
        )


def format_gigabytes(count: float) -> str:
    """Return a number of bytes as text, in GB."""
    return f"{min(count, 10**30) / 1e9:.3g} GB"  # a whole number can be larger than any float
