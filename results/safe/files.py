"""Files where others may have put something else: regular ones only, opened without waiting."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, ZipFile

LARGEST = 1 << 32  # bytes of arrays that are kept on disk


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


def _check(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def content(path: Path, most: int) -> bytes:
    """Return what a regular file of at most so many bytes holds. Raises OSError for any other."""
    with os.fdopen(opened(path), "rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EFBIG, f"is larger than {most} bytes", str(path))
    return found


@contextmanager
def stored(path: Path) -> Iterator[IO[bytes]]:
    """Open arrays that numpy's savez wrote: nothing in them is larger than the file itself.

    Raises OSError, or ValueError, for anything else.
    """
    with os.fdopen(opened(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        with ZipFile(stream) as packed:
            parts = packed.infolist()
        packs = any(part.compress_type != ZIP_STORED for part in parts)
        if packs or size > LARGEST or sum(part.file_size for part in parts) > size:
            raise ValueError("is not what was written there")
        stream.seek(0)
        yield stream


@contextmanager
def packed(path: Path) -> Iterator[IO[bytes]]:
    """Open arrays that numpy's savez_compressed wrote, which unpack to what memory can hold.

    Raises OSError, or what zipfile raises, for anything else.
    """
    most = min(LARGEST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
    with os.fdopen(opened(path), "rb") as stream:
        with ZipFile(stream) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size > most:
            raise ValueError(f"it would take {size / 1e9:.3g} GB of memory")
        stream.seek(0)
        yield stream
