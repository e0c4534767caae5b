"""Load sparse points: files in svmlight's format, and CSR arrays of NumPy archives."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from normbench.datasets import archives
from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.files_on_disk import find_file, translate_read_errors
from normbench.datasets.values import UserError

CSR_ARRAYS = ("data", "indices", "indptr", "shape")  # as `scipy.sparse.save_npz` names them


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


def read_csr(file: Path, path: str | None, x: str) -> Any:
    """Return the points of an archive as a CSR array (P, N), or None if it does not hold one.

    An archive holds one if it has the arrays `CSR_ARRAYS`, and no array of dense points.

    Args:
        file: The archive.
        path: The file as the user typed it.
        x: The name of the array of dense points.

    Raises:
        UserError: The matrix is in another sparse format, or too large.
        Exception: The arrays do not make up a CSR array; the caller turns it into `UserError`.
    """
    from scipy import sparse

    if not zipfile.is_zipfile(file):  # the caller reads the file next, and reports the error
        return None
    with zipfile.ZipFile(file) as archive:
        stored = {name.removesuffix(".npy") for name in archive.namelist()}
    if x in stored or not set(CSR_ARRAYS) <= stored:
        return None
    arrays = archives.read_npz(file, {name: name for name in {*CSR_ARRAYS, "format"} & stored})
    # `scipy.sparse.save_npz` also writes the format; without it the arrays are taken for CSR.
    stored_format = arrays.get("format", np.array("csr")).item()
    if stored_format not in ("csr", b"csr"):
        raise UserError(
            f"dataset.path={path}: holds a sparse matrix in the format {stored_format!r}; write it "
            "as CSR, scipy.sparse.save_npz(path, matrix.tocsr())"
        )
    data, indices, indptr, shape = (arrays[name] for name in CSR_ARRAYS)
    csr = sparse.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
    csr.check_format(full_check=True)  # a damaged index would be read from outside the arrays
    return csr
