"""Check the feature columns of a user's table, and encode or fill them as the options say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.entries import (
    are_dates,
    find_gap_marks,
    is_gap_mark,
    is_of_numbers,
    is_regression,
    strip_entry,
)
from normbench.datasets.notation import Notation, choose_notation, find_notations
from normbench.datasets.values import (
    LARGEST_FLOAT,
    UserError,
    in_python,
    spell_setting,
    table_word,
)

if TYPE_CHECKING:
    import pandas as pd

GAP_CATEGORY = "(missing)"  # the category of a gap in an encoded column
# Distinct entries of a numeric column that are no numbers: so few may mark gaps. Also the number of
# entries that a message lists.
MAX_ODD_ENTRIES = 3
# What each option that settles a column does.
OPTION_MEANINGS = {
    "target": "target: the column to be predicted",
    "encode": "encode: one column a category",
    "missing": "missing: these entries are gaps",
    "fill": "fill: drop leaves points with gaps out",
    "notation": "decimal, thousands: how numbers are written",
    "drop": "drop: leaves columns out",
}
SENTINELS = (-9, -99, -999, -9999, -99999, -200)  # numbers that often stand for gaps
MAX_CATEGORIES = 20  # a column with more, of fewer than two points each, is hardly categorical
MAX_LISTED_COLUMNS = 8  # columns that a message names


@dataclass(frozen=True)
class Columns:
    """The feature columns of a table (P rows), and how they become numbers.

    A gap is an empty cell of the table, which pandas stores as NaN or None.

    Attributes:
        name: The name of the data set.
        frame: The table of the feature columns alone.
        encoded: The positions of columns of categories, each of which becomes columns of 1 and 0.
        fill: `median` where gaps in the other columns become their median, else None.
        dropped: The columns that the user has dropped, which a remedy repeats, since the setting is
            written anew.
    """

    name: str
    frame: "pd.DataFrame"
    encoded: frozenset[int]
    fill: str | None
    dropped: tuple[str | int, ...] = ()

    def notes(self, index: "ColumnProblem | None") -> tuple[str, ...]:
        """Return a note on a column that may be an index, and on each encoded column with gaps.

        Empty where there is neither.

        Args:
            index: What `find_index_column` returned: a column that numbers the points, or None.
        """
        lines = []
        if index:
            dropped = _spell_list("drop", [*self.dropped, index.label])
            remedy = f"if it is an index, leave it out: {dropped}"
            lines.append(f"data of {self.name}: column {index}; {remedy}")
        for position in sorted(self.encoded):
            gaps, label = (
                int(self.frame.iloc[:, position].isna().sum()),
                self.frame.columns[position],
            )
            if gaps:
                lines.append(
                    f"data of {self.name}: column '{label}' has no entry in {gaps} of "
                    f"{len(self.frame)} points; they are a category, {label}={GAP_CATEGORY}"
                )
        return tuple(lines)

    def encode_features(
        self, train: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """Return all points (P, M) as numbers, and the names of their features.

        A category becomes a column `city=Rome` of 1 and 0; two categories become one column, of the
        second. A point whose category no training point has is 0 in all columns. The columns stay
        in the table's order.

        Args:
            train: The mask of the training points (P,), from which medians and categories are
                learned.

        Raises:
            UserError: A column has no number among the training points.
        """
        labels = [str(label) for label in self.frame.columns]
        # The other columns are numeric: `check_columns` has refused the rest.
        numeric_positions = [
            position for position in range(len(labels)) if position not in self.encoded
        ]
        numbers = self.frame.iloc[:, numeric_positions].to_numpy(dtype=np.float64, na_value=np.nan)
        if self.fill == "median" and np.isnan(numbers).any():
            numbers = self._fill_medians(
                numbers, [labels[position] for position in numeric_positions], train
            )
        if not self.encoded:
            return numbers, tuple(labels)
        # The features (P, m) of each column of the table, and their m names.
        features_by_position = {
            position: (numbers[:, [n]], [labels[position]])
            for n, position in enumerate(numeric_positions)
        }
        for position in self.encoded:
            features_by_position[position] = _encode_categories(
                self.frame.iloc[:, position], labels[position], train
            )
        columns, names = zip(*(features_by_position[position] for position in range(len(labels))))
        return np.concatenate(columns, axis=1), tuple(chain(*names))

    def select_rows(self, rows: NDArray[np.intp]) -> "Columns":
        """Return the table of some points alone, by their indices (p,)."""
        return replace(self, frame=self.frame.iloc[rows])

    def _fill_medians(
        self, numbers: NDArray[np.float64], labels: Sequence[str], train: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return numbers (P, N) whose gaps are filled with the median of their column.

        Args:
            numbers: The numeric columns, NaN in their gaps.
            labels: The names of these columns.
            train: The mask of the training points (P,), whose medians are taken.

        Raises:
            UserError: A column has no number among the training points.
        """
        from sklearn.impute import SimpleImputer

        # Refused here, since `SimpleImputer` would leave such a column out.
        empty_columns = np.flatnonzero(np.isnan(numbers[train]).all(axis=0))
        if len(empty_columns):
            label = labels[empty_columns[0]]
            raise UserError(
                f"data of {self.name}: column {label!r} has no number among the training points, "
                f"so no median; leave it out: {_spell_list('drop', [*self.dropped, label])}"
            )
        filled_numbers = SimpleImputer(strategy="median").fit(numbers[train]).transform(numbers)
        return np.asarray(filled_numbers, dtype=np.float64)


