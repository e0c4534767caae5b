"""The user's own files: csv, parquet and npz. Whatever is wrong in them is told in one line."""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets import archives, columns, conversion, text
from normbench.datasets.dataset import Dataset
from normbench.datasets.entries import targets_of
from normbench.datasets.header import compare_first_row, shown
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk import row_groups
from normbench.datasets.on_disk.files_on_disk import damage_refused, existing
from normbench.datasets.values import (
    NUMBER,
    UserError,
    one_of,
    refuse_larger,
    spelled,
    typed,
)

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": r"\s+", "pipe": "|"}
# In this order they are looked for: a comma may be that of a fraction, a space may part words.
SEARCHED = ("semicolon", "tab", "pipe", "comma", "space")
Target = str | int | None


@dataclass(frozen=True)
class Options:
    """What is done with the columns of a table before they are numbers; see `csv`."""

    drop: Sequence[str | int] = ()
    encode: Sequence[str | int] = ()
    fill: str | None = None
    missing: Sequence[str | float] = ()

    def __post_init__(self) -> None:
        """Raise `UserError` for a way to fill that there is not."""
        if self.fill is not None:
            one_of("dataset.fill", self.fill, ("median", "drop"))


def csv(
    path: str | None,
    target: Target = None,
    header: bool | None = None,
    points_in: str = "rows",
    delimiter: str = "comma",
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    task: str | None = None,
) -> Dataset:
    """Return the points of a text file, named by the file's stem.

    path: from the working folder. target: a column's name, or its position (from 0; -1 is the
    last); None for unlabelled points. header: whether the first row holds the columns'
    names; None takes it for them, and refuses one that looks like a point. points_in: `rows` (one
    point per row) or `columns`, where rows and columns trade places first, the header and the
    target with them. delimiter: a name of `DELIMITERS`. drop: columns to leave out, by name or
    position. encode: columns of categories, one column of 1 and 0 each. fill: gaps become the
    `median` of the training points, or their points are left out (`drop`). missing: entries that
    stand for a gap, beside the usual ones. task: `classes`, `regression`, or None to decide by the
    target. Raises `UserError` on every file that does not hold that.
    """
    file = existing("dataset.path", path)
    options = Options(drop, encode, fill, missing)
    if header is not None and not isinstance(header, bool):
        raise UserError(
            f"dataset.header={typed(header)}: must be true or false, or null for names that must "
            "not look like a point"
        )
    one_of("dataset.points_in", points_in, ("rows", "columns"))
    one_of("dataset.delimiter", delimiter, tuple(DELIMITERS))
    with damage_refused(f"dataset.path={path}", "cannot be unpacked", "check the file"):
        table, names = _table(file, header is not False, points_in, delimiter)
    _refuse_first_row(file, table, names, header, points_in, options)
    if header is not False:
        columns.refuse_doubled("dataset.target", target, names)  # pandas would number them
    return table_dataset(file.stem, table, target, task, options, source=str(file))


def _table(
    file: Path, header: bool, points_in: str, delimiter: str
) -> tuple["pd.DataFrame", list[str]]:
    """Return a text file as a frame of one point per row, and the entries of its first row."""
    columns = points_in == "columns"
    share = text.WORDS if columns else text.NUMBERS
    with text.opened(file, DELIMITERS[delimiter], share) as (content, names):
        if not columns:
            return _read_csv(file, content, header, delimiter), names
        rows = _read_csv(file, content, False, delimiter, dtype=str, keep_default_na=False)
    text.refuse_columns(file, len(rows))
    turned = rows.T
    again = io.StringIO(turned.to_csv(header=False, index=False))
    return _read_csv(file, again, header, "comma"), [str(name) for name in turned.iloc[0]]


def parquet(
    path: str | None,
    target: Target = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    in_blocks: bool | None = None,
    task: str | None = None,
) -> Dataset:
    """Return the points of a Parquet file, one per row; the other options are those of `csv`.

    in_blocks: None for points in memory where they take at most a quarter of it, and else read by
    row groups whenever they are needed; True for the latter in any case, False for the former.
    """
    file = existing("dataset.path", path)
    options = Options(drop, encode, fill, missing)
    remedy = "check the file, or read it as what it is (dataset=csv, dataset=npz)"
    with damage_refused(f"dataset.path={path}", "cannot be read as a Parquet file", remedy):
        if row_groups.by_blocks(file, in_blocks):
            _refuse_options(path, options)
            return row_groups.dataset(file, target, drop, task, in_blocks)
        table = _read_parquet(file)
    return table_dataset(file.stem, table, target, task, options, source=str(file))


