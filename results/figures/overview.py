"""Every problem of a sweep at once: what each scheme leaves of the excess, and how fast it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench import names
from normbench.results.compare import comparisons, problems
from normbench.results.compare.merging import merged, unmerged
from normbench.results.compare.reached import counts, excess_shown, reached
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

TARGET = "1e-2"
BELOW = 6.5  # heights of a letter: ticks and what an axis is, of two lines each
UNREACHED, UNKNOWN = "not reached", "not known"
# What stands beyond the numbers, in this order.
BEYOND = (UNREACHED, UNKNOWN, names.DIVERGED, names.FAILED)
COUNTED = "*: misclassified points are compared instead, because the costs are not comparable"
OWN = "each scheme minimizes another function: shares are of its own excess cost"
QUARTILES = "lines: quartiles over the splits"


def table(sweep: Sweep) -> pd.DataFrame:
    """Return one row a problem and scheme, those of jobs with a descent.

    excess: the share of the excess that is left at the step size that stands for the scheme, as in
    `tables.summary`, NaN where it is not known; median, q1, q3: iterations to the target, as in
    `comparisons.spread`, infinite for never. counted: whether misclassified points stand for it.
    """
    places = problems.scheme_runs([unmerged(sweep)])[["run_id", *problems.SCHEME_COLUMNS]]
    own = merged(sweep).of_role(names.SCHEME)
    own = own[[name for name in own if name not in ("setting", "scheme")]]
    rows = places.merge(own, on=["run_id", "experiment"])
    spread = comparisons.spread(reached([unmerged(sweep)], TARGET))
    if "setting" not in spread:
        spread = spread.assign(setting="")
    times = spread[[*problems.SCHEME_COLUMNS, "median", "q1", "q3"]]
    rows = rows.merge(times, on=problems.SCHEME_COLUMNS, how="left").assign(counted=counts)
    solved = rows["counted"]
    if names.MINIMUM_REACHED.column in rows:
        solved = solved | (rows[names.MINIMUM_REACHED.column] == "true")
    left = [excess_shown(row, row) for row in as_rows(rows)]
    return rows.assign(excess=pd.Series(left, rows.index, dtype=float).where(solved))


def draw(
    rows: pd.DataFrame,
    title: str,
    which: str = "best",
    notes: Sequence[str] = (),
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: the excess left, and the iterations to the target, on log axes.

    rows: from `table`, with `problem`, the words for a problem: each has a band, and in it a line
    a scheme. What is no number stands beside the numbers, in columns of its own. which: step size
    of each scheme, `best` or `shown`.
    """
    looks = style.looks_of(rows)
    bands = [(str(name), own) for name, own in rows.groupby("problem", sort=False)]
    side = shape.width / min(2, shape.columns)
    words = [style.broken(name, 0.36 * side, shape.font) for name, _ in bands]
    lines = sum(len(own) + 1 for _, own in bands)
    tallest = max(word.count("\n") + 2 for word in words)
    each = max(0.85, 1.2 * tallest / (len(looks) + 1)) * shape.font / 72  # inches
    height = each * lines + BELOW * shape.font / 72
    with style.drawn(shape):
        figure, axes = style.panels(2, shape, title, height / side, sharey=True)
        _panel(axes[0], bands, looks, ("excess",), names.TIED, shape)
        _panel(axes[1], bands, looks, ("median", "q1", "q3"), 0.0, shape)
        axes[0].set_ylim(lines - 0.5, -1)
        axes[0].set_yticks([place.mean() for place in _places(bands)], map(style.plain, words))
        axes[0].set_xlabel(f"share of the excess cost left (start: 1)\nat the {which} step size")
        axes[1].set_xlabel(
            f"iterations until {float(TARGET):.0%} of the excess cost is left\n"
            "at the best step size for that"
        )
        marks = [_mark(look, shape, label=style.plain(name)) for name, look in looks.items()]
        style.legend(figure, shape, marks)
        if notes:
            style.note(figure, shape, "\n".join(notes))
    return figure


def _places(bands: Sequence[tuple[str, pd.DataFrame]]) -> list[Any]:
    """Return the heights of the lines of each band, with one between two bands."""
    sizes = [len(own) for _, own in bands]
    firsts = np.cumsum([0, *(size + 1 for size in sizes)])
    return [first + np.arange(size) for first, size in zip(firsts, sizes)]


def _mark(look: Look, shape: Shape, **more: Any) -> Line2D:
    size = 0.6 * shape.font
    return Line2D([], [], ls="", color=look.color, marker=look.marker, ms=size, **more)


