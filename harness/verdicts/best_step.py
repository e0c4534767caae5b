"""The best step size: the one definition, which jobs, splits and targets share.

It takes the fewest iterations to a goal; of equal ones it is the smaller, so that rounding does not
choose. The goal names the variant:

- *best*: the lowest final cost of the grid, to within `names.TIED` of the start's excess, for good.
- *best for a target*: a share of the start's excess (`final/step_to_*`).
- *best over splits*: the one that the fewest splits miss the goal with, then the fewest iterations
  by the upper quartile over the splits: a median can choose a step size that fails on some.
- *shown*: the one that `shown_step` chose in its place, unless it diverged; see `judging.shown`.
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
    """Return the number of the best step size; None where none reaches the goal.

    counts `(S,)`: iterations to the goal, NaN or infinite where it is not reached; upper quartiles
    over the splits, if there are several. unreached `(S,)`: how many splits do not reach it, and
    excess `(S,)`: what is left at the end; with them some step size is always best.
    """
    left = np.argsort(step_sizes, kind="stable")
    if unreached is not None:
        missed = np.asarray(unreached)[left]
        left = left[missed == missed.min()]
    fewest = np.asarray(counts, dtype=float)[left]
    if np.isfinite(fewest).any():
        return int(left[np.nanargmin(fewest)])
    if excess is None:
        return None
    ends = np.asarray(excess, dtype=float)[left]
    lowest = np.nanmin(ends) if np.isfinite(ends).any() else np.inf
    return int(left[((ends <= lowest + names.TIED) | ~np.isfinite(lowest)).argmax()])
