"""The largest curvature at the best step's last weights: why steps above `2/L` work."""

from normbench import names
from normbench.measures.contract import BEST, Findings, Finished, Measure
from normbench.measures.inputs import work_of_curvature
from normbench.measures.thresholds import curvature
from normbench.theory.analysis import largest_curvature


def take(made: Finished) -> Findings:
    """Return the curvature there, from the first start, and its threshold."""
    found, _ = largest_curvature(made.descent.train, made.descent.best_weights)
    return Findings(curvature(names.LIPSCHITZ_BEST, names.THRESHOLD_BEST, found))


def _applies(made: Finished) -> bool:
    return made.descent.best is not None and made.descent.theory.threshold is not None


MEASURE = Measure(
    take,
    what="curvature at the best weights",
    work=work_of_curvature,
    applies=_applies,
    follows=BEST,
)
