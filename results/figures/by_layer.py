"""Gradients and values of a network by layer: at the start, and at the end of the best step."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from normbench import names
from normbench.results.figures.base import style, ticks
from normbench.results.figures.base.material import (
    ArraysByLabel,
    SchemeArrays,
    maker_from_arrays,
    with_arrays,
)
from normbench.results.figures.base.style import SCREEN, Shape

PANELS = (names.LAYER_GRADIENT, names.LAYER_NORM, names.LAYER_RANK, names.LAYER_COSINE)
LOG_PANELS = (names.LAYER_GRADIENT, names.LAYER_NORM, names.LAYER_RANK)
LAYER_COLUMNS = 2
LAYERS_NOTE = (
    "solid: at the last iteration; dotted: at the start. Cosine, before and after the other "
    "layers moved: the median over iterations"
)


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: one panel for each quantity, over the layers, a curve for each scheme.

    Args:
        arrays: by label, the quantities of `PANELS` by their keys, (k, L) each, for L layers at k
            iterations, the first at the start and the last at the end.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    with style.figure_style(shape):
        figure, axes = style.panels(
            len(PANELS), shape, title, 0.6, min(LAYER_COLUMNS, shape.columns)
        )
        for axis, metric in zip(axes, PANELS):
            for number, scheme in enumerate(drawn_schemes):
                # The last argument shifts the markers, so that curves that coincide remain visible.
                _draw_curves(axis, metric, scheme.arrays, scheme.look, number / len(drawn_schemes))
            axis.set_title(metric.label, fontsize=shape.font)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            if metric in LOG_PANELS:
                axis.set_yscale("log")
                ticks.set_log_ticks(axis.yaxis)
        style.label_outer_axes(axes, "layer", "")
        # Solid lines whatever the look: in these panels, dotted means the start.
        handles = [
            Line2D([], [], label=scheme.label, **style.marked_curve(scheme.look, 1) | {"ls": "-"})
            for scheme in drawn_schemes
        ]
        style.add_legend(figure, shape, handles)
        style.add_note(figure, shape, LAYERS_NOTE)
    return figure


def _draw_curves(
    axis: Any, metric: names.Metric, scheme_arrays: SchemeArrays, look: style.Look, phase: float
) -> None:
    """Draw a scheme's values over the layers, at the start and at the end.

    The cosine of a layer compares its gradients before and after the step of the other layers, so
    that there is none at the end: the median over the iterations is drawn instead, as one curve.

    Args:
        axis: the panel.
        metric: the quantity of the panel.
        scheme_arrays: the recorded arrays, with the values (k, L) at k iterations.
        look: the look of the scheme.
        phase: the position of the first marker, see `style.marked_curve`.
    """
    values = np.asarray(scheme_arrays[metric.key], dtype=float)
    layers = np.arange(1, values.shape[1] + 1)
    if metric is names.LAYER_COSINE:
        curve = _median_over_iterations(values)
    else:
        curve = values[-1]
        axis.plot(layers, values[0], color=look.color, ls=":", label="_start")
    curve_style = style.marked_curve(look, len(layers), phase) | {"ls": "-"}
    axis.plot(layers, curve, label="_end", **curve_style)


def _median_over_iterations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each layer the median (L,) of its finite values (k, L), NaN if it has none."""
    medians = np.full(values.shape[1], np.nan)
    for layer, column in enumerate(values.T):
        finite = column[np.isfinite(column)]
        if len(finite):
            medians[layer] = np.median(finite)
    return medians


make = maker_from_arrays("by_layer", draw, lambda arrays: len(arrays["iteration"]) > 0)
