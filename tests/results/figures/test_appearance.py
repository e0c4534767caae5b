"""What figures of hand-made numbers look like, artist by artist, as it is recorded in files.

python -m tests.results.figures.test_appearance: record it anew, after a change that is meant.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.spines import Spine
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Transform
from mpl_toolkits.mplot3d.art3d import Line3D, Path3DCollection, Poly3DCollection

from normbench.results.figures import NAMES, histories
from normbench.results.figures.base import style
from tests.conftest import ROOT
from tests.results.figures.pictures import PICTURES, draw, outline
from tests.results.figures.test_legends import assert_legend_is_drawn

RECORDS = Path(__file__).with_name("appearance")  # a file of JSON lines each, an artist a line
VERSION = RECORDS / "matplotlib.txt"
# The Matplotlib that everything is tested with: another one may draw the same otherwise.
(TESTED_VERSION,) = re.findall(
    r"^matplotlib==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
)
OPTIONS = [f"by {axis}" for axis in histories.HISTORY_AXES]
OPTIONS += ["linear", "log", "excess", "first iteration", *style.FORMATS]


def summary(values: Any) -> list[float]:
    """Return the number, the first, the last, the mean and the root mean square of values."""
    numbers = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan).ravel()
    finite = numbers[np.isfinite(numbers)]
    if not len(finite):
        return [len(numbers)]
    largest = np.abs(finite).max() or 1.0  # squares of 1e300 are no numbers
    root_mean_square = largest * np.sqrt(((finite / largest) ** 2).mean())
    moments = [finite[0], finite[-1], finite.mean(), root_mean_square]
    return [len(numbers), *(float(f"{moment:.6g}") for moment in moments)]


def color(value: Any) -> str:
    return "none" if isinstance(value, str) and value == "none" else to_hex(value, keep_alpha=True)


def beside(artist: Any, transform: Transform) -> list[float]:
    """Return how far, in dots, a transform moves an artist from its place in the panel."""
    corner = (0.0, 0.0)
    return summary(transform.transform(corner) - artist.axes.transAxes.transform(corner))


def describe(artist: Artist) -> list[Any] | None:
    """Return what an artist shows, and where; None for one that shows nothing of its own."""
    name, order = type(artist).__name__, artist.get_zorder()
    if isinstance(artist, Line3D):
        return [name, order, artist.get_label(), *map(summary, artist.get_data_3d())]
    if isinstance(artist, Path3DCollection):
        return [name, order, artist.get_label(), *map(summary, artist._offsets3d)]
    if isinstance(artist, Line2D):
        marker = summary(outline(artist.get_marker()))
        strokes = [artist.get_linewidth(), artist.get_linestyle(), color(artist.get_color())]
        marks = [artist.get_markersize(), artist.get_markeredgewidth()]
        marks += [color(artist.get_markerfacecolor()), color(artist.get_markeredgecolor())]
        places = [summary(artist.get_xdata()), summary(artist.get_ydata())]
        if artist.get_label() == "_label":
            places.append(beside(artist, artist.get_transform()))
        return [name, order, artist.get_label(), *places, *strokes, marker, *marks]
    if isinstance(artist, Poly3DCollection):
        return [name, order, artist.get_label(), artist.get_alpha()]
    if isinstance(artist, Collection):
        artist.update_scalarmappable()
        paths = [summary(path.vertices) for path in artist.get_paths()[:3]]
        colors = [sorted({*map(color, artist.get_facecolors())})]
        colors += [sorted({*map(color, artist.get_edgecolors())})]
        return [
            name,
            order,
            paths,
            summary(artist.get_offsets()),
            summary(artist.get_sizes() if isinstance(artist, PathCollection) else 0.0),
            *colors,
            *artist.get_linewidths(),
        ]
    if isinstance(artist, AxesImage):
        shown = [*artist.get_extent(), *artist.get_clim(), artist.get_interpolation()]
        return [name, order, summary(artist.get_array()), artist.get_cmap().name, *shown]
    if isinstance(artist, Text) and artist.get_text():
        look = [artist.get_fontsize(), artist.get_ha(), artist.get_va(), color(artist.get_color())]
        look += [artist.get_rotation(), artist.get_weight()]
        if isinstance(artist, Annotation):
            look += [summary(artist.xy), str(artist.arrowprops)]
            if isinstance(artist.anncoords, Transform):
                look.append(beside(artist, artist.anncoords))
        return [name, order, artist.get_text(), summary(artist.get_position()), *look]
    if isinstance(artist, Patch) and not isinstance(artist, Spine):
        edges = [artist.get_linewidth(), color(artist.get_facecolor()), artist.get_hatch()]
        # An ellipse's path is the unit circle, a rectangle's the unit square.
        corners = artist.get_patch_transform().transform(artist.get_path().vertices)
        return [name, order, summary(corners), *edges]
    return None


def description(figure: Figure) -> list[Any]:
    """Return what a figure shows, panel by panel, its words and its legends."""
    engine: Any = figure.get_layout_engine()
    padding = [engine.get()["w_pad"], engine.get()["h_pad"]] if engine else []
    described: list[Any] = [[summary(figure.get_size_inches()), *padding]]
    described += [artist for artist in map(describe, figure.get_children()) if artist]
    for legend in figure.legends:
        described.append([text.get_text() for text in legend.get_texts()])
        described.append([legend._ncols, legend.get_title().get_text(), legend.get_alignment()])
        described += [describe(handle) for handle in legend.legend_handles if handle]
    for axis in figure.axes:
        scales = [axis.get_xscale(), axis.get_yscale(), axis.get_xlabel(), axis.get_ylabel()]
        limits = [summary(axis.get_xlim()), summary(axis.get_ylim())]
        limits += [summary(axis.get_xticks()), summary(axis.get_yticks())]
        limits += [
            axis.get_aspect(),
            summary(axis._box_aspect if axis._box_aspect is not None else 0.0),
            _grid(axis),
        ]
        described += [[*scales, *limits], _tick_labels(axis.xaxis), _tick_labels(axis.yaxis)]
        described += [artist for artist in map(describe, axis.get_children()) if artist]
    return described


def _grid(axis: Any) -> list[Any]:
    """Return where a panel stands in its grid, and the heights of the rows."""
    place = axis.get_subplotspec()
    if place is None:
        return [summary(axis.get_position().bounds)]
    return [*place.get_geometry(), place.get_gridspec().get_height_ratios()]


def _tick_labels(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def leaves(described: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each text and number of nested lists with its place."""
    if isinstance(described, list):
        yield f"{path} length", len(described)
        for number, part in enumerate(described):
            yield from leaves(part, f"{path}/{number}")
    else:
        yield path, described


