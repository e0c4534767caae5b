"""The sides: ours, the textbook's loop, PyTorch, JAX, and the two products alone.

Each is a function of one piece of work that returns costs (R, K + 1) and misclassifications
(R, K + 1): K steps of full-batch gradient descent of multiclass or two-class softmax from given
weights, costs and counts of step 0 to K.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.engine.descent import descend
from normbench.engine.fast import packed, products
from normbench.engine.fast.blocked import Blocked
from normbench.engine.fast.wrappers import drop_last_class, merge, pack, with_packed_points
from normbench.engine.problem import Problem
from normbench.engine.scheme.applying import normalize
from normbench.optimizers import gradient_descent
from normbench.route import fastest_route

Array = NDArray[Any]
Histories = tuple[Array, Array]


@dataclass(frozen=True)
class Work:
    """Points (P, N), targets (P,) (class indices, or -1/+1 where C = 1), start (R, C, N + 1).

    squares: the cost is least squares, of real targets; else the softmax cost.
    """

    x: Array
    y: Array
    start: Array
    step_sizes: Array
    iterations: int
    squares: bool = False

    @property
    def classes(self) -> int:
        """The scores a point, C."""
        return int(self.start.shape[1])


def ours(work: Work) -> Callable[[], Histories]:
    """Return the descent as a job makes it; equal columns are merged and points packed before."""
    train = _packed(drop_last_class(merge(_objective(work))), work)
    return lambda: _descend(train, work)


def unmerged(work: Work) -> Callable[[], Histories]:
    """Return the descent that multiplies every column: what a step costs over its products."""
    train = _packed(drop_last_class(_objective(work)), work)
    return lambda: _descend(train, work)


def unpacked(work: Work) -> Callable[[], Histories]:
    """Return the descent that multiplies every column by numpy's own library."""
    train = drop_last_class(_objective(work))
    return lambda: _descend(train, work)


def always_packed(work: Work) -> Callable[[], Histories]:
    """Return the descent that multiplies every column of packed points, on any processor."""
    with patch.object(packed, "is_used", packed.is_installed):
        train = _packed(drop_last_class(_objective(work)), work)
    return lambda: _descend(train, work)


def every_row(work: Work) -> Callable[[], Histories]:
    """Return the descent that multiplies every column and every class's weights."""
    train = _packed(_objective(work), work)
    return lambda: _descend(train, work)


def wrapped(work: Work, words: str) -> Callable[[], Histories]:
    """Return the descent by these wrappers alone: under (of standard), columns, fewer, packed."""
    problem = _objective(work)
    if "under" in words:
        problem = problem.on(_standardized(work), 0.0)
    problem = merge(problem) if "columns" in words else problem
    problem = drop_last_class(problem) if "fewer" in words else problem
    train = with_packed_points(problem, len(work.start)) if "packed" in words else problem
    return lambda: _descend(train, work)


def unwrapped(work: Work, words: str) -> Callable[[], Histories]:
    """Return the same descent by no wrapper, on a copy of the points under a scheme."""
    problem = _objective(work)
    train = problem.on(_standardized(work)[:], 0.0) if "under" in words else problem
    return lambda: _descend(train, work)


def _standardized(work: Work) -> Any:
    return normalize(StandardScaler(), work.x, work.x[:0], work.x.dtype, fold=True)[0]


def packing(work: Work) -> Callable[[], None]:
    """Return the packing of the points for such a descent, as many times as it has steps."""
    train = drop_last_class(_objective(work))

    def run() -> None:
        with patch.object(packed, "is_used", packed.is_installed):
            for _ in range(work.iterations):
                _packed(train, work)

    return run


def short_cut(work: Work) -> Callable[[], Histories]:
    """Return the descent as a job makes it, with what it makes beforehand in the time."""

    def run() -> Histories:
        train, start = _objective(work), work.start[:1]
        size = (len(work.start), work.iterations)
        route = fastest_route("fast", train, None, start, gradient_descent(), size)
        assert type(route.train) is not Blocked or route.train.shape != train.shape
        inner = replace(work, start=np.repeat(route.start, len(work.start), axis=0))
        return _descend(route.train, inner)

    return run


def at_once(work: Work) -> Callable[[], Histories]:
    """Return `unpacked` with each block's points multiplied at once, not piece by piece."""
    run = unpacked(work)

    def whole() -> Histories:
        with patch.object(products, "_has_small_kernels", lambda: False):
            return run()

    return whole


def _objective(work: Work) -> Blocked:
    cost = softmax if work.classes == 1 else multiclass_softmax
    if work.squares:
        cost = least_squares
    return Blocked(cost, work.x, work.y, not work.squares, 0.0, work.classes)


def _packed(train: Blocked, work: Work) -> Blocked:
    """Return the problem as a descent of many steps has it, where the library for it is there."""
    return pack(train, len(work.start), steps=1000)


def _descend(train: Problem, work: Work) -> Histories:
    found = descend(train, None, gradient_descent(), work.start, work.step_sizes, work.iterations)
    counts = found.misclassifications
    return found.cost, np.zeros(found.cost.shape) if counts is None else counts


def floor(work: Work, without: int = 0) -> Callable[[], None]:
    """Return the floor: the two products of each step alone, and the last step's first.

    without: how many of the classes are not multiplied.
    """
    rows = work.start[:, : work.classes - without, 1:]
    weights = np.ascontiguousarray(rows.reshape(-1, rows.shape[2]))
    scores = np.empty((len(weights), len(work.x)), dtype=work.x.dtype)
    gradient = np.empty_like(weights)

    def run() -> None:
        for _ in range(work.iterations):
            np.matmul(weights, work.x.T, out=scores)
            np.matmul(scores, work.x, out=gradient)
        np.matmul(weights, work.x.T, out=scores)

    return run


def textbook(work: Work, careful: bool = False) -> Histories:
    """Descend as the textbook does.

    One step size at a time, autograd on the whole cost, counts afterwards from the history of the
    weights. The weights are of float64 even where the points are not, as the textbook draws them;
    `careful` casts them.
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
        w = np.ascontiguousarray(start.T).astype(x.dtype if careful else np.float64)
        weights, values = [], []
        for _ in range(work.iterations):
            value, gradient = descent(w)
            weights.append(w)
            values.append(value)
            w = w - w.dtype.type(step_size) * gradient
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
        if work.squares:
            loss = jnp.mean((scores[:, 0] - y) ** 2, axis=1)
            return jnp.sum(loss), (loss, jnp.zeros(len(w)))
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
