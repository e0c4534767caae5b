"""Checks of single settings: each returns the value, or raises `UserError` in one line."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any

LARGEST_FLOAT = sys.float_info.max
SHARE = 1 / 4  # of that memory, for one array: points are copied, normalized and multiplied
NUMBER = 8  # bytes of a number in float64
UNITS = {"": 1, "b": 1} | {
    f"{letter}{binary}b": (1024 if binary else 1000) ** power
    for power, letter in enumerate("kmgt", 1)
    for binary in ("", "i")
}
SIZE = re.compile(r"\s*(\d+\.?\d*(?:e[+-]?\d{1,3})?)\s*([a-z]*)\s*", re.IGNORECASE)
ROOM = 64 << 20  # bytes: what a memory limit leaves at least, beside the program itself
LIMITS = (  # of a container: what it may have, and what it has
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


class UserError(ValueError):
    """A user's mistake, told in one line: the setting, its value, the rule and the remedy."""


RESERVED = ("true", "false", "null", "nan", "inf")  # no text on the command line without quotes
_in_python: ContextVar[Mapping[str, str] | None] = ContextVar("in_python", default=None)


@contextmanager
def python_spelling(**names: str) -> Iterator[None]:
    """Spell settings in errors as `compare()` takes them, until the context exits.

    names: the arguments that are called otherwise, by the name of the setting.
    """
    token = _in_python.set(names)
    try:
        yield
    finally:
        _in_python.reset(token)


def spelled(name: str, value: Any = ..., shell: bool = False) -> str:
    """Return a setting, and its value where one is given, as the user writes it.

    On the command line `dataset.fill=median`, in Python `fill='median'`. shell: in the quotes that
    keep it whole where it is pasted into a shell.
    """
    names = _in_python.get()
    if names is not None:
        name = names.get(name, name.rpartition(".")[2])
        shown = repr(value) if isinstance(value, (str, list)) else str(value)
        return name if value is ... else f"{name}={shown}"
    if value is ...:
        return name
    if isinstance(value, list):
        value = f"[{','.join(map(quoted, value))}]"
    elif shell:
        value = quoted(value)
    option = f"{name}={typed(value)}"
    return "'" + option.replace("'", "'\"'\"'") + "'" if shell else option


def source_name() -> str:
    """Return what the user's table is: a frame in Python, else a file."""
    return "file" if _in_python.get() is None else "frame"


def quoted(value: Any) -> str:
    """Return a value as it stands in a list on the command line: text that is no word in quotes."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str):
        return typed(value)
    if re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII) and value.lower() not in RESERVED:
        return value
    return '"' + re.sub(r'(\\*)("|$)', r"\1\1\2", value).replace('"', '\\"') + '"'


def typed(value: Any) -> str:
    """Return a setting's value as a command line has it: null, true, false, or as it is."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return value as an int; raise `UserError` unless it is a whole number within the bounds."""
    rule = f"{least} or more" if most is None else f"from {least} to {most}"
    if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
        raise UserError(f"{spelled(name, value)}: must be a whole number, {rule}")
    count = int(value if isinstance(value, int) else float(value))
    if count < least or (most is not None and count > most):
        raise UserError(f"{spelled(name, value)}: must be {rule}")
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
        or not -LARGEST_FLOAT <= value <= LARGEST_FLOAT  # a whole number can be larger
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (below is not None and value >= below)
        or (most is not None and value > most)
    ):
        bounds = f", {' and '.join(rules)}" if rules else ""
        raise UserError(f"{spelled(name, value)}: must be a finite number{bounds}")
    return float(value)


def did_you_mean(word: Any, known: Iterable[str], before: str = "") -> str:
    """Return `; did you mean X` where a known word is like a word; empty where none is.

    before: what stands before all of them, so that it is no likeness.
    """
    near = get_close_matches(str(word), list(known), 1)
    return f"; did you mean {before}{near[0]}" if near else ""


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return value; raise `UserError` that lists the choices unless it is one of them."""
    if not isinstance(value, str) or value not in choices:
        near = did_you_mean(value, choices)
        raise UserError(f"{spelled(name, value)}: must be one of {', '.join(choices)}{near}")
    return str(value)


def switch(name: str, value: Any) -> bool:
    """Return value; raise `UserError` unless it is true or false."""
    if not isinstance(value, bool):
        raise UserError(f"{spelled(name, value)}: must be true or false")
    return value


def listed(name: str, value: Any, rule: str) -> list[Any]:
    """Return value as a list; raise `UserError` with the rule unless it is one."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise UserError(f"{spelled(name, value)}: must be {rule}")
    return list(value)


