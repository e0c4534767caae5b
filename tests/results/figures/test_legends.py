"""Each mark of a legend is one that is drawn: its marker, its line and its colour."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.artist import Artist
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import PathPatch, Rectangle

from normbench import names
from normbench.results.figures import (
    biplot,
    data,
    drawing,
    film,
    phase_diagram,
    projection,
    step_sizes,
    windows,
)
from normbench.results.figures.base import style
from normbench.results.store.looks import look
from tests.results.figures import test_batch_sizes, test_dial, test_overview
from tests.results.figures.pictures import film_arrays, of_layers
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
    "batch_sizes": lambda: drawing.figure(test_batch_sizes.sweep(3, 4, 30), "x", "batch_sizes"),
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


def test_a_curve_over_batches_has_its_schemes_mark_in_every_panel():
    """The legend is made of one panel's curves: with these it agrees whatever they look like."""
    figure = FIGURES["batch_sizes"]()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["pca_sphere", "standard"]
    for label, handle in zip(labels, figure.legends[0].legend_handles, strict=True):
        wanted = look(label)
        expected = outline(wanted.marker), wanted.line, to_hex(wanted.color)
        assert line_look(handle) == expected
        for axis in figure.axes:
            (curve,) = [line for line in axis.get_lines() if line.get_label() == label]
            assert line_look(curve) == expected


def squares(figure: Any) -> dict[str, Rectangle]:
    """Return the squares of the legend of layers, each by the text at its right."""
    labelled = {}
    for square in figure.artists:
        assert isinstance(square, Rectangle)
        right, top = square.get_x() + square.get_width(), square.get_y() + square.get_height()
        beside = [
            text
            for text in figure.texts
            if np.isclose(text.get_position()[1], top) and text.get_position()[0] > right
        ]
        labelled[min(beside, key=lambda text: text.get_position()[0]).get_text()] = square
    return labelled


# Columns of pixels of the steps' panel: its lowest step size melts nothing, its largest diverges.
LOWEST, LARGEST, FLATTEST = 0, -1, -1


def test_a_step_size_that_rounding_decides_has_the_colour_of_its_square():
    """It is the least step size of three: the left third of the panel."""
    assert names.BY_ROUNDING not in squares(of_layers(style.SCREEN, measured=False))
    figure = of_layers(style.SCREEN, measured=True)
    color = np.multiply(to_rgb(squares(figure)[names.BY_ROUNDING].get_facecolor()), 255)
    pixels = figure.axes[0].images[0].get_array().astype(int)
    is_drawn = (np.abs(pixels - color).max(axis=2) <= 1).all(axis=0)
    third = len(is_drawn) // 3
    assert is_drawn[: third - 1].all()
    assert not is_drawn[third + 1 :].any()


def test_the_squares_of_the_layers_legend_say_what_is_drawn():
    """At the least step size layers are frozen, at the largest they grow and are hatched."""
    figure = of_layers(style.SCREEN, measured=False)
    labelled = squares(figure)
    axis = figure.axes[0]
    pixels = axis.images[0].get_array()

    def is_of(pixel: Any, text: str) -> bool:
        color = np.multiply(to_rgb(labelled[text].get_facecolor()), 255)
        return bool(np.abs(pixel.astype(int) - color).max() <= 8)

    assert is_of(pixels[FLATTEST, LOWEST], "too small: frozen")
    assert is_of(pixels[0, LARGEST], "too large: grows")
    middle = [is_of(pixel, "melted") for pixel in pixels[0]]
    assert any(middle)
    assert not middle[LOWEST]
    assert not middle[LARGEST]
    (hatched,) = [patch for patch in axis.patches if isinstance(patch, PathPatch)]
    grows = labelled["too large: grows"]
    assert hatched.get_hatch() == grows.get_hatch() != ""
    assert hatched.get_edgecolor() == grows.get_edgecolor()
    assert not labelled["melted"].get_hatch()
    right = hatched.get_path().vertices[:, 0].max()
    assert right >= axis.get_xlim()[1]  # the growing layers at the largest step


# The film's legend is a text: the marks are letters or words.
MARKERS = {"\N{BLACK CIRCLE}": "o", "\N{BLACK UP-POINTING TRIANGLE}": "^"}
MARKERS |= {"circle": "o", "star": "*", "cross": "P"}


def test_each_mark_that_the_text_below_a_film_names_is_drawn_where_it_says():
    arrays = film_arrays((1, 1))
    rows = pd.DataFrame({"label": ["a"], "normalizer": ["identity"]})
    figure = film.draw({"a": arrays}, rows, "title")
    legend = " ".join(figure._supxlabel.get_text().split())
    reel = film.Reel(arrays)
    upper, lower = figure.axes[: len(reel.keys)], figure.axes[len(reel.keys) :]
    for frame, points, cost in zip(reel.keys, upper, lower, strict=True):
        classes = points.collections[: len(arrays["class_names"])]
        assert len(classes) == 2
        for number, (name, dots) in enumerate(zip(arrays["class_names"], classes, strict=True)):
            (mark,) = [letter for letter in MARKERS if f"{letter} {name}" in legend]
            ((vertices, _, _),) = set(drawn_looks(dots))
            assert vertices == outline(MARKERS[mark])
            expected = reel.points(frame)[arrays["target"] == number]
            np.testing.assert_allclose(dots.get_offsets().data, expected)
        path = reel.path(frame)
        places = {"circle: the start": path[0], "star: iteration 25": path[-1]}
        places["cross: the least cost"] = arrays["origin"][frame]
        for text, position in places.items():
            assert text in legend
            marker = outline(MARKERS[text.partition(":")[0]])
            (marked,) = [line for line in cost.get_lines() if outline(line.get_marker()) == marker]
            np.testing.assert_allclose(np.ravel(marked.get_data()), position)
