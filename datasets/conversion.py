"""Replace entries that mark gaps, and convert numbers that are stored as text or objects."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.columns import MAX_LISTED_COLUMNS
from normbench.datasets.entries import (
    find_gap_marks,
    format_label,
    is_of_numbers,
    strip_entry,
)
from normbench.datasets.notation import Notation
from normbench.datasets.values import check_list, spell_setting

if TYPE_CHECKING:
    import pandas as pd


def check_missing(missing: Any) -> list[Any]:
    """Return the setting `dataset.missing` as a list; raise `UserError` unless it is one."""
    return check_list("dataset.missing", missing, "a list of entries, such as ['?',-999]")


def mark_gaps(
    frame: "pd.DataFrame", missing: Sequence[Any], encoded: Sequence[int] = ()
) -> "pd.DataFrame":
    """Return a table in which the entries that mark gaps are replaced by gaps.

    A text column that holds only numbers after that becomes numeric, unless it is encoded: 01 and 1
    are two categories. Without such entries the table is returned unchanged.

    Args:
        frame: The table.
        missing: The user's entries that mark gaps, texts or numbers.
        encoded: The positions of columns of categories.

    Raises:
        UserError: `missing` is no list.
    """
    gap_entries = check_missing(missing)
    if not gap_entries:
        return frame
    marked_frame = frame.copy(deep=False)  # the caller's table keeps its columns
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        dtype = getattr(column.dtype, "subtype", column.dtype)  # of a sparse column, its entries'
        # A cell of -999.0 is compared as -999, one of the text -999.0 as it is.
        gap_texts = {
            text for entry in gap_entries for text in (str(entry), _format_number(entry, dtype))
        }
        column = column.where(~column.astype(object).map(strip_entry).isin(gap_texts))
        if position not in encoded and not is_of_numbers(column.dtype):
            column = _to_numbers(column)
        marked_frame.isetitem(position, column)
    return marked_frame


def _format_number(entry: Any, dtype: Any) -> str:
    """Return a number, or a text that is one, as `strip_entry` formats a cell of that number.

    So '-999.0' becomes '-999'. Other entries are returned as text.

    Args:
        entry: An entry that marks gaps.
        dtype: The type of the column, to which a number is rounded: -99.9 is another number in
            float32. A number that this type does not hold is returned as text.
    """
    rounded_dtype = f"f{dtype.itemsize}" if dtype.kind == "f" else "f8"
    try:
        with np.errstate(over="raise", under="raise"):
            return format_label(float(np.float64(float(entry)).astype(rounded_dtype)))
    except (TypeError, ValueError, ArithmeticError):
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


def rewrite_numbers(cells: "pd.DataFrame", notation: Notation, header: bool) -> "pd.DataFrame":
    """Return a table of text (P, N) whose numbers are written in ordinary notation.

    Args:
        cells: The table as text, without gaps.
        notation: The notation of its numbers; a column in another one stays as it is.
        header: Whether the first row holds names, which stay as they are.
    """
    rewritten = cells.copy()
    for position in range(cells.shape[1]):
        texts = cells.iloc[int(header) :, position].fillna("").map(strip_entry)
        texts = texts[(texts != "") & ~texts.isin(find_gap_marks(texts))]
        numbers = notation.read_texts(texts, is_target=False)
        if numbers is not None:
            column = cells.iloc[:, position].copy()
            column.update(numbers.dropna())
            rewritten.isetitem(position, column)
    return rewritten


def _to_numbers(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column as float64, or unchanged if an entry is not a number."""
    try:
        return column.astype(object).where(column.notna(), np.nan).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return column