def _refuse_options(path: str | None, options: Options) -> None:
    """Raise `UserError` for what is done with columns that are held in memory alone."""
    asked = ("encode", "fill", "missing")
    given = [f"dataset.{name}" for name in asked if getattr(options, name)]
    if given:
        raise UserError(
            f"dataset.path={path}: is read by row groups, which takes columns of numbers without "
            f"gaps as they are; leave out {', '.join(given)}, or make the file small enough to be "
            "held in memory"
        )


def npz(
    path: str | None,
    x: str = "x",
    y: str | None = "y",
    x_test: str | None = None,
    y_test: str | None = None,
    task: str | None = None,
) -> Dataset:
    """Return the points of a NumPy archive; nothing in it is ever unpickled.

    x: the name of the points (P, N) in it. y: of the targets (P,); None for unlabelled points.
    x_test, y_test: of a test part; None without one. task: as for `csv`. Raises `UserError`.
    """
    file = existing("dataset.path", path)
    names = {"x": x, "y": y, "x_test": x_test, "y_test": y_test}
    rule = "cannot be read as an archive of plain arrays"
    remedy = (
        "write it with numpy.savez(path, x=points, y=targets), without object arrays: they would "
        "be unpickled, which can run code"
    )
    with damage_refused(f"dataset.path={path}", rule, remedy):
        parts = archives.read(file, {key: name for key, name in names.items() if name is not None})
    return label_dataset(
        file.stem,
        parts["x"],
        parts.get("y"),
        task,
        source=str(file),
        x_test=parts.get("x_test"),
        y_test=parts.get("y_test"),
    )


def table_dataset(
    name: str,
    table: "pd.DataFrame",
    target: Target,
    task: str | None,
    options: Options = Options(),
    *,
    source: str,
) -> Dataset:
    """Return a frame (P rows) as a data set: its target column apart, the other columns numbers.

    Raises `UserError` on a column that is not there, or that is neither numbers nor the target.
    """
    encode, labels = options.encode, [str(label) for label in table.columns]
    kept, where = columns.roles(labels, target, options.drop)
    coded = columns.positions(labels, "dataset.encode", encode)
    for position, column in zip(coded, encode):
        if position not in kept:
            what = "is the target, whose labels are encoded" if position == where else "is dropped"
            setting, option = spelled("dataset.encode", column), spelled("dataset.encode")
            raise UserError(f"{setting}: {what}; leave it out of {option}")
    used = kept if where is None else [*kept, where]
    index = columns.index_of(table.iloc[:, kept])
    table = conversion.with_gaps(table, options.missing)
    table, numbers = conversion.with_numbers(name, table, [n for n in kept if n not in coded])
    table, left = _without_gaps(name, table, used, options)
    given = {"encode": encode, "missing": options.missing, "drop": options.drop}
    if where is not None and task != "classes":
        columns.refuse_target_gaps(f"dataset.target={target}", table.iloc[:, where], given)
    targets = None if where is None else targets_of(target, table.iloc[:, where])
    places = [kept.index(position) for position in coded]
    last = kept[-1:] == [table.shape[1] - 1] and where is None
    found = columns.columns(name, table.iloc[:, kept], places, options.fill, index, last, given)
    x, names = found.numbers(np.ones(len(table), dtype=bool))
    # Medians and categories are learned from the points, so that test points must not be seen.
    learned = encode or options.fill == "median"
    made = label_dataset(name, x, targets, task, source=source, feature_names=list(names))
    return replace(
        made,
        columns=found if learned else None,
        notes=(*found.notes(index, options.drop), *numbers, *left),
    )


