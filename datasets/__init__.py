"""Data sets: a frozen `Dataset`, and one loader for each source."""

from normbench.datasets.dataset import Dataset, UserError, hold_out, make_dataset, split
from normbench.datasets.download import MissingFileError
from normbench.datasets.labels import encode_labels, label_dataset
from normbench.datasets.on_disk.subsets import (
    assign_folds,
    draw_subset,
    hold_out_fold,
    set_fit_points,
)
from normbench.datasets.sampling import Sampling

__all__ = [
    "Dataset",
    "Sampling",
    "MissingFileError",
    "UserError",
    "encode_labels",
    "set_fit_points",
    "hold_out_fold",
    "assign_folds",
    "label_dataset",
    "make_dataset",
    "hold_out",
    "split",
    "draw_subset",
]
