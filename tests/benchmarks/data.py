"""The data of the benchmarks, read from files without the project's loaders."""

import gzip
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.real_data import FOLDER, contrast_normalized


def folder() -> Path:
    """Return the folder of the MNIST files; raises SystemExit that says where to put them."""
    if not (FOLDER / "t10k-images-idx3-ubyte.gz").is_file():
        raise SystemExit(f"no t10k-images-idx3-ubyte.gz in {FOLDER}: set NORMBENCH_DATA")
    return FOLDER


@lru_cache(maxsize=1)
def mnist(part: str, precision: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return contrast-normalized digits (P, 784) and classes (P,): part is t10k or train."""
    with gzip.open(folder() / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return contrast_normalized(part).astype(precision), labels.astype(np.intp)


def breast_cancer() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return standardized points (569, 30) and labels -1/+1 (569,)."""
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    return (x - x.mean(axis=0)) / x.std(axis=0), 2.0 * y - 1
