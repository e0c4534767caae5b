"""Fit schemes on memory maps, by blocks: means, extremes, quantiles, moments."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, RobustScaler
from sklearn.utils import check_random_state, get_tags, resample

from normbench.datasets.on_disk.points import Array, iterate_blocks, take_rows, transform_rows
from normbench.datasets.values import FLOAT64_BYTES, UserError, available_bytes, refuse_larger
from normbench.normalizers.decomposition import Decompositions
from normbench.normalizers.on_columns import OnColumns
from normbench.normalizers.rotation import RandomRotation

COLUMNS_SHARE = 1 / 8  # of the free memory, for some columns of all points


def fit_by_blocks(scheme: Any, x: Array, decompositions: Decompositions) -> None:
    """Fit a scheme in place on points of which one block is in memory at a time.

    Each statistic takes one pass over the points. A scheme that needs all points at once gets them,
    where they fit in memory.

    Args:
        scheme: The normalizer.
        x: Points (P, N).
        decompositions: The decompositions of x, for schemes with a method `learn`.

    Raises:
        UserError: The scheme needs more points at once than fit in memory.
    """
    if isinstance(scheme, Pipeline):
        _learn_chain(scheme, x)
    elif isinstance(scheme, OnColumns):
        _learn_selected(scheme, x)
    elif hasattr(scheme, "learn"):
        scheme.learn(decompositions)
    elif isinstance(scheme, RandomRotation) or (
        hasattr(scheme, "__sklearn_tags__") and not get_tags(scheme).requires_fit
    ):
        # Such a scheme learns the number of features alone: two points are enough.
        scheme.fit(_as_float64(x[:2]))
    elif hasattr(scheme, "partial_fit"):
        # `fit` forgets what a fitted scheme has learned, such as the points of another fold.
        for block, rows in iterate_blocks(x):
            (scheme.partial_fit if block.start else scheme.fit)(_as_float64(rows))
    elif type(scheme) is RobustScaler:  # a subclass may need whole points
        _learn_by_columns(scheme, x)
    elif isinstance(scheme, QuantileTransformer) and (scheme.subsample or len(x)) < len(x):
        # The sample that scikit-learn would draw, in the order of the file; without `subsample`, or
        # with fewer points, it learns from all of them, below.
        rng = check_random_state(scheme.random_state)
        indices = np.arange(len(x))
        rows = resample(indices, replace=False, n_samples=scheme.subsample, random_state=rng)
        scheme.fit(_as_float64(take_rows(x, np.sort(rows))))
    else:
        name = type(scheme).__name__
        refuse_larger(
            f"normalizer {name}, which learns from all points at once",
            2 * FLOAT64_BYTES * x.size,  # the points, and what the scheme computes of them
            "choose a scheme that learns by blocks, such as standard, robust or pca_sphere, or "
            "fewer points (dataset.points)",
        )
        scheme.fit(_as_float64(x[:]))


def _learn_chain(chain: Pipeline, x: Array) -> None:
    """Fit the steps of a pipeline in order, each on points x (P, N) under the steps before it."""
    for _, link in chain.steps:
        if link in (None, "passthrough"):  # such a step leaves the points unchanged
            continue
        fit_by_blocks(link, x, Decompositions(x))
        if link is not chain.steps[-1][1]:
            x = _write_float64(x, link.transform)


def _learn_selected(scheme: OnColumns, x: Array) -> None:
    """Fit a scheme that is on some columns on those columns of points x (P, N)."""
    scheme.select(x)
    if len(scheme.positions_):  # of no columns nothing is learned
        selected = _write_float64(x, lambda rows: rows[:, scheme.positions_])
        fit_by_blocks(scheme.scheme, selected, Decompositions(selected))
    # The width of the scheme's output, from one point.
    scheme.note_width(_as_float64(x[:1]))


def _write_float64(x: Array, transform: Callable[[Array], Array]) -> Array:
    """Return a memory map, in float64, of what a function makes of rows of points x (P, N)."""
    width = transform(_as_float64(x[:1])).shape[1]
    return transform_rows(x, lambda rows: transform(_as_float64(rows)), width)


def _learn_by_columns(scheme: RobustScaler, x: Array) -> None:
    """Fit a scheme of quantiles, which needs whole columns, on points x (P, N).

    Each pass over the points takes as many columns as fit in `COLUMNS_SHARE` of the memory. A copy
    of the scheme is fitted on these columns; the scheme gets the centres and scales of all copies.
    `UserError` is raised where not even one column fits.
    """
    points, features = x.shape
    # Twice: the columns, and the scheme's copy of them.
    columns_per_pass = int(COLUMNS_SHARE * available_bytes() / (2 * FLOAT64_BYTES * points))
    if columns_per_pass < 1:
        raise UserError(
            f"normalizer {type(scheme).__name__}: sorts a column of {points} points at a time, "
            "which does not fit in the memory; set memory higher, or choose another scheme"
        )
    column_schemes = []
    for first in range(0, features, columns_per_pass):
        columns = np.empty((points, min(columns_per_pass, features - first)))
        for block, rows in iterate_blocks(x):
            columns[block] = rows[:, first : first + columns_per_pass]
        column_schemes.append(clone(scheme).fit(columns))
    for name in ("center_", "scale_"):  # None in all schemes where the option is off
        attributes = [getattr(column_scheme, name) for column_scheme in column_schemes]
        setattr(scheme, name, None if attributes[0] is None else np.concatenate(attributes))
    scheme.n_features_in_ = features


def _as_float64(rows: Array) -> Array:
    """Return rows as float64."""
    return np.asarray(rows, dtype=np.float64)
