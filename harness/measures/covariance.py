"""The spectrum of the covariance of the data, and its dead directions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.normalizers.decomposition import rounding_share
from normbench.theory import sizes
from normbench.theory.shared import PointStatistics

UNTOUCHED = 0.99  # a direction that keeps this share of its variance is not touched by the ridge
MAX_SERIES_DIRECTIONS = 1000


def take(job: FinishedJob) -> Findings:
    """Return the spectrum of the data, and the numbers of directions the scheme drops or loses.

    The spectrum is that of the covariance of the points before the scheme. Dead directions are
    those that the scheme reports (`dropped_`), else those at rounding level. Live directions are
    lost where the scales of features differ so much that rounding of the largest hides the
    smallest. The share of variance in dead directions is NaN where no feature varies.
    `theory/gram_largest_*`: the largest eigenvalue of the Gram matrix of the points as they are,
    centred, and centred and scaled; not recorded for a cost with a penalty. The spectrum itself is
    recorded for at most 1,000 directions.
    """
    facts = job.points_cache.facts
    values = facts.variances
    total = float(values.sum())
    dead = _dead(facts, job.scheme)
    metrics = {
        names.DEAD_DIRECTIONS.key: float(np.count_nonzero(dead)),
        names.LOST_DIRECTIONS.key: float(_lost(facts, job.scheme)),
        names.DEAD_VARIANCE.key: float(values[dead].sum()) / total if total else float("nan"),
    }
    linear = job.judged_descent.train.linear if job.judged_descent else None
    if linear is None or not np.any(linear.l2):  # a penalty has a curvature of its own
        metrics |= {
            names.LARGEST_RAW.key: facts.raw,
            names.LARGEST_CENTRED.key: facts.centred,
            names.LARGEST_STANDARD.key: facts.standard,
        }
    series = {}
    if len(values) <= MAX_SERIES_DIRECTIONS:
        series[names.VARIANCE.key] = (np.arange(len(values)), values)
    return Findings(metrics, series=series)


def _dead(facts: PointStatistics, scheme: Any) -> NDArray[np.bool_]:
    """Return the mask `(N,)` of the dead directions, by decreasing variance.

    It is the scheme's own mask, if it has one for these N directions. Otherwise a direction is dead
    whose variance is rounding: at most N machine epsilons of the largest.
    """
    dropped = getattr(scheme, "dropped_", None)
    if dropped is not None and np.shape(dropped) == facts.variances.shape:
        return np.asarray(dropped, dtype=bool)
    bound = len(facts.variances) * np.finfo(np.float64).eps * facts.variances[0]
    return np.asarray(facts.variances <= bound)


def _lost(facts: PointStatistics, scheme: Any) -> int:
    """Return the number of live directions that rounding hides in the matrix a scheme decomposes.

    A direction is live if it is above rounding: `facts.live` counts those that the features, scaled
    to variance 1, resolve. Of them the scheme resolves those whose eigenvalue (`eigenvalues_`) is
    above rounding. 0 for a scheme without N eigenvalues.
    """
    values = getattr(scheme, "eigenvalues_", None)
    if values is None or np.shape(values) != facts.variances.shape:
        return 0
    resolved = np.count_nonzero(values > rounding_share(len(values)) * np.max(values))
    return max(0, facts.live - int(resolved))


def _applies(job: FinishedJob) -> bool:
    """Return whether the spectrum of the points may be computed.

    Theory must be wanted and the points squarable (`allows_point_theory`), and the features few.
    """
    descent = job.descent
    return descent.theory.allows_point_theory and sizes.allows_moments(
        descent.settings.theory, job.dataset.x
    )


MEASURE = Measure(take, applies=_applies)
