"""Find the columns that the schemes of a job are on, among the features of its data set."""

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.compose import ColumnTransformer

from normbench.normalizers.affine import members
from normbench.normalizers.on_columns import FeatureSelection, OnColumns

TRANSFORMERS_SETTING = "normalizer.transformers"  # of a `ColumnTransformer`
FindFeatures = Callable[[Any, str], list[int]]


def select_columns(scheme: Any, feature_names: tuple[str, ...], find: FindFeatures) -> None:
    """Select the features that the parts of a scheme are on, out of those of a data set.

    Where they have been selected of another part of the same data, with other categories, the
    features of the same names are.

    Args:
        scheme: The normalizer, whose selections are changed in place.
        feature_names: N names.
        find: Returns the positions of columns, by columns and by the setting that names these.
    """
    for selection in _selections(scheme):
        if not selection.feature_names:
            selection.select(find(selection.columns, selection.setting), feature_names)
        elif selection.feature_names != feature_names:
            selection.reselect(feature_names)


def _selections(scheme: Any) -> Iterator[FeatureSelection]:
    """Yield the selections of a scheme and of its parts; columns by name become selections."""
    if isinstance(scheme, OnColumns):
        yield scheme.columns
        yield from _selections(scheme.scheme)
        return
    if isinstance(scheme, ColumnTransformer):
        scheme.transformers = [
            (
                name,
                member,
                FeatureSelection(columns, TRANSFORMERS_SETTING) if _are_named(columns) else columns,
            )
            for name, member, columns in scheme.transformers
        ]
        for _, _, columns in scheme.transformers:
            if isinstance(columns, FeatureSelection):
                yield columns
    for member in members(scheme):
        yield from _selections(member)


def _are_named(columns: Any) -> bool:
    """Return whether columns of a `ColumnTransformer` are given by their names."""
    listed = [columns] if isinstance(columns, str) else columns
    return isinstance(listed, (list, tuple)) and any(isinstance(entry, str) for entry in listed)
