"""Small computations beside the job, of its points alone: an autoencoder, textbook formulas."""

import warnings

import numpy as np

from normbench.measures.contract import Array, Findings, FinishedJob, measure
from normbench.measures.points import principal_directions
from normbench.normalizers.whitening import FORMULAS, Formula

NEAR = 0.01  # of the start's excess: a descent with less left counts as converged
MOST_DRAWN_FEATURES = 256
START_COUNT, START_SCALE = 100, 0.1
RELATIVE_STEP = 0.1  # over the largest eigenvalue of the points' second moments
TRAINING_ITERATIONS = 500
MOST_ITERATIONS = 1000  # of least squares on the points of a formula
QUANTITIES = ("finite", "mean", "off", "entry", "iterations")


@measure("autoencoder", of_descent=False, features=(1, MOST_DRAWN_FEATURES))
def autoencoder(job: FinishedJob) -> Findings:
    """Return the outcome of 100 descents of a linear autoencoder of one component.

    It minimizes `mean |z - c c' z|^2` over c (M,), by gradient descent at a step of 0.1 over the
    largest eigenvalue of `G = Z'Z / P`, from random starts. `overlap` (100,): the squared cosine
    between the component and the image of the first principal axis of the inputs under the scheme;
    1 / M by chance. `lost` (100,): the share of the sum of squares that is not reconstructed.
    `iterations` (100,): until 1 percent of the start's excess is left, 500 where more is left to
    the end. `features` (): M. Source: Watt, Borhani, Katsaggelos, "Machine Learning Refined", 2nd
    ed., section 8.3 and exercise 8.5.
    """
    z = job.z.astype(np.float64)
    # Scaled, so that squares do not overflow; no result depends on the scale. 1.0 if all are 0.
    z = z / (float(np.abs(z).max()) or 1.0)
    moments = z.T @ z / len(z)
    values = np.linalg.eigvalsh(moments)
    rng = np.random.default_rng(0)
    weights = START_SCALE * rng.standard_normal((START_COUNT, z.shape[1]))
    # The least cost: all eigenvalues but the largest, which the component reconstructs.
    least_cost = float(values[:-1].sum())
    step_size = RELATIVE_STEP / (values[-1] or 1.0)
    start_costs, _ = reconstruct(moments, weights)
    arrival = np.full(START_COUNT, TRAINING_ITERATIONS)
    for k in range(TRAINING_ITERATIONS):
        costs, gradient = reconstruct(moments, weights)
        is_near = costs - least_cost <= NEAR * (start_costs - least_cost)
        arrival[is_near] = np.minimum(arrival[is_near], k)  # the first such iteration stays
        weights = weights - step_size * gradient
    units = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return Findings(
        arrays={
            "overlap": (units @ _first_axis(job)) ** 2,
            "lost": reconstruct(moments, weights)[0] / (values.sum() or 1.0),
            "iterations": arrival,
            "features": np.array(z.shape[1]),
        }
    )


def _first_axis(job: FinishedJob) -> Array:
    """Return the image of the first principal axis of the inputs, scaled to length 1, (M,).

    It is the difference of two transformed points, the mean and the mean moved along the axis by
    its standard deviation; zeros where the scheme maps both alike.
    """
    mean = job.dataset.x.mean(axis=0, dtype=np.float64)
    deviations, directions = principal_directions(job.dataset.x)
    ends = np.stack([mean, mean + (deviations[0] or 1.0) * directions[0]])
    image = np.diff(np.asarray(job.scheme.transform(ends), dtype=np.float64), axis=0)[0]
    return np.asarray(image / (np.linalg.norm(image) or 1.0))


def reconstruct(moments: Array, weights: Array) -> tuple[Array, Array]:
    """Return the reconstruction errors `mean |z - c c' z|^2` of S components, and their gradients.

    Args:
        moments: The second moments of the points, `G = Z'Z / P` (M, M).
        weights: A component c for each start (S, M).

    Returns:
        `tr G - 2 c'Gc + c'Gc c'c`, `(S,)`; and `-4 Gc + 2 (Gc c'c + c c'Gc)`, `(S, M)`.
    """
    image = weights @ moments
    inner = (weights * image).sum(axis=1)
    square = (weights**2).sum(axis=1)
    costs = np.trace(moments) - 2 * inner + inner * square
    gradient = -4 * image + 2 * (image * square[:, None] + weights * inner[:, None])
    return costs, gradient


@measure(
    "formulas",
    of_descent=False,
    features=(1, MOST_DRAWN_FEATURES),
    suits=lambda data: len(data.y) > 0,
    needs="targets",
)
def formulas(job: FinishedJob) -> Findings:
    """Return the quality of each textbook formula on the points: arrays (5,), one entry a formula.

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
            judge_formula(formula, x, y - y.mean(), name.startswith("standard"))
            for name, formula in FORMULAS.items()
        ]
    columns = dict(zip(QUANTITIES, np.array(quantities).T))
    return Findings(arrays={"formula": np.array(list(FORMULAS)), **columns})


def judge_formula(formula: Formula, x: Array, y: Array, standard: bool) -> Array:
    """Return the `QUANTITIES` of a formula, in their order (5,).

    Args:
        formula: Transforms points.
        x: Points (P, N).
        y: Centred targets (P,), of mean 0.
        standard: Whether the formula is a standardization and not a sphering.
    """
    try:
        z = formula(x).astype(np.float64)
    except np.linalg.LinAlgError:  # of a covariance that overflowed, as float32 does from 1e19 on
        z = np.full(x.shape, np.nan)
    if not np.isfinite(z).all():
        return np.array([0.0, *[np.nan] * 4])
    basis, lengths, _ = np.linalg.svd(x - x.mean(axis=0, dtype=np.float64), full_matrices=False)
    # The singular values above rounding, in float64 also for points in float32.
    rank = int(np.count_nonzero(lengths > lengths[0] * max(x.shape) * np.finfo(float).eps))
    means = z.mean(axis=0)
    if standard:
        spread, promised = z.var(axis=0), np.ptp(x, axis=0) > 0
    else:
        spread = np.linalg.svd(z - means, compute_uv=False) ** 2 / len(z)
        promised = np.arange(len(spread)) < rank
    # From the mean of the targets, least squares can remove their projection on the points' span.
    excess = float(np.sum((basis[:, :rank].T @ y) ** 2))
    # Along a singular vector u of [1, z] with singular value s, k steps of size 1/L leave
    # `(1 - s^2 / s_1^2)^k` of `u . y`.
    vectors, lengths, _ = np.linalg.svd(np.c_[np.ones(len(z)), z], full_matrices=False)
    remaining = (1 - (lengths / lengths[0]) ** 2) ** (2 * np.arange(MOST_ITERATIONS)[:, None])
    removed = (1 - remaining) @ (vectors.T @ y) ** 2
    arrivals = np.flatnonzero(removed >= (1 - NEAR) * excess)
    iterations = arrivals[0] if len(arrivals) else MOST_ITERATIONS
    off = np.abs(spread - promised).max()
    return np.array([1.0, np.abs(means).max(), off, np.abs(z).max(), iterations])
