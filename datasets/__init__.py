"""Data sets: one small frozen value, and a loader each."""

from normbench.datasets.dataset import Dataset, UserError, make_dataset, split
from normbench.datasets.labels import encode, label_dataset

__all__ = ["Dataset", "UserError", "encode", "label_dataset", "make_dataset", "split"]
