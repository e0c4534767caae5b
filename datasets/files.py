"""Read the user's tables, csv and Parquet; what is wrong with a file is one line of error."""

import csv as lines_of_csv
import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normbench.datasets.columns import find_roles, is_of_numbers, read_numbers, to_numbers
from normbench.datasets.dataset import Dataset
from normbench.datasets.labels import label_dataset
from normbench.datasets.on_disk.points import BLOCK_BYTES, write_map
from normbench.datasets.tables import Problem, TableOptions, table_dataset
from normbench.datasets.values import (
    ARRAY_SHARE,
    FLOAT64_BYTES,
    UserError,
    available_bytes,
    check_choice,
    check_switch,
    find_file,
    refuse_larger,
    spell_setting,
    translate_read_errors,
)

if TYPE_CHECKING:
    import pandas as pd

# In the order of the search: a comma may be a decimal comma, a space may separate words.
DELIMITERS = {"semicolon": ";", "tab": "\t", "pipe": "|", "comma": ",", "space": r"\s+"}
TEXT_SHARE = 1 / 16  # of the memory, for a text: a number of two digits becomes 8 bytes, copied
MOST_EXPLAINED_LINES = 1000  # lines of a file that is no table whose entries are counted
NUMBER = re.compile(r"[-+]?[.,]?\d[\d.,]*(e[-+]?\d+)?", re.IGNORECASE)


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

        as_they_are: dict[str, Any] = {"header": None, "dtype": str, "keep_default_na": False}
        as_they_are |= {"quoting": lines_of_csv.QUOTE_NONE, "skip_blank_lines": False}
        as_they_are |= {"encoding": self.read.get("encoding", "utf-8-sig")}
        lines = pd.read_csv(self.file, sep="\x01", nrows=MOST_EXPLAINED_LINES, **as_they_are)
        return [(n, line) for n, line in enumerate(lines.iloc[:, 0], 1) if line.strip()]


