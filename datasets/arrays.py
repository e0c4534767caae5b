"""Load the user's own arrays: npy and npz of NumPy, and sparse points of npz and svmlight files."""

from pathlib import Path
from typing import Any

import numpy as np

from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.points import Array, open_map, transform_rows
from normbench.datasets.values import (
    ARRAY_SHARE,
    UserError,
    available_bytes,
    check_switch,
    find_file,
    refuse_larger,
    translate_read_errors,
)

CSR_ARRAYS = ("data", "indices", "indptr", "shape")  # as `scipy.sparse.save_npz` names them


def npy(
    path: str | None,
    targets: str | None = None,
    test_path: str | None = None,
    test_targets: str | None = None,
    in_blocks: bool | None = None,
    **label_options: Any,
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
        **label_options: `task` and `merge_labels` of `label_dataset`.

    Raises:
        UserError: A file cannot be read, or the files do not fit together.
    """
    if in_blocks is not None:
        check_switch("dataset.in_blocks", in_blocks)
    x, x_test = _load_points("dataset.path", path, in_blocks), None
    if test_path is not None:
        x_test = _load_points("dataset.test_path", test_path, in_blocks, x.dtype)
    y, y_test = (
        None if file is None else np.array(_open(f"dataset.{option}", file))
        for option, file in (("targets", targets), ("test_targets", test_targets))
    )
    fields: dict[str, Any] = {"source": str(path), "x_test": x_test, "precision": x.dtype.name}
    return label_dataset(Path(str(path)).stem, x, y, y_test=y_test, **fields, **label_options)


def _open(option: str, path: str | None) -> Array:
    """Return the array of the npy file that a setting names as a memory map."""
    file, setting = find_file(option, path, "X.npy"), f"{option}={path}"
    remedy = "write numbers with numpy.save(path, array), or read it as what it is (dataset=npz)"
    with translate_read_errors(setting, "cannot be read as a NumPy array", remedy):
        return open_map(setting, file)


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
    x = _open(option, path)
    if x.dtype.kind not in "biuf" or x.ndim != 2:
        raise UserError(
            f"{option}={path}: is of type {x.dtype} and shape {x.shape}; it takes numbers of shape "
            "(P, N), one point per row"
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


def npz(
    path: str | None,
    x: str = "x",
    y: str | None = "y",
    x_test: str | None = None,
    y_test: str | None = None,
    **label_options: Any,
) -> Dataset:
    """Return the points of a NumPy archive; nothing in it is ever unpickled.

    Args:
        path: The file, from the working folder.
        x: The name of the array of points (P, N). An archive without it may hold CSR points
            instead, as `data`, `indices`, `indptr` and `shape`.
        y: The name of the targets (P,); None for unlabelled points.
        x_test: The name of the test points (Q, N); None without a test part.
        y_test: The name of the targets of the test points (Q,).
        **label_options: `task` and `merge_labels` of `label_dataset`.

    Raises:
        UserError: The file is no archive, or lacks an array.
    """
    file = find_file("dataset.path", path)
    names = {"x": x, "y": y, "x_test": x_test, "y_test": y_test}
    remedy = (
        "write it with numpy.savez(path, x=points, y=targets), without object arrays: they would "
        "be unpickled, which can run code"
    )
    rule = "cannot be read as an archive of plain arrays"
    with translate_read_errors(f"dataset.path={path}", rule, remedy), file.open("rb") as stream:
        stored = np.load(stream, allow_pickle=False)
        if isinstance(stored, np.ndarray):  # an npy file, which is often taken for npz
            raise ValueError("it holds one array without a name")
        arrays: dict[str, Any] = {"y": None}
        if x not in stored and set(CSR_ARRAYS) <= set(stored):
            arrays["x"] = _read_csr(stored)
            del names["x"]
        for option, name in names.items():
            if name is not None and name not in stored:
                raise UserError(
                    f"dataset.{option}={name}: {file} has no such array; it has {', '.join(stored)}"
                )
            if name is not None:
                arrays[option] = stored[name]
    return label_dataset(file.stem, source=str(file), **arrays, **label_options)


def _read_csr(stored: Any) -> Any:
    """Return the points of an open archive with the arrays `CSR_ARRAYS` as a CSR array (P, N).

    The caller turns what is raised, where the arrays do not make up one, into `UserError`.
    """
    from scipy import sparse

    # `scipy.sparse.save_npz` also writes the format; without it the arrays are taken for CSR.
    if "format" in stored and stored["format"].item() not in ("csr", b"csr"):
        raise ValueError(f"it holds a sparse matrix as {stored['format'].item()!r}, not as CSR")
    data, indices, indptr, shape = (stored[name] for name in CSR_ARRAYS)
    csr = sparse.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
    csr.check_format(full_check=True)  # a damaged index would be read from outside the arrays
    return csr


def svmlight(path: str | None, features: int | None = None, task: str | None = None) -> Dataset:
    """Return the points of a file in svmlight's format, a line `target index:value ..` a point.

    Args:
        path: The file, from the working folder; also compressed (`.gz`, `.bz2`).
        features: How many features there are; None for as many as the largest index.
        task: `classes`, `regression`, or None to decide by the targets.

    Raises:
        UserError: The file cannot be read as such points.
    """
    from sklearn.datasets import load_svmlight_file

    file = find_file("dataset.path", path, "points.svmlight")
    remedy = "every line is a target and pairs of an index and a number, such as 1 3:0.5 7:2"
    with translate_read_errors(f"dataset.path={path}", "cannot be read as svmlight points", remedy):
        x, y = load_svmlight_file(str(file), n_features=features)
    return label_dataset(file.name.partition(".")[0], x, y, task, source=str(file))
