"""The eigenvalues of the covariance, before and after the scheme."""

import numpy as np

from normbench import names
from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.measures.inputs import MOST_FEATURES, principal
from normbench.normalizers.decomposition import Surrogate, mean_and_covariance


def take(made: Finished) -> Findings:
    """Return both spectra, decreasing; the number `identity_gap`.

    `before` (N,) and `after` (M,). `dead` (): how many directions carry nothing but rounding
    before the scheme, those at most N times machine epsilon of the largest. `ridge` (): the
    scheme's own, NaN where it has none. `identity_gap` (): how far the points after the scheme
    are from centred and sphered.
    """
    before, after = (_eigenvalues(part) for part in made.surrogates)
    floor = len(before) * np.finfo(np.float64).eps * before[0]
    ridge = getattr(made.scheme, "ridge", None)
    gap = identity_gap(made.surrogates[1].moment_rows)
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
    """Return the largest entry of `|S S' / P - I|` for points z (P, M): S is z, a point a column.

    0 where the points are centred and sphered.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of points around 1e160
        mean, covariance = mean_and_covariance(z)
        return float(np.abs(covariance + np.outer(mean, mean) - np.eye(z.shape[1])).max())


def _eigenvalues(points: Surrogate) -> Array:
    with np.errstate(over="ignore"):  # the squares of points around 1e160 overflow
        return np.asarray(principal(points)[0] ** 2)


MEASURE = Measure(take, record="spectrum", of_descent=False, most_features=MOST_FEATURES)
