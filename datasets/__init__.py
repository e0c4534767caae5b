"""Data sets: one small frozen value, and a loader each."""

from normbench.datasets.augment import augmented
from normbench.datasets.dataset import Dataset, UserError, make_dataset, part, split
from normbench.datasets.labels import encode, label_dataset
from normbench.datasets.parts import fitted_on, folded, subset

__all__ = [
    "Dataset",
    "UserError",
    "augmented",
    "encode",
    "fitted_on",
    "folded",
    "label_dataset",
    "make_dataset",
    "part",
    "split",
    "subset",
]
