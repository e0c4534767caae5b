"""Encode targets as users have them: decide whether they are classes, and number the classes."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, UserError, count_classes, make_dataset
from normbench.datasets.entries import convert_targets, format_label
from normbench.datasets.values import check_choice, check_switch, spell_setting

MERGE_SETTING = "dataset.merge_labels"
ENCODING = "it takes numbers or words: encode them as such, or choose another target"
MOST_NUMBERED_CLASSES = 20  # targets of more distinct numbers are real targets


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
        y = _check_labels(name, y, "")
        y_test = None if y_test is None else _check_labels(name, y_test, "test ")
        if task == "classes" or (task is None and not is_regression(y)):
            has_numbered_classes = task is None and y.dtype.kind in "iuf"
            spell = _spell_plainly if merge_labels else str.strip
            y, class_names = _number_classes(y, spell)
            if len(set(map(_spell_plainly, class_names))) < len(class_names):
                notes = (
                    f"data of {name}: {count_classes(y, class_names, len(class_names))}, some of "
                    "which differ by capitals or a final stop alone; "
                    f"{spell_setting(MERGE_SETTING, True)} joins them",
                )
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
    return _number_classes(_check_labels(name, y, ""), str.strip)


def is_regression(y: NDArray[Any]) -> bool:
    """Return whether targets (P,) are real: numbers with a fraction, or with many values.

    Many are more than `MOST_NUMBERED_CLASSES`, and half as many as points unless they are two.
    Otherwise the targets are labels of classes, as text and booleans are.
    """
    if y.dtype.kind not in "iuf":  # integers and floats
        return False
    values = np.unique(y)
    count = len(values)
    has_fractions = bool((values != np.round(values)).any())
    return has_fractions or count > MOST_NUMBERED_CLASSES or (count > 2 and 2 * count >= len(y))


def _number_classes(
    labels: NDArray[Any], spell: Callable[[str], str]
) -> tuple[NDArray[np.intp], list[str]]:
    """Return labels (P,) as class indices (P,), and the C class names.

    Args:
        labels: The labels, none missing.
        spell: Returns the spelling of a label's text: labels of one spelling are one class, named
            as most points have it. Where it changes a label, classes are sorted by it.
    """
    try:
        values = np.unique(labels)
    except TypeError:  # numbers and text in one column: sorted as text
        labels = np.array([format_label(label) for label in labels])
        values = np.unique(labels)
    indices = np.searchsorted(values, labels)
    names = [format_label(value) for value in values]
    spellings = [spell(name) for name in names]
    classes = spellings if spellings == names else sorted(set(spellings))
    # By increasing counts: of each spelling the last name, the most frequent, stays.
    order = np.argsort(np.bincount(indices), kind="stable")
    name_of_spelling = {spellings[index]: names[index].strip() for index in order}
    numbers = {spelling: number for number, spelling in enumerate(classes)}
    class_of_value = np.array([numbers[spelling] for spelling in spellings], dtype=np.intp)
    return class_of_value[indices], [name_of_spelling[spelling] for spelling in classes]


def _spell_plainly(label: str) -> str:
    """Return a label without capitals, a final stop, and blanks at its ends."""
    return label.strip().removesuffix(".").rstrip().casefold()


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
    numbers = {spell(label): index for index, label in enumerate(class_names)}
    indices = np.array([numbers.get(spell(format_label(label)), -1) for label in y], dtype=np.intp)
    unknown_rows = np.flatnonzero(indices < 0)
    if len(unknown_rows):
        row = unknown_rows[0]
        raise UserError(
            f"data of {name}: the label of test point {row} (counted from 0) is "
            f"{format_label(y[row])!r}, which no training point has (they have "
            f"{', '.join(class_names)}); drop such points, or if labels differ by capitals alone, "
            f"{spell_setting(MERGE_SETTING, True)} joins them"
        )
    return indices


def _check_labels(name: str, y: Any, prefix: str) -> NDArray[Any]:
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
        raise UserError(f"data of {name}: the {prefix}targets are lists; {ENCODING}") from error
    is_gap, entries = np.zeros(labels.shape, bool), labels.ravel()[:1]
    if labels.dtype.kind == "O":
        import pandas as pd

        is_gap = pd.isna(labels)
        entries = labels[~is_gap]
    elif labels.dtype.kind == "f":
        is_gap = ~np.isfinite(labels)
    usable = (str, bytes, Real, Decimal, np.bool_)
    is_span = (isinstance(entry, np.timedelta64) for entry in entries)  # an integer to Python
    odd = next((e for e, span in zip(entries, is_span) if span or not isinstance(e, usable)), None)
    if odd is not None:
        kind = type(odd).__name__
        raise UserError(f"data of {name}: the {prefix}targets are of type {kind}; {ENCODING}")
    if labels.ndim != 1:
        raise UserError(
            f"data of {name}: the {prefix}targets have shape {labels.shape}; "
            "it takes one target for each point"
        )
    if is_gap.any():
        row = int(np.flatnonzero(is_gap)[0])
        raise UserError(
            f"data of {name}: the target of {prefix}point {row} (counted from 0) is "
            f"{'missing' if labels.dtype.kind == 'O' else labels[row]} ({is_gap.sum()} in all); "
            "leave the points without a target out (dataset.fill=drop does, of csv and parquet)"
        )
    return labels
