"""The columns of a user's table: found by name or position, read as numbers, and made numbers."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import UserError, check_list, did_you_mean, spell_setting

if TYPE_CHECKING:
    import pandas as pd

GAP_CATEGORY = "(missing)"  # the category of a gap in an encoded column
MAX_LISTED_NAMES = 12  # column names that a message lists
SEPARATORS = {"point": r"\.", "comma": ",", "blank": r"[ \u00a0\u202f]"}
CURRENCY = "$€£¥₹"
UNIT = r"[^\W\d_]{1,5}[²³]?|°[CF]?"
MULTIPLES = {"": "", "k": "e3", "K": "e3", "M": "e6", "B": "e9", "bn": "e9"}  # as exponents
MOST_WORD_KINDS = 20  # so few words with a number, such as 4wd, may be categories


@dataclass(frozen=True)
class Columns:
    """The feature columns of a table (P rows), and how they become numbers.

    A gap is an empty cell of the table, which pandas stores as NaN or None.

    Attributes:
        frame: The table of the feature columns alone.
        encoded: The positions of columns of categories, each of which becomes columns of 1 and 0.
        fill: `median` where gaps in the other columns become their median, else None.
    """

    frame: "pd.DataFrame"
    encoded: frozenset[int]
    fill: str | None

    def encode_features(
        self, train: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """Return all points (P, M) as numbers, and the names of their features.

        A category becomes a column `city=Rome` of 1 and 0; two categories become one column, of the
        second. A point whose category no training point has is 0 in all columns. A column without a
        number among the training points is 0 in its gaps. The columns stay in the table's order.

        Args:
            train: The mask of the training points (P,), from which medians and categories are
                learned.
        """
        from sklearn.impute import SimpleImputer

        labels = [str(label) for label in self.frame.columns]
        numeric = [n for n in range(len(labels)) if n not in self.encoded]
        numbers = self.frame.iloc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan)
        if self.fill == "median" and np.isnan(numbers).any():
            imputer = SimpleImputer(strategy="median", keep_empty_features=True)
            numbers = imputer.fit(numbers[train]).transform(numbers)
        if not self.encoded:
            return numbers, tuple(labels)
        columns = {n: (numbers[:, [m]], [labels[n]]) for m, n in enumerate(numeric)}
        columns |= {n: self._encode_column(n, train) for n in self.encoded}
        points, names = zip(*(columns[n] for n in range(len(labels))))
        return np.concatenate(points, axis=1), tuple(chain(*names))

    def _encode_column(
        self, position: int, train: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], list[str]]:
        """Return a column by its categories among the training points (P, C), and their names."""
        from sklearn.preprocessing import OneHotEncoder

        column = self.frame.iloc[:, position]
        texts = column.astype(object).map(strip_entry).where(column.notna(), GAP_CATEGORY)
        entries = texts.to_numpy(dtype=object)[:, None]
        encoder = OneHotEncoder(handle_unknown="ignore").fit(entries[train])
        first = int(len(encoder.categories_[0]) == 2)  # of two categories the second is a feature
        names = [f"{column.name}={category}" for category in encoder.categories_[0][first:]]
        return encoder.transform(entries).toarray()[:, first:], names

    def select_rows(self, mask: NDArray[np.bool_]) -> "Columns":
        """Return the table of the points of a mask (P,) alone."""
        return replace(self, frame=self.frame.iloc[mask])


def find_roles(names: list[str], target: Any, drop: Any) -> tuple[list[int], int | None]:
    """Return the positions of a table's feature columns, and that of its target.

    Args:
        names: The names of the table's columns, in their order.
        target: The name or position of the target column; None without one.
        drop: The names or positions of columns to leave out.

    Returns:
        The positions of the features, increasing: all columns but the target and the dropped ones.
        The position of the target, or None without one.

    Raises:
        UserError: There is no such column, or the target is dropped, too.
    """
    dropped = find_positions(names, "dataset.drop", drop)
    target_position = None if target is None else find_position(names, "dataset.target", target)
    if target_position in dropped:
        raise UserError(f"dataset.target={target}: stands in dataset.drop too; leave it in one")
    return [n for n in range(len(names)) if n not in (target_position, *dropped)], target_position


def find_positions(names: list[str], option: str, columns: Any) -> list[int]:
    """Return the positions of a list of columns, in the order of the list.

    Args:
        names: The names of the table's columns.
        option: The setting that lists columns, for errors.
        columns: Its value, names or positions.

    Raises:
        UserError: The value is no list, or there is no such column.
    """
    rule = f"a list of columns; write {spell_setting(option, [columns], shell=True)}"
    return [find_position(names, option, column) for column in check_list(option, columns, rule)]


def find_position(names: list[str], option: str, column: Any) -> int:
    """Return the position, from 0, of a column that is given by its name or position.

    Args:
        names: The names of the table's columns.
        option: The setting that gives the column, for errors.
        column: A name, or a position; -1 is the last.

    Raises:
        UserError: There is no such column, or several have the name.
    """
    if type(column) is int and -len(names) <= column < len(names):
        return column % len(names)  # -1 becomes the position of the last
    positions = [n for n, name in enumerate(names) if name == column]
    if len(positions) == 1:
        return positions[0]
    rule = f"is the name of {len(positions)} columns; give a position, of {positions}"
    if not positions:
        listed = ", ".join(names[:MAX_LISTED_NAMES] + ["..."] * (len(names) > MAX_LISTED_NAMES))
        rule = f"no such column; give a name of {listed}, or a position such as -1 (the last)"
        rule += did_you_mean(column, names)
    raise UserError(f"{spell_setting(option, column)}: {rule}")


def read_numbers(
    texts: Any, decimal: str | None = None, thousands: str | None = None
) -> "pd.Series[Any]":
    """Return a column (P,) of numbers that are kept as text, such as `$1,358` or `1,5 kg`.

    More than half of the entries must be numbers of this notation, and none a number in ordinary
    notation alone. All numbers but 0 have the same currency, sign or unit; multiples, such as k and
    M, are multiplied.

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
    multiples = fields[7].map(MULTIPLES)
    signs = fields[1] + (fields[7] if multiples.isna().any() else "")
    is_signed = (whole + fraction).str.contains("[1-9]")  # 0 needs no sign
    has_words = fields[7].str.fullmatch(UNIT).any() and stripped.nunique() <= MOST_WORD_KINDS
    if signs[is_signed].nunique() > 1 or (has_words and not (fields[6] + fraction).any()):
        return to_numbers(column)
    numbers = (
        fields[0] + fields[2] + whole + "." + fraction + "0" + fields[5] + multiples.fillna("")
    )
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

    return "" if pd.isna(entry) else format_label(entry).strip()
