"""Which theory a job gets: one rule, by sizes alone.

`theory=none` is none, and `theory=full` is all of it, whatever the size. `theory=auto` leaves out
what has more than 2,000 features, weights or margins, of which a matrix would be decomposed, or
more than fifty million numbers, and a note says so. Its work then grows with the data as that of
the descent does, and no part of it depends on another. Beyond the limits remain the largest
curvatures, by Lanczos's method.
"""

import numpy as np

from normbench.datasets.on_disk.points import Points
from normbench.engine.problem import Problem

MAX_ROWS = 2000  # of a matrix: its decomposition takes seconds
MAX_NUMBERS = 5e7  # numbers in memory: 400 MB
LEFT_OUT = "left out by size (theory=full computes it)"


def allows(theory: str, rows: float, numbers: float = 0) -> bool:
    """Return whether a job gets what decomposes a matrix of so many rows, and has so many numbers.

    Args:
        theory: The setting `theory`, not `none`.
        rows: The number of rows of the matrix.
        numbers: The number of numbers that are computed beside it.
    """
    return theory == "full" or bool(rows <= MAX_ROWS and numbers <= MAX_NUMBERS)


def count_filled(x: Points) -> int:
    """Return the number of entries (P, N) of sparse points that are made dense; 0 of dense ones."""
    return 0 if isinstance(x, np.ndarray) else len(x) * x.shape[1]


def allows_moments(theory: str, x: Points) -> bool:
    """Return whether a job gets what follows from the mean and covariance of points (P, N).

    Sparse points become dense for it, a block at a time.
    """
    return allows(theory, x.shape[1], count_filled(x))


def allows_spectrum(theory: str, x: Points) -> bool:
    """Return whether a job gets all eigenvalues of the Gram matrix of points (P, N)."""
    return allows_moments(theory, x) or (isinstance(x, np.ndarray) and len(x) <= MAX_ROWS)


def allows_second_derivatives(theory: str, train: Problem) -> bool:
    """Return whether a job gets second derivatives at single weights, C^2 for each point.

    A network's are never formed: its Hessian is known by its products.
    """
    linear = train.linear
    return linear is None or allows(theory, 0, len(linear.targets) * train.shape[0] ** 2)


def allows_matrix(theory: str, train: Problem) -> bool:
    """Return whether a job gets what takes the Hessian as a matrix."""
    return allows(theory, int(np.prod(train.shape))) and allows_second_derivatives(theory, train)


def allows_least_cost(theory: str, train: Problem, x: Points) -> bool:
    """Return whether a linear problem is solved for its least cost, on its points and the data's x.

    Where the Hessian is too large for a matrix, conjugate gradients take hundreds of products with
    the points.
    """
    weights = int(np.prod(train.shape))
    return (
        allows_moments(theory, x)
        and allows_moments(theory, train.points)
        and allows_second_derivatives(theory, train)
        and (allows_matrix(theory, train) or allows(theory, 0, len(x) * weights))
    )


def left_out(theory: str, train: Problem, x: Points, has_least_cost: bool) -> list[str]:
    """Return the names of what a job lacks for its size; none of a network.

    Args:
        theory: The setting `theory`, not `none`.
        train: The problem of the training points.
        x: The points (P, N) of the data set, before any scheme.
        has_least_cost: Whether the least cost is known: the descent itself may prove it.
    """
    linear = train.linear
    if linear is None:
        return []
    has_derivatives = allows_second_derivatives(theory, train)
    allowed = {
        "rank and condition number": allows_spectrum(theory, linear.points),
        "spectrum": allows_moments(theory, x),
        "curvature at the start": has_derivatives,
        "curvature at the best weights": has_derivatives,
        "curvatures at the best weights": linear.traits.quadratic or allows_matrix(theory, train),
        "least cost": has_least_cost
        or linear.traits.piecewise == "linear"  # a solver of second order does not find it
        or not train.convex
        or allows_least_cost(theory, train, x),
    }
    return [name for name, is_allowed in allowed.items() if not is_allowed]
