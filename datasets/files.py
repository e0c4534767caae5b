"""Read the user's tables, csv and Parquet; what is wrong with a file is one line of error."""

import csv as lines_of_csv
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normbench.datasets.dataset import Dataset
from normbench.datasets.diagnosis import Problem
from normbench.datasets.entries import check_notation, read_numbers, to_numbers
from normbench.datasets.on_disk.files_on_disk import (
    find_file,
    load_row_groups,
    needs_blocks,
    translate_read_errors,
)
from normbench.datasets.tables import TableOptions, Target, table_dataset
from normbench.datasets.values import UserError, check_choice, check_switch, refuse_larger

if TYPE_CHECKING:
    import pandas as pd

# In the order of the search: a comma may be a decimal comma, a space may separate words.
DELIMITERS = {"semicolon": ";", "tab": "\t", "pipe": "|", "comma": ",", "space": r"\s+"}
TEXT_SHARE = 1 / 16  # of the memory, for a text: a number of two digits becomes 8 bytes, copied
MOST_EXPLAINED_LINES = 1000  # lines of a file that is no table whose entries are counted
COMMENT_SIGNS = "#%!;"
NUMBER = re.compile(r"[-+]?[.,]?\d[\d.,]*(e[-+]?\d+)?", re.IGNORECASE)  # 1.5.1: of two 1.5


