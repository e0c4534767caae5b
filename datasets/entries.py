"""Classify the entries of a column: numbers, dates, gap marks, labels."""

from collections.abc import Sized
from datetime import date, timedelta
from decimal import Decimal
from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError

if TYPE_CHECKING:
    import pandas as pd

# Texts that usually stand for a gap where they are the whole entry.
GAP_MARKS = ("?", "-", ".", "NA", "N/A", "nan")
# 31/01/2020 or 2020-01-31, whatever the order of the parts; a time may follow.
DATE_PATTERN = r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?"
UNFIT_DTYPE_NAMES = {"c": "complex numbers", "M": "dates", "m": "spans of time", "V": "records"}
UNFIT_TYPE_NAMES = {
    date: "dates",
    timedelta: "spans of time",
    Complex: "complex numbers",
    Sized: "lists",
}
ENCODING_REMEDY = "it takes numbers or words; encode them as such, or choose another target"
LABELS_PER_BLOCK = 1 << 18  # labels that are compared at a time
MOST_NUMBERED_CLASSES = 20  # targets of more distinct numbers are real targets


def is_of_numbers(dtype: Any) -> bool:
    """Return whether a column of this type holds real numbers or booleans."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(dtype)) and dtype.kind != "c"


def is_gap_mark(entry: Any) -> bool:
    """Return whether an entry is a gap mark, with or without blanks."""
    return isinstance(entry, str) and entry.strip() in GAP_MARKS


def find_gap_marks(entries: Any) -> list[str]:
    """Return the distinct gap marks among the entries of a column, in their order.

    A gap mark (`GAP_MARKS`) is an entry such as '?' that usually stands for a gap. A minus does not
    count as one where another entry is a plus: both are categories then.
    """
    marks = list(dict.fromkeys(entry.strip() for entry in entries if is_gap_mark(entry)))
    if "-" in marks and any(isinstance(entry, str) and entry.strip() == "+" for entry in entries):
        marks.remove("-")
    return marks


def are_dates(entries: "pd.Series[Any]") -> bool:
    """Return whether all entries are written as dates, such as 2020-01-31 or 31/1/2020."""
    import pandas as pd

    texts = entries.astype(str).str.strip()
    # The first test accepts any order of day, month and year, the second ISO 8601 alone.
    if texts.str.fullmatch(DATE_PATTERN).all():
        return True
    try:
        pd.to_datetime(texts, format="ISO8601")
    except ValueError:
        return False
    return True


def format_label(label: Any) -> str:
    """Return a label as text, a whole number that is a float without its fraction: 2.0 is '2'."""
    if isinstance(label, (float, np.floating)) and label.is_integer():
        return str(int(label))
    return str(label)


def strip_entry(entry: Any) -> str:
    """Return an entry as text without blanks around it; empty for NaN, NaT and pandas' NA."""
    import pandas as pd

    if isinstance(entry, str):
        return entry.strip()
    # NA is neither equal nor unequal to itself; only NaN and NaT are unequal.
    return format_label(entry) if entry is not pd.NA and entry == entry else ""


def convert_targets(y: Any) -> NDArray[Any]:
    """Return targets of any type as an array; numbers that are stored as objects become numbers.

    Such are decimals, and the entries of a column of objects. Booleans are no numbers. A masked
    entry is a gap: None, or NaN among numbers.

    Args:
        y: An array or a sequence.

    Raises:
        ValueError: The targets are lists of different lengths.
    """
    targets = np.asarray(y)
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):  # `asarray` drops the mask
        targets = targets.astype(object)
        targets[np.ma.getmaskarray(y)] = None
    if targets.dtype.kind != "O":
        return targets
    import pandas as pd

    is_gap = pd.isna(targets)
    types = {type(target) for target in targets[~is_gap]}
    if not types or not all(
        issubclass(kind, (Real, Decimal)) and not issubclass(kind, bool) for kind in types
    ):
        return targets
    if not is_gap.any() and all(issubclass(kind, Integral) for kind in types):
        return np.array(targets.tolist())  # objects where an integer is too large for int64
    try:
        return np.where(is_gap, np.nan, targets).astype(np.float64)
    except OverflowError:  # an integer that no float holds
        return targets


