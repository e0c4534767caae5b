"""Step rules that ask for costs, further gradients or second derivatives, of all points."""

from contextlib import suppress

import numpy as np

from normbench.optimizers.contract import (
    Array,
    Objective,
    Optimizer,
    State,
    Update,
    check_count,
    check_nonnegative,
    check_open_share,
)


def line_search(decrease: float = 1e-4, shrink: float = 0.5, trials: int = 50) -> Optimizer:
    """Return the rule `w <- w - t g`, t the first of `a, a s, a s^2, ...` that Armijo accepts.

    Armijo's condition is `cost(w - t g) <= cost(w) - c t |g|^2`, with the gradient g. The search of
    every step begins at the step size a; each run searches by itself.

    Args:
        decrease: c, between 0 and 1.
        shrink: s, between 0 and 1.
        trials: How many t are tried, at most. Where none is accepted, the weights stay: this
            happens at a minimum, because of rounding.

    Returns:
        A rule without state.

    Raises:
        ValueError: For an option out of range.

    References:
        Nocedal and Wright, Numerical Optimization (2006), algorithm 3.1.
    """
    c, s = check_open_share("decrease", decrease), check_open_share("shrink", shrink)
    max_trials = check_count("trials", trials)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> Update:
        costs, flat = objective.costs(weights), gradient.reshape(len(gradient), -1)
        squared_norms = np.einsum("rd,rd->r", flat, flat, dtype=np.float64)
        next_weights, t = weights.copy(), step_size.copy()  # t (R, 1, ..): one for each run
        runs = np.arange(len(weights))  # those that have accepted no t yet
        for _ in range(max_trials):
            trial_weights = weights[runs] - t[runs] * gradient[runs]
            bounds = costs[runs] - c * t[runs].ravel() * squared_norms[runs]
            accepted = objective.costs(trial_weights) <= bounds  # never for a cost that is NaN
            next_weights[runs[accepted]] = trial_weights[accepted]
            runs = runs[~accepted]
            if not len(runs):
                break
            t[runs] *= s
        return next_weights, state

    note = (
        "every line search begins anew at the step size, and not at the last one that it accepted"
    )
    return Optimizer(step, uses_objective=True, rotation_equivariant=True, steady=True, note=note)


def newton(ridge: float = 1e-7) -> Optimizer:
    """Return the rule `w <- w - a (H + r I)^-1 g`, H the second derivatives at w.

    The step size a is the damping: 1 is Newton's method. A run whose matrix is singular gets NaN
    for its weights, and so is retired as diverged. The system is solved in float64, one run at a
    time: a matrix has C (N + 1) rows.

    Args:
        ridge: r, 0 or more; above 0 it makes a singular H of a convex cost invertible.

    Returns:
        A rule without state.

    Raises:
        ValueError: For a ridge out of range.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 4.3, with its ridge of 1e-7.
    """
    r = check_nonnegative("ridge", ridge)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> Update:
        directions = np.full(gradient.shape, np.nan)
        for run in range(len(weights)):  # one Hessian (D, D) at a time, to save memory
            hessian = objective.hessian(weights[run][None])[0]
            matrix = hessian + r * np.eye(len(hessian))
            with suppress(np.linalg.LinAlgError):  # a singular matrix
                solution = np.linalg.solve(matrix, gradient[run].reshape(-1))
                directions[run] = solution.reshape(gradient[run].shape)
        # A float32 run is solved in float64, and stays in float32.
        return (weights - step_size * directions).astype(weights.dtype), state

    return Optimizer(step, uses_objective=True, rotation_equivariant=True, curved=True, steady=True)


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
    memory_size = check_count("memory", memory)
    max_evaluations = check_count("evaluations", evaluations)

    def step(
        weights: Array, gradient: Array, state: State, step_size: Array, objective: Objective
    ) -> Update:
        # The first step finds each run's whole path; the later ones read the weights from it.
        if not state:
            count = min(max_evaluations, objective.steps)
            paths = [_trace_path(start, objective, memory_size, count) for start in weights]
            # An array needs paths of one length: a run that ended earlier repeats its last weights.
            rows = np.arange(max(map(len, paths)))
            padded = np.stack([path[np.minimum(rows, len(path) - 1)] for path in paths])
            state = padded, np.zeros(len(weights), dtype=np.int64)
        path, step_counts = state
        step_counts = np.minimum(step_counts + 1, path.shape[1] - 1)  # at its end the weights stay
        return path[np.arange(len(path)), step_counts], (path, step_counts)

    note = (
        "lbfgs finds its own step sizes, one run at a time, and an iteration of it is one "
        "evaluation of cost and gradient"
    )
    return Optimizer(step, uses_objective=True, rotation_equivariant=True, gridless=True, note=note)


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

    def shape_weights(flat: Array) -> Array:
        """Return weights `(*shape)`, in their type, from those of L-BFGS-B (D,) in float64."""
        return np.asarray(flat.reshape(start.shape).astype(start.dtype))

    def evaluate(flat: Array) -> tuple[float, Array]:
        """Return cost and gradient (D,) at weights (D,), and repeat the last entry of the path.

        The entry stands for the weights accepted so far, unless `accept` replaces it.
        """
        path.append(path[-1] if path else start)
        cost, gradient = objective.costs_and_gradient(shape_weights(flat)[None])
        return float(cost[0]), gradient[0].reshape(-1).astype(np.float64)

    def accept(flat: Array) -> None:
        """Replace the last entry of the path by the accepted weights (D,), after an iteration."""
        path[-1] = shape_weights(flat)

    limits = {"maxcor": memory, "maxfun": max_evaluations, "maxiter": max_evaluations}
    no_tolerances = {"ftol": 0.0, "gtol": 0.0}  # it ends where rounding leaves no decrease
    flat_start = start.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):  # at rounding level its last steps overflow
        minimize(
            *(evaluate, flat_start),
            jac=True,
            method="L-BFGS-B",
            callback=accept,
            options=limits | no_tolerances,
        )
    return np.array(path)