@dataclass(frozen=True)
class Text:
    """A text file, and how its table is written: see the arguments of `csv` with these names.

    Attributes:
        notation: The settings of the notation of its numbers; empty for the ordinary one.
    """

    file: Path
    delimiter: str
    header: bool | None
    points_in: str
    notation: Mapping[str, str]
    read: Mapping[str, Any]

    def parse(self, **options: Any) -> "pd.DataFrame":
        """Return the file as a frame; pandas, from 3.1 on, reads numbers exactly to the last bit.

        Args:
            **options: Further arguments of `pandas.read_csv`.
        """
        import pandas as pd

        usual: dict[str, Any] = {"index_col": False, "skipinitialspace": True, "low_memory": False}
        usual |= {"sep": DELIMITERS[self.delimiter], "encoding": "utf-8-sig"}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header
            return pd.read_csv(self.file, **{**usual, **options, **self.read})

    def read_points(self) -> "pd.DataFrame":
        """Return the table, one point per row."""
        header = None if self.header is False else 0
        if self.points_in == "rows":
            table = self.parse(header=header, dtype=str if self.notation else None)
        else:
            table = self.parse(header=None, dtype=str).T.reset_index(drop=True)
            if header == 0:
                table = table.iloc[1:].set_axis(table.iloc[0].fillna(""), axis=1)
            table = table.apply(to_numbers)
        if self.notation:  # of the columns that are text
            table = table.apply(lambda column: read_numbers(column, **self.notation))
        return table

    def first_lines(self) -> list[tuple[int, str]]:
        """Return the first lines that are not empty, each with its number from 1."""
        import pandas as pd

        encoding = self.read.get("encoding", "utf-8-sig")
        as_they_are: dict[str, Any] = {"header": None, "dtype": str, "encoding": encoding}
        as_they_are |= {"quoting": lines_of_csv.QUOTE_NONE, "skip_blank_lines": False}
        as_they_are |= {"keep_default_na": False}
        lines = pd.read_csv(self.file, sep="\x01", nrows=MOST_EXPLAINED_LINES, **as_they_are)
        return [(n, line) for n, line in enumerate(lines.iloc[:, 0], 1) if line.strip()]


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
        path: The file, from the working folder; also compressed (`.gz`, `.zip`, ...).
        target: The name of a column, or its position (from 0; -1 is the last); None for unlabelled
            points.
        header: Whether the first row holds the names of the columns; None assumes that it does, and
            refuses names that are numbers, but for one at most.
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
        read: Further options of `pandas.read_csv`, which go before these.

    Raises:
        UserError: The file cannot be read as such a table.
    """
    file = find_file("dataset.path", path)
    options = TableOptions(drop, encode, fill, missing)
    if header is not None:
        check_switch("dataset.header", header)
    check_choice("dataset.points_in", points_in, ("rows", "columns"))
    check_choice("dataset.delimiter", delimiter, tuple(DELIMITERS))
    notation = check_notation(decimal, thousands)
    text = Text(file, delimiter, header, points_in, notation, {} if read is None else read)
    remedy = "check it, and what dataset.read={...} passes on to pandas.read_csv"
    with translate_read_errors(f"dataset.path={path}", "cannot be read as a table", remedy):
        refuse_larger(f"dataset.path={file}", file.stat().st_size, "write it as npz", TEXT_SHARE)
        table, problems = _read_table(text, ())
    if not len(table):
        raise UserError(f"dataset.path={file}: has a header and no points; it must hold both")
    while str(table.columns[-1]).startswith("Unnamed: ") and table.iloc[:, -1].isna().all():
        table = table.iloc[:, :-1]
    table = table.dropna(how="all") if table.shape[1] > 1 else table
    fields: dict[str, Any] = {"merge_labels": merge_labels, "from_text": True, "problems": problems}
    dataset = table_dataset(file.stem, table, target, task, options, source=str(file), **fields)
    return replace(dataset, read_from_rows=points_in == "rows")


def _read_table(
    text: Text, problems: tuple[Problem, ...]
) -> tuple["pd.DataFrame", tuple[Problem, ...]]:
    """Return a file as a frame of one point per row, and the problems of how it is written.

    Where the settings do not fit, the problem is noted, and the file is read by others.

    Args:
        text: The file, and how it is written.
        problems: The problems found so far.

    Raises:
        UserError: It is no table.
    """
    import pandas as pd

    setting, problem, table = f"dataset.path={text.file}", None, pd.DataFrame()
    try:
        table = text.read_points()
        if table.shape[1] == 1:
            problem = _diagnose_lines(text)
        elif text.header is None:
            problem = _diagnose_header([str(label) for label in table.columns])
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{setting}: is empty; it must hold rows of numbers") from error
    except UnicodeDecodeError as error:
        reason = f"is not text in UTF-8 ({error.reason} at byte {error.start})"
        problem = Problem(reason, {"read": {**text.read, "encoding": "latin-1"}})
    except (pd.errors.ParserError, pd.errors.ParserWarning):
        problem = _diagnose_lines(text)
        if problem is None:
            raise
    if problem is None or len(problems) == len(DELIMITERS):
        return table, problems
    return _read_table(replace(text, **problem.settings), (*problems, problem))


def _diagnose_lines(text: Text) -> Problem | None:
    """Return another delimiter of a file, or what to do about lines above its table.

    None where neither is needed. Raises `UserError`, which names the first line with another number
    of entries than most, for one in the table.
    """

    def count_entries(line: str, delimiter: str) -> int:
        if delimiter == "space":
            return len(line.split())
        return len(next(lines_of_csv.reader([line], delimiter=DELIMITERS[delimiter])))

    lines = text.first_lines()
    for name in DELIMITERS:
        widths = {count_entries(line, name) for _, line in lines}
        if name != text.delimiter and len(widths) == 1 and widths != {1}:
            reason = f"dataset.delimiter={text.delimiter} does not separate its entries"
            return Problem(f"{reason} ({lines[0][1][:40]!r})", {"delimiter": name})
    counts = [count_entries(line, text.delimiter) for _, line in lines]
    usual = Counter(counts).most_common(1)[0][0]
    odd = next((n for n, count in enumerate(counts) if count != usual), None)
    if odd is None:
        return None
    number, line = lines[odd]
    entries = "1 entry" if counts[odd] == 1 else f"{counts[odd]} entries"
    reason = f"line {number} ({line[:40]!r}) differs: it has {entries}, and most lines have {usual}"
    if line.lstrip()[0] in COMMENT_SIGNS:
        return Problem(reason, {"read": {**text.read, "comment": line.lstrip()[0]}})
    if counts[0] == 1:
        first = lines[counts.index(usual)][0]
        return Problem(reason, {"read": {**text.read, "skiprows": first - 1}})
    remedy = "correct that line" if odd else "give each column a name"
    raise UserError(
        f"dataset.path={text.file}: {reason}, with dataset.delimiter={text.delimiter}; {remedy}"
    )


def _diagnose_header(labels: Sequence[str]) -> Problem | None:
    """Return the problem of names that are numbers, all but one at most, which may be a label.

    None for others, and for 0, 1, 2, ...
    """
    numbers = [label for label in labels if NUMBER.fullmatch(label)]
    counted = [str(n) for n in range(len(numbers))]  # as pandas names columns without names
    if not numbers or numbers == counted or len(numbers) < len(labels) - 1:
        return None
    shown = ", ".join(labels[:4]) + (", ..." if len(labels) > 4 else "")
    reason = f"its first row ({shown}) holds numbers, so it is taken for a point"
    return Problem(f"{reason} (if it holds names: dataset.header=true)", {"header": False})


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
        in_blocks: False holds the points in memory; True writes them once to a memory map, by
            blocks of rows; None holds them in memory where they take at most a quarter of it.
        task: As for csv files.
        merge_labels: As for csv files.

    Raises:
        UserError: The file cannot be read, or a column is not usable.
    """
    import pandas as pd

    file = find_file("dataset.path", path)
    options = TableOptions(drop, encode, fill, missing)
    remedy = "check the file, or read it as what it is (dataset=csv, dataset=npz)"
    with translate_read_errors(f"dataset.path={path}", "cannot be read as a Parquet file", remedy):
        if needs_blocks(file, in_blocks):
            if encode or fill or missing:
                raise UserError(
                    f"dataset.path={path}: is read by row groups, which takes columns of numbers "
                    "without gaps as they are; leave out dataset.encode, dataset.fill and "
                    "dataset.missing, or make the file small enough to be held in memory"
                )
            return load_row_groups(file, target, drop, task, in_blocks, merge_labels)
        table = pd.read_parquet(file, engine="pyarrow")
    fields: dict[str, Any] = {"source": str(file), "merge_labels": merge_labels}
    return table_dataset(file.stem, table, target, task, options, **fields)
