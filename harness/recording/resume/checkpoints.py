"""Checkpoints of descents, one file each, from which an interrupted command resumes.

They are beside the folders of sweeps, where the next command finds them.
"""

import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.results.safe import clean, files

Array = NDArray[Any]
T = TypeVar("T")
CHECKPOINT_NAME = re.compile(r"[0-9a-f]{64}(\.npz|\.\w+\.draft)")
DAY = 86400.0
MAX_AGE = {".npz": 30 * DAY, ".draft": DAY}  # the age after which a file of a suffix is removed
CHECKPOINT_LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn")
CHECKPOINT_PACKAGES = ("normbench", "normbench.costs", "normbench.optimizers")
DIGEST = "digest"
SAVING_INTERVAL = 20  # the shortest interval, in units of the time that one saving takes


class DescentFile:
    """The checkpoint file of one descent, written atomically at intervals.

    Only the same code and libraries resume from it, so that the numbers are those of an
    uninterrupted run.

    Args:
        folders: The folder of the folders of sweeps.
        descent: The digest of the descent, see `identity`.
        seconds: The interval between two savings; longer where saving takes long.
    """

    def __init__(self, folders: Path, descent: str, seconds: float) -> None:
        self.file, self.descent, self.seconds = _checkpoint_file(folders, descent), descent, seconds
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
        header = {names.DESCENT.key: np.array(self.descent), "code": np.array(code_digest())}
        size = sum(array.nbytes for array in arrays.values())
        needs_pickle = any(array.dtype.hasobject for array in arrays.values())
        # Arrays that need pickle cannot be read again, nor can files that are too large.
        if size < files.MAX_ARRAY_BYTES and not needs_pickle:
            try:
                content = {**header, **arrays}
                _write(self.file, {**content, DIGEST: np.array(_digest(content))})
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
            with (
                files.open_stored_arrays(self.file) as stream,
                np.load(stream, allow_pickle=False) as packed,
            ):
                arrays = {name: packed[name] for name in packed.files}
            # Each `pop` removes an entry that `save` added; the state remains.
            if str(arrays.pop(DIGEST)) != _digest(arrays):
                raise ValueError("it is damaged")
            if str(arrays.pop(names.DESCENT.key)) != self.descent:
                raise ValueError("it is of another descent")
            if str(arrays.pop("code")) != code_digest():
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


def remove(folders: Path, descent: str) -> None:
    """Remove the checkpoint of a recorded descent, with its drafts.

    Args:
        folders: The folder of the folders of sweeps.
        descent: The digest of the descent.
    """
    checkpoint = _checkpoint_file(folders, descent)
    with suppress(OSError):
        for file in checkpoint.parent.glob(f"{descent}.*"):
            file.unlink()
        checkpoint.parent.rmdir()  # fails while it has other checkpoints


def tidy(folders: Path) -> None:
    """Remove the checkpoints and drafts of this user that are older than `MAX_AGE`.

    Args:
        folders: The folder of the folders of sweeps.
    """
    checkpoint_folder = _checkpoint_file(folders, "").parent  # the same for every descent
    for file in checkpoint_folder.glob("*"):
        with suppress(OSError):
            age = time.time() - file.lstat().st_mtime
            if CHECKPOINT_NAME.fullmatch(file.name) and age > MAX_AGE[file.suffix]:
                file.unlink()


@cache
def code_digest() -> str:
    """Return a digest of the code of this project, and of the versions of its libraries."""
    digest = hashlib.sha256(repr([version(name) for name in CHECKPOINT_LIBRARIES]).encode())
    for room in CHECKPOINT_PACKAGES:
        for file in sorted(Path(str(files_of(room))).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _digest(arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of arrays with their names, types and shapes, in the order of names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _checkpoint_file(folders: Path, descent: str) -> Path:
    """Return the checkpoint file of a descent, in a folder of this user."""
    return folders / f".checkpoints.{os.getuid()}" / f"{descent}.npz"


def _write(file: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file atomically; each process writes a draft of its own."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(".draft", f"{file.stem}.", file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            np.savez(stream, **arrays)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
