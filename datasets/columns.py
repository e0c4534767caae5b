"""The columns of a user's table: what is no number is told at once, and made one when asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.entries import (
    are_dates,
    gap_marks,
    is_gap_mark,
    is_of_numbers,
    is_regression,
    named,
    text_of,
)
from normbench.datasets.values import (
    LARGEST_FLOAT,
    UserError,
    did_you_mean,
    listed,
    source_name,
    spelled,
)

if TYPE_CHECKING:
    import pandas as pd

DROP = "dataset.drop"
GAP = "(missing)"  # the category of a gap in an encoded column
FEW = 3  # entries of a column that are no numbers, and may stand for gaps
# What the options come to that settle a column.
MEANS = {
    "target": "target: the column to be predicted",
    "encode": "encode: one column a category",
    "missing": "missing: these entries are gaps",
    "fill": "fill: drop leaves points with gaps out",
    "drop": "drop: leaves columns out",
}
IDS = 20  # more categories than that, on average of fewer than two points, are not what was meant
SHOWN = 8  # columns that a message names
LISTED = 12  # and columns that there are


@dataclass(frozen=True)
class Columns:
    """The feature columns of a table (P rows), and how they become numbers.

    encoded: the positions of columns of categories. fill: `median` where gaps in the other columns
    become their median.
    """

    name: str
    frame: "pd.DataFrame"
    encoded: frozenset[int]
    fill: str | None

    def notes(self, index: "Trouble | None", drop: Sequence[str | int]) -> tuple[str, ...]:
        """Return a line on a column that may be an index, and on each encoded one with gaps.

        drop: the columns that are left out already, which the remedy repeats.
        """
        said = []
        if index:
            remedy = f"if it is an index, leave it out: {_list('drop', [*drop, index.label])}"
            said.append(f"data of {self.name}: the first column, {index}; {remedy}")
        for place in sorted(self.encoded):
            gaps, label = int(self.frame.iloc[:, place].isna().sum()), self.frame.columns[place]
            if gaps:
                said.append(
                    f"data of {self.name}: column '{label}' has no entry in {gaps} of "
                    f"{len(self.frame)} points; they are a category, {label}={GAP}"
                )
        return tuple(said)

    def numbers(self, train: NDArray[np.bool_]) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """Return all points (P, M) as numbers, and the names of their features.

        train: (P,), the points that medians and categories are of. A category becomes a column
        `city=Rome` of 1 and 0 (of two categories one column is left: the other is its opposite).
        One that no training point has is 0 in all of them. Raises `UserError` for a column
        without a number among the training points.
        """
        labels = [str(label) for label in self.frame.columns]
        rest = [place for place in range(len(labels)) if place not in self.encoded]
        numbers = self.frame.iloc[:, rest].to_numpy(dtype=np.float64, na_value=np.nan)
        if self.fill == "median" and np.isnan(numbers).any():
            numbers = self._filled(numbers, [labels[place] for place in rest], train)
        if not self.encoded:
            return numbers, tuple(labels)
        parts = {place: (numbers[:, [n]], [labels[place]]) for n, place in enumerate(rest)}
        for place in self.encoded:
            parts[place] = _categories(self.frame.iloc[:, place], labels[place], train)
        columns, names = zip(*(parts[place] for place in range(len(labels))))
        return np.concatenate(columns, axis=1), tuple(chain(*names))

    def only(self, rows: NDArray[np.intp]) -> "Columns":
        """Return the table of these points alone, by their numbers (p,)."""
        return replace(self, frame=self.frame.iloc[rows])

    def _filled(
        self, numbers: NDArray[np.float64], labels: Sequence[str], train: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return numbers (P, N) whose gaps are the median of the training points."""
        from sklearn.impute import SimpleImputer

        empty = np.flatnonzero(np.isnan(numbers[train]).all(axis=0))
        if len(empty):
            label = labels[empty[0]]
            raise UserError(
                f"data of {self.name}: column {label!r} has no number among the training points, "
                f"so no median; leave it out: {_list('drop', [label])}"
            )
        filled = SimpleImputer(strategy="median").fit(numbers[train]).transform(numbers)
        return np.asarray(filled, dtype=np.float64)


def _categories(
    column: "pd.Series[Any]", label: str, train: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], list[str]]:
    """Return a column's categories among the training points, a feature of 1 and 0 for each."""
    entries = column.astype(object).map(named).where(column.notna(), GAP).to_numpy(dtype=object)
    categories = np.unique(entries[train])
    if len(categories) == 2:
        categories = categories[1:]
    indicators = (entries[:, None] == categories).astype(np.float64)
    return indicators, [f"{label}={category}" for category in categories]


