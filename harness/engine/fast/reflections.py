"""Orthonormal columns that span rows of many features: reflections, made on all cores.

Each thread takes a part of the features, block by block. A block's reflections turn a triangle and
the block into a new triangle and zeros; the first triangle is zero. The triangles of all threads,
side by side, are rows that are turned in the same way (Demmel, Grigori, Hoemmen, Langou,
Communication-optimal parallel and sequential QR and LU factorizations, SIAM J. Sci. Comput. 2012).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from normbench.engine.fast import lapack, threads
from normbench.engine.problem import Array

BLOCK = 1000  # features: 200 rows of them fit into a core's cache
DEEP = 4  # features of a thread, in rows: with fewer, joining the triangles takes too long


@dataclass(frozen=True)
class Chain:
    """The reflections of blocks of features that follow one another, made by one thread.

    blocks: of each, its reflections `(K, n)` and what applies them.
    """

    blocks: Sequence[tuple[Array, Array]]

    def of(self, rows: Array) -> Array:
        """Return `rows Q`, `(r, K)`, of rows `(r, N)`."""
        found = np.zeros((len(rows), len(self.blocks[0][0])))
        last = 0
        for block in self.blocks:
            first, last = last, last + block[0].shape[1]
            lapack.apply(b"T", *block, found, np.array(rows[:, first:last], np.float64, order="C"))
        return found

    def back(self, rows: Array, found: Array) -> None:
        """Write `rows Q'` into found `(r, N)`, of rows `(r, K)`."""
        heads, first = np.array(rows, np.float64, order="C"), found.shape[1]
        for block in reversed(self.blocks):
            first, last = first - block[0].shape[1], first
            part = np.zeros((len(rows), last - first))
            lapack.apply(b"N", *block, heads, part)
            found[:, first:last] = part


@dataclass(frozen=True)
class Reflections:
    """Orthonormal columns Q `(N, K)`, kept as the reflections that make them.

    To write Q out would take as long again. Where rows depend on one another, columns are left that
    lie in the first triangles' zeros, beside all features: no row and no gradient has a part there.
    parts: of the features, one for each chain. joint: of the chains' triangles.
    """

    parts: Sequence[slice]
    chains: Sequence[Chain]
    joint: Chain

    @property
    def features(self) -> int:
        """The number of features, N."""
        return self.parts[-1].stop

    def of(self, rows: Array) -> Array:
        """Return `rows Q`, `(r, K)`, of rows `(r, N)`."""
        work = list(zip(self.chains, self.parts, strict=True))
        found = threads.over(lambda item: item[0].of(rows[:, item[1]]), work)
        return self.joint.of(np.hstack(found))

    def back(self, rows: Array) -> Array:
        """Return `rows Q'`, `(r, N)`, of rows `(r, K)`."""
        number, count = rows.shape
        heads = np.empty((number, len(self.chains), count))
        self.joint.back(rows, heads.reshape(number, -1))
        found = np.empty((number, self.features))
        work = list(zip(self.chains, self.parts, heads.swapaxes(0, 1), strict=True))
        threads.over(lambda item: item[0].back(item[2], found[:, item[1]]), work)
        return found


def reflections(*x: Array) -> tuple[Reflections, Array]:
    """Return Q of the span of the rows of x, each `(r, N)`, and all K rows times Q, `(K, K)`."""
    count, features = sum(map(len, x)), x[0].shape[1]
    number = max(1, min(threads.available(), features // max(BLOCK, DEEP * count)))
    ends = [features * part // number for part in range(number + 1)]
    parts = [slice(*both) for both in pairwise(ends)]
    room = np.empty(count * features)  # at once: pages of memory are then large, and quick to get
    made = threads.over(lambda part: _chain(x, part, room), parts)
    triangles = np.hstack([triangle for _, triangle in made])
    with threads.few(triangles.size):
        joint, rows = _chain([triangles], slice(0, count * number), np.empty(triangles.size))
    return Reflections(parts, [chain for chain, _ in made], joint), rows


def _chain(x: Sequence[Array], part: slice, room: Array) -> tuple[Chain, Array]:
    """Return the reflections of a part of the features, and the rows there times their Q.

    room: for as many numbers as x has.
    """
    count = sum(map(len, x))
    triangle, blocks = np.zeros((count, count)), []
    for first in range(part.start, part.stop, BLOCK):
        last = min(first + BLOCK, part.stop)
        rows = room[first * count : last * count].reshape(count, -1)
        np.concatenate([some[:, first:last] for some in x], out=rows)
        blocks.append((rows, lapack.make(triangle, rows)))
    return Chain(blocks), triangle
