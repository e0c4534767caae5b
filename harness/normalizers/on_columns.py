"""A scheme on some features; the others pass through."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from normbench.normalizers.affine import (
    Affine,
    AffineTraits,
    find_affine_map,
    find_affine_traits,
)
from normbench.normalizers.schemes import POINT_DTYPES

NOT_NUMBERS = "gives points that are not numbers"


def name_scheme(scheme: Any) -> str:
    """Return the class name of a scheme for error messages; of `OnColumns`, the scheme's inside."""
    return type(scheme.scheme if isinstance(scheme, OnColumns) else scheme).__name__


def describe_fault(output: Any, points: int) -> str | None:
    """Return what is wrong with a scheme's output for so many points; None for rows of numbers.

    Objects pass: only a conversion tells whether they are numbers.
    """
    if hasattr(output, "toarray"):
        return "gives sparse points; set its option for dense ones (often sparse_output=False)"
    shape = np.shape(output)
    if len(shape) != 2 or shape[0] != points or shape[1] < 1:
        return (
            f"gives shape {shape} for {points} points; a scheme gives one row of one number or "
            "more a point"
        )
    if np.asarray(output).dtype.kind not in "biufO":  # text, dates, complex numbers
        return NOT_NUMBERS
    return None


class FeatureSelection:
    """Columns as a user names them, and their positions among the features of a data set.

    `select` sets the positions before a scheme is fitted. A selection is called with points (P, N),
    as a `ColumnTransformer` calls its columns, and returns the positions.

    Args:
        columns: The columns as the user wrote them.
        setting: The name of the setting that has them.
    """

    def __init__(self, columns: Any, setting: str = "normalizer.columns") -> None:
        self.columns, self.setting = columns, setting
        self.positions: tuple[int, ...] = ()
        self.feature_names: tuple[str, ...] = ()

    def select(self, positions: Sequence[int], feature_names: tuple[str, ...]) -> None:
        """Select features by their positions among all features of a data set.

        Args:
            positions: The positions of the selected features, from 0.
            feature_names: The N names of all features.
        """
        self.positions, self.feature_names = tuple(positions), feature_names

    def reselect(self, feature_names: tuple[str, ...]) -> None:
        """Select the features of the same names again, among other features than before.

        Features of one name are told apart by their order.

        Args:
            feature_names: The names of all features that the points have now; a selected feature
                that is no longer among them is left out.
        """
        numbered_names = _number_names(self.feature_names)
        selected_names = {numbered_names[position] for position in self.positions}
        positions = [
            n for n, name in enumerate(_number_names(feature_names)) if name in selected_names
        ]
        self.select(positions, feature_names)

    def __call__(self, X: Any) -> list[int]:
        """Return the positions of the selected features of points X (P, N).

        Raises:
            ValueError: X has another number of features than those selected from, as behind another
                scheme of a chain.
        """
        if X.shape[1] != len(self.feature_names):
            raise ValueError(
                f"its columns are of {len(self.feature_names)} features, and it gets {X.shape[1]}; "
                "put it first in a chain, and set no columns around it"
            )
        return list(self.positions)

    def __repr__(self) -> str:
        return f"{self.columns!r} at {self.positions}"


