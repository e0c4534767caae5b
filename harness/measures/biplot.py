"""Points and features in the plane of the two leading principal directions."""

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import (
    MOST_FEATURES,
    has_plane,
    names_of,
    principal_directions,
    sample_indices,
    target_arrays,
)
from normbench.normalizers.decomposition import fix_signs, mean_and_covariance

MAX_ARROWS = 60


def take(job: FinishedJob) -> Findings:
    """Return at most 2,000 points, and the features as arrows.

    `points` (p, 2): along the two leading principal directions of the points under the scheme,
    centred, in standard deviations. `loadings` (m, 2): the arrow of each feature, which holds its
    entries in those directions times the roots of their eigenvalues, so that over all directions
    the cosine between two arrows is the correlation of their features. The m features, at most 60,
    are those of the longest arrows. `entries` (m, K): the entries of these features in the first K
    directions, at most 60, and `deviations` (K,), the roots. `correlation` (m, m) of these
    features. `names` (m,); `shares` (2,) of the variance; `target` (p,), `class_names` (C,).
    Source: Gabriel, "The biplot graphic display of matrices", Biometrika 58 (1971).
    """
    dataset, z = job.dataset, job.z
    moments = job.moments[1]  # of all points, also where z is a sample
    all_deviations, directions = principal_directions(moments)
    directions = fix_signs(directions)
    deviations, total = all_deviations[:2], float((all_deviations**2).sum())
    scores = (z - moments.mean(axis=0, dtype=np.float64)) @ directions[:2].T
    loadings = directions[:2].T * deviations
    indices = sample_indices(len(z))
    longest = np.sort(np.argsort(-np.hypot(*loadings.T), kind="stable")[:MAX_ARROWS])
    return Findings(
        arrays={
            # 1.0 along a direction without variance, where all scores are 0.
            "points": scores[indices] / np.where(deviations > 0, deviations, 1.0),
            "loadings": loadings[longest],
            "entries": directions[:MAX_ARROWS].T[longest],
            "deviations": all_deviations[:MAX_ARROWS],
            "correlation": _correlation(moments[:, longest]),
            "names": np.array(names_of(job), dtype=np.str_)[longest],
            "shares": deviations**2 / (total or 1.0),
            **target_arrays(dataset, indices),
        }
    )


def _correlation(z: Array) -> Array:
    """Return the correlation matrix `(m, m)` of m features, with 0 for constant ones."""
    covariance = mean_and_covariance(z)[1]
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(covariance / scale / scale[:, None])


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why a data set has no biplot, a single feature; empty where it has one."""
    if dataset.x.shape[1] > 1:
        return ""
    return f"is of two features and more; {dataset.name} has one"


MEASURE = Measure(
    take,
    "biplot",
    of_descent=False,
    applies=has_plane,
    most_features=MOST_FEATURES,
    reason_against=_reason_against,
)
