"""A linear autoencoder of the points under the scheme, trained by gradient descent."""

import numpy as np

from normbench.measures.contract import Array, Findings, FinishedJob, Measure
from normbench.measures.inputs import principal_directions

COMPONENTS = 1
START_COUNT, START_SCALE = 100, 0.1
RELATIVE_STEP = 0.1  # over the largest eigenvalue of the points' second moments
TRAINING_ITERATIONS = 500
NEAR = 0.01  # of the start's excess: a descent with less left counts as converged


def take(job: FinishedJob) -> Findings:
    """Return the outcome of 100 descents of a linear autoencoder of one component.

    It minimizes `mean |z - C C' z|^2` over C (M, 1), by gradient descent at a step of 0.1 over the
    largest eigenvalue of `Z'Z / P`, from random starts. `overlap` (100,): the squared cosine
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
    axis = _first_axis(job)
    rng = np.random.default_rng(0)
    weights = START_SCALE * rng.standard_normal((START_COUNT, z.shape[1], COMPONENTS))
    # The least cost: all eigenvalues but the largest, which the component reconstructs.
    least_cost = float(values[:-COMPONENTS].sum())
    step_size = RELATIVE_STEP / (values[-1] or 1.0)
    start_costs = _cost(moments, weights)
    arrival = np.full(START_COUNT, TRAINING_ITERATIONS)
    for k in range(TRAINING_ITERATIONS):
        is_near = _cost(moments, weights) - least_cost <= NEAR * (start_costs - least_cost)
        arrival[is_near] = np.minimum(arrival[is_near], k)  # the first such iteration stays
        weights = weights - step_size * _gradient(moments, weights)
    units = weights[..., 0] / np.linalg.norm(weights[..., 0], axis=1, keepdims=True)
    return Findings(
        arrays={
            "overlap": (units @ axis) ** 2,
            "lost": _cost(moments, weights) / (values.sum() or 1.0),
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


def _cost(moments: Array, weights: Array) -> Array:
    """Return the reconstruction errors `mean |z - C C' z|^2` of S linear autoencoders.

    Args:
        moments: The second moments of the points, `G = Z'Z / P` (M, M).
        weights: A matrix C for each start (S, M, K).

    Returns:
        `tr G - 2 tr C'GC + tr C'GC C'C`, `(S,)`.
    """
    inner = weights.transpose(0, 2, 1) @ moments @ weights
    gram = weights.transpose(0, 2, 1) @ weights
    return np.asarray(
        np.trace(moments)
        - 2 * np.trace(inner, axis1=1, axis2=2)
        + np.einsum("skl,slk->s", inner, gram)
    )


def _gradient(moments: Array, weights: Array) -> Array:
    """Return the gradient of `_cost` in C, `-4 GC + 2 (GC C'C + C C'GC)`, (S, M, K)."""
    image = moments @ weights  # GC
    transposed = weights.transpose(0, 2, 1)  # C'
    return np.asarray(
        -4 * image + 2 * (image @ (transposed @ weights) + weights @ (transposed @ image))
    )


MEASURE = Measure(take, record="autoencoder", of_descent=False, most_features=256)
