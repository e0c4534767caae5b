"""Whether a cost's least value is attained: four cases, decided by a linear program.

Of points `[1 z]` with scores `W [1 z]'`, a margin is `(w_own - w_other) [1 z]'`: one for each other
class of each point (with one score a point and targets y = -1, +1: `y w [1 z]'`). A cost of the
trait `separable` falls in every margin and goes to 0 as all of them grow. It is convex, so a
direction W with no margin below 0 lowers it for ever where a margin is above 0, from any weights:

- strictly separable: some W has all margins above 0. The least cost is 0, at infinity.
- partly separable: some W has no margin below 0 and one above 0, but none has all above 0. The
  least cost is above 0 (the margins that are 0 along every such W have a minimum of their own),
  and it is not attained.
- attained: no such W. Every direction that changes a score lowers some margin, and the cost grows
  along it. (Albert and Anderson, "On the existence of maximum likelihood estimates in logistic
  regression models", Biometrika 71, 1984.)
- not decided: no rule below says, or the program is too large.

One program tells them apart. Maximize the sum of t over W and t, `0 <= t <= 1`, margins >= t. Such
directions add up and may be scaled, so each t of the solution is 0 or 1, and it is 1 for every
margin that some direction makes positive.
"""

from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import iterate_blocks
from normbench.engine.problem import Array, Problem
from normbench.names import ATTAINED, PARTLY, STRICTLY, UNDECIDED

MAX_MARGINS = 20_000  # margins: beyond, the program takes minutes and more
# Of the weights of sphered points: a gap below a millionth of the points' spread is not seen.
MAX_WEIGHT = 1e6
# A t below it is 0, and a t above 1 minus it is 1; between, the program has not decided.
PROGRAM_TOLERANCE = 1e-3


def decide_by_rule(problem: Problem) -> str:
    """Return the case where the cost or its penalty decides it for any points; else UNDECIDED.

    A quadratic or piecewise linear cost has a minimum. A penalty on all slopes makes the cost grow
    along every slope. Along the biases the cost grows if every class occurs in the data. So the
    least cost is then attained.

    Args:
        problem: The problem, on any points.

    Returns:
        ATTAINED or UNDECIDED, see the module.
    """
    traits = problem.traits
    if traits.quadratic or traits.piecewise:
        return ATTAINED
    if traits.separable and _penalizes_all(problem.l2):
        classes = max(2, problem.shape[0])
        return ATTAINED if len(np.unique(problem.targets)) == classes else UNDECIDED
    return UNDECIDED


def _penalizes_all(l2: float | Array) -> bool:
    """Return whether a penalty grows in every direction of the slopes, beyond rounding."""
    if np.ndim(l2) < 2:
        return bool(np.all(np.asarray(l2) > 0))
    values = np.linalg.eigvalsh(np.asarray(l2, dtype=np.float64))
    return bool(values[0] > len(values) * np.finfo(np.float64).eps * values[-1])


def proves_separable(problem: Problem, weights: Array) -> bool:
    """Return whether weights prove that the points are strictly separable.

    They do where every margin of every point is above the rounding error of 0. False for a cost
    without the trait `separable`, whose least cost does not follow from margins.

    Args:
        problem: The problem, on points (P, M).
        weights: One model, `(C, M + 1)`.
    """
    if not problem.traits.separable:
        return False
    all_blocks = iterate_blocks(problem.points)
    return all(
        _has_positive_margins(problem, weights, x, problem.targets[rows]) for rows, x in all_blocks
    )


def _has_positive_margins(problem: Problem, weights: Array, x: Array, targets: Array) -> bool:
    """Return whether the margins of a block of points are above the rounding error of 0.

    Args:
        problem: The problem.
        weights: One model, `(C, M + 1)`.
        x: The block's points (p, M).
        targets: Their class indices (p,), or -1 and +1 where a point has one score.
    """
    scores = problem.scores(weights, x).astype(np.float64)
    largest = np.maximum(x.max(axis=0), -x.min(axis=0))  # the largest size of each feature
    # No score of these points is larger in size than this bound.
    score_scale = (np.abs(weights[:, 1:]) @ largest + np.abs(weights[:, 0])).max()
    rounding = 4 * weights.shape[1] * np.finfo(weights.dtype).eps * float(score_scale)
    if len(scores) == 1:
        return bool(np.all(targets * scores[0] > rounding))
    own_scores = scores[targets, np.arange(len(targets))]
    scores[targets, np.arange(len(targets))] = -np.inf  # leaves the scores of the other classes
    return bool(np.all(own_scores - scores.max(axis=0) > rounding))


def decide_by_program(problem: Problem) -> str:
    """Return the case of a `separable` cost without a penalty, by the linear program.

    Args:
        problem: The problem on sphered points (P, r).

    Returns:
        STRICTLY, PARTLY, ATTAINED or UNDECIDED, see the module.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, hstack

    # The unknowns are W, flat, and t; the constraints `t - rows W <= 0` are `margins >= t`.
    rows = _margins(problem)
    count, width = rows.shape
    solution = linprog(
        np.r_[np.zeros(width), -np.ones(count)],
        A_ub=hstack([-rows, eye_array(count)], format="csr"),
        b_ub=np.zeros(count),
        bounds=[(-MAX_WEIGHT, MAX_WEIGHT)] * width + [(0, 1)] * count,
        method="highs-ds",
    )
    if solution.status != 0:
        return UNDECIDED
    weights, t = solution.x[:width], solution.x[width:]
    if np.any((t > PROGRAM_TOLERANCE) & (t < 1 - PROGRAM_TOLERANCE)):
        return UNDECIDED
    if not np.any(t > PROGRAM_TOLERANCE):
        return ATTAINED
    if not np.all(t > PROGRAM_TOLERANCE):
        return PARTLY
    # The solver's tolerance is no proof: the margins themselves must be above rounding.
    rounding = 4 * width * np.finfo(np.float64).eps * (abs(rows) @ np.abs(weights))
    return STRICTLY if np.all(rows @ weights > rounding) else UNDECIDED


def _margins(problem: Problem) -> Any:
    """Return the matrix that gives all margins as a product with the flat weights.

    A number added to all scores changes no margin, so the weights of class 0 are left at 0.

    Args:
        problem: The problem on sphered points (P, r).

    Returns:
        A sparse array `(P (C - 1), (C - 1) (r + 1))`; `(P, r + 1)` where a point has one score.
    """
    from scipy.sparse import csr_array, hstack

    targets, points = problem.targets, len(problem.targets)
    x = np.column_stack([np.ones(points), problem.points[:]])
    classes = problem.shape[0]
    if classes == 1:  # targets are -1 and +1, and the margin is `y w [1 z]'`
        return csr_array(x * targets[:, None])
    # For each point the classes but its own (P, C - 1): indices from its own on are raised by 1.
    indices = np.arange(classes - 1)
    other_classes = indices + (indices >= targets[:, None])
    own_class, other_class = np.repeat(targets, classes - 1), other_classes.ravel()
    x = np.repeat(x, classes - 1, axis=0)
    # A row has the point in the columns of its own class, and its negative in those of the other.
    signs = ((own_class == k).astype(float) - (other_class == k) for k in range(1, classes))
    return hstack([csr_array(x * sign[:, None]) for sign in signs], format="csr")
