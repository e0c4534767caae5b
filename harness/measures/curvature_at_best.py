"""The largest curvature at the best step's last weights: why steps above `2/L` work."""

from normbench import names
from normbench.measures.contract import BEST, Findings, Finished, Measure
from normbench.measures.thresholds import curvature
from normbench.theory.analysis import curvature_work, largest_curvature
from normbench.theory.budget import Work


def take(made: Finished) -> Findings:
    """Return the curvature there, from the first start, and its threshold."""
    assert made.descended is not None
    weights = made.descended.best_weights
    assert weights is not None
    found, _ = largest_curvature(made.descended.train, weights)
    return Findings(curvature(names.LIPSCHITZ_BEST, names.THRESHOLD_BEST, found))


def _applies(made: Finished) -> bool:
    assert made.descended is not None
    return made.descended.best is not None and made.descended.theory.threshold is not None


def _work(made: Finished) -> Work:
    assert made.descended is not None
    return curvature_work(made.descended.train)


MEASURE = Measure(
    take, what="curvature at the best weights", work=_work, applies=_applies, follows=BEST
)
