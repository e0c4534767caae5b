"""Step rules: two pure functions each, state in and state out, elementwise over runs.

`init(weights)` returns the state: a tuple of arrays whose first axis is the runs, so that a run
that diverged can leave. `step(weights, gradient, state, step_size)` returns the next weights and
state, in new arrays. Weights and gradient are `(R, *shape)`, whatever the shape of one model's
weights; step_size is `(R, 1, ..)`, of as many axes. A rule that needs costs or second derivatives
says `uses_problem`.
"""

from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
State = tuple[Array, ...]
Update = tuple[Array, State]  # the next weights and state
ZERO_EPSILONS = 8  # machine epsilons of the largest component, below which a component is 0


class Optimizer(NamedTuple):
    """A step rule: two pure functions, and what may be relied on.

    Attributes:
        step: Returns the next weights and state, both in new arrays. Weights and gradient are `(R,
            *shape)`, step_size is `(R, 1, ..)`.
        init: Returns the state at the start: a tuple of arrays whose first axis is the runs.
        uses_problem: The rule gets the problem of all points, so that there are no batches, and the
            number of steps of the whole descent: `step(..., step_size, problem, steps)`. At weights
            `(R, *shape)` `problem.evaluate(weights)` has `costs` `(R,)` and a `gradient`; at those
            of one run `problem.hessian(weights)` has a `matrix()` `(D, D)`, D weights in C order.
        rotation_equivariant: From rotated weights and gradients the rule steps to the rotated
            weights, so that the costs of a descent do not depend on the axes.
        plain: The rule keeps no state and steps to `w - a g` (a the step size, g the gradient), so
            that the theory of gradient descent holds.
        curved: The rule divides by second derivatives, and so needs a cost that has some.
        gridless: The rule chooses its own step sizes, so that a job makes one run from each start,
            whatever the grid of step sizes; that run is recorded under step size 1.
        steady: Rounding can decide where a run ends only if the run's cost rises at some iteration;
            under a rule that is not steady it can decide that of any run.
        scheme: A scheme that is fitted on the points of the problem before the descent, by whose
            map gradients are multiplied; None without one.
        note: How the rule differs from what its name usually means; empty if it does not.
    """

    step: Callable[..., Update]
    init: Callable[[Array], State] = lambda weights: ()
    uses_problem: bool = False
    rotation_equivariant: bool = False
    plain: bool = False
    curved: bool = False
    gridless: bool = False
    steady: bool = False
    scheme: Any = None
    note: str = ""


def zero_per_run(weights: Array) -> Array:
    """Return a zero for each run, `(R, 1, ..)`, in the weights' type, to count steps."""
    return np.zeros((len(weights), *[1] * (weights.ndim - 1)), dtype=weights.dtype)


# What an option may be, of finite numbers, and the same in words.
Rule = tuple[Callable[[float], bool], str]
DECAY: Rule = (lambda x: 0 <= x < 1, "a number, 0 or more and below 1")
FACTOR: Rule = (lambda x: 0 < x < 1, "a number, above 0 and below 1")
NONNEGATIVE: Rule = (lambda x: x >= 0, "a finite number, 0 or more")
WHOLE: Rule = (lambda x: x == int(x) and x >= 1, "a whole number, 1 or more")


def check_option(name: str, value: Any, rule: Rule) -> float:
    """Return value as a float; raise `ValueError` unless it is finite and valid by a rule.

    Args:
        name: The name of the option, for the message.
        value: The value of the option.
        rule: Tells whether a finite number is valid, and says so: `must be {words}`.
    """
    is_valid, words = rule
    is_number = isinstance(value, (Real, np.number)) and not isinstance(value, bool)
    if not (is_number and np.isfinite(float(value)) and is_valid(float(value))):
        raise ValueError(f"{name}={value}: must be {words}")
    return float(value)


