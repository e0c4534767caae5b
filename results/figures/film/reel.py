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
    """The film of a scheme.

    Attributes:
        arrays: the arrays of `record=[film]`, see `harness/measures/film.py`.
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
        """Return the view of all points, under any rotation, and of the origin if it is near."""
        points = self.points(frame)
        centre = self.arrays["image"][frame]
        radius = float(np.linalg.norm(points - centre, axis=1).max()) or 1.0
        # Extend the square around the points to 0, by at most `ORIGIN_REACH` radii.
        low = np.minimum(centre - radius, np.maximum(0.0, centre - radius - ORIGIN_REACH * radius))
        high = np.maximum(centre + radius, np.minimum(0.0, centre + radius + ORIGIN_REACH * radius))
        return View((low + high) / 2, VIEW_MARGIN * float((high - low).max()) / 2)

    def path(self, frame: int) -> Array:
        """Return the weights along the descent (n, 2), without the bias, which comes first."""
        return np.asarray(self.arrays["path"][frame, :, 1:])

    @cached_property
    def contours(self) -> list[list[Array]]:
        """The contours, by level: lines (k, 2) in coordinates that all frames share.

        The levels are spaced as in `contours`; level `LEVEL_COUNT - 1` passes through the start's
        weights.
        """
        from contourpy import contour_generator

        film_arrays = self.arrays
        lowest, start_level = float(film_arrays["lowest"]), float(film_arrays["level"])
        # Of the start's excess, up to `DOUBLING_START`; that of level `LEVEL_COUNT - 1` is 1.
        shares = (np.arange(1, round(LEVEL_COUNT * DOUBLING_START**0.5) + 1) / LEVEL_COUNT) ** 2
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
        """Return the view of the path, centred on the least cost."""
        origin = self.arrays["origin"][frame]
        half = float(np.linalg.norm(self.path(frame) - origin, axis=1).max())
        return View(origin, PATH_MARGIN * half)

    @cached_property
    def landmark_indices(self) -> list[int]:
        """The indices of the landmarks: the outermost raw points, as in other figures."""
        return landmarks.choose(self.points(0))

    def key_index(self, frame: int) -> int:
        """Return the position, among the key frames, of the first one at or after a frame."""
        return int(np.searchsorted(self.arrays["keys"], frame))

    def names(self, frame: int) -> list[str]:
        """Return the names of a frame's coordinates: those of the key frame at or after it."""
        return [str(name) for name in self.arrays["names"][self.key_index(frame)]]

    def counters(self, frame: int) -> tuple[str, str, str]:
        """Return the texts of L, the condition number, and the iterations to one percent.

        A recorded number of iterations below 0 means that the descent did not get there.
        """
        iteration_count = int(self.arrays["iterations"][frame])
        condition = float(self.arrays["condition"][frame])
        return (
            ticks.short_text(float(self.arrays["lipschitz"][frame])),
            "not known" if np.isnan(condition) else ticks.short_text(condition),
            f"{iteration_count:,}" if iteration_count >= 0 else f"> {int(self.arrays['most']):,}",
        )