def record_file(name: str) -> Path:
    """Return the file with the record of a picture."""
    return RECORDS / f"{re.sub('[^a-z0-9]+', '_', name.lower()).strip('_')}.jsonl"


def test_every_figure_and_every_option_of_drawing_is_recorded():
    assert {name.partition(",")[0] for name in PICTURES} == {*NAMES, "profiles"} - {"closer"}
    assert {f"histories, {option}" for option in OPTIONS} <= {*PICTURES}
    assert VERSION.read_text().strip() == TESTED_VERSION, __doc__
    assert {*RECORDS.glob("*.jsonl")} == {*map(record_file, PICTURES)}, __doc__


@pytest.mark.parametrize("name", PICTURES)
def test_a_figure_looks_as_it_is_recorded_and_its_legend_names_what_is_drawn(name):
    figure = draw(name)
    assert_legend_is_drawn(figure)
    if matplotlib.__version__ != TESTED_VERSION:
        pytest.skip(f"another Matplotlib than {TESTED_VERSION} may draw the same otherwise")
    recorded = dict(
        leaves([json.loads(line) for line in record_file(name).read_text().splitlines()])
    )
    shown = dict(leaves(json.loads(json.dumps(description(figure), default=float))))
    for path, value in recorded.items():
        if shown.get(path) == value:
            continue  # to build an approximation takes longer than to draw the figure
        expected = pytest.approx(value, rel=1e-4, abs=1e-9) if isinstance(value, float) else value
        assert shown.get(path) == expected, f"{path}; {__doc__}"


def main() -> None:
    """Record every figure anew, an artist a line, so that a difference can be read."""
    RECORDS.mkdir(exist_ok=True)
    for file in RECORDS.glob("*.jsonl"):
        file.unlink()
    VERSION.write_text(f"{matplotlib.__version__}\n")
    for name in PICTURES:
        lines = [json.dumps(part, default=float) for part in description(draw(name))]
        record_file(name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
