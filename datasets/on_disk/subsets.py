"""Draw fewer points of a data set, and assign its folds, class by class."""

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, hold_out, require_dense_points
from normbench.datasets.on_disk.content import digest
from normbench.datasets.on_disk.points import select_rows
from normbench.datasets.values import (
    FLOAT64_BYTES,
    UserError,
    check_choice,
    check_integer,
    refuse_larger,
    spell_setting,
)

if TYPE_CHECKING:
    from normbench.datasets.columns import Columns

MAX_DESCENTS = 100_000  # of a cross-validation, as many as jobs of a sweep
FIT_ON_CHOICES = ("train", "all")


def draw_subset(dataset: Dataset, points: Any, seed: int) -> Dataset:
    """Return the data set with some of its training points, drawn class by class.

    Points are drawn without replacement and stay in their order. The number of points of a class
    differs from its share by less than one point. A test part stays as it is.

    Args:
        dataset: Any data set.
        points: How many training points to draw; None for all.
        seed: The seed of the generator that draws them.

    Returns:
        The data set with fewer points.

    Raises:
        UserError: For a number out of range, or where a class would be left without a point.
    """
    if points is None:
        return dataset
    count = check_integer("dataset.points", points, 2, len(dataset.x))
    rows = _order_by_class(dataset, seed)
    # Along an order by class, equally spaced positions from a random start give each class its
    # share of the points. The 1 makes the start independent of other draws from this seed.
    offset = np.random.default_rng([seed, 1]).random()
    positions = (offset + np.arange(count)) * len(rows) / count
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[rows[positions.astype(int)]] = True
    # A class that had no point before is not lost.
    present_classes = _count_classes(dataset, slice(None)) > 0
    lost_classes = np.flatnonzero(present_classes & (_count_classes(dataset, chosen) == 0))
    if len(lost_classes):
        name = dataset.class_names[lost_classes[0]]
        raise UserError(
            f"{spell_setting('dataset.points', points)}: leaves no point of class {name} of "
            f"{dataset.name}; choose more points"
        )
    names, columns = dataset.feature_names, dataset.columns
    if columns is not None:
        # Medians and categories are those of the points drawn.
        columns = columns.select_rows(np.flatnonzero(chosen))
        x, names = columns.encode_features(np.ones(count, dtype=bool))
    else:
        x = select_rows(dataset.x, chosen)
    # Unlabelled points have an empty y, to which no mask fits.
    y = dataset.y[chosen] if len(dataset.y) else dataset.y
    fingerprint = digest(x, y, dataset.x_test, dataset.y_test)
    return replace(dataset, x=x, y=y, feature_names=names, columns=columns, fingerprint=fingerprint)


