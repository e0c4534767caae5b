"""The frames of a film of a scheme: points, contours and path in the coordinates of each frame."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.results.figures.base import landmarks, ticks
from normbench.results.figures.contours import DOUBLING_START, LEVEL_COUNT

Array = NDArray[np.float64]
ORIGIN_REACH = 5.0  # times the points' radius: the view shows the origin up to this distance
VIEW_MARGIN = 1.08  # of the view over the points' extent
PATH_MARGIN = 1.25  # of the view over the path's extent, to show the start's contour


class View(NamedTuple):
    """The square that a panel shows: its centre (2,) and half its side."""

    centre: Array
    half: float


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
        film_arrays = self.arrays
        centred = film_arrays["points"] - film_arrays["centre"]
        return centred @ film_arrays["matrix"][frame].T + film_arrays["image"][frame]

    def points_view(self, frame: int) -> View:
        """Return the view of all points, and of the origin if it is near.

        The view contains a circle around the mean that contains all points: unless it is extended
        to the origin, a frame that only rotates the points has a view of the same size.
        """
        points = self.points(frame)
        centre = self.arrays["image"][frame]  # the mean of the data set in this frame
        # 1 if all points coincide.
        radius = float(np.linalg.norm(points - centre, axis=1).max()) or 1.0
        # Extend the square around the points to 0, by at most `ORIGIN_REACH` radii on each axis.
        low = np.minimum(centre - radius, np.maximum(0.0, centre - radius - ORIGIN_REACH * radius))
        high = np.maximum(centre + radius, np.minimum(0.0, centre + radius + ORIGIN_REACH * radius))
        return View((low + high) / 2, VIEW_MARGIN * float((high - low).max()) / 2)

    def path(self, frame: int) -> Array:
        """Return the weights along the descent (n, 2), without the bias, which comes first."""
        return np.asarray(self.arrays["path"][frame, :, 1:])

    @cached_property
    def contours(self) -> list[list[Array]]:
        """The contours, by level: lines (k, 2) in the coordinates of the grid `along`.

        All frames share these coordinates; `lines` maps them to the weights of a frame. The levels
        are spaced as in `figures.contours.levels`: level `LEVEL_COUNT - 1` passes through the
        start's weights, and the highest has about `DOUBLING_START` times the start's excess.
        """
        from contourpy import contour_generator

        film_arrays = self.arrays
        lowest, start_level = float(film_arrays["lowest"]), float(film_arrays["level"])
        # The excess of each level as a share of the start's; that of `LEVEL_COUNT - 1` is 1.
        shares = (np.arange(1, round(LEVEL_COUNT * DOUBLING_START**0.5) + 1) / LEVEL_COUNT) ** 2
        # The grid has the same positions along both axes.
        generator: Any = contour_generator(
            film_arrays["along"], film_arrays["along"], film_arrays["cost"]
        )
        return [
            generator.lines(contour_level)
            for contour_level in lowest + shares * (start_level - lowest)
        ]

    def lines(self, frame: int) -> list[list[Array]]:
        """Return the contours of a frame, by level: lines (k, 2) in the frame's weights."""
        origin, basis = self.arrays["origin"][frame], self.arrays["basis"][frame]
        return [[origin + line @ basis for line in level] for level in self.contours]

    def cost_view(self, frame: int) -> View:
        """Return the view of the path, centred on `origin`, the middle of the contours.

        `origin` is the weights of least cost, or if none are known, the end of the last path.
        """
        origin = self.arrays["origin"][frame]
        half = float(np.linalg.norm(self.path(frame) - origin, axis=1).max())
        return View(origin, PATH_MARGIN * half)

    @cached_property
    def landmark_indices(self) -> list[int]:
        """The indices of the landmarks: the outermost raw points, as in other figures."""
        return landmarks.choose(self.points(0))

    def key_index(self, frame: int) -> int:
        """Return the index into `keys` of the first key frame at or after a frame."""
        return int(np.searchsorted(self.arrays["keys"], frame))

    def names(self, frame: int) -> list[str]:
        """Return the names of a frame's coordinates: those of the key frame at or after it."""
        return [str(name) for name in self.arrays["names"][self.key_index(frame)]]

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
