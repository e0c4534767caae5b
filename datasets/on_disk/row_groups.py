"""Load points from a Parquet file that memory does not hold: written once to a memory map."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.columns import find_roles
from normbench.datasets.dataset import Dataset
from normbench.datasets.diagnosis import MAX_LISTED_COLUMNS
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import translate_read_errors
from normbench.datasets.on_disk.points import BLOCK_BYTES, write_map
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


def needs_blocks(file: Path, in_blocks: bool | None) -> bool:
    """Return whether to read a Parquet file by blocks, instead of into memory.

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
    """Return the points of a Parquet file as a memory map in float64, with its target in memory.

    Args:
        file: The file.
        target: The name or position of the target column; None for unlabelled points.
        drop: The names or positions of columns to leave out.
        task: `classes`, `regression`, or None to decide by the target.
        in_blocks: The setting; where it is true, even a small selection of rows stays on disk.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: A column is missing, no feature or has a gap, or memory does not hold the row
            groups, or the disk the memory map.
    """
    import pyarrow.parquet as pq

    setting = f"dataset.path={file}"
    with translate_read_errors(setting, "cannot be read as Parquet", "check the file"):
        opened = pq.ParquetFile(file)
        names = [str(name) for name in opened.schema_arrow.empty_table().to_pandas()]
        feature_positions, target_position = find_roles(names, target, drop)
        features = [names[position] for position in feature_positions]
        _refuse_columns(setting, opened.schema_arrow, features)
        _refuse_large_groups(setting, opened, len(features))
        y = None
        if target_position is not None:
            y = _read_target(opened, names[target_position])
        shape = opened.metadata.num_rows, len(features)
        x = write_map(_read_blocks(setting, opened, features, drop), shape, np.float64)
    vars(x)["in_blocks"] = bool(in_blocks)
    return label_dataset(
        file.stem,
        x,
        y,
        task,
        merge_labels=merge_labels,
        source=str(file),
        feature_names=features,
    )


def _read_blocks(
    setting: str, opened: "pq.ParquetFile", features: list[str], dropped: Any
) -> Iterator[NDArray[np.float64]]:
    """Yield the points of a file (p, N), block by block.

    Args:
        setting: The setting that names the file, for errors.
        opened: The open file.
        features: The names of the N columns that are the features.
        dropped: The columns that the user has dropped, which a remedy repeats.

    Raises:
        UserError: A column has a gap.
    """
    first = 0
    size = max(1, BLOCK_BYTES // (FLOAT64_BYTES * len(features)))
    for batch in opened.iter_batches(size, columns=features):
        rows = np.empty((len(batch), len(features)))
        for n, name in enumerate(features):
            column = batch.column(name)
            if column.null_count:
                gap = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]
                remedy = spell_setting("dataset.drop", [*dropped, name], shell=True)
                raise UserError(
                    f"{setting}: is read by row groups, which takes columns without gaps, and "
                    f"column {name!r} has one in point {first + int(gap)} (counted from 0); leave "
                    f"it out with {remedy}, or fill the gaps in the file"
                )
            rows[:, n] = column.to_numpy(zero_copy_only=False)
        first += len(batch)
        yield rows


def _refuse_columns(setting: str, schema: Any, features: list[str]) -> None:
    """Raise `UserError` for features that are not numeric, or not the name of one column.

    Args:
        setting: The setting that names the file, for errors.
        schema: The names and types of the file's columns, a `pyarrow.Schema`.
        features: The names of the columns that are the features.
    """
    from pyarrow import types

    number_kinds = (types.is_integer, types.is_floating, types.is_boolean)
    name_counts, problems = Counter(schema.names), []
    for name in features:
        if name_counts[name] != 1:  # row groups are read by names
            problems.append(f"{name!r} is there {name_counts[name]} times")
        elif not any(is_kind(schema.field(name).type) for is_kind in number_kinds):
            problems.append(f"{name!r} is of {schema.field(name).type}")
    if problems:
        listed = ", ".join(problems[:MAX_LISTED_COLUMNS]) + (
            ", ..." if problems[MAX_LISTED_COLUMNS:] else ""
        )
        raise UserError(
            f"{setting}: is read by row groups, which takes columns of numbers alone, "
            f"and column {listed}; {MEMORY_REMEDY} (dataset.drop leaves columns out)"
        )


def _refuse_large_groups(setting: str, opened: "pq.ParquetFile", features: int) -> None:
    """Raise `UserError` if memory does not hold the largest row group of a file."""
    metadata = opened.metadata
    counts = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    row_bytes = FLOAT64_BYTES * features
    fitting_rows = max(1, int(ARRAY_SHARE * available_bytes() / max(1, row_bytes)))
    refuse_larger(
        f"{setting}: a row group of {max(counts, default=0)} rows",
        max(counts, default=0) * row_bytes,
        f"write the file with row_group_size={fitting_rows} or less",
    )


def _read_target(opened: "pq.ParquetFile", name: str) -> Any:
    """Return a column of a Parquet file as targets (P,), a series of pandas.

    Args:
        opened: The open file.
        name: The name of the column.

    Raises:
        UserError: The column takes too much memory.
    """
    from pyarrow import types

    size = FLOAT64_BYTES * opened.metadata.num_rows
    refuse_larger(f"dataset.target={name}", size, "leave it out, or keep fewer points")
    column = opened.read([name]).column(name)
    if types.is_string(column.type) or types.is_large_string(column.type):
        column = column.dictionary_encode()  # so that each distinct text is in memory once
    return column.to_pandas()
