"""Describe affine schemes: whether they centre, scale, rotate, and the map of a fitted one.

The project's schemes declare `affine_traits` and `affine_map`; for linear schemes of scikit-learn
this module does. For any other scheme the answer is None.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

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
        # Each of the two matrices may be `(N,)`, the diagonal of a diagonal matrix.
        if self.matrix.ndim == 1:
            matrix = following.matrix * self.matrix
        else:  # the map of each column of the matrix, without the offset
            matrix = Affine(following.matrix, np.zeros(1))(self.matrix.T).T
        return Affine(matrix, following(self.offset[None])[0])


def find_affine_traits(scheme: Any) -> AffineTraits | None:
    """Return the traits of a scheme, fitted or not; None where it is not known to be affine."""
    if hasattr(scheme, "affine_traits"):
        return AffineTraits(*scheme.affine_traits) if scheme.affine_traits else None
    members = member_schemes(scheme)
    if isinstance(scheme, pipeline.Pipeline) and members:  # with the traits that any of them has
        traits = [*filter(None, map(find_affine_traits, members))]
        is_affine = len(traits) == len(members)
        return AffineTraits(*map(any, zip(*traits))) if is_affine else None
    scheme_type = type(scheme)  # a subclass may do anything
    if scheme_type is preprocessing.StandardScaler:
        return AffineTraits(bool(scheme.with_mean), bool(scheme.with_std), False)
    if scheme_type is preprocessing.RobustScaler:
        return AffineTraits(bool(scheme.with_centering), bool(scheme.with_scaling), False)
    if scheme_type is decomposition.PCA:
        return AffineTraits(True, bool(scheme.whiten), True)
    # A scaler that clips is not affine. A `FunctionTransformer` without a function changes nothing.
    is_scaler = scheme_type in (preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler)
    if is_scaler and not scheme.clip:
        return AffineTraits(scheme_type is preprocessing.MinMaxScaler, True, False)
    is_identity = scheme_type is preprocessing.FunctionTransformer and scheme.func is None
    return AffineTraits(False, False, False) if is_identity else None


def find_affine_map(scheme: Any) -> Affine | None:
    """Return the map of a fitted scheme; None where it is not known to be affine."""
    if hasattr(scheme, "affine_map"):
        declared = scheme.affine_map()
        return Affine(*declared) if declared else None
    if find_affine_traits(scheme) is None:
        return None
    if isinstance(scheme, pipeline.Pipeline):
        return reduce(
            Affine.followed_by, filter(None, map(find_affine_map, member_schemes(scheme)))
        )
    if isinstance(scheme, decomposition.PCA):
        matrix = scheme.components_
        if scheme.whiten:
            deviations = np.sqrt(scheme.explained_variance_)
            # As its `transform` does: directions without variance are divided by machine epsilon.
            matrix = matrix / np.maximum(deviations, np.finfo(deviations.dtype).eps)[:, None]
        return Affine(matrix, -matrix @ scheme.mean_)
    if isinstance(scheme, preprocessing.MinMaxScaler):  # its attributes are factors and offsets
        return Affine(scheme.scale_, scheme.min_)
    scale = getattr(scheme, "scale_", None)
    scale = np.ones(scheme.n_features_in_) if scale is None else scale
    centre = getattr(scheme, "center_", None)
    centre = scheme.mean_ if getattr(scheme, "with_mean", False) else centre
    return Affine(1 / scale, np.zeros(len(scale)) if centre is None else -centre / scale)


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
