"""Fewer points of a data set, and its folds: parts that are drawn class by class."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, part, refuse_from_file
from normbench.datasets.on_disk.content import digest
from normbench.datasets.on_disk.taken import taken
from normbench.datasets.values import NUMBER, UserError, one_of, refuse_larger, spelled, whole

MOST_DESCENTS = 100_000  # of a cross-validation, as many as jobs of a sweep
FIT_ON = ("train", "all")


def subset(dataset: Dataset, points: Any, seed: int) -> Dataset:
    """Return the data set with so many of its training points, None for all; the rest is gone.

    Drawn without replacement, by a generator of its own seed, so that the classes keep their shares
    to one point; in their order. A test part stays. Raises `UserError`.
    """
    if points is None:
        return dataset
    count = whole("dataset.points", points, 2, len(dataset.x))
    rows = _class_by_class(dataset, seed)
    first = np.random.default_rng([seed, 1]).random()
    places = (first + np.arange(count)) * len(rows) / count
    kept = np.zeros(len(rows), dtype=bool)
    kept[rows[places.astype(int)]] = True
    present = _sizes(dataset, slice(None)) > 0
    lost = np.flatnonzero(present & (_sizes(dataset, kept) == 0))
    if len(lost):
        name = dataset.class_names[lost[0]]
        raise UserError(
            f"{spelled('dataset.points', points)}: leaves no point of class {name} of "
            f"{dataset.name}; choose more points"
        )
    names, columns = dataset.feature_names, dataset.columns
    if columns is not None:
        columns = columns.only(np.flatnonzero(kept))
        x, names = columns.numbers(np.ones(count, dtype=bool))
    else:
        x = taken(dataset.x, kept)
    y = dataset.y[kept] if len(dataset.y) else dataset.y
    fingerprint = digest(x, y, dataset.x_test, dataset.y_test)
    return replace(dataset, x=x, y=y, feature_names=names, columns=columns, fingerprint=fingerprint)


def folded(dataset: Dataset, folds: Any, repeats: Any, seed: int) -> Dataset:
    """Return the data set with so many cross-validations, of the seeds from `seed` on.

    folds: k, None for no cross-validation. Each deals the points to k folds, class by class, so
    that two folds differ by one point at most, and by one of each class. Raises `UserError`.
    """
    repeats = whole("dataset.repeats", repeats, 1)
    if folds is None:
        return dataset
    refuse_from_file(dataset, "dataset.folds", folds)
    if len(dataset.x_test):
        raise UserError(
            f"{spelled('dataset.folds', folds)}: {dataset.name} has a test part of "
            f"{len(dataset.x_test)} points, and cross-validation holds points out by "
            "itself; leave one of them out"
        )
    count = whole("dataset.folds", folds, 2, len(dataset.x) // 2)
    sizes = _sizes(dataset, slice(None))
    if (sizes == 1).any():
        name = dataset.class_names[int(np.flatnonzero(sizes == 1)[0])]
        raise UserError(
            f"{spelled('dataset.folds', folds)}: class {name} of {dataset.name} has a single "
            "point, which is held out or trained on; take the class out"
        )
    if count * repeats > MOST_DESCENTS:
        raise UserError(
            f"{spelled('dataset.repeats', repeats)}: with {spelled('dataset.folds', count)} makes "
            f"{count * repeats:,} descents a scheme, and {MOST_DESCENTS:,} may be; choose "
            f"{MOST_DESCENTS // count} or less"
        )
    refuse_larger(
        spelled("dataset.repeats", repeats),
        NUMBER * len(dataset.x) * repeats,
        "choose fewer",
    )
    orders = [_class_by_class(dataset, seed + more) for more in range(repeats)]
    return replace(dataset, folds=tuple(np.argsort(order) % count for order in orders))


def fold(dataset: Dataset, repeat: int, number: int) -> Dataset:
    """Return the data set with one fold of one of its cross-validations as its test part."""
    held = dataset.folds[repeat] == number
    return dataset.held_out(held, repeat) if dataset.held_out else part(dataset, held)


def fitted_on(dataset: Dataset, fit_on: Any) -> Dataset:
    """Return the data set with the schemes' statistics of its `train` points or of `all`."""
    one_of("dataset.fit_on", fit_on, FIT_ON)
    if fit_on == "all" and not len(dataset.x_test) and not dataset.folds:
        raise UserError(
            f"{spelled('dataset.fit_on', fit_on)}: {dataset.name} has no test points to learn "
            f"statistics of; set {spelled('dataset.test_fraction')} or {spelled('dataset.folds')}"
        )
    if fit_on == "all":
        refuse_from_file(dataset, "dataset.fit_on", fit_on)
    return replace(dataset, fit_on=fit_on)


def _sizes(dataset: Dataset, rows: Any) -> NDArray[np.intp]:
    """Return how many of some points each class has (C,); empty without classes."""
    if not dataset.classes:
        return np.empty(0, dtype=np.intp)
    return np.bincount(dataset.y[rows], minlength=dataset.classes)


def _class_by_class(dataset: Dataset, seed: int) -> NDArray[np.intp]:
    """Return the numbers of the points (P,): class after class, each in a random order."""
    shuffled = np.random.default_rng(seed).permutation(len(dataset.x))
    groups = dataset.y[shuffled] if dataset.classes else np.zeros(len(shuffled))
    return shuffled[np.argsort(groups, kind="stable")]
