"""Entries of columns: numbers in any notation, labels as text, targets as arrays."""

from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError, check_choice, spell_setting

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {"point": r"\.", "comma": ",", "blank": r"[ \u00a0\u202f]"}
CURRENCY = "$€£¥₹"
UNIT = r"[^\W\d_]{1,5}[²³]?|°[CF]?"
MOST_WORD_KINDS = 20  # so few words with a number, such as 4wd, may be categories
# Multiples as exponents. They are units where a column has one of them alone: K may be Kelvin.
MULTIPLES = {"": "", "k": "e3", "K": "e3", "M": "e6", "B": "e9", "bn": "e9"}


# In the order of preference, where a column can be read by several: the settings by name.
NOTATIONS: tuple[dict[str, str], ...] = (
    {"decimal": "point"},
    {"thousands": "comma"},
    {"decimal": "comma"},
    {"thousands": "blank"},
    {"thousands": "point"},
    {"decimal": "comma", "thousands": "blank"},
)


def check_notation(decimal: Any, thousands: Any) -> dict[str, str]:
    """Return the settings `dataset.decimal` and `dataset.thousands` that are set, by their names.

    Raises:
        UserError: One is unknown, or both are the same.
    """
    if decimal is not None:
        check_choice("dataset.decimal", decimal, ("point", "comma"))
    if thousands is not None:
        check_choice("dataset.thousands", thousands, tuple(SEPARATORS))
    if thousands is not None and decimal == thousands:
        raise UserError(
            f"{spell_setting('dataset.thousands', thousands)}: is the decimal separator too; "
            f"write {spell_setting('dataset.decimal', 'comma' if decimal == 'point' else 'point')}"
        )
    settings = {"decimal": decimal, "thousands": thousands}
    return {name: value for name, value in settings.items() if value is not None}


def read_numbers(
    texts: Any, decimal: str | None = None, thousands: str | None = None
) -> "pd.Series[Any]":
    """Return a column (P,) of numbers that are kept as text, such as `$1,358` or `1,5 kg`.

    More than half of the entries must be numbers of this notation, and none a number in ordinary
    notation alone. All numbers but 0 have the same currency, sign or unit, or they are multiples,
    such as k and M, and are multiplied.

    Args:
        texts: The column.
        decimal: The decimal separator, `point` or `comma`; the one that is not `thousands` if None.
        thousands: The separator of groups of three digits, `point`, `comma` or `blank`.

    Returns:
        The numbers, NaN for entries that are none; of another column what `to_numbers` returns.
    """
    import pandas as pd

    point = SEPARATORS[decimal or ("comma" if thousands == "point" else "point")]
    groups = rf"[1-9]\d{{0,2}}(?:{SEPARATORS[thousands]}\d{{3}})+|" if thousands else ""
    column = pd.Series(texts)
    stripped = column.dropna().map(strip_entry)
    fields = stripped.astype(object).str.extract(  # Arrow's patterns are others
        rf"^([-+]?)\s*([A-Z]{{0,3}}[{CURRENCY}])?\s*([-+]?)({groups}\d+)({point}\d+)?"
        rf"([eE][-+]?\d+)?(\s*)([%‰+{CURRENCY}]|{UNIT})?$"
    )
    is_number = fields[3].notna()
    is_plain = pd.to_numeric(stripped, errors="coerce").notna()
    if is_number.sum() * 2 <= len(stripped) or (is_plain & ~is_number).any():
        return to_numbers(column)
    fields = fields[is_number].fillna("")
    whole, fraction = fields[3].str.replace(r"\D", "", regex=True), fields[4].str[1:]
    needs_unit = (whole + fraction).str.contains("[1-9]")  # 0 needs none
    units, exponents = set(fields[7][needs_unit]), fields[5]
    if len(units) > 1 and units <= {*MULTIPLES} and ("" not in units or units & {"k", "K"}):
        exponents, units = exponents + fields[7].map(MULTIPLES).fillna(""), set()
    is_word = fields[7].str.fullmatch(UNIT)
    is_measure = (fields[6] + fraction)[is_word].any() or stripped.nunique() > MOST_WORD_KINDS
    if len(units) > 1 or fields[1][needs_unit].nunique() > 1 or (is_word.any() and not is_measure):
        return to_numbers(column)
    numbers = fields[0] + fields[2] + whole + "." + fraction + "0" + exponents
    return numbers.astype(np.float64).reindex(column.index)


def to_numbers(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column of text or objects as float64, or unchanged if an entry is not a number."""
    if is_of_numbers(column.dtype) or column.isna().all():
        return column
    try:
        return column.astype(object).where(column.notna(), np.nan).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return column


def is_of_numbers(dtype: Any) -> bool:
    """Return whether a column of this type holds real numbers or booleans."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(dtype)) and dtype.kind != "c"


def format_label(label: Any) -> str:
    """Return a label as text, a whole number that is a float without its fraction: 2.0 is '2'."""
    if isinstance(label, (float, np.floating)) and label.is_integer():
        return str(int(label))
    return str(label)


def strip_entry(entry: Any) -> str:
    """Return an entry as text without blanks around it; empty for a gap, NaN or None."""
    import pandas as pd

    return "" if entry is None or entry is pd.NA or entry != entry else format_label(entry).strip()


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
    if np.ma.is_masked(y):  # `asarray` drops the mask
        targets = targets.astype(object)
        targets[np.ma.getmaskarray(y)] = None
    if targets.dtype.kind != "O":
        return targets
    import pandas as pd

    is_gap = pd.isna(targets)
    present = targets[~is_gap]
    if not len(present) or not all(
        isinstance(target, (Real, Decimal)) and not isinstance(target, bool) for target in present
    ):
        return targets
    if not is_gap.any() and all(isinstance(target, Integral) for target in present):
        return np.array(targets.tolist())  # objects where an integer is too large for int64
    try:
        return np.where(is_gap, np.nan, targets).astype(np.float64)
    except OverflowError:  # an integer that no float holds
        return targets
