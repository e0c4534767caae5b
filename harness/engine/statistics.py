"""Statistics of a scheme that move with the batches: of a batch, of the points seen, of the last.

The points that an update sees are under the scheme of that update. Where statistics move between
two records, so does the function that the weights make, without a step: its costs are those of all
points under the scheme of the latest update. Before the first update that is the scheme of the
first batch.
"""

import warnings
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Points, is_in_memory
from normbench.datasets.values import UserError
from normbench.engine.batches import Batches
from normbench.engine.problem import Array
from normbench.engine.scheme.applying import transform_points
from normbench.engine.scheme.learned import fit_scheme
from normbench.normalizers.affine import learns_by_blocks
from normbench.normalizers.on_columns import name_scheme
from normbench.settings import BATCH_STATISTICS
from normbench.settings import FITTED as FITTED
from normbench.settings import RUNNING_STATISTICS as RUNNING_STATISTICS
from normbench.settings import WINDOW_STATISTICS as WINDOW_STATISTICS


def check_statistics(kind: str, x: Points, l2_in: str, fit_on: str) -> None:
    """Check moving statistics of a scheme against the points, the penalty and `fit_on`.

    Args:
        kind: What the scheme is fitted on, one of `settings.SCHEME_STATISTICS`; `fitted` always
            passes.
        x: The training points (P, N).
        l2_in: The weights that a penalty is on; empty without one.
        fit_on: The points that schemes are fitted on, `train` or `all`.

    Raises:
        UserError: The points are sparse or on disk; or the penalty or `fit_on` needs the same
            scheme at every step.
    """
    if kind == FITTED:
        return
    setting = f"normalizer.statistics={kind}"
    if not is_in_memory(x):
        raise UserError(f"{setting}: takes dense points in memory; use statistics=fitted")
    if l2_in == "features":
        raise UserError(
            f"{setting}: cost.l2_in=features would be another penalty at each step; use "
            "cost.l2_in=transformed, or statistics=fitted"
        )
    if fit_on == "all":
        raise UserError(
            f"{setting}: a step sees training points alone; use dataset.fit_on=train, or "
            "statistics=fitted"
        )


@dataclass
class SeenPoints:
    """The points seen up to an update, and the scheme that has learned from them.

    update: the latest update, -1 for none. is_seen: mask of the points, `(P,)`. scheme: fitted on
    the seen points, None before any.
    """

    update: int
    is_seen: Array
    scheme: Any


