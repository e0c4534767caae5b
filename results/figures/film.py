"""The film of a scheme, from the raw features to its coordinates: a strip of key frames, a GIF."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from normbench.results.figures.base import landmarks, material, output, style, ticks
from normbench.results.figures.base.material import ArraysByLabel
from normbench.results.figures.base.panels import arrays_figure
from normbench.results.figures.base.style import SCREEN, Look, Shape
from normbench.results.figures.contours import DOUBLING_START, LEVEL_COUNT
from normbench.results.figures.points import RASTER_POINTS
from normbench.results.store.runs import Sweep

Array = NDArray[np.float64]
ORIGIN_REACH = 5.0  # times the points' radius: the view shows the origin up to this distance
VIEW_MARGIN = 1.08  # of the view over the points' extent
PATH_MARGIN = 1.25  # of the view over the path's extent, to show the start's contour
MIN_PANEL_WIDTH = 1.5  # inches: with narrower panels, key frames stand below one another
FILM_NAME_LETTERS = 24  # letters of a line of the vertical label
GIF_SHAPE = Shape(7.2, 10.0, 1.5, 100, 2)  # small: a GIF stores every pixel of every frame
FRAME_TIME, KEY_FRAME_TIME, LAST_FRAME_TIME = 90, 1400, 3000  # milliseconds


@dataclass(frozen=True)
class Reel:
    """The film of a scheme: F frames, from the raw features to the scheme's coordinates.

    A key frame completes one part of the change and has a label. In each frame, plain gradient
    descent minimizes the same cost in the coordinates of that frame. A cost of 2 weights and a bias
    is drawn over the 2 weights. The methods take the index of a frame, from 0 to F - 1.

    Attributes:
        arrays: the arrays of `record=[film]`. A frame maps features x to
            `(x - centre) @ matrix.T + image`, with `points` (p, 2), `centre` (2,), `matrix`
            (F, 2, 2), `image` (F, 2), and the axes drawn backwards where `signs` (F, 2) is -1.
            Key frames: indices `keys` (k,), labels `words` (k,), coordinate `names` (k, 2).
            Descent: `path` (F, n, 3) with the bias first, at `iteration` (n,), and `iterations`
            (F,) to one percent of the start's excess, -1 for more than `most` (). Cost: `cost`
            (g, g) on the grid `along` (g,), whose positions y are the weights `origin` (F, 2) plus
            `y @ basis` (F, 2, 2); `lowest` () at the origin, `level` () at the start's weights.
            Theory: `lipschitz` and `condition` (F,). Classes: `target` (p,) and `class_names` (C,).
            Text: `through` (), what `origin` is: the least cost, or the end of the last path.
    """

    arrays: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["matrix"])

    @property
    def keys(self) -> list[int]:
        """The indices of the key frames."""
        return [int(frame) for frame in self.arrays["keys"]]

    def points(self, frame: int) -> Array:
        """Return the points of a frame (p, 2)."""
        centred = self.arrays["points"] - self.arrays["centre"]
        return centred @ self.arrays["matrix"][frame].T + self.arrays["image"][frame]

    def points_view(self, frame: int) -> tuple[Array, float]:
        """Return the square that shows all points, and the origin if it is near.

        The square contains a circle around the mean that contains all points: unless it is extended
        to the origin, a frame that only rotates the points has a view of the same size.

        Returns:
            The centre (2,) and half the side.
        """
        points = self.points(frame)
        centre = self.arrays["image"][frame]  # the mean of the data set in this frame
        # 1 if all points coincide.
        radius = float(np.linalg.norm(points - centre, axis=1).max()) or 1.0
        # Extend the square around the points to 0, by at most `ORIGIN_REACH` radii on each axis.
        reach = radius + ORIGIN_REACH * radius
        low = np.minimum(centre - radius, np.maximum(0.0, centre - reach))
        high = np.maximum(centre + radius, np.minimum(0.0, centre + reach))
        return (low + high) / 2, VIEW_MARGIN * float((high - low).max()) / 2

    def path(self, frame: int) -> Array:
        """Return the weights along the descent (n, 2), without the bias, which comes first."""
        return np.asarray(self.arrays["path"][frame, :, 1:])

    @cached_property
    def levels(self) -> Array:
        """The costs of the contours, spaced as in `contours.levels`.

        Level `LEVEL_COUNT - 1` passes through the start's weights, and the highest has about
        `DOUBLING_START` times the start's excess.
        """
        lowest, start_level = float(self.arrays["lowest"]), float(self.arrays["level"])
        # The excess of each level as a share of the start's; that of `LEVEL_COUNT - 1` is 1.
        shares = (np.arange(1, round(LEVEL_COUNT * DOUBLING_START**0.5) + 1) / LEVEL_COUNT) ** 2
        return lowest + shares * (start_level - lowest)

    def weight_grid(self, frame: int) -> Array:
        """Return the weights of a frame (g, g, 2) on the grid of the recorded costs."""
        grid = np.stack(np.meshgrid(self.arrays["along"], self.arrays["along"]), axis=-1)
        return np.asarray(self.arrays["origin"][frame] + grid @ self.arrays["basis"][frame])

    @cached_property
    def landmark_indices(self) -> list[int]:
        """The indices of the landmarks: the outermost raw points, as in other figures."""
        return landmarks.choose(self.points(0))

    def key_index(self, frame: int) -> int:
        """Return the index into `keys` of the first key frame at or after a frame."""
        return int(np.searchsorted(self.arrays["keys"], frame))

    def counters(self, frame: int) -> tuple[str, str, str]:
        """Return a frame's numbers as texts: L, the condition number, iterations to one percent.

        The iterations are those until one percent of the start's excess is left; if the descent did
        not get there (recorded as -1), the text is such as `> 1,000`, with the number `most`. A
        condition number of NaN is `not known`.
        """
        iteration_count = int(self.arrays["iterations"][frame])
        condition = float(self.arrays["condition"][frame])
        return (
            ticks.short_text(float(self.arrays["lipschitz"][frame])),
            "not known" if np.isnan(condition) else ticks.short_text(condition),
            f"{iteration_count:,}" if iteration_count >= 0 else f"> {int(self.arrays['most']):,}",
        )


def last_film(arrays: ArraysByLabel, schemes: pd.DataFrame) -> tuple[str, Reel, Look]:
    """Return the last scheme with a film: its label, the film, its look (colour, marker, line).

    Args:
        arrays: by label, the arrays of `record=[film]`, not empty.
        schemes: one row for each scheme in order (`label`, `normalizer`).
    """
    scheme = material.with_arrays(schemes, arrays)[-1]
    return scheme.label, Reel(scheme.arrays), scheme.look


def write_film(sweep: Sweep, experiment: str, file: Path, provenance: Mapping[str, str]) -> None:
    """Write the film of the last scheme as a GIF that pauses on key frames.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        file: the file to write.
        provenance: the sweep and the command, for the file's comment.
    """
    rows = material.schemes(sweep, experiment)
    label, reel, look = last_film(sweep.arrays(rows, "film"), rows)
    title = f"{material.title_of_first_repeat(experiment, rows)}, film of {label}"
    with style.figure_style(GIF_SHAPE):
        figure, axes = style.panels(2, GIF_SHAPE, title, 1.25, 2)
        style.add_note(figure, GIF_SHAPE, _note_text(reel))

        def show(frame: int) -> None:
            for axis in axes:
                axis.clear()
            _draw_frame(axes[0], axes[1], reel, frame, look, GIF_SHAPE)

        show(0)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the panels must not move between frames
        times = [KEY_FRAME_TIME if frame in reel.keys else FRAME_TIME for frame in range(len(reel))]
        output.write_gif(figure, show, file, [*times[:-1], LAST_FRAME_TIME], provenance)


@arrays_figure("film", "film", write_gif=write_film)
def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the strip: for each key frame, the points above, the contours of the cost below.

    Args:
        arrays: by label, the arrays of `record=[film]`, see `Reel`.
        schemes: one row for each scheme in order (`label`, `normalizer`); of several schemes with
            a film, only the last is drawn.
        title: the title of the figure.
        shape: the format of the figure.
    """
    label, reel, look = last_film(arrays, schemes)
    count = len(reel.keys)
    # Key frames stand side by side; with narrow panels, each is a row of two panels.
    in_one_row = shape.width / count >= MIN_PANEL_WIDTH
    columns = count if in_one_row else 2
    # Panels are square; beside its vertical label, a panel is about 0.85 of its column wide.
    # Titles, tick labels and axis label: 4.5 lines of 1.25 font sizes.
    ratio = 0.85 + 4.5 * 1.25 * shape.font / 72 / (shape.width / columns)
    with style.figure_style(shape):
        figure, axes = style.panels(2 * count, shape, f"{title}, film of {label}", ratio, columns)
        # The panels come row by row: all upper panels first, or one pair in each row.
        pairs = zip(axes[:count], axes[count:]) if in_one_row else zip(axes[::2], axes[1::2])
        for frame, (upper, lower) in zip(reel.keys, pairs):
            _draw_frame(upper, lower, reel, frame, look, shape)
        style.add_note(figure, shape, _note_text(reel))
    return figure


