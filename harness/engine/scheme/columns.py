"""Find the columns that the schemes of a job are on, among the features of its data set."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from sklearn.compose import ColumnTransformer

from normbench.datasets import Dataset
from normbench.datasets.tables import find_features
from normbench.normalizers.on_columns import FeatureSelection, OnColumns, member_schemes

TRANSFORMERS_SETTING = "normalizer.transformers"  # of a `ColumnTransformer`


def with_columns(scheme: Any, data: Dataset) -> Any:
    """Return a copy of a scheme, each part of which is on features of a data set.

    A selection that was made on another part of the same data, where categories gave other
    features, is made again.

    Args:
        scheme: The normalizer, or None, which stays None.
        data: The data set.
    """
    scheme = deepcopy(scheme)
    for selection in _find_selections(scheme):
        # Nothing was selected yet, or among other features.
        if selection.feature_names != data.feature_names:
            positions = find_features(data, selection.columns, selection.setting)
            selection.select(positions, data.feature_names)
    return scheme


def _find_selections(scheme: Any) -> Iterator[FeatureSelection]:
    """Yield the selections of a scheme and of its parts.

    A `ColumnTransformer` may name its columns: such names are replaced by selections, in place.
    """
    if isinstance(scheme, OnColumns):
        yield scheme.columns
        yield from _find_selections(scheme.scheme)
    if isinstance(scheme, ColumnTransformer):
        scheme.transformers = list(scheme.transformers)
        for number, (name, member, columns) in enumerate(scheme.transformers):
            if _are_named(columns):
                columns = FeatureSelection(columns, TRANSFORMERS_SETTING)
                scheme.transformers[number] = name, member, columns
            if isinstance(columns, FeatureSelection):
                yield columns
    for member in member_schemes(scheme):
        yield from _find_selections(member)


def _are_named(columns: Any) -> bool:
    """Return whether columns of a `ColumnTransformer` are given by their names.

    They may also be indices, a mask, a slice or a function.
    """
    listed = [columns] if isinstance(columns, str) else columns
    return isinstance(listed, (list, tuple)) and any(isinstance(entry, str) for entry in listed)
