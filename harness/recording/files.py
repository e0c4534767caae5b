"""Files where others may have put something else: regular ones only, opened without waiting."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def opened(path: Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Return the descriptor of a regular file.

    Raises OSError for a link, a folder, a device, or a pipe, which would wait for its other end.
    """
    with suppress(FileNotFoundError):
        _check(os.lstat(path), path)
    number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:
        _check(os.fstat(number), path)
    except OSError:
        os.close(number)
        raise
    return number


def content(path: Path, most: int) -> bytes:
    """Return what a regular file of at most so many bytes holds. Raises OSError for any other."""
    with os.fdopen(opened(path), "rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return found


def _check(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))