def _encode_categories(
    column: "pd.Series[Any]", label: str, train: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], list[str]]:
    """Encode a column by its categories among the training points, sorted as text.

    Two categories become one feature, which is 1 for the second of them. A gap is a category
    (`GAP_CATEGORY`).

    Args:
        column: The column (P,).
        label: Its name.
        train: The mask of the training points (P,).

    Returns:
        The features (P, C), each of 1 and 0 for one category, and their names. C is 1 for two
        categories.
    """
    entries = (
        column.astype(object)
        .map(strip_entry)
        .where(column.notna(), GAP_CATEGORY)
        .to_numpy(dtype=object)
    )
    categories = np.unique(entries[train])
    if len(categories) == 2:
        categories = categories[1:]
    indicators = (entries[:, None] == categories).astype(np.float64)
    return indicators, [f"{label}={category}" for category in categories]


def check_columns(
    name: str,
    frame: "pd.DataFrame",
    encode: Sequence[int] = (),
    fill: str | None = None,
    index: "ColumnProblem | None" = None,
    last_may_be_target: bool = False,
    user_lists: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    target_problem: "ColumnProblem | None" = None,
    from_text: bool = False,
) -> Columns:
    """Return the feature columns of a table, once each of them is numeric or an option makes it so.

    Args:
        name: The name of the data set.
        frame: The feature columns, indexed by the rows of the user's table.
        encode: The positions of columns of categories.
        fill: `median` accepts gaps in numeric columns; with any other value no gaps may remain.
        index: What `find_index_column` returned: a column that numbers the points, or None. Such a
            column is numeric: the error lists it only beside others.
        last_may_be_target: Whether no target is named, so that the last column may be the target.
        user_lists: The user's values of `encode`, `missing` and `drop`, by these names. A remedy
            that adds to one of these lists repeats them.
        target_problem: The target's numbers in another notation, or None.
        from_text: Whether the table is a text file, which settings can read in another notation.

    Raises:
        UserError: A column is not numeric. The message lists all such columns with the reasons, and
            the options that settle them.
    """
    dtypes, gaps = list(frame.dtypes), frame.isna().sum().to_numpy()
    problems: list[ColumnProblem] = []
    for position, label in enumerate(map(str, frame.columns)):
        if position in encode:
            continue
        if is_of_numbers(dtypes[position]):  # only gaps can be a problem
            if gaps[position] == len(frame):
                problems.append(ColumnProblem(label, "is empty", "drop", (label,)))
            elif gaps[position] and fill != "median":
                first = frame.index[frame.iloc[:, position].isna()][0]
                reason = (
                    f"has no entry in {gaps[position]} of {len(frame)} points, first in {first}"
                )
                problems.append(ColumnProblem(label, reason, "fill"))
        else:
            problems.append(_diagnose_column(frame.iloc[:, position], label, is_target=False))
    if problems or target_problem:
        problems = [problem for problem in (target_problem, index) if problem] + problems
        if last_may_be_target:
            # The last column is listed first, as a forgotten target, and not by its own problem.
            label = str(frame.columns[-1])
            target_reason = "is the last and may be the target: dataset.target names none"
            other_problems = [problem for problem in problems if problem.label != label]
            problems = [ColumnProblem(label, target_reason, "target", (label,)), *other_problems]
        _refuse_columns(name, problems, fill, user_lists, from_text)
    for position in encode:
        _refuse_identifiers(frame.iloc[:, position], str(frame.columns[position]), user_lists)
    return Columns(name, frame, frozenset(encode), fill, tuple(user_lists.get("drop", ())))


