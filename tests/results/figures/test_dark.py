"""Figures for dark pages: light on no ground, with the colours that a report shows in the dark."""

import re

import numpy as np
import pytest
from PIL import Image

from normbench.command.results.commands import main
from normbench.results.figures import PHOTOGRAPHIC_FIGURES
from normbench.results.figures.base import output, style
from normbench.results.store.looks import LOOKS
from tests.conftest import ROOT
from tests.results.figures.test_looks import contrast, inverted


@pytest.mark.parametrize("color", ["#ffffff", "#000000", *(look.color for look in LOOKS.values())])
def test_a_pixel_is_what_a_browser_inverts_and_white_is_no_ground(color):
    pixel = np.array([[[int(color[place : place + 2], 16) for place in (1, 3, 5)]]])
    *light, opacity = output._invert(pixel)[0, 0] / 255
    assert opacity * np.array(light) == pytest.approx(inverted(color), abs=0.005)  # on black
    assert (opacity == 0) == (color == "#ffffff")
    ground = np.array([13, 17, 23]) / 255  # a dark page
    seen = opacity * np.array(light) + (1 - opacity) * ground
    assert color == "#ffffff" or contrast(seen, ground) >= 3


def test_a_dark_version_stands_beside_each_file(three, tmp_path, capsys):
    words = ["figure", "histories", "--folder", three.home, "--out", str(tmp_path), "--dark"]
    assert main(words) == 0
    files = [line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines()]
    assert files == [
        *("histories.png", "histories.svg", "histories.pdf"),
        *("histories-dark.png", "histories-dark.svg"),
    ]
    light, dark = (Image.open(tmp_path / f"histories{of}.png") for of in ("", "-dark"))
    for image in (light, dark):
        image.load()  # and close the file
    assert light.size == dark.size
    assert {**light.info} == {**dark.info}  # the provenance, the resolution
    assert dark.mode == "RGBA"
    assert dark.getpixel((0, 0))[3] == 0
    light, dark = ((tmp_path / f"histories{of}.svg").read_text() for of in ("", "-dark"))
    assert "filter" not in light
    assert output.DARK_STYLE in dark
    assert dark.replace(f"\n {output.DARK_STYLE}", "") == light
    # The grounds that the style takes away.
    assert (
        len(re.findall(r'id="axes_\d+">\s*<g id="patch_\d+">\s*<path[^>]*fill: #fff', light)) == 2
    )


def test_photographs_have_no_dark_version(three, tmp_path, capsys):
    for name in PHOTOGRAPHIC_FIGURES:
        words = ["figure", name, "--folder", three.home, "--out", str(tmp_path), "--dark"]
        assert main(words) == 2
        told = capsys.readouterr().err
        assert told == (
            f"normbench: --dark: {name} shows images, which are not inverted; leave --dark out\n"
        )


def test_the_pages_invert_all_pictures_but_photographs():
    css = (ROOT / "docs" / "static" / "pages.css").read_text()
    rules = re.findall(r"article img:not\((.*)\)", css)
    wanted = ", ".join(f'[src*="{name}"]' for name in PHOTOGRAPHIC_FIGURES)
    assert rules == [wanted, wanted]
    assert css.count(output.INVERTED) == 2
    assert style.RC.get("figure.facecolor", "white") == "white"
