"""The formats of figures: nothing overlaps, nothing is cut, panels of a column are stacked."""

import pytest

from normbench.command.results.commands import main
from normbench.results.figures import drawing
from normbench.results.figures.base import material, style
from tests.results.figures.shapes import SHAPES

OURS = ("windows", "histories", "step_sizes", "phase_diagram", "contours", "data", "spectrum")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OURS)
@pytest.mark.commands
def test_nothing_overlaps_and_nothing_is_cut(three, name, shape):
    wanted = style.FORMATS[shape]
    figure = drawing.figure(three.sweep, three.name, name, material.Options(shape=wanted))
    if figure is None:  # no directions were recorded
        assert name == "windows"
        return
    assert (figure.get_figwidth(), figure.dpi) == (wanted.width, wanted.dpi)
    figure.draw_without_rendering()
    dots = wanted.dpi
    parts = [axis.get_tightbbox() for axis in figure.axes]
    below = [legend.get_window_extent() for legend in figure.legends]
    for box in (*parts, *below, figure._suptitle.get_window_extent()):
        # Measured under a pixel beyond the page.
        assert box.x0 > -2
        assert box.x1 < wanted.width * dots + 2
    for legend in below:
        for box in parts:
            # An axis's label has room below it: measured 0.03 inches less of that.
            assert legend.y1 <= box.y0 + 0.05 * dots
    if shape == "column":
        places = (axis.get_subplotspec() for axis in figure.axes)  # None of a scale of colours
        assert {place.colspan.start for place in places if place} == {0}


def test_a_column_is_of_print_quality(three, tmp_path):
    shape = style.FORMATS["column"]
    assert (shape.width, shape.font) == (3.3, 7.0)
    assert shape.dpi >= 600
    arguments = ["--store", three.uri, "--out", str(tmp_path), "--format", "column"]
    assert main(["figure", "phase_diagram", *arguments]) == 0
    pdf = (tmp_path / "phase_diagram.pdf").read_bytes()
    assert f"/MediaBox [ 0 0 {3.3 * 72:g}".encode() in pdf


def test_a_bad_format_is_refused_in_one_line(three, capsys):
    assert main(["figure", "histories", "--store", three.uri, "--format", "colum"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("normbench: ")
    assert "colum" in told
    for shape in style.FORMATS:
        assert shape in told


def test_long_lines_are_broken_behind_commas():
    text = "breast cancer, 569 x 30, softmax, in 100 iterations of gradient descent"
    lines = style.wrap_text(text, 3.3, 7.7).split("\n")
    assert lines == ["breast cancer, 569 x 30, softmax", "in 100 iterations of gradient descent"]
    assert style.wrap_text(text, 10, 7.7) == text
