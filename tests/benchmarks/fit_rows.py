"""Fits of schemes of many features beside scikit-learn's PCA, and of few components beside all."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from normbench.normalizers import PCARotation, PCASphere
from tests.benchmarks.turns import in_turns, ratio

POINTS, WANTED = 10_000, 50
FEATURES = (1000, 2000, 5000)  # of 10,000, eight times as long: minutes a side


def fit_rows(turns: int, only: str) -> Iterator[dict[str, Any]]:
    """Seconds of the processor of our fit over scikit-learn's, by the number of features."""
    few = partial(PCARotation, components=WANTED)
    # With the relative error of the other side's largest variances.
    sides: dict[str, tuple[Callable[[], Any], Callable[[], Any], float]] = {
        "pca_sphere over PCA(covariance_eigh)": (
            PCASphere,
            lambda: PCA(svd_solver="covariance_eigh"),
            1e-9,
        ),
        f"pca of {WANTED} components over PCA(randomized)": (
            few,
            lambda: PCA(WANTED, svd_solver="randomized", random_state=0),
            0.2,
        ),
        f"pca of {WANTED} components over all": (few, PCARotation, 1e-9),
    }
    for words, (ours, theirs, error) in sides.items():
        for features in FEATURES:
            name = f"fit of {words}, {POINTS:,} x {features:,}"
            if only not in name:
                continue
            x = np.random.default_rng(0).standard_normal((POINTS, features))
            x *= np.geomspace(1, 30, features)
            fits = {"ours": partial(_fit, ours, x), "theirs": partial(_fit, theirs, x)}
            found = in_turns(fits, max(1, turns // 3), time.process_time)
            one, other = (fit() for fit in fits.values())
            if np.abs(one / other - 1).max() > error:
                raise SystemExit(f"{name}: other variances")
            yield {"name": name, "ratio": ratio(found["ours"], found["theirs"])}


def _fit(scheme: Callable[[], Any], x: Any) -> Any:
    """Fit, and return the largest variances, over P."""
    fitted = scheme().fit(x)
    if isinstance(fitted, PCA):
        return fitted.explained_variance_[:WANTED] * (len(x) - 1) / len(x)
    return fitted.eigenvalues_[:WANTED]
