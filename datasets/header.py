"""Whether the first row of a text file holds the columns' names, or is a point like those below."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.entries import are_dates, is_gap_mark, is_of_numbers

if TYPE_CHECKING:
    import pandas as pd

SAMPLE = 10_000  # rows below the first that are compared with it
LEAST_COUNTED = 3  # columns that 0, 1, 2, ... may number: fewer such numbers are often a point
YEARS = (1800, 2100)
SHOWN = 4  # entries that a message names


@dataclass(frozen=True)
class FirstRow:
    """A first row compared with the rows below: columns that it is like, and those it is unlike.

    repeats: the rows below, counted from 0, that hold the very same entries.
    """

    like: Sequence[int]
    unlike: Sequence[int]
    repeats: Sequence[int]

    @property
    def is_point(self) -> bool:
        """Whether it is like the rows below in as many columns as it is unlike them, or more."""
        return len(self.like) >= max(len(self.unlike), 1)

    @property
    def is_names(self) -> bool:
        """Whether it is unlike the rows below in more columns than it is like them."""
        return len(self.unlike) > len(self.like)


def shown(entries: Sequence[str]) -> str:
    """Return the first entries of a row, cut short."""
    return ", ".join(entry[:20] for entry in entries[:SHOWN]) + ", ..." * (len(entries) > SHOWN)


def compare_first_row(entries: Sequence[str], below: "pd.DataFrame") -> FirstRow:
    """Compare a file's first row with the rows below (P, N), column by column.

    An entry is like its column where it is a number above numbers, a date above dates, a word that
    stands below, or a mark of a gap. It is unlike where it is another kind than numbers or dates
    below, or a new word above words that repeat. An empty entry, and texts that do not repeat, say
    nothing. Numbers that name columns (0, 1, 2, ... or consecutive years) say nothing either.
    """
    import pandas as pd

    entries = [entry.strip() for entry in entries]
    repeats = _repeats(entries, below)
    rest = below.head(SAMPLE)
    rest = rest[~np.isin(np.arange(len(rest)), repeats)]
    numbers = pd.to_numeric(pd.Series(entries, dtype=object), errors="coerce").to_numpy()
    numbered = np.flatnonzero(np.isfinite(numbers))
    silent = set(numbered) if _name_columns(numbers, numbered, rest) else set()
    like: list[int] = []
    unlike: list[int] = []
    for column, (entry, kind) in enumerate(zip(entries, rest.dtypes)):
        if not entry or column in silent:
            continue
        if is_gap_mark(entry):
            verdict: bool | None = True
        elif is_of_numbers(kind) and kind.kind != "b":
            verdict = bool(np.isfinite(numbers[column]))
        else:
            verdict = _is_like(entry, np.isfinite(numbers[column]), rest.iloc[:, column])
        if verdict is not None:
            (like if verdict else unlike).append(column)
    return FirstRow(like, unlike, repeats)


def _repeats(entries: Sequence[str], below: "pd.DataFrame") -> list[int]:
    """Return the rows (P, N) that hold the very same words, as files that were joined do."""
    if any(is_of_numbers(kind) for kind in below.dtypes):
        return []
    same = np.ones(len(below), dtype=bool)
    for column, entry in enumerate(entries):
        texts = below.iloc[same.nonzero()[0], column]
        same[same] = [str(text).strip() == entry for text in texts]
        if not same.any():
            return []
    return same.nonzero()[0].tolist()


def _is_like(entry: str, is_number: bool, column: "pd.Series[Any]") -> bool | None:
    """Return whether an entry is like a column that is not all numbers; None where it is open."""
    import pandas as pd

    texts = [str(text).strip() for text in column[column.notna()]]
    texts = [text for text in texts if not is_gap_mark(text)]
    if column.dtype.kind == "b":
        texts, entry = [text.lower() for text in texts], entry.lower()
    if not texts:
        return None
    kinds = set(texts)
    if entry in kinds:
        return True
    if np.mean(pd.to_numeric(pd.Series(texts), errors="coerce").notna()) > 1 / 2:
        return is_number
    if are_dates(pd.Series(texts)):
        return are_dates(pd.Series([entry]))
    return False if len(kinds) <= len(texts) / 2 else None


def _name_columns(numbers: Any, numbered: Any, below: "pd.DataFrame") -> bool:
    """Return whether the numbers of a first row count all columns, or are years above others."""
    import pandas as pd

    given = numbers[numbered]
    if len(given) < 2 or (np.diff(given) != 1).any() or given[0] != np.round(given[0]):
        return False
    if given[0] in (0, 1) and LEAST_COUNTED <= len(given) == len(numbers):
        return True
    if given[0] < YEARS[0] or given[-1] > YEARS[1]:
        return False
    values = below.iloc[:, numbered].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    return not ((values >= YEARS[0]) & (values <= YEARS[1])).any()