def _number_names(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return each name with the number of equal names before it."""
    counters: defaultdict[str, count[int]] = defaultdict(count)
    return [(name, next(counters[name])) for name in names]


def _has_inverse(scheme: "OnColumns") -> bool:
    """Return whether the scheme on the selected features can be inverted."""
    return hasattr(scheme.scheme, "inverse_transform")


class OnColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scheme on some features; the others pass through, and each feature stays in its place.

    A scheme that gives another number of features than it gets puts its own first, and the others
    after them.

    Args:
        scheme: The scheme, a transformer, which is fitted in place.
        columns: A function of points (P, N) that returns the positions of the scheme's features,
            such as a `FeatureSelection`.

    Attributes:
        positions_: The positions of the features that the scheme gets, `(n,)`.
        passed_: The positions of the other features, `(N - n,)`.
        width_: The number of features that the scheme gives, without the others.
    """

    def __init__(self, scheme: Any, columns: Any) -> None:
        self.scheme = scheme
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the scheme on its features; the others pass unchanged.

        Args:
            X: Points (P, N), all features.
            y: Not used.

        Returns:
            This transformer.
        """
        X = validate_data(self, X, dtype=POINT_DTYPES)
        self.select(X)
        if len(self.positions_):
            self.scheme.fit(X[:, self.positions_])
        return self.note_width(X[:1])

    def select(self, X: Any) -> None:
        """Set `positions_` and `passed_`: which features of points X (P, N) the scheme gets."""
        self.n_features_in_ = X.shape[1]
        self.positions_ = np.array(self.columns(X), dtype=np.intp)
        self.passed_ = np.setdiff1d(np.arange(X.shape[1]), self.positions_)

    def note_width(self, X: Any) -> Self:
        """Set `width_` by transforming one point X (1, N) with the fitted scheme; return self."""
        self.width_ = self._transform_selected(X).shape[1]
        return self

    @property
    def keeps_places(self) -> bool:
        """Whether each feature stays in its place: the scheme gives as many features as it gets."""
        return self.width_ == len(self.positions_)

    @property
    def _order(self) -> NDArray[np.intp]:
        """The order of the output's features `(M,)`, among the scheme's and then the others."""
        places = np.r_[self.positions_, self.passed_]
        return (
            np.argsort(places) if self.keeps_places else np.arange(self.width_ + len(self.passed_))
        )

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) with the scheme on its features, `(P, M)`."""
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        # A scheme may turn float32 into float64.
        together = np.hstack([self._transform_selected(X), X[:, self.passed_]])
        return np.asarray(together.take(self._order, axis=1))

    def _transform_selected(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the features that the scheme gives for points X (P, N), `(P, width)`.

        Raises:
            ValueError: The scheme gives anything but one row of numbers a point.
        """
        selected = X[:, self.positions_]
        if not selected.shape[1]:  # the scheme was not fitted
            return selected
        z = self.scheme.transform(selected)
        if fault := describe_fault(z, len(X)):
            raise ValueError(fault)
        return np.asarray(z)

    @available_if(_has_inverse)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, M) under the scheme as points before it, `(P, N)`."""
        together = np.asarray(X).take(np.argsort(self._order), axis=1)
        mapped, passed = np.split(together, [self.width_], axis=1)
        restored = np.empty((len(together), self.n_features_in_), together.dtype)
        restored[:, self.passed_] = passed
        is_fitted = len(self.positions_) > 0
        restored[:, self.positions_] = (
            self.scheme.inverse_transform(mapped) if is_fitted else mapped
        )
        return restored

    @property
    def affine_traits(self) -> AffineTraits | None:
        """The traits of the scheme on the selected features; None where it is not affine."""
        return find_affine_traits(self.scheme)

    def affine_map(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the map `z = A x + b` of all features, the others left as they are.

        Returns:
            A `(M, N)`, or `(N,)` where each feature only has a factor; and b `(M,)`. None where the
            scheme is not known to be affine.
        """
        nothing = Affine(np.ones(0), np.zeros(0))
        scheme_map = find_affine_map(self.scheme) if len(self.positions_) else nothing
        if scheme_map is None:
            return None
        own, order, others = scheme_map.matrix, self._order, len(self.passed_)
        offset = np.concatenate([scheme_map.offset, np.zeros(others)])[order]
        # A factor for each feature, in its place: the map of all features is of that form, too.
        if self.keeps_places and own.ndim == 1:
            return np.concatenate([own, np.ones(others)])[order], offset
        matrix = np.zeros((len(order), self.n_features_in_))
        matrix[: self.width_, self.positions_] = np.diag(own) if own.ndim == 1 else own
        matrix[self.width_ :, self.passed_] = np.eye(others)
        return matrix[order], offset

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features under the scheme `(M,)`.

        Args:
            input_features: The N names of the features before the scheme; None for x0, x1, ..
        """
        if input_features is None:
            input_features = [f"x{n}" for n in range(self.n_features_in_)]
        names = np.array(input_features, dtype=object)
        own_names = names[self.positions_]
        # A scheme that names nothing keeps the names of features that stay in their places.
        is_named = hasattr(self.scheme, "get_feature_names_out") or not self.keeps_places
        if len(own_names) and is_named:
            own_names = self.scheme.get_feature_names_out(own_names)
        return np.concatenate([own_names, names[self.passed_]])[self._order]
