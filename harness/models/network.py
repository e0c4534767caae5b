"""Fully connected networks, with normalization between their layers.

Activations are `(R, H, p)`: of R runs, H units and p points, as the scores `(R, C, p)` that costs
take. The weights of a run are one flat array; `Layout` names its groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

from normbench.datasets import values
from normbench.datasets.values import check_choice, check_number
from normbench.models import formulas
from normbench.models.formulas import NEWTON, PCA, TEXTBOOK_RULE, ZCA, Moments

Array = NDArray[Any]
Key = tuple[int, str]  # a layer, and a kind of its numbers
WEIGHT, BIAS, GAIN, SHIFT = "weight", "bias", "gain", "shift"
RUNNING_MEAN, RUNNING_SPREAD = "running_mean", "running_spread"
AFFINE_KINDS = (GAIN, SHIFT)
RUNNING_KINDS = (RUNNING_MEAN, RUNNING_SPREAD)
NONE, BATCH, LAYER, WEIGHT_NORMALIZATION = "none", "batch", "layer", "weight"
WHITENINGS = (PCA, ZCA, NEWTON)
BEFORE, AFTER = "before", "after"
ALL, RUNNING = "all", "running"
FREE, FIXED = "free", "fixed"
SOLVED = "solved"
# The variance of a weight at the start, from the numbers of inputs and outputs of its layer.
START_VARIANCES: dict[str, Callable[[int, int], float]] = {
    "fan_in": lambda inputs, outputs: 1 / inputs,
    "he": lambda inputs, outputs: 2 / inputs,
    "xavier": lambda inputs, outputs: 2 / (inputs + outputs),
}
NETWORK_CHOICES = {  # of the options of a network, beside numbers
    "activation": formulas.ACTIVATIONS,
    "normalize": (NONE, BATCH, LAYER, WEIGHT_NORMALIZATION, *WHITENINGS),
    "place": (BEFORE, AFTER),
    "statistics": (ALL, BATCH, RUNNING),
    "signs": (FREE, FIXED),
}


@dataclass(frozen=True)
class Layout:
    """The groups of the flat weights of one model, one after the other.

    shapes: of each group, by its layer, from 0 on, and its kind, in their order. `weight`, `bias`,
    `gain` and `shift` are descended; `running_mean` and `running_spread` (a variance, or a
    covariance matrix) follow the steps' statistics, and are last.
    """

    shapes: Mapping[Key, tuple[int, ...]]

    @cached_property
    def size(self) -> int:
        """The number of weights of a model, D, running statistics included."""
        return sum(map(prod, self.shapes.values()))

    @cached_property
    def trained(self) -> int:
        """The number of weights that are descended, which are the first ones."""
        return self.size - int(self.mark(*RUNNING_KINDS).sum())

    def mark(self, *kinds: str) -> Array:
        """Return a mask `(D,)` of the weights that are of one of these kinds."""
        is_marked = [kind in kinds for _, kind in self.shapes]
        return np.repeat(is_marked, [prod(shape) for shape in self.shapes.values()])

    def split(self, weights: Array) -> dict[Key, Array]:
        """Return weights `(R, D)` as arrays `(R, *shape)`, views, by layer and kind."""
        arrays, end = dict[Key, Array](), 0
        for key, shape in self.shapes.items():
            first, end = end, end + prod(shape)
            arrays[key] = weights[:, first:end].reshape((len(weights), *shape))
        return arrays

    def join(self, arrays: Mapping[Key, Array]) -> Array:
        """Return arrays `(R, *shape)`, by layer and kind, as flat weights `(R, D)`."""
        return np.concatenate([arrays[key].reshape(len(arrays[key]), -1) for key in self.shapes], 1)


class Forward(NamedTuple):
    """What the layers of a network make of points.

    scores: `(R, C, p)`. moments: of each layer whose values are normalized, the mean and the
    variance (or covariance) by which, by the layer and the kind of running statistic. outputs: the
    values `(R, H, p)` of each layer, normalized where it is.
    """

    scores: Any
    moments: dict[Key, Any]
    outputs: list[Any]


@dataclass(frozen=True)
class Mlp:
    """A fully connected network; without hidden layers its scores are what is normalized.

    Attributes:
        hidden: The numbers of units of the hidden layers.
        activation: A name of `ACTIVATIONS`.
        start_scale: The standard deviation of the weights at the start: a number, or a rule of
            `START_VARIANCES`. Biases and shifts start at 0, gains at 1.
        normalize: Of what a hidden layer's values are normalized: nothing (`none`), a unit over the
            points (`batch`), a point over the units (`layer`), or a unit's weights (`weight`);
            `pca`, `zca` and `newton` whiten the units over the points.
        place: `before` or `after` the activation.
        epsilon: What is added to variances, or `textbook`: 1 is added to a standard deviation below
            0.01, and nothing else.
        affine: Whether normalized values have a gain and a shift; `solved`, without hidden layers,
            for those that fit the targets best in the sense of least squares, at any weights.
        affine_step: The step size of gains and shifts; None for the run's.
        statistics: Whose statistics normalize evaluated points: those of all training points
            (`all`), of the points' own batch (`batch`), or running means over steps (`running`).
        signs: Of eigenvectors under `pca`: `free`, as they are solved, or `fixed`, their largest
            entry positive.
        newton_iterations: The number of Newton's iterations under `newton`.

    Raises:
        UserError: A value is out of range.

    References:
        Ioffe, Szegedy: Batch Normalization (2015); Ba, Kiros, Hinton: Layer Normalization (2016);
        Salimans, Kingma: Weight Normalization (2016); Cai, Li, Shen: A Quantitative Analysis of the
        Effect of Batch Normalization on Gradient Descent (2018); Huang et al.: Decorrelated Batch
        Normalization (2018), Iterative Normalization (2019); Watt, Borhani, Katsaggelos: Machine
        Learning Refined, section 13.6.
    """

    hidden: tuple[int, ...]
    activation: str = "tanh"
    start_scale: float | str = "fan_in"
    normalize: str = NONE
    place: str = BEFORE
    epsilon: float | str = 1e-5
    affine: bool | str = True
    affine_step: float | None = None
    statistics: str = ALL
    signs: str = FREE
    newton_iterations: int = 5

    def __post_init__(self) -> None:
        """Check every field, then the combinations of them."""
        rule = f"a list of units, such as {values.spell_setting('model.hidden', [100, 10])}"
        sizes = values.check_list("model.hidden", self.hidden, rule)
        checked = (values.check_integer("model.hidden", size, at_least=1) for size in sizes)
        object.__setattr__(self, "hidden", tuple(checked))
        for name, choices in NETWORK_CHOICES.items():
            check_choice(f"model.{name}", getattr(self, name), choices)
        values.check_integer("model.newton_iterations", self.newton_iterations, at_least=1)
        if self.affine_step is not None:
            check_number("model.affine_step", self.affine_step, above=0)
        for name, rules in (("epsilon", (TEXTBOOK_RULE,)), ("start_scale", tuple(START_VARIANCES))):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(f"model.{name}", value, rules)
            else:
                check_number(f"model.{name}", value, at_least=0)
        if self.affine != SOLVED:
            values.check_switch("model.affine", self.affine)

    @property
    def needs_all_points(self) -> bool:
        """Whether the scores of a point depend on the other points of its batch."""
        return self.normalize == BATCH or self.normalize in WHITENINGS

    @property
    def has_running_statistics(self) -> bool:
        """Whether running statistics of the steps' points normalize evaluated points."""
        return self.statistics == RUNNING and self.needs_all_points

    @property
    def normalized_layers(self) -> range:
        """The layers that are normalized: the hidden ones, or that of the scores alone."""
        return range(max(1, len(self.hidden)) if self.normalize != NONE else 0)

    def layout(self, features: int, scores: int) -> Layout:
        """Return the layout of the weights.

        Args:
            features: The number of features N.
            scores: The number of scores of a point C.

        Returns:
            Weights and biases layer by layer, gains and shifts beside them; running statistics
            last, since no step rule trains them.
        """
        shapes, running = dict[Key, tuple[int, ...]](), dict[Key, tuple[int, ...]]()
        for layer, (inputs, units) in enumerate(pairwise((features, *self.hidden, scores))):
            shapes |= {(layer, WEIGHT): (units, inputs), (layer, BIAS): (units, 1)}
            # Solved gains and shifts are no weights.
            if layer in self.normalized_layers and self.affine is True:
                shapes[layer, GAIN] = units, 1
                if self.normalize != WEIGHT_NORMALIZATION:  # whose bias is a shift already
                    shapes[layer, SHIFT] = units, 1
            if layer in self.normalized_layers and self.has_running_statistics:
                running[layer, RUNNING_MEAN] = units, 1
                # Of each unit a variance, or the covariance matrix of units that are whitened.
                running[layer, RUNNING_SPREAD] = units, 1 if self.normalize == BATCH else units
        return Layout(shapes | running)

    def start(self, layout: Layout, count: int, rng: np.random.Generator) -> Array:
        """Return the weights of models at the start.

        Args:
            layout: The layout of the weights, of D numbers.
            count: The number of models.
            rng: Draws the weight matrices, normal; biases and shifts are 0, gains 1.

        Returns:
            `(count, D)`.
        """
        arrays = {}
        for (layer, kind), shape in layout.shapes.items():
            array = np.zeros((count, *shape))
            if kind == WEIGHT:
                scale, (outputs, inputs) = self.start_scale, shape
                if isinstance(scale, str):
                    scale = np.sqrt(START_VARIANCES[scale](inputs, outputs))
                array = float(scale) * rng.standard_normal(array.shape)
            elif kind == GAIN:
                array += 1
            elif kind == RUNNING_SPREAD:  # variances 1, or identity matrices
                array += 1 if self.normalize == BATCH else np.eye(shape[0])
            arrays[layer, kind] = array
        return layout.join(arrays)

    def forward(
        self,
        arrays: Mapping[Key, Any],
        x: Array,
        given: Mapping[Key, Any] | None = None,
        targets: Array | None = None,
    ) -> Forward:
        """Return what the layers make of points.

        Args:
            arrays: The weights, as `Layout.split` returns them; autograd may trace them.
            x: The points, (p, N).
            given: The moments, as of `Forward`, by which layers are normalized over points; None
                for those of x. Solved gain and shift are among them.
            targets: The targets of x, (p,), to which solved gain and shift are fitted.
        """
        moments, outputs = dict[Key, Any](), list[Any]()

        def normalize(h: Any, layer: int) -> Any:
            """Return the values of a layer, normalized where it is, and note their moments."""
            if layer not in self.normalized_layers or self.normalize == WEIGHT_NORMALIZATION:
                return h
            mean, spread = [(layer, kind) for kind in RUNNING_KINDS]
            h, used = self._normalize(h, (given[mean], given[spread]) if given else None)
            moments.update(zip((mean, spread), used))
            if self.affine is not True:
                return h
            return h * arrays[layer, GAIN] + arrays[layer, SHIFT]

        h: Any = x.T
        for layer in range(len(self.hidden) + 1):
            weight = arrays[layer, WEIGHT]
            if self.normalize == WEIGHT_NORMALIZATION and layer in self.normalized_layers:
                # The weights of each unit are divided by their length.
                squares = anp.sum(weight**2, axis=2, keepdims=True)
                weight = weight / anp.sqrt(squares + self.epsilon) * arrays.get((layer, GAIN), 1.0)
            h = formulas.multiply(weight, arrays[layer, BIAS], h)
            h = normalize(h, layer) if self.place == BEFORE else h
            h = formulas.activate(self.activation, h) if layer < len(self.hidden) else h
            h = normalize(h, layer) if self.place == AFTER else h
            outputs.append(h)
        if self.affine == SOLVED:
            keys = [(layer, kind) for kind in AFFINE_KINDS]
            solved = [given[key] for key in keys] if given else _solve_affine(h, targets)
            moments.update(zip(keys, solved))
            h = solved[0] * h + solved[1]
        return Forward(h, moments, outputs)

    def scale_invariant_weights(self, layout: Layout) -> list[tuple[int, Array]]:
        """Return the sets of weights that can be multiplied by c > 0 without changing the scores.

        Epsilon is neglected. A set holds the weights of one unit where each unit is normalized by
        itself, and those of a layer where its units are normalized together. Biases are included
        unless the normalization subtracts them or is of the weights alone. Where values are
        normalized after an activation, there are such sets only if the activation scales with its
        inputs.

        Args:
            layout: The layout of the weights.

        Returns:
            For each set, its layer and the indices of its weights in the flat array.
        """
        if self.place == AFTER and self.activation not in formulas.HOMOGENEOUS_ACTIVATIONS:
            return []
        # Before the activation, a normalization over points subtracts the bias of each unit.
        has_bias = self.normalize == LAYER or self.place == AFTER
        positions = layout.split(np.arange(layout.size)[None])  # of one run
        sets = []
        for layer in self.normalized_layers:
            rows = positions[layer, WEIGHT][0]
            if has_bias:
                rows = np.concatenate([rows, positions[layer, BIAS][0]], axis=1)
            if self.normalize == LAYER or self.normalize in WHITENINGS:
                rows = rows.reshape(1, -1)  # all units are normalized together
            sets += [(layer, indices) for indices in rows]
        return sets

    def _normalize(self, h: Any, given: Moments | None) -> tuple[Any, Moments]:
        """Return values `(R, H, p)` normalized over points or units; and by which moments.

        given: the moments; None for the values' own.
        """
        if self.normalize in WHITENINGS:
            mean, covariance = formulas.covariance(h) if given is None else given
            options = self.normalize, self.epsilon, self.signs == FIXED, self.newton_iterations
            matrix = formulas.whitening(covariance, *options)
            return anp.matmul(matrix, h - mean), (mean, covariance)
        if given is None:  # over the units, or over the points
            return formulas.standardize(h, 1 if self.normalize == LAYER else 2, self.epsilon)
        mean, variance = given
        return (h - mean) / formulas.deviation(variance, self.epsilon), given


def _solve_affine(scores: Any, targets: Any) -> Moments:
    """Return the gain and shift `(R, 1, 1)` that fit scores s `(R, 1, p)` to targets y (p,) best.

    They minimize the sum over points of `(gain s + shift - y)^2`: the gain is `cov(s, y) / var(s)`,
    the shift `mean y - gain mean s`.
    """
    mean = anp.mean(scores, axis=2, keepdims=True)
    centred = scores - mean
    gain = anp.sum(centred * targets, axis=2, keepdims=True)
    gain = gain / anp.sum(centred**2, axis=2, keepdims=True)
    return gain, anp.mean(targets) - gain * mean


def linear(normalize: str = NONE, **options: Any) -> Mlp | None:
    """Return the model of linear scores that are normalized over the points; None without that.

    Args:
        normalize: `none`, or `batch`.
        options: Fields of `Mlp`, for `batch` alone.

    Raises:
        UserError: A value is out of range.
    """
    if check_choice("model.normalize", normalize, (NONE, BATCH)) == NONE:
        return None
    return Mlp((), normalize=normalize, **options)
