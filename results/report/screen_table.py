"""The comparison's table on a terminal: the columns that fit, bars, and sparklines."""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from normbench import names
from normbench.results.answer import tables
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import compared_metric, start_excess
from normbench.results.report import screen
from normbench.results.store.looks import looks
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

SCHEME_COLUMN, EXCESS_LEFT, SECONDS_COLUMN, STEPS = "scheme", tables.EXCESS_LEFT, "seconds", "steps"
BAR, HISTORY = "left, drawn", "history"
# Columns that a narrow terminal omits, in this order; all others are always printed.
OPTIONAL_COLUMNS = (
    *(SECONDS_COLUMN, STEPS, names.DIVERGED, "cost q1", "cost q3", "medians of", "cost"),
    *("converges up to", "test cost", names.RECORDED.key, HISTORY, BAR, "misclassified"),
    *("test misclassified", "verdict"),
)
MIN_SECONDS = 10.0  # the column of seconds is omitted if no job took longer
COLUMN_GAP, PICTURE_WIDTH = 2, 8  # characters between two columns, and of a bar or a sparkline
BLOCKS = "▁▂▃▄▅▆▇█"
FOOT_RANGE = (1e-6, 1e-1)  # bounds of the sparklines' lower end, as shares of the start's excess
MIN_LUMINANCE = 0.25  # a darker colour is unreadable on a dark terminal, and replaced


def show(terminal: Console, sweep: Sweep) -> None:
    """Print the table of a comparison.

    Args:
        terminal: A terminal gets the columns that fit, bars and sparklines, in colours; any other
            output gets the whole table as text.
        sweep: The runs.
    """
    summary = without_uninformative(tables.summary(sweep))
    if not terminal.is_terminal:
        print(tables.text(summary), file=terminal.file)
        return
    cells = _texts(summary)
    rows = as_rows(merged(sweep).of_role(names.SCHEME))
    # One colour a scheme, in the order of the rows of the summary.
    colors = [_readable(look.color) for look in looks([row["normalizer"] for row in rows])]
    cells[SCHEME_COLUMN] = [
        Text(str(cell), style=color) for cell, color in zip(cells[SCHEME_COLUMN], colors)
    ]
    if screen.shows_bars(terminal) and EXCESS_LEFT in cells:
        cells = _with_pictures(cells, summary, sweep, rows, colors)
    # Columns are removed one by one until the table fits.
    for name in OPTIONAL_COLUMNS:
        if _table_width(cells) <= terminal.width:
            break
        cells.pop(name, None)
    _print_columns(terminal, cells, _holds_text(summary))


def print_table(terminal: Console, table: pd.DataFrame) -> None:
    """Print a table without colours.

    Args:
        terminal: A terminal gets blocks of columns that fit, each with the leading columns of text;
            any other output gets the whole table as text.
        table: The table.
    """
    if not terminal.is_terminal:
        print(tables.text(table), file=terminal.file)
        return
    cells, holds_text = _texts(table), _holds_text(table)
    row_headings = list(takewhile(holds_text.get, cells))
    # The names of the columns of a block, in order; a dictionary serves as an ordered set.
    block = dict.fromkeys(row_headings)
    for name in [name for name in cells if name not in row_headings]:
        # A block has at least one column of numbers, even if it does not fit.
        if len(block) > len(row_headings) and _table_width(
            {key: cells[key] for key in (*block, name)}
        ) > (terminal.width):
            _print_columns(terminal, {key: cells[key] for key in block}, holds_text)
            block = dict.fromkeys(row_headings)
        block[name] = None
    _print_columns(terminal, {key: cells[key] for key in block}, holds_text)


def _readable(color: str) -> str:
    """Return a colour if it is readable on a dark terminal, else the terminal's default.

    Args:
        color: The colour as `#rrggbb`.
    """
    red, green, blue = (int(color[offset : offset + 2], 16) / 255 for offset in (1, 3, 5))
    luminance = 0.30 * red + 0.59 * green + 0.11 * blue  # the weights of ITU-R BT.601
    return color if luminance >= MIN_LUMINANCE else "default"


def _texts(table: pd.DataFrame) -> dict[str, list[RenderableType]]:
    """Return the formatted cells of a table by column."""
    return {
        name: [Text(cell) for cell in column] for name, column in tables.format_cells(table).items()
    }


def _holds_text(table: pd.DataFrame) -> dict[str, bool]:
    """Return for each column of a table whether it holds text."""
    return {str(name): tables.holds_text(str(name), table) for name in table}


