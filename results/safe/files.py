"""Files where others may have put something else: regular ones only, opened without waiting."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, ZipFile

MAX_ARRAY_BYTES = 1 << 32  # bytes of arrays that are kept on disk


def open_descriptor(path: Path, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Return the descriptor of a regular file.

    Raises OSError for a link, a folder, a device, or a pipe, which would wait for its other end.
    """
    with suppress(FileNotFoundError):
        _require_regular(os.lstat(path), path)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:
        _require_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return what a regular file of at most so many bytes holds. Raises OSError for any other."""
    with os.fdopen(open_descriptor(path), "rb") as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes} bytes", str(path))
    return raw


@contextmanager
def open_stored_arrays(path: Path) -> Iterator[IO[bytes]]:
    """Open arrays that numpy's savez wrote: nothing in them is larger than the file itself.

    Raises OSError, or ValueError, for anything else.
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
    """Open arrays that numpy's savez_compressed wrote, which unpack to what memory can hold.

    Raises OSError, or what zipfile raises, for anything else.
    """
    max_bytes = min(MAX_ARRAY_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
    with os.fdopen(open_descriptor(path), "rb") as stream:
        with ZipFile(stream) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > max_bytes:
            raise ValueError(f"it would take {size / 1e9:.3g} GB of memory")
        stream.seek(0)
        yield stream
