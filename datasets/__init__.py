"""Data sets: a frozen `Dataset`, and one loader for each source.

Public names are imported on first access, so that commands without data do not load NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from normbench.datasets.dataset import Dataset, hold_out, make_dataset, split
    from normbench.datasets.download import MissingFileError
    from normbench.datasets.entries import read_numbers
    from normbench.datasets.labels import encode_labels, label_dataset
    from normbench.datasets.on_disk.subsets import (
        assign_folds,
        draw_subset,
        hold_out_fold,
        set_fit_points,
    )
    from normbench.datasets.sampling import Sampling
    from normbench.datasets.values import UserError

__all__ = [
    "Dataset",
    "Sampling",
    "MissingFileError",
    "UserError",
    "encode_labels",
    "read_numbers",
    "set_fit_points",
    "hold_out_fold",
    "assign_folds",
    "label_dataset",
    "make_dataset",
    "hold_out",
    "split",
    "draw_subset",
]

MODULES = {
    "dataset": ("Dataset", "hold_out", "make_dataset", "split"),
    "download": ("MissingFileError",),
    "entries": ("read_numbers",),
    "labels": ("encode_labels", "label_dataset"),
    "on_disk.subsets": ("assign_folds", "draw_subset", "hold_out_fold", "set_fit_points"),
    "sampling": ("Sampling",),
    "values": ("UserError",),
}  # by module: its public names


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    for module, public_names in MODULES.items():
        if name in public_names:
            return getattr(import_module(f"normbench.datasets.{module}"), name)
    raise AttributeError(f"module 'normbench.datasets' has no attribute {name!r}")
