"""The first features of the training points under the scheme."""

import numpy as np

from normbench.measures.contract import Findings, Finished, Measure
from normbench.measures.inputs import names_of, some

MOST_SHOWN = 30


def take(made: Finished) -> Findings:
    """Return the first 30 features of at most 2,000 points.

    `values` (p, m), `names` (m,), `all` (): how many features there are.
    """
    kept = some(len(made.z))
    return Findings(
        arrays={
            "values": made.z[kept, :MOST_SHOWN].astype(np.float64),
            "names": np.array(names_of(made)[:MOST_SHOWN]),
            "all": np.array(made.z.shape[1]),
        }
    )


MEASURE = Measure(take, record="features", of_descent=False)
