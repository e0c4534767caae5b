"""Load the user's own files: csv, parquet and npz; a defect of a file is one line of error."""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets import (
    archives,
    column_names,
    columns,
    conversion,
    parquet_table,
    sparse_files,
    text,
)
from normbench.datasets.dataset import Dataset
from normbench.datasets.entries import extract_targets
from normbench.datasets.header import abbreviate, compare_first_row
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk import row_groups
from normbench.datasets.on_disk.files_on_disk import (
    find_file,
    translate_memory_error,
    translate_read_errors,
)
from normbench.datasets.values import (
    UserError,
    check_choice,
    format_value,
    spell_setting,
)

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": r"\s+", "pipe": "|"}
# The order of the search: a comma may be a decimal comma, a space may separate words.
DELIMITER_ORDER = ("semicolon", "tab", "pipe", "comma", "space")
Target = str | int | None


@dataclass(frozen=True)
class TableOptions:
    """How the columns of a table become numbers: see the arguments of `csv` with these names."""

    drop: Sequence[str | int] = ()
    encode: Sequence[str | int] = ()
    fill: str | None = None
    missing: Sequence[str | float] = ()

    def __post_init__(self) -> None:
        """Raise `UserError` for an unknown way to fill gaps."""
        if self.fill is not None:
            check_choice("dataset.fill", self.fill, ("median", "drop"))


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
    merge_labels: bool = False,
) -> Dataset:
    """Return the points of a text file, named by the file's stem.

    Args:
        path: The file, from the working folder.
        target: The name of a column, or its position (from 0; -1 is the last); None for unlabelled
            points.
        header: Whether the first row holds the names of the columns; None assumes that it does, and
            refuses a first row that looks like a point.
        points_in: `rows` (one point per row) or `columns`, where the file is transposed first, with
            its header and target.
        delimiter: A name of `DELIMITERS`.
        drop: Columns to leave out, by name or position.
        encode: Columns of categories, each encoded as one column of 1 and 0 a category.
        fill: `median` fills gaps with the median of the training points; `drop` leaves out points
            with gaps.
        missing: Entries that mark a gap, beside the usual ones.
        task: `classes`, `regression`, or None to decide by the target.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class.

    Raises:
        UserError: The file cannot be read as such a table.
    """
    file = find_file("dataset.path", path)
    options = TableOptions(drop, encode, fill, missing)
    if header is not None and not isinstance(header, bool):
        raise UserError(
            f"dataset.header={format_value(header)}: must be true or false, or null for names that "
            "must not look like a point"
        )
    check_choice("dataset.points_in", points_in, ("rows", "columns"))
    check_choice("dataset.delimiter", delimiter, tuple(DELIMITERS))
    with translate_read_errors(f"dataset.path={path}", "cannot be unpacked", "check the file"):
        table, names = _read_text(file, header is not False, points_in, delimiter)
    _refuse_first_row(file, table, names, header, points_in, options)
    if header is not False:
        # Before the frame is used: pandas numbers equal names (`y`, `y.1`), and one would be found.
        column_names.refuse_duplicate_name("dataset.target", target, names)
        for option, listed in (("dataset.drop", drop), ("dataset.encode", encode)):
            for column in column_names.list_columns(option, listed):
                column_names.refuse_duplicate_name(option, column, names)
    dataset = table_dataset(
        file.stem, table, target, task, options, source=str(file), merge_labels=merge_labels
    )
    return replace(dataset, read_from_rows=points_in == "rows")


def _read_text(
    file: Path, header: bool, points_in: str, delimiter: str
) -> tuple["pd.DataFrame", list[str]]:
    """Return a text file as a frame of one point per row, and the entries of its first row.

    A file with one point per column is transposed: its first row is then its first column.

    Args:
        file: The file.
        header: Whether the first row (after the transposition) holds the names of the columns.
        points_in: `rows` or `columns`.
        delimiter: A name of `DELIMITERS`.

    Raises:
        UserError: The text is too large, no table of this delimiter, or has too many columns.
    """
    is_transposed = points_in == "columns"
    # A transposed file is held as text, which takes more memory than numbers.
    share = text.TEXT_SHARE if is_transposed else text.NUMBERS_SHARE
    with text.open_text(file, DELIMITERS[delimiter], share) as (content, names):
        if not is_transposed:
            return _read_csv(file, content, header, delimiter), names
        # As text, with empty cells as they are: a column of the file mixes the columns to be.
        cells = _read_csv(file, content, False, delimiter, dtype=str, keep_default_na=False)
    text.refuse_columns(file, len(cells))
    transposed = cells.T
    # Written (with commas) and read again, so that pandas infers the types of the columns.
    transposed_csv = io.StringIO(transposed.to_csv(header=False, index=False))
    return _read_csv(file, transposed_csv, header, "comma"), [
        str(name) for name in transposed.iloc[0]
    ]