def gradient_descent() -> Optimizer:
    """Return the rule `w <- w - a g`, where a is the step size and g the gradient at w.

    Returns:
        A rule without state.
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        moved = step_size * gradient
        # Written over the product: one new array instead of two.
        return np.subtract(weights, moved, out=moved), state

    return Optimizer(step, rotation_equivariant=True, steady=True, plain=True)


def diminishing() -> Optimizer:
    """Return the rule `w <- w - (a / k) g` at step k = 1, 2, ..., a being the step size.

    Returns:
        A rule whose state is the number of steps so far, `(R, 1, ..)`, at first 0.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, section 3.5.
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        k = state[0] + 1
        return weights - step_size / k * gradient, (k,)

    return Optimizer(
        step, lambda weights: (zero_per_run(weights),), rotation_equivariant=True, steady=True
    )


def momentum(momentum: float = 0.9) -> Optimizer:
    """Return the rule `w+ <- w - a g + m (w - w-)`, w- the previous weights, at first w itself.

    It is Polyak's heavy ball. a is the step size and g the gradient at w. g has no factor `1 - m`:
    so in the long run a step size a acts like `a / (1 - m)`.

    Args:
        momentum: m, 0 <= m < 1; 0 is gradient descent.

    Returns:
        A rule whose state is w-.

    Raises:
        ValueError: For an m out of range.

    References:
        Polyak, Some methods of speeding up the convergence of iteration methods (1964).
    """
    m = check_option("momentum", momentum, DECAY)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        return weights - step_size * gradient + m * (weights - state[0]), (weights,)

    return Optimizer(step, lambda weights: (weights,), rotation_equivariant=True, steady=True)


def nesterov(momentum: float = 0.9) -> Optimizer:
    """Return the rule `v+ = w - a g(w)`, `w+ <- v+ + m (v+ - v)`, with v = w at first.

    It is Nesterov's accelerated gradient descent, with a fixed momentum. a is the step size, and
    g(w) the gradient at w. The weights w, whose costs make the history, are the points ahead at
    which Nesterov's method takes its gradients.

    Args:
        momentum: m, 0 <= m < 1; 0 is gradient descent.

    Returns:
        A rule whose state is v.

    Raises:
        ValueError: For an m out of range.

    References:
        Nesterov, Introductory Lectures on Convex Optimization (2004), section 2.2, constant step
        scheme III.
    """
    m = check_option("momentum", momentum, DECAY)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        descended = weights - step_size * gradient  # v+
        return descended + m * (descended - state[0]), (descended,)

    note = "of nesterov the points ahead are recorded, at which its gradients are taken"
    return Optimizer(
        step, lambda weights: (weights,), rotation_equivariant=True, steady=True, note=note
    )


def adam(mean_decay: float = 0.9, square_decay: float = 0.999, epsilon: float = 1e-8) -> Optimizer:
    """Return the rule `w <- w - a m' / (sqrt(v') + e)`, at step k = 1, 2, ...

    The running means `m <- b m + (1 - b) g` and `v <- c v + (1 - c) g^2` start at zero, and are
    corrected for that start by `m' = m / (1 - b^k)`, `v' = v / (1 - c^k)`.

    Args:
        mean_decay: b, 0 <= b < 1.
        square_decay: c, 0 <= c < 1.
        epsilon: e, 0 or more, outside the root.

    Returns:
        A rule whose state is m, v and k `(R, 1, ..)`.

    Raises:
        ValueError: For an option out of range.

    References:
        Kingma and Ba, Adam (ICLR 2015), algorithm 1.
    """
    b = check_option("mean_decay", mean_decay, DECAY)
    c = check_option("square_decay", square_decay, DECAY)
    e = check_option("epsilon", epsilon, NONNEGATIVE)

    def init(weights: Array) -> State:
        zero = np.zeros_like(weights)
        return zero, zero, zero_per_run(weights).astype(float)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        m = b * state[0] + (1 - b) * gradient
        v = c * state[1] + (1 - c) * gradient**2
        k = state[2] + 1
        # The divisors are computed in float64, and only then cast to the weights' type: 1 - 0.999
        # in float32 has four digits.
        mean = m / (1 - b**k).astype(m.dtype)
        square = v / (1 - c**k).astype(v.dtype)
        return weights - step_size * mean / (np.sqrt(square) + e), (m, v, k)

    return Optimizer(step, init)


