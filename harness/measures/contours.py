"""The cost over a plane of weights, on a square grid around the whole path."""

from typing import Any

import numpy as np

from normbench.measures.contract import BEST, Array, Descended, Findings, Finished, Measure
from normbench.measures.inputs import names_of
from normbench.theory.analysis import curvature_work
from normbench.theory.budget import Work

GRID = (21, 61)  # cells along one side, by what they cost
GRID_PRODUCTS = 1e11  # multiplications that a grid may take
AT_ONCE = 64  # models that are evaluated together


def take(made: Finished) -> Findings:
    """Return the costs over a plane.

    The plane: bias and weight of a single feature; the two weights of two features, the bias at
    its final value; otherwise the two stiffest directions of the Hessian at the end, through the
    end, the path projected on it. `a`, `b` (G,), `cost` (G, G) with b along the rows, `path`
    (k, 2), `iteration` (k,), `names` (2,) of the axes, `step_size` ().
    """
    here = made.descended
    assert here is not None
    walk, best = here.walk, here.best_step
    if walk is None or best is None:
        return Findings()
    weights = walk.weights.reshape(len(walk.weights), -1).astype(np.float64)
    origin, directions, labels = _plane(here, weights, names_of(made))
    along = (weights - origin) @ directions.T
    low, high = along.min(axis=0), along.max(axis=0)
    half = 0.65 * float((high - low).max()) or 1.0  # a path of one point has no extent
    side = int(np.clip(np.sqrt(GRID_PRODUCTS / (len(made.z) * weights.shape[1])), *GRID))
    a, b = (middle + np.linspace(-half, half, side) for middle in (low + high) / 2)
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    costs = [
        here.train.evaluate(
            (origin + part @ directions).astype(here.start.dtype).reshape(-1, *here.train.shape),
            with_gradient=False,
        ).costs
        for part in np.array_split(grid, max(1, len(grid) // AT_ONCE))
    ]
    return Findings(
        arrays={
            "a": a,
            "b": b,
            "cost": np.concatenate(costs).reshape(side, side),
            "path": along,
            "iteration": walk.iteration,
            "names": np.array(labels),
            "step_size": np.array(best.step_size),
        }
    )


def _plane(here: Descended, weights: Array, names: tuple[str, ...]) -> tuple[Array, Array, Any]:
    """Return a point (n,) on the plane, its two unit directions (2, n), and their names."""
    end, size = weights[-1], weights.shape[1]
    if size == 2:
        return np.zeros(2), np.eye(2), ("bias", f"weight of {names[0]}")
    if size == 3:
        origin = np.array([end[0], 0.0, 0.0])
        return origin, np.eye(3)[1:], tuple(f"weight of {name}" for name in names)
    hessian = here.train.hessian(end.reshape(here.train.shape))
    if not hessian.is_zero:
        return end, hessian.leading(2), ("stiffest direction", "second stiffest direction")
    # A cost of flat pieces has no curvature to choose by: the plane that the path uses most.
    directions = np.linalg.svd(weights - end, full_matrices=False)[2]
    directions = np.vstack([directions, np.eye(2, size)])[:2]
    return end, directions, ("along the path", "second direction of the path")


def _work(made: Finished) -> Work:
    assert made.descended is not None
    return curvature_work(made.descended.train)


MEASURE = Measure(take, record="contours", what="contours", work=_work, follows=BEST)
