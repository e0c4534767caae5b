"""Points in a Parquet file that are read by its row groups, for files larger than memory."""

import os
import threading
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import columns
from normbench.datasets.dataset import Dataset
from normbench.datasets.entries import targets_of
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import FilePoints, damage_refused, stamp_of
from normbench.datasets.on_disk.points import BLOCK_BYTES, Array
from normbench.datasets.values import NUMBER, SHARE, UserError, available, refuse_larger, switch

if TYPE_CHECKING:
    import pyarrow.parquet as pq

SHOWN = 8  # columns that a message names
MEMORY = "leave them out, or make the file small enough to be held in memory"


@dataclass(frozen=True)
class Opened:
    """An open Parquet file: its groups begin at the rows `starts`, the last of which is no row."""

    file: "pq.ParquetFile"
    starts: NDArray[np.intp]
    stamp: tuple[int, ...]


class RowGroups(FilePoints):
    """Points of some columns of a Parquet file, in float64.

    A thread keeps the row group that it read last.
    """

    opened: Opened
    dtype = np.dtype(np.float64)

    def __init__(self, setting: str, path: Path, features: tuple[str, ...]) -> None:
        """Open a file; features: the names of its columns that are the points' numbers."""
        self.features = features
        self._last, self._decoding = threading.local(), threading.Lock()
        super().__init__(setting, path)

    def open(self) -> Opened:
        """Open the file and read what it says of itself."""
        import pyarrow.parquet as pq

        with self._damage_refused("the file"):
            stamp = stamp_of(os.stat(self.path))
            file = pq.ParquetFile(self.path)
            about, schema = file.metadata, file.schema_arrow
            counts = [about.row_group(n).num_rows for n in range(about.num_row_groups)]
        self._refuse(schema)
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.intp)])
        self.shape = (int(starts[-1]), len(self.features))
        return Opened(file, starts, stamp)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given."""
        opened, count = self.opened, last - first
        out = np.empty((count, self.shape[1]), self.dtype) if out is None else out[:count]
        row = first
        while row < last:
            number = int(np.searchsorted(opened.starts, row, side="right")) - 1
            begin, end = int(opened.starts[number]), min(int(opened.starts[number + 1]), last)
            out[row - first : end - first] = self._group(opened, number)[row - begin : end - begin]
            row = end
        return out

    def _group(self, opened: Opened, number: int) -> Array:
        """Return the points of a row group, as this thread has them or decoded anew."""
        if getattr(self._last, "of", None) != (opened.stamp, number):
            self._last.of = self._last.rows = None  # before the next one needs the memory
            with self._decoding:
                self._last.rows = self._decoded(opened, number)
            self._last.of = opened.stamp, number
        rows: Array = self._last.rows
        return rows

    def _decoded(self, opened: Opened, number: int) -> Array:
        first, last = (int(row) for row in opened.starts[number : number + 2])
        rows, place = np.empty((last - first, self.shape[1])), 0
        size = max(1, BLOCK_BYTES // rows.strides[0])
        with self._damage_refused(f"row group {number} (rows {first} to {last - 1})"):
            for batch in opened.file.iter_batches(size, [number], list(self.features)):
                for n, name in enumerate(self.features):
                    column = batch.column(name)
                    if column.null_count:
                        raise self._gap(name, first + place, column)
                    rows[place : place + len(batch), n] = column.to_numpy(zero_copy_only=False)
                place += len(batch)
            if place != len(rows):
                raise ValueError(f"it has {place} rows")
        about = opened.file.metadata.row_group(number)
        parts, wanted = (about.column(n) for n in range(about.num_columns)), set(self.features)
        self.count(sum(c.total_compressed_size for c in parts if c.path_in_schema in wanted))
        return rows

    def _refuse(self, schema: Any) -> None:
        """Raise `UserError` for columns that are no numbers."""
        from pyarrow import types

        numbers = (types.is_integer, types.is_floating, types.is_boolean)
        there, odd = Counter(schema.names), []
        for name in self.features:
            if there[name] != 1:
                odd.append(f"{name!r} is there {there[name]} times")
            elif not any(test(schema.field(name).type) for test in numbers):
                odd.append(f"{name!r} is of {schema.field(name).type}")
        if odd:
            shown = ", ".join(odd[:SHOWN]) + (", ..." if len(odd) > SHOWN else "")
            raise UserError(
                f"{self.setting}: is read by row groups, which takes columns of numbers alone, "
                f"and column {shown}; {MEMORY} (dataset.drop leaves columns out)"
            )

    def _gap(self, name: str, row: int, column: Any) -> UserError:
        place = row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        return UserError(
            f"{self.setting}: is read by row groups, which takes columns without gaps, and column "
            f"{name!r} has one in point {place} (counted from 0); leave it out with "
            f"'dataset.drop=[{name}]', or fill the gaps in the file"
        )

    def _damage_refused(self, extent: str) -> AbstractContextManager[None]:
        rule = f"{extent} cannot be read as Parquet"
        return damage_refused(self.setting, rule, "check the file")


def by_blocks(file: Path, in_blocks: bool | None) -> bool:
    """Return whether a Parquet file is read by row groups: where it takes too much memory.

    in_blocks: True in any case, False in none; None where it takes more than a quarter.
    """
    import pyarrow.parquet as pq

    if in_blocks is not None:
        return switch("dataset.in_blocks", in_blocks)
    about = pq.read_metadata(file)
    return NUMBER * about.num_rows * about.num_columns > SHARE * available()


def dataset(
    file: Path, target: Any, drop: Any, task: str | None, in_blocks: bool | None
) -> Dataset:
    """Return the points of a Parquet file, which are read by row groups; its target is held."""
    import pyarrow.parquet as pq

    names = [str(name) for name in pq.read_schema(file).empty_table().to_pandas().columns]
    kept, where = columns.roles(names, target, drop)
    features = [names[place] for place in kept]
    points = RowGroups(f"dataset.path={file}", file, tuple(features))
    _refuse_groups(points)
    points.stays = bool(in_blocks)
    y = None if where is None else _target(points, names[where])
    return label_dataset(file.stem, points, y, task, source=str(file), feature_names=features)


def _refuse_groups(points: RowGroups) -> None:
    """Raise `UserError` for row groups of which memory does not hold one a thread."""
    most, row = int(np.diff(points.opened.starts).max(initial=0)), NUMBER * len(points.features)
    share = SHARE / (os.cpu_count() or 1)
    fitting = max(1, int(share * available() / max(1, row)))
    refuse_larger(
        f"{points.setting}: a row group of {most} rows",
        most * row,
        f"write the file with row_group_size={fitting} or less",
        share,
    )


def _target(points: RowGroups, name: str) -> Array:
    """Return a column of a Parquet file as targets (P,); of words, each once and its places."""
    from pyarrow import types

    refuse_larger(
        f"dataset.target={name}", NUMBER * len(points), "leave it out, or keep fewer points"
    )
    column = points.opened.file.read([name]).column(name)
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = column.dictionary_encode()
    return targets_of(name, column.to_pandas())