def rmsprop(decay: float = 0.9, epsilon: float = 1e-8) -> Optimizer:
    """Return the rule `v <- d v + (1 - d) g^2`, `w <- w - a g / (sqrt(v) + e)`, v = 0 at first.

    Args:
        decay: d, 0 <= d < 1.
        epsilon: e, 0 or more, outside the root; with 0, a coordinate whose gradient has always been
            0 is divided by zero.

    Returns:
        A rule whose state is v.

    Raises:
        ValueError: For an option out of range.

    References:
        Tieleman and Hinton, lecture 6.5 of Neural Networks for Machine Learning (2012); Watt,
        Borhani, Katsaggelos, Machine Learning Refined, appendix A.4.
    """
    d, e = check_option("decay", decay, DECAY), check_option("epsilon", epsilon, NONNEGATIVE)

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        v = d * state[0] + (1 - d) * gradient**2
        return weights - step_size * gradient / (np.sqrt(v) + e), (v,)

    note = (
        "rmsprop's decay is 0.9 unless it is set, where PyTorch's is 0.99, and its mean of squares "
        "starts at 0 and is not corrected for it, unlike adam's"
    )
    return Optimizer(step, lambda weights: (np.zeros_like(weights),), note=note)


def sign() -> Optimizer:
    """Return the rule `w <- w - a s`, s the signs of g, 0 where g is 0 up to rounding.

    A component counts as 0 if it is at most 8 machine epsilons times the run's largest: a sum over
    the points that is exactly 0 is computed as about 1e-16, and its sign differs from machine to
    machine. The rule is the steepest descent with respect to the norm `max |w_j|`, without the
    factor `|g|_1` of that descent.

    Returns:
        A rule without state.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, appendix A.3 (normalized by
        component).
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        magnitude = np.abs(gradient)
        bound = ZERO_EPSILONS * np.finfo(gradient.dtype).eps * _largest_of_run(magnitude)
        return weights - step_size * np.where(magnitude > bound, np.sign(gradient), 0), state

    note = "sign takes a component of rounding size, 8 machine epsilons of the largest, for 0"
    return Optimizer(step, note=note)


def normalized() -> Optimizer:
    """Return the rule `w <- w - a g / |g|`, `|g|` the Euclidean norm over all weights of a run.

    Where the gradient is zero the weights stay.

    Returns:
        A rule without state.

    References:
        Watt, Borhani, Katsaggelos, Machine Learning Refined, appendix A.3.
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        unit = _largest_of_run(np.abs(gradient))  # by which squares stay within the type's range
        scaled = np.divide(gradient, unit, out=np.zeros_like(gradient), where=unit > 0)
        weight_axes = tuple(range(1, gradient.ndim))  # all axes but that of the runs
        norm = np.sqrt(np.sum(scaled**2, axis=weight_axes, keepdims=True))
        direction = scaled / np.where(norm > 0, norm, 1)
        return weights - step_size * direction, state

    return Optimizer(step, rotation_equivariant=True, steady=True)


def _largest_of_run(magnitude: Array) -> Array:
    """Return the largest entry of each run `(R, 1, ..)` of an array `(R, *shape)`."""
    return np.asarray(magnitude.max(axis=tuple(range(1, magnitude.ndim)), keepdims=True))


