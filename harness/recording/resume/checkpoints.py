"""Descents on their way, a file each: what the same command goes on from when it was cut off.

They lie beside the folders of sweeps, so that the next command that is given there finds them.
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
OURS = re.compile(r"[0-9a-f]{64}(\.npz|\.\w+\.draft)")
DAY = 86400.0
OLDEST = {".npz": 30 * DAY, ".draft": DAY}  # then nobody goes on from it
LIBRARIES = ("numpy", "scipy", "autograd", "scikit-learn")
ROOMS = ("normbench", "normbench.costs", "normbench.optimizers")
DIGEST = "digest"
SHARE = 20  # times as long as a saving takes, at least, lie between two


class DescentFile:
    """The file of one descent, written whole every so many seconds.

    folders: where the folders of sweeps are. descent: its identity, see `identity`. Only the same
    code and libraries go on from it: then the numbers are those of a run that was not cut off.
    """

    def __init__(self, folders: Path, descent: str, seconds: float) -> None:
        self.file, self.descent, self.seconds = _place(folders, descent), descent, seconds
        self.spent = 0.0  # seconds of the commands before this one
        self._told = False
        self._begin()

    def due(self) -> bool:
        """Return whether it is time to save."""
        return time.monotonic() >= self._next

    def save(self, parts: Mapping[str, Array]) -> None:
        """Write what a descent goes on from; where that fails, say so once and leave it."""
        tick = time.monotonic()
        own = {names.DESCENT.key: np.array(self.descent), "code": np.array(code())}
        own["seconds"] = np.array(self.spent + tick - self._began)
        size = sum(part.nbytes for part in parts.values())
        # What only pickle could write is not read again, nor is what is too large.
        if size < files.MAX_ARRAY_BYTES and not any(
            part.dtype.hasobject for part in parts.values()
        ):
            try:
                whole = {**own, **parts}
                _write(self.file, {**whole, DIGEST: np.array(_digest(whole))})
            except OSError as error:
                if not self._told:
                    self._tell(f"cannot be written ({error.strerror}); the job goes on without it")
                self._told = True
        now = time.monotonic()
        self._next = now + max(self.seconds, SHARE * (now - tick))

    def resume(self, read: Callable[[Mapping[str, Array]], T]) -> T | None:
        """Return what `read` makes of the file; None where there is none, or one that is no use."""
        self._begin()
        try:
            with (
                files.open_stored_arrays(self.file) as stream,
                np.load(stream, allow_pickle=False) as packed,
            ):
                parts = {name: packed[name] for name in packed.files}
            if str(parts.pop(DIGEST)) != _digest(parts):
                raise ValueError("it is damaged")
            if str(parts.pop(names.DESCENT.key)) != self.descent:
                raise ValueError("it is of another descent")
            if str(parts.pop("code")) != code():
                raise ValueError("it is of other code or other versions of libraries")
            spent = float(parts.pop("seconds"))
            if not 0 <= spent < float("inf"):
                raise ValueError("seconds is no number of seconds")
            found = read(parts)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever lies there must not stop the job
            words = clean.first_line(error)
            self._tell(f"is not gone on from ({words}); the job starts anew")
            return None
        self.spent = spent
        return found

    def _begin(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + self.seconds

    def _tell(self, words: str) -> None:
        print(f"{self.file}: {words}", file=sys.stderr)


def remove(folders: Path, descent: str) -> None:
    """Remove the file of a descent that is recorded, with what was cut off on its way there."""
    place = _place(folders, descent)
    with suppress(OSError):
        for file in place.parent.glob(f"{descent}.*"):
            file.unlink()
        place.parent.rmdir()  # stays where it holds others


def tidy(folders: Path) -> None:
    """Remove the files that are so old that nobody comes back to them."""
    for file in _place(folders, "").parent.glob("*"):
        with suppress(OSError):
            age = time.time() - file.lstat().st_mtime
            if OURS.fullmatch(file.name) and age > OLDEST[file.suffix]:
                file.unlink()


@cache
def code() -> str:
    """Return a digest of all of this project's code, and of the libraries that it computes with."""
    digest = hashlib.sha256(repr([version(name) for name in LIBRARIES]).encode())
    for room in ROOMS:
        for file in sorted(Path(str(files_of(room))).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _digest(parts: Mapping[str, Array]) -> str:
    """Return the SHA-256 of arrays, by their names, types and shapes."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        part = np.ascontiguousarray(parts[name])
        digest.update(repr((name, part.dtype.str, part.shape)).encode())
        digest.update(part.tobytes())
    return digest.hexdigest()


def _place(folders: Path, descent: str) -> Path:
    """Return the file of a descent, in a folder that is this user's own."""
    return folders / f".checkpoints.{os.getuid()}" / f"{descent}.npz"


def _write(file: Path, parts: Mapping[str, Any]) -> None:
    """Write arrays to a file, whole or not at all, whoever else writes it."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(".draft", f"{file.stem}.", file.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            np.savez(stream, **parts)
            stream.flush()
            os.fsync(stream.fileno())
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
