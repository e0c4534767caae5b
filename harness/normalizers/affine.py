"""What a scheme is made of: does it centre, scale, rotate; and its map where that is affine.

The project's schemes say so themselves, by `parts` and `affine_map`; for scikit-learn's that are
linear it is said here. For any other scheme nothing is known, and None is the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import decomposition, pipeline, preprocessing

Array = NDArray[np.float64]


class Parts(NamedTuple):
    """What an affine scheme does to the points.

    centres: it takes a constant off each feature. scales: it multiplies features, or directions,
    by different numbers. rotates: it mixes features.
    """

    centres: bool
    scales: bool
    rotates: bool

    def then(self, other: "Parts") -> "Parts":
        """Return the parts of both schemes, one after the other."""
        return Parts(*(one or two for one, two in zip(self, other)))


@dataclass(frozen=True)
class Affine:
    """The map `z = A x + b` of a fitted scheme, from N features to M.

    matrix: A `(M, N)`; or `(N,)`, one factor a feature. offset: b `(M,)`.
    """

    matrix: Array
    offset: Array

    def __call__(self, x: NDArray[Any]) -> Array:
        """Return points x (P, N) mapped, `(P, M)`."""
        mapped = x * self.matrix if self.matrix.ndim == 1 else x @ self.matrix.T
        return np.asarray(mapped + self.offset)

    def then(self, other: "Affine") -> "Affine":
        """Return this map, followed by another."""
        offset = other(self.offset[None])[0]
        if other.matrix.ndim == 1:
            factors = other.matrix if self.matrix.ndim == 1 else other.matrix[:, None]
            return Affine(factors * self.matrix, offset)
        if self.matrix.ndim == 1:
            return Affine(other.matrix * self.matrix, offset)
        return Affine(other.matrix @ self.matrix, offset)

    def to_inputs(self, weights: Array) -> Array:
        """Return weights `(.., M + 1)` on mapped points as weights `(.., N + 1)` on the inputs.

        Bias first: `w0 + w (A x + b) = (w0 + w b) + (A' w) x`, the same scores.
        """
        bias, slopes = weights[..., :1], weights[..., 1:]
        moved = slopes * self.matrix if self.matrix.ndim == 1 else slopes @ self.matrix
        return np.concatenate([bias + (slopes @ self.offset)[..., None], moved], axis=-1)


Link = TypeVar("Link", Parts, Affine)


def parts(scheme: Any) -> Parts | None:
    """Return what a scheme is made of, fitted or not; None where it is not known to be affine."""
    if hasattr(scheme, "parts"):
        return Parts(*scheme.parts)
    if isinstance(scheme, pipeline.Pipeline):
        return _together([parts(link) for link in _links(scheme)])
    known = _known(scheme)
    return known and known[0]


def affine(scheme: Any) -> Affine | None:
    """Return the map of a fitted scheme; None where it is not known to be affine."""
    if hasattr(scheme, "affine_map"):
        return Affine(*scheme.affine_map())
    if isinstance(scheme, pipeline.Pipeline):
        return _together([affine(link) for link in _links(scheme)])
    known = _known(scheme)
    return known and known[1](scheme)


def learns_by_blocks(scheme: Any) -> bool:
    """Return whether a scheme learns from block after block of points what it learns from all."""
    scalers = (preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler)
    return type(scheme) in scalers


def _links(scheme: pipeline.Pipeline) -> list[Any]:
    return [step for _, step in scheme.steps if step not in (None, "passthrough")]


def _together(links: list[Link | None]) -> Link | None:
    """Return what is said of the links of a chain, one after the other; None where one is not."""
    known = [link for link in links if link is not None]
    if not known or len(known) < len(links):
        return None
    whole = known[0]
    for following in known[1:]:
        whole = whole.then(following)
    return whole


def _known(scheme: Any) -> tuple[Parts, Callable[[Any], Affine]] | None:
    """Return what is known of a scheme of scikit-learn's: its parts, and its map once fitted."""
    kind = type(scheme)  # a subclass may do anything
    if kind is preprocessing.FunctionTransformer:
        return (Parts(False, False, False), _identity) if scheme.func is None else None
    if kind is preprocessing.StandardScaler:
        return Parts(bool(scheme.with_mean), bool(scheme.with_std), False), _standard
    if kind is preprocessing.RobustScaler:
        return Parts(bool(scheme.with_centering), bool(scheme.with_scaling), False), _robust
    if kind is preprocessing.MinMaxScaler:
        return None if scheme.clip else (Parts(True, True, False), _minmax)
    if kind is preprocessing.MaxAbsScaler:
        return None if scheme.clip else (Parts(False, True, False), _maxabs)
    if kind is decomposition.PCA:
        return Parts(True, bool(scheme.whiten), True), _pca
    return None


def _identity(scheme: Any) -> Affine:
    return Affine(np.ones(scheme.n_features_in_), np.zeros(scheme.n_features_in_))


def _standard(scheme: Any) -> Affine:
    return _scaler(scheme, scheme.mean_ if scheme.with_mean else None)


def _robust(scheme: Any) -> Affine:
    return _scaler(scheme, scheme.center_)


def _maxabs(scheme: Any) -> Affine:
    return _scaler(scheme, None)


def _scaler(scheme: Any, centre: Array | None) -> Affine:
    """Return the map of a scheme that takes a centre off and divides by `scale_`, where given."""
    scale = np.ones(scheme.n_features_in_) if scheme.scale_ is None else scheme.scale_
    return Affine(1 / scale, np.zeros(len(scale)) if centre is None else -centre / scale)


def _minmax(scheme: Any) -> Affine:
    return Affine(scheme.scale_, scheme.min_)


def _pca(scheme: Any) -> Affine:
    matrix = scheme.components_
    if scheme.whiten:
        matrix = matrix / np.sqrt(scheme.explained_variance_)[:, None]
    return Affine(matrix, -matrix @ scheme.mean_)
