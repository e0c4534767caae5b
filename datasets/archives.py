"""NumPy archives (npz): what they hold, and its size, is checked before anything is read."""

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import NUMBER, UserError, refuse_larger

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
SHOWN = 12  # names of an archive's arrays


def header_of(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether it is stored column by column, and its type."""
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise ValueError("it holds records")
    shape, in_columns, kind = HEADERS[version](stream)
    return shape, in_columns, kind


def read(file: Path, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Return arrays of an npz file by their options, such as `{"x": "points"}`.

    Nothing is unpickled. Raises `UserError` where one is missing or they take too much memory, and
    errors of any kind where the file is no such archive.
    """
    with file.open("rb") as stream:
        if stream.read(6) == b"\x93NUMPY":
            raise ValueError("it holds one array without a name")
        stream.seek(0)
        with zipfile.ZipFile(stream) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            for option, name in names.items():
                if name not in members:
                    shown = ", ".join(list(members)[:SHOWN]) or "none"
                    more = f" and {len(members) - SHOWN} others" if len(members) > SHOWN else ""
                    raise UserError(
                        f"dataset.{option}={name}: {file} has no such array; it has {shown}{more}"
                    )
            sizes = [_entries(archive, members[name]) for name in names.values()]
            remedy = "keep fewer points or features"
            refuse_larger(f"dataset.path={file}", NUMBER * sum(sizes), remedy)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            return {option: arrays[name] for option, name in names.items()}


def _entries(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the number of an array's entries; raise ValueError where its header is wrong."""
    with archive.open(member) as stream:
        shape, _, dtype = header_of(stream)
        held = member.file_size - stream.tell()
    count = math.prod(shape)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    if dtype.itemsize * count != held or (count and not dtype.itemsize):
        raise ValueError(
            f"the array {member.filename} announces {' x '.join(map(str, shape))} entries of "
            f"{dtype.itemsize} bytes and holds {held} bytes"
        )
    return count
