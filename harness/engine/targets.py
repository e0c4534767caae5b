"""Encode the targets of a data set as its cost takes them."""

from typing import Any

from numpy.typing import NDArray

from normbench.costs.declaration import Traits, traits
from normbench.datasets import Dataset, UserError
from normbench.optimizers import Optimizer

Array = NDArray[Any]
# What an error message proposes, by the task of the data set.
REMEDIES = {
    "binary": "cost=softmax or cost=multiclass_softmax",
    "multiclass": "cost=multiclass_softmax",
    "regression": "cost=least_squares",
    "unlabelled": "a data set with targets (of a file of yours: set dataset.target), or, without a "
    "descent, iterations=0 'record=[points]'",
}


def check_cost(cost: Any, data: Dataset) -> None:
    """Raise `UserError` for a cost that is for other targets than those of a data set."""
    tasks, task, classes = traits(cost).tasks, data.task, data.classes
    if task in tasks:
        return
    remedy = REMEDIES[task]
    # The data or the cost are of regression, not both: the task may have been inferred wrongly.
    if task == "regression" or (classes and tasks == ("regression",)):
        other_task = "classes" if task == "regression" else "regression"
        remedy += f" (or, where a file's targets are meant so, dataset.task={other_task})"
    # Fewer points than features: the columns of the file may be the points.
    points, features = data.x.shape
    if data.read_from_rows and points < features:
        remedy += f"; {data.name} has {points} points of {features} features: of a csv file with "
        remedy += "one point per column, dataset.points_in=columns"
    targets = f"{task}, {classes} classes" if classes else task
    raise UserError(
        f"cost={getattr(cost, '__name__', cost)}: does not fit the targets of {data.name} "
        f"({targets}); it is for {' and '.join(tasks)} targets; use {remedy}"
    )


def check_curvature(cost: Any, optimizer: Optimizer) -> None:
    """Raise `UserError` where an optimizer divides by the second derivatives and all are 0."""
    if optimizer.curved and traits(cost).piecewise == "linear":
        raise UserError(
            f"cost={getattr(cost, '__name__', cost)}: is made of linear pieces, whose second "
            "derivatives are 0, and the optimizer (such as newton) divides by them; "
            "use optimizer=gradient_descent or another cost, such as cost=softmax"
        )


def scores_of(traits: Traits, classes: int) -> int:
    """Return the number C of scores of a point that a cost takes.

    Args:
        traits: The traits that the cost declares.
        classes: The number of classes; 0 for real targets.

    Returns:
        `classes`, where the cost takes a score for each of them; otherwise 1. A cost that takes
        either (`score_per_class` is None) gets a score for each class from three classes on.
    """
    per_class = traits.score_per_class
    if classes and (per_class or (per_class is None and classes > 2)):
        return classes
    return 1


def encode_targets(y: Array, scores: int, classes: int, dtype: Any) -> Array:
    """Return targets as costs take them.

    Args:
        y: Class indices, or real targets, (P,).
        scores: The number of scores of a point C.
        classes: The number of classes; 0 for real targets.
        dtype: The type of the points.

    Returns:
        (P,): real targets as they are; class indices where each class has a score; otherwise -1 for
        class 0 and +1 for class 1.
    """
    if not classes:
        return y.astype(dtype)
    return y if scores > 1 else (2 * y - 1).astype(dtype)
