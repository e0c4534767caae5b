"""Find features of a data set as a user names them: by name, position, or as the numeric ones."""

from typing import Any

import numpy as np

from normbench.datasets.column_names import find_positions
from normbench.datasets.dataset import Dataset
from normbench.datasets.on_disk.points import iterate_blocks, rows_per_block
from normbench.datasets.values import UserError, spell_setting

NUMERIC = "numeric"


def find_features(dataset: Dataset, columns: Any, setting: str) -> list[int]:
    """Return the positions of features among those of a data set, increasing.

    Args:
        dataset: The data set.
        columns: `numeric` for the features that have another value than 0 and 1 in some training
            point, or a column or a list of columns, each by its name or position. An encoded column
            is one whose categories have become features `city=Rome`, `city=Oslo` and so on; its
            name stands for all of them.
        setting: The name of the setting whose value `columns` is, for errors.

    Raises:
        UserError: There is no such column, the list is empty, or no feature is numeric.
    """
    names = list(dataset.feature_names)
    if isinstance(columns, str) and columns == NUMERIC:
        return _find_numeric(dataset, setting)
    listed = [columns] if isinstance(columns, (str, int)) else columns
    if isinstance(listed, tuple):
        listed = list(listed)
    # Any other value is no list of columns: `find_positions` refuses it below.
    if isinstance(listed, list):
        # Anything but the name of an encoded column stays in the list, and is checked below.
        listed = [
            column for entry in listed for column in (_find_categories(names, entry) or [entry])
        ]
        if not listed:
            raise UserError(
                f"{spell_setting(setting, [])}: is empty; name a column, or take "
                f"{spell_setting('normalizer', 'identity')}"
            )
    return sorted(set(find_positions(names, setting, listed)))


def _find_categories(names: list[str], column: Any) -> list[str]:
    """Return the names of the features of an encoded column; empty for any other column.

    Args:
        names: The names of all features.
        column: A column as the user gave it, a name or a position.
    """
    # A name of a feature stands for that feature, even where others begin with it and =.
    if not isinstance(column, str) or column in names:
        return []
    return [name for name in names if name.startswith(f"{column}=")]


def _find_numeric(dataset: Dataset, setting: str) -> list[int]:
    """Return the positions of the features that have another value than 0 and 1 in some point.

    Args:
        dataset: The data set, whose training points are read block by block.
        setting: The name of the setting, for the error.

    Raises:
        UserError: There is no such feature.
    """
    x = dataset.x
    is_numeric = np.zeros(x.shape[1], dtype=bool)
    for _, rows in iterate_blocks(x, rows_per_block(x)):
        is_numeric |= ((rows != 0) & (rows != 1)).any(axis=0)
        if is_numeric.all():  # further blocks change nothing
            break
    if not is_numeric.any():
        raise UserError(
            f"{spell_setting(setting, NUMERIC)}: every feature of {dataset.name} is 0 or 1; leave "
            "it out, or name the columns"
        )
    return [int(position) for position in np.flatnonzero(is_numeric)]
