"""Outliers among the training points: single cells, or whole points."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, hold_out, require_dense_points
from normbench.datasets.on_disk.content import LARGEST_ENTRY, digest
from normbench.datasets.values import (
    FLOAT64_BYTES,
    UserError,
    check_choice,
    check_number,
    refuse_larger,
    spell_setting,
)

OUTLIERS = ("cells", "points")
OUTLIER_ARRAYS = 6  # of the size of the points, in memory at the same time


def with_outliers(dataset: Dataset, unit: Any, share: Any, size: Any, seed: int) -> Dataset:
    """Return the data set with outliers among its training points; test points stay unchanged.

    A cell becomes `x + size s e`, with the standard deviation s of its feature and its own standard
    normal e.

    Args:
        dataset: A data set in memory.
        unit: None for no outliers; `cells` draws single entries of the points, `points` whole rows.
        share: The share of the cells, or of the points, that is drawn, without replacement.
        size: The size of outliers, in standard deviations of the feature.
        seed: The seed of the draw. In a cross-validation the points outside a fold get outliers, by
            the seed that assigned the folds.

    Returns:
        The data set with outliers, without the table of its columns; unchanged without outliers.

    Raises:
        UserError: A setting is out of its range, a cell would overflow, or no cell would be drawn.
    """
    # Checked without outliers, too: a mistyped value is an error whether or not it has an effect.
    share = check_number("dataset.outlier_share", share, above=0, at_most=1)
    size = check_number("dataset.outlier_size", size, above=0)
    if unit is None:
        return dataset
    check_choice("dataset.outliers", unit, OUTLIERS)
    require_dense_points(dataset, "dataset.outliers", unit)
    refuse_larger(
        spell_setting("dataset.outliers", unit),
        OUTLIER_ARRAYS * FLOAT64_BYTES * dataset.x.size,
        "choose fewer points (dataset.points), or leave it out",
    )
    x = dataset.x.astype(np.float64)
    rng = np.random.default_rng([seed, 3])  # 3: other draws from this seed have other numbers
    drawn = np.zeros(x.shape, bool)
    # A view of the mask, whose rows are what is drawn: single cells, or whole points.
    rows = drawn.reshape(-1, 1) if unit == "cells" else drawn
    _refuse_none(dataset, unit, share, len(rows))
    rows[rng.permutation(len(rows))[: round(share * len(rows))]] = True
    with np.errstate(over="ignore", invalid="ignore"):
        moved = x + size * x.std(axis=0) * rng.standard_normal(x.shape)
        changed = np.where(drawn, moved, x)
    # An outlier must stay finite in the type of the points, and so must its square.
    largest = min(LARGEST_ENTRY, np.float64(np.finfo(dataset.x.dtype).max))
    if not (np.abs(changed) <= largest).all():
        raise UserError(
            f"{spell_setting('dataset.outlier_size', size)}: makes cells of {dataset.name} larger "
            f"than {largest:.0e}; choose a smaller size"
        )
    changed = changed.astype(dataset.x.dtype)
    fingerprint = digest(changed, dataset.y, dataset.x_test, dataset.y_test)

    def hold_out_and_redraw(test_mask: NDArray[np.bool_], repeat: int) -> Dataset:
        """Return the data set for `Dataset.hold_out_and_redraw`.

        Starts from the points without outliers, so that held-out points have none.

        Args:
            test_mask: Which points to hold out (P,).
            repeat: The index of the cross-validation, which is added to the seed.
        """
        return with_outliers(hold_out(dataset, test_mask), unit, share, size, seed + repeat)

    # The table no longer describes the points, whose cells have changed.
    contaminated = replace(dataset, x=changed, fingerprint=fingerprint)
    return replace(contaminated, columns=None, hold_out_and_redraw=hold_out_and_redraw)


def _refuse_none(dataset: Dataset, unit: str, share: float, count: int) -> None:
    """Raise `UserError` if a share of the cells or points rounds to no outlier.

    In a cross-validation only the cells or points outside the largest fold count.

    Args:
        dataset: The data set.
        unit: `cells` or `points`.
        share: The share of them that becomes outliers.
        count: The number of cells or points in the data set.
    """
    where = f"of {dataset.name}"
    if dataset.folds:
        held_out = max(int(np.bincount(numbers).max()) for numbers in dataset.folds)
        units_per_point = count // len(dataset.x)  # N cells, or 1 point
        count = units_per_point * (len(dataset.x) - held_out)
        where += " outside a fold"
    if round(share * count) == 0:
        raise UserError(
            f"{spell_setting('dataset.outlier_share', share)}: is less than half of one of the "
            f"{count} {unit} {where}, so there would be no outlier; choose {1 / count:.2g} or more"
        )