def place(name: str, value: Any, remedy: str) -> Path:
    """Return value as a path, `~` resolved; raise `UserError` unless the system takes it as one.

    remedy: how it is written, such as `write dataset.path=my.csv`.
    """
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{name}={typed(value)}: must be a path; {remedy}")
    try:
        path = Path(value).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a user that there is not
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{name}={typed(value)}: is no path to be read ({reason}); {remedy}"
        ) from error
    return path


@dataclass(frozen=True)
class Limit:
    """The most memory that this process may take, in bytes, and as the user wrote it."""

    most: int
    written: str


_limits: list[Limit | None] = [None]  # the last one holds, for the whole process


def memory_size(value: Any) -> int | None:
    """Return the setting `memory` in bytes, None where there is no limit; raise `UserError`.

    value: a number of bytes, or with a unit: 500MB, 1.5GiB.
    """
    if value is None:
        return None
    found = None if isinstance(value, bool) else SIZE.fullmatch(str(value))
    if found is None or found[2].lower() not in UNITS:
        raise UserError(
            f"memory={value}: must be a size such as 1GiB, 500MB or 2e9 (bytes), or null for no "
            "limit"
        )
    size = min(float(found[1]) * UNITS[found[2].lower()], sys.maxsize)
    return int(size)


def limit_memory(value: Any) -> None:
    """Let this process take no more memory than this, by `available`; None: no limit.

    value: as of `memory_size`. Raises `UserError` where next to nothing would be left of it.
    """
    most = memory_size(value)
    made = None if most is None else Limit(most, str(value))
    if made and made != _limits[-1] and made.most < resident() + ROOM:
        raise UserError(
            f"memory={value}: the program itself takes {resident() >> 20} MiB; set "
            f"{(resident() + ROOM >> 20) + 1}MiB at least, or null for no limit"
        )
    _limits[-1] = made


@contextmanager
def limited_memory(value: Any) -> Iterator[None]:
    """Let this process take no more memory than this for a while; see `limit_memory`."""
    _limits.append(_limits[-1])
    try:
        limit_memory(value)
        yield
    finally:
        _limits.pop()


def memory_limit() -> float:
    """Return the most memory that this process may take, in bytes; infinite without a limit."""
    limit = _limits[-1]
    return float("inf") if limit is None else float(limit.most)


def resident() -> int:
    """Return how many bytes of memory this process holds; elsewhere than on Linux, ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else 1024 * most


def available() -> int:
    """Return how many bytes of memory are free to use: without swapping, as the system tells.

    And within the limit that is set.
    """
    limit, free = _limits[-1], _machine()
    return free if limit is None else max(0, min(free, limit.most - resident()))


def machine_memory() -> int:
    """Return the bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _machine() -> int:
    free = machine_memory()
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvail"))
    except (OSError, StopIteration):  # not Linux: what the machine has
        pass
    for most, used in LIMITS:
        try:
            free = min(free, int(most.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # no limit
            continue
    return max(free, 0)


def refuse_larger(setting: str, wanted: float, remedy: str, share: float = SHARE) -> None:
    """Raise `UserError` where something takes more bytes than a share of the memory.

    setting: what was asked for, as `name=value`.
    """
    most = share * available()
    if wanted > most:
        limit = _limits[-1]
        rest = f"memory={limit.written} leaves" if limit else "this machine has"
        raise UserError(
            f"{setting}: takes {gigabytes(wanted)} of memory, and at most {gigabytes(most)} "
            f"({share:.0%} of what {rest} free) may be; {remedy}"
        )


def gigabytes(count: float) -> str:
    """Return a number of bytes in words."""
    return f"{min(count, 10**30) / 1e9:.3g} GB"  # a whole number can be larger than any float