def csv(
    path: str | None,
    target: str | int | None = None,
    header: bool | None = None,
    points_in: str = "rows",
    delimiter: str = "comma",
    decimal: str | None = None,
    thousands: str | None = None,
    read: Mapping[str, Any] | None = None,
    **table_options: Any,
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
        decimal: The decimal separator, `point` or `comma`. Where it or `thousands` is set, a sign
            of a currency, percent or plus, or a unit that all numbers of a column have is left out.
        thousands: The separator of groups of three digits: `point`, `comma` or `blank`.
        read: Further options of `pandas.read_csv`, which go before these.
        **table_options: The other fields of `TableOptions`.

    Raises:
        UserError: The file cannot be read as such a table.
    """
    file, options = find_file("dataset.path", path), TableOptions(target=target, **table_options)
    if header is not None:
        check_switch("dataset.header", header)
    check_choice("dataset.points_in", points_in, ("rows", "columns"))
    check_choice("dataset.delimiter", delimiter, tuple(DELIMITERS))
    notation = {}
    if decimal is not None:
        notation["decimal"] = check_choice("dataset.decimal", decimal, ("point", "comma"))
    if thousands is not None:
        others = [name for name in ("point", "comma", "blank") if name != decimal]
        notation["thousands"] = check_choice("dataset.thousands", thousands, others)
    text = Text(file, delimiter, header, points_in, notation, read or {})
    remedy = "check it, and what dataset.read={...} passes on to pandas.read_csv"
    with translate_read_errors(f"dataset.path={path}", "cannot be read as a table", remedy):
        refuse_larger(f"dataset.path={file}", file.stat().st_size, "write it as npz", TEXT_SHARE)
        table, problems = _read_table(text, ())
    while str(table.columns[-1]).startswith("Unnamed: ") and table.iloc[:, -1].isna().all():
        table = table.iloc[:, :-1]
    table = table.dropna(how="all") if table.shape[1] > 1 else table
    dataset = table_dataset(
        file.stem, table, options, source=str(file), from_text=True, problems=problems
    )
    return replace(dataset, read_from_rows=points_in == "rows")


def _read_table(
    text: Text, problems: tuple[Problem, ...]
) -> tuple["pd.DataFrame", tuple[Problem, ...]]:
    """Return a file as a frame of one point per row, and the problems of how it is written.

    Where the settings do not fit, the problem is noted, and the file is read by others.

    Args:
        text: The file, and how it is written.
        problems: The problems found so far.
    """
    import pandas as pd

    problem, table = None, pd.DataFrame()
    try:
        table = text.read_points()
        if table.shape[1] == 1:
            problem = _diagnose_lines(text)
        elif text.header is None and text.points_in == "rows":
            problem = _diagnose_header(text)
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
    """Return another delimiter of a file, or that lines stand above its table.

    None where neither is so. Raises `UserError`, which names the first line with another number of
    entries than most, for one in the table.
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
    reason = (
        f"line {number} ({line[:40]!r}) has not {usual} entries, as most lines, but {counts[odd]}"
    )
    if counts[0] == 1:
        first = lines[counts.index(usual)][0]
        return Problem(reason, {"read": {**text.read, "skiprows": first - 1}})
    raise UserError(
        f"dataset.path={text.file}: {reason}, by dataset.delimiter={text.delimiter}; correct it"
    )


def _diagnose_header(text: Text) -> Problem | None:
    """Return the problem of a first row of numbers, all but one at most, which may be a label.

    None for others, and for 0, 1, 2, ...
    """
    labels = [*text.parse(header=None, nrows=1, dtype=str).iloc[0].fillna("")]
    numbers = [label for label in labels if NUMBER.fullmatch(label)]
    counted = [str(n) for n in range(len(numbers))]  # as pandas names columns without names
    if not numbers or numbers == counted or len(numbers) < len(labels) - 1:
        return None
    shown = ", ".join(labels[:4]) + (", ..." if len(labels) > 4 else "")
    reason = f"its first row ({shown}) holds numbers, so it is taken for a point"
    return Problem(f"{reason} (if it holds names: dataset.header=true)", {"header": False})


def parquet(
    path: str | None,
    target: str | int | None = None,
    in_blocks: bool | None = None,
    **table_options: Any,
) -> Dataset:
    """Return the points of a Parquet file, one per row.

    Args:
        path: The file, from the working folder.
        target: As for csv files.
        in_blocks: False holds the points in memory; True writes them once to a memory map, by
            blocks of rows; None holds them in memory where they take at most a quarter of it.
        **table_options: The other fields of `TableOptions`.

    Raises:
        UserError: The file cannot be read, or a column is not usable.
    """
    import pandas as pd
    import pyarrow.parquet as pq

    file, options = find_file("dataset.path", path), TableOptions(target=target, **table_options)
    if in_blocks is not None:
        check_switch("dataset.in_blocks", in_blocks)
    remedy = "check the file, or read it as what it is (dataset=csv, dataset=npz)"
    with translate_read_errors(f"dataset.path={path}", "cannot be read as a Parquet file", remedy):
        rows = pq.read_metadata(file)
        size = FLOAT64_BYTES * rows.num_rows * rows.num_columns
        if in_blocks or (in_blocks is None and size > ARRAY_SHARE * available_bytes()):
            return _map_row_groups(file, options, bool(in_blocks))
        table = pd.read_parquet(file, engine="pyarrow")
    return table_dataset(file.stem, table, options, source=str(file))


def _map_row_groups(file: Path, options: TableOptions, in_blocks: bool) -> Dataset:
    """Return the points of a Parquet file as a memory map in float64, with its target in memory.

    Args:
        file: The file.
        options: Its target and dropped columns; nothing is encoded, filled or marked.
        in_blocks: Whether even a small selection of rows stays on disk.

    Raises:
        UserError: A column is missing, no feature or has a gap, or the disk does not hold the
            memory map.
    """
    import pyarrow.parquet as pq

    setting = f"dataset.path={file}: is read by row groups, which takes columns of numbers"
    if options.encode or options.fill or options.missing:
        raise UserError(f"{setting} as they are; leave out dataset.encode, fill and missing")
    # The file is mapped, so that memory holds one row group, and not the file.
    with pq.ParquetFile(file, memory_map=True, pre_buffer=False) as opened:
        # The columns that pandas gives a frame of the file, its index left out.
        empty = opened.schema_arrow.empty_table().to_pandas()
        names = [str(name) for name in empty.columns]
        positions, target_position = find_roles(names, options.target, options.drop)
        features = [names[position] for position in positions]
        unfit = [name for name in features if not is_of_numbers(empty[name].dtype)]
        if unfit:
            remedy = spell_setting("dataset.drop", [*options.drop, *unfit], shell=True)
            raise UserError(f"{setting}, and {unfit[0]!r} is none; leave it out with {remedy}")
        y = None
        if target_position is not None:
            target_name = names[target_position]
            y = opened.read([target_name]).column(target_name).to_pandas()
        size = max(1, BLOCK_BYTES // (FLOAT64_BYTES * max(1, len(features))))
        blocks = (
            batch.to_pandas().to_numpy(np.float64, na_value=np.nan)
            for batch in opened.iter_batches(size, columns=features)
        )
        x = write_map(blocks, (opened.metadata.num_rows, len(features)), np.float64)
    vars(x)["in_blocks"] = in_blocks
    fields: dict[str, Any] = {"merge_labels": options.merge_labels, "source": str(file)}
    return label_dataset(file.stem, x, y, options.task, feature_names=features, **fields)
