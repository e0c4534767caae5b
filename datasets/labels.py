"""Encode targets as users have them: decide whether they are classes, and number the classes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, count_classes, make_dataset
from normbench.datasets.entries import (
    ENCODING_REMEDY,
    convert_targets,
    describe_unfit,
    distinct_labels,
    format_label,
    is_regression,
    label_slices,
)
from normbench.datasets.values import check_choice, check_switch, spell_setting

MERGE_SETTING = "dataset.merge_labels"


def label_dataset(
    name: str,
    x: Any,
    y: Any,
    task: str | None = None,
    *,
    y_test: Any = None,
    merge_labels: bool = False,
    **dataset_fields: Any,
) -> Dataset:
    """Return a data set with targets of any type: labels are encoded, real targets stay real.

    Args:
        name: The name of the data set.
        x: Points (P, N).
        y: Labels or numbers (P,), or None for unlabelled points.
        task: `classes`, `regression`, or None to decide by `is_regression`.
        y_test: Labels or numbers of the test points (Q,); None without a test part, or without
            targets.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class,
            named by the most frequent of them. Without it, a note names such classes.
        **dataset_fields: The other arguments of `make_dataset`; `source` is one that it needs.

    Returns:
        The data set.

    Raises:
        UserError: As in `make_dataset`; and for a missing label, a test label that no training
            point has, and an unknown task.
    """
    if task is not None:
        check_choice("dataset.task", task, ("classes", "regression"))
    check_switch(MERGE_SETTING, merge_labels)
    class_names, has_numbered_classes = None, False
    notes: tuple[str, ...] = ()
    # Targets of test points beside unlabelled training points are refused by `make_dataset`.
    if y is not None:
        y, y_test = (
            _to_labels(name, y, ""),
            None if y_test is None else _to_labels(name, y_test, "test "),
        )
        if task == "classes" or (task is None and not is_regression(y)):
            has_numbered_classes = task is None and y.dtype.kind in "iuf"
            y, class_names = encode_labels(name, y)
            if merge_labels:
                y, class_names = _join_classes(y, class_names, _spell_plainly)
            notes = _spelling_notes(name, y, class_names)
            spell = _spell_plainly if merge_labels else str.strip
            y_test = None if y_test is None else _encode_test(name, y_test, class_names, spell)
    dataset = make_dataset(name, x, y, y_test=y_test, class_names=class_names, **dataset_fields)
    return replace(dataset, notes=notes, has_numbered_classes=has_numbered_classes)


def encode_labels(name: str, y: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Return labels as class indices, and the class names.

    Labels are sorted: -1 before +1, false before true, text alphabetically. Integers stored as
    floats are named without their fraction. Labels that differ by blanks at their ends are one.

    Args:
        name: The name of the data set, which errors mention.
        y: Labels (P,), of any type with an order, or numbers and text together.

    Returns:
        Class indices 0..C-1 (P,), and C class names in their order.

    Raises:
        UserError: For a missing label, and for labels that are dates, lists and the like.
    """
    values, indices = _number_labels(_to_labels(name, y, ""))
    return _join_classes(indices, [format_label(value) for value in values], str.strip)


def _join_classes(
    indices: NDArray[np.intp], class_names: list[str], spell: Callable[[str], str]
) -> tuple[NDArray[np.intp], list[str]]:
    """Return class indices (P,) and class names, with the classes of one spelling joined.

    Args:
        indices: Class indices 0..C-1 (P,).
        class_names: One for each of C classes.
        spell: Returns the spelling of a name, by which classes are joined and sorted.

    Returns:
        The class indices, and the class names: of each spelling the name of most points, without
        blanks at its ends.
    """
    spellings = [spell(name) for name in class_names]
    if spellings == class_names:
        return indices, class_names
    distinct, joined = np.unique(spellings, return_inverse=True)
    # By increasing counts: of each spelling the last name, the most frequent, stays.
    names = {
        joined[index]: class_names[index].strip()
        for index in np.argsort(np.bincount(indices, minlength=len(class_names)), kind="stable")
    }
    return joined[indices], [names[index] for index in range(len(distinct))]


def _spell_plainly(label: str) -> str:
    """Return a label without capitals, a final stop, and blanks at its ends."""
    return label.strip().removesuffix(".").rstrip().casefold()


