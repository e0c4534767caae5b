"""The layers of a scheme: the start's excess by eigendirection, and the shares left of it.

The layers are those of the first start. For least squares under plain gradient descent, the shares
left have a closed form in the curvatures. Otherwise they were measured at the last weights of each
run of the grid, and along the best run.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.results.figures.base.material import SchemeArrays

Array = NDArray[np.float64]
LAYER_CURVATURE = "layer_curvature"
EQUAL_CURVATURE_TOLERANCE = 1e-6  # relative: closer curvatures are equal
SEPARATED_SHARE = 0.015  # of the start's excess: a line separates neighbours that both have more
THIN_SHARE = 0.002  # of the start's excess: thinner neighbours are merged
GONE_RATIO = 0.1  # a layer with a smaller share left counts as gone
MAX_DRAWN_ITERATIONS = 500  # of more iterations, evenly spaced ones are drawn
TAG_TOLERANCE = 1e-5  # relative: step sizes in tags have six digits


@dataclass(frozen=True)
class Layers:
    """The layers of one scheme, n of them, the stiffest first.

    A layer is the start's excess along one eigendirection of the Hessian at the start. The shares
    left are exact, by the closed form of least squares, or measured at the last weights of each
    run. Layers of equal curvature count as one (`distinct_offsets`); of these, thin neighbours are
    drawn as one (`drawn_offsets`).

    Attributes:
        curvature: `(n,)`, of each direction, decreasing.
        excess_share: `(n,)`, the share of the start's excess in each layer; the shares add up to 1.
        step_sizes: `(S,)`, the tried step sizes, one for each run.
        excess: `(S, K + 1)`, the histories as multiples of the start's excess.
        ends: `(S, n)`, the shares of the excess at each run's last weights, which add up to 1;
            None if the closed form holds.
        path_iterations: `(k,)`, iterations of one run.
        path: `(k, n)`, the shares of the excess at these iterations.
        path_step: the step size of this run.
    """

    curvature: Array
    excess_share: Array
    step_sizes: Array
    excess: Array
    ends: Array | None = None
    path_iterations: NDArray[np.int64] | None = None
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
    def half_spacing(self) -> float:
        """Half the distance of neighbouring step sizes in decades; 0.25 for a single step size."""
        decades = np.sort(np.log10(self.step_sizes))
        return float(np.median(np.diff(decades))) / 2 if len(decades) > 1 else 0.25

    @property
    def profile(self) -> Array:
        """The final excess over step sizes, at most 2; equal schemes have equal profiles.

        Exact layers have it at 50 step sizes around 1 / L, measured ones at those tried. It is a
        multiple of the start's excess, 2 also if it is not finite.
        """
        if not self.exact:
            return np.minimum(np.nan_to_num(self.excess[:, -1], nan=2.0), 2.0)
        log_centre = np.log10(1 / self.curvature[0])  # from 4 decades below to 8 above
        step_sizes = 10 ** np.linspace(log_centre - 4, log_centre + 8, 50)
        return np.array(
            [min(float(self.remaining_excess(step_size).sum()), 2.0) for step_size in step_sizes]
        )

    @cached_property
    def distinct_offsets(self) -> NDArray[np.int64]:
        """The first index of each group of equal curvatures, `(m,)`; each group is one layer."""
        # A group ends where the next curvature is smaller by more than the tolerance.
        is_smaller = self.curvature[1:] < self.curvature[:-1] * (1 - EQUAL_CURVATURE_TOLERANCE)
        return np.flatnonzero(np.r_[True, is_smaller])

    @cached_property
    def drawn_offsets(self) -> NDArray[np.int64]:
        """The first index of each drawn layer, `(g,)`.

        A drawn layer is one group of `distinct_offsets`, or consecutive groups that are all thin.
        """
        is_thin = np.add.reduceat(self.excess_share, self.distinct_offsets) < THIN_SHARE
        # A thin group after a thin group belongs to the drawn layer that has begun.
        return self.distinct_offsets[~(is_thin & np.r_[False, is_thin[:-1]])]

    @property
    def thickness(self) -> Array:
        """The share of each drawn layer, `(g,)`."""
        return np.asarray(np.add.reduceat(self.excess_share, self.drawn_offsets))

    @property
    def separated(self) -> NDArray[np.int64]:
        """The indices of the drawn layers that a line separates from the next layer.

        Both of them have at least `SEPARATED_SHARE` of the start's excess.
        """
        is_thick = self.thickness >= SEPARATED_SHARE
        return np.flatnonzero(is_thick[:-1] & is_thick[1:])

    @property
    def curvatures(self) -> Array:
        """The mean curvature of each drawn layer, weighted by shares, `(g,)`; 0 without a share."""
        weighted_sums = np.add.reduceat(self.curvature * self.excess_share, self.drawn_offsets)
        has_share = self.thickness > 0
        return np.where(has_share, weighted_sums / np.where(has_share, self.thickness, 1), 0.0)

    def run_index(self, step: float) -> int | None:
        """Return the index of the run with a step size; None if the step size was not tried."""
        matches = np.flatnonzero(np.isclose(self.step_sizes, step, rtol=TAG_TOLERANCE, atol=0))
        return int(matches[0]) if len(matches) else None

    def remaining_excess(self, step: float, k: int | None = None) -> Array:
        """Return the excess left in each layer as a share of the start's excess, `(n,)`.

        The result is infinite if a measured run ends above its start or is not finite.

        Args:
            step: the step size; for measured layers, one that was tried.
            k: the number of iterations, only for exact layers; None for all.
        """
        if self.ends is None:
            # Each iteration multiplies the excess along a direction of curvature h by (1 - a h)^2.
            with np.errstate(over="ignore", invalid="ignore"):
                exponent = 2.0 * (self.iterations if k is None else k)
                decay = np.abs(1 - step * self.curvature) ** exponent
                # A layer without excess keeps none: 0 times an infinite factor would be NaN.
                return np.where(self.excess_share > 0, self.excess_share * decay, 0.0)
        run_index = self.run_index(step)
        assert run_index is not None
        end_excess = self.excess[run_index, -1]
        # `not <=` instead of `>`, so that NaN counts as above.
        if not end_excess <= 1 or not np.isfinite(self.ends[run_index]).all():
            return np.full(len(self.excess_share), np.inf)
        return np.asarray(end_excess * self.ends[run_index], dtype=float)

    def ratios(self, steps: Array) -> Array:
        """Return the excess left in each drawn layer over its excess at the start, `(s, g)`.

        The ratio is at most 2; a layer with a ratio above 1 grows. The ratio of a measured layer is
        at most 1 if its run ends below its start, because the excess moves between directions.

        Args:
            steps: `(s,)`, the step sizes.
        """
        remaining = [
            np.add.reduceat(self.remaining_excess(step), self.drawn_offsets) for step in steps
        ]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.array(remaining) / self.thickness
        # A layer without excess, 0 / 0, counts as gone.
        ratios = np.minimum(np.where(np.isnan(ratios), 0.0, ratios), 2.0)
        # Measured layers of a run that ends above its start are infinite, and all grow.
        return ratios if self.exact else np.where(np.isinf(remaining), 2.0, np.minimum(ratios, 1.0))

    def count_gone(self, step: float) -> int:
        """Return the number of distinct layers of which a step size leaves less than a tenth."""
        remaining = np.add.reduceat(self.remaining_excess(step), self.distinct_offsets)
        return int(
            (
                remaining < GONE_RATIO * np.add.reduceat(self.excess_share, self.distinct_offsets)
            ).sum()
        )

    def history(self, step: float) -> tuple[NDArray[np.int64], Array] | None:
        """Return iterations `(k,)` and the excess left in each drawn layer after them, `(k, g)`.

        Measured layers have only the history of one run, that of `path_step`; None for other step
        sizes.
        """
        if self.ends is None:
            count = min(self.iterations, MAX_DRAWN_ITERATIONS) + 1
            iterations = np.unique(np.linspace(0, self.iterations, count).round().astype(int))
            remaining = np.array([self.remaining_excess(step, int(k)) for k in iterations])
            return iterations, np.add.reduceat(remaining, self.drawn_offsets, axis=1)
        run_index = self.run_index(step)
        if run_index is None or self.path is None or self.path_iterations is None:
            return None
        # The recorded history is that of another step size.
        if not np.isclose(self.path_step, step, rtol=TAG_TOLERANCE, atol=0):
            return None
        # Shares of the excess at each iteration, times that excess over the start's, which rounding
        # may take below 0.
        remaining = (
            self.path * np.maximum(self.excess[run_index, self.path_iterations], 0.0)[:, None]
        )
        return self.path_iterations, np.add.reduceat(remaining, self.drawn_offsets, axis=1)


def layers_from_arrays(scheme_arrays: SchemeArrays) -> Layers | None:
    """Return the layers of a scheme; None if its recorded arrays have none, or no excess.

    Args:
        scheme_arrays: the recorded arrays of the descent: `step_sizes` (S,), `train/cost`
            (S, starts, K + 1), of which the first start is used, and the least cost `minimum` ();
            optionally `layer_curvature` and `layer_share` (n,), and for measured layers
            `layer_ends` (S, n), `layer_path` (k, n), `layer_at` (k,) and `layer_step` ().
    """
    if LAYER_CURVATURE not in scheme_arrays:
        return None
    costs = np.asarray(scheme_arrays[names.TRAIN_COST.key][:, 0], dtype=float)
    start_cost, least_cost = costs[0, 0], float(scheme_arrays["minimum"])
    total_share = float(np.sum(scheme_arrays["layer_share"]))
    if not (start_cost > least_cost and total_share > 0):  # no excess, or NaN
        return None
    fields: dict[str, Any] = {
        "curvature": np.asarray(scheme_arrays[LAYER_CURVATURE], dtype=float),
        "excess_share": np.asarray(scheme_arrays["layer_share"], dtype=float) / total_share,
        "step_sizes": np.asarray(scheme_arrays["step_sizes"], dtype=float),
        "excess": (costs - least_cost) / (start_cost - least_cost),
    }
    if "layer_ends" in scheme_arrays:
        fields["ends"] = scheme_arrays["layer_ends"]
    if "layer_path" in scheme_arrays:
        fields |= {
            "path_iterations": scheme_arrays["layer_at"],
            "path": scheme_arrays["layer_path"],
        }
        fields["path_step"] = float(scheme_arrays["layer_step"])
    return Layers(**fields)
