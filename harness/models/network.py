"""Fully connected networks, with normalization between their layers.

Activations are `(R, H, p)`: of R runs, H units and p points, as the scores `(R, C, p)` that costs
take. The weights of a run are one flat array; `Layout` names its groups.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

from normbench.datasets.values import (
    UserError,
    check_choice,
    check_integer,
    check_list,
    check_number,
    check_switch,
    spell_setting,
)

Array = NDArray[Any]
Activation = Callable[[Any], Any]
WEIGHT, BIAS, GAIN, SHIFT = "weight", "bias", "gain", "shift"
NONE, BATCH, LAYER, WEIGHT_NORM = "none", "batch", "layer", "weight"
NORMALIZATIONS = (NONE, BATCH, LAYER, WEIGHT_NORM)
BEFORE, AFTER = "before", "after"
MAXOUT, MAXOUT_MAPS = "maxout", 2
ACTIVATIONS: dict[str, Activation] = {
    "tanh": anp.tanh,
    "relu": lambda h: anp.maximum(h, 0.0),
    "sigmoid": lambda h: 0.5 * (anp.tanh(0.5 * h) + 1.0),
    "identity": lambda h: h,
    "lecun_tanh": lambda h: 1.7159 * anp.tanh(h * (2 / 3)),
    MAXOUT: lambda h: anp.max(anp.reshape(h, (len(h), MAXOUT_MAPS, -1, h.shape[-1])), axis=1),
}
# The variance of a weight at the start, from the numbers of inputs and outputs of its layer.
START_VARIANCES: dict[str, Callable[[int, int], float]] = {
    "fan_in": lambda inputs, outputs: 1 / inputs,
    "he": lambda inputs, outputs: 2 / inputs,
    "xavier": lambda inputs, outputs: 2 / (inputs + outputs),
}


class Group(NamedTuple):
    """Weights of one kind of one layer: `weight`, `bias`, `gain` or `shift`; layers from 0 on."""

    layer: int
    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of weights."""
        return prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """The groups of the flat weights of one model, one after the other."""

    groups: tuple[Group, ...]

    @property
    def size(self) -> int:
        """The number of weights of a model, D."""
        return sum(group.size for group in self.groups)

    def split(self, weights: Array) -> tuple[Array, ...]:
        """Return weights `(R, D)` as arrays `(R, *shape)`, one a group, which are views."""
        ends = np.cumsum([group.size for group in self.groups])[:-1]
        return tuple(
            part.reshape(len(weights), *group.shape)
            for part, group in zip(np.split(weights, ends, axis=1), self.groups)
        )

    def join(self, parts: Sequence[Array]) -> Array:
        """Return arrays `(R, *shape)`, one a group, as flat weights `(R, D)`."""
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


