"""Data sets: one small frozen value, and a loader each."""

from normbench.datasets.dataset import Dataset, UserError, make_dataset, part, split
from normbench.datasets.download import MissingFileError
from normbench.datasets.drawn import Drawn
from normbench.datasets.labels import encode, label_dataset
from normbench.datasets.on_disk.parts import fitted_on, fold, folded, subset

__all__ = [
    "Dataset",
    "Drawn",
    "MissingFileError",
    "UserError",
    "encode",
    "fitted_on",
    "fold",
    "folded",
    "label_dataset",
    "make_dataset",
    "part",
    "split",
    "subset",
]
