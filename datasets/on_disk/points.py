"""Points that memory need not hold: memory maps, read by blocks, and written once.

A memory map is an `np.memmap`, an array whose rows are read from its file where they are used.
"""

import mmap
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.values import ARRAY_SHARE, UserError, available_bytes, format_gigabytes

Array = NDArray[Any]
Points = Any  # (P, N): an array, a memory map, or `SparsePoints`
BLOCK_BYTES = 1 << 23  # of rows that are read at once by default
TRANSFORMED_ROWS = 4096  # of points in memory that are transformed at a time
TAKEN_ROWS = 16  # of a memory map, before memory is given back: a row may bring 2 MB around it
_folder = [Path()]  # of the memory maps that are written: see `write_maps_to`


def is_in_memory(x: Points) -> bool:
    """Return whether points are an array in memory: no memory map, and not sparse."""
    return isinstance(x, np.ndarray) and not isinstance(x, np.memmap)


def write_maps_to(folder: Path) -> None:
    """Write the memory maps of this process to a folder, which should be on a disk.

    As long as the folder does not exist, they are written to the nearest one above it.
    """
    _folder[0] = folder


def rows_per_block(x: Points) -> int:
    """Return how many rows make up a block of `BLOCK_BYTES`, 1 at least."""
    return max(1, BLOCK_BYTES // max(1, x.shape[1] * x.dtype.itemsize))


def iterate_blocks(x: Points, size: int | None = None) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks of points in order, each as a slice of rows and an array of them.

    The pages of a memory map are given back after each block.

    Args:
        x: Points (P, N).
        size: The number of rows of a block. By default an array in memory is one block, and a block
            of other points has `BLOCK_BYTES`.
    """
    size = size or (len(x) if is_in_memory(x) else rows_per_block(x))
    for first in range(0, len(x), max(1, size)):
        rows = slice(first, min(first + size, len(x)))
        block = x[rows]
        yield rows, as_array(block)
        give_back(block)


def as_array(x: Points) -> Array:
    """Return points as an array, sparse ones with their zeros."""
    return x.toarray() if isinstance(x, SparsePoints) else x


def take_rows(x: Points, indices: NDArray[Any]) -> Array:
    """Return rows (p, N) of points by their indices (p,), as an array in memory."""
    if not isinstance(x, np.memmap):
        return as_array(x[indices])
    rows = np.empty((len(indices), x.shape[1]), x.dtype)
    for first in range(0, len(indices), TAKEN_ROWS):
        taken = indices[first : first + TAKEN_ROWS]
        rows[first : first + TAKEN_ROWS] = x[taken]
        give_back(x[taken.min() : taken.max() + 1])
    return rows


def give_back(rows: Points) -> None:
    """Give the memory of consecutive rows of a memory map back to the system.

    They are read again where they are used again. Nothing happens to other points.
    """
    if isinstance(rows, np.memmap) and rows.size and hasattr(mmap, "MADV_DONTNEED"):
        file: Any = rows._mmap  # type: ignore[attr-defined]
        first = rows.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data
        page = first - first % mmap.PAGESIZE
        file.madvise(mmap.MADV_DONTNEED, page, first + rows.nbytes - page)


def write_map(blocks: Iterable[Array], shape: tuple[int, int], dtype: Any) -> Array:
    """Return points as a memory map, of a file that is gone when nothing refers to it.

    The file has no name in its folder, so that none is left behind, whatever ends the program.

    Args:
        blocks: The rows of the points, block after block.
        shape: The shape of the points (P, N).
        dtype: Their type.

    Raises:
        UserError: The disk has no room for the file.
    """
    folder = _folder[0].absolute()
    folder = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if not size:  # there is no memory map of nothing
        return np.empty(shape, dtype)
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UserError(
            f"points that do not fit in memory: {format_gigabytes(size)} of them are written to "
            f"{folder}, whose disk has {format_gigabytes(free)} free; choose fewer points"
        )
    with tempfile.TemporaryFile(dir=folder) as file:
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype).data)
        file.flush()
        return np.memmap(file, dtype, "r", shape=shape)


def transform_rows(
    x: Points,
    transform: Callable[[Array], Array],
    width: int,
    dtype: Any = np.float64,
    size: int = TRANSFORMED_ROWS,
) -> Array:
    """Return points as a function makes them of x: in memory where x is, else a memory map.

    Args:
        x: Points (P, N).
        transform: Returns rows (p, width) of rows (p, N).
        width: The number of features of the result.
        dtype: The type of the result.
        size: How many rows of points in memory are transformed at a time.

    Returns:
        Points (P, width).
    """
    if not is_in_memory(x):
        blocks = (transform(rows) for _, rows in iterate_blocks(x))
        return write_map(blocks, (len(x), width), dtype)
    transformed = np.empty((len(x), width), dtype)
    for block, rows in iterate_blocks(x, size):
        transformed[block] = transform(rows)
    return transformed


def select_rows(x: Points, mask: NDArray[np.bool_]) -> Points:
    """Return the rows of points that a mask (P,) selects, in their order.

    The rows of a memory map are copied once: to memory where they take at most a quarter of it,
    unless `dataset.in_blocks` asks for the file; otherwise to a memory map.

    Args:
        x: Points (P, N).
        mask: The mask of the rows (P,).
    """
    if not isinstance(x, np.memmap):
        return x[mask]
    count, in_blocks = int(np.count_nonzero(mask)), vars(x).get("in_blocks", False)
    blocks = (rows[mask[block]] for block, rows in iterate_blocks(x))
    if not in_blocks and count * x.shape[1] * x.itemsize <= ARRAY_SHARE * available_bytes():
        selection = np.concatenate(list(blocks))
    else:
        selection = write_map(blocks, (count, x.shape[1]), x.dtype)
        vars(selection)["in_blocks"] = in_blocks
    check_unchanged(x)
    return selection


def open_map(setting: str, path: Path) -> Array:
    """Return the array of an npy file as a read-only memory map; nothing in it is unpickled.

    `check_unchanged` notices from then on where the file changes.

    Args:
        setting: The setting that names the file, such as `dataset.path=X.npy`, for errors.
        path: The file.
    """
    x: Array = np.lib.format.open_memmap(path, mode="r")
    vars(x).update(setting=setting, path=path, stamp=_read_stamp(path))
    return x


def check_unchanged(*points: Points) -> None:
    """Raise `UserError` where the user's file of a memory map has changed since it was opened."""
    for opened in (vars(x) for x in points if isinstance(x, np.memmap)):
        if "stamp" in opened and _read_stamp(opened["path"]) != opened["stamp"]:
            raise UserError(f"{opened['setting']}: was changed while the sweep ran; run it again")


def _read_stamp(path: Path) -> tuple[int, ...]:
    """Return the size, time and identity of a file, by which a change is noticed; () without it."""
    if not path.exists():
        return ()
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