def without_uninformative(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of schemes without columns that say nothing.

    These are the number of step sizes if it is the same for all schemes, the number of diverged
    runs if none diverged, and the seconds if no job took more than `MIN_SECONDS`.
    """
    uninformative = []
    if STEPS in table and table[STEPS].nunique() < 2:
        uninformative.append(STEPS)
    if names.DIVERGED in table and not (table[names.DIVERGED].fillna(0) > 0).any():
        uninformative.append(names.DIVERGED)
    if SECONDS_COLUMN in table and not (table[SECONDS_COLUMN] > MIN_SECONDS).any():
        uninformative.append(SECONDS_COLUMN)
    return table.drop(columns=uninformative)


def _with_pictures(
    cells: Mapping[str, list[RenderableType]],
    summary: pd.DataFrame,
    sweep: Sweep,
    rows: Sequence[Mapping[Any, Any]],
    colors: Sequence[str],
) -> dict[str, list[RenderableType]]:
    """Return the columns of a table, with bars and sparklines after the column `EXCESS_LEFT`.

    Args:
        cells: The formatted cells by column.
        summary: The table of their values.
        sweep: The runs.
        rows: The scheme runs, in the order of the table.
        colors: The colour of each scheme.

    Returns:
        The cells by column. The column of sparklines is left out where none can be drawn.
    """
    bars: list[RenderableType] = [
        # A full bar is the excess of the start.
        Bar(1.0, 0.0, min(float(remaining), 1.0), width=PICTURE_WIDTH, color=color)
        if pd.notna(remaining)
        else Text("")
        for remaining, color in zip(summary[EXCESS_LEFT], colors)
    ]
    history_lines: list[RenderableType] = [
        Text(line, style=color) for line, color in zip(_histories(sweep, rows), colors)
    ]
    pictures = {BAR: bars, HISTORY: history_lines} if any(map(str, history_lines)) else {BAR: bars}
    pairs: list[tuple[str, list[RenderableType]]] = []
    for name, column in cells.items():
        pairs += [(name, column), *(pictures.items() if name == EXCESS_LEFT else ())]
    return dict(pairs)


def _histories(sweep: Sweep, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the sparkline of the excess left under each scheme, all on one logarithmic scale.

    Args:
        sweep: The runs.
        rows: The scheme runs.

    Returns:
        One line a row; empty where the history or the excess is not known.
    """
    table = tables.histories(sweep)
    histories = []
    for row in rows:
        metric = compared_metric(row)
        history = table[table["run_id"] == row["run_id"]]
        if metric is not names.TRAIN_COST:
            row = {**row, names.MINIMUM.column: 0.0}  # the least count of misclassified points
        minimum = row.get(names.MINIMUM.column, np.nan)
        shares = (
            (history[metric.key] - minimum) / start_excess(row)
            if metric.key in history
            else history[:0]  # no history is recorded
        )
        histories.append(shares.to_numpy(dtype=float))
    # Histories that a sparkline can show, see `sparkline`.
    complete = [shares for shares in histories if np.isfinite(shares).all() and len(shares) > 1]
    # All scales end at the lowest share that any complete history reaches, within bounds.
    foot = float(np.clip(min((shares.min() for shares in complete), default=1.0), *FOOT_RANGE))
    return [sparkline(shares, foot) for shares in histories]


def sparkline(shares: Any, foot: float) -> str:
    """Return a history as a line of block characters.

    Args:
        shares: The excess as shares of the start's, `(k,)`.
        foot: The share at the lower end of the logarithmic scale, below 1; the upper end is 1.

    Returns:
        The line; empty for fewer than two or for infinite shares.
    """
    if len(shares) < 2 or not np.isfinite(shares).all():
        return ""
    sampled = np.linspace(0, len(shares) - 1, PICTURE_WIDTH).round().astype(int)
    # 1 at the share 1, 0 at the share `foot`.
    heights = 1 - np.log10(np.clip(shares[sampled], foot, 1.0)) / math.log10(foot)
    return "".join(BLOCKS[round(height * (len(BLOCKS) - 1))] for height in heights)


def _print_columns(
    terminal: Console, cells: Mapping[str, list[RenderableType]], holds_text: Mapping[str, bool]
) -> None:
    """Print columns side by side, texts aligned to the left and numbers to the right.

    Args:
        terminal: The terminal.
        cells: The cells by column.
        holds_text: Whether a column holds text; True for columns that are not in it.
    """
    grid = Table(box=None, pad_edge=False, padding=(0, COLUMN_GAP, 0, 0), header_style="bold")
    for column_index, (name, column) in enumerate(cells.items()):
        is_text = holds_text.get(name, True)
        grid.add_column(
            _head(name),
            justify="left" if is_text else "right",
            overflow="fold",
            no_wrap=not is_text,
            # The first column names the row: a wrapped id could not be copied.
            min_width=None if column_index else min(_width(name, column), terminal.width // 2),
        )
    for row in zip(*cells.values()):
        grid.add_row(*row)
    terminal.print(grid)


def _table_width(cells: Mapping[str, list[RenderableType]]) -> int:
    """Return the width of a table in characters, with a gap after each column."""
    return sum(_width(name, column) + COLUMN_GAP for name, column in cells.items())


def _head(name: str) -> str:
    """Return a column's heading, split into two lines if it has several words."""
    head = "" if name == BAR else name  # the bars belong to the column before them
    blanks = [position for position, character in enumerate(head) if character == " "]
    if not blanks:
        return head
    # The blank nearest to the middle becomes the end of the line.
    middle = min(blanks, key=lambda position: abs(position - len(head) / 2))
    return f"{head[:middle]}\n{head[middle + 1 :]}"


def _width(name: str, column: Sequence[RenderableType]) -> int:
    """Return the width of a column in characters: that of its widest cell or line of heading."""
    cells = [PICTURE_WIDTH if isinstance(cell, Bar) else cell_len(str(cell)) for cell in column]
    return max([*map(cell_len, _head(name).split("\n")), *cells])
