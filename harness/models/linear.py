"""Scores that are linear in the weights, or are so before they are normalized over the points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp

from normbench.datasets.values import UserError, check_choice, spell_setting
from normbench.models.formulas import AUTOGRAD, Formulas
from normbench.models.layout import Layout
from normbench.models.network import ALL, BATCH, NONE, RUNNING, SOLVED, Array, Mlp, Moments


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

    def _check_combinations(self) -> None:
        """Raise `UserError` for solved gain and shift under running statistics: none run."""
        if self.affine == SOLVED and self.statistics == RUNNING:
            raise UserError(
                f"{spell_setting('model.statistics', RUNNING)}: has no running gain and shift for "
                f"model.affine=solved; use {spell_setting('model.statistics', ALL)}"
            )

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
        """See `Mlp.scores`; targets: (p,), to which solved gain and shift are fitted.

        Solved gain and shift count as the last moments: they are taken from `moments` where these
        are given, and are appended to `collected`.
        """
        scores = super().scores(layout, arrays, x, moments, collected, formulas, outputs=outputs)
        if self.affine != SOLVED:
            return scores
        # Collected last, on the points that fitted them.
        gain, shift = _fit_line(scores, targets) if moments is None else moments[-1]
        if collected is not None:
            collected.append((gain, shift))
        return gain * scores + shift


def _fit_line(scores: Any, targets: Any) -> Moments:
    """Return the gain and shift `(R, 1, 1)` that fit scores `(R, 1, p)` to targets `(p,)` best.

    They minimize the sum over points of `(gain s + shift - y)^2`: the gain is `cov(s, y) / var(s)`,
    the shift `mean y - gain mean s`.
    """
    mean = anp.mean(scores, axis=2, keepdims=True)
    centred = scores - mean
    gain = anp.sum(centred * targets, axis=2, keepdims=True)
    gain = gain / anp.sum(centred**2, axis=2, keepdims=True)
    return gain, anp.mean(targets) - gain * mean


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
        (),
        start_scale=start_scale,
        normalize=normalize,
        epsilon=epsilon,
        affine=affine,
        affine_step=affine_step,
        statistics=statistics,
    )
