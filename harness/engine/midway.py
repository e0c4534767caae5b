"""Where a descent is on its way: arrays from which it goes on with the very same numbers."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from normbench.engine.problem import Array, Evaluation, Problem, Workspace

T = TypeVar("T")


class Checkpoint(Protocol):
    """What keeps a long descent now and then; the engine knows no more of it.

    spent: the seconds that the descent had taken where it goes on.
    """

    spent: float

    def due(self) -> bool:
        """Return whether it is time to save."""

    def save(self, parts: Mapping[str, Array]) -> None:
        """Keep these arrays in place of those before."""

    def resume(self, read: Callable[[Mapping[str, Array]], T]) -> T | None:
        """Return what `read` makes of the arrays that are kept.

        None where there are none, or where `read` refuses them by a ValueError or a KeyError.
        """


class Midway(NamedTuple):
    """What a descent has before it evaluates iteration k.

    alive: `(left,)`, the numbers of the runs that are left; weights: theirs, `(left, *shape)`;
    state: the step rule's.
    """

    k: int
    alive: NDArray[np.int64]
    weights: Array
    state: tuple[Array, ...]


class Growing:
    """What is known of R runs while they descend.

    cost, misclassifications: each `(R, K + 1)` or None, of the training and of the test points.
    diverged_at: `(R,)`. final: the last finite weights, `(R, *shape)`.
    """

    def __init__(self, train: Problem, test: Problem | None, start: Array, last: int) -> None:
        def empty(wanted: bool) -> NDArray[np.float64] | None:
            return np.full((len(start), last + 1), np.nan) if wanted else None

        self.problems = (train, test)
        self.train = (empty(True), empty(train.classify))
        self.test = (empty(test is not None), empty(test is not None and train.classify))
        self.diverged_at = np.full(len(start), -1)
        self.final = start.copy()
        self.last = last
        self.memory: Workspace = {}  # of the test points' evaluation

    def write(self, k: int, alive: NDArray[np.int64], here: Evaluation, weights: Array) -> None:
        """Write iteration k of the runs that are left: what their training points gave."""
        self.final[alive] = weights
        test = self.problems[1]
        there = test.evaluate(weights, False, self.memory) if test and len(alive) else None
        for histories, part in ((self.train, here), (self.test, there)):
            if part is None:
                continue
            for history, values in zip(histories, (part.costs, part.misclassifications)):
                if history is not None:
                    history[alive, k] = values

    def parts(self, now: Midway) -> dict[str, Array]:
        """Return all that the descent goes on from, however much of iteration k is written."""
        return {
            "problems": np.array(self._problems),
            "iteration": np.array(now.k),
            "diverged_at": np.where(self.diverged_at < now.k, self.diverged_at, -1),
            "final": self.final,
            "weights": now.weights,
            **{name: history[:, : now.k] for name, history in self._histories()},
            **{f"state/{number}": part for number, part in enumerate(now.state)},
        }

    def read(self, parts: Mapping[str, Array]) -> Midway:
        """Take over what `parts` has returned; return where the descent goes on.

        Raises ValueError or KeyError, with nothing taken over, for those of another descent.
        """
        k, ended = int(parts["iteration"]), parts["diverged_at"]
        _check("problems", str(parts["problems"]) == self._problems)
        _check("iteration", 0 < k <= self.last)
        _alike("diverged_at", ended, self.diverged_at)
        _check("diverged_at", bool(np.all((ended >= -1) & (ended < k))))
        alive = np.flatnonzero(ended == -1)
        _check("diverged_at", len(alive) > 0)
        _alike("final", parts["final"], self.final)
        _alike("weights", parts["weights"], self.final[alive])
        count = sum(name.startswith("state/") for name in parts)
        state = tuple(parts[f"state/{number}"] for number in range(count))
        for part in state:
            _check("state", part.dtype.kind in "biuf" and part.shape[:1] == alive.shape)
        for name, history in self._histories():
            _alike(name, parts[name], history[:, :k])
        left = {name: parts[name][alive] for name, _ in self._histories()}
        left |= {"final": parts["final"], "weights": parts["weights"]}
        left |= {f"state/{number}": part for number, part in enumerate(state)}
        for name, part in left.items():  # of runs that are left: a descent retires the others
            _check(name, bool(np.isfinite(part).all()))
        for name, history in self._histories():
            history[:, :k] = parts[name]
        self.diverged_at, self.final = ended.copy(), parts["final"].copy()
        return Midway(k, alive, parts["weights"], state)

    @property
    def _problems(self) -> str:
        """Name what is descended: the weights of one mean nothing to another."""
        return " ".join(type(_innermost(problem)).__name__ for problem in self.problems)

    def _histories(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        for number, history in enumerate((*self.train, *self.test)):
            if history is not None:
                yield f"history/{number}", history


def _innermost(problem: Any) -> Any:
    """Return what a Problem wraps at last: wrappers change rounding alone."""
    while hasattr(problem, "inner"):
        problem = problem.inner
    return problem


def _check(name: str, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{name} is not that of this descent")


def _alike(name: str, found: Array, wanted: Array) -> None:
    _check(name, found.shape == wanted.shape and found.dtype == wanted.dtype)
