"""Colours with one meaning, told apart by everyone; ticks and titles that are read at a glance."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from normbench.results.figures import melt
from normbench.results.figures.base import style, ticks
from normbench.results.store.looks import LOOKS, LOOKS_OF_OTHER_SCHEMES

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
ROWS = {
    "normal": "1 0 0 0 1 0 0 0 1",
    "protan": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
    "deutan": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881",
    "tritan": "1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.303900",
}
VISIONS = {name: np.array(row.split(), dtype=float).reshape(3, 3) for name, row in ROWS.items()}
TO_XYZ = "0.4124564 0.3575761 0.1804375 0.2126729 0.7151522 0.0721750 0.0193339 0.1191920 0.9503041"
XYZ = np.array(TO_XYZ.split(), dtype=float).reshape(3, 3)
SCHEMES = [look.color for look in LOOKS.values()]
VERDICTS = [color for color, _ in style.VERDICT_LOOKS.values()]


def lab(colors, vision):
    """Colours in CIELAB (D65), as a vision has them."""
    rgb = np.array([to_rgb(color) for color in colors])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ VISIONS[vision].T, 0, 1)
    white = seen @ XYZ.T / [0.95047, 1.0, 1.08883]
    cube = np.where(white > (6 / 29) ** 3, np.cbrt(white), white / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = cube.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def nearest(one, other, vision):
    return np.linalg.norm(lab(one, vision)[:, None] - lab(other, vision)[None], axis=-1).min()


def apart(colors, vision):
    """How far the two of some colours are apart that are nearest."""
    pairs = itertools.combinations(colors, 2)
    return min(nearest([one], [other], vision) for one, other in pairs)


def test_the_measure_tells_black_from_white_by_100():
    for vision in VISIONS:
        assert nearest(["#000000"], ["#ffffff"], vision) == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("vision", VISIONS)
def test_twelve_schemes_are_told_apart(vision):
    # A difference of 2.3 is just seen; measured 13.9 at the least (tritan), and 10.6 of all 19.
    assert apart(SCHEMES[:12], vision) > 13
    assert apart(SCHEMES, vision) > 10
    every = LOOKS.values()
    for one, other in itertools.combinations(every, 2):
        if nearest([one.color], [other.color], vision) < 20:  # markers and lines help
            assert (one.marker, one.line) != (other.marker, other.line)


@pytest.mark.parametrize("vision", VISIONS)
def test_classes_and_verdicts_are_told_apart(vision):
    assert apart(style.CLASS_COLORS, vision) > 9  # measured 9.4; of five 15.6
    assert apart(style.CLASS_COLORS[:5], vision) > 15
    assert apart(VERDICTS, vision) > 13  # measured 13.1, of failed and not converged


@pytest.mark.parametrize("vision", VISIONS)
def test_no_colour_of_a_scheme_is_one_of_a_class(vision):
    assert nearest(SCHEMES, style.CLASS_COLORS, vision) > 9  # measured 9.4


@pytest.mark.parametrize("vision", VISIONS)
def test_no_colour_of_a_scheme_is_one_of_a_verdict(vision):
    # Measured 9.6 at the least: zca_sphere and cycling (deutan); 24 in normal vision.
    assert (
        nearest([*SCHEMES, *(look.color for look in LOOKS_OF_OTHER_SCHEMES)], VERDICTS, vision) > 9
    )
    assert nearest(SCHEMES, VERDICTS, "normal") > 20


@pytest.mark.parametrize("vision", VISIONS)
def test_a_scheme_of_the_users_own_has_no_colour_of_another(vision):
    for look in LOOKS_OF_OTHER_SCHEMES:
        assert nearest([look.color], SCHEMES, vision) > 9  # measured 9.8


def contrast(color, ground):
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21; both RGB from 0 to 1."""
    pair = np.array([color, ground])
    linear = np.where(pair <= 0.04045, pair / 12.92, ((pair + 0.055) / 1.055) ** 2.4)
    light, dark = sorted(linear @ [0.2126, 0.7152, 0.0722], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def inverted(color):
    """A colour under CSS's `invert(1) hue-rotate(180deg)`."""
    grey = np.array([0.213, 0.715, 0.072])
    rotated = 2 * grey - np.eye(3)
    return np.clip(rotated @ (1 - np.array(to_rgb(color))), 0, 1)


@pytest.mark.parametrize(
    "look", [*LOOKS.values(), *LOOKS_OF_OTHER_SCHEMES], ids=lambda look: look.color
)
def test_lines_stand_out_from_white_and_inverted_from_the_dark(look):
    """Graphics need 3 to 1, see WCAG 2.2, 1.4.11."""
    assert contrast(to_rgb(look.color), (1, 1, 1)) >= 3
    assert contrast(inverted(look.color), to_rgb("#12161c")) >= 3  # the report's page


def test_verdicts_are_greys_and_one_red():
    chroma = dict(zip(style.VERDICT_LOOKS, np.linalg.norm(lab(VERDICTS, "normal")[:, 1:], axis=1)))
    assert chroma.pop("diverged") > 50
    assert max(chroma.values()) < 1
    for color in SCHEMES[1:]:  # black is a scheme's
        assert np.linalg.norm(lab([color], "normal")[0, 1:]) > 15


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (1e-6, 1e2, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²"]),
        (0.04, 12, ["0.1", "1", "10"]),
        (0.5, 2, ["0.5", "1", "2"]),
        (0.3, 0.36, None),
        (1e-300, 1e300, None),
    ],
)
def test_a_logarithmic_axis_has_three_ticks_or_more_in_one_style(low, high, texts):
    axis = Figure().subplots()
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    ticks.set_log_ticks(axis.xaxis, max_powers=9)
    shown = [text.get_text() for text in axis.get_xticklabels()]
    assert len(shown) >= 3
    assert texts in (None, shown)
    assert len({"10" in text and "0." not in text and text != "10" for text in shown}) == 1 or (
        all("⁰" <= text[-1] <= "⁹" or text[-1].isdigit() for text in shown)
    )


