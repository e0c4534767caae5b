"""What every step size of every scheme leaves of the excess, its verdict, and the predictions.

The darker a cell, the less is left; where a run diverged there is no excess left to speak of, and
the cell is red. The mark in a cell is its verdict; of more than `CELLS` step sizes a mark stands
for all neighbours of one verdict, on a line as long as they reach.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench import names
from normbench.results.compare.merging import repeated_over
from normbench.results.compare.reached import excess_left, with_lowest_seen
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.style import SCREEN, VERDICTS, Shape
from normbench.results.figures.step_sizes import LARGEST, STEP, THRESHOLD
from normbench.results.store.rows import as_rows, number_in
from normbench.results.words.reasons import EQUAL

COST = names.FINAL_COST.column
# What a cell says beside its verdict: its mark points to the step sizes that do better.
SMALL, LARGE = (
    "too small: not converged below any that converges",
    "too large: ends above the start",
)
MARKS = {
    **{word: (marker, "white") for word, (_, marker) in VERDICTS.items()},
    SMALL: (">", "white"),
    LARGE: ("<", style.BAD),
    "best": ("*", "white"),
}
CELLS = 40  # step sizes that have a mark each
# What is left at most, as the darkness of a cell: its words and its colour.
BANDS = (
    (0.01, "under 1 % left", "#3d3d3d"),
    (0.1, "1 to 10 % left", "#747474"),
    (0.5, "10 to 50 % left", "#a8a8a8"),
    (1.0, "50 to 100 % left", "#d9d9d9"),
    (np.inf, "more than at the start", "#ffffff"),
)
UNKNOWN = ("excess not known", "#c2c2c2")
COLOURS = {words: color for _, words, color in BANDS} | dict([UNKNOWN])
COLOURS |= {names.BY_ROUNDING: "#ffffff", names.DIVERGED: style.BAD}
COLOURS |= {names.FAILED: VERDICTS[names.FAILED][0]}
Row = dict[Any, Any]


def draw(
    steps: pd.DataFrame, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a row a scheme, a cell a step size, dark by what is left.

    Rows are sorted by 2/L; equal schemes share one.

    steps, schemes: as `step_sizes.draw` takes them; `tags.step_size` of a scheme is its best step
    size, or the one that its study shows.
    """
    schemes = with_lowest_seen(schemes)
    rows = together(steps, schemes)
    words = [style.equal_names([str(row["label"]) for row in same]) for same in rows]
    lines = max([2, *(name.count("\n") + 1 for name in words)])
    height = (len(rows) + 1) * lines * 1.05 * shape.font / 72 + 0.9 * shape.font / 10
    with style.drawn(shape):
        figure, (axis,) = style.panels(1, shape, title, height / shape.width)
        sizes = np.unique(steps[STEP])
        axis.set_xscale("log")
        axis.grid(False)
        axis.set_xlim(_edges(sizes)[0], _edges(sizes)[-1])
        drawn = _cells(axis, steps, rows, sizes, shape)
        for place, (scheme, *_) in enumerate(rows):
            drawn |= _limits(axis, place, scheme, steps)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_yticks(range(len(rows)), [style.plain(name) for name in words])
        ticks.log_ticks(axis.xaxis)
        axis.set_xlabel("step size")
        _legend(figure, drawn, schemes, shape)
        if over := repeated_over(schemes):
            rule = (
                "the worst verdict, the smallest step up to which all converge, the median of 2/L"
            )
            style.note(figure, shape, f"over {over[-1]}: {rule}")
    return figure


def kinds(own: pd.DataFrame, scheme: Row) -> list[str]:
    """Return what each step size of a scheme is: its verdict, too small, or too large.

    Too large is one that stays finite and ends above the start; too small one that is not converged
    below all that converge, or, where none does, below the one that ends lowest. Where rounding
    decides the end, that is all that is said.
    """
    converged = own.loc[own["verdict"] == names.CONVERGED, STEP]
    costs = own[COST].where(~own["verdict"].isin(names.UNRANKED)).astype(float)
    start = number_in(scheme, material.START)
    above = costs - start > names.TIED * abs(start)
    if len(converged):
        least = float(converged.min())
    else:
        least = float(own.loc[costs.idxmin(), STEP]) if costs.notna().any() else 0.0
    small = (own["verdict"] == names.NOT_CONVERGED).to_numpy() & (own[STEP] < least).to_numpy()
    return [
        LARGE if high else SMALL if low else str(verdict)
        for verdict, high, low in zip(own["verdict"], above, small)
    ]


