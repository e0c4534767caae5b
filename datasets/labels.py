"""Encode targets as users have them: decide whether they are classes, and number the classes."""

from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.columns import format_label
from normbench.datasets.dataset import Dataset, UserError, count_classes, make_dataset
from normbench.datasets.values import check_choice, check_switch, spell_setting

MERGE_SETTING = "dataset.merge_labels"
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

    Labels are sorted: -1 before +1, false before true, text alphabetically. Integers stored as
    floats are named without their fraction. Labels that differ by blanks at their ends are one.

    Args:
        name: The name of the data set.
        x: Points (P, N).
        y: Labels or numbers (P,), or None for unlabelled points.
        task: `classes`, `regression`, or None to decide by `is_regression`.
        y_test: Labels or numbers of the test points (Q,); None without a test part, or without
            targets.
        merge_labels: Whether labels that differ by capitals or a final stop alone are one class,
            named by the first of them. Without it, a note names such classes.
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
            names, positions = _find_labels(y)
            spellings = [spell(label) for label in names]
            # Numbers keep their order; words that are spelled otherwise are sorted again.
            classes = spellings if spellings == names else sorted({*spellings})
            numbers = {spelling: number for number, spelling in enumerate(classes)}
            y = np.array([numbers[spelling] for spelling in spellings])[positions]
            class_names = [names[spellings.index(spelling)].strip() for spelling in classes]
            if len(set(map(_spell_plainly, class_names))) < len(class_names):
                notes = (
                    f"data of {name}: {count_classes(y, class_names, len(class_names))}, some of "
                    "which differ by capitals or a final stop alone; "
                    f"{spell_setting(MERGE_SETTING, True)} joins them",
                )
            if y_test is not None:
                labels, positions = _find_labels(y_test)
                unknown = [label for label in labels if spell(label) not in numbers]
                if unknown:
                    raise UserError(
                        f"data of {name}: a test point has the label {unknown[0]!r}, which no "
                        f"training point has (they have {', '.join(class_names)}); drop such points"
                    )
                y_test = np.array([numbers[spell(label)] for label in labels])[positions]
    dataset = make_dataset(name, x, y, y_test=y_test, class_names=class_names, **dataset_fields)
    return replace(dataset, notes=notes, has_numbered_classes=has_numbered_classes)


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


def convert_targets(y: Any) -> NDArray[Any]:
    """Return targets of any type as an array; numbers that are stored as objects become numbers.

    Such are decimals, and the entries of a column of objects. Booleans are no numbers. A masked
    entry is a gap: None, or NaN among numbers.

    Args:
        y: An array or a sequence.
    """
    targets = np.asarray(y)
    if np.ma.is_masked(y):  # `asarray` drops the mask
        targets = targets.astype(object)
        targets[np.ma.getmaskarray(y)] = None
    if targets.dtype.kind != "O" or targets.ndim != 1:
        return targets
    import pandas as pd

    column = pd.Series(targets, dtype=object)
    present = column.dropna()
    are_numbers = (isinstance(e, (Real, Decimal)) and not isinstance(e, bool) for e in present)
    if not len(present) or not all(are_numbers):
        return targets
    return pd.to_numeric(column.where(column.notna(), None), errors="coerce").to_numpy()


def _find_labels(labels: NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the different labels of (P,) as texts, sorted, and the position of each point's."""
    try:
        values = np.unique(labels)
    except TypeError:  # numbers and text in one column: sorted as text
        labels = np.array([format_label(label) for label in labels])
        values = np.unique(labels)
    return [format_label(value) for value in values], np.searchsorted(values, labels)


def _spell_plainly(label: str) -> str:
    """Return a label without capitals, a final stop, and blanks at its ends."""
    return label.strip().removesuffix(".").rstrip().casefold()


def _check_labels(name: str, y: Any, prefix: str) -> NDArray[Any]:
    """Return targets of any type as an array (P,), of which none is missing.

    Args:
        name: The name of the data set, for errors.
        y: Labels or numbers (P,), an array or a sequence.
        prefix: `test ` for test points, for errors; empty for training points.

    Raises:
        UserError: A target is missing or not finite, or the targets are dates, lists and the like.
    """
    labels = convert_targets(y)
    is_gap = ~np.isfinite(labels) if labels.dtype.kind == "f" else np.zeros(labels.shape, bool)
    if labels.dtype.kind == "O":
        import pandas as pd

        is_gap = pd.isna(labels)
    first = next(iter(labels[~is_gap]), 0)
    if labels.dtype.kind in "mMV" or not isinstance(first, (str, bytes, Real, Decimal, np.bool_)):
        raise UserError(
            f"data of {name}: the {prefix}targets are of type {type(first).__name__}; it takes "
            "numbers or words: encode them as such, or choose another target"
        )
    if is_gap.any():
        row = int(np.argmax(is_gap))
        raise UserError(
            f"data of {name}: the target of {prefix}point {row} (counted from 0) is "
            f"{'missing' if labels.dtype.kind == 'O' else labels[row]} ({is_gap.sum()} in all); "
            "leave the points without a target out (dataset.fill=drop does, of csv and parquet)"
        )
    return labels
