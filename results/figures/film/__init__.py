"""The film of a scheme: its key frames as a strip, all frames as a GIF and as an SVG to play."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, style
from normbench.results.figures.base.material import ArraysByLabel
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.film import playing
from normbench.results.figures.film.frames import draw_cost, draw_points, legend, note
from normbench.results.figures.film.reel import Reel
from normbench.results.store.runs import Sweep

NARROWEST = 1.5  # inches of a panel: of narrower ones key frames stand below one another


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the strip: a column a key frame, the points above, the contours of the cost below.

    arrays: by label, what `record=[film]` keeps. schemes: one row a scheme (`label`,
    `normalizer`), in order. The film is that of the last of them.
    """
    label, reel, look = last(arrays, schemes)
    with style.figure_style(shape):
        figure, pairs = _panels(len(reel.keys), shape, f"{title}, film of {label}")
        for frame, word, (upper, lower) in zip(reel.keys, reel.arrays["words"], pairs):
            draw_points(upper, reel, frame, shape)
            draw_cost(lower, reel, frame, shape)
            style.name_panel(upper, str(word), look)
            lipschitz, condition, made = reel.counters(frame)
            told = f"L {lipschitz}\ncondition number {condition}\niterations to 1%: {made}"
            lower.set_title(told, fontsize="small")
        told = "; ".join(legend(reel))
        style.add_note(figure, shape, style.escape_dollars(f"{told}\n{note(reel)}"))
    return figure


def last(arrays: ArraysByLabel, schemes: pd.DataFrame) -> tuple[str, Reel, style.Look]:
    """Return the label, the film and the look of the last scheme that has a film."""
    scheme = material.with_arrays(schemes, arrays)[-1]
    return scheme.label, Reel(scheme.arrays), scheme.look


def _panels(count: int, shape: Shape, title: str) -> tuple[Figure, list[tuple[Any, Any]]]:
    """Return a figure, and a pair of panels for each of some key frames."""
    across = shape.width / count >= NARROWEST
    text = 4.5 * 1.25 * shape.font / 72  # of a panel, beside its square: in lines
    width = shape.width / (count if across else 2)
    figure, axes = style.panels(
        2 * count, shape, title, 0.85 + text / width, count if across else 2
    )
    pairs = zip(axes[:count], axes[count:]) if across else zip(axes[::2], axes[1::2])
    return figure, list(pairs)


def moving(
    sweep: Sweep, experiment: str, stem: Path, facts: Mapping[str, str], kinds: Sequence[str]
) -> list[Path]:
    """Write the film beside the strip: a GIF with PNG, an SVG to play with SVG; return the files.

    stem: the strip's file without its suffix.
    """
    rows = material.schemes(sweep, experiment)
    label, reel, _ = last(sweep.arrays(rows, "film"), rows)
    words, found = f"{material.title_of_first_repeat(experiment, rows)}, film of {label}", []
    if "png" in kinds:
        found.append(playing.gif(reel, words, stem.with_name(f"{stem.name}.gif"), facts))
    if "svg" in kinds:
        found.append(playing.svg(reel, words, stem.with_name(f"{stem.name}-playing.svg"), facts))
    return found


make = material.maker_from_arrays("film", draw)
