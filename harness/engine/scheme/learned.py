"""Fit schemes on points that are read by blocks: means, extremes, quantiles, moments."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, RobustScaler
from sklearn.utils import check_random_state, get_tags, resample

from normbench.datasets.on_disk.points import Array, Points, Rows, rows_per_block
from normbench.datasets.values import FLOAT64_BYTES, UserError, available_bytes, refuse_larger
from normbench.normalizers.decomposition import Decompositions, blocks
from normbench.normalizers.on_columns import OnColumns
from normbench.normalizers.rotation import RandomRotation

COLUMNS_SHARE = 1 / 8  # of the free memory, for some columns of all points


def learn(scheme: Any, x: Rows, decompositions: Decompositions) -> None:
    """Fit a scheme on points x (P, N), one block of which is in memory at a time.

    One pass for each statistic. A scheme that needs all points at once gets them, where they fit in
    memory; raises `UserError` where they do not.
    """
    if isinstance(scheme, Pipeline):
        _learn_chain(scheme, x)
    elif isinstance(scheme, OnColumns):
        _learn_selected(scheme, x)
    elif hasattr(scheme, "learn"):
        scheme.learn(decompositions)
    elif isinstance(scheme, RandomRotation) or not get_tags(scheme).requires_fit:
        # Such a scheme learns the number of features alone: two points are enough.
        scheme.fit(_float64(x[:2]))
    elif hasattr(scheme, "partial_fit"):
        for block in blocks(len(x), rows_per_block(x)):
            scheme.partial_fit(_float64(x[block]))
    elif type(scheme) is RobustScaler:
        _learn_by_columns(scheme, x)
    elif isinstance(scheme, QuantileTransformer) and scheme.subsample < len(x):
        # The sample that scikit-learn would draw, in the order of the file.
        rng = check_random_state(scheme.random_state)
        rows = resample(
            np.arange(len(x)), replace=False, n_samples=scheme.subsample, random_state=rng
        )
        scheme.fit(_float64(x[np.sort(rows)]))
    else:
        name = type(scheme).__name__
        refuse_larger(
            f"normalizer {name}, which learns from all points at once",
            2 * FLOAT64_BYTES * x.size,
            "choose a scheme that learns by blocks, such as standard, robust or pca_sphere, or "
            "fewer points (dataset.points)",
        )
        scheme.fit(_float64(x[:]))


def _learn_chain(chain: Pipeline, x: Rows) -> None:
    """Fit the links of a pipeline in order, each on the output of the ones before it."""
    points = x
    for _, link in chain.steps:
        if link in (None, "passthrough"):
            continue
        learn(link, points, Decompositions(points))
        points = _Linked(points, link)


def _learn_selected(scheme: OnColumns, x: Rows) -> None:
    """Fit a scheme on the features that it gets."""
    scheme.select(x)
    if len(scheme.positions_):
        selected = _Selected(x, scheme.positions_)
        learn(scheme.scheme, selected, Decompositions(selected))
    scheme.note_width(_float64(x[:1]))


class _Selected(Points):
    """Some features of points (P, N), `(P, n)`."""

    def __init__(self, x: Rows, positions: NDArray[np.intp]) -> None:
        self.x, self.positions = x, positions
        self.shape, self.dtype = (len(x), len(positions)), np.dtype(np.float64)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1`."""
        return _float64(self.x[first:last])[:, self.positions]


class _Linked(Points):
    """Points (P, M) as a link of a pipeline returns them."""

    def __init__(self, x: Rows, link: Any) -> None:
        self.x, self.link = x, link
        width = link.transform(_float64(x[:1])).shape[1]
        self.shape, self.dtype = (len(x), width), np.dtype(np.float64)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows `first` to `last - 1`."""
        return np.asarray(self.link.transform(_float64(self.x[first:last])))


def _learn_by_columns(scheme: RobustScaler, x: Rows) -> None:
    """Fit a scheme of quantiles, in a pass for as many columns as fit in a share of the memory."""
    points, features = x.shape
    count = int(COLUMNS_SHARE * available_bytes() / (2 * FLOAT64_BYTES * points))
    if count < 1:
        raise UserError(
            f"normalizer {type(scheme).__name__}: sorts a column of {points} points at a time, "
            "which does not fit in the memory; set memory higher, or choose another scheme"
        )
    column_schemes = []
    for first in range(0, features, count):
        columns = np.empty((points, min(count, features - first)))
        for block in blocks(points, rows_per_block(x)):
            columns[block] = x[block][:, first : first + count]
        column_schemes.append(clone(scheme).fit(columns))
    for name in ("center_", "scale_"):
        attributes = [getattr(column_scheme, name) for column_scheme in column_schemes]
        setattr(scheme, name, None if attributes[0] is None else np.concatenate(attributes))
    scheme.n_features_in_ = features


def _float64(rows: Array) -> Array:
    """Return rows as float64."""
    return np.asarray(rows, dtype=np.float64)
