"""The schemes of a picture of layers: which are drawn, what is said of each, and of the others."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.figures.base import ticks
from normbench.results.figures.base.material import Arrays
from normbench.results.figures.melt.layers import THIN, Layers, of_parts
from normbench.results.figures.windows import GUESSED
from normbench.results.store.rows import as_rows, number_in

MOST = 6  # schemes in a picture
PEAK = 1.02  # of the start's excess: a history that rises further is said to
TIED = 1e-6  # of the excess: schemes whose pictures differ by less are one
NOT_KEPT = "recorded without layers (reuse=false descends again)"


class Melt(NamedTuple):
    """A scheme that is drawn: its label, its row, its layers, the step size shown.

    decided: of each step size tried, whether rounding decides where its run ends.
    """

    label: str
    row: Mapping[Any, Any]
    layers: Layers
    step: float
    decided: NDArray[np.bool_]

    @property
    def edge(self) -> NDArray[np.float64]:
        """The excess history at the step size shown, `(K + 1,)`."""
        run = self.layers.run(self.step)
        assert run is not None
        return self.layers.excess[run]

    @property
    def firm_profile(self) -> NDArray[np.float64]:
        """What step sizes leave of the start's excess, without those that rounding decides."""
        profile: NDArray[np.float64] = self.layers.profile
        return profile if self.layers.exact else profile[~self.decided]


def melts(arrays: Arrays, schemes: pd.DataFrame, steps: pd.DataFrame) -> list[Melt]:
    """Return the schemes that can be drawn, in the order of their rows."""
    every = []
    for row in as_rows(schemes):
        layers = of_parts(arrays[row["label"]]) if row["label"] in arrays else None
        step = number_in(row, names.STEP_TAG.column)
        if layers is None or layers.run(step) is None:
            continue
        own = steps[steps["label"] == row["label"]]
        decided = own[own["verdict"] == names.BY_ROUNDING][names.STEP_SIZE.column].astype(float)
        places = [place for size in decided if (place := layers.run(size)) is not None]
        every.append(
            Melt(row["label"], row, layers, step, np.isin(np.arange(len(layers.sizes)), places))
        )
    return every


def reasons(schemes: pd.DataFrame, drawn: Sequence[str]) -> dict[str, str]:
    """Return why each scheme that is not drawn has no picture, by its label."""
    return {row["label"]: _reason(row) for row in as_rows(schemes) if row["label"] not in drawn}


def _reason(row: Mapping[Any, Any]) -> str:
    """Return why a scheme has no picture."""
    tagged, note = row.get(names.NO_LAYERS.column), row.get(names.NOTE.column)
    if row["verdict"] == names.DIVERGED:
        return "it diverged at every step size"
    if isinstance(tagged, str) and tagged:
        return tagged
    if pd.isna(row.get(names.STEP_TAG.column)):
        return "it has no best step size"
    if row.get(names.setting("theory")) == "none":
        return "theory=none"
    for part in str(note).split("; "):
        skipped, _, why = part.partition(" skipped: ")
        if why and "melt" in skipped.split(", "):
            return f"{why} (theory=full asks for it)"
    return NOT_KEPT


def merged(every: Sequence[Melt]) -> list[Melt]:
    """Return schemes, those of one picture as one, with all their labels."""
    kept: list[Melt] = []
    for melt in every:
        for place, other in enumerate(kept):
            if _same(melt, other):
                kept[place] = other._replace(label=f"{other.label} = {melt.label}")
                break
        else:
            kept.append(melt)
    return kept


def _same(one: Melt, other: Melt) -> bool:
    """Return whether two schemes have one picture, where rounding does not decide it."""
    near: Any = {"rtol": 0, "atol": TIED, "equal_nan": True}
    pairs = ((one.edge, other.edge), (one.firm_profile, other.firm_profile))
    return (
        one.step == other.step
        and np.array_equal(one.decided, other.decided)
        and all(a.shape == b.shape and np.allclose(a, b, **near) for a, b in pairs)
    )


