"""Open files that users name, and points that stay in their file."""

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
from normbench.datasets.values import (
    ARRAY_SHARE,
    UserError,
    available_bytes,
    check_path,
    check_switch,
    refuse_larger,
)

# Folders whose files the kernel makes, except those in shared memory, which are ordinary files.
SYSTEM_FOLDERS, SHARED_MEMORY_FOLDER = (("/proc", "/sys", "/dev"), "/dev/shm")
FIRST_BYTE_SECONDS = 30.0  # until the first byte of a file must arrive
TEST_PART_SHARE = 1 / 16  # of the memory, for test points beside points that are read by blocks


def find_file(option: str, path: Any, example: str = "my.csv") -> Path:
    """Return the file that a setting names; raise `UserError` where it cannot be read.

    Args:
        option: The name of the setting, such as `dataset.path`.
        path: Its value.
        example: A file name, for the error that shows how to write the setting.

    Raises:
        UserError: The value is no path, names no file or a folder, or the file gives no byte.
    """
    file = check_path(option, path, f"write {option}={example}")
    if file.is_dir():
        raise UserError(f"{option}={path}: is a folder; name a file in it")
    if not file.is_file():
        raise UserError(
            f"{option}={path}: no such file (seen from {Path.cwd()}); a path with a comma, "
            f"a space or = takes two pairs of quotes: {option}='\"a,b.csv\"'"
        )
    refuse_blocking_file(f"{option}={path}", file)
    return file


def refuse_blocking_file(setting: str, file: Path) -> None:
    """Raise `UserError` for a system file, and for a file whose first byte does not arrive.

    Such files look like regular ones, but reading them may never end.

    Args:
        setting: The setting that names the file, as `name=value`, for the error.
        file: The file.
    """
    real_path = Path(os.path.realpath(file))
    if any(map(real_path.is_relative_to, SYSTEM_FOLDERS)) and not real_path.is_relative_to(
        SHARED_MEMORY_FOLDER
    ):
        raise UserError(
            f"{setting}: is a file of the system's own ({real_path}), not one on a disk; copy what "
            "it holds to a file, and name that"
        )
    first_byte_read = threading.Event()  # set at the end of an empty or unreadable file, too

    def read() -> None:
        """Read a byte; in a thread of its own, since the call may block for ever."""
        with (
            suppress(OSError),  # the caller reads the file next, and reports the error
            file.open("rb", buffering=0) as stream,
        ):
            stream.read(1)
        first_byte_read.set()

    # A daemon: it does not keep the program from ending.
    threading.Thread(target=read, daemon=True).start()
    if not first_byte_read.wait(FIRST_BYTE_SECONDS):
        raise UserError(
            f"{setting}: gives nothing within {FIRST_BYTE_SECONDS:.0f} s; see whether its disk or "
            "network answers, or copy it to this machine"
        )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened; its type if there is no message.

    A prefix of pandas' errors, which tells the user nothing, is left out.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("Error tokenizing data. C error: ")[:160]


@contextmanager
def translate_memory_error(setting: str) -> Iterator[None]:
    """Turn a `MemoryError` in the context, where data are read or converted, into `UserError`.

    setting: the setting to which the error is attributed, as `name=value`.
    """
    try:
        yield
    except MemoryError as error:
        raise UserError(
            f"{setting}: takes more memory than there is ({first_line(error)}); leave out columns "
            "that are not needed, or keep fewer points"
        ) from error


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
        with translate_memory_error(setting):
            yield
    except UserError:  # it says what is wrong better than the rule does
        raise
    except Exception as error:
        raise UserError(f"{setting}: {rule} ({first_line(error)}); {remedy}") from error


@dataclass(frozen=True)
class File:
    """An open file: its descriptor (`number`), and its stamp (`read_stamp`) when it was opened."""

    number: int
    stamp: tuple[int, ...]

    @classmethod
    def open_path(cls, path: Path) -> Self:
        """Open a file for reading; raise OSError where that fails.

        The file is closed when the returned object is no longer referred to.
        """
        number = os.open(path, os.O_RDONLY)
        file = cls(number, read_stamp(os.fstat(number)))
        weakref.finalize(file, os.close, number)
        return file

    @property
    def size(self) -> int:
        """The size in bytes when the file was opened."""
        return self.stamp[0]


