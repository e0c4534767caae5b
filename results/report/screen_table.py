"""The comparison's table on a terminal: as many columns as fit, bars, and a history a row."""

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
from normbench.results.compare.reached import compared, start_excess
from normbench.results.report import screen
from normbench.results.store.looks import looks
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

SCHEME, EXCESS_LEFT, SECONDS, STEPS = "scheme", tables.EXCESS_LEFT, "seconds", "steps"
BAR, HISTORY = "left, drawn", "history"
# Columns that give way first on a narrow terminal; what is not among them stays.
GIVE_WAY = (
    *(SECONDS, STEPS, names.DIVERGED, "cost q1", "cost q3", "medians of", "cost"),
    *("converges up to", "test cost", names.RECORDED.key, HISTORY, BAR, "misclassified"),
    *("test misclassified", "verdict"),
)
MIN_SECONDS = 10.0  # seconds: what takes less is of no interest
GAP, PICTURE_WIDTH = 2, 8  # columns between two columns, and of a bar or a history
BLOCKS = "▁▂▃▄▅▆▇█"
FOOT_RANGE = (1e-6, 1e-1)  # of the start's excess: the lowest and the highest foot of the histories
MIN_LUMINANCE = 0.25  # a darker colour would not be read on a dark terminal: the terminal's own is


def show(terminal: Console, sweep: Sweep) -> None:
    """Print the table of a comparison; on a terminal its columns that fit, in colours."""
    summary = without_dull(tables.summary(sweep))
    if not terminal.is_terminal:
        print(tables.text(summary), file=terminal.file)
        return
    cells = _texts(summary)
    rows = as_rows(merged(sweep).of_role(names.SCHEME))
    colors = [_readable(look.color) for look in looks([row["normalizer"] for row in rows])]
    cells[SCHEME] = [Text(str(cell), style=color) for cell, color in zip(cells[SCHEME], colors)]
    if screen.shows_bars(terminal) and EXCESS_LEFT in cells:
        cells = _with_pictures(cells, summary, sweep, rows, colors)
    for name in GIVE_WAY:
        if _needed(cells) <= terminal.width:
            break
        cells.pop(name, None)
    _print(terminal, cells, _are_words(summary))


def plain(terminal: Console, table: pd.DataFrame) -> None:
    """Print any other table; on a terminal in blocks that fit, each with the columns of words."""
    if not terminal.is_terminal:
        print(tables.text(table), file=terminal.file)
        return
    cells, holds_text = _texts(table), _are_words(table)
    row_headings = list(takewhile(holds_text.get, cells))
    block = dict.fromkeys(row_headings)
    for name in [name for name in cells if name not in row_headings]:
        if len(block) > len(row_headings) and _needed(
            {key: cells[key] for key in (*block, name)}
        ) > (terminal.width):
            _print(terminal, {key: cells[key] for key in block}, holds_text)
            block = dict.fromkeys(row_headings)
        block[name] = None
    _print(terminal, {key: cells[key] for key in block}, holds_text)


def _readable(color: str) -> str:
    """Return a colour that is read on a dark terminal, too: itself, or the terminal's own."""
    red, green, blue = (int(color[offset : offset + 2], 16) / 255 for offset in (1, 3, 5))
    return color if 0.30 * red + 0.59 * green + 0.11 * blue >= MIN_LUMINANCE else "default"


def _texts(table: pd.DataFrame) -> dict[str, list[RenderableType]]:
    return {name: [Text(cell) for cell in column] for name, column in tables.cells(table).items()}


def _are_words(table: pd.DataFrame) -> dict[str, bool]:
    return {str(name): tables.is_words(str(name), table) for name in table}


def without_dull(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without columns that tell nothing: equal counts, and seconds of quick jobs."""
    uninformative = []
    if STEPS in table and table[STEPS].nunique() < 2:
        uninformative.append(STEPS)
    if names.DIVERGED in table and not (table[names.DIVERGED].fillna(0) > 0).any():
        uninformative.append(names.DIVERGED)
    if SECONDS in table and not (table[SECONDS] > MIN_SECONDS).any():
        uninformative.append(SECONDS)
    return table.drop(columns=uninformative)


def _with_pictures(
    cells: Mapping[str, list[RenderableType]],
    summary: pd.DataFrame,
    sweep: Sweep,
    rows: Sequence[Mapping[Any, Any]],
    colors: Sequence[str],
) -> dict[str, list[RenderableType]]:
    """Return columns with a bar of the excess left and a history, beside the number."""
    bars: list[RenderableType] = [
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
    """Return the history of each row's best run as a line of blocks."""
    table = tables.histories(sweep)
    histories = []
    for row in rows:
        metric = compared(row)
        history = table[table["run_id"] == row["run_id"]]
        minimum = 0.0 if metric is not names.TRAIN_COST else row.get(names.MINIMUM.column, np.nan)
        shares = (
            (history[metric.key] - minimum) / start_excess(row)
            if metric.key in history
            else history[:0]
        )
        histories.append(shares.to_numpy(dtype=float))
    complete = [shares for shares in histories if np.isfinite(shares).all() and len(shares) > 1]
    foot = float(np.clip(min((shares.min() for shares in complete), default=1.0), *FOOT_RANGE))
    return [sparkline(shares, foot) for shares in histories]


def sparkline(shares: Any, foot: float) -> str:
    """Return shares of the start's excess as blocks, on a logarithmic scale down to a foot."""
    if len(shares) < 2 or not np.isfinite(shares).all():
        return ""
    sampled = np.linspace(0, len(shares) - 1, PICTURE_WIDTH).round().astype(int)
    heights = 1 - np.log10(np.clip(shares[sampled], foot, 1.0)) / math.log10(foot)
    return "".join(BLOCKS[round(height * (len(BLOCKS) - 1))] for height in heights)


def _print(
    terminal: Console, cells: Mapping[str, list[RenderableType]], holds_text: Mapping[str, bool]
) -> None:
    """Print columns side by side; words stand to the left, numbers to the right."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for column_index, (name, column) in enumerate(cells.items()):
        is_text = holds_text.get(name, True)
        grid.add_column(
            _head(name),
            justify="left" if is_text else "right",
            overflow="fold",
            no_wrap=not is_text,
            # The first column names the row: an id that is broken cannot be copied.
            min_width=None if column_index else min(_width(name, column), terminal.width // 2),
        )
    for row in zip(*cells.values()):
        grid.add_row(*row)
    terminal.print(grid)


def _needed(cells: Mapping[str, list[RenderableType]]) -> int:
    """Return how many columns of a terminal a table takes."""
    return sum(_width(name, column) + GAP for name, column in cells.items())


def _head(name: str) -> str:
    """Return a column's heading, in two lines where it has several words."""
    head = "" if name == BAR else name
    blanks = [position for position, character in enumerate(head) if character == " "]
    if not blanks:
        return head
    middle = min(blanks, key=lambda position: abs(position - len(head) / 2))
    return f"{head[:middle]}\n{head[middle + 1 :]}"


def _width(name: str, column: Sequence[RenderableType]) -> int:
    cells = [PICTURE_WIDTH if isinstance(cell, Bar) else cell_len(str(cell)) for cell in column]
    return max([*map(cell_len, _head(name).split("\n")), *cells])
