"""The numbers of `research/large_steps`."""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.results.store.runs import Sweep

Array = NDArray[np.float64]
BUDGETS = {100: 25, 200: 50, 400: 100}  # iterations, and the step size, a quarter of them


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `bound`, and `cost_K`: the cost after K iterations of step K / 4.

    bound: the largest `margin^2 step (k - s) cost(k)` over all step sizes and k > s, where s is the
    iteration from which on the cost stays under 1 / step.
    """
    (points,) = sweep.arrays(sweep.of_role(names.SCHEME), "points").values()
    size = margin(points["points"], points["target"])
    costs = {
        float(step): part[names.TRAIN_COST.key].to_numpy()
        for step, part in sweep.histories(sweep.of_role(names.STEP)).groupby("step_size")
    }
    found = {f"cost_{count}": float(costs[step][count]) for count, step in BUDGETS.items()}
    return found | {"bound": max(_largest(step, cost, size) for step, cost in costs.items())}


def _largest(step: float, cost: Array, size: float) -> float:
    late = np.flatnonzero(cost >= 1 / step)
    first = int(late[-1]) + 1 if len(late) else 0
    k = np.arange(first + 1, len(cost))
    return float(np.max(size**2 * step * (k - first) * cost[k], initial=0.0))


def margin(x: Array, y: Array) -> float:
    """Return the largest margin of points x (P, N) of two classes, the bias among the weights.

    `max over |w| = 1 of min over p of y_p w [1, x_p]`, from the shortest v with all
    `y_p v [1, x_p] >= 1`: it is `1 / |v|`.
    """
    from scipy.optimize import minimize

    signed = np.where(y == y.max(), 1.0, -1.0)[:, None] * np.c_[np.ones(len(x)), x]
    rule = {"type": "ineq", "fun": lambda v: signed @ v - 1, "jac": lambda v: signed}
    first = np.linalg.lstsq(signed, np.ones(len(x)), rcond=None)[0]
    options = {"ftol": 1e-14, "maxiter": 1000}
    found = minimize(
        lambda v: v @ v,
        first,
        jac=lambda v: 2 * v,
        method="SLSQP",
        constraints=rule,
        options=options,
    )
    return float(1 / np.linalg.norm(found.x))
