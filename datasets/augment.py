"""Augment training points with noisy copies, along the principal axes or in all directions."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, hold_out, require_dense_points
from normbench.datasets.on_disk.content import digest
from normbench.datasets.values import (
    FLOAT64_BYTES,
    check_choice,
    check_integer,
    check_number,
    refuse_larger,
    spell_setting,
)

NOISE_SHAPES = ("aligned", "round")


def add_noisy_copies(
    dataset: Dataset, noise_shape: Any, copies: Any, noise: Any, seed: int
) -> Dataset:
    """Return the data set with noisy copies of its training points, each copy drawn independently.

    The points come first, then the first copy of each point, and so on, with their targets; test
    points stay unchanged. A cross-validation copies the points outside a fold, with the seed that
    assigned the folds.

    Args:
        dataset: A data set in memory.
        noise_shape: None for no copies. `aligned` adds to a copy, along each principal axis of the
            training points, noise times the root of its eigenvalue times a standard normal; `round`
            adds noise of the same total variance, equal in all directions.
        copies: The number of copies of each point.
        noise: The size of the noise, relative to the standard deviation along each principal axis.
        seed: The seed of the generator.

    Returns:
        The data set, with (copies + 1) P training points; unchanged without copies.

    Raises:
        UserError: An option is out of its range, or the copies exceed the memory.

    References:
        Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
        networks", 2012, section 4.1.
    """
    # Checked without copies, too: a mistyped value is an error whether or not it has an effect.
    copies = check_integer("dataset.augment_copies", copies, 1)
    noise = check_number("dataset.augment_noise", noise, above=0)
    if noise_shape is None:
        return dataset
    check_choice("dataset.augment", noise_shape, NOISE_SHAPES)
    require_dense_points(dataset, "dataset.augment", noise_shape)
    x = dataset.x.astype(np.float64)
    refuse_larger(
        spell_setting("dataset.augment_copies", copies),
        FLOAT64_BYTES * x.size * (copies + 1),
        "choose fewer",
    )
    noise_factor = factor_noise(x, noise_shape)
    rng = np.random.default_rng([seed, 2])  # 2: other draws from this seed have other numbers
    noisy_copies = [x + noise * rng.standard_normal(x.shape) @ noise_factor for _ in range(copies)]
    x_augmented = np.concatenate([x, *noisy_copies]).astype(dataset.x.dtype)
    y = np.tile(dataset.y, copies + 1)
    fingerprint = digest(x_augmented, y, dataset.x_test, dataset.y_test)

    def hold_out_and_redraw(test_mask: NDArray[np.bool_], repeat: int) -> Dataset:
        """Return the data set for `Dataset.hold_out_and_redraw`.

        Starts from the points without copies, so that no copy of a held-out point is trained on.

        Args:
            test_mask: Which of the P points without copies to hold out, (P,).
            repeat: The index of the cross-validation, which is added to the seed.
        """
        return add_noisy_copies(
            hold_out(dataset, test_mask), noise_shape, copies, noise, seed + repeat
        )

    augmented_dataset = replace(dataset, x=x_augmented, y=y, fingerprint=fingerprint)
    # The table has no rows for the copies, so that it no longer describes the points.
    return replace(augmented_dataset, columns=None, hold_out_and_redraw=hold_out_and_redraw)


def factor_noise(x: NDArray[np.float64], noise_shape: str) -> NDArray[np.float64]:
    """Return the matrix F (N, N) that turns standard normal rows e into noise `e F`.

    Args:
        x: Points (P, N).
        noise_shape: With `aligned` the noise has the covariance of the points; with `round` it has
            the same total variance, equal in all directions: F is a multiple of the identity.
    """
    # Unscaled, squares of large points overflow; 1 where all entries are 0.
    scale = float(np.abs(x).max()) or 1.0
    centred = (x - x.mean(axis=0)) / scale
    eigenvalues, eigenvectors = np.linalg.eigh(centred.T @ centred / len(x))
    deviations = np.sqrt(np.maximum(eigenvalues, 0.0))  # rounding can make an eigenvalue negative
    if noise_shape == "round":
        return np.asarray(scale * np.sqrt((deviations**2).mean()) * np.eye(x.shape[1]))
    # The symmetric root of the covariance, which the signs of the eigenvectors do not change: these
    # differ between processors.
    return np.asarray(scale * (eigenvectors * deviations) @ eigenvectors.T)
