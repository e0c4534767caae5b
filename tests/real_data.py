"""The real data: NORMBENCH_DATA, or `shared/data` beside the checkout.

And MNIST's points in it, read without the project's loaders.
"""

import gzip
import os
from pathlib import Path

import numpy as np

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
FOLDER = Path(os.environ.get("NORMBENCH_DATA") or BESIDE)


def contrast_normalized(part):
    """Return the points of `train` or `t10k` (P, 784), each minus its mean over its deviation.

    None where the file is not there.
    """
    file = FOLDER / f"{part}-images-idx3-ubyte.gz"
    if not file.is_file():
        return None
    with gzip.open(file) as stream:
        pixels = np.frombuffer(stream.read(), np.uint8, offset=16)
    x = pixels.reshape(-1, 784).astype(float)
    x -= x.mean(axis=1, keepdims=True)
    return x / x.std(axis=1, keepdims=True)
