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

SCHEME, LEFT, SECONDS, STEPS = "scheme", tables.EXCESS_LEFT, "seconds", "steps"
BAR, HISTORY = "left, drawn", "history"
# Columns that give way first on a narrow terminal; what is not among them stays.
GIVE_WAY = (
    *(SECONDS, STEPS, names.DIVERGED, "cost q1", "cost q3", "medians of", "cost"),
    *("converges up to", "test cost", names.RECORDED.key, HISTORY, BAR, "misclassified"),
    *("test misclassified", "verdict"),
)
LONG = 10.0  # seconds: what takes less is of no interest
GAP, PICTURE = 2, 8  # columns between two columns, and of a bar or a history
BLOCKS = "▁▂▃▄▅▆▇█"
FOOT = (1e-6, 1e-1)  # of the start's excess: the lowest and the highest foot of the histories
DARKEST = 0.25  # a darker colour would not be read on a dark terminal: the terminal's own is


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
    if screen.shows_bars(terminal) and LEFT in cells:
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
    cells, words = _texts(table), _are_words(table)
    first = list(takewhile(words.get, cells))
    block = dict.fromkeys(first)
    for name in [name for name in cells if name not in first]:
        if len(block) > len(first) and _needed({key: cells[key] for key in (*block, name)}) > (
            terminal.width
        ):
            _print(terminal, {key: cells[key] for key in block}, words)
            block = dict.fromkeys(first)
        block[name] = None
    _print(terminal, {key: cells[key] for key in block}, words)


def _readable(color: str) -> str:
    """Return a colour that is read on a dark terminal, too: itself, or the terminal's own."""
    red, green, blue = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return color if 0.30 * red + 0.59 * green + 0.11 * blue >= DARKEST else "default"


def _texts(table: pd.DataFrame) -> dict[str, list[RenderableType]]:
    return {name: [Text(cell) for cell in column] for name, column in tables.cells(table).items()}


def _are_words(table: pd.DataFrame) -> dict[str, bool]:
    return {str(name): tables.is_words(str(name), table) for name in table}


def without_dull(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without columns that tell nothing: equal counts, and seconds of quick jobs."""
    dull = []
    if STEPS in table and table[STEPS].nunique() < 2:
        dull.append(STEPS)
    if names.DIVERGED in table and not (table[names.DIVERGED].fillna(0) > 0).any():
        dull.append(names.DIVERGED)
    if SECONDS in table and not (table[SECONDS] > LONG).any():
        dull.append(SECONDS)
    return table.drop(columns=dull)


def _with_pictures(
    cells: Mapping[str, list[RenderableType]],
    summary: pd.DataFrame,
    sweep: Sweep,
    rows: Sequence[Mapping[Any, Any]],
    colors: Sequence[str],
) -> dict[str, list[RenderableType]]:
    """Return columns with a bar of the excess left and a history, beside the number."""
    bars: list[RenderableType] = [
        Bar(1.0, 0.0, min(float(left), 1.0), width=PICTURE, color=color)
        if pd.notna(left)
        else Text("")
        for left, color in zip(summary[LEFT], colors)
    ]
    lines: list[RenderableType] = [
        Text(line, style=color) for line, color in zip(_histories(sweep, rows), colors)
    ]
    pictures = {BAR: bars, HISTORY: lines} if any(map(str, lines)) else {BAR: bars}
    pairs: list[tuple[str, list[RenderableType]]] = []
    for name, column in cells.items():
        pairs += [(name, column), *(pictures.items() if name == LEFT else ())]
    return dict(pairs)


def _histories(sweep: Sweep, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the history of each row's best run as a line of blocks."""
    table = tables.histories(sweep)
    histories = []
    for row in rows:
        metric = compared(row)
        own = table[table["run_id"] == row["run_id"]]
        least = 0.0 if metric is not names.TRAIN_COST else row.get(names.MINIMUM.column, np.nan)
        shares = (own[metric.key] - least) / start_excess(row) if metric.key in own else own[:0]
        histories.append(shares.to_numpy(dtype=float))
    known = [shares for shares in histories if np.isfinite(shares).all() and len(shares) > 1]
    foot = float(np.clip(min((shares.min() for shares in known), default=1.0), *FOOT))
    return [sparkline(shares, foot) for shares in histories]


def sparkline(shares: Any, foot: float) -> str:
    """Return shares of the start's excess as blocks, on a logarithmic scale down to a foot."""
    if len(shares) < 2 or not np.isfinite(shares).all():
        return ""
    places = np.linspace(0, len(shares) - 1, PICTURE).round().astype(int)
    heights = 1 - np.log10(np.clip(shares[places], foot, 1.0)) / math.log10(foot)
    return "".join(BLOCKS[round(height * (len(BLOCKS) - 1))] for height in heights)


def _print(
    terminal: Console, cells: Mapping[str, list[RenderableType]], words: Mapping[str, bool]
) -> None:
    """Print columns side by side; words stand to the left, numbers to the right."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for place, (name, column) in enumerate(cells.items()):
        left = words.get(name, True)
        grid.add_column(
            _head(name),
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=not left,
            # The first column names the row: an id that is broken cannot be copied.
            min_width=None if place else min(_width(name, column), terminal.width // 2),
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
    blanks = [place for place, mark in enumerate(head) if mark == " "]
    if not blanks:
        return head
    middle = min(blanks, key=lambda place: abs(place - len(head) / 2))
    return f"{head[:middle]}\n{head[middle + 1 :]}"


def _width(name: str, column: Sequence[RenderableType]) -> int:
    cells = [PICTURE if isinstance(cell, Bar) else cell_len(str(cell)) for cell in column]
    return max([*map(cell_len, _head(name).split("\n")), *cells])