@dataclass(frozen=True)
class Statistics:
    """The scheme of each update, fitted on points that its kind selects.

    kind: `batch`: the points of the update; `running`: all points seen so far, each once; `window`:
    the last `window` points of the order. Once every point has been seen, `running` has the
    statistics of all points. Records under `batch` always use the statistics of all points.

    scheme: not fitted itself; copies of it are. x: the points before the scheme, `(P, N)`. batches:
    which points each update sees. dtype: the type of the transformed points. features: how many
    features the scheme gives on all points. memory: under `running`, the state after the update
    that was asked for last, from which the next one goes on.
    """

    kind: str
    window: int | None
    scheme: Any
    x: Array
    batches: Batches
    dtype: Any
    features: int
    # Computed from the order alone: another copy has the same.
    memory: dict[str, SeenPoints] = field(default_factory=dict, compare=False, repr=False)

    @property
    def description(self) -> str:
        """The fields that determine the schemes, as a checkpoint holds them."""
        return f"{self.kind} {self.window}"

    def of_batch(self, update: int) -> Array | None:
        """Return the points (p, M) of an update under its scheme.

        None where that is the scheme of all points, under which the caller has them already.
        """
        scheme = self.scheme_of(update)
        if scheme is None:
            return None
        return self.transform(scheme, self.x[self.batches.points_of(update)])

    def scheme_of(self, update: int) -> Any:
        """Return the fitted scheme of an update; None for the scheme of all points.

        None is returned under `running` alone, once every point has been seen. Under `window` the
        scheme is fitted on fewer points than the window where fewer have been seen.
        """
        if self.kind == RUNNING_STATISTICS:
            return self._running_scheme(update)
        if self.kind == BATCH_STATISTICS:
            return self._fit(self.x[self.batches.points_of(update)])
        assert self.window is not None
        # Batches before the update are added until they fill the window.
        earliest, rows = update, [self.batches.points_of(update)]
        while sum(map(len, rows)) < self.window and earliest > 0:
            earliest -= 1
            rows.insert(0, self.batches.points_of(earliest))
        return self._fit(self.x[np.concatenate(rows)[-self.window :]])

    def scheme_after(self, updates: int) -> Any:
        """Return the scheme of a record after so many updates; None for that of all points.

        It is the scheme of the latest update; before the first update, that of the first one.
        """
        return None if self.kind == BATCH_STATISTICS else self.scheme_of(max(updates - 1, 0))

    def transform(self, scheme: Any, x: Array) -> Array:
        """Return points under one of the schemes.

        Args:
            scheme: A fitted scheme, from `scheme_of`.
            x: Points before the scheme (p, N).

        Returns:
            Points (p, M).

        Raises:
            UserError: The scheme fails on these points, or gives another number of features than on
                all points.
        """
        z: Array = self._call_checked(lambda: transform_points(scheme, x, self.dtype))
        if z.shape[1] != self.features:
            raise UserError(
                f"normalizer.statistics={self.kind}: {name_scheme(self.scheme)} gives "
                f"{z.shape[1]} features at a step and {self.features} on all points; choose "
                "options that fix their number, or statistics=fitted"
            )
        return z

    def _running_scheme(self, update: int) -> Any:
        """Return the scheme of all points seen up to an update; None where these are all.

        It goes on from the update that was asked for last, whose state is in `memory`. A scheme
        that learns by blocks learns from the new points of each update; another one is fitted on
        all seen points again.
        """
        seen = self.memory.get(RUNNING_STATISTICS)
        if seen is None or seen.update > update:  # an earlier update: begin again
            seen = SeenPoints(-1, np.zeros(len(self.x), dtype=bool), None)
            self.memory[RUNNING_STATISTICS] = seen
        by_blocks = learns_by_blocks(self.scheme)
        has_new_points = seen.update < update and not seen.is_seen.all()
        for number in range(seen.update + 1, update + 1) if has_new_points else ():
            rows = self.batches.points_of(number)
            # Each point is learned once; with replacement a batch may hold it twice.
            rows = np.unique(rows[~seen.is_seen[rows]])
            seen.is_seen[rows] = True
            if by_blocks and len(rows):
                seen.scheme = self._fit(self.x[rows], seen.scheme)
        seen.update = update
        if seen.is_seen.all():
            return None
        # One fit, on the points of all updates so far.
        if has_new_points and not by_blocks:
            seen.scheme = self._fit(self.x[seen.is_seen])
        return seen.scheme

    def _fit(self, x: Array, scheme: Any = None) -> Any:
        """Return a scheme fitted on points x (p, N).

        scheme: a fitted scheme that learns from x in addition, in place; None for a new copy of the
        normalizer.
        """
        if scheme is not None:
            self._call_checked(lambda: scheme.partial_fit(x.astype(np.float64, copy=False)))
            return scheme
        scheme = deepcopy(self.scheme)
        self._call_checked(lambda: fit_scheme(scheme, x, None))
        return scheme

    def _call_checked(self, action: Any) -> Any:
        """Return what `action()` returns, with numerical warnings off.

        A `ValueError` of the scheme is raised again as a `UserError` that names the setting and the
        remedy.
        """
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)
                return action()
        except UserError:  # a ValueError whose message is complete already
            raise
        except ValueError as error:
            raise UserError(
                f"normalizer.statistics={self.kind}: {name_scheme(self.scheme)} refuses the points "
                f"of an update ({' '.join(str(error).split())}); choose a larger batch or "
                "window, or statistics=fitted"
            ) from error