def parquet(
    path: str | None,
    target: Target = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    in_blocks: bool | None = None,
    task: str | None = None,
    merge_labels: bool = False,
) -> Dataset:
    """Return the points of a Parquet file, one per row.

    Args:
        path: The file, from the working folder.
        target: As for csv files.
        drop: As for csv files.
        encode: As for csv files.
        fill: As for csv files.
        missing: As for csv files.
        in_blocks: False holds the points in memory; True reads them by row groups (blocks of rows
            of the file) whenever they are needed; None holds them in memory where they take at most
            a quarter of it.
        task: As for csv files.
        merge_labels: As for csv files.

    Raises:
        UserError: The file cannot be read, or a column is not usable.
    """
    file = find_file("dataset.path", path)
    options = TableOptions(drop, encode, fill, missing)
    remedy = "check the file, or read it as what it is (dataset=csv, dataset=npz)"
    with translate_read_errors(f"dataset.path={path}", "cannot be read as a Parquet file", remedy):
        if row_groups.needs_blocks(file, in_blocks):
            # Row groups hold numbers as they are: nothing is encoded or filled.
            _refuse_options(path, options)
            return row_groups.load_row_groups(file, target, drop, task, in_blocks, merge_labels)
        table = parquet_table.read_table(file, target, drop)
    with translate_memory_error(f"dataset.path={path}"):
        return table_dataset(
            file.stem, table, target, task, options, source=str(file), merge_labels=merge_labels
        )


def _refuse_options(path: str | None, options: TableOptions) -> None:
    """Raise `UserError` for options that apply only to columns in memory.

    Args:
        path: The setting `dataset.path` of a file that is read by row groups.
        options: The options; `drop` passes, since columns can be left unread.
    """
    memory_options = ("encode", "fill", "missing")
    refused_options = [f"dataset.{name}" for name in memory_options if getattr(options, name)]
    if refused_options:
        raise UserError(
            f"dataset.path={path}: is read by row groups, which takes columns of numbers without "
            f"gaps as they are; leave out {', '.join(refused_options)}, or make the file small "
            "enough to be held in memory"
        )


def npz(
    path: str | None,
    x: str = "x",
    y: str | None = "y",
    x_test: str | None = None,
    y_test: str | None = None,
    task: str | None = None,
    merge_labels: bool = False,
) -> Dataset:
    """Return the points of a NumPy archive; nothing in it is ever unpickled.

    Args:
        path: The file, from the working folder.
        x: The name of the array of points (P, N). An archive without it may hold CSR points
            instead, as `data`, `indices`, `indptr` and `shape`.
        y: The name of the targets (P,); None for unlabelled points.
        x_test: The name of the test points (Q, N); None without a test part.
        y_test: The name of the targets of the test points (Q,).
        task: `classes`, `regression`, or None to decide by the targets.
        merge_labels: As for csv files.

    Raises:
        UserError: The file is no archive, or lacks an array.
    """
    file = find_file("dataset.path", path)
    names = {"x": x, "y": y, "x_test": x_test, "y_test": y_test}
    rule = "cannot be read as an archive of plain arrays"
    remedy = (
        "write it with numpy.savez(path, x=points, y=targets), without object arrays: they would "
        "be unpickled, which can run code"
    )
    with translate_read_errors(f"dataset.path={path}", rule, remedy):
        sparse_points = sparse_files.read_csr(file, path, x)  # None for dense points
        wanted = {
            key: name
            for key, name in names.items()
            if name is not None and (key != "x" or sparse_points is None)
        }
        arrays = archives.read_npz(file, wanted)
    return label_dataset(
        file.stem,
        arrays["x"] if sparse_points is None else sparse_points,
        arrays.get("y"),
        task,
        source=str(file),
        merge_labels=merge_labels,
        x_test=arrays.get("x_test"),
        y_test=arrays.get("y_test"),
    )