def chosen(every: Sequence[Melt], most: int = MOST) -> tuple[list[Melt], list[Melt]]:
    """Return so many schemes, and the rest.

    The first, which the others are compared with, and others evenly from the least to the most
    excess left.
    """
    if len(every) <= most:
        return list(every), []
    ranked = sorted(range(1, len(every)), key=lambda n: (every[n].edge[-1], n))
    evenly = np.linspace(0, len(ranked) - 1, most - 1).round().astype(int)
    wanted = {0, *(ranked[place] for place in evenly)}
    return (
        [melt for n, melt in enumerate(every) if n in wanted],
        [melt for n, melt in enumerate(every) if n not in wanted],
    )


def percent(share: float) -> str:
    """Return a share of the excess as a person reads it: 67 %, 1.9 %, 0 %."""
    if not np.isfinite(share):
        return "gone off"
    if share < TIED:
        return "0 %"
    if share >= 100:
        return f"{ticks.short(100 * float(f'{share:.2g}'))} %"
    if share < 1e-4:
        return "<0.01 %"
    digits = f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}"
    return f"{digits} %"


def _short(value: float) -> str:
    """Return a step size of two digits: 6·10⁻⁷, 10⁻⁵, 0.075."""
    return ticks.short(float(f"{value:.2g}")).removeprefix("1·")


def sentence(melt: Melt, best: str) -> str:
    """Return what stands above a scheme's panels; best: how its step size is called."""
    layers = melt.layers
    count, gone = len(layers.distinct), layers.gone(melt.step)
    end = (
        f"at the {best} step, {_short(melt.step)}, {gone} "
        f"of {count} layer{'s' * (count != 1)} {'is' if gone == 1 else 'are'} gone"
    )
    peak = float(np.nanmax(melt.edge))
    if peak > PEAK:
        end += f", after a peak of {percent(peak)}"
    if layers.exact:
        limit = 2 / layers.curvature[0]
        stiffest = np.add.reduceat(layers.share, layers.distinct)[0]
        why = f" because of a layer of {percent(stiffest)}" if stiffest < 0.2 else ""
        return f"diverges above 2/L = {_short(limit)}{why}; {end}"
    firm = np.flatnonzero(~melt.decided)
    firm = firm[np.argsort(layers.sizes[firm])]
    below = layers.excess[firm, -1] <= 1
    if below.all() and not melt.decided.any():
        return f"ends below its start at every step size tried; {end}"
    count = len(firm) if below.all() else int(np.argmin(below))
    if not count:
        return f"ends above its start from the smallest step size tried on; {end}"
    return f"ends below its start up to step {_short(layers.sizes[firm[count - 1]])}; {end}"


def notes(rows: Sequence[Melt], rest: Sequence[Melt], lacking: Mapping[str, str]) -> list[str]:
    """Return what is said below the panels."""
    caption = (
        "Each layer is a direction of the cost (an eigenvector of its Hessian at the start), the "
    )
    caption += "most curved on top, as thick as the excess cost to be removed along it. "
    if all(melt.layers.exact for melt in rows):
        iterations = {melt.layers.iterations for melt in rows}
        power = f"{2 * iterations.pop()}" if len(iterations) == 1 else "(2 iterations)"
        caption += "Its colour is what the iterations at that step size leave of it, "
        caption += f"|1 - step size x curvature|^{power}. "
    else:
        caption += "Its colour is what is left of it after the run at that step size. "
        caption += "Dotted: 2/h at the start, for a layer of curvature h. "
    caption += "The colours along the thick line are what the right panel ends with."
    if any(len(melt.layers.drawn) < len(melt.layers.distinct) for melt in rows):
        caption += f" Neighbours of under {THIN:.1%} each are merged.".replace("%", " %")
    notes = [caption]
    starts = {str(melt.row.get(names.setting("start"))) for melt in rows}
    if starts - {"zeros", "None"}:
        notes.append("The excess cost is that of each scheme's own start.")
    guessed = [m.label for m in rows if m.row.get(names.MINIMUM_REACHED.column) == "false"]
    if guessed:
        notes.append(f"{', '.join(guessed)}: {GUESSED}.")
    if rest:
        others = ", ".join(f"{melt.label} {percent(melt.edge[-1])}" for melt in rest)
        notes.append(f"Not drawn, with the excess cost left: {others}.")
    by_reason: dict[str, list[str]] = {}
    for label, reason in lacking.items():
        by_reason.setdefault(reason, []).append(label)
    return notes + [f"No picture of {', '.join(own)}: {why}." for why, own in by_reason.items()]