def columns(
    name: str,
    frame: "pd.DataFrame",
    encode: Sequence[int] = (),
    fill: str | None = None,
    index: "Trouble | None" = None,
    last: bool = False,
    given: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> Columns:
    """Return the feature columns of a table, once every one of them is numbers or is made so.

    encode: positions. fill: `median`, or None where no gaps may be left. index: what `index_of`
    says. last: whether no target is named, and the last column may be meant. given: the lists that
    the user gave, by option, which a remedy repeats. Raises one `UserError` that lists every column
    with its trouble, and the options that settle all of them.
    """
    kinds, gaps = list(frame.dtypes), frame.isna().sum().to_numpy()
    troubles: list[Trouble] = []
    for position, label in enumerate(map(str, frame.columns)):
        if position in encode:
            continue
        if is_of_numbers(kinds[position]):
            if gaps[position] and fill != "median":
                first = int(np.flatnonzero(frame.iloc[:, position].isna())[0])
                said = f"has no entry in {gaps[position]} of {len(frame)} points, first in {first}"
                troubles.append(Trouble(label, said, "fill"))
        else:
            troubles.append(_trouble(frame.iloc[:, position], label))
    if troubles:
        troubles = [*([index] if index else []), *troubles]
        if last:
            label = str(frame.columns[-1])
            words = "is the last and may be the target: dataset.target names none"
            others = [trouble for trouble in troubles if trouble.label != label]
            troubles = [Trouble(label, words, "target", (label,)), *others]
        _refuse(name, troubles, given)
    for place in encode:
        _refuse_ids(frame.iloc[:, place], str(frame.columns[place]), given)
    return Columns(name, frame, frozenset(encode), fill)


@dataclass(frozen=True)
class Trouble:
    """Why a column is not numbers, and what settles it: an option and the words of its list.

    gaps: entries of the column that stand for gaps, whatever settles the others.
    """

    label: str
    words: str
    option: str
    values: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.label!r} {self.words}"


def _trouble(column: "pd.Series[Any]", label: str) -> Trouble:
    """Return what keeps a column from being numbers, and the option that settles it."""
    import pandas as pd

    entries = column.astype(object)[column.notna()]
    if column.dtype.kind in "mM":
        return Trouble(label, f"is of dates ({column.dtype})", "drop", (label,))
    if not len(entries):
        return Trouble(label, "is empty", "drop", (label,))
    if not all(isinstance(entry, (str, bytes, bool, int, float)) for entry in entries):
        odd = next(entry for entry in entries if not isinstance(entry, (str, int, float)))
        return Trouble(label, f"holds a {type(odd).__name__} ({str(odd)[:20]!r})", "drop", (label,))
    if any(isinstance(entry, int) and abs(entry) > LARGEST_FLOAT for entry in entries):
        return Trouble(label, "holds a whole number larger than any float", "drop", (label,))
    marks = gap_marks(entries)
    texts = entries.map(text_of)
    entries = entries[~texts.isin(marks)]
    gaps = f"{_listed(marks)} in {int(texts.isin(marks).sum())} points" if marks else ""
    if not len(entries):
        return Trouble(label, f"is empty, but for {gaps}", "drop", (label,))
    words = entries[pd.to_numeric(entries.astype(str), errors="coerce").isna()]
    kinds = list(dict.fromkeys(words))
    if (marks or kinds) and len(words) < len(entries) / 2 and len(kinds) <= FEW:
        odd = column.map(lambda entry: entry in kinds or text_of(entry) in marks).to_numpy()
        said = (
            f"is of numbers, but for {_listed([*marks, *kinds])} in {int(odd.sum())} points, "
            f"first in {int(np.flatnonzero(odd)[0])}"
        )
        return Trouble(label, said, "missing", (*marks, *map(text_of, kinds)))
    if are_dates(entries):
        return Trouble(label, f"is of dates ({entries.iloc[0]!r})", "drop", (label,))
    count = entries.nunique()
    if 2 < len(entries) == count:
        said = f"has another text in each of its {len(entries)} entries ({entries.iloc[0]!r})"
        return Trouble(label, said, "drop", (label,))
    if count > max(IDS, len(entries) / 2):
        said = f"has {count} different texts in {len(entries)} entries ({entries.iloc[0]!r}, ...)"
        return Trouble(label, said, "drop", (label,))
    said = f"is of words ({count} kinds, {_listed(kinds)})" + (f", with {gaps}" if marks else "")
    return Trouble(label, said, "encode", (label,), tuple(marks))


def refuse_target_gaps(
    option: str, column: "pd.Series[Any]", given: Mapping[str, Sequence[Any]]
) -> None:
    """Refuse a target (P,) of text in which marks of gaps, or words among real numbers, stand."""
    import pandas as pd

    if is_of_numbers(column.dtype) or column.dtype.kind in "mM":
        return
    trouble = _trouble(column, option)
    texts = column.dropna().map(text_of)
    entries = trouble.values if trouble.option == "missing" else trouble.gaps
    others = texts[~texts.isin(entries)]
    numbers = pd.to_numeric(others, errors="coerce").to_numpy(dtype=np.float64)
    if not entries or others.nunique() < 2:
        return
    if not all(map(is_gap_mark, entries)) and not is_regression(numbers):
        return
    missing = _list("missing", [*given.get("missing", ()), *entries])
    raise UserError(
        f"{option}: holds {_listed(entries)} in {len(texts) - len(others)} points, beside "
        f"{_listed(list(others.unique()))}; add {missing} dataset.fill=drop (which leaves those "
        "points out), or dataset.task=classes if it is a class"
    )


