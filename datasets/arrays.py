"""Load the user's own arrays: NumPy archives, and sparse points of archives and svmlight files."""

from typing import Any

import numpy as np

from normbench.datasets.dataset import Dataset
from normbench.datasets.diagnosis import refuse_text_target
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import find_file, translate_read_errors
from normbench.datasets.values import UserError

CSR_ARRAYS = ("data", "indices", "indptr", "shape")  # as `scipy.sparse.save_npz` names them


def npz(
    path: str | None,
    x: str = "x",
    y: str | None = "y",
    x_test: str | None = None,
    y_test: str | None = None,
    task: str | None = None,
    merge_labels: bool = False,
) -> Dataset:
    """Return the points of a NumPy archive; nothing in it is ever unpickled.

    Args:
        path: The file, from the working folder.
        x: The name of the array of points (P, N). An archive without it may hold CSR points
            instead, as `data`, `indices`, `indptr` and `shape`.
        y: The name of the targets (P,); None for unlabelled points.
        x_test: The name of the test points (Q, N); None without a test part.
        y_test: The name of the targets of the test points (Q,).
        task: `classes`, `regression`, or None to decide by the targets.
        merge_labels: As for csv files.

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
        is_sparse = x not in stored and set(CSR_ARRAYS) <= set(stored)
        arrays = {"x": _read_csr(stored, path)} if is_sparse else {}
        for option, name in names.items():
            if name is None or option in arrays:
                continue
            if name not in stored:
                raise UserError(
                    f"dataset.{option}={name}: {file} has no such array; it has "
                    f"{', '.join(stored) or 'none'}"
                )
            arrays[option] = stored[name]
    if task != "classes" and "y" in arrays:
        refuse_text_target(f"dataset.y={y}", arrays["y"])
    x_and_y = arrays.pop("x"), arrays.pop("y", None)
    return label_dataset(
        file.stem, *x_and_y, task, source=str(file), merge_labels=merge_labels, **arrays
    )


def _read_csr(stored: Any, path: str | None) -> Any:
    """Return the points of an archive with the arrays `CSR_ARRAYS` as a CSR array (P, N).

    Args:
        stored: The open archive.
        path: The file as the user typed it.

    Raises:
        UserError: The matrix is in another sparse format.
        Exception: The arrays do not make up a CSR array; the caller turns it into `UserError`.
    """
    from scipy import sparse

    # `scipy.sparse.save_npz` also writes the format; without it the arrays are taken for CSR.
    stored_format = stored["format"].item() if "format" in stored else "csr"
    if stored_format not in ("csr", b"csr"):
        raise UserError(
            f"dataset.path={path}: holds a sparse matrix in the format {stored_format!r}; write "
            "it as CSR, scipy.sparse.save_npz(path, matrix.tocsr())"
        )
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