def test_no_two_schemes_and_no_two_verdicts_look_alike():
    looks = style.looks(list(LOOKS))
    assert len({look.marker for look in looks}) == len(looks) == len(LOOKS)
    assert len({look.color for look in looks}) == len(looks)
    several = style.looks(["pca_sphere"] * 12)
    assert len({(look.color, look.marker) for look in several}) == 12
    assert several[0] == LOOKS["pca_sphere"]
    marks = [mark for _, mark in style.VERDICT_LOOKS.values()]
    assert len({*marks, "*", "^"}) == len(marks) + 2  # those of the best step and of a limit


MELT_COLORS = [melt.FROZEN_COLOR, melt.MELTED_COLOR, melt.GROWING_COLOR, melt.ROUNDING_COLOR]


@pytest.mark.parametrize("vision", VISIONS)
def test_the_colours_of_layers_are_told_apart(vision):
    assert apart(MELT_COLORS, vision) > 25


def test_in_grey_frozen_layers_are_light_and_melted_ones_dark():
    light = dict(zip(MELT_COLORS, lab(MELT_COLORS, "normal")[:, 0]))
    assert light[melt.FROZEN_COLOR] > 85
    assert light[melt.MELTED_COLOR] < 40
    ramp = lab([melt.MELT_COLOR_MAP(x)[:3] for x in np.linspace(0, 1, 30)], "normal")[:, 0]
    assert (np.diff(ramp) > 0).all()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.02, "2·10⁻²"), (1e-5, "10⁻⁵"), (2e6, "2·10⁶"), (1, "10⁰"), (0.025, "0.025")],
)
def test_ticks_are_plain_text(value, text):
    assert ticks.power_text(value) == text
