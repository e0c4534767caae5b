"""Load points from a Parquet file by its row groups, for files larger than memory."""

import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import column_names, columns, parquet_table
from normbench.datasets.dataset import Dataset
from normbench.datasets.entries import extract_targets
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import FilePoints, read_stamp, translate_read_errors
from normbench.datasets.on_disk.points import BLOCK_BYTES, Array
from normbench.datasets.values import (
    ARRAY_SHARE,
    FLOAT64_BYTES,
    UserError,
    available_bytes,
    check_switch,
    refuse_larger,
    spell_setting,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MEMORY_REMEDY = "leave them out, or make the file small enough to be held in memory"


@dataclass(frozen=True)
class OpenParquetFile:
    """An open Parquet file, and its stamp (`files_on_disk.read_stamp`) when it was opened.

    A row group is a block of consecutive rows that the file stores together. Row group n has the
    rows from `starts[n]` to below `starts[n + 1]`.
    """

    file: "pq.ParquetFile"
    starts: NDArray[np.intp]
    stamp: tuple[int, ...]


class RowGroups(FilePoints):
    """Points from some columns of a Parquet file, in float64.

    Each thread keeps the row group that it read last.
    """

    opened: OpenParquetFile
    dtype = np.dtype(np.float64)

    def __init__(
        self,
        setting: str,
        path: Path,
        features: tuple[str, ...],
        dropped: Sequence[str | int] = (),
    ) -> None:
        """Open a file; raise `UserError` where its columns are not points.

        Args:
            setting: The setting that names the file, for errors.
            path: The file.
            features: The names of the columns that are the features.
            dropped: The columns that the user has dropped, which a remedy repeats, since the
                setting is written anew.
        """
        self.features, self.dropped = features, dropped
        # Each thread's last row group (`rows`) and which one it is (`key`); the lock of decoding.
        self._last, self._decoding = threading.local(), threading.Lock()
        super().__init__(setting, path)

    def open(self) -> OpenParquetFile:
        """Open the file, read its metadata and set `shape`.

        Raises `UserError` where it is not Parquet, or a feature is not a column of numbers.
        """
        import pyarrow.parquet as pq

        with self._parquet_errors_refused("the file"):
            # Before the file is opened: a later change is noticed then.
            stamp = read_stamp(os.stat(self.path))
            file = pq.ParquetFile(self.path)
            metadata, schema = file.metadata, file.schema_arrow
            counts = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
        self._refuse_columns(schema)
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.intp)])
        self.shape = (int(starts[-1]), len(self.features))
        return OpenParquetFile(file, starts, stamp)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1` as an array, in the first rows of out where given.

        See `Points.read`.
        """
        opened, count = self.opened, last - first
        out = np.empty((count, self.shape[1]), self.dtype) if out is None else out[:count]
        row = first
        while row < last:  # one row group in each turn
            group = int(np.searchsorted(opened.starts, row, side="right")) - 1
            group_start = int(opened.starts[group])
            end = min(int(opened.starts[group + 1]), last)  # of the rows wanted from this group
            wanted = slice(row - group_start, end - group_start)
            # No local name holds the group, so that it is freed before the next one is decoded.
            out[row - first : end - first] = self._read_group(opened, group)[wanted]
            row = end
        return out

    def _read_group(self, opened: OpenParquetFile, number: int) -> Array:
        """Return the points of a row group (p, N), kept by this thread or decoded now.

        One thread at a time decodes, which keeps the memory of decoding bounded.

        Args:
            opened: The open file.
            number: The index of the row group.
        """
        # The stamp is compared, too: a file that was opened again has other row groups.
        if getattr(self._last, "key", None) != (opened.stamp, number):
            self._last.key = self._last.rows = None  # frees the memory for the next group
            with self._decoding:
                self._last.rows = self._decode_group(opened, number)
            self._last.key = opened.stamp, number
        rows: Array = self._last.rows
        return rows

    def _decode_group(self, opened: OpenParquetFile, number: int) -> Array:
        """Return the points of a row group (p, N), decoded from the file.

        Args:
            opened: The open file.
            number: The index of the row group.

        Raises:
            UserError: A column has a gap, or the group cannot be decoded.
        """
        first, last = (int(row) for row in opened.starts[number : number + 2])
        rows, read_rows = np.empty((last - first, self.shape[1])), 0
        size = max(1, BLOCK_BYTES // rows.strides[0])
        with self._parquet_errors_refused(f"row group {number} (rows {first} to {last - 1})"):
            for batch in opened.file.iter_batches(size, [number], list(self.features)):
                for n, name in enumerate(self.features):
                    column = batch.column(name)
                    if column.null_count:
                        raise self._gap_error(name, first + read_rows, column)
                    rows[read_rows : read_rows + len(batch), n] = column.to_numpy(
                        zero_copy_only=False
                    )
                read_rows += len(batch)
            if read_rows != len(rows):  # the context turns the error into `UserError`
                raise ValueError(f"it has {read_rows} rows")
        # The bytes in the file: those of the features' columns, compressed.
        metadata = opened.file.metadata.row_group(number)
        column_chunks = (metadata.column(n) for n in range(metadata.num_columns))
        feature_names = set(self.features)
        self.count_bytes(
            sum(c.total_compressed_size for c in column_chunks if c.path_in_schema in feature_names)
        )
        return rows

    def _refuse_columns(self, schema: Any) -> None:
        """Raise `UserError` for features that are not numeric, or not the name of one column.

        Args:
            schema: The names and types of the file's columns, a `pyarrow.Schema`.
        """
        name_counts, problems = Counter(schema.names), []
        for name in self.features:
            if name_counts[name] != 1:  # row groups are read by names
                problems.append(f"{name!r} is there {name_counts[name]} times")
            elif not parquet_table.is_number(schema.field(name).type):
                problems.append(f"{name!r} is of {schema.field(name).type}")
        if problems:
            listed = ", ".join(problems[: columns.MAX_LISTED_COLUMNS]) + (
                ", ..." if len(problems) > columns.MAX_LISTED_COLUMNS else ""
            )
            raise UserError(
                f"{self.setting}: is read by row groups, which takes columns of numbers alone, "
                f"and column {listed}; {MEMORY_REMEDY} (dataset.drop leaves columns out)"
            )

    def _gap_error(self, name: str, row: int, column: Any) -> UserError:
        """Return the error that names the first gap of a column.

        Args:
            name: The name of the column.
            row: The row of the file at which the batch starts.
            column: The column in a batch, a pyarrow array with a gap.
        """
        point = row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        remedy = spell_setting("dataset.drop", [*self.dropped, name], shell=True)
        return UserError(
            f"{self.setting}: is read by row groups, which takes columns without gaps, and column "
            f"{name!r} has one in point {point} (counted from 0); leave it out with {remedy}, or "
            "fill the gaps in the file"
        )

    def _parquet_errors_refused(self, extent: str) -> AbstractContextManager[None]:
        """Return a context that turns pyarrow's errors into `UserError`.

        Args:
            extent: The part of the file that is read in the context, as the error names it.
        """
        rule = f"{extent} cannot be read as Parquet"
        return translate_read_errors(self.setting, rule, "check the file")


def needs_blocks(file: Path, in_blocks: bool | None) -> bool:
    """Return whether to read a Parquet file by row groups, instead of into memory.

    Args:
        file: The file.
        in_blocks: The setting `dataset.in_blocks`: True for any file, False for none; None for a
            file whose columns, in float64, take more than a quarter of the available memory.
    """
    import pyarrow.parquet as pq

    if in_blocks is not None:
        return check_switch("dataset.in_blocks", in_blocks)
    metadata = pq.read_metadata(file)
    return (
        FLOAT64_BYTES * metadata.num_rows * metadata.num_columns > ARRAY_SHARE * available_bytes()
    )


def load_row_groups(
    file: Path,
    target: Any,
    drop: Any,
    task: str | None,
    in_blocks: bool | None,
    merge_labels: bool = False,
) -> Dataset:
    """Return the points of a Parquet file, read by row groups, with its target in memory.

    Args:
        file: The file.
        target: The name or position of the target column; None for unlabelled points.
        drop: The names or positions of columns to leave out.
        task: `classes`, `regression`, or None to decide by the target.
        in_blocks: The setting; where it is true, even a small selection of rows stays on disk.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: A column is missing or no feature, or memory does not hold the row groups.
    """
    import pyarrow.parquet as pq

    names = parquet_table.find_column_names(pq.read_schema(file))
    feature_positions, target_position = column_names.find_roles(names, target, drop)
    features = [names[position] for position in feature_positions]
    points = RowGroups(f"dataset.path={file}", file, tuple(features), drop)
    _refuse_large_groups(points)
    points.always_in_blocks = bool(in_blocks)
    y = None if target_position is None else _read_target(points, names[target_position])
    return label_dataset(
        file.stem,
        points,
        y,
        task,
        merge_labels=merge_labels,
        source=str(file),
        feature_names=features,
    )


def _refuse_large_groups(points: RowGroups) -> None:
    """Raise `UserError` if memory does not hold one row group for each thread.

    Each thread keeps the row group that it read last; there are as many threads as cores at most.
    """
    largest_group = int(np.diff(points.opened.starts).max(initial=0))  # in rows
    row_bytes = FLOAT64_BYTES * len(points.features)
    share = ARRAY_SHARE / (os.cpu_count() or 1)
    fitting_rows = max(1, int(share * available_bytes() / max(1, row_bytes)))
    refuse_larger(
        f"{points.setting}: a row group of {largest_group} rows",
        largest_group * row_bytes,
        f"write the file with row_group_size={fitting_rows} or less",
        share,
    )


def _read_target(points: RowGroups, name: str) -> Array:
    """Return a column of a Parquet file as targets (P,): numbers, or objects with None for a gap.

    Args:
        points: The points of the file.
        name: The name of the column.

    Raises:
        UserError: The column takes too much memory, or cannot be a target.
    """
    from pyarrow import types

    refuse_larger(
        f"dataset.target={name}", FLOAT64_BYTES * len(points), "leave it out, or keep fewer points"
    )
    field = points.opened.file.schema_arrow.field(name)
    parquet_table.refuse_nested(f"dataset.target={name}", field, parquet_table.COLUMN_REMEDY)
    parquet_table.refuse_large_words(points.setting, points.path, [field])
    column = points.opened.file.read([name]).column(name)
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = column.dictionary_encode()  # so that each distinct text is in memory once
    return extract_targets(name, column.to_pandas())
