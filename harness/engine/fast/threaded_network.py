"""Networks whose runs are shared among threads: the same costs to rounding."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from normbench.engine.fast import threads
from normbench.engine.network import Network
from normbench.engine.problem import Array, Evaluation, Workspace

# Numbers in the activations of a layer of all runs: below, a second thread takes longer to wake.
PARALLEL_ACTIVATIONS = 300_000


class ThreadedNetwork(Network):
    """A `Network` on this program's threads, each with its own runs and its own memory."""

    @property
    def is_thread_safe(self) -> bool:
        """Whether threads can share runs.

        Autograd traces a cost without a fused derivative (one of the user's own) in one thread.
        """
        return hasattr(self.cost, "fused")

    def evaluate(
        self, weights: Array, with_gradient: bool = True, workspace: Workspace | None = None
    ) -> Evaluation:
        """See `Network.evaluate`."""
        evaluate = super().evaluate

        def evaluate_some(runs: slice, memory: Workspace) -> Evaluation:
            """Return the evaluation of a span of runs."""
            return evaluate(weights[runs], with_gradient, memory)

        # The costs of all threads, their gradients, and their counts.
        fields = zip(*self._share(evaluate_some, len(weights), len(self.x), workspace))
        return Evaluation(*map(_concatenate, fields))

    def sum_gradients(
        self, weights: Array, points: Array, is_running: bool, workspace: Workspace | None
    ) -> Array:
        """See `Network.sum_gradients`."""
        sum_gradients = super().sum_gradients

        def sum_some(runs: slice, memory: Workspace) -> Array:
            """Return the sum of the gradients of a span of runs."""
            return sum_gradients(weights[runs], points, is_running, memory)

        return _concatenate(self._share(sum_some, len(weights), len(points), workspace))

    def _share(
        self,
        work: Callable[[slice, Workspace], Any],
        runs: int,
        points: int,
        workspace: Workspace | None,
    ) -> list[Any]:
        """Return what `work` returns for spans of runs, each on its own thread.

        Args:
            work: A function of a span of runs and of the memory of its thread.
            runs: The number of runs that are shared.
            points: The number of points that each run is evaluated on.
            workspace: Holds the memory of each thread, by `("thread", number)`.

        Returns:
            The values of `work`, in the order of the runs; one value where a single thread is
            quicker.
        """
        workspace = {} if workspace is None else workspace
        units = max(group.shape[0] for group in self.layout.groups)  # of the widest layer
        activations = runs * points * units
        worthwhile = threads.count_worthwhile(activations, PARALLEL_ACTIVATIONS)
        count = min(worthwhile, runs) if self.is_thread_safe else 1
        bounds = [runs * number // count for number in range(count + 1)]
        spans: list[tuple[slice, Any]] = [
            (slice(*span), workspace.setdefault(("thread", number), {}))  # type: ignore[arg-type]
            for number, span in enumerate(pairwise(bounds))
        ]
        return threads.map_parallel(lambda span: work(*span), spans)


def _concatenate(arrays: Any) -> Any:
    """Return arrays `(runs, ..)`, one a thread, as one array; None where each of them is None."""
    return None if arrays[0] is None else np.concatenate(arrays)
