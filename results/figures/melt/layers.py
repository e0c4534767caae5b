"""A scheme's layers in numbers: the start's excess by eigendirection, and what is left of it.

They are of the first start. Of least squares under plain descent they follow from the curvatures in
closed form; elsewhere they were measured at each grid run's last weights and along the best run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names

Array = NDArray[np.float64]
Parts = Mapping[str, Any]
CURVATURE = "layer_curvature"
EQUAL = 1e-6  # relative: curvatures that are told apart
THIN = 0.002  # of the start's excess: thinner layers are merged with such neighbours
GONE = 0.1  # of a layer: with less left of it, it is gone
MOST = 500  # iterations that are shown: of more, evenly spaced ones
READ = 1e-5  # relative: a step size that was read off a tag has six digits


@dataclass(frozen=True)
class Layers:
    """The layers of one scheme, n of them, the stiffest first.

    curvature `(n,)`. share `(n,)`: of the start's excess; they add up to 1. sizes `(S,)`: the step
    sizes that were tried, excess `(S, K + 1)` the recorded histories as shares of the start's
    excess. ends `(S, n)`: the shares at each run's last weights, which add up to 1; None where the
    closed form holds. at `(k,)`, path `(k, n)`, path_step: likewise along one run.
    """

    curvature: Array
    share: Array
    sizes: Array
    excess: Array
    ends: Array | None = None
    at: NDArray[np.int64] | None = None
    path: Array | None = None
    path_step: float = float("nan")

    @property
    def exact(self) -> bool:
        """Whether the closed form of least squares holds."""
        return self.ends is None

    @property
    def iterations(self) -> int:
        """The number of iterations, K."""
        return self.excess.shape[1] - 1

    @property
    def apart(self) -> float:
        """Half the distance between neighbouring step sizes, in decades; a quarter without any."""
        decades = np.sort(np.log10(self.sizes))
        return float(np.median(np.diff(decades))) / 2 if len(decades) > 1 else 0.25

    @property
    def profile(self) -> Array:
        """What step sizes leave of the start's excess: of two schemes alike, they are one."""
        if not self.exact:
            return np.minimum(np.nan_to_num(self.excess[:, -1], nan=2.0), 2.0)
        middle = np.log10(1 / self.curvature[0])
        sizes = 10 ** np.linspace(middle - 4, middle + 8, 50)
        return np.array([min(float(self.left(size).sum()), 2.0) for size in sizes])

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """The first of each group of equal curvatures, `(m,)`: as many layers are counted."""
        falls = self.curvature[1:] < self.curvature[:-1] * (1 - EQUAL)
        return np.flatnonzero(np.r_[True, falls])

    @cached_property
    def drawn(self) -> NDArray[np.int64]:
        """The first of each layer that is drawn, `(g,)`: thin neighbours are merged."""
        thin = np.add.reduceat(self.share, self.distinct) < THIN
        return self.distinct[~(thin & np.r_[False, thin[:-1]])]

    @property
    def thickness(self) -> Array:
        """The share of each layer that is drawn, `(g,)`."""
        return np.asarray(np.add.reduceat(self.share, self.drawn))

    @property
    def curvatures(self) -> Array:
        """The mean curvature of each layer that is drawn, by its parts' shares, `(g,)`."""
        weighted = np.add.reduceat(self.curvature * self.share, self.drawn)
        some = self.thickness > 0
        return np.where(some, weighted / np.where(some, self.thickness, 1), 0.0)

    def run(self, step: float) -> int | None:
        """Return the number of the run of a step size; None where none was tried."""
        near = np.flatnonzero(np.isclose(self.sizes, step, rtol=READ, atol=0))
        return int(near[0]) if len(near) else None

    def left(self, step: float, k: int | None = None) -> Array:
        """Return what iterations leave of each layer, as a share of the start's excess, `(n,)`.

        All of them, or the first k of least squares. Infinite where a measured run ends above its
        start, or was not finite. step: of measured layers, one that was tried.
        """
        if self.ends is None:
            with np.errstate(over="ignore"):
                times = 2.0 * (self.iterations if k is None else k)
                shrunk = np.abs(1 - step * self.curvature) ** times
                return np.where(self.share > 0, self.share * shrunk, 0.0)
        run = self.run(step)
        assert run is not None
        end = self.excess[run, -1]
        if not end <= 1 or not np.isfinite(self.ends[run]).all():
            return np.full(len(self.share), np.inf)
        return np.asarray(end * self.ends[run], dtype=float)

    def ratios(self, steps: Array) -> Array:
        """Return what each step size leaves of each layer that is drawn, over the layer, `(s, g)`.

        At most 2: where it is above 1, the layer grows. A measured layer is at most 1, where its
        run ends below its start: the shares at the last weights need not be those of the start.
        """
        rows = [np.add.reduceat(self.left(step), self.drawn) for step in steps]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.array(rows) / self.thickness
        ratio = np.minimum(np.where(np.isnan(ratio), 0.0, ratio), 2.0)
        return ratio if self.exact else np.where(np.isinf(rows), 2.0, np.minimum(ratio, 1.0))

    def gone(self, step: float) -> int:
        """Return how many distinct layers a step size leaves less than a tenth of."""
        left = np.add.reduceat(self.left(step), self.distinct)
        return int((left < GONE * np.add.reduceat(self.share, self.distinct)).sum())

    def history(self, step: float) -> tuple[NDArray[np.int64], Array] | None:
        """Return iterations `(k,)` and what is left of each layer drawn after them, `(k, g)`.

        Of measured layers, of the best run alone; None for any other step size.
        """
        if self.ends is None:
            count = min(self.iterations, MOST) + 1
            at = np.unique(np.linspace(0, self.iterations, count).round().astype(int))
            rows = np.array([self.left(step, int(k)) for k in at])
            return at, np.add.reduceat(rows, self.drawn, axis=1)
        run = self.run(step)
        if run is None or self.path is None or self.at is None:
            return None
        if not np.isclose(self.path_step, step, rtol=READ, atol=0):
            return None
        rows = self.path * np.maximum(self.excess[run, self.at], 0.0)[:, None]
        return self.at, np.add.reduceat(rows, self.drawn, axis=1)


def of_parts(parts: Parts) -> Layers | None:
    """Return the layers of what is kept of a scheme's descent; None where it has none."""
    if CURVATURE not in parts:
        return None
    costs = np.asarray(parts[names.TRAIN_COST.key][:, 0], dtype=float)
    start, least = costs[0, 0], float(parts["minimum"])
    total = float(np.sum(parts["layer_share"]))
    if not (start > least and total > 0):
        return None
    fields: dict[str, Any] = {
        "curvature": np.asarray(parts[CURVATURE], dtype=float),
        "share": np.asarray(parts["layer_share"], dtype=float) / total,
        "sizes": np.asarray(parts["step_sizes"], dtype=float),
        "excess": (costs - least) / (start - least),
    }
    if "layer_ends" in parts:
        fields["ends"] = parts["layer_ends"]
    if "layer_path" in parts:
        fields |= {"at": parts["layer_at"], "path": parts["layer_path"]}
        fields["path_step"] = float(parts["layer_step"])
    return Layers(**fields)
