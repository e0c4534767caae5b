"""The groups of a network's weights, which are one flat array a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WEIGHT, BIAS, GAIN, SHIFT = "weight", "bias", "gain", "shift"
RUNNING_MEAN, RUNNING_SPREAD = "running_mean", "running_spread"
AFFINE_KINDS = (GAIN, SHIFT)
RUNNING_KINDS = (RUNNING_MEAN, RUNNING_SPREAD)


class Group(NamedTuple):
    """Numbers of one kind of one layer; layers are counted from 0 on.

    kind: `weight`, `bias`, `gain` or `shift`, which are descended; `running_mean` or
    `running_spread` (a variance, or a covariance matrix), which follow the steps' statistics.
    """

    layer: int
    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of weights."""
        return prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """The groups of the flat weights of one model, one after the other; running ones are last."""

    groups: tuple[Group, ...]

    @property
    def size(self) -> int:
        """The number of weights of a model, D, running statistics included."""
        return sum(group.size for group in self.groups)

    @property
    def trained(self) -> int:
        """The number of weights that are descended, which are the first ones."""
        return sum(group.size for group in self.groups if group.kind not in RUNNING_KINDS)

    def mark(self, *kinds: str) -> Array:
        """Return a mask `(D,)` of the weights that are of one of these kinds."""
        return np.repeat(
            [group.kind in kinds for group in self.groups], [group.size for group in self.groups]
        )

    def positions(self) -> dict[tuple[int, str], Array]:
        """Return, by layer and kind, the indices of a group's numbers in the flat weights.

        They are in the group's shape.
        """
        # The index of each weight, split as the weights of one run are.
        arrays = self.split(np.arange(self.size)[None])
        return {(group.layer, group.kind): array[0] for group, array in zip(self.groups, arrays)}

    def split(self, weights: Array) -> tuple[Array, ...]:
        """Return weights `(R, D)` as arrays `(R, *shape)`, one a group, which are views.

        Their order is that of `groups`.
        """
        ends = accumulate(group.size for group in self.groups)
        return tuple(
            weights[:, end - group.size : end].reshape(len(weights), *group.shape)
            for end, group in zip(ends, self.groups)
        )

    def join(self, arrays: Sequence[Array]) -> Array:
        """Return arrays `(R, *shape)`, one a group, as flat weights `(R, D)`."""
        return np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)
