"""What the scheme's ridge does to the directions that live."""

from typing import Any

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.measures.covariance import MOST, UNTOUCHED
from normbench.theory import spectra


def take(made: Finished) -> Findings:
    """Return how many live directions it touched, and what it left of the smallest."""
    after = _variances(made.scheme)
    if after is None or not len(after):
        return Findings()
    largest = float(np.max(made.scheme.eigenvalues_))
    metrics = {
        names.RIDGE.key: float(made.scheme.ridge),
        names.RIDGE_SHARE.key: float(made.scheme.ridge) / largest if largest > 0 else np.nan,
        names.LIVE_DIRECTIONS.key: float(len(after)),
        names.RIDGE_TOUCHED.key: float(np.count_nonzero(after < UNTOUCHED)),
        names.RIDGE_SMALLEST.key: float(after.min()),
    }
    series = {}
    if len(after) <= MOST:
        series[names.RIDGE_VARIANCE.key] = (np.arange(len(after)), after)
    return Findings(metrics, series=series)


def _variances(scheme: Any) -> Array | None:
    """Return what the ridge leaves of each live direction's variance; None without a ridge."""
    ridge, values = getattr(scheme, "ridge", None), getattr(scheme, "eigenvalues_", None)
    if not isinstance(ridge, (int, float)) or values is None:
        return None
    dropped = getattr(scheme, "dropped_", np.zeros(len(values), dtype=bool))
    return spectra.variance_after(np.asarray(values)[~np.asarray(dropped, dtype=bool)], ridge)


MEASURE = Measure(take)
