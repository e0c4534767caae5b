"""Files where others may have put something else: regular ones only, opened without waiting."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, ZipFile

from normbench.results.store.owner import opened

LARGEST = 1 << 32  # bytes of arrays that are kept on disk


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
