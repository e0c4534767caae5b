"""Open text files of tables, compressed or not, with limits on their size and columns."""

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

from normbench.datasets.values import UserError, available_bytes, format_gigabytes, refuse_larger

# Bytes of text, as shares of the memory: a number of two digits becomes 8 bytes and is copied
# twice, a word of two letters takes some 60.
NUMBERS_SHARE, TEXT_SHARE = 1 / 16, 1 / 64
MAX_COLUMNS = 50_000  # pandas takes some 50 microseconds for each
HEAD_BYTES = 1 << 20  # bytes that are inspected first
OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


@contextmanager
def open_text(file: Path, delimiter: str, share: float) -> Iterator[tuple[IO[bytes], list[str]]]:
    """Yield the unpacked text of a file from its start on, and the entries of its first row.

    The stream can be read once. The entries are those of the first row that is not empty, as text.

    Args:
        file: The file.
        delimiter: The delimiter of entries; one of several characters stands for any blanks.
        share: The share of the memory that the text may take.

    Raises:
        UserError: The text is too large, which may show only while it is read; or it has too many
            columns, or is no text.
    """
    setting = f"dataset.path={file}"
    with file.open("rb") as packed:
        first_bytes = packed.read(8)
        packed.seek(0)
        with _unpack(packed, first_bytes, setting) as unpacked:
            # The size of a text that is not compressed is known before it is read.
            if unpacked is packed:
                refuse_larger(setting, file.stat().st_size, SIZE_REMEDY, share)
            bounded = io.BufferedReader(_Bounded(unpacked, setting, share), HEAD_BYTES)
            head = bounded.peek(HEAD_BYTES)  # the stream stays at its start
            if b"\0" in head:
                raise UserError(
                    f"{setting}: is not text in UTF-8 (it holds zero bytes); save it as UTF-8, or "
                    "read it as what it is (dataset=parquet, dataset=npz)"
                )
            lines = (line for line in head.splitlines() if line.strip())  # pandas skips empty ones
            first_line = next(lines, b"").decode(errors="replace")
            entries = split_row(first_line, delimiter)
            refuse_columns(file, len(entries))
            yield bounded, entries


SIZE_REMEDY = "leave out what is not needed, or write the points as npz"


def refuse_columns(file: Path, count: int) -> None:
    """Raise `UserError` for a table of more columns than `MAX_COLUMNS`.

    Args:
        file: The file of the table, for the error.
        count: The number of its columns.
    """
    if count > MAX_COLUMNS:
        raise UserError(
            f"dataset.path={file}: has {count} columns, and at most {MAX_COLUMNS} may be; "
            "of a file with one point per column: dataset.points_in=columns; write points of more "
            "features as npz"
        )


def split_row(line: str, delimiter: str) -> list[str]:
    """Return the entries of a row, without quotes.

    Args:
        line: The row. If it is longer than `HEAD_BYTES`, its end is missing.
        delimiter: See `open_text`.
    """
    if len(delimiter) > 1:
        return line.split()
    try:
        entries = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:  # an entry of more than 131,072 letters
        entries = line.split(delimiter)
    # The mark that some programs write at the start of a file in UTF-8 is no part of a name.
    return [entry.removeprefix("\ufeff") for entry in entries]


@contextmanager
def _unpack(packed: IO[bytes], first_bytes: bytes, setting: str) -> Iterator[IO[bytes]]:
    """Yield the content of a file, decompressed where its first bytes name a compression.

    Args:
        packed: The file, at its start. It is yielded itself where it is not compressed.
        first_bytes: The first bytes of the file, 6 or more (fewer of a shorter file).
        setting: The setting that names the file, for the error.

    Raises:
        UserError: It is a zip archive of several files.
    """
    opener: Any = next((OPENERS[mark] for mark in OPENERS if first_bytes.startswith(mark)), None)
    if opener is not None:
        with opener(packed, "rb") as unpacked:
            yield unpacked
    elif first_bytes.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(packed) as archive:
            members = archive.namelist()
            if len(members) != 1:
                raise UserError(f"{setting}: is an archive of {len(members)} files; unpack it")
            with archive.open(members[0]) as unpacked:
                yield unpacked
    else:
        yield packed


class _Bounded(io.RawIOBase):
    """A stream that raises `UserError` once it yields more bytes than a share of the memory.

    The size of a compressed text is known only once it is unpacked.
    """

    def __init__(self, stream: IO[bytes], setting: str, share: float) -> None:
        """Bound a stream.

        Args:
            stream: The stream of the unpacked text.
            setting: The setting that names the file, as `name=value`, for the error.
            share: The share of the memory that is available now.
        """
        super().__init__()
        self._stream, self._setting, self._share = stream, setting, share
        self._max_bytes, self._byte_count = share * available_bytes(), 0

    def readable(self) -> bool:
        """Return True: `io.BufferedReader` asks for it."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from its start on; return the number of bytes, 0 at the end."""
        chunk = self._stream.read(len(buffer))
        self._byte_count += len(chunk)
        if self._byte_count > self._max_bytes:
            raise UserError(
                f"{self._setting}: unpacks to more than {format_gigabytes(self._max_bytes)} "
                f"({self._share:.1%} of the memory that this machine has free); {SIZE_REMEDY}"
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)
