"""Targets as a user has them: which are classes, and which class each label is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, make_dataset
from normbench.datasets.entries import TARGETS, blocks, is_regression, kind_of, kinds, named
from normbench.datasets.values import one_of


def label_dataset(
    name: str, x: Any, y: Any, task: str | None = None, *, y_test: Any = None, **parts: Any
) -> Dataset:
    """Make a data set of targets of any kind: labels are encoded, real targets are kept.

    Args:
        name: What it is called.
        x: Points (P, N).
        y: Labels or numbers (P,), or None.
        task: `classes`, `regression`, or None: whole numbers of up to 20 distinct values, and
            all that are no numbers, are classes.
        y_test: The targets of test points (Q,).
        **parts: The other arguments of `make_dataset`.

    Returns:
        The data set.

    Raises:
        UserError: As `make_dataset` does, and on a missing label, a test label that no training
            point has, and a wrong task.
    """
    if task is not None:
        one_of("dataset.task", task, ("classes", "regression"))
    class_names = None
    if y is not None:
        y, y_test = _labels(name, y, ""), None if y_test is None else _labels(name, y_test, "test ")
        if task == "classes" or (task is None and not is_regression(y)):
            y, class_names = encode(name, y)
            y_test = None if y_test is None else _encode_test(name, y_test, class_names)
    return make_dataset(name, x, y, y_test=y_test, class_names=class_names, **parts)


def encode(name: str, y: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Return labels (P,) as class indices 0..C-1, and the class names in their order.

    Labels are sorted: -1 before +1, false before true, text by its letters. Whole floats are
    named without their fraction. Raises `UserError` on a missing label.
    """
    values, indices = _numbered(_labels(name, y, ""))
    return indices, [named(value) for value in values]


def _numbered(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels, sorted, and the number of each label (P,) among them."""
    try:
        values = kinds(labels)
    except TypeError:  # numbers and text in one column: sorted as text
        labels = np.array([named(label) for label in labels])
        values = kinds(labels)
    indices = np.empty(len(labels), dtype=np.intp)
    for rows in blocks(labels):
        indices[rows] = np.searchsorted(values, labels[rows])
    return values, indices


def _encode_test(name: str, y: NDArray[Any], class_names: list[str]) -> NDArray[np.intp]:
    known = {label: index for index, label in enumerate(class_names)}
    values, numbers = _numbered(y)
    indices = np.array([known.get(named(value), -1) for value in values], dtype=np.intp)[numbers]
    lost = np.flatnonzero(indices < 0)
    if len(lost):
        raise UserError(
            f"data of {name}: the label of test point {lost[0]} (counted from 0) is "
            f"{named(y[lost[0]])!r}, which no training point has (they have "
            f"{', '.join(class_names)}); drop those test points"
        )
    return indices


def _labels(name: str, y: Any, part: str) -> NDArray[Any]:
    """Return targets as an array (P,) without gaps."""
    try:
        labels = np.asarray(y)
    except ValueError as error:  # lists of different lengths
        raise UserError(f"data of {name}: the {part}targets are lists; {TARGETS}") from error
    if kind_of(labels):
        raise UserError(f"data of {name}: the {part}targets are {kind_of(labels)}; {TARGETS}")
    if labels.ndim != 1:
        raise UserError(
            f"data of {name}: the {part}targets have shape {labels.shape}; "
            "it takes one target for each point"
        )
    if labels.dtype.kind == "f":
        gaps = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        import pandas as pd

        gaps = pd.isna(labels)
    else:  # whole numbers, truth values and texts have none
        return labels
    if gaps.any():
        place = int(np.flatnonzero(gaps)[0])
        raise UserError(
            f"data of {name}: the target of {part}point {place} (counted from 0) is "
            f"{'missing' if labels[place] is None else labels[place]} ({gaps.sum()} in all); "
            "leave the points without a target out (dataset.fill=drop does, of csv and parquet)"
        )
    return labels
