"""The numbers of `research/centring_alone`."""

import math

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return centring's share of the logarithmic gain of standardizing, by data set.

    `log(identity / centre) / log(identity / standard)`, of condition numbers.
    """
    rows = sweep.of_role(names.SCHEME)
    table = rows.pivot(
        index=names.DATASET.column, columns="normalizer", values=names.CONDITION.column
    )
    return {
        str(name): math.log(row["identity"] / row["centre"])
        / math.log(row["identity"] / row["standard"])
        for name, row in table.iterrows()
    }
