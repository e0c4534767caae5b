"""Formulas of standardizing and sphering, compared on the same points in their own precision."""

import warnings

import numpy as np

from normbench.datasets import Dataset
from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.normalizers.formulas import FORMULAS, Formula

MOST_ITERATIONS = 1000
NEAR = 0.01  # of the start's excess: a descent with less left counts as converged
QUANTITIES = ("finite", "mean", "off", "entry", "iterations")


def _reason_against(dataset: Dataset) -> str:
    """Return the reason why a data set does not suit, that it has no targets; empty if it does."""
    return "" if len(dataset.y) else f"descends on targets, and {dataset.name} has none"


def take(job: FinishedJob) -> Findings:
    """Return the quality of each formula on the training points: arrays (5,), one entry a formula.

    `formula`: its name. `finite`: 1 where all transformed numbers are finite; 0 where some are not,
    or where the decomposition fails: the other quantities are then NaN. `mean`: the largest
    `|mean|` of a transformed feature. `off`: the largest difference from the promise of the
    formula. A standardization promises variance 1 for a feature that varies and 0 for the others; a
    sphering promises r eigenvalues 1 of the covariance, r the rank of the centred points, and 0 for
    the others. `entry`: the largest transformed number in size. `iterations`: of gradient descent
    on least squares at the step 1/L, until at most 1 percent is left of the excess over the least
    cost on the points themselves; 1000 where more is left. The job's own scheme plays no part.
    """
    x, y = job.dataset.x, job.dataset.y.astype(np.float64)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        quantities = [
            _judge(x, _transform(formula, x), y - y.mean(), name.startswith("standard"))
            for name, formula in FORMULAS.items()
        ]
    return Findings(
        arrays={
            "formula": np.array(list(FORMULAS)),
            **dict(zip(QUANTITIES, np.array(quantities).T)),
        }
    )


def _transform(formula: Formula, x: Array) -> Array:
    """Return points x (P, N) under a formula; NaN where its decomposition fails."""
    try:
        return formula(x)
    except np.linalg.LinAlgError:  # of a covariance that overflowed, as float32 does from 1e19 on
        return np.full_like(x, np.nan)


def _judge(x: Array, transformed: Array, y: Array, standard: bool) -> Array:
    """Return the `QUANTITIES` of a formula, in their order (5,).

    Args:
        x: Points (P, N).
        transformed: The same points under the formula (P, M).
        y: Centred targets (P,), of mean 0.
        standard: Whether the formula is a standardization and not a sphering.
    """
    z = transformed.astype(np.float64)
    if not np.isfinite(z).all():
        return np.array([0.0, *[np.nan] * 4])
    basis, sizes, _ = np.linalg.svd(x - x.mean(axis=0, dtype=np.float64), full_matrices=False)
    # The singular values above rounding, in float64 also for points in float32.
    rank = int(np.count_nonzero(sizes > sizes[0] * max(x.shape) * np.finfo(float).eps))
    means = z.mean(axis=0)
    if standard:
        spread, promised = z.var(axis=0), np.ptp(x, axis=0) > 0
    else:
        spread = np.linalg.svd(z - means, compute_uv=False) ** 2 / len(z)
        promised = np.arange(len(spread)) < rank
    # From the mean of the targets, least squares can remove their projection on the points' span.
    excess = float(np.sum((basis[:, :rank].T @ y) ** 2))
    iterations = _iterations(z, y, excess)
    off = np.abs(spread - promised).max()
    return np.array([1.0, np.abs(means).max(), off, np.abs(z).max(), iterations])


def _iterations(z: Array, y: Array, excess: float) -> float:
    """Return the iterations on points with a bias that remove 99 percent of the excess.

    Along a singular vector u of [1, z] with singular value s, k steps of size 1/L leave
    `(1 - s^2 / s_1^2)^k` of `u . y`.

    Args:
        z: Transformed points (P, M).
        y: Centred targets (P,).
        excess: The sum of squares that least squares removes from y on the points themselves.

    Returns:
        A whole number; `MOST_ITERATIONS` where fewer do not suffice.
    """
    vectors, sizes, _ = np.linalg.svd(np.c_[np.ones(len(z)), z], full_matrices=False)
    remaining = (1 - (sizes / sizes[0]) ** 2) ** (2 * np.arange(MOST_ITERATIONS)[:, None])
    removed = (1 - remaining) @ (vectors.T @ y) ** 2
    arrivals = np.flatnonzero(removed >= (1 - NEAR) * excess)
    return float(arrivals[0]) if len(arrivals) else float(MOST_ITERATIONS)


MEASURE = Measure(
    take, record="formulas", of_descent=False, most_features=256, reason_against=_reason_against
)