def _spelling_notes(name: str, y: NDArray[np.intp], class_names: Sequence[str]) -> tuple[str, ...]:
    """Return a note on classes that differ by capitals or a final stop alone, if there are any.

    Args:
        name: The name of the data set.
        y: Class indices (P,).
        class_names: One for each of C classes.
    """
    if len(set(map(_spell_plainly, class_names))) == len(class_names):
        return ()
    classes = count_classes(y, class_names, len(class_names))
    return (
        f"data of {name}: {classes}, some of which differ by capitals or a final stop alone; "
        f"{spell_setting(MERGE_SETTING, True)} joins them",
    )


def _number_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels (C,), sorted, and the index of each label (P,) among them.

    Where labels have no order, they are sorted, and returned, as text.
    """
    try:
        values = distinct_labels(labels)
    except TypeError:  # numbers and text in one column: sorted as text
        labels = np.array([format_label(label) for label in labels])
        values = distinct_labels(labels)
    indices = np.empty(len(labels), dtype=np.intp)
    for rows in label_slices(labels):
        indices[rows] = np.searchsorted(values, labels[rows])
    return values, indices


def _encode_test(
    name: str, y: NDArray[Any], class_names: list[str], spell: Callable[[str], str]
) -> NDArray[np.intp]:
    """Return labels (Q,) of test points as indices (Q,) of the training points' classes.

    Args:
        name: The name of the data set, for the error.
        y: The labels of the test points (Q,).
        class_names: The classes of the training points, in the order of their indices. A label is
            looked up by its text, so that 1 and 1.0 are one class.
        spell: Returns the spelling of a label's text, by which it is looked up.

    Raises:
        UserError: A label is not one of the class names.
    """
    class_indices = {spell(label): index for index, label in enumerate(class_names)}
    values, numbers = _number_labels(y)  # each distinct label is looked up once
    indices = np.array(
        [class_indices.get(spell(format_label(value)), -1) for value in values], dtype=np.intp
    )[numbers]
    unknown_rows = np.flatnonzero(indices < 0)
    if len(unknown_rows):
        label = format_label(y[unknown_rows[0]])
        is_spelled_otherwise = _spell_plainly(label) in map(_spell_plainly, class_names)
        remedy = (
            f"{spell_setting(MERGE_SETTING, True)} joins labels that differ by capitals or a final "
            "stop alone"
            if is_spelled_otherwise
            else "drop those test points"
        )
        raise UserError(
            f"data of {name}: the label of test point {unknown_rows[0]} (counted from 0) is "
            f"{label!r}, which no training point has (they have {', '.join(class_names)}); {remedy}"
        )
    return indices


def _to_labels(name: str, y: Any, prefix: str) -> NDArray[Any]:
    """Return targets of any type as an array (P,), of which none is missing.

    Args:
        name: The name of the data set, for errors.
        y: Labels or numbers (P,), an array or a sequence.
        prefix: `test ` for test points, for errors; empty for training points.

    Raises:
        UserError: A target is missing or not finite, or the targets are dates, lists and the like.
    """
    try:
        labels = convert_targets(y)
    except ValueError as error:  # lists of different lengths
        raise UserError(
            f"data of {name}: the {prefix}targets are lists; {ENCODING_REMEDY}"
        ) from error
    if describe_unfit(labels):
        raise UserError(
            f"data of {name}: the {prefix}targets are {describe_unfit(labels)}; {ENCODING_REMEDY}"
        )
    if labels.ndim != 1:
        raise UserError(
            f"data of {name}: the {prefix}targets have shape {labels.shape}; "
            "it takes one target for each point"
        )
    if labels.dtype.kind == "f":
        gaps = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        import pandas as pd

        gaps = pd.isna(labels)  # None, NaN and pandas' NA
    else:  # whole numbers, truth values and texts have none
        return labels
    if gaps.any():
        row = int(np.flatnonzero(gaps)[0])
        raise UserError(
            f"data of {name}: the target of {prefix}point {row} (counted from 0) is "
            f"{'missing' if labels[row] is None else labels[row]} ({gaps.sum()} in all); "
            "leave the points without a target out (dataset.fill=drop does, of csv and parquet)"
        )
    return labels
