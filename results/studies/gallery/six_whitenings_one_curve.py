"""The numbers of `research/six_whitenings_one_curve`."""

import numpy as np

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return the largest `|cost / cost under pca_sphere - 1|`, of all step sizes and iterations.

    `whitenings`: of the five that are full; `with_ledoit_wolf`: of that one too.
    """
    table = sweep.histories(sweep.of_role(names.STEP), [names.TRAIN_COST.key])
    cost = names.TRAIN_COST.key
    wide = table.pivot(index=["step_size", "iteration"], columns="normalizer", values=cost)
    apart = (wide.div(wide["pca_sphere"], axis=0) - 1).abs().max()
    return {
        "whitenings": float(apart.drop("ledoit_wolf").max()),
        "with_ledoit_wolf": float(np.max(apart)),
    }
