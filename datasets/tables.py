"""A user's table as a data set: its columns by name, made numbers by encoding and filling."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.columns import (
    GAP_CATEGORY,
    MAX_LISTED_NAMES,
    Columns,
    find_position,
    find_positions,
    find_roles,
)
from normbench.datasets.dataset import Dataset
from normbench.datasets.diagnosis import Problem, diagnose_column, diagnose_target, refuse
from normbench.datasets.entries import is_of_numbers, strip_entry, to_numbers
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.points import iterate_blocks, rows_per_block
from normbench.datasets.values import (
    UserError,
    check_choice,
    check_list,
    spell_setting,
)

if TYPE_CHECKING:
    import pandas as pd

NUMERIC = "numeric"
SENTINELS = (-9, -99, -999, -9999, -99999, -200)  # numbers that often stand for gaps
IDENTIFIER = re.compile(r"unnamed: 0|index|(.*[_ ])?id", re.IGNORECASE)  # names of such columns
Target = str | int | None


@dataclass(frozen=True)
class TableOptions:
    """How the columns of a table become numbers: see the arguments of `csv` with these names."""

    drop: Sequence[str | int] = ()
    encode: Sequence[str | int] = ()
    fill: str | None = None
    missing: Sequence[str | float] = ()

    def __post_init__(self) -> None:
        """Raise `UserError` for an unknown way to fill gaps, or gap marks that are no list."""
        if self.fill is not None:
            check_choice("dataset.fill", self.fill, ("median", "drop"))
        check_list("dataset.missing", self.missing, "a list of entries, such as ['?',-999]")


def table_dataset(
    name: str,
    table: "pd.DataFrame",
    target: Target,
    task: str | None,
    options: TableOptions = TableOptions(),
    *,
    source: str,
    merge_labels: bool = False,
    from_text: bool = False,
    problems: Sequence[Problem] = (),
) -> Dataset:
    """Return a frame (P rows) as a data set: its target column, and the others as features.

    Args:
        name: The name of the data set.
        table: The frame.
        target: The name or position of the target column; None for unlabelled points.
        task: `classes`, `regression`, or None to decide by the target.
        options: How columns become numbers.
        source: The source of the data.
        merge_labels: As for `csv`.
        from_text: Whether the frame was a text file, which settings can read in another notation.
        problems: What was wrong with the file, which is told beside what is wrong with columns.

    Raises:
        UserError: A column is missing, or an option that names it contradicts another; a feature is
            not numeric and no option makes it so; or the target is unusable.
    """
    labels = [str(label) for label in table.columns]
    try:
        features, target_position = find_roles(labels, target, options.drop)
        encoded = find_positions(labels, "dataset.encode", options.encode)
    except UserError:
        refuse(name, problems, vars(options), from_text)  # the names may be those of a wrong header
        raise
    for column, position in zip(options.encode, encoded):
        if position not in features:
            role = "the target, which is encoded" if position == target_position else "dropped"
            raise UserError(f"{spell_setting('dataset.encode', column)}: is {role}; leave it out")
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
        table = complete
    # A target of text with marks of gaps may be one of numbers.
    converted = [n for n in used if n in numeric or (from_text and n == target_position)]
    table = _convert_numbers(table, converted, notes, not (from_text or options.missing))
    diagnosed = [diagnose_column(table.iloc[:, n], labels[n], options.fill) for n in numeric]
    targets = None
    if target_position is not None:
        targets = table.iloc[:, target_position]
        if task != "classes":
            diagnosed.insert(0, diagnose_target(targets, labels[target_position]))
    all_problems = [problem for problem in (*problems, *diagnosed) if problem]
    if all_problems and target is None and used[-1:] == [len(labels) - 1]:
        reason = f"column {labels[-1]!r} is the last and may be the target: dataset.target has none"
        others = [problem for problem in all_problems if problem.label != labels[-1]]
        all_problems = [Problem(reason, {"target": labels[-1]}), *others]
    refuse(name, all_problems, vars(options), from_text)
    columns = Columns(
        table.iloc[:, features],
        frozenset(features.index(position) for position in encoded),
        options.fill,
    )
    notes += _note_columns(columns, options, from_text)
    # As long as nothing is held out, all points are training points.
    x, names = columns.encode_features(np.ones(len(table), dtype=bool))
    fields: dict[str, Any] = {
        "merge_labels": merge_labels,
        "source": source,
        "feature_names": names,
    }
    dataset = label_dataset(name, x, targets, task, **fields)
    # Medians and categories are learned from the training points: where there are any, the features
    # are computed again whenever points are held out.
    depends_on_train = options.encode or options.fill == "median"
    return replace(
        dataset,
        columns=columns if depends_on_train else None,
        notes=(*dataset.notes, *(f"data of {name}: {note}" for note in notes)),
    )


def _mark_gaps(table: "pd.DataFrame", missing: Sequence[Any]) -> "pd.DataFrame":
    """Return a table in which the entries that mark gaps, texts or numbers, are gaps."""
    import pandas as pd

    if not missing:
        return table
    marks = pd.to_numeric(pd.Series([*missing], dtype=object), errors="coerce").dropna()
    texts = {str(entry).strip() for entry in missing}
    marked = table.copy(deep=False)  # the caller's table keeps its columns
    for position, dtype in enumerate(table.dtypes):
        column = table.iloc[:, position]
        is_gap = column.map(strip_entry).isin(texts).to_numpy()
        if is_of_numbers(dtype):
            numbers = column.to_numpy(na_value=np.nan) if column.hasnans else column.to_numpy()
            entries = marks.astype(np.result_type(numbers.dtype, np.float32))
            is_gap = is_gap | np.isin(numbers, entries)
        marked.isetitem(position, column.mask(is_gap))
    return marked


def _convert_numbers(
    table: "pd.DataFrame", positions: Sequence[int], notes: list[str], is_noted: bool
) -> "pd.DataFrame":
    """Return a table whose columns of numbers that are kept as text or objects are numeric.

    Args:
        table: The table.
        positions: The positions of the columns.
        notes: The notes so far.
        is_noted: Whether to add one that names such columns.
    """
    converted, labels = table.copy(deep=False), []
    for position in positions:
        numbers = to_numbers(table.iloc[:, position])
        if numbers.dtype != table.dtypes.iloc[position]:
            converted.isetitem(position, numbers)
            labels.append(str(table.columns[position]))
    if labels and is_noted:
        encoded = spell_setting("dataset.encode", labels[:MAX_LISTED_NAMES], shell=True)
        notes.append(
            f"column {', '.join(map(repr, labels[:MAX_LISTED_NAMES]))} holds numbers written as "
            f"text or objects; they are taken as numbers; of categories: {encoded}"
        )
    return converted


def _note_columns(columns: Columns, options: TableOptions, from_text: bool) -> Iterator[str]:
    """Yield notes on columns that may mean something else than what they are taken for.

    Args:
        columns: The columns.
        options: The user's lists, which a remedy repeats.
        from_text: Whether the columns were read from text.
    """
    labels = [str(label) for label in columns.frame.columns]
    for position, label in enumerate(labels):
        column = columns.frame.iloc[:, position]
        values = column.dropna()
        if position in columns.encoded:
            if len(values) < len(column):
                yield (
                    f"column {label!r} has no entry in {len(column) - len(values)} of "
                    f"{len(column)} points; they are a category, {label}={GAP_CATEGORY}"
                )
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