def together(steps: pd.DataFrame, schemes: pd.DataFrame) -> list[list[Row]]:
    """Return schemes by increasing 2/L, equal ones together.

    Equal in all that is drawn, and in the final costs of every step size up to 2/L that rounding
    does not decide: above it a descent may make anything of its rounding.
    """
    found: list[tuple[Any, list[Row]]] = []
    order = schemes.sort_values(THRESHOLD, kind="stable") if THRESHOLD in schemes else schemes
    for row in as_rows(order):
        own = steps[steps["label"] == row["label"]].sort_values(STEP)
        threshold = number_in(row, THRESHOLD)
        known = not np.isnan(threshold)
        seen = [row.get(names.STEP_TAG.column), *own[STEP], *kinds(own, row)]
        steady = own[own[STEP] <= threshold] if known else own
        costs = steady[COST].where(steady["verdict"] != names.BY_ROUNDING).fillna(np.inf)
        numbers = np.array([*([threshold] if known else []), *costs], dtype=float)
        for (other_seen, other), same in found:
            alike = seen == other_seen and len(numbers) == len(other)
            if alike and np.allclose(numbers, other, rtol=EQUAL, atol=0):
                same.append(row)
                break
        else:
            found.append(((seen, numbers), [row]))
    return [same for _, same in found]


def _edges(sizes: Any) -> Any:
    """Return the edges of cells that have the sizes at their middles, on a log axis."""
    logs = np.log10(sizes)
    if len(logs) == 1:
        return np.array([sizes[0] / 3, sizes[0] * 3])
    middles = (logs[1:] + logs[:-1]) / 2
    ends = [logs[0] - (middles[0] - logs[0])], [logs[-1] + (logs[-1] - middles[-1])]
    return 10 ** np.concatenate([ends[0], middles, ends[1]])


def band(step: Row, scheme: Row) -> str:
    """Return what the colour of a step size's cell says."""
    if step["verdict"] in (*names.UNRANKED, names.FAILED):
        return str(step["verdict"])
    left = excess_left(step, scheme)
    if np.isnan(left):
        return UNKNOWN[0]
    return next(words for most, words, _ in BANDS if left <= most + names.TIED)


def _cells(
    axis: Any, steps: pd.DataFrame, rows: Sequence[list[Row]], sizes: Any, shape: Shape
) -> set[str]:
    """Colour the cells and mark each, the shown steps by stars; return what is drawn."""
    words = list(COLOURS)
    codes = np.full((len(rows), len(sizes)), np.nan)
    marks: dict[str, list[tuple[float, int]]] = {}
    for place, (scheme, *_) in enumerate(rows):
        own = steps[(steps["label"] == scheme["label"]) & steps["verdict"].isin(list(VERDICTS))]
        own = own.sort_values(STEP)
        best = number_in(scheme, names.STEP_TAG.column)
        about = []
        for row, kind in zip(as_rows(own), kinds(own, scheme)):
            size, verdict = row[STEP], row["verdict"]
            codes[place, np.searchsorted(sizes, size)] = words.index(band(row, scheme))
            is_best = np.isclose(best, size, rtol=1e-5) and verdict not in names.UNRANKED
            is_best = is_best and material.helps(scheme, row[COST])
            about.append((size, "best" if is_best else kind))
        for size, kind in about if len(sizes) <= CELLS else _spans(axis, about, place):
            marks.setdefault(kind, []).append((size, place))
    axis.pcolormesh(
        _edges(sizes),
        np.arange(len(rows) + 1) - 0.5,
        codes,
        cmap=ListedColormap(list(COLOURS.values())),
        vmin=-0.5,
        vmax=len(words) - 0.5,
    )
    # White between the rows: two neighbours of one colour stay two schemes.
    for place in range(len(rows) - 1):
        axis.axhline(place + 0.5, color="white", lw=3, label="_between")
    for word, cells in marks.items():
        axis.plot(*zip(*cells), zorder=5, clip_on=False, label=f"_{word}", **_mark_of(word, shape))
    return {*marks, *(words[int(code)] for code in codes[~np.isnan(codes)])}


