"""The data, and what the scheme does to them: spectra, dead directions, lost features, effects."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets.on_disk.points import as_array, is_in_memory, rows_per_block
from normbench.engine.scheme import find_effects, probe
from normbench.measures.contract import UNKNOWN, Array, Findings, FinishedJob, measure
from normbench.normalizers.decomposition import (
    compute_deviations,
    compute_mean,
    is_rounding,
    rounding_share,
    singular_values,
)
from normbench.normalizers.on_columns import OnColumns, member_schemes
from normbench.theory import sizes, spectra

UNTOUCHED = 0.99  # a direction that keeps this share of its variance is not touched by the ridge
VANISHING = 1e-8  # a standard deviation below this share of 1, or of what it was, is nothing
MAX_NAMED_FEATURES = 5


@measure(of_descent=False)
def target_summary(job: FinishedJob) -> Findings:
    """Return what the targets were taken for, classes or real numbers; nothing without targets."""
    summary = job.dataset.target_summary
    return Findings(tags={names.TARGET_SUMMARY.key: summary} if summary else {})


@measure()
def effects(job: FinishedJob) -> Findings:
    """Return the tag `affine`, and for an affine scheme a tag for each of four effects.

    The effects are those of `find_effects`, in the same order; each tag is `true` or `false`. An
    offset shifts; one that gives the points mean 0 also centres. Nothing where there are too many
    features to probe, one transformed point for each.
    """
    if job.dataset.x.shape[1] > sizes.MAX_ROWS:
        return Findings()
    affine = probe(job.scheme, job.dataset.x, job.z)
    tags = {names.AFFINE.key: str(affine is not None).lower()}
    if affine is not None:
        keys = [tag.key for tag in (names.CENTRES, names.SHIFTS, names.SCALES, names.ROTATES)]
        tags |= {key: str(does).lower() for key, does in zip(keys, find_effects(affine, job.z))}
    return Findings(tags=tags)


@measure()
def covariance(job: FinishedJob) -> Findings:
    """Return the spectrum of the data, and the numbers of directions the scheme drops or loses.

    The spectrum is that of the covariance of the points before the scheme. Dead directions are
    those that the scheme reports (`dropped_`), else those whose variance is rounding: at most N
    machine epsilons of the largest. The share of variance in dead directions is NaN where no
    feature varies. Lost are live directions that rounding hides in the matrix that the scheme
    decomposes, since the scales of features differ too much. `theory/gram_largest_*`: the largest
    eigenvalue of the Gram matrix of the points as they are, centred, and centred and scaled; not
    recorded for a cost with a penalty. Nothing without theory, and of too many features.
    """
    setting, moments, scheme = job.descent.settings.theory, job.points_cache, job.scheme
    if setting == "none" or not sizes.allows_moments(setting, job.dataset.x):
        return Findings()
    values = moments.get(correlation=False, complete=False).values
    total = float(values.sum())
    dead: Any = getattr(scheme, "dropped_", None)
    resolved: Any = getattr(scheme, "eigenvalues_", None)
    if np.shape(dead) != values.shape:
        dead = values <= len(values) * np.finfo(np.float64).eps * values[0]
    is_dead, lost = np.asarray(dead, dtype=bool), 0
    if np.shape(resolved) == values.shape:
        is_resolved = resolved > rounding_share(len(values)) * np.max(resolved)
        # `live` counts the directions that the features, scaled to variance 1, resolve.
        lost = max(0, moments.live - int(np.count_nonzero(is_resolved)))
    metrics = {
        names.DEAD_DIRECTIONS.key: float(np.count_nonzero(is_dead)),
        names.LOST_DIRECTIONS.key: float(lost),
        names.DEAD_VARIANCE.key: float(values[is_dead].sum()) / total if total else UNKNOWN,
    }
    linear = job.descent.train.linear
    if linear is None or not np.any(linear.l2):  # a penalty has a curvature of its own
        root = moments.gram_root
        raw = moments.get_or_compute("raw", lambda: float(singular_values(root)[0] ** 2))
        standard = float(moments.correlation_deviations[0] ** 2)
        metrics[names.LARGEST_RAW.key] = raw
        # The Gram matrix of centred points has the eigenvalue 1 of the bias.
        metrics[names.LARGEST_CENTRED.key] = max(1.0, float(values[0]))
        metrics[names.LARGEST_STANDARD.key] = max(1.0, standard)
    return Findings(metrics, series={names.VARIANCE.key: (np.arange(len(values)), values)})


@measure(of_descent=False)
def ridge(job: FinishedJob) -> Findings:
    """Return how many live directions the ridge shrinks, and the variance that it leaves them.

    A ridge, added to the eigenvalues d, leaves a direction `d / (d + ridge)` of variance 1. The
    series holds that share for each live direction (not in `dropped_`), by decreasing d. Of a
    chain, the first scheme with a ridge counts. Nothing for a scheme without one.
    """
    ridged = next(_find_ridged(job.scheme), None)
    if ridged is None:
        return Findings()
    values = np.asarray(ridged.eigenvalues_)
    dropped = np.asarray(getattr(ridged, "dropped_", np.zeros(len(values))), dtype=bool)
    after = spectra.variance_after_sphering(values[~dropped], ridged.ridge)
    if not len(after):
        return Findings()
    largest = float(np.max(values))
    metrics = {
        names.RIDGE.key: float(ridged.ridge),
        names.RIDGE_SHARE.key: float(ridged.ridge) / largest if largest > 0 else UNKNOWN,
        names.LIVE_DIRECTIONS.key: float(len(after)),
        names.RIDGE_TOUCHED.key: float(np.count_nonzero(after < UNTOUCHED)),
        names.RIDGE_SMALLEST.key: float(after.min()),
    }
    return Findings(metrics, series={names.RIDGE_VARIANCE.key: (np.arange(len(after)), after)})


def _find_ridged(scheme: Any) -> Iterator[Any]:
    """Yield the schemes with a ridge and eigenvalues: a scheme, or members of a chain."""
    scheme = scheme.scheme if isinstance(scheme, OnColumns) else scheme
    # A scheme of another library may have another thing by the name of `ridge`.
    if isinstance(getattr(scheme, "ridge", None), (int, float)) and hasattr(scheme, "eigenvalues_"):
        yield scheme
    for member in member_schemes(scheme):
        yield from _find_ridged(member)


@measure(of_descent=False)
def feature_faults(job: FinishedJob) -> Findings:
    """Return the features that the scheme loses or leaves unscaled.

    A feature is lost that varies before the scheme and not after it: its standard deviation becomes
    less than 1e-8, and less than 1e-8 of what it was. It is unscaled if its standard deviation is
    less than 1e-8 and a scheme that scales others leaves it as it is, as scikit-learn's
    `MinMaxScaler` does. Of points that are not in memory, the first block is looked at. Nothing
    where the columns under the scheme are not the features, each in its place.
    """
    dataset, scheme = job.dataset, job.scheme
    if not _is_columnwise(scheme, dataset.feature_names):
        return Findings()
    rows = slice(None if is_in_memory(job.z) else rows_per_block(dataset.x))
    with np.errstate(all="ignore"):  # squares may overflow
        before, varies = _deviations(as_array(dataset.x[rows]))
        after, still_varies = _deviations(as_array(job.z[rows]))
    is_lost = varies & (~still_varies | (after <= VANISHING * np.minimum(before, 1.0)))
    is_scaled = np.abs(after - before) > VANISHING * before
    is_unscaled = varies & ~is_lost & ~is_scaled & (before <= VANISHING) & is_scaled.any()
    if isinstance(scheme, OnColumns):
        is_unscaled[scheme.passed_] = False
    metrics, tags = {}, {}
    masks = (is_lost, is_unscaled)
    for (metric, tag), mask in zip(names.FEATURE_FAULTS, masks):
        faulty = [dataset.feature_names[n] for n in np.flatnonzero(mask)]
        if faulty:
            metrics[names.FEATURES_VARYING.key] = float(np.count_nonzero(varies))
            metrics[metric.key] = float(len(faulty))
            more = len(faulty) - MAX_NAMED_FEATURES
            others = f" and {more} more" if more > 0 else ""
            tags[tag.key] = ", ".join(faulty[:MAX_NAMED_FEATURES]) + others
    return Findings(metrics, tags)


def _is_columnwise(scheme: Any, feature_names: tuple[str, ...]) -> bool:
    """Return whether the columns under the scheme are the features, each in its place."""
    with suppress(AttributeError, ValueError):  # a scheme may give no names
        names_out = scheme.get_feature_names_out(np.array(feature_names, dtype=object))
        return tuple(names_out) == tuple(feature_names)
    return False


def _deviations(x: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the standard deviations `(N,)` of points (P, N), and which are above rounding."""
    mean = compute_mean(x)
    deviations = compute_deviations(x, mean)
    return deviations, ~is_rounding(len(x), mean, deviations**2)