def preconditioned(scheme: Any) -> Optimizer:
    """Return the rule `w <- w - a T T' g`, T the map of an affine scheme on `[1 x]`.

    A scheme `z = A x + b` maps `[1 x]` to `[1 z] = [1 x] T` with `T = [[1, b'], [0, A']]`. Weights
    v on z are the weights `w = T v` on x, and gradient descent on v moves w along `-T T' g`. So the
    costs are those of gradient descent on the scheme's points. The bias belongs to T: `A'A` alone
    is right only where the points are centred.

    Args:
        scheme: An affine scikit-learn transformer. It is fitted on the points of the problem before
            the descent, see `Optimizer.scheme`.

    Returns:
        Plain gradient descent (T is the identity), until the engine multiplies its gradients by
        T T' of the fitted scheme.

    References:
        Amari, "Natural gradient works efficiently in learning", Neural Computation 10 (1998).
    """

    def step(weights: Array, gradient: Array, state: State, step_size: Array) -> Update:
        return weights - step_size * gradient, state

    return gradient_descent()._replace(step=step, scheme=scheme)


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
    c = check_option("decrease", decrease, FACTOR)
    s = check_option("shrink", shrink, FACTOR)
    max_trials = int(check_option("trials", trials, WHOLE))

    def step(
        weights: Array,
        gradient: Array,
        state: State,
        step_size: Array,
        problem: Any,
        steps: int,
    ) -> Update:
        costs = problem.evaluate(weights, with_gradient=False).costs
        flat = gradient.reshape(len(gradient), -1)
        squared_norms = np.einsum("rd,rd->r", flat, flat, dtype=np.float64)
        next_weights, t = weights.copy(), step_size.copy()  # t (R, 1, ..): one for each run
        runs = np.arange(len(weights))  # those that have accepted no t yet
        for _ in range(max_trials):
            trial_weights = weights[runs] - t[runs] * gradient[runs]
            bounds = costs[runs] - c * t[runs].ravel() * squared_norms[runs]
            trial_costs = problem.evaluate(trial_weights, with_gradient=False).costs
            accepted = trial_costs <= bounds  # never for a cost that is NaN
            next_weights[runs[accepted]] = trial_weights[accepted]
            runs = runs[~accepted]
            if not len(runs):
                break
            t[runs] *= s
        return next_weights, state

    note = (
        "every line search begins anew at the step size, and not at the last one that it accepted"
    )
    return Optimizer(step, uses_problem=True, rotation_equivariant=True, steady=True, note=note)


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
    r = check_option("ridge", ridge, NONNEGATIVE)

    def step(
        weights: Array,
        gradient: Array,
        state: State,
        step_size: Array,
        problem: Any,
        steps: int,
    ) -> Update:
        directions = np.full(gradient.shape, np.nan)
        for run in range(len(weights)):  # one Hessian (D, D) at a time, to save memory
            hessian = problem.hessian(weights[run]).matrix()
            matrix = hessian + r * np.eye(len(hessian))
            with suppress(np.linalg.LinAlgError):  # a singular matrix
                solution = np.linalg.solve(matrix, gradient[run].reshape(-1))
                directions[run] = solution.reshape(gradient[run].shape)
        # A float32 run is solved in float64, and stays in float32.
        return (weights - step_size * directions).astype(weights.dtype), state

    return Optimizer(step, uses_problem=True, rotation_equivariant=True, curved=True, steady=True)


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
    memory_size = int(check_option("memory", memory, WHOLE))
    max_evaluations = int(check_option("evaluations", evaluations, WHOLE))

    def step(
        weights: Array,
        gradient: Array,
        state: State,
        step_size: Array,
        problem: Any,
        steps: int,
    ) -> Update:
        # The first step finds each run's whole path; the later ones read the weights from it.
        if not state:
            count = min(max_evaluations, steps)
            paths = [_trace_path(start, problem, memory_size, count) for start in weights]
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
    return Optimizer(step, uses_problem=True, rotation_equivariant=True, gridless=True, note=note)


def _trace_path(start: Array, problem: Any, memory: int, max_evaluations: int) -> Array:
    """Return the weights that L-BFGS-B accepted last after each evaluation, `(T, *shape)`.

    T counts the evaluations that were made, the one at the start included.

    Args:
        start: The weights of one run, `(*shape)`, which are the first of the result.
        problem: The problem, of which one run is evaluated at a time.
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
        evaluation = problem.evaluate(shape_weights(flat)[None])
        return float(evaluation.costs[0]), evaluation.gradient.reshape(-1).astype(np.float64)

    def accept(flat: Array) -> None:
        """Replace the last entry of the path by the accepted weights (D,), after an iteration."""
        path[-1] = shape_weights(flat)

    limits = {"maxcor": memory, "maxfun": max_evaluations, "maxiter": max_evaluations}
    no_tolerances = {"ftol": 0.0, "gtol": 0.0}  # it ends where rounding leaves no decrease
    flat_start = start.reshape(-1).astype(np.float64)
    method: Any = {"method": "L-BFGS-B", "jac": True, "callback": accept}
    with np.errstate(all="ignore"):  # at rounding level its last steps overflow
        minimize(evaluate, flat_start, options=limits | no_tolerances, **method)
    return np.array(path)
