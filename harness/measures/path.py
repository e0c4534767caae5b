"""The weights along the best step's descent, from its first start."""

import numpy as np

from normbench.measures.contract import BEST, Findings, Finished, Measure


def take(made: Finished) -> Findings:
    """Return `iteration` (k,), `weights` (k, C, N + 1), `cost` (k,) and `step_size` ()."""
    assert made.descended is not None
    walk, best = made.descended.walk, made.descended.best_step
    if walk is None or best is None:
        return Findings()
    return Findings(arrays={**walk._asdict(), "step_size": np.array(best.step_size)})


MEASURE = Measure(take, record="path", follows=BEST)
