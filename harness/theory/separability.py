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
from normbench.engine.problem import Array, Linear
from normbench.names import ATTAINED, PARTLY, STRICTLY, UNDECIDED
from normbench.theory.budget import Work

MAX_MARGINS = 20_000  # margins: beyond, the program takes minutes and more
MAX_WEIGHT = 1e6  # weight, of points sphered: a gap below a millionth of their spread is not told
# T is 0 below it, and 1 from 1 minus it on; between, the program has not decided.
PROGRAM_TOLERANCE = 1e-3


def by_rule(problem: Linear) -> str:
    """Return the case where the cost or its penalty decides it for any points; else UNDECIDED.

    A penalty on all slopes makes the cost grow along every slope. Along the biases the cost grows
    if every class occurs in the data. So the least cost is then attained.
    """
    declared = problem.traits
    if declared.quadratic or declared.piecewise:
        return ATTAINED
    if declared.separable and _penalizes_all(problem.l2):
        classes = max(2, problem.shape[0])
        return ATTAINED if len(np.unique(problem.targets)) == classes else UNDECIDED
    return UNDECIDED


def _penalizes_all(l2: float | Array) -> bool:
    """Return whether a penalty grows in every direction of the slopes, beyond rounding."""
    if np.ndim(l2) < 2:
        return bool(np.all(np.asarray(l2) > 0))
    values = np.linalg.eigvalsh(np.asarray(l2, dtype=np.float64))
    return bool(values[0] > len(values) * np.finfo(np.float64).eps * values[-1])


def separates(problem: Linear, weights: Array) -> bool:
    """Return whether weights `(C, M + 1)` prove that the points are strictly separable.

    All their margins are above the rounding error of 0.
    """
    if not problem.traits.separable:
        return False
    every = iterate_blocks(problem.points)
    return all(_separates(problem, weights, x, problem.targets[rows]) for rows, x in every)


def _separates(problem: Linear, weights: Array, x: Array, targets: Array) -> bool:
    """Return whether the margins of points x (p, M) are above the rounding error of 0."""
    scores = problem.scores(weights, x).astype(np.float64)
    largest = np.maximum(x.max(axis=0), -x.min(axis=0))
    score_scale = (np.abs(weights[:, 1:]) @ largest + np.abs(weights[:, 0])).max()
    rounding = 4 * weights.shape[1] * np.finfo(weights.dtype).eps * float(score_scale)
    if len(scores) == 1:
        return bool(np.all(targets * scores[0] > rounding))
    own_scores = scores[targets, np.arange(len(targets))]
    scores[targets, np.arange(len(targets))] = -np.inf
    return bool(np.all(own_scores - scores.max(axis=0) > rounding))


def work(points: int, classes: int, features: int) -> Work:
    """Return the work of the program for points of C scores; infinite beyond its limit.

    A step of the simplex method reads the margins about as a pass reads the points, and there are
    about as many steps as margins: measured, 300 to 3,600 margins, within a factor of 3.
    """
    rows = points * max(1, classes - 1)
    if rows > MAX_MARGINS:
        return Work(float("inf"), float("inf"))
    return Work(rows, 32.0 * rows * min(classes, 2) * (features + 2))


def by_program(problem: Linear) -> str:
    """Return the case of a `separable` cost without a penalty on sphered points (P, r)."""
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
    rounding = 4 * width * np.finfo(np.float64).eps * (abs(rows) @ np.abs(weights))
    return STRICTLY if np.all(rows @ weights > rounding) else UNDECIDED


def _margins(problem: Linear) -> Any:
    """Return the margins' rows `(P (C - 1), (C - 1) (r + 1))`, sparse; `(P, r + 1)` of one score.

    A number added to all scores changes no margin, so the weights of class 0 are left at 0.
    """
    from scipy.sparse import csr_array, hstack

    targets, points = problem.targets, len(problem.targets)
    x = np.column_stack([np.ones(points), problem.points[:]])
    classes = problem.shape[0]
    if classes == 1:
        return csr_array(x * targets[:, None])
    other_classes = np.arange(classes - 1) + (
        np.arange(classes - 1) >= targets[:, None]
    )  # (P, C - 1)
    own_class, other_class = np.repeat(targets, classes - 1), other_classes.ravel()
    x = np.repeat(x, classes - 1, axis=0)
    # A row has the point in the columns of its own class, and its negative in those of the other.
    signs = ((own_class == k).astype(float) - (other_class == k) for k in range(1, classes))
    return hstack([csr_array(x * sign[:, None]) for sign in signs], format="csr")