def _listed(entries: Sequence[Any]) -> str:
    shown = ", ".join(repr(str(entry)[:20]) for entry in entries[:FEW])
    return shown + (", ..." if len(entries) > FEW else "")


def _refuse(name: str, troubles: Sequence[Trouble], given: Mapping[str, Sequence[Any]]) -> None:
    """Raise one error for all columns with a trouble."""
    said = [f"column {trouble}" for trouble in troubles[:SHOWN]]
    if len(troubles) > SHOWN:
        said.append(f"{len(troubles) - SHOWN} more columns")
    settled = {each.option for each in troubles}
    if "missing" in settled:
        settled.add("fill")
    lists = {
        option: [value for each in troubles if each.option == option for value in each.values]
        for option in ("encode", "missing", "drop")
    }
    lists["missing"] += [mark for each in troubles for mark in each.gaps]
    settled |= {option for option, values in lists.items() if values}
    targets = [each.label for each in troubles if each.option == "target"]
    options = [spelled("dataset.target", label, shell=True) for label in targets]
    options += [
        _list(option, [*given.get(option, ()), *values])
        for option, values in lists.items()
        if values
    ]
    if "fill" in settled:
        options.append(spelled("dataset.fill", "median"))
    means = "; ".join(MEANS[option] for option in MEANS if option in settled)
    raise UserError(
        f"data of {name} (points counted from 0): {'; '.join(said)}. Correct the {source_name()}, "
        f"or add {' '.join(options)} ({means})"
    )


def _list(option: str, values: Sequence[Any]) -> str:
    """Return an option with a list, each value once, as the user writes it."""
    return spelled(f"dataset.{option}", [*dict.fromkeys(values)], shell=True)


def _refuse_ids(column: "pd.Series[Any]", label: str, given: Mapping[str, Sequence[Any]]) -> None:
    kinds = column.nunique()
    if IDS < len(column) == kinds:
        remedy = _list("drop", [*given.get("drop", ()), label])
        raise UserError(
            f"{spelled('dataset.encode', [label])}: each of its {kinds} entries is another, so no "
            f"two points would share a category; leave it out with {remedy}"
        )


def index_of(frame: "pd.DataFrame") -> Trouble | None:
    """Return the first column where it counts the points, as a saved frame's index does."""
    import pandas as pd

    if not frame.shape[1]:
        return None
    first = frame.iloc[:, 0]
    if not pd.api.types.is_integer_dtype(first.dtype) or first.isna().any() or len(first) < 3:
        return None
    numbers = first.to_numpy(dtype=np.int64)
    if numbers[0] not in (0, 1) or (np.diff(numbers) != 1).any():
        return None
    label = str(frame.columns[0])
    return Trouble(label, f"counts the points ({numbers[0]} to {numbers[-1]})", "drop", (label,))


def roles(names: list[str], target: Any, drop: Any) -> tuple[list[int], int | None]:
    """Return the positions of a table's features, and that of its target where there is one."""
    left_out = positions(names, "dataset.drop", drop)
    where = None if target is None else position(names, "dataset.target", target)
    if where in left_out:
        raise UserError(f"dataset.target={target}: stands in dataset.drop too; leave it in one")
    return [n for n in range(len(names)) if n not in (where, *left_out)], where


def positions(names: list[str], option: str, given: Any) -> list[int]:
    """Return the positions of a list of columns."""
    example = spelled(option, ["id", "date"]).partition("=")[2]
    rule = f"a list of columns, such as {example}"
    return [position(names, option, column) for column in listed(option, given, rule)]


def position(names: list[str], option: str, column: Any) -> int:
    """Return the position of a column that is given by its name or position."""
    refuse_doubled(option, column, names)
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return column % len(names)
        raise UserError(
            f"{spelled(option, column)}: there are {len(names)} columns, at positions 0 to "
            f"{len(names) - 1} (-1 is the last)"
        )
    shown = ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "")
    raise UserError(
        f"{spelled(option, column)}: no such column; give a name of {shown}, or a position "
        f"such as -1 (the last){did_you_mean(column, names)}"
    )


def refuse_doubled(option: str, column: Any, names: list[str]) -> None:
    """Refuse a name that several columns have."""
    places = [place for place, name in enumerate(names) if name == column]
    if len(places) > 1:
        raise UserError(
            f"{spelled(option, column)}: is the name of {len(places)} columns, at positions "
            f"{', '.join(map(str, places[:LISTED]))}; give the position of one, and leave out the "
            f"others with {spelled(DROP)}"
        )
