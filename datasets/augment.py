"""Noisy copies of training points: along the principal axes, or alike in all directions."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.dataset import Dataset, part, refuse_from_file
from normbench.datasets.on_disk.content import digest
from normbench.datasets.values import NUMBER, number, one_of, refuse_larger, spelled, whole

KINDS = ("aligned", "round")


def augmented(dataset: Dataset, kind: Any, copies: Any, noise: Any, seed: int) -> Dataset:
    """Return the data set with copies of its training points, each with a draw of its own.

    kind: None for no copies. `aligned` adds to a copy, along each principal axis of the training
    points, noise times the root of its eigenvalue times a standard normal (Krizhevsky, Sutskever,
    Hinton, "ImageNet classification with deep convolutional neural networks", 2012, section 4.1);
    `round` adds noise of the same size, alike in all directions. The points come first, then the
    first copy of each, and so on, with their targets; test points stay as they are. Of a
    cross-validation, the points outside a fold are copied, by the seed that dealt the folds.
    Raises `UserError`.
    """
    copies = whole("dataset.augment_copies", copies, 1)
    noise = number("dataset.augment_noise", noise, above=0)
    if kind is None:
        return dataset
    one_of("dataset.augment", kind, KINDS)
    refuse_from_file(dataset, "dataset.augment", kind)
    x = dataset.x.astype(np.float64)
    refuse_larger(
        spelled("dataset.augment_copies", copies), NUMBER * x.size * (copies + 1), "choose fewer"
    )
    shape = spread(x, kind)
    rng = np.random.default_rng([seed, 2])
    moved = [x + noise * rng.standard_normal(x.shape) @ shape for _ in range(copies)]
    more = np.concatenate([x, *moved]).astype(dataset.x.dtype)
    y = np.tile(dataset.y, copies + 1)
    fingerprint = digest(more, y, dataset.x_test, dataset.y_test)

    def held_out(held: NDArray[np.bool_], repeat: int) -> Dataset:
        return augmented(part(dataset, held), kind, copies, noise, seed + repeat)

    made = replace(dataset, x=more, y=y, fingerprint=fingerprint)
    return replace(made, columns=None, held_out=held_out)


def spread(x: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
    """Return the matrix (N, N) that turns a standard normal into the noise of the points' size."""
    scale = float(np.abs(x).max()) or 1.0  # the squares of large points overflow
    centred = (x - x.mean(axis=0)) / scale
    values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    roots = np.sqrt(np.maximum(values, 0.0))
    if kind == "round":
        return np.asarray(scale * np.sqrt((roots**2).mean()) * np.eye(x.shape[1]))
    return np.asarray(scale * roots[:, None] * vectors.T)
