"""Decide whether the first row of a text file holds the columns' names or a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.entries import are_dates, is_gap_mark, is_of_numbers

if TYPE_CHECKING:
    import pandas as pd

COMPARED_ROWS = 10_000  # rows below the first that are compared with it
# Columns that 0, 1, 2, ... may number: fewer such numbers are often a point.
MIN_COUNTED_COLUMNS = 3
YEAR_RANGE = (1800, 2100)
MAX_LISTED_ENTRIES = 4  # entries that a message names


@dataclass(frozen=True)
class FirstRow:
    """A first row compared with the rows below.

    Attributes:
        like: The columns in which the first row is like the rows below.
        unlike: The columns in which it is unlike them; columns that leave it open are in neither
            list (see `compare_first_row`).
        repeats: The indices of rows below, from 0, that hold the same entries.
    """

    like: Sequence[int]
    unlike: Sequence[int]
    repeats: Sequence[int]

    @property
    def is_point(self) -> bool:
        """Whether it is like the rows below in a column at least, and unlike in no more columns."""
        return len(self.like) >= max(len(self.unlike), 1)

    @property
    def is_names(self) -> bool:
        """Whether it is unlike the rows below in more columns than it is like them."""
        return len(self.unlike) > len(self.like)


def abbreviate(entries: Sequence[str]) -> str:
    """Return the first `MAX_LISTED_ENTRIES` entries of a row as text, each shortened."""
    listed_entries = ", ".join(entry[:20] for entry in entries[:MAX_LISTED_ENTRIES])
    return listed_entries + (", ..." if len(entries) > MAX_LISTED_ENTRIES else "")


def compare_first_row(entries: Sequence[str], below: "pd.DataFrame") -> FirstRow:
    """Compare a file's first row with the rows below (P, N), column by column.

    An entry is like its column where it is a number above numbers, a date above dates, a word that
    stands below, or a mark of a gap. It is unlike where it is another kind than numbers or dates
    below, or a new word above words that repeat. It is left open for an empty entry, for texts
    below that do not repeat, and for numbers that name columns (0, 1, 2, ... or consecutive years).

    Args:
        entries: The entries of the first row, as text (N,).
        below: The rows below, whether or not the first row was read as their names.

    Returns:
        The columns in which the first row is like or unlike the rows below, and the rows that
        repeat it.
    """
    import pandas as pd

    entries = [entry.strip() for entry in entries]
    repeats = _find_repeats(entries, below)
    compared_rows = below.head(COMPARED_ROWS)
    # A repeated header is no row of entries to compare with.
    compared_rows = compared_rows[~np.isin(np.arange(len(compared_rows)), repeats)]
    numbers = pd.to_numeric(pd.Series(entries, dtype=object), errors="coerce").to_numpy()
    numbered = np.flatnonzero(np.isfinite(numbers))
    ignored_columns = set(numbered) if _are_names(numbers, numbered, compared_rows) else set()
    like: list[int] = []
    unlike: list[int] = []
    for column, (entry, dtype) in enumerate(zip(entries, compared_rows.dtypes)):
        if not entry or column in ignored_columns:
            continue
        if is_gap_mark(entry):
            is_like: bool | None = True
        elif is_of_numbers(dtype) and dtype.kind != "b":  # booleans are compared as text
            is_like = bool(np.isfinite(numbers[column]))
        else:
            is_like = _is_like(entry, np.isfinite(numbers[column]), compared_rows.iloc[:, column])
        if is_like is not None:
            (like if is_like else unlike).append(column)
    return FirstRow(like, unlike, repeats)


def _find_repeats(entries: Sequence[str], below: "pd.DataFrame") -> list[int]:
    """Return the indices of the rows below that repeat the first row, as in files that were joined.

    Only a repeated header matters. It makes text of every column, so that a table with a column of
    numbers has none: the result is empty then.

    Args:
        entries: The entries of the first row, as text (N,).
        below: The rows below (P, N).
    """
    if any(is_of_numbers(dtype) for dtype in below.dtypes):
        return []
    is_repeat = np.ones(len(below), dtype=bool)
    for column, entry in enumerate(entries):
        # Only the rows that have repeated the first row in all columns so far.
        texts = below.iloc[is_repeat.nonzero()[0], column]
        is_repeat[is_repeat] = [str(text).strip() == entry for text in texts]
        if not is_repeat.any():
            return []
    return is_repeat.nonzero()[0].tolist()


def _is_like(entry: str, is_number: bool, column: "pd.Series[Any]") -> bool | None:
    """Return whether an entry is like a column that is not all numbers; None if it is undecided.

    Args:
        entry: The entry of the first row, without blanks around it.
        is_number: Whether the entry is a number.
        column: The entries below it.

    Returns:
        None where the column has only gaps, and for a new word above words that occur fewer than
        two times on average.
    """
    import pandas as pd

    texts = [str(text).strip() for text in column[column.notna()]]
    texts = [text for text in texts if not is_gap_mark(text)]
    if column.dtype.kind == "b":  # pandas has read `true` as True
        texts, entry = [text.lower() for text in texts], entry.lower()
    if not texts:
        return None
    distinct_texts = set(texts)
    if entry in distinct_texts:
        return True
    if np.mean(pd.to_numeric(pd.Series(texts), errors="coerce").notna()) > 1 / 2:
        return is_number  # mostly numbers below
    if are_dates(pd.Series(texts)):
        return are_dates(pd.Series([entry]))
    # A new word is unlike words that occur twice on average or more often; where words occur about
    # once each, any word may be new.
    return False if len(distinct_texts) <= len(texts) / 2 else None


def _are_names(numbers: Any, numbered: Any, below: "pd.DataFrame") -> bool:
    """Return whether the numbers of a first row name columns: they count the columns, or are years.

    Both are consecutive whole numbers. Counts begin at 0 or 1 and need a number in each column, of
    3 at least. Years (1800 to 2100) name columns only where no entry below them is a year.

    Args:
        numbers: The entries of the first row as numbers (N,), NaN for other entries.
        numbered: The positions of the entries that are numbers, increasing (n,).
        below: The rows below (P, N).
    """
    import pandas as pd

    header_numbers = numbers[numbered]
    if (
        len(header_numbers) < 2
        or (np.diff(header_numbers) != 1).any()
        or header_numbers[0] != np.round(header_numbers[0])
    ):
        return False
    if header_numbers[0] in (0, 1) and MIN_COUNTED_COLUMNS <= len(header_numbers) == len(numbers):
        return True
    if header_numbers[0] < YEAR_RANGE[0] or header_numbers[-1] > YEAR_RANGE[1]:
        return False
    values = below.iloc[:, numbered].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    return not ((values >= YEAR_RANGE[0]) & (values <= YEAR_RANGE[1])).any()
