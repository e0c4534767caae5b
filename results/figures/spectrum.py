"""Eigenvalues of the covariance and their cumulative share, before and after each scheme."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from normbench.results.figures.base import style, ticks
from normbench.results.figures.base.labels import End, end_labels
from normbench.results.figures.base.material import ArraysByLabel, maker_from_arrays, with_arrays
from normbench.results.figures.base.style import SCREEN, Look, Shape

BEFORE_LOOK = Look("#000000", "", "-")
RIDGE_RATIO = 1e4  # a ridge this factor below the lowest eigenvalue is written, not drawn
EPS = float(np.finfo(np.float64).eps)


def draw(
    arrays: ArraysByLabel, schemes: pd.DataFrame, title: str, *, shape: Shape = SCREEN
) -> Figure:
    """Return the figure: eigenvalues left, cumulative shares right, dead directions shaded.

    Args:
        arrays: by label, the eigenvalues of the covariance, decreasing: `before` (N,) the scheme,
            the same for all schemes, and `after` (M,); `dead` (), the number of directions whose
            eigenvalue before the scheme is only rounding error; `ridge` (), the constant that the
            scheme adds to each eigenvalue, NaN without one.
        schemes: one row for each scheme in order (`label`, `normalizer`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    drawn_schemes = with_arrays(schemes, arrays)
    first_arrays = drawn_schemes[0].arrays
    height = max(0.6 * shape.width / 2, (len(drawn_schemes) + 4) * 1.25 * shape.font / 72)
    columns = 1 if shape.width < 8 else 2
    with style.figure_style(shape):
        figure, axes = style.panels(2, shape, title, height / (shape.width / columns), columns)
        spectra = [("before", first_arrays["before"], BEFORE_LOOK)]
        spectra += [(scheme.label, scheme.arrays["after"], scheme.look) for scheme in drawn_schemes]
        ridges = {float(scheme.arrays["ridge"]) for scheme in drawn_schemes}
        # Equal ridges of several schemes are drawn once.
        _draw_eigenvalues(axes[0], spectra, ridges, shape, height)
        _draw_shares(axes[1], spectra)
        _mark_dead_directions(axes, len(first_arrays["before"]), int(first_arrays["dead"]))
    return figure


def _draw_eigenvalues(
    axis: Any, spectra: Any, ridges: set[float], shape: Shape, height: float
) -> None:
    """Draw the eigenvalues and the ridges.

    Eigenvalues at the level of rounding are drawn at the lower edge of the panel.

    Args:
        axis: the panel.
        spectra: the name, the eigenvalues and the look of each curve.
        ridges: the ridges of the schemes; one far below the eigenvalues is written, not drawn.
        shape: the format of the figure.
        height: inches of the panel with its title, labels and ticks.
    """
    largest = max(float(values.max()) for _, values, _ in spectra) or 1.0
    # The eigenvalues above the level of rounding.
    live_spectra = [values[values > len(values) * EPS * values.max()] for _, values, _ in spectra]
    lowest = min([float(values.min()) for values in live_spectra if len(values)], default=largest)
    # Without NaN, the ridge of a scheme that adds none.
    positive_ridges = sorted(ridge for ridge in ridges if ridge > 0)
    drawn_ridges = [ridge for ridge in positive_ridges if ridge > lowest / RIDGE_RATIO]
    lower_edge = min([lowest / 10, *(ridge / 3 for ridge in drawn_ridges)])  # of the panel
    curve_ends = []
    for number, ((text, values, look), live_values) in enumerate(zip(spectra, live_spectra)):
        _draw_line(axis, np.maximum(values, lower_edge), text, look, number / len(spectra))
        # The label stands at the last eigenvalue above rounding, or at the edge if there is none.
        end_value = float(live_values[-1]) if len(live_values) else lower_edge
        curve_ends.append(End(text, end_value, look))
    axis.set_yscale("log")
    for ridge in positive_ridges:
        ridge_label = f"ridge {ridge:g}"
        if ridge in drawn_ridges:
            axis.axhline(ridge, color="0.3", ls=(0, (1, 2)), lw=1.2, label="_ridge")
        else:
            ridge_label += ", far below"
        text_style = {"va": "bottom", "fontsize": "small", "color": "0.3"}
        transform = axis.get_yaxis_transform()
        axis.text(0.02, max(ridge, lower_edge), ridge_label, transform=transform, **text_style)
    axis.set(ylim=(lower_edge, 5 * largest), ylabel="eigenvalue")
    ticks.set_log_ticks(axis.yaxis)
    end_labels(axis, curve_ends, shape, height)


def _draw_shares(axis: Any, spectra: Any) -> None:
    """Draw the cumulative shares of each spectrum, without names: the other panel has them.

    Args:
        axis: the panel.
        spectra: the name, the eigenvalues (N,) and the look of each curve; the shares are 0 if all
            eigenvalues are.
    """
    for number, (text, values, look) in enumerate(spectra):
        total = float(values.sum())
        shares = np.cumsum(values) / total if total > 0 else np.zeros(len(values))
        _draw_line(axis, shares, text, look, number / len(spectra))
    axis.set(ylim=(0, 1.02), ylabel="cumulative share of its total")


def _draw_line(axis: Any, values: Any, text: str, look: Look, phase: float) -> None:
    """Draw the values of a spectrum by direction.

    Args:
        axis: the panel.
        values: the values (N,).
        text: the label of the curve.
        look: the look of the curve; without a marker, the line is thick.
        phase: the position of the first marker, see `style.marked_curve`.
    """
    curve_style = style.marked_curve(look, len(values), phase) | {
        "lw": None if look.marker else 2.5
    }
    axis.plot(np.arange(1, len(values) + 1), values, label=text, **curve_style)


def _mark_dead_directions(axes: Any, count: int, dead_count: int) -> None:
    """Label the axes and shade the dead directions, those without variance before any scheme.

    Args:
        axes: both panels; the number of dead directions is written in the first.
        count: the number of directions.
        dead_count: how many of these, the last ones, are dead.
    """
    for axis in axes:
        axis.set(xlabel="direction, by decreasing variance", xlim=(1, max(count, 2)))
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        if dead_count:
            # From the middle between the last direction that is not dead and the first dead one.
            axis.axvspan(
                count - dead_count + 0.5, count, color="0.6", alpha=0.3, lw=0, label="_dead"
            )
    if dead_count:
        text_style = {"ha": "right", "va": "top", "color": "0.3"}
        transform = axes[0].get_xaxis_transform()
        axes[0].text(
            count - dead_count, 0.98, f"{dead_count} dead ", transform=transform, **text_style
        )


make = maker_from_arrays("spectrum", draw)
