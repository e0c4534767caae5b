"""The content of data: every number is looked at once, refused or counted in the fingerprint."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from normbench.datasets.on_disk.points import Array, Points, Rows, rows_a_block
from normbench.datasets.values import UserError

# Of an entry: its square, and a sum of squares, stay finite. A number of Python's own would become
# float32 beside such points: infinite, so that no infinite one would be larger.
LARGEST = np.float64(1e150)


@dataclass
class Marks:
    """Checksums of points, by which a change is found: of what precedes the end of each block.

    They cost nothing beside the fingerprint, which goes on from block to block.
    """

    before: Any  # hashlib's own state, of what was counted before the points
    blocks: list[tuple[int, int, bytes]] = field(default_factory=list)

    def changed(self, x: Points) -> tuple[int, int] | None:
        """Return the first rows, first to last, that are not what they were; None: all are."""
        found = self.before.copy()
        for first, last, mark in self.blocks:
            found.update(x.read(first, last).data)
            if found.digest() != mark:
                return first, last - 1
        return None


class Content:
    """What is counted in a fingerprint, bit by bit in its order."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._found = hashlib.sha256()

    @property
    def fingerprint(self) -> str:
        """The digest of all that was added."""
        return self._found.hexdigest()

    def add(self, x: Rows) -> "Content":
        """Add an array of any shape, or points."""
        for _ in self._blocks(x):
            pass
        return self

    def add_points(self, x: Rows, name: str, features: tuple[str, ...], part: str) -> None:
        """Add points (P, N); raise `UserError` where one has no number, or too large a one.

        Points that are not in memory are marked, see `Points.marks`.
        """
        first, count = None, 0
        for row, block in self._blocks(x):
            # Two reductions, no temporary; NaN fails the comparison. The mask only names the place.
            if not block.size or max(float(block.max()), -float(block.min())) <= LARGEST:
                continue
            bad = np.argwhere(~(np.abs(block) <= LARGEST))
            count += len(bad)
            if first is None:
                place, column = bad[0]
                first = row + place, features[column], block[place, column]
        if first is not None:
            _refuse(name, part, *first, count)

    def _blocks(self, x: Rows) -> Iterator[tuple[int, Array]]:
        """Yield blocks of rows, the number of the first with each, and count them."""
        self._found.update(f"{x.shape}{x.dtype}".encode())
        if not isinstance(x, Points):
            self._found.update(np.ascontiguousarray(x).data)
            yield 0, x
            return
        marks = Marks(self._found.copy())
        size = rows_a_block(x)
        buffer = np.empty((min(size, len(x)), x.shape[1]), x.dtype)
        for first in range(0, len(x), size):
            last = min(first + size, len(x))
            block = x.read(first, last, buffer)
            self._found.update(block.data)
            marks.blocks.append((first, last, self._found.digest()))
            yield first, block
        x.marks = marks


def digest(*arrays: Rows) -> str:
    """Return the fingerprint of the content of some arrays, or points."""
    content = Content()
    for array in arrays:
        content.add(array)
    return content.fingerprint


def _refuse(name: str, part: str, row: int, feature: str, value: Any, count: int) -> None:
    remedy = (
        f"its square overflows; rescale the feature (entries must be below {LARGEST:g})"
        if np.isfinite(value)
        else "drop those points or fill the gaps before the comparison"
    )
    raise UserError(
        f"data of {name}: feature {feature!r} of {part}point {row} (counted from 0) is "
        f"{value:g} ({count} in all); {remedy}"
    )
