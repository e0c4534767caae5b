"""Checkpoints of descents, one file each, from which an interrupted command resumes."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench.record.provenance import code_digest
from normbench.results.safe import clean
from normbench.results.store.comparison_files import record_file
from normbench.results.store.job_records import written_whole

Array = NDArray[Any]
T = TypeVar("T")
FOLDER = "checkpoints"  # in the home of comparisons
MAX_AGE = 30 * 86400.0  # seconds after which what nobody takes up is removed
CODE_ENTRY = "code"
SAVING_INTERVAL = 20  # the shortest interval, in units of the time that one saving takes


class DescentFile:
    """The checkpoint file of one descent, written atomically at intervals.

    Only the same code and libraries resume from it, so that the numbers are those of an
    uninterrupted run.

    Args:
        home: The folder of comparisons and their records.
        descent: The digest of the descent, see `identity`.
        seconds: The interval between two savings; longer where saving takes long.
    """

    def __init__(self, home: Path, descent: str, seconds: float) -> None:
        self.file, self.seconds = home / FOLDER / f"{descent}.npz", seconds
        self._warned = False  # whether a failure to write was printed
        self._begin()

    def due(self) -> bool:
        """Return whether the interval since the start or the last saving is over."""
        return time.monotonic() >= self._next

    def save(self, arrays: Mapping[str, Array]) -> None:
        """Save the state of a descent, unless no later command could read it.

        A failure to write is printed once, and the descent goes on.

        Args:
            arrays: The state, from which `restore` of `resume` builds it again.
        """
        saving_began = time.monotonic()
        content: dict[str, Any] = {CODE_ENTRY: np.array(code_digest()), **arrays}
        if not any(array.dtype.hasobject for array in arrays.values()):  # these need pickle
            try:
                with written_whole(self.file) as draft:
                    np.savez(draft, **content)
            except OSError as error:
                if not self._warned:
                    self._warn(f"cannot be written ({error.strerror}); the job goes on without it")
                self._warned = True
        saved_at = time.monotonic()
        # Saving takes at most 1 / `SAVING_INTERVAL` of the time.
        self._next = saved_at + max(self.seconds, SAVING_INTERVAL * (saved_at - saving_began))

    def resume(self, restore: Callable[[Mapping[str, Array]], T]) -> T | None:
        """Return the state that `restore` builds from the saved arrays; None without a valid file.

        The clock starts again. An invalid file, and one that `restore` refuses by an error, is
        named in a message.

        Args:
            restore: Returns the state from the arrays that `save` was given.
        """
        self._begin()
        try:
            with self.file.open("rb") as stream, np.load(stream, allow_pickle=False) as packed:
                arrays = {name: packed[name] for name in packed.files}
            if str(arrays.pop(CODE_ENTRY)) != code_digest():
                raise ValueError("it is of other code or other versions of libraries")
            return restore(arrays)
        except FileNotFoundError:
            return None
        except Exception as error:  # no content of a file may stop the job
            reason = clean.first_line(error)
            self._warn(f"is not gone on from ({reason}); the job starts anew")
            return None

    def _begin(self) -> None:
        """Start the clock of the next saving."""
        self._next = time.monotonic() + self.seconds

    def _warn(self, message: str) -> None:
        """Print a message about the file."""
        print(f"{self.file}: {message}", file=sys.stderr)


def remove(home: Path, descent: str) -> None:
    """Remove the checkpoint of a recorded descent.

    Args:
        home: The folder of comparisons and their records.
        descent: The digest of the descent.
    """
    with suppress(OSError):
        (home / FOLDER / f"{descent}.npz").unlink()
        (home / FOLDER).rmdir()  # fails while it has other checkpoints


def tidy(home: Path) -> None:
    """Remove checkpoints, and drafts of records that were cut off, older than `MAX_AGE`."""
    for file in [*(home / FOLDER).glob("*"), *record_file(home, "").parent.glob(".*.draft")]:
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > MAX_AGE:
                file.unlink()
