"""The sides: ours, the textbook's loop, PyTorch and JAX.

Each is a function of one piece of work that returns costs (R, K + 1) and misclassifications
(R, K + 1): K steps of full-batch gradient descent of multiclass or two-class softmax from given
weights, costs and counts of step 0 to K.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.engine.descent import descend
from normbench.engine.smaller import smaller_problem
from normbench.optimizers import gradient_descent
from tests import door

Array = NDArray[Any]
Histories = tuple[Array, Array]


@dataclass(frozen=True)
class Work:
    """Points (P, N), targets (P,) (class indices, or -1/+1 where C = 1), start (R, C, N + 1)."""

    x: Array
    y: Array
    start: Array
    step_sizes: Array
    iterations: int

    @property
    def classes(self) -> int:
        """The scores a point, C."""
        return int(self.start.shape[1])


def ours(work: Work) -> Callable[[], Histories]:
    """Return the descent as a job makes it, on the equal smaller problem where there is one."""
    cost = softmax if work.classes == 1 else multiclass_softmax
    train = door.problem(cost, work.x, work.y, True, 0.0, work.classes)
    rule = gradient_descent()
    descended = smaller_problem(train, None, work.start, rule, door.plan(1000), len(work.start))

    def run() -> Histories:
        plan = door.plan(work.iterations)
        start, sizes = descended.start, work.step_sizes
        histories = descend(descended.train, None, rule, start, sizes, plan)
        assert histories.misclassifications is not None
        return histories.cost, histories.misclassifications

    return run


def textbook(work: Work) -> Histories:
    """Descend as the textbook does.

    One step size at a time, autograd on the whole cost, counts afterwards from the history of the
    weights. The weights are of float64 even where the points are not, as the textbook draws them.
    """
    import autograd.numpy as anp
    from autograd import value_and_grad

    x, y, classes = work.x, work.y, work.classes
    rows = np.arange(len(x))

    def model(w: Any) -> Any:
        return w[0] + anp.dot(x, w[1:])

    def cost(w: Any) -> Any:
        if classes == 1:
            return anp.sum(anp.log(1 + anp.exp(-y[:, None] * model(w)))) / len(x)
        scores = model(w)
        return anp.sum(anp.log(anp.sum(anp.exp(scores), axis=1)) - scores[rows, y]) / len(x)

    def count(w: Any) -> int:
        scores = model(w)
        if classes == 1:
            return int(np.count_nonzero(np.sign(scores[:, 0]) != y))
        return int(np.count_nonzero(np.argmax(scores, axis=1) != y))

    descent = value_and_grad(cost)
    costs, counts = [], []
    for start, step_size in zip(work.start, work.step_sizes, strict=True):
        w = np.ascontiguousarray(start.T).astype(np.float64)
        weights, values = [], []
        for _ in range(work.iterations):
            value, gradient = descent(w)
            weights.append(w)
            values.append(value)
            w = w - step_size * gradient
        weights.append(w)
        values.append(cost(w))
        costs.append(values)
        counts.append([count(w) for w in weights])
    return np.array(costs), np.array(counts)


def pytorch(work: Work) -> Callable[[], Histories]:
    """Return the descent in PyTorch, batched over the grid; data is converted beforehand."""
    import torch

    x, y = torch.from_numpy(work.x), torch.from_numpy(work.y)
    start = torch.from_numpy(np.ascontiguousarray(work.start))
    steps = torch.from_numpy(work.step_sizes.astype(work.x.dtype))[:, None, None]
    target = y.expand(len(start), -1)

    def evaluate(w: Any) -> tuple[Any, Any]:
        scores = torch.matmul(w[:, :, 1:].reshape(-1, w.shape[2] - 1), x.T)
        scores = scores.reshape(len(w), w.shape[1], -1) + w[:, :, :1]
        loss = torch.nn.functional.cross_entropy(scores, target, reduction="none").mean(dim=1)
        return loss, (scores.argmax(dim=1) != y).sum(dim=1)

    def run() -> Histories:
        w = start.clone().requires_grad_()
        costs, counts = [], []
        for _ in range(work.iterations):
            loss, wrong = evaluate(w)
            (gradient,) = torch.autograd.grad(loss.sum(), w)
            costs.append(loss.detach())
            counts.append(wrong)
            with torch.no_grad():
                w = (w - steps * gradient).requires_grad_()
        with torch.no_grad():
            loss, wrong = evaluate(w)
        return (
            torch.stack([*costs, loss], dim=1).numpy(),
            torch.stack([*counts, wrong], dim=1).numpy(),
        )

    return run


def jax(work: Work) -> Callable[[], Histories]:
    """Return the descent in JAX, batched over the grid, jit and scan; compiled beforehand."""
    import jax as library
    import jax.numpy as jnp

    library.config.update("jax_enable_x64", True)
    x, y = jnp.asarray(work.x), jnp.asarray(work.y)
    start = jnp.asarray(work.start)
    steps = jnp.asarray(work.step_sizes.astype(work.x.dtype))[:, None, None]

    def evaluate(w: Any) -> tuple[Any, Any]:
        scores = (w[:, :, 1:].reshape(-1, w.shape[2] - 1) @ x.T).reshape(*w.shape[:2], -1)
        scores = scores + w[:, :, :1]
        own = jnp.take_along_axis(scores, y[None, None, :], axis=1)[:, 0]
        loss = jnp.mean(library.nn.logsumexp(scores, axis=1) - own, axis=1)
        wrong = jnp.sum(jnp.argmax(scores, axis=1) != y, axis=1)
        return jnp.sum(loss), (loss, wrong)

    def step(w: Any, _: Any) -> tuple[Any, Any]:
        gradient, told = library.grad(evaluate, has_aux=True)(w)
        return w - steps * gradient, told

    @library.jit
    def descent(w: Any) -> Any:
        w, (costs, counts) = library.lax.scan(step, w, None, length=work.iterations)
        _, (cost, count) = evaluate(w)
        return jnp.vstack([costs, cost[None]]).T, jnp.vstack([counts, count[None]]).T

    def run() -> Histories:
        costs, counts = descent(start)
        return np.asarray(costs), np.asarray(counts)

    return run


def our_squares(
    x: Array, y: Array, start: Array, step_sizes: Array, iterations: int
) -> Callable[[], Array]:
    """Return costs (R, K + 1) of least squares, the equal smaller problem made each time."""
    train, rule = door.problem(least_squares, x, y, False), gradient_descent()

    def run() -> Array:
        plan = door.plan(iterations)
        descended = smaller_problem(train, None, start, rule, plan, len(start))
        return descend(descended.train, None, rule, descended.start, step_sizes, plan).cost

    return run


def jax_squares(
    x: Array, y: Array, start: Array, step_sizes: Array, iterations: int
) -> Callable[[], Array]:
    """Return costs (R, K + 1) of least squares in JAX, batched over the grid, jit and scan."""
    import jax as library
    import jax.numpy as jnp

    library.config.update("jax_enable_x64", True)
    points, targets, first = jnp.asarray(x), jnp.asarray(y), jnp.asarray(start[:, 0])
    steps = jnp.asarray(step_sizes)[:, None]

    def evaluate(w: Any) -> tuple[Any, Any]:
        residuals = w[:, 1:] @ points.T + w[:, :1] - targets
        loss = jnp.mean(residuals**2, axis=1)
        return jnp.sum(loss), loss

    def step(w: Any, _: Any) -> tuple[Any, Any]:
        gradient, loss = library.grad(evaluate, has_aux=True)(w)
        return w - steps * gradient, loss

    @library.jit
    def descent(w: Any) -> Any:
        w, losses = library.lax.scan(step, w, None, length=iterations)
        return jnp.vstack([losses, evaluate(w)[1][None]]).T

    return lambda: np.asarray(descent(first))
