"""Each mark of a legend is one that is drawn: its marker, its line and its colour."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle

from normbench import names
from normbench.results.figures import (
    biplot,
    data,
    drawing,
    phase_diagram,
    projection,
    step_sizes,
    windows,
)
from tests.results.figures import test_dial, test_overview
from tests.results.figures.test_landmarks import POINTS, of_data
from tests.results.figures.test_step_figures import SHADOWS, SIZES, scheme, table

Look = tuple[Any, str, str]  # the outline of the marker, the style of the line, the colour
SQUARE = "s"
# Marks in grey that stand for the colours of all schemes, all classes or all shares.
OF_EVERY_COLOR = {
    *("points", "what the scheme keeps of them", "finer step sizes", "best step"),
    *("dark: much of the excess cost lies there", "outlined: at the end"),
}


def outline(marker: Any) -> tuple[float, ...]:
    """Return the outline of a marker, equal for all names and paths of one shape."""
    style = MarkerStyle(marker)
    vertices = style.get_path().transformed(style.get_transform()).vertices
    return tuple(np.round(vertices, 3).ravel())


def line_look(line: Line2D) -> Look:
    """Return the look of a line, or of the marks of a line that is not drawn itself."""
    has_line = line.get_linestyle() not in ("None", "", " ")
    color = line.get_color() if has_line else line.get_markerfacecolor()
    hollow = isinstance(color, str) and color == "none"
    return (
        outline(line.get_marker()),
        line.get_linestyle() if has_line else "None",
        to_hex(line.get_markeredgecolor() if hollow else color),
    )


def drawn_looks(artist: Artist) -> Iterator[Look]:
    """Yield the looks of what an artist draws; areas are shown as squares in a legend."""
    if isinstance(artist, Line2D):
        yield line_look(artist)
    elif isinstance(artist, PathCollection):
        vertices = tuple(np.round(artist.get_paths()[0].vertices, 3).ravel())
        yield from ((vertices, "None", to_hex(color)) for color in artist.get_facecolors())
    elif isinstance(artist, Collection):
        artist.update_scalarmappable()
        looks = [*artist.get_facecolors(), *artist.get_edgecolors()]
        yield from ((outline(SQUARE), "None", to_hex(color)) for color in looks)


def of_points(module: Any, **more: Any) -> Any:
    """Return a figure of two schemes' points in two classes."""
    arrays = of_data(POINTS) | more
    rows = pd.DataFrame({"label": ["a", "b"], "normalizer": ["identity", "standard"]})
    return module.draw({"a": arrays, "b": arrays}, rows, "")


def of_steps(module: Any, censored: str) -> Any:
    """Return a figure with every verdict, 2/L, the largest step that converges and a best one."""
    verdicts = ["not converged", "converged", names.BY_ROUNDING, "diverged"]
    others = ["cycling", "converged", "not converged", "not converged"]
    steps = pd.concat(
        [table("a", verdicts, [0.9, 0.1, 0.2, np.nan]), table("b", others, [0.5, 0.1, 3.0, 900.0])]
    )
    limits = {step_sizes.LARGEST_CONVERGENT: 0.1, names.CENSORED.column: censored}
    rows = pd.DataFrame([scheme(label, 2.0, best="0.1", **limits) for label in "ab"])
    if module is phase_diagram:
        return module.draw(steps, rows, "")
    refined = {"refined_step_sizes": np.array([0.2]), "refined_cost": np.full((1, 1, 5), 0.05)}
    arrays = {"step_sizes": np.array(SIZES), "shadows": SHADOWS, **refined}
    return module.draw(steps, rows, "", {"a": arrays, "b": arrays})


def of_windows() -> Any:
    """Return a figure of two directions, with the windows at the end and every limit."""
    steps = table("a", ["not converged", "converged", "cycling", "diverged"], [0.9, 0.1, 0.2, 0.3])
    known = {names.setting("iterations"): "20", names.MINIMUM.column: 0.0}
    known |= {names.target("1e-1").column: 0.1}
    rows = pd.DataFrame([scheme("a", 2.0, best="0.1", **known)])
    arrays = {windows.WINDOW_CURVATURE: np.array([5.0, 1.0]), windows.WINDOW_SHARE: np.ones(2)}
    arrays |= {windows.WINDOW_TIMES: np.ones(2, int), windows.BEST_CURVATURES: np.array([4.0, 1.0])}
    return windows.draw({"a": arrays}, rows, steps, "")


FIGURES = {
    "biplot": lambda: of_points(biplot, loadings=np.eye(2), shares=np.array([0.9, 0.1])),
    "data": lambda: of_points(data),
    "projection": lambda: of_points(
        projection, kept=np.array(2), lost=np.array(0.0), back=POINTS + 0.1
    ),
    "dial": lambda: drawing.figure(test_dial.sweep(), "x", "dial"),
    "overview": lambda: drawing.figure(test_overview.sweep(), "x", "overview"),
    "step_sizes": lambda: of_steps(step_sizes, "false"),
    "step_sizes, censored": lambda: of_steps(step_sizes, "true"),
    "phase_diagram": lambda: of_steps(phase_diagram, "false"),
    "windows": of_windows,
}


@pytest.mark.parametrize("name", FIGURES)
def test_each_mark_of_a_legend_is_drawn(name):
    figure = FIGURES[name]()
    drawn = {
        look
        for axis in figure.axes
        for artist in axis.get_children()
        for look in drawn_looks(artist)
    }
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(legend.legend_handles) > 1
    for text, handles in zip(texts, legend.legend_handles, strict=True):
        for handle in handles if isinstance(handles, list) else [handles]:
            length = 2 if text in OF_EVERY_COLOR else 3
            assert line_look(handle)[:length] in {look[:length] for look in drawn}, text