def _without_gaps(
    name: str, table: "pd.DataFrame", used: Sequence[int], options: Options
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return a table without the points that have a gap, if these are to go, and a note of it."""
    if options.fill != "drop":
        return table, ()
    whole = table.iloc[:, used].notna().all(axis=1).to_numpy()
    count = int(whole.sum())
    if count == len(table):
        return table, ()
    if count < 2:
        raise UserError(
            f"{spelled('dataset.fill', 'drop')}: leaves {count} of {len(table)} points of {name}, "
            "as the others have gaps; leave out the columns with many of them "
            f"({spelled('dataset.drop')}), or write {spelled('dataset.fill', 'median')}"
        )
    note = f"data of {name}: {len(table) - count} of {len(table)} points have gaps and are left out"
    return table[whole].reset_index(drop=True), (note,)


def _read_parquet(file: Path) -> "pd.DataFrame":
    """Return a Parquet file as a frame, once its size is known."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as opened:
        rows, columns = opened.metadata.num_rows, opened.metadata.num_columns
        text.refuse_columns(file, columns)
        remedy = "leave dataset.in_blocks out, and it is read by row groups"
        refuse_larger(f"dataset.path={file}", NUMBER * rows * columns, remedy)
        return opened.read().to_pandas()


def _read_csv(
    file: Path, content: Any, header: bool, delimiter: str, **options: Any
) -> "pd.DataFrame":
    """Return a text file as a frame; from pandas 3.1 on its numbers are exact to the last bit."""
    import pandas as pd

    setting, rule = f"dataset.path={file}", "cannot be read as a table"
    remedy = f"every row must have as many entries, with dataset.delimiter={delimiter} between them"
    with damage_refused(setting, rule, remedy), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
        try:
            table = pd.read_csv(
                content,
                sep=DELIMITERS[delimiter],
                header=0 if header else None,
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
                **options,
            )
        except pd.errors.EmptyDataError as error:
            raise UserError(f"{setting}: is empty; it must hold rows of numbers") from error
        except UnicodeDecodeError as error:
            raise UserError(
                f"{setting}: is not text in UTF-8 ({error.reason} at byte {error.start}); "
                "save it as UTF-8, or read it as what it is (dataset=parquet, dataset=npz)"
            ) from error
    if not len(table):
        raise UserError(f"dataset.path={file}: has a header and no points; it must hold both")
    _refuse_delimiter(file, table, delimiter)
    return table


def _refuse_delimiter(file: Path, table: "pd.DataFrame", delimiter: str) -> None:
    """Refuse a single column of text in which another delimiter stands."""
    if table.shape[1] > 1:
        return
    entry = str(table.iloc[0, 0])
    sample = f"{table.columns[0]} {entry}"
    for name in SEARCHED:
        mark = " " if name == "space" else DELIMITERS[name]
        if name != delimiter and mark in entry.strip():
            raise UserError(
                f"dataset.delimiter={delimiter}: leaves {file} with one column ({sample[:40]!r}); "
                f"write dataset.delimiter={name}"
            )


def _refuse_first_row(
    file: Path,
    table: "pd.DataFrame",
    names: list[str],
    header: bool | None,
    points_in: str,
    options: Options,
) -> None:
    """Refuse a point that is taken for the header, a header for a point, and one that repeats.

    names: the entries of the first row, as they are written.
    """
    if len(names) != table.shape[1]:  # quotes across blanks: pandas reads them otherwise
        names = list(map(str, table.columns if header is not False else table.iloc[0]))
    below = table if header is not False else table.iloc[1:]
    gaps = set(map(str, options.missing)) if not isinstance(options.missing, str) else set()
    first = compare_first_row(["?" if name.strip() in gaps else name for name in names], below)
    row, column = ("row", "column") if points_in == "rows" else ("column", "row")
    setting = f"dataset.header={typed(header)}: the first {row} of {file} ({shown(names)})"
    if header is None and first.is_point:
        turned = _turned(table) if points_in == "rows" else ""
        remedy = (
            f"so it is a point; write dataset.header=false{turned}, or dataset.header=true if it "
            "holds names"
        )
        if first.unlike and len(first.unlike) == len(first.like):
            remedy = (
                "which leaves it open; write dataset.header=true if it holds names, or "
                "dataset.header=false if it is a point"
            )
        raise UserError(
            f"{setting} looks like the other {row}s in {len(first.like)} of {len(names)} {column}s "
            "(a number among numbers, a date among dates, a word that stands there again: "
            f"{shown([names[n] for n in first.like])}) and unlike them in {len(first.unlike)}, "
            f"{remedy}"
        )
    if header is False and first.is_names:
        raise UserError(
            f"{setting} is unlike the other {row}s in {len(first.unlike)} of {len(names)} "
            f"{column}s (a word among numbers or dates, a word that does not stand there again: "
            f"{shown([names[n] for n in first.unlike])}) and like them in {len(first.like)}, so it "
            f"holds names; write dataset.header=true, or put another {row} first if it is a point"
        )
    if first.repeats and first.is_names:
        raise UserError(
            f"dataset.path={file}: the names in the first {row} ({shown(names)}) stand again in "
            f"point {first.repeats[0]} (counted from 0; {len(first.repeats)} times in all), as in "
            f"files that were joined; leave those {row}s out of the file"
        )


def _turned(table: "pd.DataFrame") -> str:
    """Return what else is to be written where a table looks as if its columns were the points."""
    if table.shape[1] <= len(table) + 1:
        return ""
    return f", and dataset.points_in=columns if each of its {table.shape[1]} columns is a point"
