"""The weights along the descent of the best step size, from the first start."""

import numpy as np

from normbench.measures.contract import BEST_STEP, Findings, FinishedJob, Measure


def take(job: FinishedJob) -> Findings:
    """Return `iteration` (k,), `weights` (k, *shape), `cost` (k,) and `step_size` ().

    The iterations are all, or evenly thinned ones where the path would be too large. No arrays
    where no step size represents the scheme.
    """
    descent = job.descent
    if descent.best is None:
        return Findings()
    step_size = np.array(descent.best_step.step_size)
    return Findings(arrays={**descent.recorded_path._asdict(), "step_size": step_size})


MEASURE = Measure(take, record="path", depends_on=BEST_STEP)
