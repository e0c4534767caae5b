"""Find the columns that the schemes of a job are on, among the features of its data set."""

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.compose import ColumnTransformer

from normbench.normalizers.affine import member_schemes
from normbench.normalizers.on_columns import FeatureSelection, OnColumns

TRANSFORMERS_SETTING = "normalizer.transformers"  # of a `ColumnTransformer`
FindFeatures = Callable[[Any, str], list[int]]


def select_columns(scheme: Any, feature_names: tuple[str, ...], find: FindFeatures) -> None:
    """Select, for each part of a scheme, the features of a data set that the part is on.

    A selection that was made on another part of the same data, where categories gave other
    features, is made again by the names of its features.

    Args:
        scheme: The normalizer, whose selections are changed in place.
        feature_names: The names of the N features.
        find: `find(columns, setting)` returns the positions of the features that belong to columns;
            the setting is the one that names the columns, for messages.
    """
    for selection in _find_selections(scheme):
        # Without names nothing was selected yet; with the same names the selection stays.
        if not selection.feature_names:
            selection.select(find(selection.columns, selection.setting), feature_names)
        elif selection.feature_names != feature_names:
            selection.reselect(feature_names)


def _find_selections(scheme: Any) -> Iterator[FeatureSelection]:
    """Yield the selections of a scheme and of its parts.

    A `ColumnTransformer` may name its columns: such names are replaced by selections, in place.
    """
    if isinstance(scheme, OnColumns):
        yield scheme.columns
        yield from _find_selections(scheme.scheme)
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
    for member in member_schemes(scheme):
        yield from _find_selections(member)


def _are_named(columns: Any) -> bool:
    """Return whether columns of a `ColumnTransformer` are given by their names.

    They may also be indices, a mask, a slice or a function.
    """
    listed = [columns] if isinstance(columns, str) else columns
    return isinstance(listed, (list, tuple)) and any(isinstance(entry, str) for entry in listed)
