"""Faults of a fitted scheme: features that it loses or cannot scale, and what its ridge does."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets.on_disk.points import as_array, is_in_memory, rows_per_block
from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.covariance import MAX_SERIES_DIRECTIONS, UNTOUCHED
from normbench.normalizers.affine import find_affine_map, find_affine_traits, member_schemes
from normbench.normalizers.decomposition import compute_deviations, compute_mean, is_rounding
from normbench.normalizers.on_columns import OnColumns
from normbench.theory import spectra

VANISHING = 1e-8  # a standard deviation below this share of 1, or of what it was, is nothing
MAX_NAMED_FEATURES = 5


def take(job: FinishedJob) -> Findings:
    """Return the features that the scheme loses or leaves unscaled, and the effect of its ridge.

    A feature is lost that varies before the scheme and not after it: its standard deviation becomes
    less than 1e-8, and less than 1e-8 of what it was. It is unscaled if its standard deviation is
    less than 1e-8 and a scheme that scales leaves it as it is, as scikit-learn's `MinMaxScaler`
    does. Of points that are not in memory, the first block is looked at.
    """
    ridge_findings = _find_ridge_effect(job.scheme)
    if not _is_columnwise(job):
        return ridge_findings
    metrics, tags = dict(ridge_findings.metrics), {}
    varies, *masks = _find_faulty_features(job)
    for (metric, tag), mask in zip(names.FEATURE_FAULTS, masks):
        if mask.any():
            faulty = [job.dataset.feature_names[n] for n in np.flatnonzero(mask)]
            more = len(faulty) - MAX_NAMED_FEATURES
            metrics[names.FEATURES_VARYING.key] = float(np.count_nonzero(varies))
            metrics[metric.key] = float(len(faulty))
            tags[tag.key] = ", ".join(faulty[:MAX_NAMED_FEATURES]) + (
                f" and {more} more" if more > 0 else ""
            )
    return Findings(metrics, tags, series=ridge_findings.series)


def _find_faulty_features(job: FinishedJob) -> tuple[NDArray[np.bool_], ...]:
    """Return masks `(N,)` of the features that vary, that are lost, and that are unscaled.

    The scheme gives each feature a column of its own.
    """
    scheme, traits = job.scheme, find_affine_traits(job.scheme)
    rows = slice(None if is_in_memory(job.z) else rows_per_block(job.dataset.x))
    with np.errstate(all="ignore"):  # squares may overflow
        before, varies = _deviations(as_array(job.dataset.x[rows]))
        after, still_varies = _deviations(as_array(job.z[rows]))
    is_lost = varies & (~still_varies | (after <= VANISHING * np.minimum(before, 1.0)))
    is_scaled = np.full(len(before), traits is None or traits.scales)
    if isinstance(scheme, OnColumns):
        is_scaled[scheme.passed_] = False
    is_same = np.abs(after - before) <= VANISHING * before
    return varies, is_lost, varies & ~is_lost & is_scaled & is_same & (before <= VANISHING)


def _is_columnwise(job: FinishedJob) -> bool:
    """Return whether the columns under the scheme are the features, each in its place."""
    traits, feature_names = find_affine_traits(job.scheme), list(job.dataset.feature_names)
    if traits is not None:
        affine_map = None if traits.rotates else find_affine_map(job.scheme)
        return affine_map is not None and affine_map.matrix.ndim == 1
    with suppress(AttributeError, ValueError):  # a scheme may give no names
        names_out = job.scheme.get_feature_names_out(np.array(feature_names, dtype=object))
        return list(names_out) == feature_names
    return False


def _deviations(x: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the standard deviations `(N,)` of points (P, N), and which are above rounding."""
    mean = compute_mean(x)
    deviations = compute_deviations(x, mean)
    return deviations, ~is_rounding(len(x), mean, deviations**2)


def _find_ridge_effect(scheme: Any) -> Findings:
    """Return how many live directions the ridge shrinks, and the variance that it leaves them.

    A ridge, added to the eigenvalues d, leaves a direction `d / (d + ridge)` of variance 1. The
    series holds that share for each live direction, by decreasing d. Of a chain, the first scheme
    with a ridge counts. No findings for a scheme without one.
    """
    ridged = next(_find_ridged(scheme), None)
    if ridged is None:
        return Findings()
    after = _variances(ridged)
    if not len(after):
        return Findings()
    largest = float(np.max(ridged.eigenvalues_))
    metrics = {
        names.RIDGE.key: float(ridged.ridge),
        names.RIDGE_SHARE.key: float(ridged.ridge) / largest if largest > 0 else np.nan,
        names.LIVE_DIRECTIONS.key: float(len(after)),
        names.RIDGE_TOUCHED.key: float(np.count_nonzero(after < UNTOUCHED)),
        names.RIDGE_SMALLEST.key: float(after.min()),
    }
    series = {}
    if len(after) <= MAX_SERIES_DIRECTIONS:
        series[names.RIDGE_VARIANCE.key] = (np.arange(len(after)), after)
    return Findings(metrics, series=series)


def _find_ridged(scheme: Any) -> Iterator[Any]:
    """Yield the schemes with a ridge and eigenvalues: a scheme, or members of a chain."""
    scheme = scheme.scheme if isinstance(scheme, OnColumns) else scheme
    # A scheme of another library may have another thing by the name of `ridge`.
    if isinstance(getattr(scheme, "ridge", None), (int, float)) and hasattr(scheme, "eigenvalues_"):
        yield scheme
    for member in member_schemes(scheme):
        yield from _find_ridged(member)


def _variances(scheme: Any) -> Array:
    """Return the share of variance that the ridge leaves each live direction (n,).

    A direction is live if the scheme does not drop it (`dropped_`).
    """
    values = np.asarray(scheme.eigenvalues_)
    dropped = getattr(scheme, "dropped_", np.zeros(len(values), dtype=bool))
    return spectra.variance_after_sphering(values[~np.asarray(dropped, dtype=bool)], scheme.ridge)


MEASURE = Measure(take, of_descent=False)
