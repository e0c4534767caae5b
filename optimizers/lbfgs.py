"""L-BFGS by scipy, as the reference of a quasi-Newton solver."""

import numpy as np

from normbench.optimizers.contract import Array, Objective, Optimizer, State, check_count


def lbfgs(memory: int = 10, evaluations: int = 1000) -> Optimizer:
    """Return scipy's L-BFGS-B without bounds; an iteration is an evaluation of cost and gradient.

    The weights after k iterations are the last that L-BFGS-B accepted within k evaluations, the
    evaluation at the start not counted: so an iteration is the work of an iteration of gradient
    descent. L-BFGS-B chooses its own step sizes: the grid is ignored. Once L-BFGS-B has ended by
    itself (no decrease but rounding), or has used up its evaluations, the weights stay. The first
    step finds the path of each run for all steps of the descent.

    Args:
        memory: How many of the latest steps approximate the second derivatives.
        evaluations: The largest number of evaluations of a run.

    Returns:
        A rule whose state is the accepted weights after each of T evaluations, `(R, T, *shape)`,
        and the number of steps, `(R,)`; empty before the first step.

    Raises:
        ValueError: For an option out of range.

    References:
        Zhu, Byrd, Lu, Nocedal, "Algorithm 778: L-BFGS-B", ACM TOMS 23 (1997).
    """
    memory_size, max_evaluations = (
        check_count("memory", memory),
        check_count("evaluations", evaluations),
    )

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> tuple[Array, State]:
        """Return the weights after one more evaluation; gradient and step size are not used."""
        # The first step finds each run's whole path; the later ones read the weights from it.
        if not state:
            count = min(max_evaluations, objective.steps)
            paths = [_trace_path(start, objective, memory_size, count) for start in weights]
            # An array needs paths of one length: a run that ended earlier repeats its last weights.
            longest = max(map(len, paths))
            paddings = [np.repeat(path[-1:], longest - len(path), axis=0) for path in paths]
            padded_paths = np.array(
                [np.concatenate(path_and_padding) for path_and_padding in zip(paths, paddings)]
            )
            state = (padded_paths, np.zeros(len(weights), dtype=np.int64))
        path, step_counts = state  # (R, T, *shape) and (R,)
        step_counts = np.minimum(step_counts + 1, path.shape[1] - 1)  # at its end the weights stay
        return path[np.arange(len(path)), step_counts], (path, step_counts)

    note = (
        "lbfgs finds its own step sizes, one run at a time, and an iteration of it is one "
        "evaluation of cost and gradient"
    )
    return Optimizer(
        step,
        uses_objective=True,
        rotation_equivariant=True,
        gridless=True,
        needs_full_batch=True,
        note=note,
    )


def _trace_path(start: Array, objective: Objective, memory: int, max_evaluations: int) -> Array:
    """Return the weights that L-BFGS-B accepted last after each evaluation, `(T, *shape)`.

    T counts the evaluations that were made, the one at the start included.

    Args:
        start: The weights of one run, `(*shape)`, which are the first of the result.
        objective: The objective, of which one run is evaluated at a time.
        memory: See `lbfgs`.
        max_evaluations: The largest number of evaluations, and of iterations of L-BFGS-B.
    """
    from scipy.optimize import minimize

    path: list[Array] = []

    def evaluate(flat: Array) -> tuple[float, Array]:
        """Return cost and gradient (D,) at weights (D,), and repeat the last entry of the path.

        The entry stands for the weights accepted so far, unless `accept` replaces it.
        """
        path.append(path[-1] if path else start)
        weights = flat.reshape(start.shape).astype(start.dtype)[None]
        cost, gradient = objective.costs_and_gradient(weights)
        return float(cost[0]), gradient[0].reshape(-1).astype(np.float64)

    def accept(flat: Array) -> None:
        """Replace the last entry of the path by the accepted weights (D,).

        scipy calls this after each iteration, which makes one evaluation or more.
        """
        path[-1] = flat.reshape(start.shape).astype(start.dtype)

    with np.errstate(all="ignore"):  # at rounding level its last steps overflow
        minimize(
            evaluate,
            start.reshape(-1).astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            callback=accept,
            options={
                "maxcor": memory,
                "maxfun": max_evaluations,
                "maxiter": max_evaluations,
                "ftol": 0.0,  # no tolerances: it ends where rounding leaves no decrease
                "gtol": 0.0,
            },
        )
    return np.array(path)
