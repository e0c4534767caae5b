"""Data sets: a frozen `Dataset`, and one loader for each source.

Public names are imported on first access, so that commands without data do not load NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from normbench.datasets.columns import read_numbers as read_numbers
    from normbench.datasets.dataset import Dataset as Dataset
    from normbench.datasets.dataset import make_dataset as make_dataset
    from normbench.datasets.download import MissingFileError as MissingFileError
    from normbench.datasets.labels import label_dataset as label_dataset
    from normbench.datasets.sampling import Sampling as Sampling
    from normbench.datasets.sampling import hold_out_fold as hold_out_fold
    from normbench.datasets.sampling import split as split
    from normbench.datasets.values import UserError as UserError

MODULES = {
    "columns": ("read_numbers",),
    "dataset": ("Dataset", "make_dataset"),
    "download": ("MissingFileError",),
    "labels": ("label_dataset",),
    "sampling": ("Sampling", "hold_out_fold", "split"),
    "values": ("UserError",),
}  # by module: its public names


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    for module, public_names in MODULES.items():
        if name in public_names:
            return getattr(import_module(f"normbench.datasets.{module}"), name)
    raise AttributeError(f"module 'normbench.datasets' has no attribute {name!r}")
