"""The effect of the ridge of a scheme on the live directions."""

from typing import Any

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.covariance import MAX_SERIES_DIRECTIONS, UNTOUCHED
from normbench.theory import spectra


def take(job: FinishedJob) -> Findings:
    """Return how many live directions the ridge shrinks, and the variance that it leaves them.

    A ridge, added to the eigenvalues d, leaves a direction `d / (d + ridge)` of variance 1. The
    series holds that share for each live direction, by decreasing d. No findings for a scheme
    without a ridge.
    """
    after = _variances(job.scheme)
    if after is None or not len(after):
        return Findings()
    largest = float(np.max(job.scheme.eigenvalues_))
    metrics = {
        names.RIDGE.key: float(job.scheme.ridge),
        names.RIDGE_SHARE.key: float(job.scheme.ridge) / largest if largest > 0 else np.nan,
        names.LIVE_DIRECTIONS.key: float(len(after)),
        names.RIDGE_TOUCHED.key: float(np.count_nonzero(after < UNTOUCHED)),
        names.RIDGE_SMALLEST.key: float(after.min()),
    }
    series = {}
    if len(after) <= MAX_SERIES_DIRECTIONS:
        series[names.RIDGE_VARIANCE.key] = (np.arange(len(after)), after)
    return Findings(metrics, series=series)


def _variances(scheme: Any) -> Array | None:
    """Return the share of variance that the ridge leaves each live direction (n,).

    A direction is live if the scheme does not drop it (`dropped_`). None for a scheme without a
    ridge and eigenvalues.
    """
    ridge, values = getattr(scheme, "ridge", None), getattr(scheme, "eigenvalues_", None)
    # A scheme of another library may have another thing by the name of `ridge`.
    if not isinstance(ridge, (int, float)) or values is None:
        return None
    dropped = getattr(scheme, "dropped_", np.zeros(len(values), dtype=bool))
    return spectra.variance_after_sphering(
        np.asarray(values)[~np.asarray(dropped, dtype=bool)], ridge
    )


MEASURE = Measure(take)
