"""Files as a user names them, and points that stay in their file."""

import os
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from normbench.datasets.on_disk.points import Points, Rows
from normbench.datasets.values import SHARE, UserError, available, place, refuse_larger, switch

SYSTEM, IN_MEMORY = ("/proc", "/sys", "/dev"), "/dev/shm"  # where the kernel makes the files
PATIENCE = 30.0  # seconds until a file gives its first byte
BESIDE = 1 / 16  # of the memory, for points beside those that are read by blocks


def existing(option: str, path: Any, example: str = "my.csv") -> Path:
    """Return the file that a setting names; raise `UserError` where it is none."""
    file = place(option, path, f"write {option}={example}")
    if file.is_dir():
        raise UserError(f"{option}={path}: is a folder; name a file in it")
    if not file.is_file():
        raise UserError(
            f"{option}={path}: no such file (seen from {Path.cwd()}); a path with a comma, "
            f"a space or = takes two pairs of quotes: {option}='\"a,b.csv\"'"
        )
    refuse_silent(f"{option}={path}", file)
    return file


def refuse_silent(setting: str, file: Path) -> None:
    """Raise `UserError` for a file of the system's own, and for one whose first byte stays away.

    They look like regular ones, and reading them may never end.
    """
    place = Path(os.path.realpath(file))
    if any(map(place.is_relative_to, SYSTEM)) and not place.is_relative_to(IN_MEMORY):
        raise UserError(
            f"{setting}: is a file of the system's own ({place}), not one on a disk; copy what it "
            "holds to a file, and name that"
        )
    answered = threading.Event()

    def read() -> None:
        with suppress(OSError), file.open("rb", buffering=0) as stream:  # told by who needs it
            stream.read(1)
        answered.set()

    threading.Thread(target=read, daemon=True).start()
    if not answered.wait(PATIENCE):
        raise UserError(
            f"{setting}: gives nothing within {PATIENCE:.0f} s; see whether its disk or network "
            "answers, or copy it to this machine"
        )


def first_line(error: BaseException) -> str:
    """Return an error's first sentence, short."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("Error tokenizing data. C error: ")[:160]


@contextmanager
def damage_refused(setting: str, rule: str, remedy: str) -> Iterator[None]:
    """Raise `UserError` for whatever a damaged file leads a library to raise.

    The error says the setting, the rule that the file breaks, the library's reason and the remedy.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{setting}: {rule} ({first_line(error)}); {remedy}") from error


@dataclass(frozen=True)
class File:
    """A file that is open to be read, and what the system told of it then."""

    number: int
    stamp: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> Self:
        """Return a file, open until nothing refers to it; raise OSError where it cannot be."""
        number = os.open(path, os.O_RDONLY)
        made = cls(number, stamp_of(os.fstat(number)))
        weakref.finalize(made, os.close, number)
        return made

    @property
    def size(self) -> int:
        """How many bytes it had."""
        return self.stamp[0]


def stamp_of(about: os.stat_result) -> tuple[int, ...]:
    """Return what tells that a file was written to, or that another one is in its place."""
    return about.st_size, about.st_mtime_ns, about.st_ino, about.st_dev


class FilePoints(Points):
    """Points in a file, which has to stay what it is while they are read.

    setting: what named the file, such as `dataset.path=X.npy`. opened: all that belongs to the open
    file, its `stamp` among it; it is put in place of the former one at once, for threads that read
    meanwhile.
    """

    def __init__(self, setting: str, path: Path) -> None:
        """Open a file; raise `UserError` where it does not hold points."""
        self.setting, self.path = setting, path
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self.opened_at = time.monotonic()
        self.opened = self.open()
        in_use.add(self)

    @abstractmethod
    def open(self) -> Any:
        """Open the file as it is now, set shape and dtype, return what is to be kept of it."""

    def check(self) -> None:
        """Raise `UserError` where the file holds other points than it did.

        It is read again only where the system tells that it was written to.
        """
        with self._lock:
            try:
                same = stamp_of(os.stat(self.path)) == self.opened.stamp
            except OSError as error:
                raise self.changed(f"it cannot be read: {error.strerror}") from error
            if not same:
                self._compare()

    def count(self, size: int) -> None:
        """Add to the bytes that were read; for every reading, in whichever thread."""
        with self._counting:
            self.bytes_read += size

    def changed(self, what: str) -> UserError:
        """Return the error that says what became of the file."""
        return UserError(f"{self.setting}: was changed while the sweep ran ({what}); run it again")

    def _compare(self) -> None:
        try:
            now = copy(self)
            now.opened = now.open()
        except UserError as error:
            raise self.changed(str(error).removeprefix(f"{self.setting}: ")) from error
        if (now.shape, now.dtype) != (self.shape, self.dtype):
            raise self.changed(f"from {self.shape} {self.dtype} to {now.shape} {now.dtype}")
        rows = self.marks.changed(now) if self.marks else (0, len(self) - 1)
        if rows:
            raise self.changed(f"first in rows {rows[0]} to {rows[1]}, counted from 0")
        self.opened = now.opened


in_use: weakref.WeakSet[FilePoints] = weakref.WeakSet()  # points of files, to tell what was read


def held(points: Points, in_blocks: bool | None, share: float = SHARE) -> Rows:
    """Return points in memory where they take at most a share of it, else as they are.

    in_blocks: True for as they are in any case, False for in memory, with a `UserError` where they
    are too large.
    """
    size = points.size * points.itemsize
    if in_blocks is not None and not switch("dataset.in_blocks", in_blocks):
        refuse_larger("dataset.in_blocks=false", size, "leave it out, for points read by blocks")
    elif in_blocks or size > share * available():
        points.stays = bool(in_blocks)
        return points
    return points[:]
