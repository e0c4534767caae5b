"""Equal columns of the points, which a descent multiplies once.

Pixels that are the same in every image, constant features under a scheme that centres them, the
zeros of a sphered rank-deficient data set: features whose columns are equal have one derivative,
and the scores depend only on the sum of their weights.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.normalizers.decomposition import blocks

Array = NDArray[Any]
Indices = NDArray[np.intp]
FIRST_BLOCK_POINTS = 64  # points that tell most columns apart


@dataclass(frozen=True)
class Columns:
    """N features as M <= N distinct columns.

    first: `(M,)`, the index of the first feature of each column. column_of_feature: `(N,)`, the
    index of each feature's column. Weights of features are folded into weights of columns, both
    with the bias first.
    """

    first: Indices
    column_of_feature: Indices

    @cached_property
    def _first_with_bias(self) -> Indices:
        """The indices of the bias and of each column's first feature among the weights."""
        return np.insert(self.first + 1, 0, 0)

    @cached_property
    def _duplicates(self) -> tuple[Indices, Indices, Indices]:
        """The features that repeat an earlier one, as `fold` sums their weights.

        Three arrays: the indices of the duplicates' weights, sorted by column; where the duplicates
        of each column begin in that array; and the indices of these columns among the folded
        weights. The bias has index 0.
        """
        duplicates = np.setdiff1d(np.arange(len(self.column_of_feature)), self.first)
        # By column, as `np.add.reduceat` needs them.
        duplicates = duplicates[np.argsort(self.column_of_feature[duplicates], kind="stable")]
        columns, begin = np.unique(self.column_of_feature[duplicates], return_index=True)
        return duplicates + 1, begin, columns + 1

    @property
    def features(self) -> int:
        """The number of features N."""
        return len(self.column_of_feature)

    def fold(self, weights: Array) -> Array:
        """Return weights `(.., N + 1)` of features as weights `(.., M + 1)` of columns.

        The weight of a column is the sum of the weights of its features.
        """
        folded = weights.take(self._first_with_bias, axis=-1)
        duplicates, begin, columns = self._duplicates
        if len(duplicates):
            duplicate_weights = weights.take(duplicates, axis=-1)
            folded[..., columns] += np.add.reduceat(duplicate_weights, begin, axis=-1)
        return folded

    @cached_property
    def _column_with_bias(self) -> Indices:
        """The column of the bias and of each feature among the folded weights."""
        return np.insert(self.column_of_feature + 1, 0, 0)

    def unfold(self, rows: Array) -> Array:
        """Return derivatives `(.., M + 1)` in columns as those in features, `(.., N + 1)`."""
        return rows.take(self._column_with_bias, axis=-1)

    def spread(self, hessian: Array, classes: int) -> Array:
        """Return second derivatives in weights of columns as those in weights of features.

        Args:
            hessian: `(C (M + 1), C (M + 1))`, the weights of each class together, bias first.
            classes: The number of scores of a point C.

        Returns:
            `(C (N + 1), C (N + 1))`, in the same order.
        """
        width = len(hessian) // classes
        # For each weight of the features, the index of the weight of its column.
        rows = (np.arange(classes)[:, None] * width + self._column_with_bias).ravel()
        return hessian[np.ix_(rows, rows)]


def find_distinct_columns(x: Array) -> Columns:
    """Return the distinct columns of points x (P, N); equal ones agree in every bit.

    Features that are equal on all blocks so far are compared on the next block; where all differ,
    no further block is read.
    """
    features = x.shape[1]
    equal_to = np.zeros(features, dtype=np.intp)  # the first feature that is so far the same
    for block in (slice(0, FIRST_BLOCK_POINTS), *blocks(len(x))):  # a short one first
        # The features that equal another one so far; a key holds that one and the block's bytes.
        shared = np.bincount(equal_to, minlength=features)[equal_to] > 1
        if not shared.any():
            break
        first_of_column: dict[tuple[int, bytes], int] = {}
        for feature, column in zip(np.flatnonzero(shared), x[block][:, shared].T, strict=True):
            key = (int(equal_to[feature]), column.tobytes())
            equal_to[feature] = first_of_column.setdefault(key, int(feature))
    first, column_of_feature = np.unique(equal_to, return_inverse=True)
    return Columns(first, column_of_feature)