@dataclass(frozen=True)
class Mlp:
    """A fully connected network.

    Attributes:
        hidden: The numbers of units of the hidden layers.
        activation: A name of `ACTIVATIONS`; of `maxout`, a unit is the larger of two linear maps.
        start_scale: The standard deviation of the weights at the start: a number, or a rule of
            `START_VARIANCES`. Biases and shifts start at 0, gains at 1.
        normalize: Of what a hidden layer's values are normalized: nothing (`none`), a unit over the
            points (`batch`), a point over the units (`layer`), or a unit's weights (`weight`).
        place: `before` or `after` the activation.
        epsilon: What is added to variances.
        affine: Whether normalized values have a gain and a shift.

    Raises:
        UserError: A value is out of range.
    """

    hidden: tuple[int, ...]
    activation: str = "tanh"
    start_scale: float | str = "fan_in"
    normalize: str = NONE
    place: str = BEFORE
    epsilon: float = 1e-5
    affine: bool = True

    def __post_init__(self) -> None:
        rule = f"a list of units, such as {spell_setting('model.hidden', [100, 10])}"
        sizes = check_list("model.hidden", self.hidden, rule)
        checked = tuple(check_integer("model.hidden", size, at_least=1) for size in sizes)
        object.__setattr__(self, "hidden", checked)
        check_choice("model.activation", self.activation, tuple(ACTIVATIONS))
        check_choice("model.normalize", self.normalize, NORMALIZATIONS)
        check_choice("model.place", self.place, (BEFORE, AFTER))
        check_number("model.epsilon", self.epsilon, at_least=0)
        check_switch("model.affine", self.affine)
        if isinstance(self.start_scale, str):
            check_choice("model.start_scale", self.start_scale, tuple(START_VARIANCES))
        else:
            check_number("model.start_scale", self.start_scale, above=0)
        if self.normalize == WEIGHT_NORM and self.place == AFTER:
            raise UserError(
                f"{spell_setting('model.place', AFTER)}: normalized weights stand before the "
                f"activation; leave it out, or choose {spell_setting('model.normalize', BATCH)}"
            )

    @property
    def needs_all_points(self) -> bool:
        """Whether the scores of a point depend on the other points."""
        return self.normalize == BATCH

    def layout(self, features: int, scores: int) -> Layout:
        """Return the layout of the weights, for so many features and scores of a point."""
        groups = []
        inputs = features
        for layer, units in enumerate((*self.hidden, scores)):
            is_hidden = layer < len(self.hidden)
            maps = MAXOUT_MAPS if is_hidden and self.activation == MAXOUT else 1
            groups.append(Group(layer, WEIGHT, (maps * units, inputs)))
            groups.append(Group(layer, BIAS, (maps * units, 1)))
            if is_hidden and self.normalize != NONE and self.affine:
                values = units if self.place == AFTER else maps * units
                groups.append(Group(layer, GAIN, (values, 1)))
                # The bias of normalized weights is a shift already.
                if self.normalize != WEIGHT_NORM:
                    groups.append(Group(layer, SHIFT, (values, 1)))
            inputs = units
        return Layout(tuple(groups))

    def start(self, layout: Layout, count: int, rng: np.random.Generator) -> Array:
        """Return the weights of `count` models at the start, `(count, D)`."""
        parts = []
        for group in layout.groups:
            part = np.full((count, *group.shape), 1.0 if group.kind == GAIN else 0.0)
            if group.kind == WEIGHT:
                part = self._deviation(group) * rng.standard_normal(part.shape)
            parts.append(part)
        return layout.join(parts)

    def _deviation(self, group: Group) -> float:
        """Return the standard deviation of a group of weights at the start."""
        if isinstance(self.start_scale, str):
            outputs, inputs = group.shape
            return float(np.sqrt(START_VARIANCES[self.start_scale](inputs, outputs)))
        return float(self.start_scale)

    def scores(
        self,
        layout: Layout,
        parts: Sequence[Any],
        x: Array,
        statistics: Sequence[Any] | None = None,
        collected: list[Any] | None = None,
    ) -> Any:
        """Return the scores `(R, C, p)` of points.

        Args:
            layout: Of the weights.
            parts: The weights, as `Layout.split` returns them; autograd may trace them.
            x: The points, (p, N).
            statistics: Of batch normalization: mean and variance of each hidden layer, in place of
                those of the points; None for the points' own.
            collected: Where mean and variance of each hidden layer are appended.
        """
        groups = {(group.layer, group.kind): part for group, part in zip(layout.groups, parts)}
        activation = ACTIVATIONS[self.activation]
        h: Any = x.T
        for layer in range(len(self.hidden)):
            h = self._multiply(groups, layer, h)
            own = None if statistics is None else statistics[layer]
            if self.place == BEFORE:
                h = self._normalize(groups, layer, h, own, collected)
            h = activation(h)
            if self.place == AFTER:
                h = self._normalize(groups, layer, h, own, collected)
        return self._multiply(groups, len(self.hidden), h)

    def _multiply(self, groups: dict[tuple[int, str], Any], layer: int, h: Any) -> Any:
        """Return the linear map of a layer."""
        weight, bias = groups[layer, WEIGHT], groups[layer, BIAS]
        if self.normalize == WEIGHT_NORM and layer < len(self.hidden):
            lengths = anp.sqrt(anp.sum(weight**2, axis=2, keepdims=True) + self.epsilon)
            weight = weight / lengths
            if self.affine:
                weight = weight * groups[layer, GAIN]
        if h.ndim == 2:  # the points, which all runs share: one product
            rows = anp.reshape(weight, (-1, weight.shape[-1]))
            return anp.reshape(anp.dot(rows, h), (*weight.shape[:2], -1)) + bias
        return anp.matmul(weight, h) + bias

    def _normalize(
        self,
        groups: dict[tuple[int, str], Any],
        layer: int,
        h: Any,
        statistics: tuple[Any, Any] | None,
        collected: list[Any] | None,
    ) -> Any:
        """Return values `(R, H, p)` normalized over points or units."""
        if self.normalize not in (BATCH, LAYER):
            return h
        axis = 2 if self.normalize == BATCH else 1
        if statistics is None:
            mean = anp.mean(h, axis=axis, keepdims=True)
            centred = h - mean
            variance = anp.mean(centred**2, axis=axis, keepdims=True)
        else:
            mean, variance = statistics
            centred = h - mean
        if collected is not None:
            collected.append((mean, variance))
        normalized = centred / anp.sqrt(variance + self.epsilon)
        if self.affine:
            normalized = normalized * groups[layer, GAIN] + groups[layer, SHIFT]
        return normalized


def linear() -> None:
    """Return None: the scores are linear in the weights, which needs no model."""
    return
