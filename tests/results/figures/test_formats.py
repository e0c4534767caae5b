"""The formats of figures: nothing overlaps, nothing is cut, panels of a column are stacked."""

import itertools

import pytest

from normbench.command.results.commands import main
from normbench.results.figures.base import style
from tests.results.figures.pictures import draw

# The fullest picture of each kind.
FULL = (
    *("melt, eight", "overview, many", "histories, twelve", "step_sizes, lost"),
    *("phase_diagram, many", "contours, curved", "data, ten classes", "spectrum", "biplot", "film"),
    *("features, thirty", "by_layer", "dial", "batch_sizes", "boundary"),
)
LARGE = ("melt", "overview, many", "histories, twelve", "film")


def assert_apart(boxes, most):
    """Check that no two boxes share more than some dots, across or up."""
    for one, other in itertools.combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        up = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(across, up) < most, (one, other)


@pytest.mark.quick_cases(7)
@pytest.mark.parametrize(
    ("name", "shape"), [*((name, "column") for name in FULL), *((name, "slide") for name in LARGE)]
)
def test_nothing_overlaps_and_nothing_is_cut(name, shape):
    """A layout that finds no room warns, and a warning is an error here."""
    wanted = style.FORMATS[shape]
    figure = draw(name, shape=wanted)
    assert (figure.get_figwidth(), figure.dpi) == (wanted.width, wanted.dpi)
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * wanted.dpi
    panels = [axis.get_tightbbox() for axis in figure.axes]
    legends = [legend.get_window_extent() for legend in figure.legends]
    words = [text.get_window_extent() for text in figure.texts if text.get_text()]
    for box in (*panels, *legends, *words):
        assert -2 < box.x0 < box.x1 < width + 2  # measured under a pixel beyond the page
        assert -2 < box.y0 < box.y1 < height + 2
    for legend, panel in itertools.product(legends, panels):
        # An axis's label has room below it: measured 0.03 inches less of that.
        assert legend.y1 <= panel.y0 + 0.05 * wanted.dpi
    line = wanted.font / 72 * wanted.dpi
    assert_apart(words, 0.3 * line)
    assert_apart([axis.title.get_window_extent() for axis in figure.axes if axis.get_title()], 0.1)
    for part in itertools.chain.from_iterable((a.xaxis, a.yaxis) for a in figure.axes):
        assert_apart([label.get_window_extent() for label in part.get_ticklabels()], 0.3 * line)
    if shape == "column" and not name.startswith(("film", "melt")):
        places = (axis.get_subplotspec() for axis in figure.axes)  # None of a scale of colours
        assert {place.colspan.start for place in places if place} == {0}


def test_a_column_is_of_print_quality(three, tmp_path):
    shape = style.FORMATS["column"]
    assert (shape.width, shape.font) == (3.3, 7.0)
    assert shape.dpi >= 600
    arguments = ["--folder", three.home, "--out", str(tmp_path), "--format", "column"]
    assert main(["figure", "phase_diagram", *arguments]) == 0
    pdf = (tmp_path / "phase_diagram.pdf").read_bytes()
    assert f"/MediaBox [ 0 0 {3.3 * 72:g}".encode() in pdf


def test_a_bad_format_is_refused_in_one_line(three, capsys):
    assert main(["figure", "histories", "--folder", three.home, "--format", "colum"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("normbench: ")
    assert all(shape in told for shape in style.FORMATS)