def _spans(axis: Any, about: Sequence[tuple[float, str]], place: int) -> list[tuple[float, str]]:
    """Draw a line as long as neighbours of one kind reach; return the middle one of each."""
    middles = []
    for kind, group in groupby(about, key=lambda pair: pair[1]):
        sizes = [size for size, _ in group]
        if len(sizes) > 1:
            ends = [sizes[0], sizes[-1]]
            axis.plot(ends, [place] * 2, color="black", lw=2.6, zorder=4, label="_span")
            axis.plot(ends, [place] * 2, color="white", lw=1.4, zorder=4, label="_span")
        middles.append((sizes[len(sizes) // 2], kind))
    return middles


def _limits(axis: Any, place: int, scheme: Row, steps: pd.DataFrame) -> set[str]:
    """Draw 2/L in the upper half of a scheme's row, the largest converged step in the lower.

    So neighbours are told apart. Over splits the limit may be of a step that does not converge on
    all of them: it is not drawn then.
    """
    upper, lower, drawn = [place - 0.46, place], [place, place + 0.46], set()
    threshold, largest = number_in(scheme, THRESHOLD), number_in(scheme, LARGEST)
    low, high = axis.get_xlim()
    if low <= threshold <= high:
        for color, width in (("white", 4.0), ("black", 1.8)):
            axis.plot([threshold] * 2, upper, color=color, lw=width, label="_threshold")
        drawn.add(THRESHOLD)
    elif threshold > high:
        beside = axis.get_yaxis_transform()
        _note(axis, f"2/L = {ticks.short(threshold)} →", 1, place, "right", xycoords=beside)
    elif threshold < low:
        beside = axis.get_yaxis_transform()
        _note(axis, f"← 2/L = {ticks.short(threshold)}", 0, place, xycoords=beside)
    own = steps[(steps["label"] == scheme["label"]) & (steps["verdict"] == names.CONVERGED)]
    if np.isclose(own[STEP].astype(float), largest, rtol=1e-5).any():
        for color, line, width in (("white", "-", 3.0), ("black", ":", 1.5)):
            axis.plot([largest] * 2, lower, color=color, ls=line, lw=width, label="_largest")
        drawn.add(LARGEST)
        if scheme.get(names.CENSORED.column) == "true":
            _note(axis, ">=", largest, place)
    return drawn


def _note(axis: Any, words: str, x: float, place: int, side: str = "left", **at: Any) -> None:
    """Write at the foot of a row; side: of the words, which stands at x."""
    axis.annotate(
        words,
        (x, place + 0.46),
        xytext=(3 if side == "left" else -3, 1),
        textcoords="offset points",
        ha=side,
        va="bottom",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        **at,
    )


def _legend(figure: Figure, drawn: set[str], schemes: pd.DataFrame, shape: Shape) -> None:
    """Name what is drawn, and nothing else."""
    handles: list[Any] = []
    words = [word for word in COLOURS if word in drawn and word not in VERDICTS]
    for word in words:
        handles.append(_cell(COLOURS[word], shape))
    for word in (word for word in VERDICTS if word in drawn):
        mark = Line2D([], [], **_mark_of(word, shape))
        words.append(word)
        handles.append((_cell(COLOURS[word], shape), mark) if word in COLOURS else mark)
    marks = {SMALL: SMALL, LARGE: LARGE, "best": material.best_words(schemes)}
    others = [(kind, name, _mark_of(kind, shape)) for kind, name in marks.items()]
    others += [
        (THRESHOLD, "2/L, predicted", {"color": "black", "lw": 1.8}),
        (LARGEST, "largest step that converges", {"color": "black", "ls": ":", "lw": 1.5}),
    ]
    for kind, name, look in others:
        if kind in drawn:
            words.append(name)
            handles.append(Line2D([], [], **look))
    style.legend(figure, shape, handles, words)


def _cell(color: str, shape: Shape) -> Line2D:
    return Line2D([], [], marker="s", ls="", ms=1.3 * shape.font, color=color, mec="0.6")


def _mark_of(kind: str, shape: Shape) -> dict[str, Any]:
    """Return the mark of a cell: of a verdict, of what it says beside it, or of the best step."""
    marker, color = MARKS[kind]
    size = (0.9 if kind == "best" else 0.5) * shape.font
    return {"marker": marker, "color": color, "ms": size, "ls": "", "mec": "black", "mew": 0.6}


make = material.of_steps(draw)
