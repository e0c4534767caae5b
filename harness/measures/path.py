"""The weights along the best step's descent, from its first start."""

import numpy as np

from normbench.measures.contract import BEST, Findings, Finished, Measure


def take(made: Finished) -> Findings:
    """Return `iteration` (k,), `weights` (k, C, N + 1), `cost` (k,) and `step_size` ()."""
    here = made.descent
    if here.best is None:
        return Findings()
    step_size = np.array(here.best_step.step_size)
    return Findings(arrays={**here.walk._asdict(), "step_size": step_size})


MEASURE = Measure(take, record="path", follows=BEST)
