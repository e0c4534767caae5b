"""Text files of tables, packed or not, opened with limits on their size and columns."""

import bz2
import csv
import gzip
import io
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from normbench.datasets.values import UserError, available, gigabytes, refuse_larger

# Bytes of text, as shares of the memory: a number of two letters becomes 8 bytes and is copied
# twice, a word of two letters some 60.
NUMBERS, WORDS = 1 / 16, 1 / 64
MOST_COLUMNS = 50_000  # pandas takes some 50 microseconds for each
HEAD = 1 << 20  # bytes that are looked at first
PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


@contextmanager
def opened(file: Path, delimiter: str, share: float) -> Iterator[tuple[IO[bytes], list[str]]]:
    """Yield a file's text, unpacked, and the entries of its first row.

    delimiter: between entries; a pattern of blanks where it is longer than a letter. share: of the
    memory, that the text may have. Raises `UserError` where it is larger, has too many columns, or
    is no text.
    """
    setting = f"dataset.path={file}"
    with file.open("rb") as packed:
        start = packed.read(8)
        packed.seek(0)
        with _unpacked(packed, start, setting) as plain:
            if plain is packed:
                refuse_larger(setting, file.stat().st_size, REMEDY, share)
            bounded = io.BufferedReader(_Bounded(plain, setting, share), HEAD)
            head = bounded.peek(HEAD)
            if b"\0" in head:
                raise UserError(
                    f"{setting}: is not text in UTF-8 (it holds zero bytes); save it as UTF-8, or "
                    "read it as what it is (dataset=parquet, dataset=npz)"
                )
            lines = (line for line in head.splitlines() if line.strip())  # pandas skips empty ones
            first = next(lines, b"").decode(errors="replace")
            entries = _entries(first, delimiter)
            refuse_columns(file, len(entries))
            yield bounded, entries


REMEDY = "leave out what is not needed, or write the points as npz"


def refuse_columns(file: Path, count: int) -> None:
    """Raise `UserError` for a table of too many columns."""
    if count > MOST_COLUMNS:
        raise UserError(
            f"dataset.path={file}: has {count} columns, and at most {MOST_COLUMNS} may be; "
            "of a file with one point per column: dataset.points_in=columns; write points of more "
            "features as npz"
        )


def _entries(line: str, delimiter: str) -> list[str]:
    """Return the entries of a row; of a row that is cut off, those that are there."""
    if len(delimiter) > 1:
        return line.split()
    try:
        found = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # an entry of more than 131,072 letters
        found = line.split(delimiter)
    return [entry.removeprefix("\ufeff") for entry in found]


@contextmanager
def _unpacked(packed: IO[bytes], start: bytes, setting: str) -> Iterator[IO[bytes]]:
    """Yield a file's content, unpacked where its first bytes `start` say that it is packed."""
    opener: Any = next((PACKED[mark] for mark in PACKED if start.startswith(mark)), None)
    if opener is not None:
        with opener(packed, "rb") as plain:
            yield plain
    elif start.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(packed) as archive:
            members = archive.namelist()
            if len(members) != 1:
                raise UserError(f"{setting}: is an archive of {len(members)} files; unpack it")
            with archive.open(members[0]) as plain:
                yield plain
    else:
        yield packed


class _Bounded(io.RawIOBase):
    """A stream that ends in a `UserError` where it gives more than a share of the memory."""

    def __init__(self, stream: IO[bytes], setting: str, share: float) -> None:
        super().__init__()
        self._stream, self._setting, self._share = stream, setting, share
        self._most, self._given = share * available(), 0

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; return with how many bytes."""
        found = self._stream.read(len(buffer))
        self._given += len(found)
        if self._given > self._most:
            raise UserError(
                f"{self._setting}: unpacks to more than {gigabytes(self._most)} "
                f"({self._share:.1%} of the memory that this machine has free); {REMEDY}"
            )
        buffer[: len(found)] = found
        return len(found)
