"""The numbers of `research/where_the_gain_is`."""

import math

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `kept_SCHEME`: the share of the gain over identity that is left at the minimum.

    `log(identity / scheme)` of the condition numbers at the minimum, over that at the start.
    """
    rows = sweep.of_role(names.SCHEME).set_index("normalizer")
    start, end = (rows[one.column] for one in (names.CONDITION_START, names.CONDITION_MINIMUM))
    return {
        f"kept_{name}": math.log(end["identity"] / end[name])
        / math.log(start["identity"] / start[name])
        for name in rows.index.drop("identity")
    }
