"""Fully connected networks, with normalization between their layers.

Activations are `(R, H, p)`: of R runs, H units and p points, as the scores `(R, C, p)` that costs
take. The weights of a run are one flat array; `Layout` names its groups.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from normbench.models.formulas import (
    ACTIVATIONS,
    AUTOGRAD,
    HOMOGENEOUS_ACTIVATIONS,
    NEWTON,
    PCA,
    TEXTBOOK_RULE,
    ZCA,
    Formulas,
)
from normbench.models.layout import (
    BIAS,
    GAIN,
    RUNNING_KINDS,
    RUNNING_MEAN,
    RUNNING_SPREAD,
    SHIFT,
    WEIGHT,
    Group,
    Layout,
)

Array = NDArray[Any]
NONE, BATCH, LAYER, WEIGHT_NORMALIZATION = "none", "batch", "layer", "weight"
WHITENINGS = (PCA, ZCA, NEWTON)
NORMALIZATIONS = (NONE, BATCH, LAYER, WEIGHT_NORMALIZATION, *WHITENINGS)
BEFORE, AFTER = "before", "after"
ALL, RUNNING = "all", "running"
EVALUATED_STATISTICS = (ALL, BATCH, RUNNING)
FREE, FIXED = "free", "fixed"
SOLVED = "solved"
# The variance of a weight at the start, from the numbers of inputs and outputs of its layer.
START_VARIANCES: dict[str, Callable[[int, int], float]] = {
    "fan_in": lambda inputs, outputs: 1 / inputs,
    "he": lambda inputs, outputs: 2 / inputs,
    "xavier": lambda inputs, outputs: 2 / (inputs + outputs),
}
Moments = tuple[Any, Any]  # mean, and variance or covariance


@dataclass(frozen=True)
class Mlp:
    """A fully connected network.

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
        affine: Whether normalized values have a gain and a shift.
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
        Salimans, Kingma: Weight Normalization (2016); Huang et al.: Decorrelated Batch
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
        rule = f"a list of units, such as {spell_setting('model.hidden', [100, 10])}"
        sizes = check_list("model.hidden", self.hidden, rule)
        checked = tuple(check_integer("model.hidden", size, at_least=1) for size in sizes)
        object.__setattr__(self, "hidden", checked)
        check_choice("model.activation", self.activation, ACTIVATIONS)
        check_choice("model.normalize", self.normalize, NORMALIZATIONS)
        check_choice("model.place", self.place, (BEFORE, AFTER))
        check_choice("model.statistics", self.statistics, EVALUATED_STATISTICS)
        check_choice("model.signs", self.signs, (FREE, FIXED))
        check_integer("model.newton_iterations", self.newton_iterations, at_least=1)
        if self.affine_step is not None:
            check_number("model.affine_step", self.affine_step, above=0)
        if isinstance(self.epsilon, str):
            check_choice("model.epsilon", self.epsilon, (TEXTBOOK_RULE,))
        else:
            check_number("model.epsilon", self.epsilon, at_least=0)
        if isinstance(self.start_scale, str):
            check_choice("model.start_scale", self.start_scale, tuple(START_VARIANCES))
        else:
            check_number("model.start_scale", self.start_scale, above=0)
        if self.affine != SOLVED:
            check_switch("model.affine", self.affine)
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Raise `UserError` for values that exclude one another.

        Gains and shifts of hidden layers are not solved for, a normalization needs a layer, weight
        normalization has no place after the activation, and the textbook's rule is for standard
        deviations alone.
        """
        if self.affine == SOLVED:
            raise UserError(
                f"{spell_setting('model.affine', SOLVED)}: gain and shift are solved for where "
                "they make the scores, in model=linear; use model.affine=true"
            )
        if self.normalize != NONE and not self.normalized_layers:
            raise UserError(
                f"{spell_setting('model.normalize', self.normalize)}: is for hidden layers, and "
                f"there is none; choose {spell_setting('model.normalize', NONE)}, or units such as "
                f"{spell_setting('model.hidden', [100])}"
            )
        if self.normalize == WEIGHT_NORMALIZATION and self.place == AFTER:
            raise UserError(
                f"{spell_setting('model.place', AFTER)}: normalized weights stand before the "
                f"activation; leave it out, or choose {spell_setting('model.normalize', BATCH)}"
            )
        if self.epsilon == TEXTBOOK_RULE and self.normalize not in (NONE, BATCH, LAYER):
            raise UserError(
                f"{spell_setting('model.epsilon', TEXTBOOK_RULE)}: is for standard deviations; "
                f"give a number, or choose {spell_setting('model.normalize', BATCH)}"
            )

    @property
    def needs_all_points(self) -> bool:
        """Whether the scores of a point depend on the other points of its batch."""
        return self.normalize == BATCH or self.normalize in WHITENINGS

    @property
    def normalized_layers(self) -> range:
        """The layers that are normalized, which are the first ones."""
        return range(len(self.hidden) if self.normalize != NONE else 0)

    def layout(self, features: int, scores: int) -> Layout:
        """Return the layout of the weights.

        Args:
            features: The number of features N.
            scores: The number of scores of a point C.

        Returns:
            Weights and biases layer by layer, gains and shifts beside them; running statistics
            last, since no step rule trains them.
        """
        groups, running = [], []
        inputs = features
        for layer, units in enumerate((*self.hidden, scores)):
            groups.append(Group(layer, WEIGHT, (units, inputs)))
            groups.append(Group(layer, BIAS, (units, 1)))
            inputs = units
            if layer not in self.normalized_layers:
                continue
            if self.affine is True:  # else there is none, or it is solved for: no weights
                groups.append(Group(layer, GAIN, (units, 1)))
                if self.normalize != WEIGHT_NORMALIZATION:  # whose bias is a shift already
                    groups.append(Group(layer, SHIFT, (units, 1)))
            if self.statistics == RUNNING and self.needs_all_points:
                # Of each unit a variance, or the covariance matrix of units that are whitened.
                spread = (units, 1) if self.normalize == BATCH else (units, units)
                running.append(Group(layer, RUNNING_MEAN, (units, 1)))
                running.append(Group(layer, RUNNING_SPREAD, spread))
        return Layout((*groups, *running))

    def start(self, layout: Layout, count: int, rng: np.random.Generator) -> Array:
        """Return the weights of models at the start.

        Args:
            layout: The layout of the weights, of D numbers.
            count: The number of models.
            rng: Draws the weight matrices, normal; biases and shifts are 0, gains 1.

        Returns:
            `(count, D)`.
        """
        arrays = []
        for group in layout.groups:
            array = np.zeros((count, *group.shape))
            if group.kind == WEIGHT:
                outputs, inputs = group.shape
                scale = self.start_scale
                if isinstance(scale, str):
                    scale = np.sqrt(START_VARIANCES[scale](inputs, outputs))
                array = float(scale) * rng.standard_normal(array.shape)
            elif group.kind == GAIN:
                array += 1
            elif group.kind == RUNNING_SPREAD:  # variances 1, or identity matrices
                array += 1 if self.normalize == BATCH else np.eye(group.shape[0])
            arrays.append(array)
        return layout.join(arrays)

    def scores(
        self,
        layout: Layout,
        arrays: Sequence[Any],
        x: Array,
        moments: Sequence[Moments] | None = None,
        collected: list[Moments] | None = None,
        formulas: Formulas = AUTOGRAD,
        targets: Array | None = None,
        outputs: list[Any] | None = None,
    ) -> Any:
        """Return the scores `(R, C, p)` of points.

        Args:
            layout: The layout of the weights.
            arrays: The weights, as `Layout.split` returns them; autograd may trace them.
            x: The points, (p, N).
            moments: For each layer that is normalized over points, the mean and the variance (or
                covariance) that its values are normalized by; None for the moments of x.
            collected: A list to which the moments of each normalized layer are appended; None for
                none.
            formulas: The implementation of the layers.
            targets: The targets of x, (p,); used by models that solve for gain and shift alone.
            outputs: A list to which the values `(R, H, p)` of each layer are appended, normalized
                where it is; None for none.
        """
        groups = {(group.layer, group.kind): array for group, array in zip(layout.groups, arrays)}
        h: Any = x.T
        for layer in range(len(self.hidden) + 1):
            h = self._multiply(groups, layer, h, formulas)
            normalize = partial(self._normalize, groups, layer, moments, collected, formulas)
            h = normalize(h) if self.place == BEFORE else h
            h = formulas.activate(self.activation, h) if layer < len(self.hidden) else h
            h = normalize(h) if self.place == AFTER else h
            if outputs is not None:
                outputs.append(h)
        return h

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
        if self.place == AFTER and self.activation not in HOMOGENEOUS_ACTIVATIONS:
            return []
        # Before the activation, a normalization over points subtracts the bias of each unit.
        has_bias = self.normalize == LAYER or self.place == AFTER
        positions = layout.positions()
        sets = []
        for layer in self.normalized_layers:
            rows = positions[layer, WEIGHT]
            if has_bias:
                rows = np.concatenate([rows, positions[layer, BIAS]], axis=1)
            if self.normalize == LAYER or self.normalize in WHITENINGS:
                rows = rows.reshape(1, -1)  # all units are normalized together
            sets += [(layer, indices) for indices in rows]
        return sets

    def running_moments(self, layout: Layout, arrays: Sequence[Any]) -> list[Moments]:
        """Return the running moments that are among the weights.

        Args:
            layout: The layout of the weights.
            arrays: The groups of the layout, in its order, each `(R, *shape)`.

        Returns:
            A mean and a spread for each normalized layer; empty where none are kept.
        """
        running = [a for group, a in zip(layout.groups, arrays) if group.kind in RUNNING_KINDS]
        return list(zip(running[::2], running[1::2]))  # a mean, then a spread

    def _multiply(
        self, groups: dict[tuple[int, str], Any], layer: int, h: Any, formulas: Formulas
    ) -> Any:
        """Return the linear map of a layer, `(R, H', p)`; its weights are normalized if asked for.

        Args:
            groups: The weights by layer and kind, each `(R, *shape)`.
            layer: The number of the layer.
            h: The values of the layer before, `(R, H, p)`; for the first layer the points `(N, p)`.
            formulas: The implementation.
        """
        weight = groups[layer, WEIGHT]
        if self.normalize == WEIGHT_NORMALIZATION and layer in self.normalized_layers:
            # The weights of each unit are divided by their length.
            squares = anp.sum(weight**2, axis=2, keepdims=True)
            weight = weight / anp.sqrt(squares + self.epsilon)
            if self.affine:
                weight = weight * groups[layer, GAIN]
        return formulas.multiply(weight, groups[layer, BIAS], h)

    def _normalize(
        self,
        groups: dict[tuple[int, str], Any],
        layer: int,
        moments: Sequence[Moments] | None,
        collected: list[Moments] | None,
        formulas: Formulas,
        h: Any,
    ) -> Any:
        """Return values normalized over points or units; unchanged in a layer that is not.

        Args:
            groups: The weights by layer and kind, each `(R, *shape)`.
            layer: The number of the layer.
            moments: What the values of each layer are normalized by; None for their own moments.
            collected: A list to which the values' own moments are appended; None for none.
            formulas: The implementation.
            h: The values of the layer, `(R, H, p)`.
        """
        if layer not in self.normalized_layers or self.normalize == WEIGHT_NORMALIZATION:
            return h
        affine = (groups[layer, GAIN], groups[layer, SHIFT]) if self.affine is True else ()
        given = moments[layer] if moments is not None else None
        if self.normalize in WHITENINGS:
            mean, covariance = formulas.covariance(h) if given is None else given
            if collected is not None:
                collected.append((mean, covariance))
            options = self.normalize, self.epsilon, self.signs == FIXED, self.newton_iterations
            whitened = anp.matmul(formulas.whitening(covariance, *options), h - mean)
            return whitened * affine[0] + affine[1] if affine else whitened
        axis = 1 if self.normalize == LAYER else 2  # over the units, or over the points
        if collected is not None:
            collected.append(formulas.moments(h, axis))
        if given is None:
            return formulas.standardize(h, axis, self.epsilon, affine)
        return formulas.rescale(h, *given, self.epsilon, affine)