def is_regression(y: NDArray[Any]) -> bool:
    """Return whether targets (P,) are real: numbers with a fraction, or with many values.

    Many are more than `MOST_NUMBERED_CLASSES`, and half as many as points unless they are two.
    Otherwise the targets are labels of classes, as text and booleans are.
    """
    if y.dtype.kind not in "iuf":  # integers and floats
        return False
    if y.dtype.kind == "f" and bool((y != np.round(y)).any()):
        return True
    count = len(distinct_labels(y, MOST_NUMBERED_CLASSES))
    return count > MOST_NUMBERED_CLASSES or (count > 2 and 2 * count >= len(y))


def describe_unfit(targets: NDArray[Any]) -> str | None:
    """Return the kind of entries, such as `dates`, that makes targets unusable; None if usable.

    Usable are real numbers, booleans and text (bytes, too), and None for a gap.
    """
    if targets.dtype.kind != "O":  # an array of one type; of objects each one's type counts
        return UNFIT_DTYPE_NAMES.get(targets.dtype.kind)
    # In Python's classes text is `Sized` as lists are, and a real number is `Complex`; both are
    # usable nevertheless.
    for entry_type in {type(target) for target in targets.flat}:
        for unfit_type, type_name in UNFIT_TYPE_NAMES.items():
            if issubclass(entry_type, unfit_type) and not issubclass(
                entry_type, (str, bytes, Real)
            ):
                return type_name
    return None


def label_slices(labels: NDArray[Any]) -> list[slice]:
    """Return slices of `LABELS_PER_BLOCK` rows that cover labels (P,), to save memory."""
    return [
        slice(first, first + LABELS_PER_BLOCK) for first in range(0, len(labels), LABELS_PER_BLOCK)
    ]


def distinct_labels(labels: NDArray[Any], enough: int | None = None) -> NDArray[Any]:
    """Return the distinct labels, sorted.

    Args:
        labels: Labels (P,) that can be compared with one another.
        enough: The number of distinct labels beyond which the search stops: the result may then
            lack some of the labels, but has more than `enough`. None returns all.

    Raises:
        TypeError: The labels have no order, as numbers and text.
    """
    values = labels[:0]
    for rows in label_slices(labels):
        values = np.unique(np.concatenate([values, np.unique(labels[rows])]))
        if enough is not None and len(values) > enough:
            break
    return values


def extract_targets(target: Any, column: "pd.Series[Any]") -> NDArray[Any]:
    """Return a target column as an array (P,): numbers, or objects with None for a gap.

    Args:
        target: The setting `dataset.target`, for the error.
        column: The column.

    Raises:
        UserError: Its entries are of a kind that is neither number nor word, such as dates or
            lists.
    """
    targets = _to_target_array(column)
    if unfit := describe_unfit(targets):
        raise UserError(f"dataset.target={target}: is a column of {unfit}; {ENCODING_REMEDY}")
    return targets


def _to_target_array(column: "pd.Series[Any]") -> NDArray[Any]:
    """Return a target column as an array (P,).

    Numbers stay numbers, with NaN for a gap. Booleans without gaps stay booleans. All else becomes
    objects, with None for a gap.
    """
    import pandas as pd

    if pd.api.types.is_bool_dtype(column.dtype) and not column.isna().any():
        return column.to_numpy(dtype=bool)
    # Booleans with gaps become objects: as floats they would be 1 and 0, not true and false.
    if pd.api.types.is_bool_dtype(column.dtype) or not pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(object).where(column.notna(), None).to_numpy(dtype=object)
    if column.isna().any():
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return column.to_numpy()
