"""Data sets: one small frozen value, and a loader each."""

from datasets.dataset import Dataset, UserError, make_dataset, split

__all__ = ["Dataset", "UserError", "make_dataset", "split"]
