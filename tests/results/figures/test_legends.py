"""Each mark of a legend is one that is drawn: its marker, its line and its colour."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from normbench import names
from normbench.results.figures import film
from normbench.results.figures.base import style
from tests.results.figures.pictures import draw, film_arrays, outline

Look = tuple[Any, str, str]  # the outline of the marker, the style of the line, the colour
SQUARE = "s"
# Marks in grey that stand for the colours of all schemes, all classes or all shares.
OF_EVERY_COLOR = {
    *("points", "what the scheme keeps of them", "finer step sizes", "best step", "shown step"),
    *("dark: much of the excess cost lies there", "outlined: at the end"),
}


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


def assert_legend_is_drawn(figure: Any) -> None:
    """Check that each mark of a figure's legends is one that is drawn, and has a text."""
    drawn = {
        look
        for axis in figure.axes
        for artist in axis.get_children()
        for look in drawn_looks(artist)
    }
    for legend in figure.legends:
        texts = [text.get_text() for text in legend.get_texts()]
        assert len(texts) == len(legend.legend_handles)
        for text, handles in zip(texts, legend.legend_handles, strict=True):
            for handle in handles if isinstance(handles, list) else [handles]:
                if isinstance(handle, Patch):  # of an image, see the tests below
                    continue
                length = 2 if text in OF_EVERY_COLOR else 3
                assert line_look(handle)[:length] in {look[:length] for look in drawn}, text


def squares(figure: Any) -> dict[str, Any]:
    """Return the squares of the legend of layers, each by its text."""
    (legend,) = figure.legends
    return dict(zip((text.get_text() for text in legend.get_texts()), legend.legend_handles))


# Columns of pixels of the steps' panel: its lowest step size melts nothing, its largest diverges.
LOWEST, LARGEST, FLATTEST = 0, -1, -1


def test_a_step_size_that_rounding_decides_has_the_colour_of_its_square():
    """It is the least step size of three: the left third of the panel."""
    assert names.BY_ROUNDING not in squares(draw("melt"))
    figure = draw("melt, measured", shape=style.SCREEN)
    color = np.multiply(to_rgb(squares(figure)[names.BY_ROUNDING].get_facecolor()), 255)
    pixels = figure.axes[0].images[0].get_array().astype(int)
    is_drawn = (np.abs(pixels - color).max(axis=2) <= 1).all(axis=0)
    third = len(is_drawn) // 3
    assert is_drawn[: third - 1].all()
    assert not is_drawn[third + 1 :].any()


def test_the_squares_of_the_layers_legend_say_what_is_drawn():
    """At the least step size layers are frozen, at the largest they grow and are hatched."""
    figure = draw("melt")
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
    hatched = [areas for areas in axis.collections if areas.get_hatch()]
    grows = labelled["too large: grows"]
    for areas in hatched:
        assert areas.get_hatch() == grows.get_hatch() != ""
        assert tuple(areas.get_edgecolor()[0]) == grows.get_edgecolor()
    assert not labelled["melted"].get_hatch()
    right = max(path.vertices[:, 0].max() for path in hatched[0].get_paths())
    assert right >= axis.get_xlim()[1]  # the growing layers at the largest step


# The film's legend is a text: the marks are letters or words.
MARKERS = {"\N{BLACK CIRCLE}": "o", "\N{BLACK UP-POINTING TRIANGLE}": "^"}
MARKERS |= {"circle": "o", "star": "*", "cross": "P"}


def test_each_mark_that_the_text_below_a_film_names_is_drawn_where_it_says():
    arrays = film_arrays((1, 1))
    figure = draw("film, column", shape=style.SCREEN)
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