@dataclass(frozen=True)
class ColumnProblem:
    """The reason why a column is not numeric, and the option that settles it.

    Attributes:
        label: The name of the column.
        reason: The reason.
        option: The option that settles the column, without `dataset.`.
        values: What to add to the list of that option: the column's name (or the target's) or, for
            `missing`, entries that mark gaps. Empty for `fill`, which is no list.
        gaps: With the option `encode`, entries of the column that also have to be listed in
            `missing`, since they mark gaps. With `notation`, too; empty with any other option.
        notations: With the option `notation`, those in which the column is of numbers.
        conversion: With the option `notation`, the line of pandas that converts the column.
    """

    label: str
    reason: str
    option: str
    values: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    notations: tuple[Notation, ...] = ()
    conversion: str = ""

    def __str__(self) -> str:
        return f"{self.label!r} {self.reason}"


def _diagnose_column(column: "pd.Series[Any]", label: str, is_target: bool) -> ColumnProblem:
    """Return the reason why a column is not numeric, and the option that settles it.

    The reason is the first that holds: the column has dates, no entry, entries of another type
    than text and numbers, a whole number that no float holds, only gap marks, numbers in another
    notation (settled by `notation`), numbers and a few other entries (settled by `missing`), dates
    as text, mostly different texts, or words (settled by `encode`). The others are settled by
    `drop`. A gap mark is an entry such as '?' or 'NA' that
    usually stands for a gap (`GAP_MARKS`).

    Args:
        column: The column (P,), not of numbers.
        label: Its name.
        is_target: Whether it is the target, of which few multiples, such as 5k, are classes.
    """
    import pandas as pd

    entries = column.astype(object)[column.notna()]
    if column.dtype.kind in "mM":  # dates, and spans of time
        return ColumnProblem(label, f"is of dates ({column.dtype})", "drop", (label,))
    if not len(entries):
        return ColumnProblem(label, "is empty", "drop", (label,))
    if not all(isinstance(entry, (str, bytes, bool, int, float)) for entry in entries):
        odd = next(entry for entry in entries if not isinstance(entry, (str, int, float)))
        return ColumnProblem(
            label, f"holds a {type(odd).__name__} ({str(odd)[:20]!r})", "drop", (label,)
        )
    if any(isinstance(entry, int) and abs(entry) > LARGEST_FLOAT for entry in entries):
        return ColumnProblem(label, "holds a whole number larger than any float", "drop", (label,))
    marks = find_gap_marks(entries)
    texts = entries.map(strip_entry)
    entries = entries[~texts.isin(marks)]  # from here on without gaps and gap marks
    gaps = f"{_list_entries(marks)} in {_count_points(texts.isin(marks).sum())}" if marks else ""
    if not len(entries):
        return ColumnProblem(label, f"is empty, but for {gaps}", "drop", (label,))
    if problem := _diagnose_notation(texts[entries.index], label, marks, is_target):
        return problem
    # The entries that are no numbers, even as text.
    text_entries = entries[pd.to_numeric(entries.astype(str), errors="coerce").isna()]
    distinct_texts = list(dict.fromkeys(text_entries))
    # Numbers, but for a few distinct texts: these are taken for marks of gaps, too.
    if (
        (marks or distinct_texts)
        and len(text_entries) < len(entries) / 2
        and len(distinct_texts) <= MAX_ODD_ENTRIES
    ):
        objects = column.astype(object)
        is_odd = (objects.isin(distinct_texts) | objects.map(strip_entry).isin(marks)).to_numpy()
        reason = (
            f"is of numbers, but for {_list_entries([*marks, *distinct_texts])} in "
            f"{_count_points(is_odd.sum())}, first in {column.index[is_odd][0]}"
        )
        return ColumnProblem(label, reason, "missing", (*marks, *map(strip_entry, distinct_texts)))
    if are_dates(entries):
        return ColumnProblem(label, f"is of dates ({entries.iloc[0]!r})", "drop", (label,))
    count = entries.nunique()
    # Two different texts may be two categories; three or more that are all different are names.
    if 2 < len(entries) == count:
        reason = f"has another text in each of its {len(entries)} entries ({entries.iloc[0]!r})"
        return ColumnProblem(label, reason, "drop", (label,))
    if count > max(MAX_CATEGORIES, len(entries) / 2):
        reason = f"has {count} different texts in {len(entries)} entries ({entries.iloc[0]!r}, ...)"
        return ColumnProblem(label, reason, "drop", (label,))
    reason = f"is of words ({count} kinds, {_list_entries(distinct_texts)})" + (
        f", with {gaps}" if marks else ""
    )
    return ColumnProblem(label, reason, "encode", (label,), tuple(marks))


