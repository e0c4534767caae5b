"""Batches whose points are shared among threads: the same gradients to rounding."""

from functools import partial
from itertools import pairwise

from normbench.engine.fast import threads
from normbench.engine.minibatch import Minibatch, Read
from normbench.engine.problem import Array

# Multiplications of weights with the points of a batch. From the first number on, the library of
# the matrix products would use its own threads, which wait for one another; from the second number
# on, a second thread of this program saves time.
LIBRARY_WORK, PARALLEL_BATCH_WORK = 250_000, 4_000_000


class ThreadedMinibatch(Minibatch):
    """A `Minibatch` on this program's threads, each with its products on one thread."""

    def batch_gradient(
        self, weights: Array, read: Read, targets: Array, span: slice = slice(None)
    ) -> Array:
        """See `Minibatch.batch_gradient`; each thread reads and sums its own points of the batch.

        The sums of the threads are added in the order of their points. `span` is for one thread:
        large batches, which are shared among threads, are summed as a whole.
        """
        work = weights.size * len(targets)
        if work < LIBRARY_WORK:  # the library itself uses one thread
            return super().batch_gradient(weights, read, targets, span)
        # Autograd traces in one thread, so that a cost of the user's own stays on it.
        is_shared = hasattr(self.inner.cost, "fused")
        count = threads.count_worthwhile(work, PARALLEL_BATCH_WORK) if is_shared else 1
        count = min(count, len(targets))
        if count == 1:
            with threads.limit_threads(0):
                return super().batch_gradient(weights, read, targets, span)
        bounds = [len(targets) * number // count for number in range(count + 1)]
        spans = [slice(*bounds_of_span) for bounds_of_span in pairwise(bounds)]
        sums = threads.map_parallel(partial(super().batch_gradient, weights, read, targets), spans)
        total = sums[0]
        for other in sums[1:]:
            total += other
        return total
