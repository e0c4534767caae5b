"""Load points from a NumPy file (npy), which may be larger than memory."""

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.archives import read_header
from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import (
    TEST_PART_SHARE,
    File,
    FilePoints,
    find_file,
    load_if_small,
    translate_read_errors,
)
from normbench.datasets.on_disk.points import CACHE_BYTES
from normbench.datasets.values import ARRAY_SHARE, UserError, refuse_larger

Array = NDArray[Any]
NPY_RULE_AND_REMEDY = (  # the rule and the remedy
    "cannot be read as a NumPy array",
    "write it with numpy.save(path, array), or read it as what it is (dataset=npz, "
    "dataset=parquet, dataset=csv)",
)
SAVE_REMEDY = "write it with numpy.save(path, numpy.ascontiguousarray(points))"


@dataclass(frozen=True)
class OpenNpyFile:
    """An open npy file of rows of one type, which begin at an offset in bytes.

    `dtype` is the type in the file, `stamp` that of `file`, which `FilePoints` compares.
    """

    file: File
    offset: int
    dtype: np.dtype[Any]
    stamp: tuple[int, ...]


class NpyPoints(FilePoints):
    """Points of an npy file, read into the caller's memory.

    The file is not mapped: mapped pages count as this process's memory, and a mapped file that is
    truncated ends the process. The type of the points (`dtype`) is float32 where that holds every
    number of the file's type (float32, float16, integers of 16 bits or less, booleans), else
    float64.
    """

    opened: OpenNpyFile

    def open(self) -> OpenNpyFile:
        """Open the file, read its header, and set `shape` and `dtype`.

        Raises `UserError` where the file does not hold points.
        """
        with translate_read_errors(self.setting, *NPY_RULE_AND_REMEDY):
            file = File.open_path(self.path)
            with open(file.number, "rb", closefd=False) as stream:
                shape, fortran_order, dtype = read_header(stream)
                offset = stream.tell()
        self._refuse(shape, fortran_order, dtype, file.size - offset)
        self.shape, self.dtype = (shape[0], shape[1]), choose_dtype(dtype)
        return OpenNpyFile(file, offset, dtype, file.stamp)

    def _refuse(
        self, shape: tuple[int, ...], fortran_order: bool, dtype: np.dtype[Any], size: int
    ) -> None:
        """Raise `UserError` unless the header describes points, and the file holds all of them.

        Args:
            shape: The shape in the header.
            fortran_order: Whether the array is stored column by column.
            dtype: The type of its entries.
            size: The number of bytes that follow the header.
        """
        if dtype.kind not in "biuf":
            raise UserError(
                f"{self.setting}: holds an array of type {dtype}; every feature must be a number"
            )
        if len(shape) != 2 or min(shape) < 1:
            raise UserError(
                f"{self.setting}: holds an array of shape {shape}; points are (P, N), one per row"
            )
        if fortran_order:
            raise UserError(
                f"{self.setting}: is stored column by column (Fortran order); {SAVE_REMEDY}"
            )
        if math.prod(shape) * dtype.itemsize != size:
            raise UserError(
                f"{self.setting}: announces {shape[0]} x {shape[1]} entries of {dtype.itemsize} "
                f"bytes and holds {size} bytes; write the file again"
            )

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given.

        See `Points.read`.
        """
        opened, count = self.opened, last - first
        out = np.empty((count, self.shape[1]), self.dtype) if out is None else out[:count]
        if out.dtype == opened.dtype and out.flags.c_contiguous:  # the bytes as they are
            self._fill(opened, first, out)
            return out
        # The file has another type of number, or out is not contiguous: a few rows at a time are
        # read into an array of their own, then copied.
        size = max(1, CACHE_BYTES // (self.shape[1] * opened.dtype.itemsize))
        chunk = np.empty((min(size, count), self.shape[1]), opened.dtype)
        for row in range(0, count, size):
            rows = chunk[: min(size, count - row)]
            self._fill(opened, first + row, rows)
            out[row : row + len(rows)] = rows
        return out

    def read_ahead(self, first: int, last: int) -> None:
        """Ask the system to read rows `first` to `last - 1` into its cache, without waiting."""
        if hasattr(os, "posix_fadvise"):  # not on macOS
            row_bytes, offset = self.shape[1] * self.opened.dtype.itemsize, self.opened.offset
            start, size = offset + first * row_bytes, (last - first) * row_bytes
            os.posix_fadvise(self.opened.file.number, start, size, os.POSIX_FADV_WILLNEED)

    def _fill(self, opened: OpenNpyFile, first: int, rows: Array) -> None:
        """Fill an array with the rows of the file from `first` on.

        Args:
            opened: The open file.
            first: The index of the first row.
            rows: The array (p, N) to be filled, contiguous and of the file's own type.

        Raises:
            UserError: The file ends before the last row, or cannot be read.
        """
        position = opened.offset + first * self.shape[1] * opened.dtype.itemsize
        unread = rows.reshape(-1).view(np.uint8).data  # the bytes of the array still to be filled
        # One call may read fewer bytes than asked for.
        while len(unread):
            try:
                count = os.preadv(opened.file.number, [unread], position)
            except OSError as error:
                raise UserError(
                    f"{self.setting}: rows {first} to {first + len(rows) - 1} cannot be read "
                    f"({error.strerror}); check the disk"
                ) from error
            if not count:  # the end of the file
                raise self.change_error(
                    f"it ends before row {first + len(rows) - 1}, counted from 0"
                )
            self.count_bytes(count)
            unread, position = unread[count:], position + count


def choose_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 where it holds all numbers of a type exactly, else float64."""
    is_exact = np.can_cast(dtype, np.float32, "safe")
    return np.dtype(np.float32 if is_exact else np.float64)


