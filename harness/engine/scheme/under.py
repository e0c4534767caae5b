"""Points under a scheme, transformed when they are read, without a copy.

An affine scheme is folded into the weights: scores of `z = A (x - m) + c` under weights w are
scores of `x - m` under `w A`, with the bias raised by `w c`, and the gradient is mapped back. The
points are centred a block at a time where a folded offset would cost the scores digits. Any other
scheme is applied to a block whenever the block is read.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Points, Rows
from normbench.engine.scheme.probed import MAP_SAMPLE_SIZE, AffineMap
from normbench.normalizers.decomposition import Surrogate

# What a score may lose, in its own size. The mean over points loses less: their roundings differ.
MAX_DIGIT_LOSS = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}


class Under(Points):
    """Points z (P, M) under a fitted scheme: rows are transformed when they are read.

    x: the points before the scheme (P, N). transform: a function from rows of x to rows of z.
    width: M. dtype: the type of z. map: the map of an affine scheme, else None. fold: the same map
    in the form that can be folded into weights, None where that loses digits. surrogates: a
    function that computes the surrogates of x and of z, called when they are first asked for.
    """

    def __init__(
        self,
        x: Rows,
        transform: Callable[[Array], Array],
        width: int,
        dtype: Any,
        map: AffineMap | None,
        fold: AffineMap | None,
        surrogates: Callable[[], tuple[Surrogate, Surrogate]],
    ) -> None:
        self.x, self.transform, self.map, self.fold, self._compute_surrogates = (
            x,
            transform,
            map,
            fold,
            surrogates,
        )
        self.shape, self.dtype = (len(x), width), np.dtype(dtype)
        # Of x: where the scheme is folded, products read the entries of x.
        self.density = x.density if isinstance(x, Points) else 1.0

    @property
    def source(self) -> Points:
        """The points that these are read from, itself where they are in memory."""
        return self.x.source if isinstance(self.x, Points) else self

    def read_ahead(self, first: int, last: int) -> None:
        """Announce which rows are read next, see `Points.read_ahead`.

        Args:
            first: The first row.
            last: One past the last row.
        """
        if isinstance(self.x, Points):
            self.x.read_ahead(first, last)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return rows under the scheme, see `Points.read`.

        Args:
            first: The first row.
            last: One past the last row.
            out: Rows are written to its beginning, if it is given.

        Returns:
            `(last - first, M)`.
        """
        rows = self.transform(self.x[first:last])
        if out is None:
            return rows
        out[: last - first] = rows
        return out[: last - first]

    @cached_property
    def surrogates(self) -> tuple[Surrogate, Surrogate]:
        """The surrogates of x and of z, in float64.

        Under any affine scheme the rows of the second are the images of the rows of the first.
        """
        return self._compute_surrogates()

    @property
    def surrogate(self) -> Surrogate:
        """Few rows with the mean and covariance of z."""
        return self.surrogates[1]

    def mapped(self, matrix: Array, mean: Array) -> "Under":
        """Return the points `(z - mean) matrix'`, in float64.

        Args:
            matrix: `(r, M)`.
            mean: `(M,)`.

        Returns:
            Points (P, r), still transformed when they are read, by one map from x where the scheme
            is affine.
        """
        before, after = self.surrogates
        x: Rows
        # The new map is from z where the scheme is not affine, else from x: no step in between.
        if self.map is None:
            x, composed = self, AffineMap(matrix, mean, np.zeros(len(matrix)))
        else:
            image = matrix @ (self.map.image - mean)
            x, composed = (
                self.x,
                AffineMap(self.map.apply_transpose(matrix), self.map.centre, image),
            )
        return Under(
            x,
            lambda rows: composed.apply(rows - composed.centre) + composed.image,
            len(matrix),
            np.float64,
            composed,
            choose_fold(composed, x[:MAP_SAMPLE_SIZE], np.float64),
            lambda: (before, Surrogate((after.moment_rows - mean) @ matrix.T)),
        )


