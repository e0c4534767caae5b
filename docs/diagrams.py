"""Diagrams of *How it is built*: the rooms, the road of a job, and recovery, as SVG in text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

INK, PAPER, EDGE = "#1f2933", "#f3f6f9", "#52667a"


class Box(NamedTuple):
    """A box: where its middle is, and the lines in it, the first one in bold."""

    x: float
    y: float
    text: str
    width: float = 2.0


class Arrow(NamedTuple):
    """An arrow from a box to another; its label stands at its middle, or so far aside and below."""

    begin: str
    end: str
    label: str = ""
    bend: float = 0.0
    aside: float = 0.0
    below: float = 0.0


# By the names of `tests/test_rooms.py`; y grows downwards.
ROOM_BOXES = {
    "command": Box(2, 0, "command\nHydra: settings, sweeps", 3.0),
    "comparison": Box(6.5, 0, "comparison\ncompare(), load()", 2.8),
    "record": Box(3.2, 1.3, "record\nfiles, copied to MLflow", 2.6),
    "job": Box(2.2, 2.6, "job\none scheme, all step sizes", 3.2),
    "measures": Box(0.4, 3.9, "measures\nwhat to find out", 2.4),
    "theory": Box(2.9, 3.9, "theory\nwhat to expect", 2.2),
    "engine": Box(1.4, 5.2, "engine\ncosts, gradients, descent", 3.2),
    "verdicts": Box(5.3, 6.5, "verdicts\nwhat a history came to", 2.7),
    "normalizers": Box(-0.4, 6.5, "normalizers", 1.6),
    "costs": Box(1.2, 6.5, "costs", 1.2),
    "optimizers": Box(2.8, 6.5, "optimizers", 1.6),
    "datasets": Box(5.3, 3.9, "datasets", 1.6),
    "results.report": Box(7.7, 1.3, "report, pages, studies", 3.0),
    "results.figures": Box(6.5, 2.6, "figures", 1.5),
    "results.answer": Box(8.7, 2.6, "answer", 1.5),
    "results.compare": Box(7.6, 3.9, "compare\nstatistics", 1.8),
    "results.store": Box(7.9, 6.5, "store\nreads records", 1.9),
}
ARROWS = [
    Arrow("command", "record"),
    Arrow("command", "results.report"),
    Arrow("comparison", "record"),
    Arrow("comparison", "results.report"),
    Arrow("record", "job"),
    Arrow("job", "measures"),
    Arrow("job", "theory"),
    Arrow("measures", "engine"),
    Arrow("theory", "engine"),
    Arrow("engine", "verdicts"),
    Arrow("engine", "normalizers"),
    Arrow("engine", "costs"),
    Arrow("engine", "optimizers"),
    Arrow("results.report", "results.figures"),
    Arrow("results.report", "results.answer"),
    Arrow("results.figures", "results.compare"),
    Arrow("results.answer", "results.compare"),
    Arrow("results.compare", "results.store"),
    Arrow("results.compare", "verdicts"),
    Arrow("job", "datasets"),
]
ROAD = {
    "settings": Box(0, 0, "1 settings\ncomposed and checked", 2.5),
    "identity": Box(3, 0, "2 identity\nrecorded before?", 2.5),
    "points": Box(6, 0, "3 points\nread, split, drawn", 2.5),
    "scheme": Box(9, 0, "4 scheme\nfitted on training points", 2.5),
    "descent": Box(9, 1.5, "5 descent\nall step sizes and starts", 2.5),
    "findings": Box(6, 1.5, "6 findings\nverdicts, finer steps, theory", 2.5),
    "record": Box(3, 1.5, "7 record\none file, copied to MLflow", 2.5),
    "results": Box(0, 1.5, "8 results\ntables, figures, report", 2.5),
    "mistake": Box(0, -1.2, "exit 2\nnothing recorded", 2.5),
}
ROAD_ARROWS = [
    Arrow("settings", "identity"),
    Arrow("settings", "mistake", "a mistake"),
    Arrow("identity", "points", "no"),
    Arrow("identity", "record", "yes: reused"),
    Arrow("points", "scheme"),
    Arrow("scheme", "descent"),
    Arrow("descent", "findings"),
    Arrow("findings", "record"),
    Arrow("record", "results"),
]
STATES = {
    "missing": Box(0, 0, "missing", 1.7),
    "descending": Box(4, 0, "descending", 1.9),
    "recorded": Box(8.5, 0, "recorded", 1.8),
    "checkpointed": Box(4, 1.7, "checkpointed", 2.1),
    "failed": Box(0, 1.7, "failed", 1.7),
}
STATE_ARROWS = [
    Arrow("missing", "descending", "the command", bend=-0.15, below=-0.3),
    Arrow("descending", "missing", "killed early", bend=-0.15, below=0.3),
    Arrow("descending", "recorded", "its file is written"),
    Arrow("descending", "checkpointed", "stopped, killed", bend=-0.25, aside=-0.85),
    Arrow("checkpointed", "descending", "the same command", bend=-0.25, aside=1),
    Arrow("descending", "failed", "an error", aside=-0.3, below=0.12),
    Arrow("failed", "missing", "the same command"),
]
HALF_HEIGHT = 0.36


def _draw_box(axis: Axes, box: Box) -> None:
    """Draw a box with its lines."""
    title, _, rest = box.text.partition("\n")
    frame = {"boxstyle": "round,pad=0,rounding_size=0.1", "fc": PAPER, "ec": EDGE, "lw": 1}
    corner = (box.x - box.width / 2, box.y - HALF_HEIGHT)
    axis.add_patch(FancyBboxPatch(corner, box.width, 2 * HALF_HEIGHT, **frame, zorder=2))
    shift = 0.13 if rest else 0.0
    text = {"ha": "center", "va": "center", "color": INK, "zorder": 3}
    axis.text(box.x, box.y - shift, title, fontweight="bold", fontsize=9, **text)
    axis.text(box.x, box.y + shift, rest, fontsize=7.5, **text)


def _draw_arrow(axis: Axes, boxes: Mapping[str, Box], arrow: Arrow) -> None:
    """Draw an arrow from the edge of one box to that of another, with its label."""
    begin, end = boxes[arrow.begin], boxes[arrow.end]
    style = {
        "arrowstyle": "-|>",
        "color": EDGE,
        "connectionstyle": f"arc3,rad={arrow.bend}",
        "shrinkA": 0,
        "shrinkB": 0,
        "lw": 1,
    }
    ends = _edge(begin, end), _edge(end, begin)
    axis.annotate("", xytext=ends[0], xy=ends[1], arrowprops=style)
    if arrow.label:
        x = (ends[0][0] + ends[1][0]) / 2 + arrow.aside
        y = (ends[0][1] + ends[1][1]) / 2 + arrow.below
        paper = {"fc": "white", "ec": "none", "pad": 1}
        axis.text(x, y, arrow.label, fontsize=7.5, ha="center", va="center", color=INK, bbox=paper)


def _edge(box: Box, other: Box) -> tuple[float, float]:
    """Return where the line to another box's middle leaves a box."""
    run, rise = other.x - box.x, other.y - box.y
    share = min(
        box.width / 2 / abs(run) if run else float("inf"),
        HALF_HEIGHT / abs(rise) if rise else float("inf"),
    )
    return box.x + share * run, box.y + share * rise


def diagram(boxes: Mapping[str, Box], arrows: Sequence[Arrow]) -> Figure:
    """Return boxes and arrows as a figure; an inch holds 1.3 units."""
    left = min(box.x - box.width / 2 for box in boxes.values()) - 0.1
    right = max(box.x + box.width / 2 for box in boxes.values()) + 0.1
    top = min(box.y for box in boxes.values()) - 0.5
    bottom = max(box.y for box in boxes.values()) + 0.5
    figure = Figure(figsize=((right - left) / 1.3, (bottom - top) / 1.3))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_axis_off()
    axis.set_xlim(left, right)
    axis.set_ylim(bottom, top)
    for arrow in arrows:
        _draw_arrow(axis, boxes, arrow)
    for box in boxes.values():
        _draw_box(axis, box)
    return figure


def write(folder: Path) -> None:
    """Write the three diagrams into a folder as SVG, their words as text."""
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif"}):
        for name, boxes, arrows in (
            ("rooms", ROOM_BOXES, ARROWS),
            ("road", ROAD, ROAD_ARROWS),
            ("recovery", STATES, STATE_ARROWS),
        ):
            figure = diagram(boxes, arrows)
            figure.savefig(folder / f"{name}.svg", facecolor="white", metadata={"Date": None})
