"""The eigenvalues of the covariance, before and after the scheme."""

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import MOST_FEATURES, principal_directions
from normbench.normalizers.decomposition import mean_and_covariance


def take(job: FinishedJob) -> Findings:
    """Return both spectra, decreasing; the number `identity_gap`.

    `before` (N,) and `after` (M,): the eigenvalues of the covariance. `dead` (): the number of
    directions before the scheme that are rounding alone, at most N times machine epsilon of the
    largest. `ridge` (): the constant that the scheme adds to the eigenvalues, NaN without one.
    `identity_gap` (): the distance of the points after the scheme from centred and sphered ones,
    see the function `identity_gap`.
    """
    before, after = map(_eigenvalues, job.moments)
    floor = len(before) * np.finfo(np.float64).eps * before[0]
    ridge = getattr(job.scheme, "ridge", None)
    gap = identity_gap(job.moments[1])
    return Findings(
        {names.IDENTITY_GAP.key: gap},
        arrays={
            "before": before,
            "after": after,
            "dead": np.array(np.count_nonzero(before <= floor)),
            "ridge": np.array(np.nan if ridge is None else float(ridge)),
            "identity_gap": np.array(gap),
        },
    )


def identity_gap(z: Array) -> float:
    """Return the largest entry of `|S S' / P - I|` for points z (P, M), with S the transpose of z.

    It is 0 where the points are centred and sphered.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of points around 1e160
        mean, covariance = mean_and_covariance(z)
        return float(np.abs(covariance + np.outer(mean, mean) - np.eye(z.shape[1])).max())


def _eigenvalues(points: Array) -> Array:
    """Return the eigenvalues of the covariance of points, decreasing; infinite where they overflow.

    The squares of points around 1e160 do.
    """
    with np.errstate(over="ignore"):
        return np.asarray(principal_directions(points)[0] ** 2)


MEASURE = Measure(take, record="spectrum", of_descent=False, most_features=MOST_FEATURES)
