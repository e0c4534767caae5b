"""An affine map of the plane as an animation: move, turn by the smaller angle, scale, turn back."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FRAMES_PER_PART = 12  # frames from one key frame to the next
ROUNDING_TOLERANCE = 1e-9  # of a matrix's rows, angles and logarithms of scales: below is rounding
CENTRED_SHARE = 1e-6  # of the points' spread: how near the mean is to the origin


class Factors(NamedTuple):
    """The factors of a matrix: `A = R(turn_back) diag(scales) diag(signs) R(turn)`.

    R(angle) rotates the plane.

    Attributes:
        turn: The angle of the first rotation, in radians.
        signs: `(2,)`, 1 or -1; one is -1 where A mirrors the plane.
        scales: `(2,)`, positive.
        turn_back: The angle of the second rotation, in radians.
    """

    turn: float
    signs: Array
    scales: Array
    turn_back: float


class Frames(NamedTuple):
    """The maps of F frames, `x -> matrix (x - centre) + image`, from features to coordinates.

    Attributes:
        matrix: `(F, 2, 2)`.
        image: The image of the centre, `(F, 2)`.
        signs: The direction in which each coordinate is drawn, `(F, 2)`, so that a map that mirrors
            the plane does not flip the picture.
        keys: The indices of the k frames that complete a part of the map, `(k,)`, the first frame
            among them.
        labels: The names of the key frames.
        mixed: For each key frame, whether its coordinates are mixtures of the features.
    """

    matrix: Array
    image: Array
    signs: Array
    keys: NDArray[np.int64]
    labels: tuple[str, ...]
    mixed: tuple[bool, ...]


def make_frames(matrix: Array, centre: Array, image: Array, spread: Array) -> Frames | None:
    """Return the frames of a map `z = A (x - centre) + image`.

    The map is animated part by part: the points move along a line; they turn; they are scaled, on a
    log scale; where A has a second rotation, they turn again. Parts that change nothing are left
    out. The last frame is the map itself.

    Args:
        matrix: A `(2, 2)`, invertible.
        centre: A point of the features `(2,)`, such as the mean.
        image: The image of the centre `(2,)`.
        spread: The standard deviations of the points `(2,)`, with which moves are compared.

    Returns:
        The frames; None where the map changes nothing.
    """
    factors = factor_map(matrix)
    # Where the centre is after the move, from which A, a linear map, takes it to its image.
    moved_centre = np.linalg.solve(matrix, image)
    move, spread_norm = moved_centre - centre, float(np.linalg.norm(spread))
    times = np.arange(1, FRAMES_PER_PART + 1) / FRAMES_PER_PART
    film: list[tuple[Array, Array, Array]] = [(np.eye(2), centre, np.ones(2))]
    labels, mixed = ["raw"], [False]
    if np.linalg.norm(move) > ROUNDING_TOLERANCE * (spread_norm + np.linalg.norm(centre)):
        film += [(np.eye(2), centre + t * move, np.ones(2)) for t in times]
        is_centred = np.linalg.norm(moved_centre) <= CENTRED_SHARE * spread_norm
        labels.append("centred" if is_centred else "moved")
        mixed.append(False)
    mirror = np.diag(factors.signs)
    turned_matrix = mirror @ rotation(factors.turn)
    parts: list[tuple[str, Callable[[float], Array]]] = []  # names, and the matrix at times 0 to 1
    if factors.turn:
        label = _label_turn("rotated", factors.turn)
        parts.append((label, lambda t: mirror @ rotation(t * factors.turn)))
    if np.abs(np.log(factors.scales)).max() > ROUNDING_TOLERANCE:  # some scale is not 1
        label = _label_scaling(factors.scales)
        parts.append((label, lambda t: np.diag(factors.scales**t) @ turned_matrix))
    if factors.turn_back:
        label = _label_turn("rotated back", factors.turn_back)
        scale_matrix = np.diag(factors.scales)
        parts.append(
            (label, lambda t: rotation(t * factors.turn_back) @ scale_matrix @ turned_matrix)
        )
    for label, matrix_at in parts:
        # Where the map mirrors the plane, the turned picture is drawn in the mirrored direction.
        film += [(matrix_at(t), matrix_at(t) @ moved_centre, factors.signs) for t in times]
        labels.append(label)
        mixed.append(bool(factors.turn))  # from the first rotation on
    if len(labels) == 1:
        return None
    film[-1] = (matrix, image, film[-1][2])  # the map itself, without the rounding of its factors
    maps, images, signs = (np.array(column) for column in zip(*film))
    keys = FRAMES_PER_PART * np.arange(len(labels))
    return Frames(maps, images, signs, keys, tuple(labels), tuple(mixed))


def factor_map(matrix: Array) -> Factors:
    """Return the factors of an invertible matrix `(2, 2)`, with the smallest sum of angles.

    Where the rows are orthogonal there is no second rotation.
    """
    lengths = np.linalg.norm(matrix, axis=1)
    if abs(matrix[0] @ matrix[1]) <= ROUNDING_TOLERANCE * lengths[0] * lengths[1]:
        turn, signs = _factor_orthogonal(matrix / lengths[:, None])
        return Factors(turn, signs, lengths, 0.0)
    # All singular value decompositions of the matrix whose left factor is a rotation.
    left_vectors, scales, right_vectors = np.linalg.svd(matrix)
    candidates = []
    for order, first_sign, second_sign in product(([0, 1], [1, 0]), (1.0, -1.0), (1.0, -1.0)):
        flips = np.array([first_sign, second_sign])
        second_rotation = left_vectors[:, order] * flips
        if np.linalg.det(second_rotation) > 0:  # else a reflection
            turn, signs = _factor_orthogonal(flips[:, None] * right_vectors[order])
            candidates.append(Factors(turn, signs, scales[order], _find_angle(second_rotation)))
    return min(candidates, key=lambda factors: abs(factors.turn) + abs(factors.turn_back))


def rotation(angle: float) -> Array:
    """Return the matrix `(2, 2)` that rotates the plane by an angle in radians."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _factor_orthogonal(orthogonal: Array) -> tuple[float, Array]:
    """Return an orthogonal matrix `(2, 2)` as `diag(signs) R(angle)`, of the smallest angle.

    Returns:
        The angle in radians, and the signs `(2,)`: one is -1 for a reflection.
    """
    if np.linalg.det(orthogonal) > 0:
        return _find_angle(orthogonal), np.ones(2)
    sign_choices = [np.array([1.0, -1.0]), np.array([-1.0, 1.0])]
    pairs = [(_find_angle(signs[:, None] * orthogonal), signs) for signs in sign_choices]
    return min(pairs, key=lambda pair: abs(pair[0]))


def _find_angle(rotation_matrix: Array) -> float:
    """Return the angle of a rotation `(2, 2)` in radians, 0 where it is only rounding."""
    angle = float(np.arctan2(rotation_matrix[1, 0], rotation_matrix[0, 0]))
    return angle if abs(angle) > ROUNDING_TOLERANCE else 0.0


def _label_turn(verb: str, angle: float) -> str:
    """Return the label of a rotation."""
    return f"{verb} by {abs(np.degrees(angle)):.0f}°"


def _label_scaling(scales: Array) -> str:
    """Return the label of a scaling."""
    first, second = (f"{scale:.3g}" for scale in scales)
    return f"scaled by {first}" if first == second else f"scaled by {first}, {second}"