def _diagnose_notation(
    texts: "pd.Series[Any]", label: str, marks: Sequence[str], is_target: bool
) -> ColumnProblem | None:
    """Return the problem of a column of numbers in another notation; None for another column.

    Args:
        texts: The entries as text, without gaps and gap marks.
        label: The name of the column.
        marks: Its gap marks.
        is_target: See `_diagnose_column`.
    """
    notations = find_notations(texts, is_target)
    numbers = notations[0].read_texts(texts, is_target) if notations else None
    if numbers is None:
        return None
    other_texts = texts[numbers.isna()].unique()
    gaps = (*marks, *(other_texts if len(other_texts) <= MAX_ODD_ENTRIES else ()))
    reason = notations[0].describe(texts) + (f", but for {_list_entries(gaps)}" if gaps else "")
    conversion = notations[0].spell_conversion(label, texts)
    return ColumnProblem(label, reason, "notation", (), gaps, tuple(notations), conversion)


def diagnose_text_target(option: str, column: "pd.Series[Any]") -> ColumnProblem | None:
    """Return the problem of a target (P,) of numbers in another notation; None for another target.

    Args:
        option: The setting that names the target, as `dataset.target=price`, for the error.
        column: The target.

    Raises:
        UserError: The target has more kinds of text than classes have.
    """
    import pandas as pd

    texts = column.dropna()
    if is_of_numbers(column.dtype) or not texts.map(lambda entry: isinstance(entry, str)).any():
        return None
    texts = texts.map(strip_entry)
    texts = texts[~texts.isin(find_gap_marks(texts))]
    if problem := _diagnose_notation(texts, str(column.name), (), is_target=True):
        return problem
    count, most = texts.nunique(), max(MAX_CATEGORIES, len(texts) // 2)
    if count <= most:
        return None
    if pd.to_numeric(texts, errors="coerce").notna().all():
        raise UserError(
            f"{option}: holds numbers as text ({_list_entries(list(texts))}); convert them, with "
            f"pandas: table[{str(column.name)!r}] = table[{str(column.name)!r}].astype(float)"
        )
    classes = "pass numbers" if in_python() else f"add {spell_setting('dataset.task', 'classes')}"
    kind = "dates" if are_dates(texts) else "different texts"
    raise UserError(
        f"{option}: has {count} {kind} in {len(texts)} entries ({_list_entries(list(texts))}), "
        f"more than the {most} that are taken for classes; choose another target, or {classes} if "
        "each is a class"
    )


def refuse_text_target(option: str, column: "pd.Series[Any]") -> None:
    """Raise `UserError` for a target in memory that `diagnose_text_target` finds unfit."""
    if problem := diagnose_text_target(option, column):
        raise UserError(
            f"{option}: {problem.reason}; convert them, with pandas: {problem.conversion}"
        )


def refuse_target_gaps(
    option: str, column: "pd.Series[Any]", user_lists: Mapping[str, Sequence[Any]]
) -> None:
    """Refuse a target (P,) of text that holds gap marks, or text among real numbers.

    Such a target would be taken for classes, each gap mark for one of them.

    Args:
        option: The setting that names the target, as `dataset.target=price`, for the error.
        column: The target.
        user_lists: See `check_columns`.

    Raises:
        UserError: The target is such a column; the message lists the entries that may be gaps.
    """
    import pandas as pd

    if is_of_numbers(column.dtype) or column.dtype.kind in "mM":
        return
    problem = _diagnose_column(column, option, is_target=True)  # only its gap marks are of interest
    if problem.option == "notation":
        return
    texts = column.dropna().map(strip_entry)
    gap_entries = problem.values if problem.option == "missing" else problem.gaps
    other_texts = texts[~texts.isin(gap_entries)]
    numbers = pd.to_numeric(other_texts, errors="coerce").to_numpy(dtype=np.float64)
    # Fewer than two other texts make no target without the gap marks: these are classes then.
    if not gap_entries or other_texts.nunique() < 2:
        return
    # Other words than gap marks may be classes, unless the rest are real numbers.
    if not all(map(is_gap_mark, gap_entries)) and not is_regression(numbers):
        return
    missing = _spell_list("missing", [*user_lists.get("missing", ()), *gap_entries])
    raise UserError(
        f"{option}: holds {_list_entries(gap_entries)} in "
        f"{_count_points(len(texts) - len(other_texts))}, "
        f"beside {_list_entries(list(other_texts.unique()))}; add {missing} dataset.fill=drop "
        "(which leaves those points out), or dataset.task=classes if it is a class"
    )


def _count_points(count: int) -> str:
    """Return a number of points in words, such as `1 point`."""
    return f"{count} {'point' if count == 1 else 'points'}"


def _list_entries(entries: Sequence[Any]) -> str:
    """Return the first `MAX_ODD_ENTRIES` entries as text, quoted and shortened."""
    entries_text = ", ".join(repr(str(entry)[:20]) for entry in entries[:MAX_ODD_ENTRIES])
    return entries_text + (", ..." if len(entries) > MAX_ODD_ENTRIES else "")


def _refuse_columns(
    name: str,
    problems: Sequence[ColumnProblem],
    fill: str | None,
    user_lists: Mapping[str, Sequence[Any]],
    from_text: bool,
) -> None:
    """Raise one `UserError` for all columns with a problem, and the options that settle them.

    Args:
        name: The name of the data set.
        problems: The problems, one at least, in the order of the message.
        fill: The user's way to fill gaps; None without one.
        user_lists: See `check_columns`.
        from_text: See `check_columns`.
    """
    lines = [f"column {problem}" for problem in problems[:MAX_LISTED_COLUMNS]]
    if len(problems) > MAX_LISTED_COLUMNS:
        lines.append(f"{len(problems) - MAX_LISTED_COLUMNS} more columns")
    needed_options = {problem.option for problem in problems}
    notated = [problem for problem in problems if problem.option == "notation"]
    if fill is None and ("missing" in needed_options or any(p.gaps for p in notated)):
        needed_options.add("fill")  # an entry that is marked as missing leaves a gap
    lists_by_option = {
        option: [
            value for problem in problems if problem.option == option for value in problem.values
        ]
        for option in ("encode", "missing", "drop")
    }
    lists_by_option["missing"] += [mark for problem in problems for mark in problem.gaps]
    # `missing` may be needed for the gap marks of an encoded column alone: without `fill`, since
    # gaps are a category there.
    needed_options |= {option for option, values in lists_by_option.items() if values}
    targets = [problem.label for problem in problems if problem.option == "target"]
    options = [spell_setting("dataset.target", label, shell=True) for label in targets]
    if notated and from_text:
        options.append(choose_notation([problem.notations for problem in notated]).settings())
    elif notated:
        lines.append(f"convert such numbers, with pandas: {notated[0].conversion}")
    options += [
        _spell_list(option, [*user_lists.get(option, ()), *values])
        for option, values in lists_by_option.items()
        if values
    ]
    if "fill" in needed_options:
        options.append(spell_setting("dataset.fill", "median"))
    meanings = "; ".join(
        OPTION_MEANINGS[option] for option in OPTION_MEANINGS if option in needed_options
    )
    remedy = f", or add {' '.join(options)}" if options else ""
    raise UserError(
        f"data of {name} (points counted from 0): {'; '.join(lines)}. Correct the {table_word()}"
        f"{remedy}" + (f" ({meanings})" if meanings else "")
    )


def _spell_list(option: str, values: Sequence[Any]) -> str:
    """Return an option with a list, each value once, as the user writes it.

    Args:
        option: The name of the option without `dataset.`.
        values: The values, in their order; repeated ones are left out.
    """
    return spell_setting(f"dataset.{option}", [*dict.fromkeys(values)], shell=True)


def _refuse_identifiers(
    column: "pd.Series[Any]", label: str, user_lists: Mapping[str, Sequence[Any]]
) -> None:
    """Raise `UserError` for a column to be encoded whose entries are all different.

    A table of at most `MAX_CATEGORIES` points passes: it may have one point of each category.

    Args:
        column: The column (P,).
        label: Its name.
        user_lists: See `check_columns`.
    """
    category_count = column.nunique()
    if MAX_CATEGORIES < len(column) == category_count:
        remedy = _spell_list("drop", [*user_lists.get("drop", ()), label])
        raise UserError(
            f"{spell_setting('dataset.encode', [label])}: each of its {category_count} entries is "
            f"another, so no two points would share a category; leave it out with {remedy}"
        )


def find_index_column(frame: "pd.DataFrame") -> ColumnProblem | None:
    """Return the problem with a column that numbers or names the points, else None.

    The first column numbers them if it counts from 0 or 1: such a column often is the index of a
    saved frame. A column names them if it is called `id`, or ends with it as in `user_id`, and
    holds whole numbers that are all different. Of fewer than 3 points nothing is concluded.

    Args:
        frame: The feature columns of a table.
    """
    import pandas as pd

    for position, label in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, position]
        is_named_id = re.fullmatch(r"(.*[_ ])?(id|ID|Id)|.*[a-z]I[dD]", label) is not None
        if (
            not (position == 0 or is_named_id)
            or not pd.api.types.is_integer_dtype(column.dtype)
            or column.isna().any()
            or len(column) < 3
        ):
            continue
        numbers = column.to_numpy(dtype=np.int64)
        if position == 0 and numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
            reason = f"counts the points ({numbers[0]} to {numbers[-1]})"
        elif is_named_id and column.is_unique:
            reason = f"names the points ({numbers[0]}, {numbers[1]}, ...)"
        else:
            continue
        return ColumnProblem(label, reason, "drop", (label,))
    return None


