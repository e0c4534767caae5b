"""Describe affine schemes: whether they centre, scale, rotate, and the map of a fitted one.

The project's schemes declare `affine_traits` and `affine_map`; for linear schemes of scikit-learn
this module does. For any other scheme the answer is None.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import compose, decomposition, pipeline, preprocessing

Array = NDArray[np.float64]


class AffineTraits(NamedTuple):
    """What an affine scheme does to the points.

    Attributes:
        centres: Whether it subtracts a constant from each feature.
        scales: Whether it multiplies features, or directions, by different numbers.
        rotates: Whether it mixes features.
    """

    centres: bool
    scales: bool
    rotates: bool

    def followed_by(self, following: "AffineTraits") -> "AffineTraits":
        """Return the traits of this scheme followed by another: those that either has."""
        return AffineTraits(*(ours or theirs for ours, theirs in zip(self, following)))


@dataclass(frozen=True)
class Affine:
    """The map `z = A x + b` of a fitted scheme, from N features to M.

    Attributes:
        matrix: A `(M, N)`; or `(N,)`, one factor for each feature, where A is diagonal.
        offset: b `(M,)`.
    """

    matrix: Array
    offset: Array

    def __call__(self, x: NDArray[Any]) -> Array:
        """Return points x (P, N) mapped to `(P, M)`."""
        mapped = x * self.matrix if self.matrix.ndim == 1 else x @ self.matrix.T
        return np.asarray(mapped + self.offset)

    def followed_by(self, following: "Affine") -> "Affine":
        """Return this map followed by another, as one map."""
        offset = following(self.offset[None])[0]
        # Each of the two matrices may be `(N,)`, the diagonal of a diagonal matrix.
        if following.matrix.ndim == 1:
            factors = following.matrix if self.matrix.ndim == 1 else following.matrix[:, None]
            return Affine(factors * self.matrix, offset)
        if self.matrix.ndim == 1:
            return Affine(following.matrix * self.matrix, offset)
        return Affine(following.matrix @ self.matrix, offset)


Link = TypeVar("Link", AffineTraits, Affine)  # what is known of one scheme of a chain


def find_affine_traits(scheme: Any) -> AffineTraits | None:
    """Return the traits of a scheme, fitted or not; None where it is not known to be affine."""
    if hasattr(scheme, "affine_traits"):
        return AffineTraits(*scheme.affine_traits)
    if isinstance(scheme, pipeline.Pipeline):
        return _compose([find_affine_traits(member) for member in member_schemes(scheme)])
    if isinstance(scheme, compose.ColumnTransformer):
        return _unite_traits(scheme)
    description = _describe_sklearn(scheme)
    return description and description[0]


def find_affine_map(scheme: Any) -> Affine | None:
    """Return the map of a fitted scheme; None where it is not known to be affine."""
    if hasattr(scheme, "affine_map"):
        return Affine(*scheme.affine_map())
    if isinstance(scheme, pipeline.Pipeline):
        return _compose([find_affine_map(member) for member in member_schemes(scheme)])
    if isinstance(scheme, compose.ColumnTransformer):
        return _join_columns(scheme)
    description = _describe_sklearn(scheme)
    return description and description[1](scheme)


def learns_by_blocks(scheme: Any) -> bool:
    """Return whether a scheme learns the same from blocks of points as from all points at once."""
    scalers = (preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler)
    return type(scheme) in scalers  # a subclass may do anything


def member_schemes(scheme: Any) -> list[Any]:
    """Return the schemes that a pipeline or a `ColumnTransformer` consists of; else none.

    Left out are the words `drop` and `passthrough` in place of a scheme, and None.
    """
    steps: list[Any] = []
    if isinstance(scheme, pipeline.Pipeline):
        steps = [step for _, step in scheme.steps]
    elif isinstance(scheme, compose.ColumnTransformer):
        steps = [step for _, step, _ in scheme.transformers] + [scheme.remainder]
    return [step for step in steps if step is not None and not isinstance(step, str)]


def pass_through(features: int) -> Affine:
    """Return the map that leaves N features as they are."""
    return Affine(np.ones(features), np.zeros(features))


def join_maps(maps: Sequence[tuple[Affine, NDArray[np.intp]]], features: int) -> Affine:
    """Return one map of all features that gives the outputs of several maps, side by side.

    Args:
        maps: Each map, with the positions of the features that it takes.
        features: The number of all features N.

    Returns:
        The map, whose outputs are those of the first map, then of the second, and so on.
    """
    rows = []
    for affine_map, positions in maps:
        own_matrix = affine_map.matrix
        matrix = np.zeros((len(affine_map.offset), features))
        matrix[:, positions] = np.diag(own_matrix) if own_matrix.ndim == 1 else own_matrix
        rows.append(matrix)
    return Affine(
        np.concatenate(rows), np.concatenate([affine_map.offset for affine_map, _ in maps])
    )


def _unite_traits(scheme: compose.ColumnTransformer) -> AffineTraits | None:
    """Return the traits of a `ColumnTransformer`: those that any of its schemes has.

    None where the traits of one of its schemes are unknown.
    """
    # Weights multiply the outputs of the schemes.
    weight_traits = AffineTraits(False, bool(scheme.transformer_weights), False)
    return _compose([weight_traits, *map(find_affine_traits, member_schemes(scheme))])


def _join_columns(scheme: compose.ColumnTransformer) -> Affine | None:
    """Return the map of a fitted `ColumnTransformer`.

    None where the map of one of its schemes is unknown, or where it gives no feature.
    """
    features, weights = scheme.n_features_in_, scheme.transformer_weights or {}
    maps: list[tuple[Affine, NDArray[np.intp]]] = []
    for name, member, columns in scheme.transformers_:
        positions = np.arange(features)[columns]
        keyword = member if isinstance(member, str) else ""  # `drop`, `passthrough`, or a scheme
        if keyword == "drop" or not len(positions):
            continue
        affine_map = pass_through(len(positions)) if keyword else find_affine_map(member)
        if affine_map is None:
            return None
        weight = weights.get(name, 1.0)
        maps.append((Affine(weight * affine_map.matrix, weight * affine_map.offset), positions))
    return join_maps(maps, features) if maps else None


def _compose(links: list[Link | None]) -> Link | None:
    """Return the traits, or the map, of a chain of schemes.

    Args:
        links: The traits, or the map, of each scheme in the order of the chain; None where unknown.

    Returns:
        Those of the whole chain; None where one is unknown or the chain is empty.
    """
    known_links = [link for link in links if link is not None]
    if not known_links or len(known_links) < len(links):
        return None
    composed = known_links[0]
    for following in known_links[1:]:
        composed = composed.followed_by(following)
    return composed


def _describe_sklearn(scheme: Any) -> tuple[AffineTraits, Callable[[Any], Affine]] | None:
    """Return the traits of a scheme of scikit-learn, and a function from it to its map.

    None where the scheme is not known to be affine. The function is for a fitted scheme.
    """
    scheme_type = type(scheme)  # a subclass may do anything
    # A `FunctionTransformer` without a function changes nothing. A scaler that clips is not affine.
    if scheme_type is preprocessing.FunctionTransformer:
        return (AffineTraits(False, False, False), _identity) if scheme.func is None else None
    if scheme_type is preprocessing.StandardScaler:
        return AffineTraits(bool(scheme.with_mean), bool(scheme.with_std), False), _standard
    if scheme_type is preprocessing.RobustScaler:
        return AffineTraits(bool(scheme.with_centering), bool(scheme.with_scaling), False), _robust
    if scheme_type is preprocessing.MinMaxScaler:
        return None if scheme.clip else (AffineTraits(True, True, False), _minmax)
    if scheme_type is preprocessing.MaxAbsScaler:
        return None if scheme.clip else (AffineTraits(False, True, False), _maxabs)
    if scheme_type is decomposition.PCA:
        return AffineTraits(True, bool(scheme.whiten), True), _pca
    return None


def _identity(scheme: Any) -> Affine:
    """Return the map that changes nothing."""
    return Affine(np.ones(scheme.n_features_in_), np.zeros(scheme.n_features_in_))


def _standard(scheme: Any) -> Affine:
    """Return the map of a fitted `StandardScaler`."""
    return _scaler(scheme, scheme.mean_ if scheme.with_mean else None)


def _robust(scheme: Any) -> Affine:
    """Return the map of a fitted `RobustScaler`: median and interquartile range."""
    return _scaler(scheme, scheme.center_)


def _maxabs(scheme: Any) -> Affine:
    """Return the map of a fitted `MaxAbsScaler`, which does not centre."""
    return _scaler(scheme, None)


def _scaler(scheme: Any, centre: Array | None) -> Affine:
    """Return the map of a scheme that subtracts a centre (N,) and divides by `scale_`, if any."""
    scale = np.ones(scheme.n_features_in_) if scheme.scale_ is None else scheme.scale_
    return Affine(1 / scale, np.zeros(len(scale)) if centre is None else -centre / scale)


def _minmax(scheme: Any) -> Affine:
    """Return the map of a fitted `MinMaxScaler`, whose attributes are its factors and offsets."""
    return Affine(scheme.scale_, scheme.min_)


def _pca(scheme: Any) -> Affine:
    """Return the map of a fitted `PCA`, whitened or not."""
    matrix = scheme.components_
    if scheme.whiten:
        deviations = np.sqrt(scheme.explained_variance_)
        # As its `transform` does: directions without variance are divided by the machine epsilon.
        matrix = matrix / np.maximum(deviations, np.finfo(deviations.dtype).eps)[:, None]
    return Affine(matrix, -matrix @ scheme.mean_)
