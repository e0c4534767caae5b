"""Statistics of a scheme that move with the batches: of a batch, of the points seen, of the last.

The points that an update sees are under the scheme of that update. Where statistics move between
two records, so does the function that the weights make, without a step: its costs are those of all
points under the scheme of the latest update. Before the first update that is the scheme of the
first batch.
"""

import warnings
from collections.abc import Callable
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
from normbench.normalizers.on_columns import learns_by_blocks, name_scheme
from normbench.settings import BATCH_STATISTICS, FITTED, RUNNING_STATISTICS


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
    for is_wrong, rule in (
        (not is_in_memory(x), "takes dense points in memory; use statistics=fitted"),
        (
            l2_in == "features",
            "cost.l2_in=features would be another penalty at each step; use "
            "cost.l2_in=transformed, or statistics=fitted",
        ),
        (
            fit_on == "all",
            "a step sees training points alone; use dataset.fit_on=train, or statistics=fitted",
        ),
    ):
        if is_wrong and kind != FITTED:
            raise UserError(f"normalizer.statistics={kind}: {rule}")


@dataclass(eq=False)
class Statistics:
    """The scheme of each update, fitted on points that its kind selects.

    kind: `batch`: the points of the update; `running`: all points seen so far, each once; `window`:
    the last `window` points of the order. Once every point has been seen, `running` has the
    statistics of all points. Records under `batch` always use the statistics of all points.

    scheme: not fitted itself; copies of it are. x, x_test: the training and the test points before
    the scheme, `(P, N)` and `(Q, N)`. batches: which points each update sees. dtype: the type of
    the transformed points. features: how many features the scheme gives on all points.

    seen_until, is_seen, seen_scheme: under `running`, the update that was asked for last, the mask
    `(P,)` of the points seen up to it, and the scheme that has learned from them.
    """

    kind: str
    window: int | None
    scheme: Any
    x: Array
    x_test: Array
    batches: Batches
    dtype: Any
    features: int
    seen_until: int = field(default=-1, init=False)
    is_seen: Array = field(init=False)
    seen_scheme: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.is_seen = np.zeros(len(self.x), dtype=bool)

    def of_batch(self, update: int) -> Array | None:
        """Return the points (p, M) of an update under its scheme.

        None where that is the scheme of all points, under which the caller has them already.

        Raises:
            UserError: The scheme refuses the points, or gives another number of features than on
                all points.
        """
        return self._transform(self._scheme_of(update), self.x[self.batches.points_of(update)])

    def of_record(self, updates: int, is_test: bool) -> Array | None:
        """Return all training or test points under the scheme of a record after so many updates.

        That is the scheme of the latest update; before the first update, that of the first one.
        None and errors as of `of_batch`.
        """
        if self.kind == BATCH_STATISTICS:
            return None
        scheme = self._scheme_of(max(updates - 1, 0))
        return self._transform(scheme, self.x_test if is_test else self.x)

    def _scheme_of(self, update: int) -> Any:
        """Return the fitted scheme of an update; None for the scheme of all points.

        Under `window` the scheme is fitted on fewer points than the window where fewer have been
        seen.
        """
        if self.kind == RUNNING_STATISTICS:
            return self._running_scheme(update)
        rows = self.batches.points_of(update)
        if self.window is not None:
            # Batches before the update are added until they fill the window.
            while len(rows) < self.window and update > 0:
                update -= 1
                rows = np.concatenate([self.batches.points_of(update), rows])
            rows = rows[-self.window :]
        return self._fit(self.x[rows])

    def _running_scheme(self, update: int) -> Any:
        """Return the scheme of all points seen up to an update; None where these are all.

        It goes on from the update that was asked for last. A scheme that learns by blocks learns
        from the new points of each update; another one is fitted on all seen points again.
        """
        if self.seen_until > update:  # an earlier update: begin again
            self.seen_until, self.seen_scheme = -1, None
            self.is_seen[:] = False
        while self.seen_until < update and not self.is_seen.all():
            self.seen_until += 1
            rows = self.batches.points_of(self.seen_until)
            # Each point is learned once; with replacement a batch may hold it twice.
            rows = np.unique(rows[~self.is_seen[rows]])
            self.is_seen[rows] = True
            if len(rows) and learns_by_blocks(self.scheme):
                self.seen_scheme = self._fit(self.x[rows], self.seen_scheme)
            elif len(rows):
                self.seen_scheme = self._fit(self.x[self.is_seen])
        return None if self.is_seen.all() else self.seen_scheme

    def _transform(self, scheme: Any, x: Array) -> Array | None:
        """Return points x (p, N) under a fitted scheme, (p, M); None for that of all points."""
        if scheme is None:
            return None
        z: Array = self._call_checked(transform_points, scheme, x, self.dtype)
        if z.shape[1] != self.features:
            raise UserError(
                f"normalizer.statistics={self.kind}: {name_scheme(self.scheme)} gives "
                f"{z.shape[1]} features at a step and {self.features} on all points; choose "
                "options that fix their number, or statistics=fitted"
            )
        return z

    def _fit(self, x: Array, scheme: Any = None) -> Any:
        """Return a scheme fitted on points x (p, N).

        scheme: a fitted scheme that learns from x in addition, in place; None for a new copy of the
        normalizer.
        """
        if scheme is not None:
            self._call_checked(scheme.partial_fit, x.astype(np.float64, copy=False))
            return scheme
        scheme = deepcopy(self.scheme)
        self._call_checked(fit_scheme, scheme, x, None)
        return scheme

    def _call_checked(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, with numerical warnings off.

        A `ValueError` of the scheme is raised again as a `UserError` that names the setting and the
        remedy.
        """
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore", RuntimeWarning)
                return function(*arguments)
        except UserError:  # a ValueError whose message is complete already
            raise
        except ValueError as error:
            raise UserError(
                f"normalizer.statistics={self.kind}: {name_scheme(self.scheme)} refuses the points "
                f"of an update ({' '.join(str(error).split())}); choose a larger batch or "
                "window, or statistics=fitted"
            ) from error
