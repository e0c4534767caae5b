"""The affine map of any fitted scheme, found by trying the scheme on a few points.

What a scheme says of itself before it is fitted stands in `normbench.normalizers.affine`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench.datasets.on_disk.points import Rows
from normbench.normalizers.decomposition import compute_deviations, compute_mean

Array = NDArray[np.float64]
CHECKED = 256  # points that the map is tried on
CLOSE = 1e-9  # of the largest coordinate: the error that the map may have


class Probed(NamedTuple):
    """The map `z = A (x - centre) + image`. matrix: A `(M, N)`; centre `(N,)`; image `(M,)`.

    Or one factor a feature, `(N,)`. The centre is the points' mean, so that no digits are lost to
    an offset. Weights on z are folded into those on `x - centre`, both with the bias first.
    """

    matrix: Array
    centre: Array
    image: Array

    @property
    def features(self) -> int:
        """The number of features M of z."""
        return len(self.image)

    def forth(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return `rows A'`, `(.., M)`, of rows `(.., N)`."""
        return rows * self.matrix if self.matrix.ndim == 1 else rows @ self.matrix.T

    def back(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return `rows A`, `(.., N)`, of rows `(.., M)`."""
        return rows * self.matrix if self.matrix.ndim == 1 else rows @ self.matrix

    def fold(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return weights `(.., M + 1)` on z as `(.., N + 1)` on `x - centre`."""
        slopes = weights[..., 1:].astype(np.float64, copy=False)
        inner = self.back(slopes)
        folded = np.empty((*inner.shape[:-1], inner.shape[-1] + 1), weights.dtype)
        folded[..., 0] = weights[..., 0] + slopes @ self.image
        folded[..., 1:] = inner
        return folded

    def unfold(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return derivatives `(.., N + 1)` in `x - centre` as those in z, `(.., M + 1)`."""
        slopes, bias = rows[..., 1:], rows[..., :1]
        outer = self.forth(slopes) + bias * self.image
        return np.concatenate([bias, outer], axis=-1, dtype=rows.dtype)

    def spread(self, hessian: Array, classes: int) -> Array:
        """Return second derivatives in weights on `x - centre`, `(D, D)`, as those on z."""
        turn = np.zeros((len(hessian) // classes, self.features + 1))
        turn[0] = np.r_[1.0, self.image]
        turn[1:, 1:] = np.diag(self.matrix) if self.matrix.ndim == 1 else self.matrix.T
        parts = hessian.reshape(classes, len(turn), classes, len(turn))
        spread = np.einsum("ai,cadb,bj->cidj", turn, parts, turn, optimize=True)
        return spread.reshape(classes * turn.shape[1], -1)


class Effects(NamedTuple):
    """What an affine map does to these points."""

    centres: bool
    shifts: bool
    scales: bool
    rotates: bool


def few(count: int) -> NDArray[np.intp]:
    """Return the numbers of the points that a map is tried on, of so many."""
    return np.unique(np.linspace(0, count - 1, CHECKED).astype(int))


def probe(scheme: Any, x: NDArray[Any], z: Rows) -> Probed | None:
    """Return a fitted scheme's map, None where it is not affine; x (P, N) gave z (P, M).

    Points under a scheme of which no copy is made know it. Else the scheme transforms the mean, and
    the mean moved along each feature by that feature's standard deviation. The map that follows
    must then give z for some of the points.
    """
    if not isinstance(z, np.ndarray):
        known: Probed | None = z.map
        return known
    centre = compute_mean(x)
    steps = compute_deviations(x, centre)
    some = few(len(x))
    return tried(scheme, centre, steps, x[some], z[some], float(max(-z.min(), z.max())))


def tried(
    scheme: Any, centre: Array, steps: Array, x: NDArray[Any], z: NDArray[Any], largest: float
) -> Probed | None:
    """Return the map about a centre (N,), from steps (N,), which must give z (p, M) for x (p, N).

    largest: the largest coordinate that the scheme gave any point.
    """
    varies = steps > CLOSE * np.abs(centre)  # the deviation of a constant feature is rounding
    steps = np.where(varies, steps, np.maximum(np.abs(centre), 1.0))
    with np.errstate(all="ignore"):
        try:
            probes = np.vstack([centre, centre + np.diag(steps)])
            found = np.asarray(scheme.transform(probes), dtype=np.float64)
        except ValueError:  # a scheme may refuse points that it has not seen
            return None
        if found.shape != (len(probes), z.shape[1]) or not np.isfinite(found).all():
            return None
        made = (probes[1:] - centre).diagonal()  # the moves, with their rounding
        matrix = (found[1:] - found[0]).T / made
        expected = (x - centre) @ matrix.T + found[0]
        close = max(CLOSE, 100 * float(np.finfo(z.dtype).eps))
        error = np.abs(expected - z).max(axis=0)
        size = np.abs(z).max(axis=0) + largest * 1e-3
    return Probed(matrix, centre, found[0]) if np.all(error <= close * size) else None


def effects(found: Probed, z: Rows) -> Effects:
    """Return what a map does, up to rounding; z (P, M): the points under it."""
    z = z if isinstance(z, np.ndarray) else z[few(len(z))]
    if found.matrix.ndim == 1:
        found = found._replace(matrix=np.diag(found.matrix))
    size = np.abs(found.matrix).max(initial=0.0)
    own = found.matrix.shape[0] == found.matrix.shape[1]
    diagonal = found.matrix.diagonal() if own else np.empty(0)
    rotates = not own or bool(np.abs(found.matrix - np.diag(diagonal)).max() > CLOSE * size)
    if rotates:
        products = found.matrix @ found.matrix.T
        live = products.diagonal() > (CLOSE * size) ** 2  # a dropped direction gives zeros
        scales = bool(
            np.abs(products[np.ix_(live, live)] - np.eye(int(live.sum()))).max(initial=0.0) > 1e-6
        )
    else:
        scales = bool(np.abs(diagonal - 1).max(initial=0.0) > 1e-6)
    origin = found.image - found.matrix @ found.centre
    spread = compute_deviations(z, compute_mean(z))
    reach = np.abs(found.matrix) @ np.abs(found.centre)
    shifts = bool(np.any(np.abs(origin) > 1e-6 * np.maximum(spread, reach)))
    centres = shifts and bool(np.all(np.abs(found.image) <= 1e-6 * np.maximum(spread, reach)))
    return Effects(centres, shifts, scales, rotates)
