"""Scores that are linear in the weights, or are so before they are normalized over the points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp

from normbench.datasets.values import check_choice
from normbench.models.formulas import TANH, Moments
from normbench.models.network import ALL, BATCH, BEFORE, NONE, RUNNING, SOLVED, Forward, Layout, Mlp


@dataclass(frozen=True)
class NormalizedScores(Mlp):
    """A model without hidden layers whose scores are normalized over the points.

    The scores are `gain (s - mean s) / sqrt(var s + epsilon) + shift` with `s = b + x w`, where `b`
    changes nothing. affine: `solved` takes the gain and the shift that fit the targets best in the
    sense of least squares, at any weights.

    References:
        Cai, Li, Shen: A Quantitative Analysis of the Effect of Batch Normalization on Gradient
        Descent (2018).
    """

    @property
    def normalized_layers(self) -> range:
        """The layer of the scores."""
        return range(1)

    def _exclusions(self) -> list[tuple[bool, str]]:
        """See `Mlp._exclusions`: no solved gain and shift run."""
        rule = (
            "model.statistics=running: has no running gain and shift for model.affine=solved; use "
            "model.statistics=all"
        )
        return [(self.affine == SOLVED and self.statistics == RUNNING, rule)]

    def forward(
        self,
        layout: Layout,
        arrays: Sequence[Any],
        x: Any,
        given: Sequence[Moments] | None = None,
        targets: Any = None,
    ) -> Forward:
        """See `Mlp.forward`; targets: (p,), to which solved gain and shift are fitted.

        Solved gain and shift `(R, 1, 1)` count as the last moments. They minimize the sum over
        points of `(gain s + shift - y)^2`: the gain is `cov(s, y) / var(s)`, the shift `mean y -
        gain mean s`.
        """
        passed = super().forward(layout, arrays, x, given, targets)
        if self.affine != SOLVED:
            return passed
        if given is not None:  # collected last, on the points that fitted them
            gain, shift = given[-1]
        else:
            mean = anp.mean(passed.scores, axis=2, keepdims=True)
            centred = passed.scores - mean
            gain = anp.sum(centred * targets, axis=2, keepdims=True)
            gain = gain / anp.sum(centred**2, axis=2, keepdims=True)
            shift = anp.mean(targets) - gain * mean
        moments = [*passed.moments, (gain, shift)]
        return passed._replace(scores=gain * passed.scores + shift, moments=moments)


def linear(
    normalize: str = NONE,
    start_scale: float | str = "fan_in",
    epsilon: float | str = 1e-5,
    affine: bool | str = True,
    affine_step: float | None = None,
    statistics: str = ALL,
) -> NormalizedScores | None:
    """Return the model of normalized scores; None for scores that are linear in the weights.

    All arguments but the first are of normalized scores alone.

    Args:
        normalize: `none`, or `batch`: scores are normalized over the points.
        start_scale: See `Mlp`.
        epsilon: See `Mlp`.
        affine: See `NormalizedScores`.
        affine_step: See `Mlp`.
        statistics: See `Mlp`.

    Returns:
        The model; None under `none`, where the project's linear `Problem` is used without a model.

    Raises:
        UserError: A value is out of range.
    """
    if check_choice("model.normalize", normalize, (NONE, BATCH)) == NONE:
        return None
    return NormalizedScores(
        (), TANH, start_scale, normalize, BEFORE, epsilon, affine, affine_step, statistics
    )
