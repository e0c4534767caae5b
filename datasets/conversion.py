"""Replace entries that mark gaps, and convert numbers that are stored as text or objects."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.columns import MAX_LISTED_COLUMNS
from normbench.datasets.entries import format_label, is_of_numbers, strip_entry
from normbench.datasets.values import check_list, spell_setting

if TYPE_CHECKING:
    import pandas as pd


def mark_gaps(frame: "pd.DataFrame", missing: Sequence[Any]) -> "pd.DataFrame":
    """Return a table in which the entries that mark gaps are replaced by gaps.

    A text column that holds only numbers after that becomes numeric. Without such entries the table
    is returned unchanged.

    Args:
        frame: The table.
        missing: The user's entries that mark gaps, texts or numbers.

    Raises:
        UserError: `missing` is no list.
    """
    rule = "a list of entries, such as ['?',-999]"
    gap_entries = check_list("dataset.missing", missing, rule)
    # A cell of -999.0 is compared as -999, one of the text -999.0 as it is.
    gap_texts = {text for entry in gap_entries for text in (str(entry), _format_number(entry))}
    if not gap_texts:
        return frame

    def mark_gaps_of_column(column: "pd.Series[Any]") -> "pd.Series[Any]":
        """Return a column with gaps in place of the entries that mark gaps, compared as text."""
        entries = column.where(~column.astype(object).map(strip_entry).isin(gap_texts))
        return entries if is_of_numbers(column.dtype) else _to_numbers(entries)

    return frame.apply(mark_gaps_of_column)


def _format_number(entry: Any) -> str:
    """Return a number, or a text that is one, as `strip_entry` formats a cell of that number.

    So '-999.0' becomes '-999'. Other entries are returned as text.
    """
    try:
        return format_label(float(entry))
    except (TypeError, ValueError, OverflowError):
        return str(entry)


def convert_numbers(
    name: str, frame: "pd.DataFrame", positions: Sequence[int]
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Convert the columns that hold only numbers, as text or objects, to numeric columns.

    Args:
        name: The name of the data set.
        frame: The table.
        positions: The positions of the columns that must be numeric; only these are converted.

    Returns:
        The table, and a note that names the converted columns; no note without any. A column with
        an entry that is no number stays as it is; `check_columns` refuses it.
    """
    converted_labels = []
    for position in positions:
        column = frame.iloc[:, position]
        # An empty column would become one of numbers that are all gaps, which hides the mistake.
        if is_of_numbers(column.dtype) or not column.notna().any():
            continue
        numbers = _to_numbers(column)
        if is_of_numbers(numbers.dtype):
            frame = frame.copy(deep=False)  # the caller's table keeps its column
            frame.isetitem(position, numbers)
            converted_labels.append(str(frame.columns[position]))
    if not converted_labels:
        return frame, ()
    remainder = (
        f" and {len(converted_labels) - MAX_LISTED_COLUMNS} more"
        if len(converted_labels) > MAX_LISTED_COLUMNS
        else ""
    )
    return frame, (
        f"data of {name}: column "
        f"{', '.join(map(repr, converted_labels[:MAX_LISTED_COLUMNS]))}{remainder} holds numbers "
        "written as text or objects; they are taken as numbers; of categories: "
        f"{spell_setting('dataset.encode', converted_labels[:MAX_LISTED_COLUMNS], shell=True)}",
    )


def _to_numbers(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column as float64, or unchanged if an entry is not a number."""
    try:
        return column.astype(object).where(column.notna(), np.nan).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return column