def find_sentinels(frame: "pd.DataFrame") -> dict[int, list[str]]:
    """Return the numbers that may stand for gaps, and the names of the columns that hold them.

    They are the lowest of a numeric column, at least twice, where all others are at least 0, or lie
    farther above it than they lie apart.

    Args:
        frame: The columns.
    """
    labels_by_sentinel: dict[int, list[str]] = {}
    for position, label in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, position].dropna()
        if not is_of_numbers(column.dtype) or column.dtype.kind not in "iuf" or not len(column):
            continue
        lowest = column.min()
        others = column[column != lowest]
        if lowest not in SENTINELS or len(column) - len(others) < 2 or not len(others):
            continue
        if others.min() >= 0 or others.min() - lowest > others.max() - others.min():
            labels_by_sentinel.setdefault(int(lowest), []).append(label)
    return labels_by_sentinel


def resembles_thousands(column: "pd.Series[Any]") -> bool:
    """Return whether a numeric column looks like thousands that were written with a point.

    So 1358 is read as 1.358 beside 916. Fractions have at most three digits, mostly three, and are
    from 1 on; whole numbers of less than 1000 are beside them, the largest of them above all
    fractions.

    Args:
        column: The column as it was read.
    """
    if column.dtype.kind != "f":
        return False
    values = column.dropna().to_numpy(dtype=np.float64)
    is_whole = values == np.round(values)
    whole, fractions = values[is_whole], values[~is_whole]
    if len(fractions) < 2 or not len(whole):
        return False
    hundredths = np.abs(fractions * 100 - np.round(fractions * 100)) < 1e-6
    thousandths = np.abs(fractions * 1000 - np.round(fractions * 1000)) < 1e-6
    return bool(
        thousandths.all()
        and hundredths.mean() < 1 / 4
        and fractions.min() >= 1
        and 100 <= whole.max() < 1000
        and fractions.max() < whole.max()
        and whole.min() >= 1
    )
