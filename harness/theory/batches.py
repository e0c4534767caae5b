"""Theory of batches for least squares: the knee, the largest stable step, the noise floor.

The cost is `f(w) = mean (x_i' w - y_i)^2` over P points with the bias among the features, and its
Hessian `H = 2 Gram`, the mean of `h_i = 2 x_i x_i'`. A step with a batch B of m points maps the
distance e to a minimum that fits every point to `(I - a H_B) e`, H_B the mean of h_i over B. With
batches that are drawn independently, m of P points without replacement,

    E[H_B S H_B] = c1 E[h S h] + c2 H S H =: M S,
    c1 = (P - m) / (m (P - 1)),  c2 = P (m - 1) / (m (P - 1)),

since two different points of a batch are any two of the P. So the second moment `S = E[e e']` goes
to `S - a (H S + S H) + a^2 M S`, and shrinks for every S exactly below `a* = 1 / rho(Lyap^-1 M)`,
with `Lyap S = H S + S H`. Draws with replacement have c1 = 1 / m and c2 = (m - 1) / m. Passes in a
shuffled order are not independent draws: theirs is another, usually a larger, limit.

References:
    Ma, Bassily, Belkin, "The power of interpolation", ICML 2018, for batches beyond which larger
    ones gain nothing; Defossez, Bach, "Averaged least-mean-squares", AISTATS 2015, for the limit of
    a batch of one as an eigenvalue of such operators. That of a batch of m was derived here; a test
    holds it against all batches of a small problem.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]
MAX_MOMENT_WEIGHTS = 61  # of the exact limit, whose matrix has n (n + 1) / 2 rows
NEGLIGIBLE_CURVATURE = 1e-12  # of the largest: along such directions nothing moves


def knee(largest_eigenvalue: float, trace: float) -> float:
    """Return the batch from which larger ones gain little: `mean |x|^2 / lambda_max` of the Gram.

    Args:
        largest_eigenvalue: The largest eigenvalue of the Gram matrix, or of a multiple of it.
        trace: The trace of the same matrix: the mean of the squared lengths of `[1 x]`, or its
            multiple.

    Returns:
        A number of points; NaN for a matrix of zeros.

    References:
        Ma, Bassily, Belkin, ICML 2018, see the module.
    """
    return trace / largest_eigenvalue if largest_eigenvalue > 0 else float("nan")


def approximate_step(lipschitz: float, knee_size: float, batch: int) -> float:
    """Return the largest stable step of a batch of m points: `(2/L) m / (k + m - 1)`.

    Args:
        lipschitz: L, the largest eigenvalue of the Hessian of all points.
        knee_size: The knee k, from `knee`.
        batch: The number of points m of a batch.

    Returns:
        A step size, near 2/L for batches far above the knee.
    """
    return 2 / lipschitz * batch / (knee_size + batch - 1)


def mean_square_steps(x: Array, batch: int) -> tuple[float, float]:
    """Return the largest steps that are stable in mean square, exactly.

    In the eigenvectors of H, Lyap multiplies `S_ij` by `h_i + h_j`, and `E[h S h]` is 4 times the
    matrix of the points' fourth moments, so that a* is the inverse of a largest eigenvalue of n (n
    + 1) / 2 coordinates.

    Args:
        x: Points `[1 x]` (P, n), with the column of the bias.
        batch: The number of points m of a batch.

    Returns:
        The limits a* of draws without replacement, and with it.

    References:
        Defossez, Bach, AISTATS 2015, for m = 1; see the module.
    """
    count = len(x)
    values, vectors = np.linalg.eigh(2 * x.T @ x / count)
    is_curved = values > NEGLIGIBLE_CURVATURE * values[-1]
    values, coordinates = values[is_curved], x @ vectors[:, is_curved]
    # A symmetric matrix is given by its entries on and above the diagonal, those above it times
    # sqrt(2), so that the squared length is that of the matrix.
    row, column = np.triu_indices(len(values))
    weights = np.where(row == column, 1, np.sqrt(2))
    products = coordinates[:, row] * coordinates[:, column] * weights
    roots = np.sqrt(values[row] + values[column])
    # M and Lyap, divided by the roots from both sides: Lyap is the identity, M stays symmetric.
    fourth_moments = 4 * (products.T @ products) / count / roots / roots[:, None]  # E[h S h]
    full_batch = np.diag(values[row] * values[column] / roots**2)  # H S H
    factors = [(1 / batch, (batch - 1) / batch)]  # (c1, c2) of draws with replacement
    if count > 1:  # draws without replacement come first; of a single point both are the same
        pairs = batch * (count - 1)
        factors.insert(0, ((count - batch) / pairs, count * (batch - 1) / pairs))
    last = len(roots) - 1
    limits = [
        1 / linalg.eigvalsh(c1 * fourth_moments + c2 * full_batch, subset_by_index=[last, last])[0]
        for c1, c2 in factors
    ]
    return float(limits[0]), float(limits[-1])


def noise_floor(
    step_size: float, noise_variance: float, trace: float, batch: int, largest_step: float
) -> float:
    """Return the excess around which descent with a constant step size settles.

    For batches drawn with replacement it is `a s^2 tr(Gram) / m / (1 - a / a*)`, with a* the
    largest stable step size of the batch. For shuffled passes, the excess at the end of a pass is
    far below it, by a factor of 4 to 500 at small steps.

    Args:
        step_size: The step size a.
        noise_variance: The mean square s^2 of the residuals at the minimum.
        trace: The trace of the Gram matrix.
        batch: The number of points m of a batch.
        largest_step: The largest stable step size a*, for draws with replacement.

    Returns:
        An excess, in units of the cost; infinite for steps that are not stable.
    """
    if step_size >= largest_step:
        return float("inf")
    return step_size * noise_variance * trace / batch / (1 - step_size / largest_step)
