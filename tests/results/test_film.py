"""The film as a picture: its key frames as a strip."""

import numpy as np
import pytest

import normbench
from normbench.results import drawing
from normbench.results.figures import film, material, style
from normbench.results.figures.reel import Reel

SCHEMES = ("identity", "standard", "pca_sphere")


def points():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 80)
    x = rng.standard_normal((80, 2)) * [0.4, 3.0] + y[:, None]
    return x @ np.array([[0.9, 0.4], [-0.4, 0.9]]) + [2.0, 7.0], np.array(["no", "yes"])[y]


def compared(*normalizers, **settings):
    settings = {"cost": "softmax", "iterations": 2, "record": ["film"], **settings}
    return normbench.compare(*points(), normalizers=normalizers, step_sizes=[0.1], **settings)


@pytest.fixture(scope="module")
def found():
    return compared(*SCHEMES)


@pytest.fixture(scope="module")
def reel(found):
    return Reel(found.sweep.arrays(found.sweep.of_role("scheme"), "film")["pca_sphere"])


def test_the_strip_is_of_the_last_scheme_a_column_a_key_frame(found, reel):
    axes = found.figure("film").axes
    assert len(axes) == 2 * len(reel.keys) == 8
    words = [axis.get_title() for axis in axes[:4]]
    assert words[:2] == ["raw", "centred"]
    assert words[2].startswith("rotated by ")
    assert words[3].startswith("scaled by ")
    assert "film of pca_sphere" in found.figure("film")._suptitle.get_text()
    x, _ = points()
    for frame, axis in zip(reel.keys, axes):
        dots = np.concatenate([part.get_offsets().data for part in axis.collections[:2]])
        assert np.sort(dots, axis=0) == pytest.approx(np.sort(reel.points(frame), axis=0))
        assert np.ptp(axis.get_xlim()) == pytest.approx(np.ptp(axis.get_ylim()))  # one scale
    assert np.sort(reel.points(0), axis=0) == pytest.approx(np.sort(x, axis=0))


def test_marked_points_keep_their_colours(found, reel):
    colors = []
    for axis in found.figure("film").axes[:4]:
        marks = [part for part in axis.collections if part.get_label() == "_marked"]
        colors.append([tuple(part.get_facecolor()[0]) for part in marks])
        assert len(set(colors[-1])) == 4
    assert colors == [colors[0]] * 4
    looks = {style.CLASSES[0], style.CLASSES[1]}
    assert not looks & set(film.MARKS)


def test_counters_stand_over_the_contours(found, reel):
    for frame, axis in zip(reel.keys, found.figure("film").axes[4:]):
        told = axis.get_title().split("\n")
        assert told[0] == f"L {style.short(reel.parts['lipschitz'][frame])}"
        assert told[1] == f"condition number {style.short(reel.parts['condition'][frame])}"
        count = reel.parts["iterations"][frame]
        assert told[2] == f"{'> 1,000' if count < 0 else f'{count:,}'} iterations to 1%"
        start = axis.collections[film.LEVELS - 1].get_segments()
        distance = min(np.linalg.norm(line - reel.path(frame)[0], axis=1).min() for line in start)
        assert distance < 0.05 * np.ptp(axis.get_xlim())  # between two ends of a line's pieces


@pytest.mark.parametrize("shape", sorted(style.FORMATS))
@pytest.mark.parametrize("scheme", ["pca_sphere", "zca_sphere"])
def test_nothing_overlaps_and_nothing_is_cut(shape, scheme):
    made = compared(scheme)
    wanted = style.FORMATS[shape]
    options = material.Options(shape=wanted)
    figure = drawing.figure(made.sweep, made.sweep.experiments[0], "film", options)
    figure.draw_without_rendering()
    boxes = [axis.get_tightbbox() for axis in figure.axes]
    told = [axis.title.get_window_extent() for axis in figure.axes]
    note = figure._supxlabel.get_window_extent()
    for box in (*boxes, note, figure._suptitle.get_window_extent()):
        assert box.x0 > -2
        assert box.x1 < wanted.width * wanted.dpi + 2
        assert box.y0 > -2
    for number, one in enumerate(told):
        assert not any(one.overlaps(other) for other in told[number + 1 :])
    assert all(note.y1 <= box.y0 + 0.05 * wanted.dpi for box in boxes)