def npy(
    path: str | None,
    targets: str | None = None,
    test_path: str | None = None,
    test_targets: str | None = None,
    in_blocks: bool | None = None,
    task: str | None = None,
    merge_labels: bool = False,
) -> Dataset:
    """Return the points (P, N) of a NumPy file; nothing in it is ever unpickled.

    Args:
        path: The file, from the working folder.
        targets: The file of the targets (P,); None for unlabelled points.
        test_path: The file of the test points; None without a test part.
        test_targets: The file of the targets of the test points; None without them.
        in_blocks: None holds points in memory where they take at most a quarter of it, and else
            reads them from the file by blocks; True always reads by blocks (a test part: where it
            takes more than a sixteenth of the memory); False never does.
        task: `classes`, `regression`, or None to decide by the targets.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: A file cannot be read, or the files do not fit together.
    """
    points = NpyPoints(f"dataset.path={path}", find_file("dataset.path", path, "X.npy"))
    x, x_test = load_if_small(points, in_blocks), None
    if test_path is not None:
        # Where the training points stay in their file, the test points have a smaller share.
        test_points = _open_test_points(test_path, points.dtype)
        x_test = load_if_small(
            test_points,
            None if in_blocks else in_blocks,  # True leaves the test part to its own share
            TEST_PART_SHARE if x is points else ARRAY_SHARE,
        )
    return label_dataset(
        points.path.stem,
        x,
        _load_targets("dataset.targets", targets),
        task,
        merge_labels=merge_labels,
        source=str(points.path),
        x_test=x_test,
        y_test=_load_targets("dataset.test_targets", test_targets),
        precision=points.dtype.name,
    )


def _open_test_points(path: str, dtype: np.dtype[Any]) -> NpyPoints:
    """Return the points of a test part, left in their file.

    Args:
        path: The setting `dataset.test_path`.
        dtype: The type as which the training points are read.

    Raises:
        UserError: The file does not hold points, or they are read as another type: float32 beside
            float64.
    """
    points = NpyPoints(f"dataset.test_path={path}", find_file("dataset.test_path", path, "T.npy"))
    if points.dtype != dtype:
        raise UserError(
            f"dataset.test_path={path}: is read as {points.dtype} and the training points as "
            f"{dtype}; write both with one type of number"
        )
    return points


def _load_targets(option: str, path: str | None) -> Array | None:
    """Return an array of targets in its own type, None where no file is named.

    Args:
        option: The setting that names the file, `dataset.targets` or `dataset.test_targets`.
        path: Its value.

    Raises:
        UserError: The file is not an npy file of plain numbers or texts, or too large.
    """
    if path is None:
        return None
    file = find_file(option, path, "y.npy")
    setting = f"{option}={path}"
    with translate_read_errors(setting, *NPY_RULE_AND_REMEDY), file.open("rb") as stream:
        shape, _, dtype = read_header(stream)
        refuse_larger(setting, math.prod(shape) * dtype.itemsize, "choose a smaller one")
        stream.seek(0)
        return np.asarray(np.load(stream, allow_pickle=False))