def _draw_frame(upper: Any, lower: Any, reel: Reel, frame: int, look: Look, shape: Shape) -> None:
    """Draw the points of a frame, and the cost over its weights with the path of the descent.

    The contour through the start is dark; a circle marks the start, a star the end, a cross the
    point through which the contours are drawn.

    Args:
        upper: the panel of the points, empty.
        lower: the panel of the cost, empty.
        reel: the film.
        frame: the index of the frame.
        look: the look of the scheme.
        shape: the format of the figure.
    """
    film_arrays, points = reel.arrays, reel.points(frame)
    dot_style: Any = {"s": (0.3 * shape.font) ** 2, "lw": 0, "alpha": 0.8}
    dot_style["rasterized"] = len(points) > RASTER_POINTS  # an SVG of many points would be large
    for class_mask, (color, marker) in style.class_masks(film_arrays, "0.6"):
        upper.scatter(*points[class_mask].T, color=color, marker=marker, **dot_style)
    landmarks.mark_points(upper, points, reel.landmark_indices, shape)
    # Lines through the origin, towards which some schemes move the points.
    upper.axhline(0, color="0.4", lw=0.5, zorder=1)
    upper.axvline(0, color="0.4", lw=0.5, zorder=1)
    style.name_panel(upper, str(film_arrays["words"][reel.key_index(frame)]), look)

    is_start = np.arange(len(reel.levels)) == LEVEL_COUNT - 1  # see `Reel.levels`
    lower.contour(
        *np.moveaxis(reel.weight_grid(frame), -1, 0),
        film_arrays["cost"],
        levels=reel.levels,
        colors=list(np.where(is_start, "0.25", "0.62")),
        linewidths=list(np.where(is_start, 1.0, 0.6)),
        zorder=1,
    )
    path, origin = reel.path(frame), film_arrays["origin"][frame]
    lower.plot(*path.T, color="black", lw=0.7, alpha=0.7, zorder=2)
    # Early iterations, which change the weights most, differ most in brightness.
    brightness = PowerNorm(0.5, 0, film_arrays["iteration"][-1])(film_arrays["iteration"]).data
    colors = matplotlib.colormaps["plasma"](brightness)
    lower.scatter(*path.T, color=colors, s=(0.35 * shape.font) ** 2, zorder=3, lw=0)
    for position, marker in ((path[0], "o"), (path[-1], "*"), (origin, "P")):
        style.mark_position(lower, position, marker, 0.75 * shape.font)
    lipschitz, condition, iterations = reel.counters(frame)
    lower.set_title(
        f"L {lipschitz}\ncondition number {condition}\niterations to 1%: {iterations}",
        fontsize="small",
    )

    # The view of the path is centred on `origin`, the middle of the contours.
    path_view = origin, PATH_MARGIN * float(np.linalg.norm(path - origin, axis=1).max())
    names = [str(name) for name in film_arrays["names"][reel.key_index(frame)]]
    weight_names = [f"weight of {name}" for name in names]
    views = ((upper, reel.points_view(frame), names), (lower, path_view, weight_names))
    for axis, (centre, half), axis_names in views:
        axis.set_box_aspect(1)
        # With sign -1, the left or lower limit is the larger one: the axis runs backwards.
        (left, bottom), (right, top) = (
            centre + side * film_arrays["signs"][frame] * half for side in (-1, 1)
        )
        axis.set(xlim=(left, right), ylim=(bottom, top))
        style.label_plane(axis, axis_names, FILM_NAME_LETTERS)


def _note_text(reel: Reel) -> str:
    """Return the note that explains the marks and the panels, as lines in one text."""
    # A film has at most two classes, because its cost has one score for each point.
    marks = [f"{mark} {name}" for mark, name in zip("●▲", reel.arrays["class_names"])]
    marks.append(f"{landmarks.letter_range(reel.landmark_indices)}: points to follow")
    through = reel.arrays["through"]
    lines = [
        f"{', '.join(marks)}; circle: the start; star: iteration "
        f"{int(reel.arrays['iteration'][-1])}; cross: {through}",
        "one cost in every frame, descended at step 1/L from one start",
        f"contours through {through}: the bias is held in the scheme's coordinates, "
        "so that moving the points shows in paths and numbers alone",
    ]
    if (reel.arrays["signs"] < 0).any():
        lines.append("one axis is drawn backwards: the scheme mirrors the plane")
    return style.escape_dollars("\n".join(lines))
