"""Read arrays of NumPy archives (npz); names, headers and sizes are checked before any array."""

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import FLOAT64_BYTES, UserError, refuse_larger

HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
MAX_LISTED_ARRAYS = 12  # array names that an error message lists


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether it is stored column by column, and its type.

    Args:
        stream: An npy file, at its start; it is read up to the end of the header.

    Raises:
        ValueError: The stream is no npy file of plain entries; callers turn it into `UserError`.
    """
    version = np.lib.format.read_magic(stream)
    if version not in HEADER_READERS:  # version 3.0 is only written for records
        raise ValueError("it holds records")
    shape, fortran_order, dtype = HEADER_READERS[version](stream)
    return shape, fortran_order, dtype


def read_npz(file: Path, names: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Read some arrays of an npz file, once their names and sizes are known to fit.

    Nothing is unpickled.

    Args:
        file: The file.
        names: The name of each array by the option that names it, such as `{"x": "points"}` for
            `dataset.x=points`.

    Returns:
        The arrays by option.

    Raises:
        UserError: An array is missing, or the arrays take too much memory.
        Exception: The file is no npz archive; the caller turns whatever is raised into `UserError`.
    """
    with file.open("rb") as stream:
        if stream.read(6) == b"\x93NUMPY":  # an npy file, which is often taken for npz
            raise ValueError("it holds one array without a name")
        stream.seek(0)
        with zipfile.ZipFile(stream) as archive:
            members = {
                member.filename.removesuffix(".npy"): member for member in archive.infolist()
            }
            # All names are looked up before any array is read.
            for option, name in names.items():
                if name not in members:
                    listed_names = ", ".join(list(members)[:MAX_LISTED_ARRAYS]) or "none"
                    remainder = (
                        f" and {len(members) - MAX_LISTED_ARRAYS} others"
                        if len(members) > MAX_LISTED_ARRAYS
                        else ""
                    )
                    raise UserError(
                        f"dataset.{option}={name}: {file} has no such array; it has "
                        f"{listed_names}{remainder}"
                    )
            # The sizes are known from the headers, before the memory is taken; 8 bytes an entry,
            # since points become float64.
            sizes = [_count_entries(archive, members[name]) for name in names.values()]
            remedy = "keep fewer points or features"
            refuse_larger(f"dataset.path={file}", FLOAT64_BYTES * sum(sizes), remedy)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as arrays:
            return {option: arrays[name] for option, name in names.items()}


def _count_entries(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the number of entries of an array in an archive.

    Only its header is read. Raises `ValueError` where the header does not fit the number of bytes
    that follow, or the entries are Python objects, which would be unpickled.
    """
    with archive.open(member) as stream:
        shape, _, dtype = read_header(stream)
        data_bytes = member.file_size - stream.tell()
    entry_count = math.prod(shape)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    # Entries of 0 bytes fit any header: a small file would announce an array of any size.
    if dtype.itemsize * entry_count != data_bytes or (entry_count and not dtype.itemsize):
        raise ValueError(
            f"the array {member.filename} announces {' x '.join(map(str, shape))} entries of "
            f"{dtype.itemsize} bytes and holds {data_bytes} bytes"
        )
    return entry_count
