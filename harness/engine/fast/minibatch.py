"""Batches whose points are shared among threads: the same gradients to rounding."""

from functools import partial
from itertools import pairwise

from normbench.engine.fast import threads
from normbench.engine.minibatch import Minibatch, Read
from normbench.engine.problem import Array

# Multiplications of weights with the points of a batch: from the first number on the library would
# use its own threads, which wait for one another; from the second on a second thread pays.
LIBRARY_WORK, PARALLEL_BATCH_WORK = 250_000, 4_000_000


class ThreadedMinibatch(Minibatch):
    """A `Minibatch` on this program's threads, each with its products on one thread."""

    def sum_gradients(
        self, weights: Array, read: Read, targets: Array, span: slice = slice(None)
    ) -> Array:
        """See `Minibatch.sum_gradients`; each thread reads its own points."""
        work = weights.size * len(targets)
        if work < LIBRARY_WORK:
            return super().sum_gradients(weights, read, targets, span)
        # Autograd traces in one thread, so that a cost of the user's own stays on it.
        is_parallel = work >= PARALLEL_BATCH_WORK and hasattr(self.inner.cost, "fused")
        count = min(threads.available_threads(), len(targets)) if is_parallel else 1
        if count == 1:
            with threads.limit_threads(0):
                return super().sum_gradients(weights, read, targets, span)
        ends = [len(targets) * number // count for number in range(count + 1)]
        spans = [slice(*ends_of_span) for ends_of_span in pairwise(ends)]
        sums = threads.map_parallel(partial(super().sum_gradients, weights, read, targets), spans)
        total = sums[0]
        for other in sums[1:]:
            total += other
        return total
