"""The verdict of every scheme and step size in one chart, with the predictions drawn in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from normbench import names
from normbench.results.compare.merging import repeated_over
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
Row = dict[Any, Any]


def draw(
    steps: pd.DataFrame, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: a row a scheme, a cell a step size, in the verdict's colour and marker.

    Rows are sorted by 2/L; equal schemes share one.

    steps, schemes: as `step_sizes.draw` takes them; `tags.step_size` of a scheme is its best step
    size, or the one that its study shows.
    """
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


def _cells(
    axis: Any, steps: pd.DataFrame, rows: Sequence[list[Row]], sizes: Any, shape: Shape
) -> set[str]:
    """Colour the cells by verdict and mark each, the shown steps by stars; return what is drawn."""
    words = list(VERDICTS)
    codes = np.full((len(rows), len(sizes)), np.nan)
    marks: dict[str, list[tuple[float, int]]] = {}
    for place, (scheme, *_) in enumerate(rows):
        own = steps[(steps["label"] == scheme["label"]) & steps["verdict"].isin(words)]
        best = number_in(scheme, names.STEP_TAG.column)
        about = zip(own[STEP], own["verdict"], kinds(own, scheme), own[COST])
        for size, verdict, kind, cost in about:
            codes[place, np.searchsorted(sizes, size)] = words.index(verdict)
            is_best = np.isclose(best, size, rtol=1e-5) and verdict not in names.UNRANKED
            is_best = is_best and material.helps(scheme, cost)
            marks.setdefault("best" if is_best else kind, []).append((size, place))
    axis.pcolormesh(
        _edges(sizes),
        np.arange(len(rows) + 1) - 0.5,
        codes,
        cmap=ListedColormap([color for color, _ in VERDICTS.values()]),
        vmin=-0.5,
        vmax=len(words) - 0.5,
    )
    # White between the rows: two neighbours of one verdict stay two schemes.
    for place in range(len(rows) - 1):
        axis.axhline(place + 0.5, color="white", lw=3, label="_between")
    for word, cells in marks.items():
        axis.plot(*zip(*cells), zorder=5, label=f"_{word}", **_mark_of(word, shape))
    return {*marks, *(words[int(code)] for code in codes[~np.isnan(codes)])}


def _limits(axis: Any, place: int, scheme: Row, steps: pd.DataFrame) -> set[str]:
    """Draw 2/L in a scheme's row, and the largest step that converges on its step.

    Over splits the limit may be of a step that does not converge on all of them: it is not
    drawn then.
    """
    span, drawn = [place - 0.46, place + 0.46], set()
    threshold, largest = number_in(scheme, THRESHOLD), number_in(scheme, LARGEST)
    low, high = axis.get_xlim()
    if low <= threshold <= high:
        for color, width in (("white", 4.0), ("black", 1.8)):
            axis.plot([threshold] * 2, span, color=color, lw=width, label="_threshold")
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
            axis.plot([largest] * 2, span, color=color, ls=line, lw=width, label="_largest")
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
    words = [word for word in VERDICTS if word in drawn]
    for word in words:
        color = VERDICTS[word][0]
        cell = Line2D([], [], marker="s", ls="", ms=1.3 * shape.font, color=color, mec="0.6")
        handles.append((cell, Line2D([], [], **_mark_of(word, shape))))
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


def _mark_of(kind: str, shape: Shape) -> dict[str, Any]:
    """Return the mark of a cell: of a verdict, of what it says beside it, or of the best step."""
    marker, color = MARKS[kind]
    size = (0.9 if kind == "best" else 0.5) * shape.font
    return {"marker": marker, "color": color, "ms": size, "ls": "", "mec": "black", "mew": 0.6}


make = material.of_steps(draw)
