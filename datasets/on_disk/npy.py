"""Points in a NumPy file (npy), which may be larger than memory."""

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.archives import header_of
from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import (
    BESIDE,
    File,
    FilePoints,
    damage_refused,
    existing,
    held,
)
from normbench.datasets.values import SHARE, UserError, refuse_larger

Array = NDArray[Any]
PIECE = 1 << 20  # bytes that are read at once where they become another type: they stay in a cache
NO_ARRAY = (  # the rule and the remedy
    "cannot be read as a NumPy array",
    "write it with numpy.save(path, array), or read it as what it is (dataset=npz, "
    "dataset=parquet, dataset=csv)",
)
WRITE = "write it with numpy.save(path, numpy.ascontiguousarray(points))"


@dataclass(frozen=True)
class Opened:
    """An open npy file of rows of one type, which begin at an offset in bytes."""

    file: File
    offset: int
    kind: np.dtype[Any]
    stamp: tuple[int, ...]


class NpyPoints(FilePoints):
    """Points of an npy file, read into the memory that is given.

    Not mapped: mapped pages count as this process's memory, and a file that is cut off while it is
    mapped ends the process. dtype: float32 where that holds every number of the file's type
    (float32, float16, whole numbers of 16 bits or less, truth values), else float64.
    """

    opened: Opened

    def open(self) -> Opened:
        """Open the file and read its header."""
        with damage_refused(self.setting, *NO_ARRAY):
            file = File.of(self.path)
            with open(file.number, "rb", closefd=False) as stream:
                shape, in_columns, kind = header_of(stream)
                offset = stream.tell()
        self._refuse(shape, in_columns, kind, file.size - offset)
        self.shape, self.dtype = (shape[0], shape[1]), read_as(kind)
        return Opened(file, offset, kind, file.stamp)

    def _refuse(
        self, shape: tuple[int, ...], in_columns: bool, kind: np.dtype[Any], size: int
    ) -> None:
        """Raise `UserError` for an array that is no points, or that the file does not hold."""
        if kind.kind not in "biuf":
            raise UserError(
                f"{self.setting}: holds an array of type {kind}; every feature must be a number"
            )
        if len(shape) != 2 or min(shape) < 1:
            raise UserError(
                f"{self.setting}: holds an array of shape {shape}; points are (P, N), one per row"
            )
        if in_columns:
            raise UserError(f"{self.setting}: is stored column by column (Fortran order); {WRITE}")
        if math.prod(shape) * kind.itemsize != size:
            raise UserError(
                f"{self.setting}: announces {shape[0]} x {shape[1]} entries of {kind.itemsize} "
                f"bytes and holds {size} bytes; write the file again"
            )

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given."""
        opened, count = self.opened, last - first
        out = np.empty((count, self.shape[1]), self.dtype) if out is None else out[:count]
        if out.dtype == opened.kind and out.flags.c_contiguous:
            self._fill(opened, first, out)
            return out
        size = max(1, PIECE // (self.shape[1] * opened.kind.itemsize))
        piece = np.empty((min(size, count), self.shape[1]), opened.kind)
        for row in range(0, count, size):
            rows = piece[: min(size, count - row)]
            self._fill(opened, first + row, rows)
            out[row : row + len(rows)] = rows
        return out

    def ahead(self, first: int, last: int) -> None:
        """Have the system read rows `first` to `last - 1` into its own cache, without waiting."""
        if hasattr(os, "posix_fadvise"):  # not on macOS
            row, place = self.shape[1] * self.opened.kind.itemsize, self.opened.offset
            begin, size = place + first * row, (last - first) * row
            os.posix_fadvise(self.opened.file.number, begin, size, os.POSIX_FADV_WILLNEED)

    def _fill(self, opened: Opened, first: int, rows: Array) -> None:
        """Read the rows from `first` on into an array of the file's own type."""
        place = opened.offset + first * self.shape[1] * opened.kind.itemsize
        rest = rows.reshape(-1).view(np.uint8).data
        while len(rest):
            try:
                count = os.preadv(opened.file.number, [rest], place)
            except OSError as error:
                raise UserError(
                    f"{self.setting}: rows {first} to {first + len(rows) - 1} cannot be read "
                    f"({error.strerror}); check the disk"
                ) from error
            if not count:
                raise self.changed(f"it ends before row {first + len(rows) - 1}, counted from 0")
            self.count(count)
            rest, place = rest[count:], place + count


def read_as(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers of a type are read as: float32 where it holds all of them."""
    exact = np.can_cast(kind, np.float32, "safe")
    return np.dtype(np.float32 if exact else np.float64)


def npy(
    path: str | None,
    targets: str | None = None,
    test_path: str | None = None,
    test_targets: str | None = None,
    in_blocks: bool | None = None,
    task: str | None = None,
) -> Dataset:
    """Return the points (P, N) of a NumPy file; nothing in it is ever unpickled.

    targets: the file of the targets (P,), None for unlabelled points. test_path, test_targets: of
    a test part. in_blocks: None for points in memory where they take at most a quarter of it, and
    else read from the file whenever they are needed; True for the latter in any case (of a test
    part: where it takes more than a sixteenth), False for the former. task: as for `csv`. Raises
    `UserError`.
    """
    points = NpyPoints(f"dataset.path={path}", existing("dataset.path", path, "X.npy"))
    x, x_test = held(points, in_blocks), None
    if test_path is not None:
        tested = _test_points(test_path, points.dtype)
        x_test = held(tested, None if in_blocks else in_blocks, BESIDE if x is points else SHARE)
    return label_dataset(
        points.path.stem,
        x,
        _targets("dataset.targets", targets),
        task,
        source=str(points.path),
        x_test=x_test,
        y_test=_targets("dataset.test_targets", test_targets),
        precision=points.dtype.name,
    )


def _test_points(path: str, kind: np.dtype[Any]) -> NpyPoints:
    """Return the points of a test part, which have to be of the type of the training points."""
    points = NpyPoints(f"dataset.test_path={path}", existing("dataset.test_path", path, "T.npy"))
    if points.dtype != kind:
        raise UserError(
            f"dataset.test_path={path}: is read as {points.dtype} and the training points as "
            f"{kind}; write both with one type of number"
        )
    return points


def _targets(option: str, path: str | None) -> Array | None:
    """Return an array of targets in its own type, None where no file is named."""
    if path is None:
        return None
    file = existing(option, path, "y.npy")
    setting = f"{option}={path}"
    with damage_refused(setting, *NO_ARRAY), file.open("rb") as stream:
        shape, _, kind = header_of(stream)
        refuse_larger(setting, math.prod(shape) * kind.itemsize, "choose a smaller one")
        stream.seek(0)
        return np.asarray(np.load(stream, allow_pickle=False))
