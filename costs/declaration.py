"""What a cost declares of itself: the tasks that it fits, and whether each class has a score."""

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def declare(*tasks: str, score_per_class: bool | None = None) -> Callable[[Function], Function]:
    """Return a decorator that writes `tasks` and `score_per_class` on a cost.

    tasks: those of `binary`, `multiclass`, `regression` that the cost is defined for.
    score_per_class: True for C scores a point whatever the task; None for one score a point,
    and C only where there are more than two classes. A cost without a declaration is taken to
    fit every task, with None.
    """

    def write(function: Function) -> Function:
        function.tasks = tasks  # type: ignore[attr-defined]
        function.score_per_class = score_per_class  # type: ignore[attr-defined]
        return function

    return write
