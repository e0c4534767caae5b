"""The numbers of `research/statistics_before_the_split`."""

from normbench import names
from normbench.results.store.runs import Sweep


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME_POINTS`: by how much the cross-validated error is off.

    That fitted on all points minus that fitted on the training points of each fold, the mean over
    the subsets.
    """
    rows = sweep.of_role(names.SCHEME)
    keys = ["normalizer", names.setting("dataset.points"), names.FIT_ON]
    means = rows.groupby(keys)[names.FOLDS_ERROR.column].mean().unstack()
    off = means["all"] - means["train"]
    return {f"{scheme}_{points}": float(value) for (scheme, points), value in off.items()}