class Centred(Points):
    """Points `x - centre` (P, N), of a given type, computed when they are read.

    x: points (P, N). centre: `(N,)`.
    """

    def __init__(self, x: Rows, centre: Array, dtype: Any) -> None:
        self.x, self.centre = x, centre
        self.shape, self.dtype = x.shape, np.dtype(dtype)
        self._has_centre = bool(np.any(centre))  # otherwise only the type changes

    @property
    def source(self) -> Points:
        """The points that these are read from, itself where they are in memory."""
        return self.x.source if isinstance(self.x, Points) else self

    def read_ahead(self, first: int, last: int) -> None:
        """Announce which rows are read next, see `Points.read_ahead`.

        Args:
            first: The first row.
            last: One past the last row.
        """
        if isinstance(self.x, Points):
            self.x.read_ahead(first, last)

    def read(self, first: int, last: int, out: Array | None = None) -> Array:
        """Return centred rows, see `Points.read`.

        Args:
            first: The first row.
            last: One past the last row.
            out: Rows are written to its beginning, if it is given.

        Returns:
            `(last - first, N)`.
        """
        if out is None:
            out = np.empty((last - first, self.shape[1]), self.dtype)
        out = out[: last - first]
        # Rows of another type are converted when they are centred or copied.
        reads_into_out = isinstance(self.x, Points) and self.x.dtype == self.dtype
        rows = self.x.read(first, last, out) if reads_into_out else self.x[first:last]
        if self._has_centre:
            np.subtract(rows, self.centre, out=out, casting="same_kind")
        elif rows is not out:
            out[...] = rows
        return out


def choose_fold(scheme_map: AffineMap, x: Array, dtype: Any) -> AffineMap | None:
    """Return a map in the form in which it is folded into weights: about 0 or about its centre.

    A score is a sum of terms `w A (x - m)` and `w c`, whose roundings add up as their squares do.
    So the root of `A^2 (x - m)^2 + c^2` is compared with the coordinates `A (x - m) + c`.

    Args:
        scheme_map: The map of an affine scheme.
        x: A few points before the scheme (p, N).
        dtype: The type of the descent, whose rounding counts.

    Returns:
        The map about 0 if that loses few digits, otherwise the map about its centre; None if both
        lose more than `MAX_DIGIT_LOSS`.
    """
    # About 0 comes first: x then needs no centring when it is read.
    descent_type = np.dtype(dtype)
    image_of_zero = scheme_map.image - scheme_map.apply(scheme_map.centre)
    about_zero = AffineMap(scheme_map.matrix, np.zeros_like(scheme_map.centre), image_of_zero)
    for candidate in (about_zero, scheme_map):
        loss = np.finfo(descent_type).eps * _measure_amplification(candidate, x)
        if loss <= MAX_DIGIT_LOSS[descent_type]:
            return candidate
    return None


def _measure_amplification(scheme_map: AffineMap, x: Array) -> float:
    """Return by how much the terms of a coordinate exceed the coordinate, at the worst coordinate.

    It is the largest ratio, over the coordinates, of `sqrt(mean(A^2 (x - m)^2 + c^2))` to
    `sqrt(mean((A (x - m) + c)^2))`, means over the points x (p, N); 0 where all terms are 0.
    """
    centred = x - scheme_map.centre
    products = scheme_map.apply(centred)
    squares = scheme_map._replace(matrix=scheme_map.matrix**2).apply(centred**2)
    # (M,) each; a coordinate that is 0 though its terms are not has an infinite ratio.
    terms = np.sqrt(np.mean(squares + scheme_map.image**2, axis=0))
    sizes = np.sqrt(np.mean((products + scheme_map.image) ** 2, axis=0))
    return float(np.divide(terms, sizes, out=np.zeros_like(terms), where=terms > 0).max())