def assign_folds(dataset: Dataset, folds: Any, repeats: Any, seed: int) -> Dataset:
    """Return the data set with repeated cross-validations, their seeds counted from `seed` on.

    Each cross-validation assigns the points to folds, class by class: the sizes of two folds differ
    by one point at most, and so do their numbers of points of each class.

    Args:
        dataset: A data set in memory, without a test part.
        folds: How many folds each cross-validation has; None for no cross-validation.
        repeats: How many cross-validations there are.
        seed: The seed of the first one; each further one has the next seed.

    Returns:
        The data set with `folds`.

    Raises:
        UserError: For a number out of range, a test part, a class of a single point, points that
            are not in memory, or too many descents.
    """
    # Checked without folds, too: a mistyped value is an error whether or not it has an effect.
    repeats = check_integer("dataset.repeats", repeats, 1)
    if folds is None:
        return dataset
    require_dense_points(dataset, "dataset.folds", folds)
    if len(dataset.x_test):
        raise UserError(
            f"{spell_setting('dataset.folds', folds)}: {dataset.name} has a test part of "
            f"{len(dataset.x_test)} points, and cross-validation holds points out by "
            "itself; leave one of them out"
        )
    count = check_integer("dataset.folds", folds, 2, len(dataset.x) // 2)
    sizes = _count_classes(dataset, slice(None))
    if (sizes == 1).any():
        name = dataset.class_names[int(np.flatnonzero(sizes == 1)[0])]
        raise UserError(
            f"{spell_setting('dataset.folds', folds)}: class {name} of {dataset.name} has a single "
            "point, which is held out or trained on; take the class out"
        )
    if count * repeats > MAX_DESCENTS:
        raise UserError(
            f"{spell_setting('dataset.repeats', repeats)}: with "
            f"{spell_setting('dataset.folds', count)} makes {count * repeats:,} descents a scheme, "
            f"and {MAX_DESCENTS:,} may be; choose {MAX_DESCENTS // count} or less"
        )
    refuse_larger(
        spell_setting("dataset.repeats", repeats),
        FLOAT64_BYTES * len(dataset.x) * repeats,
        "choose fewer",
    )
    # Along an order by class, folds are dealt in turn: the point at position i gets the fold
    # i modulo `count`. The argsort of an order is the position of each point in it.
    orders = [_order_by_class(dataset, seed + repeat) for repeat in range(repeats)]
    return replace(dataset, folds=tuple(np.argsort(order) % count for order in orders))


def hold_out_fold(dataset: Dataset, repeat: int, number: int) -> Dataset:
    """Return the data set with one fold of one of its cross-validations as its test part.

    Noisy copies and outliers of the other points are drawn anew.

    Args:
        dataset: A data set with `folds`.
        repeat: The index of the cross-validation.
        number: The index of the fold.

    Returns:
        The data set with a test part.
    """
    test_mask = dataset.folds[repeat] == number
    # `hold_out_and_redraw` is None without noisy copies and outliers.
    return (
        dataset.hold_out_and_redraw(test_mask, repeat)
        if dataset.hold_out_and_redraw
        else hold_out(dataset, test_mask)
    )


def fingerprint_folds(dataset: Dataset, columns: "Columns | None") -> Dataset:
    """Return the data set with a fingerprint that covers the table of its features, too.

    With folds, the features are computed again from the table for each fold, with other medians and
    categories, so that the points alone do not determine the points of the folds. A data set
    without folds or without a table is returned unchanged.

    Args:
        dataset: The data set, whose `columns` outliers and noisy copies may have removed.
        columns: The table before outliers and noisy copies; None without one.
    """
    if not dataset.folds or columns is None:
        return dataset
    from pandas.util import hash_pandas_object

    rows = hash_pandas_object(columns.frame, index=False).to_numpy()
    table = f"{dataset.fingerprint} {sorted(columns.encoded)} {columns.fill}".encode()
    return replace(dataset, fingerprint=sha256(table + rows.tobytes()).hexdigest())


def set_fit_points(dataset: Dataset, fit_on: Any) -> Dataset:
    """Return the data set with a choice of the points from which schemes learn their statistics.

    Args:
        dataset: Any data set.
        fit_on: `train`, or `all` for training and test points.

    Returns:
        The data set with `fit_on`.

    Raises:
        UserError: For another word; for `all` without test points or folds, or where the points are
            on disk or sparse.
    """
    check_choice("dataset.fit_on", fit_on, FIT_ON_CHOICES)
    if fit_on == "all" and not len(dataset.x_test) and not dataset.folds:
        raise UserError(
            f"{spell_setting('dataset.fit_on', fit_on)}: {dataset.name} has no test points to "
            f"learn statistics of; set {spell_setting('dataset.test_fraction')} or "
            f"{spell_setting('dataset.folds')}"
        )
    if fit_on == "all":
        require_dense_points(dataset, "dataset.fit_on", fit_on, with_test=True)
    return replace(dataset, fit_on=fit_on)


def _count_classes(dataset: Dataset, rows: Any) -> NDArray[np.intp]:
    """Return the number of points of each class (C,) among some rows; empty without classes.

    Args:
        dataset: The data set.
        rows: A slice, a mask (P,) or indices of the training points.
    """
    if not dataset.classes:
        return np.empty(0, dtype=np.intp)
    return np.bincount(dataset.y[rows], minlength=dataset.classes)


def _order_by_class(dataset: Dataset, seed: int) -> NDArray[np.intp]:
    """Return the indices of the points (P,), class after class, each class in a random order.

    Without classes all points are in one random order.

    Args:
        dataset: The data set.
        seed: The seed of the random order.
    """
    shuffled = np.random.default_rng(seed).permutation(len(dataset.x))
    groups = dataset.y[shuffled] if dataset.classes else np.zeros(len(shuffled))
    # A stable sort keeps the random order within a class.
    return shuffled[np.argsort(groups, kind="stable")]
