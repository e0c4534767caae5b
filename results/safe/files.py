"""Open files in folders that others can write to: regular files only, and without blocking."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, ZipFile

MAX_ARRAY_BYTES = 1 << 32  # the largest file of arrays that is read


def open_descriptor(path: Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Open a regular file.

    Args:
        path: The file.
        flags: Flags of `os.open`; `O_NOFOLLOW`, `O_NONBLOCK` and `O_CLOEXEC` are added.
        mode: The permissions of a file that is created.

    Returns:
        Its descriptor.

    Raises:
        OSError: It is a link, a folder, a device or a pipe, which would block until its other end
            is opened.
    """
    # A device is refused before it is opened, because opening may already have an effect.
    with suppress(FileNotFoundError):
        _require_regular(os.lstat(path), path)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:  # the file may have been replaced in between
        _require_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, path: Path) -> None:
    """Raise OSError unless a status is that of a regular file; path: for the message."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Args:
        path: The file.
        max_bytes: The largest size that is read.

    Returns:
        Its bytes.

    Raises:
        OSError: It is larger, or no regular file.
    """
    with os.fdopen(open_descriptor(path), "rb") as file:
        raw = file.read(max_bytes + 1)  # one byte more shows that the file is larger
    if len(raw) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes} bytes", str(path))
    return raw


@contextmanager
def open_stored_arrays(path: Path) -> Iterator[IO[bytes]]:
    """Open an uncompressed archive of arrays, written by `numpy.savez`.

    Args:
        path: The archive.

    Yields:
        A stream of it; no array in it is larger than the file itself.

    Raises:
        OSError: It is no regular file.
        ValueError: It is compressed or larger than `MAX_ARRAY_BYTES`, or its members are larger
            than it.
    """
    with os.fdopen(open_descriptor(path), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        with ZipFile(stream) as archive:
            members = archive.infolist()
        is_compressed = any(member.compress_type != ZIP_STORED for member in members)
        if (
            is_compressed
            or size > MAX_ARRAY_BYTES
            or sum(member.file_size for member in members) > size
        ):
            raise ValueError("is not what was written there")
        stream.seek(0)
        yield stream


@contextmanager
def open_compressed_arrays(path: Path) -> Iterator[IO[bytes]]:
    """Open a compressed archive of arrays, written by `numpy.savez_compressed`.

    Args:
        path: The archive.

    Yields:
        A stream of it; its arrays take at most a quarter of the machine's memory.

    Raises:
        OSError: It is no regular file.
        ValueError: Its arrays would take more memory.
        BadZipFile: It is no archive.
    """
    max_bytes = min(MAX_ARRAY_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
    with os.fdopen(open_descriptor(path), "rb") as stream:
        with ZipFile(stream) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > max_bytes:
            raise ValueError(f"it would take {size / 1e9:.3g} GB of memory")
        stream.seek(0)
        yield stream
