"""The best step size: the one definition, for jobs, splits and targets.

It takes the fewest iterations to a goal; among equal ones it is the smallest, so that rounding does
not choose. The goal names the variant:

- *best*: the lowest final cost of the grid, to within `names.TIED` of the start's excess, for good.
- *best for a target*: a share of the start's excess (`final/step_to_*`).
- *best over splits*: the fewest splits that miss the goal, then the fewest iterations by the upper
  quartile over the splits: a median can choose a step size that fails on some.
- *shown*: the one that `shown_step` chose in its place, unless it diverged; see
  `judging.find_shown_step`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from normbench import names


def best_step(
    step_sizes: Sequence[float],
    counts: ArrayLike,
    unreached: ArrayLike | None = None,
    excess: ArrayLike | None = None,
) -> int | None:
    """Return the index of the best step size: the fewest iterations, of equal ones the smaller.

    Args:
        step_sizes: S step sizes, in any order.
        counts: The iterations to the goal `(S,)`, NaN or infinite where it is not reached; upper
            quartiles over the splits, if there are several.
        unreached: The number of splits that do not reach the goal, `(S,)`: only the step sizes with
            the fewest are compared. None without splits.
        excess: The final excess `(S,)`, as a share of the start's, by which a step size is chosen
            where none reaches the goal; None to choose none.

    Returns:
        The index; None where none reaches the goal and there is no excess.
    """
    candidates = np.argsort(step_sizes, kind="stable")  # of equal ones the smaller comes first
    if unreached is not None:
        unreached_counts = np.asarray(unreached)[candidates]
        candidates = candidates[unreached_counts == unreached_counts.min()]
    candidate_counts = np.asarray(counts, dtype=float)[candidates]
    if np.isfinite(candidate_counts).any():
        return int(candidates[np.nanargmin(candidate_counts)])
    if excess is None:
        return None
    # No step size reaches the goal: the smallest whose final excess is tied with the lowest, or
    # the smallest of all where no final excess is finite.
    final_excess = np.asarray(excess, dtype=float)[candidates]
    lowest = np.nanmin(final_excess) if np.isfinite(final_excess).any() else np.inf
    is_lowest = (final_excess <= lowest + names.TIED) | ~np.isfinite(lowest)
    return int(candidates[is_lowest.argmax()])
