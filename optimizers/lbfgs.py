"""L-BFGS, by scipy: what a solver makes of the same cost."""

import numpy as np

from normbench.optimizers.contract import Array, Objective, Optimizer, State, count


def lbfgs(memory: int = 10, evaluations: int = 1000) -> Optimizer:
    """Return scipy's L-BFGS-B without bounds, an evaluation of cost and gradient an iteration.

    The weights after k iterations are the last that it accepted with k evaluations, the one at the
    start not counted: so an iteration is the work of one of gradient descent. It finds its own step
    sizes, and takes none of a grid. memory: of how many steps the second derivatives are guessed.
    evaluations: the most; afterwards, and where it ends by itself (no decrease but rounding), the
    weights stay. One run at a time, as a whole, when its first step is asked for. State: the
    accepted weights of every evaluation, and how many were taken. Raises `ValueError` for
    an option out of range. Zhu, Byrd, Lu, Nocedal, "Algorithm 778: L-BFGS-B", ACM TOMS 23 (1997).
    """
    size, most = count("memory", memory), count("evaluations", evaluations)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> tuple[Array, State]:
        if not state:
            paths = [_path(one, objective, size, most) for one in weights]
            longest = max(map(len, paths))
            longer = [np.repeat(path[-1:], longest - len(path), axis=0) for path in paths]
            whole = np.array([np.concatenate(parts) for parts in zip(paths, longer)])
            state = (whole, np.zeros(len(weights), dtype=np.int64))
        path, taken = state
        taken = np.minimum(taken + 1, path.shape[1] - 1)
        return path[np.arange(len(path)), taken], (path, taken)

    note = (
        "lbfgs finds its own step sizes, one run at a time, and an iteration of it is one "
        "evaluation of cost and gradient"
    )
    return Optimizer(step, uses_objective=True, rotation_equivariant=True, gridless=True, note=note)


def _path(start: Array, objective: Objective, memory: int, most: int) -> Array:
    """Return the weights accepted after each evaluation, `(T, *shape)`, the start first."""
    from scipy.optimize import minimize

    path: list[Array] = []

    def evaluated(flat: Array) -> tuple[float, Array]:
        path.append(path[-1] if path else start)
        weights = flat.reshape(start.shape).astype(start.dtype)[None]
        cost, slope = objective.costs(weights), objective.gradient(weights)
        return float(cost[0]), slope[0].reshape(-1).astype(np.float64)

    def accepted(flat: Array) -> None:
        path[-1] = flat.reshape(start.shape).astype(start.dtype)

    with np.errstate(all="ignore"):  # at rounding level its last steps overflow
        minimize(
            evaluated,
            start.reshape(-1).astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=accepted,
            options={"maxcor": memory, "maxfun": most, "maxiter": most, "ftol": 0.0, "gtol": 0.0},
        )
    return np.array(path)
