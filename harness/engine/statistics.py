"""Statistics of a scheme that move with the batches: of a batch, of the points seen, of the last.

The points that an update sees are under the scheme of that update. Where statistics move between
two records, so does the function that the weights make, without a step: its costs are those of all
points under the scheme of the latest update. Before the first update that is the scheme of the
first batch.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import Dataset
from normbench.engine.scheme.applying import fit_scheme, named_errors, transform_points
from normbench.normalizers.on_columns import learns_by_blocks, name_scheme
from normbench.settings import BATCH_STATISTICS, RUNNING_STATISTICS

Array = NDArray[Any]


@dataclass(eq=False)
class Statistics:
    """The scheme of each update, fitted on points that its kind selects.

    kind: `batch`: the points of the update; `running`: all points seen so far, each once; `window`:
    the last `window` points of the order. Once every point has been seen, `running` has the
    statistics of all points. Records under `batch` always use the statistics of all points.

    scheme: copies of it are fitted. data: the points before the scheme. batches: which points each
    update sees, a `plan.Batches`. z: the training points under the scheme of all points.

    seen_until, is_seen, seen_scheme: under `running`, the update that was asked for last, the mask
    `(P,)` of the points seen up to it, and the scheme that has learned from them.
    """

    kind: str
    window: int | None
    scheme: Any
    data: Dataset
    batches: Any
    z: Array
    seen_until: int = field(default=-1, init=False)
    is_seen: Array = field(init=False)
    seen_scheme: Any = field(default=None, init=False)

    def of_batch(self, update: int) -> Array | None:
        """Return the points (p, M) of an update under its scheme.

        None where that is the scheme of all points, under which the caller has them already.

        Raises:
            UserError: The scheme refuses the points, or gives another number of features than on
                all points.
        """
        return self._transform(update, self.data.x[self.batches.points_of(update)])

    def of_record(self, updates: int, is_test: bool) -> Array | None:
        """Return all training or test points under the scheme of a record after so many updates.

        That is the scheme of the latest update; before the first update, that of the first one.
        None and errors as of `of_batch`.
        """
        if self.kind == BATCH_STATISTICS:
            return None
        return self._transform(max(updates - 1, 0), self.data.x_test if is_test else self.data.x)

    def _transform(self, update: int, x: Array) -> Array | None:
        """Return points x (p, N) under the scheme of an update; None where it is of all points."""
        setting = f"normalizer.statistics={self.kind}: {name_scheme(self.scheme)}"
        remedy = "; choose a larger batch or window, or statistics=fitted"
        with named_errors(f"{setting} refuses the points of an update", remedy):
            is_running = self.kind == RUNNING_STATISTICS
            scheme = self._running_scheme(update) if is_running else self._latest_scheme(update)
            if scheme is None:
                return None
            z: Array = transform_points(scheme, x, self.z.dtype, self.z.shape[1])
            return z

    def _latest_scheme(self, update: int) -> Any:
        """Return a scheme fitted on the points of an update, or on the window that ends there.

        These are fewer points than the window where fewer have been seen.
        """
        rows = self.batches.points_of(update)
        while len(rows) < (self.window or 0) and update > 0:
            update -= 1
            rows = np.concatenate([self.batches.points_of(update), rows])
        return self._fit(rows[-(self.window or len(rows)) :])

    def _running_scheme(self, update: int) -> Any:
        """Return the scheme of all points seen up to an update; None where these are all.

        It goes on from the update that was asked for last. A scheme that learns by blocks learns
        from the new points of each update; another one is fitted on all seen points again.
        """
        if not 0 <= self.seen_until <= update:  # the first update, or an earlier one: begin
            self.seen_until, self.is_seen = -1, np.zeros(len(self.data.x), dtype=bool)
        while self.seen_until < update and not self.is_seen.all():
            self.seen_until += 1
            rows = np.unique(self.batches.points_of(self.seen_until))
            new = rows[~self.is_seen[rows]]  # each point is learned once
            if self.seen_until and learns_by_blocks(self.scheme) and len(new):
                self.seen_scheme.partial_fit(self.data.x[new].astype(np.float64, copy=False))
            self.is_seen[new] = True
            if not self.seen_until or not learns_by_blocks(self.scheme):
                self.seen_scheme = self._fit(np.flatnonzero(self.is_seen))
        return None if self.is_seen.all() else self.seen_scheme

    def _fit(self, rows: Array) -> Any:
        """Return a copy of the scheme fitted on points by their indices (p,)."""
        scheme = deepcopy(self.scheme)
        fit_scheme(scheme, self.data.x[rows])
        return scheme