def _panel(
    axis: Any,
    bands: Sequence[tuple[str, pd.DataFrame]],
    looks: Mapping[str, Look],
    columns: Sequence[str],
    floor: float,
    shape: Shape,
) -> None:
    """Draw one number of every problem and scheme, with its quartiles where there are any.

    columns: of the number and its quartiles; what is at most `floor` is told as that.
    """
    rows = pd.concat([own for _, own in bands])
    known = [word(row, column, floor) for row in as_rows(rows) for column in columns]
    spots = np.array(_scale(axis, rows[list(columns)].to_numpy(dtype=float).ravel(), known))
    heights = np.concatenate(_places(bands))
    for row, own, said, height in zip(
        as_rows(rows),
        spots.reshape(len(rows), -1),
        known[:: len(columns)],
        heights,
    ):
        look = looks[row["scheme"]]
        mark = _mark(look, shape, label="_value", mfc="none" if said in BEYOND else look.color)
        mark.set_data([own[0]], [height])
        axis.add_line(mark)
        if own.min() < own.max():
            axis.plot(own[1:], [height] * 2, color=look.color, lw=1, label="_quartiles")
    for band in _places(bands)[:-1]:
        axis.axhline(band[-1] + 1, color="0.85", lw=0.8, label="_between")
    axis.grid(False, axis="y")
    axis.tick_params(axis="y", length=0)


def word(row: Mapping[Any, Any], column: str, floor: float) -> str:
    """Return what stands for a number that a logarithmic axis does not have; empty for others."""
    value = float(row[column])
    if not np.isfinite(value) and row["verdict"] in (names.DIVERGED, names.FAILED):
        return str(row["verdict"])
    if not np.isfinite(value):
        return UNKNOWN if np.isnan(value) else UNREACHED
    return "" if value > floor else f"under {ticks.power_text(floor)}" if floor else "0"


def _scale(axis: Any, values: Any, words: Sequence[str]) -> list[float]:
    """Set a log axis with a column beside it for each word; return where each value stands."""
    numbers = [value for value, word in zip(values, words) if not word]
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 1.0)
    room = 1.3 * (high / low) ** 0.04
    low, high = low / room, high * room
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    ticks.log_ticks(axis.xaxis, most=5)
    marks = list(axis.get_xticks()) if numbers else []
    texts = [label.get_text() for label in axis.get_xticklabels()] if numbers else []
    wide = max(high / low, 10.0) ** 0.17
    right = [word for word in BEYOND if word in words]
    left = [word for word in dict.fromkeys(words) if word and word not in BEYOND]
    places = {word: high * wide ** (number + 0.5) for number, word in enumerate(right)}
    places |= dict.fromkeys(left, low / wide**0.5)
    axis.set_xlim(low / wide ** len(left), high * wide ** len(right))
    near = wide**0.25  # of an edge: a number there would touch the word beyond
    ends = low * (near if left else 1), high / (near if right else 1)
    seen = [(tick, text) for tick, text in zip(marks, texts) if ends[0] <= tick <= ends[1]]
    marks, texts = map(list, zip(*seen)) if seen else ([], [])
    broken = [word.replace(" ", "\n") for word in places]
    axis.set_xticks([*marks, *places.values()], [*texts, *broken])
    for edge in [high] * bool(right) + [low] * bool(left):
        axis.axvline(edge, color="0.6", lw=0.8, label="_edge")
    return [places.get(word, value) for value, word in zip(values, words)]


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of a whole sweep, whatever the experiment; None for a single problem."""
    rows = table(sweep)
    count = len(rows[problems.PROBLEM_COLUMNS].drop_duplicates())
    if count < 2:
        return None
    titles = {name: material.title(str(name), own) for name, own in rows.groupby("experiment")}
    rows["problem"] = [
        ", ".join(filter(None, [titles[experiment], setting])) + "*" * counted
        for experiment, setting, counted in zip(
            rows["experiment"], rows["setting"], rows["counted"]
        )
    ]
    title = ", ".join(filter(None, [f"{count} problems", problems.budget(rows)]))
    which = sweep.which_step()
    return draw(rows, title, which, _notes(rows), shape=options.shape)


def _notes(rows: pd.DataFrame) -> list[str]:
    """Return what has to be known of the numbers."""
    apart = (rows["q1"] < rows["q3"]).any()
    told = (COUNTED, rows["counted"].any()), (OWN, problems.own_functions(rows)), (QUARTILES, apart)
    return [words for words, holds in told if holds]
