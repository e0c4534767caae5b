"""The contracts of the groups of choices: what a `_target_` may be, and what it returns."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

MODEL_METHODS = ("layout", "start", "forward", "needs_all_points")


@dataclass(frozen=True)
class GroupContract:
    """The contract of a group: what its `_target_` may be, and what calling it must return.

    A cost is not called: it is the function itself.

    Attributes:
        rule: The rule in words.
        example: A valid `_target_`.
        accepts_target: Whether an object may be a `_target_`.
        accepts_result: Whether an object may be the result of calling it.
    """

    rule: str
    example: str
    accepts_target: Callable[[Any], bool]
    accepts_result: Callable[[Any], bool]


def _is_cost(candidate: Any) -> bool:
    """Return whether an object is a function that can be called with scores and targets."""
    # Calling a class would make an object, and a cost must return numbers.
    if isinstance(candidate, type) or not callable(candidate):
        return False
    try:
        inspect.signature(candidate).bind("scores", "targets")  # any two positional arguments
    except TypeError:
        return False
    except ValueError:  # a function in C has no signature
        return True
    return True


def is_transformer(candidate: Any) -> bool:
    """Return whether an object, or a class, has the methods of a scheme: `fit`, `transform`."""
    return callable(getattr(candidate, "fit", None)) and callable(
        getattr(candidate, "transform", None)
    )


def _makes_a_scheme(candidate: Any) -> bool:
    """Return whether calling an object may return a scheme.

    A class must have a scheme's methods; what a function returns shows only when it is called.
    """
    return is_transformer(candidate) if isinstance(candidate, type) else callable(candidate)


def _is_dataset(candidate: Any) -> bool:
    """Return whether an object is a data set."""
    from normbench.datasets.dataset import Dataset  # late: it loads NumPy

    return isinstance(candidate, Dataset)


def _is_optimizer(candidate: Any) -> bool:
    """Return whether an object is an optimizer."""
    from normbench.optimizers import Optimizer  # late: it loads NumPy

    return isinstance(candidate, Optimizer)


def _is_model(candidate: Any) -> bool:
    """Return whether an object has the methods of a model; None stands for the linear model."""
    has_methods = all(map(partial(hasattr, candidate), MODEL_METHODS))
    return candidate is None or (has_methods and not isinstance(candidate, type))


GROUP_CONTRACTS = {
    "cost": GroupContract(
        "cost: a function of scores and targets", "normbench.costs.softmax", _is_cost, _is_cost
    ),
    "dataset": GroupContract(
        "loader: a function that gives a data set, as normbench.datasets.make_dataset makes it",
        "normbench.datasets.files.csv",
        callable,
        _is_dataset,
    ),
    "normalizer": GroupContract(
        "scheme: a class with fit and transform, or a function that gives one, "
        "such as sklearn.preprocessing.StandardScaler",
        "sklearn.preprocessing.StandardScaler",
        _makes_a_scheme,
        lambda result: is_transformer(result) and not isinstance(result, type),
    ),
    "model": GroupContract(
        "model: a class or a function that gives one, as normbench.models.Mlp does",
        "normbench.models.Mlp",
        callable,
        _is_model,
    ),
    "optimizer": GroupContract(
        "function that gives a normbench.optimizers.Optimizer",
        "normbench.optimizers.momentum",
        callable,
        _is_optimizer,
    ),
}
