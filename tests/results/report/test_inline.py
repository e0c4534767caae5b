"""A figure within a page: the same marks, in fewer letters."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from normbench.results.figures.base import output
from normbench.results.report.inline import element

NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


@pytest.fixture(scope="module")
def svg(tmp_path_factory):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3))
    axis = figure.subplots()
    axis.scatter(np.linspace(0, 1, 9), np.geomspace(1e-3, 1, 9), s=8, label="1.23456789 < 2")
    axis.plot([0, 1], [0.1, 123.456789], "--")
    axis.set_yscale("log")
    axis.set_title(r"12.3456789  $10^{-3}$")
    axis.legend()
    (file,) = output.save(figure, tmp_path_factory.mktemp("svg") / "figure", {}, ("svg",))
    return file.read_text()


def marks(text):
    """Return what is drawn: the kinds of marks in order, their numbers, and the words."""
    root = ElementTree.fromstring(text)
    parts = [part for part in root.iter() if part.tag.split("}")[1] in ("path", "use", "text")]
    drawn = [part for part in parts if part.get("id") is None or part.tag.endswith("text")]
    numbers = [
        [float(found) for found in NUMBER.findall(" ".join(filter(None, map(part.get, "dxy"))))]
        for part in drawn
    ]
    words = ["".join("".join(part.itertext()).split()) for part in drawn]
    return [part.tag for part in drawn], numbers, words


def test_a_figure_in_a_page_has_the_same_marks_at_the_same_places(svg):
    small = element(svg, "f-")
    kinds, numbers, words = marks(small)
    assert (kinds, words) == (marks(svg)[0], marks(svg)[2])
    assert "1.23456789<2" in words  # what is said is not rounded
    for mine, theirs in zip(numbers, marks(svg)[1], strict=True):
        np.testing.assert_allclose(mine, theirs, atol=0.051)
    assert len(small) < 0.7 * len(svg)


def test_each_name_is_used_and_a_pages_own(svg):
    small = element(svg, "f-")
    named = re.findall(r' id="([^"]*)"', small)
    used = re.findall(r'(?:href="#|url\(#)([^")]*)', small)
    assert set(named) == set(used)
    assert len(named) == len(set(named))
    assert all(name.startswith("f-") for name in named)
    assert "<style" not in small
    assert not re.search(r"<svg[^>]* (width|height)=", small)


SVG = '<?xml version="1.0"?><svg width="3pt" height="4pt" viewBox="0 0 3 4">{}</svg>'


@pytest.mark.parametrize(
    ("inside", "small"),
    [
        ('<path d="M -1.23456 12.3456 L 10.049 1 z"/>', '<path d="M-1.23 12.3L10 1z"/>'),
        ('<use x="12.5" y="0.001"/>', '<use x="12.5" y="0"/>'),
        ('<image transform="matrix(0.12345 0)"/>', '<image transform="matrix(0.12345 0)"/>'),
        ("<g><text>1.23456</text></g>", "<text>1.23456</text>"),
        ('<svg width="1" height="2"/>', '<svg width="1" height="2"/>'),  # of one inside
        (
            '<a id="b"/><a id="a"/><a id="c"/><c clip="url(#b)"/><use xlink:href="#a"/>',
            '<a id="p1"/><a id="p0"/><a/><c clip="url(#p1)"/><use href="#p0"/>',
        ),
    ],
)
def test_each_part_of_a_figure_is_written_shortly(inside, small):
    assert element(SVG.format(inside), "p") == f'<svg viewBox="0 0 3 4">{small}</svg>'
