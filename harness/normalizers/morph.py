"""An affine map of the plane as a film: moved, turned by the shortest way, scaled, turned back."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STEPS = 12  # frames from one key frame to the next
CLOSE = 1e-9  # of a matrix's rows, angles and logarithms of scales: below is rounding
CENTRED = 1e-6  # of the points' spread: how near the mean is to the origin


class Split(NamedTuple):
    """A matrix as its parts: `A = R(back) diag(scales) diag(signs) R(turn)`.

    turn, back: angles in radians. signs `(2,)`: one is -1 where A mirrors the plane. scales `(2,)`:
    positive.
    """

    turn: float
    signs: Array
    scales: Array
    back: float


class Frames(NamedTuple):
    """The maps of F frames, `x -> matrix (x - centre) + image`, from the features to the scheme's.

    matrix `(F, 2, 2)`; image `(F, 2)`, of the centre. signs `(F, 2)`: the direction in which each
    coordinate is drawn, so that a map that mirrors the plane does not flip the picture. keys
    `(k,)`: the frames at which a part of the map is done, the first among them; words: what it is.
    mixed: for each key frame, whether its coordinates are mixed from the features.
    """

    matrix: Array
    image: Array
    signs: Array
    keys: NDArray[np.int64]
    words: tuple[str, ...]
    mixed: tuple[bool, ...]


def frames(matrix: Array, centre: Array, image: Array, spread: Array) -> Frames | None:
    """Return the film of `z = A (x - centre) + image`, None where the map changes nothing.

    As `z = A (x - p)`: the points move by p, along a line; they turn; they are scaled, on a log
    scale; where A has a second rotation, they turn again. Parts that change nothing are left out.
    The last frame is the map itself. matrix: A `(2, 2)`, with an inverse. spread `(2,)`: the
    points' standard deviations.
    """
    parts = split(matrix)
    there = np.linalg.solve(matrix, image)  # the centre, moved
    size = float(np.linalg.norm(spread))
    found: list[tuple[Array, Array, Array]] = [(np.eye(2), centre, np.ones(2))]
    keys, words, mixed = [0], ["raw"], [False]

    def add(word: str, at: Callable[[float], tuple[Array, Array]], turns: bool = True) -> None:
        signs = parts.signs if turns else np.ones(2)
        found.extend((*at(t), signs) for t in np.arange(1, STEPS + 1) / STEPS)
        keys.append(len(found) - 1)
        words.append(word)
        mixed.append(turns and bool(parts.turn))

    def about(made: Callable[[float], Array]) -> Callable[[float], tuple[Array, Array]]:
        return lambda t: (made(t), made(t) @ there)

    flipped = np.diag(parts.signs)
    turned, scaled = flipped @ rotation(parts.turn), np.diag(parts.scales)
    if np.linalg.norm(there - centre) > CLOSE * (size + np.linalg.norm(centre)):
        word = "centred" if np.linalg.norm(there) <= CENTRED * size else "moved"
        add(word, lambda t: (np.eye(2), centre + t * (there - centre)), turns=False)
    if parts.turn:
        word = _turning("rotated", parts.turn)
        add(word, about(lambda t: flipped @ rotation(t * parts.turn)))
    if np.abs(np.log(parts.scales)).max() > CLOSE:
        add(_scaling(parts.scales), about(lambda t: np.diag(parts.scales**t) @ turned))
    if parts.back:
        word = _turning("rotated back", parts.back)
        add(word, about(lambda t: rotation(t * parts.back) @ scaled @ turned))
    if len(keys) == 1:
        return None
    found[-1] = (matrix, image, found[-1][2])
    maps, images, signs = (np.array(part) for part in zip(*found))
    return Frames(maps, images, signs, np.array(keys), tuple(words), tuple(mixed))


def split(matrix: Array) -> Split:
    """Return the parts of a matrix `(2, 2)` that has an inverse, of the least angles in all.

    Where the rows lie across each other there is no second rotation.
    """
    lengths = np.linalg.norm(matrix, axis=1)
    if abs(matrix[0] @ matrix[1]) <= CLOSE * lengths[0] * lengths[1]:
        turn, signs = _turn(matrix / lengths[:, None])
        return Split(turn, signs, lengths, 0.0)
    left, scales, right = np.linalg.svd(matrix)
    found = []
    for order, one, two in product(([0, 1], [1, 0]), (1.0, -1.0), (1.0, -1.0)):
        way = np.array([one, two])
        back = left[:, order] * way
        if np.linalg.det(back) > 0:
            turn, signs = _turn(way[:, None] * right[order])
            found.append(Split(turn, signs, scales[order], _angle(back)))
    return min(found, key=lambda parts: abs(parts.turn) + abs(parts.back))


def rotation(angle: float) -> Array:
    """Return the matrix that turns the plane by an angle."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _turn(across: Array) -> tuple[float, Array]:
    """Return an orthogonal matrix as `diag(signs) R(angle)`, of the smallest angle."""
    if np.linalg.det(across) > 0:
        return _angle(across), np.ones(2)
    ways = [np.array([1.0, -1.0]), np.array([-1.0, 1.0])]
    pairs = [(_angle(signs[:, None] * across), signs) for signs in ways]
    return min(pairs, key=lambda pair: abs(pair[0]))


def _angle(turned: Array) -> float:
    """Return a rotation's angle, 0 for rounding."""
    angle = float(np.arctan2(turned[1, 0], turned[0, 0]))
    return angle if abs(angle) > CLOSE else 0.0


def _turning(word: str, angle: float) -> str:
    return f"{word} by {abs(np.degrees(angle)):.0f}°"


def _scaling(scales: Array) -> str:
    one, two = (f"{scale:.3g}" for scale in scales)
    return f"scaled by {one}" if one == two else f"scaled by {one}, {two}"
