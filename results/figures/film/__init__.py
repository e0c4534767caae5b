"""The film of a scheme: key frames as a strip, all frames as a GIF."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results.figures.base import material, style
from normbench.results.figures.base.material import ArraysByLabel
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.film import playing
from normbench.results.figures.film.frames import draw_cost, draw_points, legend_lines, note_text
from normbench.results.figures.film.reel import Reel
from normbench.results.store.runs import Sweep

MIN_PANEL_WIDTH = 1.5  # inches: with narrower panels, key frames stand below one another


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the strip: for each key frame, the points above, the contours of the cost below.

    Args:
        arrays: by label, the arrays of `record=[film]`, see `Reel`.
        schemes: one row for each scheme in order (`label`, `normalizer`); of several schemes with
            a film, only the last is drawn.
        title: the title of the figure.
        shape: the format of the figure.
    """
    label, reel, look = last_film(arrays, schemes)
    with style.figure_style(shape):
        figure, pairs = _panels(len(reel.keys), shape, f"{title}, film of {label}")
        for frame, frame_label, (upper, lower) in zip(reel.keys, reel.arrays["words"], pairs):
            draw_points(upper, reel, frame, shape)
            draw_cost(lower, reel, frame, shape)
            style.name_panel(upper, str(frame_label), look)
            # Texts, not numbers.
            lipschitz, condition, iterations = reel.counters(frame)
            counter_text = (
                f"L {lipschitz}\ncondition number {condition}\niterations to 1%: {iterations}"
            )
            lower.set_title(counter_text, fontsize="small")
        legend_text = "; ".join(legend_lines(reel))
        style.add_note(figure, shape, style.escape_dollars(f"{legend_text}\n{note_text(reel)}"))
    return figure


def last_film(arrays: ArraysByLabel, schemes: pd.DataFrame) -> tuple[str, Reel, style.Look]:
    """Return the last scheme with a film: its label, the film, its look (colour, marker, line).

    Args:
        arrays: by label, the arrays of `record=[film]`, not empty.
        schemes: one row for each scheme in order (`label`, `normalizer`).
    """
    scheme = material.with_arrays(schemes, arrays)[-1]
    return scheme.label, Reel(scheme.arrays), scheme.look


def _panels(count: int, shape: Shape, title: str) -> tuple[Figure, list[tuple[Any, Any]]]:
    """Return a figure and, for each key frame, its panel of the points and that of the cost.

    The two panels of a key frame stand one above the other, and the key frames side by side. If the
    panels would then be narrower than `MIN_PANEL_WIDTH`, each key frame is a row of two panels.

    Args:
        count: the number of key frames.
        shape: the format of the figure.
        title: the title of the figure.
    """
    in_one_row = shape.width / count >= MIN_PANEL_WIDTH
    # Titles, tick labels and axis label of a panel: 4.5 lines of 1.25 font sizes.
    text_height = 4.5 * 1.25 * shape.font / 72  # inches
    width = shape.width / (count if in_one_row else 2)
    # Panels are square; beside its vertical label, a panel is about 0.85 of its column wide.
    figure, axes = style.panels(
        2 * count, shape, title, 0.85 + text_height / width, count if in_one_row else 2
    )
    # The panels come row by row: all upper panels first, or one pair in each row.
    pairs = zip(axes[:count], axes[count:]) if in_one_row else zip(axes[::2], axes[1::2])
    return figure, list(pairs)


def write_animation(
    sweep: Sweep,
    experiment: str,
    stem: Path,
    provenance: Mapping[str, str],
    file_formats: Sequence[str],
) -> list[Path]:
    """Write the film of the last scheme as a GIF, beside the strip; return the files.

    It is called only after `draw` has drawn a film, so that one is recorded.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        stem: the path of the strip without a suffix.
        provenance: the sweep and the command, for the files' metadata.
        file_formats: with `png`, the GIF is written.
    """
    if "png" not in file_formats:
        return []
    rows = material.schemes(sweep, experiment)
    label, reel, _ = last_film(sweep.arrays(rows, "film"), rows)
    title = f"{material.title_of_first_repeat(experiment, rows)}, film of {label}"
    return [playing.write_gif(reel, title, stem.with_name(f"{stem.name}.gif"), provenance)]


make = material.maker_from_arrays("film", draw)
