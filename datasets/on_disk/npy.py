"""Load points from a NumPy file (npy), which may be larger than memory."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import find_file, translate_read_errors
from normbench.datasets.on_disk.points import TEST_PART_SHARE, open_map, transform_rows
from normbench.datasets.values import (
    ARRAY_SHARE,
    UserError,
    available_bytes,
    check_switch,
    refuse_larger,
)

Array = NDArray[Any]
NPY_RULE_AND_REMEDY = (  # the rule and the remedy
    "cannot be read as a NumPy array",
    "write numbers with numpy.save(path, array), or read it as what it is (dataset=npz, "
    "dataset=parquet, dataset=csv)",
)


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
            maps the file; True always maps it (a test part: where it takes more than a sixteenth of
            the memory); False never does.
        task: `classes`, `regression`, or None to decide by the targets.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: A file cannot be read, or the files do not fit together.
    """
    file = find_file("dataset.path", path, "X.npy")
    x, x_test = _load_points(f"dataset.path={path}", file, in_blocks, ARRAY_SHARE), None
    if test_path is not None:
        test_setting = f"dataset.test_path={test_path}"
        test_file = find_file("dataset.test_path", test_path, "T.npy")
        # Beside training points in a memory map, the test points have a smaller share.
        share = TEST_PART_SHARE if isinstance(x, np.memmap) else ARRAY_SHARE
        x_test = _load_points(test_setting, test_file, None if in_blocks else in_blocks, share)
        if x_test.dtype != x.dtype:
            raise UserError(
                f"{test_setting}: is read as {x_test.dtype} and the training points as {x.dtype}; "
                "write both with one type of number"
            )
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


def _load_points(setting: str, file: Path, in_blocks: bool | None, share: float) -> Array:
    """Return the points of a file (P, N): an array if they are small enough, else a memory map.

    Numbers that are neither float32 nor float64 are written once to a memory map of such numbers.

    Args:
        setting: The setting that names the file, as `name=value`, for errors.
        file: The file.
        in_blocks: True for a memory map, False for an array; None for an array where the points
            take at most `share` of the free memory.
        share: That share.

    Raises:
        UserError: The file does not hold points, or they have to be loaded and are too large.
    """
    with translate_read_errors(setting, *NPY_RULE_AND_REMEDY):
        x = open_map(setting, file)
    _refuse(setting, x)
    dtype = choose_dtype(x.dtype)
    size = x.size * dtype.itemsize
    # For False; `check_switch` refuses a setting that is neither true nor false.
    if in_blocks is not None and not check_switch("dataset.in_blocks", in_blocks):
        refuse_larger("dataset.in_blocks=false", size, "leave it out, for points read by blocks")
    elif in_blocks or size > share * available_bytes():
        x = x if x.dtype == dtype else transform_rows(x, lambda rows: rows, x.shape[1], dtype)
        vars(x)["in_blocks"] = bool(in_blocks)
        return x
    return np.array(x, dtype)


def _refuse(setting: str, x: Array) -> None:
    """Raise `UserError` for an array that does not hold points, one in each row of the file."""
    if x.dtype.kind not in "biuf":
        raise UserError(
            f"{setting}: holds an array of type {x.dtype}; every feature must be a number"
        )
    if x.ndim != 2 or min(x.shape) < 1:
        raise UserError(
            f"{setting}: holds an array of shape {x.shape}; points are (P, N), one per row"
        )
    if not x.flags.c_contiguous:
        raise UserError(
            f"{setting}: is stored column by column (Fortran order); write it with "
            "numpy.save(path, numpy.ascontiguousarray(points))"
        )


def choose_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 where it holds all numbers of a type exactly, else float64."""
    is_exact = np.can_cast(dtype, np.float32, "safe")
    return np.dtype(np.float32 if is_exact else np.float64)


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
    with translate_read_errors(setting, *NPY_RULE_AND_REMEDY):
        y = np.lib.format.open_memmap(file, mode="r")
        refuse_larger(setting, y.nbytes, "choose a smaller one")
        return np.array(y)
