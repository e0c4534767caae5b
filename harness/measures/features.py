"""The first features of the training points under the scheme."""

import numpy as np

from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.measures.inputs import names_of, sample_indices

MAX_RECORDED_FEATURES = 30


def take(job: FinishedJob) -> Findings:
    """Return the first 30 features under the scheme of at most 2,000 points.

    `values` (p, m), `names` (m,), `all` (): the number of all features under the scheme.
    """
    indices = sample_indices(len(job.z))
    return Findings(
        arrays={
            "values": job.z[indices, :MAX_RECORDED_FEATURES].astype(np.float64),
            "names": np.array(names_of(job)[:MAX_RECORDED_FEATURES]),
            "all": np.array(job.z.shape[1]),
        }
    )


MEASURE = Measure(take, record="features", of_descent=False)
