"""What the entries of a column are: numbers, dates, marks of gaps, labels."""

from collections.abc import Sized
from datetime import date, timedelta
from numbers import Complex, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError

if TYPE_CHECKING:
    import pandas as pd

MARKS = ("?", "-", ".", "NA", "N/A", "nan")  # entries that stand for gaps wherever they are alone
DATE = r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?"  # 31/01/2020, whatever the order of its parts
KINDS = {"c": "complex numbers", "M": "dates", "m": "spans of time", "V": "records"}
UNFIT = {date: "dates", timedelta: "spans of time", Complex: "complex numbers", Sized: "lists"}
TARGETS = "it takes numbers or words; encode them as such, or choose another target"
BLOCK = 1 << 18  # labels that are looked at at once
MOST_NUMBERED_CLASSES = 20  # more distinct numbers than that are taken for real targets


def is_of_numbers(kind: Any) -> bool:
    """Return whether a column of this type holds real numbers or truth values."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind)) and kind.kind != "c"


def is_gap_mark(entry: Any) -> bool:
    """Return whether an entry is a mark that stands for a gap, with or without blanks around it."""
    return isinstance(entry, str) and entry.strip() in MARKS


def gap_marks(entries: Any) -> list[str]:
    """Return the marks of gaps among the entries of a column; beside a plus, a minus is none."""
    marks = list(dict.fromkeys(entry.strip() for entry in entries if is_gap_mark(entry)))
    if "-" in marks and any(isinstance(entry, str) and entry.strip() == "+" for entry in entries):
        marks.remove("-")
    return marks


def are_dates(entries: "pd.Series[Any]") -> bool:
    """Return whether all entries are written as dates, such as 2020-01-31 or 31/1/2020."""
    import pandas as pd

    texts = entries.astype(str).str.strip()
    if texts.str.fullmatch(DATE).all():
        return True
    try:
        pd.to_datetime(texts, format="ISO8601")
    except ValueError:
        return False
    return True


def named(label: Any) -> str:
    """Return a label as text: a whole number without its fraction."""
    if isinstance(label, (float, np.floating)) and label.is_integer():
        return str(int(label))
    return str(label)


def text_of(entry: Any) -> str:
    """Return an entry as text without blanks around it, empty for a gap."""
    return entry.strip() if isinstance(entry, str) else named(entry) if entry == entry else ""


def is_regression(y: NDArray[Any]) -> bool:
    """Return whether targets (P,) are real: numbers, with a fraction or more than 20 values."""
    if y.dtype.kind not in "iuf":
        return False
    fractions = y.dtype.kind == "f" and bool((y != np.round(y)).any())
    return fractions or len(kinds(y, MOST_NUMBERED_CLASSES)) > MOST_NUMBERED_CLASSES


def kind_of(targets: NDArray[Any]) -> str | None:
    """Return what targets are that can be no labels and no real targets; None where they can."""
    if targets.dtype.kind != "O":
        return KINDS.get(targets.dtype.kind)
    for kind in {type(target) for target in targets.flat}:
        for unfit, word in UNFIT.items():
            if issubclass(kind, unfit) and not issubclass(kind, (str, bytes, Real)):
                return word
    return None


def blocks(labels: NDArray[Any]) -> list[slice]:
    """Return the rows of blocks of labels: at once, millions would be copied several times."""
    return [slice(first, first + BLOCK) for first in range(0, len(labels), BLOCK)]


def kinds(labels: NDArray[Any], enough: int | None = None) -> NDArray[Any]:
    """Return the distinct labels, sorted; some of them where more than enough were found."""
    values = labels[:0]
    for rows in blocks(labels):
        values = np.unique(np.concatenate([values, np.unique(labels[rows])]))
        if enough is not None and len(values) > enough:
            break
    return values


def targets_of(target: Any, column: "pd.Series[Any]") -> NDArray[Any]:
    """Return a target column as an array (P,); raise `UserError` where it can be none."""
    targets = _plain(column)
    if unfit := kind_of(targets):
        raise UserError(f"dataset.target={target}: is a column of {unfit}; {TARGETS}")
    return targets


def _plain(column: "pd.Series[Any]") -> NDArray[Any]:
    """Return a target column as an array (P,): numbers, or objects with None for a gap."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column.dtype) and not column.isna().any():
        return column.to_numpy(dtype=bool)
    if pd.api.types.is_bool_dtype(column.dtype) or not pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(object).where(column.notna(), None).to_numpy(dtype=object)
    if column.isna().any():
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy()
