"""The frames of a film of a scheme: what each shows, in its own coordinates."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.results.figures.base import followed, ticks
from normbench.results.figures.contours import DOUBLING_START, LEVEL_COUNT

Array = NDArray[np.float64]
REACH = 5.0  # times the points' extent: so far the origin is kept in sight
ROOM = 1.08  # of the points' extent
WIDER = 1.25  # times the path's: the contour through the start is seen


class View(NamedTuple):
    """A square that a panel shows: its middle (2,), and half its side."""

    middle: Array
    half: float


@dataclass(frozen=True)
class Reel:
    """What `record=[film]` keeps of a scheme, by frame; parts: see `harness/measures/film.py`."""

    arrays: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.arrays["matrix"])

    @property
    def keys(self) -> list[int]:
        """The key frames."""
        return [int(frame) for frame in self.arrays["keys"]]

    def points(self, frame: int) -> Array:
        """Return the points (p, 2)."""
        parts = self.arrays
        away = parts["points"] - parts["centre"]
        return away @ parts["matrix"][frame].T + parts["image"][frame]

    def about(self, frame: int) -> View:
        """Return what shows the points: all, however they are turned, and the origin, if near."""
        points = self.points(frame)
        middle = self.arrays["image"][frame]
        radius = float(np.linalg.norm(points - middle, axis=1).max()) or 1.0
        low = np.minimum(middle - radius, np.maximum(0.0, middle - radius - REACH * radius))
        high = np.maximum(middle + radius, np.minimum(0.0, middle + radius + REACH * radius))
        return View((low + high) / 2, ROOM * float((high - low).max()) / 2)

    def path(self, frame: int) -> Array:
        """Return the descent's weights (n, 2), without the bias."""
        return np.asarray(self.arrays["path"][frame, :, 1:])

    @cached_property
    def contours(self) -> list[list[Array]]:
        """The contours, by level: lines of places (k, 2), which a frame shows as its weights.

        Levels stand as far apart as those of `contours`; number `LEVELS - 1` goes through the
        start's weights.
        """
        from contourpy import contour_generator

        parts = self.arrays
        lowest, level = float(parts["lowest"]), float(parts["level"])
        shares = (np.arange(1, round(LEVEL_COUNT * DOUBLING_START**0.5) + 1) / LEVEL_COUNT) ** 2
        found: Any = contour_generator(parts["along"], parts["along"], parts["cost"])
        return [found.lines(one) for one in lowest + shares * (level - lowest)]

    def lines(self, frame: int) -> list[list[Array]]:
        """Return the contours of a frame, by level: lines of weights (k, 2)."""
        origin, basis = self.arrays["origin"][frame], self.arrays["basis"][frame]
        return [[origin + line @ basis for line in level] for level in self.contours]

    def around(self, frame: int) -> View:
        """Return what shows the path, and as much around the least cost."""
        origin = self.arrays["origin"][frame]
        half = float(np.linalg.norm(self.path(frame) - origin, axis=1).max())
        return View(origin, WIDER * half)

    @cached_property
    def marked(self) -> list[int]:
        """Points to follow by eye: those that other figures follow, the outermost as they came."""
        return followed.choose(self.points(0))

    def key_of(self, frame: int) -> int:
        """Return the number of the key frame that a frame is, or goes to."""
        return int(np.searchsorted(self.arrays["keys"], frame))

    def names(self, frame: int) -> list[str]:
        """Return what the coordinates are called."""
        return [str(name) for name in self.arrays["names"][self.key_of(frame)]]

    def counters(self, frame: int) -> tuple[str, str, str]:
        """Return L, the condition number, and the iterations to one percent, in words."""
        made = int(self.arrays["iterations"][frame])
        condition = float(self.arrays["condition"][frame])
        return (
            ticks.short_text(float(self.arrays["lipschitz"][frame])),
            "not known" if np.isnan(condition) else ticks.short_text(condition),
            f"{made:,}" if made >= 0 else f"> {int(self.arrays['most']):,}",
        )
