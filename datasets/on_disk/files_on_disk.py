"""Load points from files that memory need not hold, npy and Parquet; say what is wrong with one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from normbench.datasets.columns import find_roles
from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.points import (
    BLOCK_BYTES,
    Array,
    open_map,
    transform_rows,
    write_map,
)
from normbench.datasets.values import (
    ARRAY_SHARE,
    FLOAT64_BYTES,
    UserError,
    available_bytes,
    check_path,
    check_switch,
    refuse_larger,
    spell_setting,
)

NPY_RULE_AND_REMEDY = (
    "cannot be read as a NumPy array",
    "write numbers with numpy.save(path, array), or read it as what it is (dataset=npz, "
    "dataset=parquet, dataset=csv)",
)


def find_file(option: str, path: Any, example: str = "my.csv") -> Path:
    """Return the file that a setting names; raise `UserError` where there is none.

    Args:
        option: The name of the setting, such as `dataset.path`.
        path: Its value.
        example: A file name, for the error that shows how to write the setting.
    """
    file = check_path(option, path, f"write {option}={example}")
    if file.is_dir():
        raise UserError(f"{option}={path}: is a folder; name a file in it")
    if not file.is_file():
        raise UserError(
            f"{option}={path}: no such file (seen from {Path.cwd()}); a path with a comma, "
            f"a space or = takes two pairs of quotes: {option}='\"a,b.csv\"'"
        )
    return file


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened; its type if there is no message.

    A prefix of pandas' errors, which tells the user nothing, is left out.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("Error tokenizing data. C error: ")[:160]


@contextmanager
def translate_read_errors(setting: str, rule: str, remedy: str) -> Iterator[None]:
    """Turn whatever a library raises in the context, of a damaged file, into `UserError`.

    Args:
        setting: The setting that names the file, as `name=value`.
        rule: What is wrong with the file, such as `cannot be read as a table`. The library's reason
            follows in brackets.
        remedy: What the user can do, the end of the message.
    """
    try:
        yield
    except UserError:  # it says what is wrong better than the rule does
        raise
    except Exception as error:
        raise UserError(f"{setting}: {rule} ({first_line(error)}); {remedy}") from error


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
        test_path: The file of the test points, read in the type of the others; None without a test
            part.
        test_targets: The file of the targets of the test points; None without them.
        in_blocks: None holds points in memory where they take at most a quarter of it, and else
            maps the file; True always maps it, False never.
        task: `classes`, `regression`, or None to decide by the targets.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: A file cannot be read, or the files do not fit together.
    """
    if in_blocks is not None:
        check_switch("dataset.in_blocks", in_blocks)
    file = find_file("dataset.path", path, "X.npy")
    x, x_test = _load_points("dataset.path", path, in_blocks), None
    if test_path is not None:
        x_test = _load_points("dataset.test_path", test_path, in_blocks, x.dtype)
    return label_dataset(
        file.stem,
        x,
        _load_targets("dataset.targets", targets),
        task,
        merge_labels=merge_labels,
        source=str(file),
        x_test=x_test,
        y_test=_load_targets("dataset.test_targets", test_targets),
        precision=x.dtype.name,
    )


def _load_points(
    option: str, path: str | None, in_blocks: bool | None, dtype: np.dtype[Any] | None = None
) -> Array:
    """Return the points of a file (P, N): an array if they are small enough, else a memory map.

    Points of another type, or stored column by column, are written once to a memory map of points
    of the type, one after the other.

    Args:
        option: The setting that names the file.
        path: Its value.
        in_blocks: True for a memory map, False for an array; None for an array where the points
            take at most a quarter of the free memory.
        dtype: The type of the points; by default float32 or float64, as `choose_dtype` says.

    Raises:
        UserError: The file does not hold points, or they have to be loaded and are too large.
    """
    file, setting = find_file(option, path, "X.npy"), f"{option}={path}"
    with translate_read_errors(setting, *NPY_RULE_AND_REMEDY):
        x = open_map(setting, file)
    if x.dtype.kind not in "biuf" or x.ndim != 2:
        raise UserError(
            f"{setting}: holds an array of type {x.dtype} and shape {x.shape}; it takes numbers of "
            "shape (P, N), one point per row"
        )
    dtype = dtype or choose_dtype(x.dtype)
    size = x.size * dtype.itemsize
    if in_blocks is False:
        refuse_larger("dataset.in_blocks=false", size, "leave it out, for points read by blocks")
    elif in_blocks or size > ARRAY_SHARE * available_bytes():
        if x.dtype != dtype or not x.flags.c_contiguous:
            x = transform_rows(x, lambda rows: rows, x.shape[1], dtype)
        vars(x)["in_blocks"] = bool(in_blocks)
        return x
    return np.array(x, dtype, order="C")


def choose_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 where it holds all numbers of a type exactly, else float64."""
    is_exact = np.can_cast(dtype, np.float32, "safe")
    return np.dtype(np.float32 if is_exact else np.float64)


def _load_targets(option: str, path: str | None) -> Array | None:
    """Return the array of the file that a setting names, None where it names none."""
    if path is None:
        return None
    file = find_file(option, path, "y.npy")
    with translate_read_errors(f"{option}={path}", *NPY_RULE_AND_REMEDY):
        return np.array(open_map(option, file))


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
    size = FLOAT64_BYTES * metadata.num_rows * metadata.num_columns
    return size > ARRAY_SHARE * available_bytes()


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
        UserError: A column is missing, no feature or has a gap, or the disk does not hold the
            memory map.
    """
    import pyarrow.parquet as pq
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean)
    # The file is mapped, so that memory holds one row group, and not the file.
    with pq.ParquetFile(file, memory_map=True, pre_buffer=False) as opened:
        schema = opened.schema_arrow
        # The columns that pandas gives a frame of the file, its index left out.
        names = [str(name) for name in schema.empty_table().to_pandas().columns]
        positions, target_position = find_roles(names, target, drop)
        features = [names[position] for position in positions]
        unfit = [
            name
            for name in features
            if not any(is_kind(schema.field(name).type) for is_kind in kinds)
        ]
        if unfit:
            remedy = spell_setting("dataset.drop", [*drop, *unfit], shell=True)
            raise UserError(
                f"dataset.path={file}: is read by row groups, which takes columns of numbers, and "
                f"{unfit[0]!r} is of {schema.field(unfit[0]).type}; leave it out with {remedy}, or "
                "make the file small enough to be held in memory"
            )
        y = None
        if target_position is not None:
            target_name = names[target_position]
            y = opened.read([target_name]).column(target_name).to_pandas()
        size = max(1, BLOCK_BYTES // (FLOAT64_BYTES * max(1, len(features))))
        blocks = (
            batch.to_pandas().to_numpy(np.float64, na_value=np.nan)
            for batch in opened.iter_batches(size, columns=features)
        )
        x = write_map(blocks, (opened.metadata.num_rows, len(features)), np.float64)
    vars(x)["in_blocks"] = bool(in_blocks)
    return label_dataset(
        file.stem, x, y, task, merge_labels=merge_labels, source=str(file), feature_names=features
    )
