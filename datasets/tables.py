"""A user's table as a data set: its columns by name, made numbers by encoding and filling.

A table that cannot be used as it is gets one line of error, with the settings that make it usable.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.columns import (
    Columns,
    find_position,
    find_positions,
    find_roles,
    is_of_numbers,
    read_numbers,
    strip_entry,
    to_numbers,
)
from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.points import iterate_blocks, rows_per_block
from normbench.datasets.values import (
    UserError,
    check_choice,
    check_list,
    in_python,
    spell_setting,
)

if TYPE_CHECKING:
    import pandas as pd

NUMERIC = "numeric"
SENTINELS = (-9, -99, -999, -9999, -99999, -200)  # numbers that often stand for gaps
IDENTIFIER = re.compile(r"unnamed: 0|index|(.*[_ ])?id", re.IGNORECASE)  # names of such columns
MAX_MARKS = 3  # so few kinds of words among numbers may mark gaps; also how many a message lists
MAX_CATEGORIES = 20  # a column with more, of fewer than two points each, is hardly categorical
# In the order of preference, where a column can be read by several: the settings by name.
NOTATIONS: tuple[dict[str, str], ...] = (
    {"decimal": "point"},
    {"thousands": "comma"},
    {"decimal": "comma"},
    {"thousands": "blank"},
    {"thousands": "point"},
    {"decimal": "comma", "thousands": "blank"},
)
# The settings of a remedy, in the order in which they are spelled, and those that need quotes.
TABLE_SETTINGS = (
    *("delimiter", "read", "header", "decimal", "thousands"),
    *("target", "encode", "missing", "drop", "fill"),
)
QUOTED = ("read", "target", "encode", "missing", "drop")


@dataclass(frozen=True)
class Problem:
    """A reason why a table cannot be used as it is, and the settings that settle it.

    Attributes:
        reason: The reason.
        settings: Values by the names of settings without `dataset.`; lists add to the user's.
        label: The column, if it is one.
        notations: The settings that read the column, of which one is chosen for the whole table.
    """

    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    notations: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class TableOptions:
    """How a table of points becomes a data set.

    Attributes:
        drop: Columns to leave out, by name or position.
        encode: Columns of categories, each encoded as one column of 1 and 0 a category.
        fill: `median` fills gaps with the median of the training points; `drop` leaves out points
            with gaps.
        missing: Entries that mark a gap, beside the usual ones.
        target: The name of a column, or its position (from 0; -1 is the last); None for unlabelled
            points.
        task: `classes`, `regression`, or None to decide by the target.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.
    """

    drop: Sequence[str | int] = ()
    encode: Sequence[str | int] = ()
    fill: str | None = None
    missing: Sequence[str | float] = ()
    target: str | int | None = None
    task: str | None = None
    merge_labels: bool = False

    def __post_init__(self) -> None:
        """Raise `UserError` for an unknown way to fill gaps, or gap marks that are no list."""
        if self.fill is not None:
            check_choice("dataset.fill", self.fill, ("median", "drop"))
        check_list("dataset.missing", self.missing, "a list of entries, such as ['?',-999]")


def table_dataset(
    name: str,
    table: "pd.DataFrame",
    options: TableOptions = TableOptions(),
    *,
    source: str,
    from_text: bool = False,
    problems: Sequence[Problem] = (),
) -> Dataset:
    """Return a frame (P rows) as a data set: its target column, and the others as features.

    Args:
        name: The name of the data set.
        table: The frame.
        options: How its columns become numbers.
        source: The source of the data.
        from_text: Whether the frame was a text file, which settings can read in another notation.
        problems: What was wrong with the file, which is told beside what is wrong with columns.

    Raises:
        UserError: A column is missing, or an option that names it contradicts another; a feature is
            not numeric and no option makes it so; or the target is unusable.
    """
    labels = [str(label) for label in table.columns]
    try:
        features, target_position = find_roles(labels, options.target, options.drop)
        encoded = find_positions(labels, "dataset.encode", options.encode)
    except UserError:
        _refuse(name, problems, options, from_text)  # the names may be those of a wrong header
        raise
    used = features if target_position is None else [*features, target_position]
    numeric = [position for position in features if position not in encoded]
    # The index is that of the user's table, where points with gaps are left out.
    table = _mark_gaps(table.reset_index(drop=True), options.missing)
    notes: list[str] = []
    if options.fill == "drop":
        complete = table[table.iloc[:, used].notna().all(axis=1)]
        if len(complete) < len(table):
            left_out = f"{len(table) - len(complete)} of {len(table)} points"
            notes.append(f"{left_out} have gaps and are left out")
        table = complete.copy(deep=False)
    # A target of text with marks of gaps may be one of numbers.
    for position in {*used} - {*encoded} if from_text else numeric:
        table.isetitem(position, to_numbers(table.iloc[:, position]))
    targets = None if target_position is None else table.iloc[:, target_position]
    diagnosed = [_diagnose_column(table.iloc[:, n], labels[n], options.fill) for n in numeric]
    if targets is not None and options.task != "classes":
        diagnosed.insert(0, _diagnose_column(targets, labels[used[-1]], "median", is_target=True))
    all_problems = [problem for problem in (*problems, *diagnosed) if problem]
    if all_problems and targets is None and used[-1:] == [len(labels) - 1]:
        reason = f"column {labels[-1]!r} is the last and may be the target: dataset.target has none"
        others = [problem for problem in all_problems if problem.label != labels[-1]]
        all_problems = [Problem(reason, {"target": labels[-1]}), *others]
    _refuse(name, all_problems, options, from_text)
    categories = frozenset(n for n, position in enumerate(features) if position in encoded)
    columns = Columns(table.iloc[:, features], categories, options.fill)
    notes += _note_columns(columns, options, from_text)
    # As long as nothing is held out, all points are training points.
    x, names = columns.encode_features(np.ones(len(table), dtype=bool))
    fields: dict[str, Any] = {"merge_labels": options.merge_labels, "source": source}
    dataset = label_dataset(name, x, targets, options.task, feature_names=names, **fields)
    # Medians and categories are learned from the training points: where there are any, the features
    # are computed again whenever points are held out.
    depends_on_train = categories or options.fill == "median"
    return replace(
        dataset,
        columns=columns if depends_on_train else None,
        notes=(*dataset.notes, *(f"data of {name}: {note}" for note in notes)),
    )


def _diagnose_column(
    column: "pd.Series[Any]", label: str, fill: str | None, is_target: bool = False
) -> Problem | None:
    """Return the reason why a column is not numeric, and what settles it; None where it is usable.

    Args:
        column: The column (P,), indexed by the rows of the user's table.
        label: Its name.
        fill: `median` where gaps are filled.
        is_target: Whether it is the target, whose words are classes where they are few.
    """
    named, entries = f"column {label!r}", column.dropna()
    if is_target and not entries.map(lambda entry: isinstance(entry, str)).any():
        return None
    if not len(entries):
        return Problem(f"{named} is empty", {"drop": [label]}, label)
    if is_of_numbers(column.dtype):
        gaps = column.index[column.isna()]
        if fill == "median" or not len(gaps):
            return None
        reason = f"has no entry in {len(gaps)} of {len(column)} points, first in {gaps[0]}"
        return Problem(f"{named} {reason}", {"fill": "median"}, label)
    texts = entries.map(strip_entry)
    numbers, notations = _find_notations(texts)
    words = texts.drop(numbers.index)
    kinds = words.unique()
    has_marks = 0 < len(kinds) <= MAX_MARKS
    is_numeric = len(words) < len(numbers) or len(kinds) < numbers.nunique()
    if is_numeric and (notations or has_marks):
        reason, settings = f"{named} is of numbers", {}
        if notations:
            example = numbers.index[0]
            reason += f" written as {texts[example]!r}, read as {numbers[example]:g}"
        if has_marks:
            settings = {"missing": [*kinds], "fill": "drop" if is_target else "median"}
            places = f"{len(words)} point{'s' if len(words) > 1 else ''}, first in {words.index[0]}"
            reason += f", but for {_list_entries(kinds)} in {places}"
        return Problem(reason, settings, label, notations)
    count, most = texts.nunique(), max(MAX_CATEGORIES, len(texts) // 2)
    if is_target and count <= most:
        return None
    shown = _list_entries(texts.unique())
    reason = f"{named} has {count} different texts in {len(texts)} entries ({shown})"
    if is_target:
        remedy = f"choose another target, or {spell_setting('dataset.task', 'classes')}"
        return Problem(f"{reason}, more than {most} classes: {remedy}", {}, label)
    if 2 < count == len(texts) or count > most:
        return Problem(reason, {"drop": [label]}, label)
    return Problem(f"{named} is of words ({count} kinds, {shown})", {"encode": [label]}, label)


def _find_notations(
    texts: "pd.Series[Any]",
) -> tuple["pd.Series[Any]", Sequence[Mapping[str, str]]]:
    """Return the numbers of a column, at their entries, and the settings that read the most.

    There are no such settings where ordinary numbers are the most.

    Args:
        texts: The entries of the column, without blanks around them.
    """
    import pandas as pd

    plain = pd.to_numeric(texts, errors="coerce").dropna()
    readings = [read_numbers(texts, **notation) for notation in NOTATIONS]
    counts = [column.count() if column.dtype.kind == "f" else 0 for column in readings]
    most = max(counts)
    if most <= len(plain):
        return plain, ()
    best = [notation for notation, count in zip(NOTATIONS, counts) if count == most]
    return readings[counts.index(most)].dropna(), best


def _refuse(name: str, problems: Sequence[Problem], options: TableOptions, from_text: bool) -> None:
    """Raise one `UserError` for all problems of a table, with the settings that settle them.

    Args:
        name: The name of the data set.
        problems: The problems, in the order of the message; without one nothing is raised.
        options: The user's options. A remedy that adds to a list repeats it.
        from_text: Whether the table is a text file, which settings can read in another notation.
    """
    if not problems:
        return
    reasons = "; ".join(problem.reason for problem in problems)
    settings: dict[str, Any] = {}
    for setting, value in (pair for problem in problems for pair in problem.settings.items()):
        if isinstance(value, list):
            listed = settings.get(setting, [*getattr(options, setting)])
            settings[setting] = [*dict.fromkeys([*listed, *value])]
        elif settings.get(setting) != "drop" and not getattr(options, setting, None):
            settings[setting] = value  # a target with gaps needs fill=drop, whatever features need
    notated = [problem.notations for problem in problems if problem.notations]
    if notated:
        notation = max(NOTATIONS, key=lambda each: sum(each in listed for listed in notated))
        if from_text:
            settings |= notation
        else:
            reasons += f" by normbench.datasets.read_numbers(column, **{notation})"
    remedies = " ".join(
        spell_setting(f"dataset.{setting}", settings[setting], shell=setting in QUOTED)
        for setting in TABLE_SETTINGS
        if setting in settings
    )
    raise UserError(
        f"data of {name} (points counted from 0): {reasons}. Correct the "
        f"{'frame' if in_python() else 'file'}{', or add ' if settings else ''}{remedies}"
    )


def _list_entries(kinds: Sequence[str]) -> str:
    """Return the first `MAX_MARKS` kinds of entries, quoted and shortened."""
    listed = ", ".join(repr(entry[:20]) for entry in kinds[:MAX_MARKS])
    return listed + (", ..." if len(kinds) > MAX_MARKS else "")


def _mark_gaps(table: "pd.DataFrame", missing: Sequence[Any]) -> "pd.DataFrame":
    """Return a table in which the entries that mark gaps, texts or numbers, are gaps."""
    import pandas as pd

    texts = {strip_entry(mark) for mark in missing}
    numbers = pd.to_numeric(pd.Series([*missing], dtype=object), errors="coerce").astype(float)
    marks = [*numbers.dropna(), *numbers.dropna().astype(np.float32)]
    marked = table.copy(deep=False)  # the caller's table keeps its columns
    for position in range(table.shape[1]) if missing else ():
        column = table.iloc[:, position]
        is_gap = column.map(strip_entry).isin(texts).to_numpy()
        if is_of_numbers(column.dtype):
            is_gap = is_gap | np.isin(column.to_numpy(np.float64, na_value=np.nan), marks)
        marked.isetitem(position, column.mask(is_gap))
    return marked


def _note_columns(columns: Columns, options: TableOptions, from_text: bool) -> Iterator[str]:
    """Yield notes on columns that may mean something else than what they are taken for.

    Args:
        columns: The columns.
        options: The user's lists, which a remedy repeats.
        from_text: Whether the columns were read from text.
    """
    labels = [str(label) for label in columns.frame.columns]
    for position, label in enumerate(labels):
        values = columns.frame.iloc[:, position].dropna()
        if position in columns.encoded:
            continue
        dropped = spell_setting("dataset.drop", [*options.drop, label], shell=True)
        if IDENTIFIER.fullmatch(label):
            yield f"column {label!r} may number or name the points; to leave it out: {dropped}"
        if label.endswith(".1") and label[:-2] in labels:
            yield f"column {label!r} is another {label[:-2]!r}; to leave it out: {dropped}"
        if _has_sentinel(values):
            marks = [*options.missing, int(values.min())]
            yield (
                f"column {label!r} has {values.min():g} far below its other numbers; if it stands "
                f"for a gap: {spell_setting('dataset.missing', marks, shell=True)} "
                f"{spell_setting('dataset.fill', options.fill or 'median')}"
            )
        if from_text and _resembles_thousands(values):
            yield (
                f"column {label!r} has numbers of three decimals beside whole numbers; if 1.358 is "
                f"1358: {spell_setting('dataset.thousands', 'point')}"
            )


def _has_sentinel(values: "pd.Series[Any]") -> bool:
    """Return whether the lowest number of a column may stand for gaps, such as -999.

    It is there twice at least, and all others are at least 0, or lie farther above it than they lie
    apart.
    """
    lowest = values.min()
    others = values[values != lowest]
    if lowest not in SENTINELS or len(values) - len(others) < 2 or not len(others):
        return False
    return bool(others.min() >= 0 or others.min() - lowest > others.max() - others.min())


def _resembles_thousands(values: "pd.Series[Any]") -> bool:
    """Return whether numbers may be thousands that were written with a point, 1.358 beside 916."""
    fractions = values[values % 1 != 0]
    if len(fractions) < 2 or values.min() < 1 or not fractions.max() < values.max() < 1000:
        return False
    digits = fractions.astype(str).str.partition(".")[2].str.len()
    return bool(values.max() >= 100 and digits.max() == 3 and (digits == 3).mean() > 3 / 4)


def find_features(dataset: Dataset, columns: Any, setting: str) -> list[int]:
    """Return the positions of features among those of a data set, increasing.

    Args:
        dataset: The data set.
        columns: `numeric` for the features that have another value than 0 and 1 in some training
            point, or a column or a list of columns, each by its name or position. An encoded column
            is one whose categories have become features `city=Rome`, `city=Oslo` and so on; its
            name stands for all of them.
        setting: The name of the setting whose value `columns` is, for errors.

    Raises:
        UserError: There is no such column, the list is empty, or no feature is numeric.
    """
    names = list(dataset.feature_names)
    positions: list[int] = []
    if isinstance(columns, str) and columns == NUMERIC:
        blocks = (rows for _, rows in iterate_blocks(dataset.x, rows_per_block(dataset.x)))
        has_others = sum(((rows != 0) & (rows != 1)).any(axis=0) for rows in blocks)
        positions = np.flatnonzero(has_others).tolist()
    else:
        listed = [columns] if isinstance(columns, (str, int)) else columns
        for column in check_list(setting, listed, "a list of columns, or numeric"):
            # A name of a feature stands for that feature, even where others begin with it and =.
            encoded = [n for n, name in enumerate(names) if name.startswith(f"{column}=")]
            is_encoded = encoded and column not in names
            positions += encoded if is_encoded else [find_position(names, setting, column)]
    if not positions:
        raise UserError(
            f"{spell_setting(setting, columns)}: no feature of {dataset.name} is such (0 and 1 "
            f"alone are not numeric); take {spell_setting('normalizer', 'identity')}"
        )
    return sorted(set(positions))
