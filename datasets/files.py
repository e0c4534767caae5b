"""Load the user's own files: csv, parquet and npz; a defect of a file is one line of error."""

import inspect
import io
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
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
from normbench.datasets.entries import extract_targets, is_of_numbers
from normbench.datasets.header import abbreviate, compare_first_row
from normbench.datasets.labels import label_dataset
from normbench.datasets.notation import Notation, check_notation, has_decimal_commas
from normbench.datasets.on_disk.files_on_disk import (
    find_file,
    load_row_groups,
    needs_blocks,
    translate_read_errors,
)
from normbench.datasets.values import (
    UserError,
    check_choice,
    did_you_mean,
    format_value,
    spell_setting,
)

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": r"\s+", "pipe": "|"}
# The order of the search: a comma may be a decimal comma, a space may separate words.
DELIMITER_ORDER = ("semicolon", "tab", "pipe", "comma", "space")
# Options of pandas.read_csv that a plain setting sets.
PLAIN_SETTINGS = {
    "sep": "delimiter",
    "delimiter": "delimiter",
    "decimal": "decimal",
    "thousands": "thousands",
    "header": "header",
    "na_values": "missing",
}
MOST_EXPLAINED_LINES = 1000  # lines of a file that is no table whose entries are counted
COMMENT_SIGNS = "#%!;"
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
    decimal: str | None = None,
    thousands: str | None = None,
    read: Mapping[str, Any] | None = None,
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
        decimal: The decimal separator, `point` or `comma`. Where it or `thousands` is set, a sign
            of a currency, percent or plus, or a unit that all numbers of a column have is left out.
        thousands: The separator of groups of three digits: `point`, `comma` or `blank`.
        read: Further options of `pandas.read_csv`.

    Raises:
        UserError: The file cannot be read as such a table.
    """
    file = find_file("dataset.path", path)
    options = TableOptions(drop, encode, fill, missing)
    notation = check_notation(decimal, thousands)
    read_options = _check_read_options(read)
    if header is not None and not isinstance(header, bool):
        raise UserError(
            f"dataset.header={format_value(header)}: must be true or false, or null for names that "
            "must not look like a point"
        )
    check_choice("dataset.points_in", points_in, ("rows", "columns"))
    check_choice("dataset.delimiter", delimiter, tuple(DELIMITERS))
    with translate_read_errors(f"dataset.path={path}", "cannot be unpacked", "check the file"):
        table, names = _read_text(
            file, header is not False, points_in, delimiter, notation, read_options
        )
    table, names = _drop_empty(table, names, header is not False)
    _refuse_first_row(file, table, names, header, points_in, options)
    if header is not False:
        # Before the frame is used: pandas numbers equal names (`y`, `y.1`), and one would be found.
        column_names.refuse_duplicate_name("dataset.target", target, names)
        for option, listed in (("dataset.drop", drop), ("dataset.encode", encode)):
            for column in column_names.list_columns(option, listed):
                column_names.refuse_duplicate_name(option, column, names)
    dataset = table_dataset(
        file.stem,
        table,
        target,
        task,
        options,
        source=str(file),
        merge_labels=merge_labels,
        from_text=True,
    )
    notes = _note_columns(file.stem, table, names, header is not False, target, drop, thousands)
    return replace(dataset, read_from_rows=points_in == "rows", notes=(*dataset.notes, *notes))


def _check_read_options(read: Any) -> dict[str, Any]:
    """Return the setting `dataset.read` as a dictionary.

    Raises:
        UserError: It is none, names an option that pandas does not have, or one that a plain
            setting sets.
    """
    if read is None:
        return {}
    if not isinstance(read, Mapping):
        raise UserError(
            f"dataset.read={format_value(read)}: must be options of pandas.read_csv; write "
            "'dataset.read={encoding: latin-1}'"
        )
    import pandas as pd

    names = inspect.signature(pd.read_csv).parameters
    for option in map(str, read):
        if option in PLAIN_SETTINGS:
            raise UserError(
                f"dataset.read={{{option}: ...}}: is set by dataset.{PLAIN_SETTINGS[option]}; "
                f"write that in its place"
            )
        if option not in names or option == "filepath_or_buffer":
            raise UserError(
                f"dataset.read={{{option}: ...}}: pandas.read_csv has no such option"
                f"{did_you_mean(option, list(names))}"
            )
    return {str(option): value for option, value in read.items()}


def _drop_empty(
    table: "pd.DataFrame", names: list[str], header: bool
) -> tuple["pd.DataFrame", list[str]]:
    """Leave out rows without an entry, and last columns with neither entry nor name.

    Args:
        table: The table, one point per row.
        names: The entries of the first row.
        header: Whether they are the names of the columns.

    Returns:
        The table and the names of its columns. A table without any entry is returned as it is.
    """
    is_empty = table.isna().to_numpy()
    count = table.shape[1]
    if count < 2 or is_empty.all() or len(names) != count:
        return table, names
    while is_empty[:, count - 1].all() and not (header and names[count - 1].strip()):
        count -= 1
    return table[~is_empty.all(axis=1)].iloc[:, :count].reset_index(drop=True), names[:count]


def _note_columns(
    name: str,
    table: "pd.DataFrame",
    names: Sequence[str],
    header: bool,
    target: Target,
    drop: Sequence[str | int],
    thousands: str | None,
) -> list[str]:
    """Return notes on columns of a text file that may be read otherwise than they are meant.

    They share a name, have none, or look like thousands that were written with a point.

    Args:
        name: The name of the data set.
        table: The table.
        names: The entries of its first row.
        header: Whether they are the names of the columns.
        target: The target column.
        drop: The columns that are left out.
        thousands: The setting `dataset.thousands`.
    """
    labels = [str(label) for label in table.columns]
    features, target_position = column_names.find_roles(labels, target, drop)
    notes = []
    if header and len(names) == len(labels):
        positions_by_name: dict[str, list[int]] = {}
        for position in features:
            positions_by_name.setdefault(names[position].strip(), []).append(position)
        unnamed = [
            n
            for n in positions_by_name.pop("", [])
            if n and is_of_numbers(table.dtypes.iloc[n]) and not table.iloc[:, n].isna().all()
        ]
        for label, positions in positions_by_name.items():
            if len(positions) > 1:
                dropped = spell_setting("dataset.drop", [*drop, *positions[1:]], shell=True)
                listed = " and ".join(map(str, positions))
                notes.append(
                    f"columns {listed} (counted from 0) are both called {label!r}; to leave out "
                    f"all but the first: {dropped}"
                )
        if unnamed:
            dropped = spell_setting("dataset.drop", [*drop, *unnamed], shell=True)
            notes.append(
                f"column {', '.join(map(str, unnamed))} (counted from 0) has no name and holds "
                "numbers; were decimals split at their commas? If so, save the file with another "
                f"delimiter; if not, name it, or leave it out: {dropped}"
            )
    used = [*features, *([] if target_position is None else [target_position])]
    split = [labels[n] for n in used if columns.resembles_thousands(table.iloc[:, n])]
    if split and thousands is None:
        listed = ", ".join(map(repr, split[: columns.MAX_LISTED_COLUMNS]))
        notes.append(
            f"column {listed} has numbers of three decimals beside whole numbers; if a point "
            f"separates thousands (1.358 is 1358): {spell_setting('dataset.thousands', 'point')}"
        )
    return [f"data of {name}: {note}" for note in notes]


def _read_text(
    file: Path,
    header: bool,
    points_in: str,
    delimiter: str,
    notation: Notation | None,
    read_options: dict[str, Any],
) -> tuple["pd.DataFrame", list[str]]:
    """Return a text file as a frame of one point per row, and the entries of its first row.

    A file with one point per column is transposed: its first row is then its first column.

    Args:
        file: The file.
        header: Whether the first row (after the transposition) holds the names of the columns.
        points_in: `rows` or `columns`.
        delimiter: A name of `DELIMITERS`.
        notation: The notation of numbers; None for the ordinary one.
        read_options: Further options of `pandas.read_csv`.

    Raises:
        UserError: The text is too large, no table of this delimiter, or has too many columns.
    """
    is_transposed = points_in == "columns"
    as_text = is_transposed or notation is not None
    # A file that is held as text takes more memory than numbers.
    share = text.TEXT_SHARE if as_text else text.NUMBERS_SHARE
    with text.open_text(file, DELIMITERS[delimiter], share) as (content, names):
        if not as_text:
            table = _read_csv(file, content, header, delimiter, **read_options)
            return table, [str(label) for label in table.columns] if read_options else names
        # As text, with empty cells as they are: a column of the file mixes the columns to be.
        cells = _read_csv(
            file, content, False, delimiter, dtype=str, keep_default_na=False, **read_options
        )
    if is_transposed:
        text.refuse_columns(file, len(cells))
        cells = cells.T
    names = [str(name) for name in cells.iloc[0]]
    if notation is not None:
        cells = conversion.rewrite_numbers(cells.reset_index(drop=True), notation, header)
    # Written (with commas) and read again, so that pandas infers the types of the columns.
    text_of_cells = io.StringIO(cells.to_csv(header=False, index=False))
    return _read_csv(file, text_of_cells, header, "comma"), names


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
        if needs_blocks(file, in_blocks):
            # Row groups hold numbers as they are: nothing is encoded or filled.
            _refuse_options(path, options)
            return load_row_groups(file, target, drop, task, in_blocks, merge_labels)
        table = parquet_table.read_table(file, target, drop)
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
    import pandas as pd

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
    targets = arrays.get("y")
    if (
        task != "classes"
        and targets is not None
        and targets.ndim == 1
        and targets.dtype.kind == "U"
    ):
        columns.refuse_text_target(f"dataset.y={y}", pd.Series(targets, name=y))
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
    from_text: bool = False,
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
    target_problem = None
    if target_position is not None and task != "classes":  # a class may be named as a gap mark is
        option, target_column = f"dataset.target={target}", table.iloc[:, target_position]
        columns.refuse_target_gaps(option, target_column, user_lists)
        target_problem = columns.diagnose_text_target(option, target_column)
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
        target_problem,
        from_text,
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
        notes=(
            *dataset.notes,
            *feature_table.notes(index_problem),
            *number_notes,
            *gap_notes,
            *_note_sentinels(name, table.iloc[:, used_positions], options),
        ),
    )


def _note_sentinels(name: str, used: "pd.DataFrame", options: TableOptions) -> list[str]:
    """Return a note on each number that may stand for gaps in the used columns."""
    notes = []
    for sentinel, labels in columns.find_sentinels(used).items():
        missing = spell_setting("dataset.missing", [*options.missing, sentinel], shell=True)
        fill = spell_setting("dataset.fill", options.fill or "median")
        listed = ", ".join(map(repr, labels[: columns.MAX_LISTED_COLUMNS]))
        notes.append(
            f"data of {name}: column {listed} has {sentinel} far below its other numbers; if it "
            f"stands for a gap: {missing} {fill}"
        )
    return notes


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
                **{
                    "index_col": False,
                    "skipinitialspace": True,
                    "low_memory": False,
                    "encoding": "utf-8-sig",
                    **options,
                },
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning):
            if not isinstance(content, io.StringIO):
                _refuse_lines(file, delimiter)
            raise
        except pd.errors.EmptyDataError as error:
            raise UserError(f"{setting}: is empty; it must hold rows of numbers") from error
        except UnicodeDecodeError as error:
            raise UserError(
                f"{setting}: is not text in UTF-8 ({error.reason} at byte {error.start}); "
                "save it as UTF-8, name its encoding ('dataset.read={encoding: latin-1}'), or read "
                "it as what it is (dataset=parquet, dataset=npz)"
            ) from error
    if not len(table):  # an empty text has raised above
        raise UserError(f"dataset.path={file}: has a header and no points; it must hold both")
    _refuse_delimiter(file, table, delimiter)
    return table


def _refuse_lines(file: Path, delimiter: str) -> None:
    """Raise `UserError` for a file that another delimiter reads, or for its first unequal line.

    Args:
        file: The file, which pandas could not read as a table.
        delimiter: The name of the delimiter with which it was read.
    """
    with text.open_text(file, DELIMITERS[delimiter], text.NUMBERS_SHARE) as (content, _):
        raw_lines = [content.readline() for _ in range(MOST_EXPLAINED_LINES)]
    lines = [line.decode(errors="replace").strip("\r\n\ufeff") for line in raw_lines]
    numbered = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
    for name in DELIMITER_ORDER[:-1]:
        counts = {line.count(DELIMITERS[name]) for _, line in numbered}
        if name != delimiter and len(counts) == 1 and counts != {0}:
            raise UserError(
                f"dataset.path={file}: has no table with dataset.delimiter={delimiter}; write "
                f"dataset.delimiter={name}{_suggest_decimal(name, lines)}"
            )
    widths = [len(text.split_row(line, DELIMITERS[delimiter])) for _, line in numbered]
    usual = Counter(widths).most_common(1)[0][0]
    unequal = [n for n, width in enumerate(widths) if width != usual]
    if not unequal:
        return
    number, line = numbered[unequal[0]]
    remedy = "correct that line"
    if line.lstrip()[0] in COMMENT_SIGNS:
        remedy = f"if it is a comment: 'dataset.read={{comment: \"{line.lstrip()[0]}\"}}'"
    elif unequal[0] == 0:
        first_usual = next(n for n, width in enumerate(widths) if width == usual)
        remedy = (
            f"give each column a name or, if the table begins in line {numbered[first_usual][0]}: "
            f"'dataset.read={{skiprows: {numbered[first_usual][0] - 1}}}'"
        )
    raise UserError(
        f"dataset.path={file}: line {number} ({line[:40]!r}) differs from the others: it has "
        f"{widths[unequal[0]]} {'entry' if widths[unequal[0]] == 1 else 'entries'}, and most "
        f"lines have {usual}, with dataset.delimiter={delimiter}; {remedy}"
    )


def _suggest_decimal(delimiter: str, lines: Sequence[str]) -> str:
    """Return ` dataset.decimal=comma` where lines with another delimiter hold decimal commas."""
    if delimiter == "comma" or not has_decimal_commas(lines):
        return ""
    return " dataset.decimal=comma"


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
                f"write dataset.delimiter={name}{_suggest_decimal(name, [entry])}"
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
