"""A scheme on some features; the others pass through."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import validate_data

from normbench.normalizers.schemes import POINT_DTYPES


def name_scheme(scheme: Any) -> str:
    """Return the class name of a scheme for error messages; of `OnColumns`, the scheme's inside."""
    return type(scheme.scheme if isinstance(scheme, OnColumns) else scheme).__name__


def member_schemes(scheme: Any) -> list[Any]:
    """Return the schemes that a pipeline or a `ColumnTransformer` consists of; else none.

    Left out are the words `drop` and `passthrough` in place of a scheme, and None.
    """
    steps: list[Any] = []
    if isinstance(scheme, Pipeline):
        steps = [step for _, step in scheme.steps]
    elif isinstance(scheme, ColumnTransformer):
        steps = [step for _, step, _ in scheme.transformers] + [scheme.remainder]
    return [step for step in steps if step is not None and not isinstance(step, str)]


def learns_by_blocks(scheme: Any) -> bool:
    """Return whether a scheme learns the same from blocks of points as from all points at once."""
    return type(scheme) in (StandardScaler, MinMaxScaler, MaxAbsScaler)  # a subclass may not


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
        return "gives points that are not numbers"
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


class OnColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scheme on some features; the others pass through, and each feature stays in its place.

    A scheme that gives another number of features than it gets puts its own first, and the others
    after them.

    Args:
        scheme: The scheme, a transformer, which is fitted in place.
        columns: A function of points (P, N) that returns the positions of the scheme's features,
            one or more, such as a `FeatureSelection`.

    Attributes:
        positions_: The positions of the features that the scheme gets, `(n,)`.
        passed_: The positions of the other features, `(N - n,)`.
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
        self.scheme.fit(self.select(X))
        return self

    def select(self, X: Any) -> NDArray[Any]:
        """Set which features of points X (P, N) the scheme gets; return them, `(P, n)`."""
        self.n_features_in_ = X.shape[1]
        self.positions_ = np.array(self.columns(X), dtype=np.intp)
        self.passed_ = np.setdiff1d(np.arange(X.shape[1]), self.positions_)
        return np.asarray(X[:, self.positions_])

    def transform(self, X: Any) -> NDArray[Any]:
        """Return points X (P, N) with the scheme on its features, `(P, M)`.

        Raises:
            ValueError: The scheme gives anything but one row of numbers a point.
        """
        X = validate_data(self, X, dtype=POINT_DTYPES, reset=False)
        z = self.scheme.transform(X[:, self.positions_])
        if fault := describe_fault(z, len(X)):
            raise ValueError(fault)
        return self._join(np.asarray(z), X[:, self.passed_])

    def _join(self, own: NDArray[Any], passed: NDArray[Any]) -> NDArray[Any]:
        """Return the scheme's features (.., m) and the others (.., N - n) as one array."""
        together = np.concatenate([own, passed], axis=-1)  # float64 where either is
        if own.shape[-1] != len(self.positions_):
            return together
        return together[..., np.argsort(np.r_[self.positions_, self.passed_])]

    def get_feature_names_out(self, input_features: Any) -> NDArray[Any]:
        """Return the names of the features under the scheme `(M,)`.

        Args:
            input_features: The N names of the features before the scheme.
        """
        names = np.array(input_features, dtype=object)
        own_names = self.scheme.get_feature_names_out(names[self.positions_])
        return self._join(own_names, names[self.passed_])