def table_dataset(
    name: str,
    table: "pd.DataFrame",
    target: Target,
    task: str | None,
    options: TableOptions = TableOptions(),
    *,
    source: str,
    merge_labels: bool = False,
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

    Raises:
        UserError: A column is missing, or an option that names it contradicts another; a feature is
            not numeric and no option makes it so; or the target is unusable.
    """
    encode, column_labels = options.encode, [str(label) for label in table.columns]
    feature_positions, target_position = column_names.find_roles(
        column_labels, target, options.drop
    )
    encoded_positions = column_names.find_positions(column_labels, "dataset.encode", encode)
    # Only features can be encoded.
    for position, column in zip(encoded_positions, encode):
        if position not in feature_positions:
            column_role = (
                "is the target, whose labels are encoded"
                if position == target_position
                else "is dropped"
            )
            setting = spell_setting("dataset.encode", column)
            encode_option = spell_setting("dataset.encode")
            raise UserError(f"{setting}: {column_role}; leave it out of {encode_option}")
    used_positions = (
        feature_positions if target_position is None else [*feature_positions, target_position]
    )
    index_problem = columns.find_index_column(table.iloc[:, feature_positions])
    table = table.reset_index(drop=True)  # its rows, as messages name them where some are left out
    table = conversion.mark_gaps(table, options.missing, encoded_positions)
    table, gap_notes = _drop_gaps(name, table, used_positions, options)
    table, number_notes = conversion.convert_numbers(
        name, table, [n for n in feature_positions if n not in encoded_positions]
    )
    # A remedy that adds to one of these lists repeats what the user has written.
    user_lists = {"encode": encode, "missing": options.missing, "drop": options.drop}
    if target_position is not None and task != "classes":  # a class may be named as a gap mark is
        columns.refuse_target_gaps(
            f"dataset.target={target}", table.iloc[:, target_position], user_lists
        )
    targets = (
        None if target_position is None else extract_targets(target, table.iloc[:, target_position])
    )
    # Positions among the features, as the table of the features alone has them.
    encoded_features = [feature_positions.index(position) for position in encoded_positions]
    # No target is named, and the last column of the table is not dropped.
    last_may_be_target = feature_positions[-1:] == [table.shape[1] - 1] and target_position is None
    feature_table = columns.check_columns(
        name,
        table.iloc[:, feature_positions],
        encoded_features,
        options.fill,
        index_problem,
        last_may_be_target,
        user_lists,
    )
    # As long as nothing is held out, all points are training points.
    x, names = feature_table.encode_features(np.ones(len(table), dtype=bool))
    # Medians and categories are learned from the training points: where there are any, the features
    # are computed again whenever points are held out.
    depends_on_train = encode or options.fill == "median"
    dataset = label_dataset(
        name,
        x,
        targets,
        task,
        merge_labels=merge_labels,
        source=source,
        feature_names=list(names),
    )
    return replace(
        dataset,
        columns=feature_table if depends_on_train else None,
        notes=(*dataset.notes, *feature_table.notes(index_problem), *number_notes, *gap_notes),
    )


def _drop_gaps(
    name: str, table: "pd.DataFrame", used: Sequence[int], options: TableOptions
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Leave out the points that have a gap if `options.fill` is `drop`; else return all points.

    Args:
        name: The name of the data set.
        table: The table, its gaps marked.
        used: The positions of the columns whose gaps count: the features and the target.
        options: How columns become numbers.

    Returns:
        The table of the other points, and a note on how many were left out; no note if none was.

    Raises:
        UserError: Fewer than two points are without a gap.
    """
    if options.fill != "drop":
        return table, ()
    has_no_gap = table.iloc[:, used].notna().all(axis=1).to_numpy()
    complete_count = int(has_no_gap.sum())
    if complete_count == len(table):
        return table, ()
    if complete_count < 2:
        raise UserError(
            f"{spell_setting('dataset.fill', 'drop')}: leaves {complete_count} of {len(table)} "
            f"points of {name}, as the others have gaps; leave out the columns with many of them "
            f"({spell_setting('dataset.drop')}), or write {spell_setting('dataset.fill', 'median')}"
        )
    note = (
        f"data of {name}: {len(table) - complete_count} of {len(table)} points have gaps and are "
        "left out"
    )
    return table[has_no_gap], (note,)


def _read_csv(
    file: Path, content: Any, header: bool, delimiter: str, **options: Any
) -> "pd.DataFrame":
    """Return a text file as a frame; pandas, from 3.1 on, reads numbers exactly to the last bit.

    Args:
        file: The file, for errors; it is not opened.
        content: A stream of the file's text.
        header: Whether the first row holds the names of the columns.
        delimiter: A name of `DELIMITERS`.
        **options: Further arguments of `pandas.read_csv`.

    Raises:
        UserError: The text is no table of this delimiter, or has no points.
    """
    import pandas as pd

    setting, rule = f"dataset.path={file}", "cannot be read as a table"
    remedy = f"every row must have as many entries, with dataset.delimiter={delimiter} between them"
    with translate_read_errors(setting, rule, remedy), warnings.catch_warnings():
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
    if not len(table):  # an empty text has raised above
        raise UserError(f"dataset.path={file}: has a header and no points; it must hold both")
    _refuse_delimiter(file, table, delimiter)
    return table


def _refuse_delimiter(file: Path, table: "pd.DataFrame", delimiter: str) -> None:
    """Raise `UserError` for a table of one column whose first entry contains another delimiter.

    The file was then read with the wrong delimiter.

    Args:
        file: The file, for the error.
        table: The table, with one row at least.
        delimiter: The name of the delimiter with which the table was read.
    """
    if table.shape[1] > 1:
        return
    entry = str(table.iloc[0, 0])
    sample = f"{table.columns[0]} {entry}"
    for name in DELIMITER_ORDER:
        # The entry of `DELIMITERS` for blanks is a pattern, not a text to be looked for.
        separator = " " if name == "space" else DELIMITERS[name]
        if name != delimiter and separator in entry.strip():
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
    options: TableOptions,
) -> None:
    """Refuse a point read as the header, a header read as a point, and a repeated header.

    A repeated header is one that stands again among the points, as in files that were joined.

    Args:
        file: The file, for errors.
        table: The table as it was read, one point per row.
        names: The entries of the first row, as they stand in the file.
        header: The setting: True or None if the first row was read as names, False if as a point;
            only None refuses names that look like a point.
        points_in: `rows` or `columns`, so that errors name what the user sees in the file.
        options: Their `missing` entries count as gap marks.
    """
    # Quoted names with blanks inside are split otherwise by pandas: take its names.
    if len(names) != table.shape[1]:
        names = list(map(str, table.columns if header is not False else table.iloc[0]))
    # A first row that was read as a point is the first row of the table.
    rows_below = table if header is not False else table.iloc[1:]
    gap_texts = set(map(str, conversion.check_missing(options.missing)))
    first_row = compare_first_row(
        ["?" if name.strip() in gap_texts else name for name in names], rows_below
    )
    # The words for what a point and a feature are in the file.
    row, column = ("row", "column") if points_in == "rows" else ("column", "row")
    setting = (
        f"dataset.header={format_value(header)}: the first {row} of {file} ({abbreviate(names)})"
    )
    if header is None and first_row.is_point:
        transpose_hint = _suggest_transposed(table) if points_in == "rows" else ""
        remedy = (
            f"so it is a point; write dataset.header=false{transpose_hint}, or dataset.header=true "
            "if it holds names"
        )
        # As many columns speak for names as for a point.
        if first_row.unlike and len(first_row.unlike) == len(first_row.like):
            remedy = (
                "which leaves it open; write dataset.header=true if it holds names, or "
                "dataset.header=false if it is a point"
            )
        raise UserError(
            f"{setting} looks like the other {row}s in {len(first_row.like)} of {len(names)} "
            f"{column}s (a number among numbers, a date among dates, a word that stands there "
            f"again: {abbreviate([names[n] for n in first_row.like])}) and unlike them in "
            f"{len(first_row.unlike)}, {remedy}"
        )
    if header is False and first_row.is_names:
        raise UserError(
            f"{setting} is unlike the other {row}s in {len(first_row.unlike)} of {len(names)} "
            f"{column}s (a word among numbers or dates, a word that does not stand there again: "
            f"{abbreviate([names[n] for n in first_row.unlike])}) and like them in "
            f"{len(first_row.like)}, so it holds names; write dataset.header=true, or put another "
            f"{row} first if it is a point"
        )
    if first_row.repeats and first_row.is_names:
        raise UserError(
            f"dataset.path={file}: the names in the first {row} ({abbreviate(names)}) stand again "
            f"in point {first_row.repeats[0]} (counted from 0; {len(first_row.repeats)} times in "
            f"all), as in files that were joined; leave those {row}s out of the file"
        )


def _suggest_transposed(table: "pd.DataFrame") -> str:
    """Return a further remedy where the columns may be the points; empty elsewhere.

    They may be if the file has more columns than rows.

    Args:
        table: The table of the file, read with its first row as names.
    """
    # 1 for the first row, which is not in the table.
    if table.shape[1] <= len(table) + 1:
        return ""
    return f", and dataset.points_in=columns if each of its {table.shape[1]} columns is a point"
