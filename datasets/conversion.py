"""Entries that stand for gaps, and columns of numbers that are kept as text or objects."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.entries import is_of_numbers, text_of
from normbench.datasets.values import listed, spelled

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8  # columns that a note names


def with_gaps(frame: "pd.DataFrame", missing: Sequence[Any]) -> "pd.DataFrame":
    """Return a table in which the entries that stand for gaps are gaps.

    missing: entries, as text or numbers. A column of words that then holds numbers only is one of
    numbers. Raises `UserError` unless it is a list.
    """
    rule = "a list of entries, such as ['?',-999]"
    texts = {str(entry) for entry in listed("dataset.missing", missing, rule)}
    if not texts:
        return frame

    def cleaned(column: "pd.Series[Any]") -> "pd.Series[Any]":
        rest = column.where(~column.astype(object).map(text_of).isin(texts))
        return rest if is_of_numbers(column.dtype) else _numeric(rest)

    return frame.apply(cleaned)


def with_numbers(
    name: str, frame: "pd.DataFrame", positions: Sequence[int]
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return a table whose columns of numbers written as text or objects are numbers, and a note.

    positions: those of the columns that are to be numbers.
    """
    labels = []
    for position in positions:
        column = frame.iloc[:, position]
        if is_of_numbers(column.dtype) or not column.notna().any():
            continue
        numbers = _numeric(column)
        if is_of_numbers(numbers.dtype):
            frame = frame.copy(deep=False)
            frame.isetitem(position, numbers)
            labels.append(str(frame.columns[position]))
    if not labels:
        return frame, ()
    rest = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return frame, (
        f"data of {name}: column {', '.join(map(repr, labels[:SHOWN]))}{rest} holds numbers "
        "written as text or objects; they are taken as numbers; of categories: "
        f"{spelled('dataset.encode', labels[:SHOWN], shell=True)}",
    )


def _numeric(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column of numbers written as text or objects as numbers; any other as it is."""
    try:
        return column.astype(object).where(column.notna(), np.nan).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return column