def read_stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return the size, time and identity by which a changed or replaced file is noticed."""
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev


class FilePoints(Points):
    """Points in a file, which must not change while they are read.

    Attributes:
        setting: The setting that names the file, such as `dataset.path=X.npy`, for errors.
        path: The file.
        opened_at: When the points were made, by `time.monotonic`.
        opened: All that belongs to the open file, with its `stamp` (`read_stamp`). It is replaced
            in one assignment, since other threads read it.
    """

    def __init__(self, setting: str, path: Path) -> None:
        """Open a file; raise `UserError` where it does not hold points. See the attributes."""
        self.setting, self.path = setting, path
        # One lock for `check`, of one thread at a time, and one for the number of bytes read.
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self.opened_at = time.monotonic()
        self.opened = self.open()
        open_points.add(self)

    @abstractmethod
    def open(self) -> Any:
        """Open the file as it is now, set `shape` and `dtype`, and return what `opened` holds."""

    def check(self) -> None:
        """Raise `UserError` where the points in the file have changed.

        The file is read again only where its stamp (size, time and identity) has changed.
        """
        with self._lock:
            try:
                is_unchanged = read_stamp(os.stat(self.path)) == self.opened.stamp
            except OSError as error:
                raise self.change_error(f"it cannot be read: {error.strerror}") from error
            if not is_unchanged:
                self._compare_content()

    def count_bytes(self, size: int) -> None:
        """Add to the number of bytes read, from any thread."""
        with self._counting:
            self.bytes_read += size

    def change_error(self, reason: str) -> UserError:
        """Return the error that says how the file changed.

        reason: the change, such as `it ends before row 9`.
        """
        return UserError(
            f"{self.setting}: was changed while the sweep ran ({reason}); run it again"
        )

    def _compare_content(self) -> None:
        """Open the file again, and read it from now on; raise `UserError` if it holds other points.

        Without checksums points have not been read whole, so that they count as changed.
        """
        try:
            # A copy, since `open` sets `shape` and `dtype`, which are compared below.
            reopened = copy(self)
            reopened.opened = reopened.open()
        except UserError as error:
            raise self.change_error(str(error).removeprefix(f"{self.setting}: ")) from error
        if (reopened.shape, reopened.dtype) != (self.shape, self.dtype):
            raise self.change_error(
                f"from {self.shape} {self.dtype} to {reopened.shape} {reopened.dtype}"
            )
        rows = self.checksums.find_change(reopened) if self.checksums else (0, len(self) - 1)
        if rows:
            raise self.change_error(f"first in rows {rows[0]} to {rows[1]}, counted from 0")
        self.opened = reopened.opened


# All points of files of this process, so that the bytes that were read of each can be reported.
open_points: weakref.WeakSet[FilePoints] = weakref.WeakSet()


def load_if_small(points: Points, in_blocks: bool | None, share: float = ARRAY_SHARE) -> Rows:
    """Load points into memory if they are small enough, otherwise leave them in their file.

    Args:
        points: The points.
        in_blocks: True leaves them in the file, False loads them; None loads them if they take at
            most `share` of the available memory.
        share: That share, for None.

    Returns:
        The points as an array, or `points` itself.

    Raises:
        UserError: The points have to be loaded and are too large.
    """
    size = points.size * points.itemsize
    # For False; `check_switch` refuses a setting that is neither true nor false.
    if in_blocks is not None and not check_switch("dataset.in_blocks", in_blocks):
        refuse_larger("dataset.in_blocks=false", size, "leave it out, for points read by blocks")
    elif in_blocks or size > share * available_bytes():
        # For True a later selection of few rows stays on disk, too; for None it may be loaded.
        points.always_in_blocks = bool(in_blocks)
        return points
    return points[:]
