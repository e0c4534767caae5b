"""The melt figure: the start's excess in layers, and how each step size melts the layers.

Each scheme has two panels. In the left one, each layer is an eigendirection of the Hessian at the
start, the stiffest on top. Its thickness is the excess along the direction; its colour over the
step size is the share that the iterations leave. The right panel shows the same layers over the
iterations at one step size, the thick line of the left panel. Their upper edge is the excess
history. The colours along the thick line are those of the right panel.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import passes
from normbench.results.figures.base import material, style
from normbench.results.figures.base.material import ArraysByLabel
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.melt.layers import SEPARATED_SHARE, Layers, layers_from_arrays
from normbench.results.figures.melt.page import Page
from normbench.results.figures.melt.schemes import (
    TIED_EXCESS,
    Melt,
    choose_melts,
    drawable_schemes,
    merge_equal,
    missing_reasons,
    notes,
    percent,
)
from normbench.results.store.runs import Sweep, which_step

__all__ = ["Layers", "Melt", "draw", "make", "drawable_schemes", "percent", "why_not"]

Array = NDArray[np.float64]
Picture = NDArray[np.uint8]  # matplotlib draws floats three times slower
IMAGE_COLUMNS, IMAGE_ROWS = 600, 480  # pixels of a panel's image
FROZEN_COLOR, MELTED_COLOR, GROWING_COLOR, ROUNDING_COLOR = (
    "#e4dfd5",
    "#08519c",
    "#e2604f",
    "#8c8c8c",
)
MELT_COLOR_MAP = LinearSegmentedColormap.from_list(
    "melt",
    [(0, MELTED_COLOR), (0.1, "#2171b5"), (0.5, "#85bbe0"), (0.9, "#cfdfe9"), (1, FROZEN_COLOR)],
)
GROWING_BYTES, ROUNDING_BYTES = (
    np.multiply(to_rgb(color), 255) for color in (GROWING_COLOR, ROUNDING_COLOR)
)
WHITE_PIXEL = np.full((1, 3), 255, np.uint8)
SEPARATOR_STYLE: Any = {"color": "white", "zorder": 2.5}
HATCH_STYLE: Any = {"edgecolor": "#b23a2b", "linewidth": 0, "hatch": "////"}


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if no scheme can be drawn.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        options: the options of drawing.
    """
    rows = material.schemes(sweep, experiment)
    arrays = material.drawable_arrays(
        sweep,
        rows,
        names.DESCENT_ARRAYS,
        lambda scheme_arrays: layers_from_arrays(scheme_arrays) is not None,
    )
    steps = material.steps(sweep, experiment)
    if not drawable_schemes(arrays, rows, steps):
        return None
    title_parts = [material.title_of_first_repeat(experiment, rows), passes.budget(rows)]
    title = ", ".join(filter(None, title_parts))
    # The costs (S, starts, K + 1): layers are those of the first start.
    starts = max(scheme_arrays[names.TRAIN_COST.key].shape[1] for scheme_arrays in arrays.values())
    title += f", the first of {starts} starts" if starts > 1 else ""
    return draw(arrays, rows, steps, title, shape=options.shape)


def why_not(sweep: Sweep, experiment: str) -> list[str]:
    """Return the reasons why schemes of an experiment have no layers, each reason once.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
    """
    return list(dict.fromkeys(missing_reasons(material.schemes(sweep, experiment), ()).values()))


def draw(
    arrays: ArraysByLabel,
    schemes: pd.DataFrame,
    steps: pd.DataFrame,
    title: str,
    *,
    shape: Shape = SCREEN,
) -> Figure:
    """Return the figure: two panels for each scheme, of six schemes at most.

    Notes name the other schemes.

    Args:
        arrays: by label, the recorded arrays of the descent, see `layers_from_arrays`.
        schemes: one row for each scheme in order (`label`, `verdict`, `tags.step_size`, and
            what `missing_reasons` reads).
        steps: one row for each scheme and step size (`label`, `verdict`, `metrics.step_size`).
        title: the title of the figure.
        shape: the format of the figure.
    """
    all_melts = drawable_schemes(arrays, schemes, steps)
    drawn_melts, omitted_melts = choose_melts(merge_equal(all_melts))
    step_name = which_step(schemes)
    reasons_by_label = missing_reasons(schemes, [melt.label for melt in all_melts])
    note_lines = notes(drawn_melts, omitted_melts, reasons_by_label, step_name)
    with style.figure_style(shape):
        which_size = "the best of the step sizes tried" if step_name == "best" else "its shown step"
        page = Page(shape, f"{title}, each at {which_size}", drawn_melts, step_name, note_lines)
        step_limits = _step_limits(drawn_melts)
        for number, melt in enumerate(drawn_melts):
            step_axis, history_axis = page.panels(number)
            _draw_steps(step_axis, melt, step_limits, page.shape)
            _draw_history(history_axis, melt, page)
        page.finish(_legend_entries(drawn_melts), material.iteration_label(schemes))
    return page.figure


def _step_limits(drawn_melts: Sequence[Melt]) -> tuple[float, float]:
    """Return the decimal logarithms of the limits of the step sizes.

    For exact layers, they reach from where the stiffest layer begins to melt to where all of the
    stiffest layers that together hold 97 percent of the excess diverge. For measured layers, they
    contain the tried step sizes. In both cases they contain the step size of the right panel.
    """
    low, high = [], []
    for melt in drawn_melts:
        layers = melt.layers
        if not layers.exact:
            low.append(layers.step_sizes.min() / 10**layers.half_spacing)
            high.append(layers.step_sizes.max() * 10**layers.half_spacing)
            continue
        # K iterations with step size a leave `(1 - a h)^(2 K)` of a layer of curvature h: about
        # exp(-0.2) at a = 0.1 / (K h). The layer diverges above a = 2 / h.
        is_relevant = np.cumsum(layers.excess_share) <= 0.97
        low += [0.1 / (max(layers.iterations, 1) * layers.curvature[0]), melt.step / 2]
        high += [
            2.5 / layers.curvature[is_relevant].min(initial=layers.curvature[0]),
            melt.step * 2,
        ]
    return float(np.log10(min(low))), float(np.log10(max(high)))


def _draw_steps(axis: Any, melt: Melt, step_limits: tuple[float, float], shape: Shape) -> None:
    """Draw a scheme's layers over the step size, as an image.

    Args:
        axis: the left panel of the scheme.
        melt: the scheme.
        step_limits: the decimal logarithms of the limits of the axis.
        shape: the format of the figure.
    """
    layers, (low, high) = melt.layers, step_limits
    log_steps = np.linspace(low, high, IMAGE_COLUMNS)
    if layers.exact:
        ratios = layers.ratios(10**log_steps)
    else:
        # Each column shows the run of the nearest step size, on a log scale, unless that is farther
        # than half the distance of two step sizes. -1 and NaN are the codes of `_ratio_colors`.
        log_tried = np.log10(layers.step_sizes)
        nearest_run = np.abs(log_steps[:, None] - log_tried).argmin(axis=1)
        run_ratios = layers.ratios(layers.step_sizes)
        run_ratios[melt.decided_by_rounding] = -1
        ratios = run_ratios[nearest_run]
        ratios[np.abs(log_steps - log_tried[nearest_run]) > 1.01 * layers.half_spacing] = np.nan
    layer_tops = np.r_[0, np.cumsum(layers.thickness)]  # (g + 1,), from the top of the panel down
    # The drawn layer of each row of pixels.
    layer_indices = np.searchsorted(
        layer_tops[1:-1], (np.arange(IMAGE_ROWS) + 0.5) / IMAGE_ROWS * layer_tops[-1]
    )
    # (IMAGE_ROWS, IMAGE_COLUMNS, 3).
    pixels = _ratio_colors(ratios.T)[layer_indices]
    axis.imshow(pixels, extent=(low, high, 0, 1), aspect="auto", interpolation="none", zorder=1)
    _hatch_growing(axis, log_steps, 1 - layer_tops / layer_tops[-1], ratios.T > 1 + TIED_EXCESS)
    # White lines between two thick layers.
    for layer in layers.separated:
        axis.axhline(1 - layer_tops[layer + 1], lw=0.35 * shape.line, **SEPARATOR_STYLE)
    if not layers.exact:
        # 2 / curvature, above which the quadratic model of a layer diverges, for thick layers.
        for top, bottom, curvature in zip(layer_tops, layer_tops[1:], layers.curvatures):
            if bottom - top >= 0.01 and low < np.log10(2 / curvature) < high:
                log_limit, line_style = (
                    np.log10(2 / curvature),
                    {"color": "black", "ls": ":", "lw": 0.7 * shape.line},
                )
                axis.plot([log_limit, log_limit], [1 - top, 1 - bottom], zorder=3, **line_style)
    axis.axvline(np.log10(melt.step), color="black", lw=1.5 * shape.line, zorder=4)
    axis.set(xlim=(low, high), ylim=(0, 1))


def _ratio_colors(ratios: Array) -> Picture:
    """Return a colour for each ratio of the excess left to the excess at the start.

    Args:
        ratios: any shape; above 1 the layer grows, a negative number means that rounding decides,
            and NaN that no step size was tried, which is white.

    Returns:
        Red, green and blue from 0 to 255, in a last dimension of their own.
    """
    colors = MELT_COLOR_MAP(np.clip(np.nan_to_num(ratios), 0, 1), bytes=True)[..., :3]
    colors[ratios > 1 + TIED_EXCESS] = GROWING_BYTES
    colors[ratios < 0] = ROUNDING_BYTES
    colors[np.isnan(ratios)] = 255
    return np.asarray(colors)


def _hatch_growing(
    axis: Any, log_steps: Array, layer_edges: Array, grows: NDArray[np.bool_]
) -> None:
    """Hatch growing layers, for readers who cannot tell their colour from others.

    Args:
        axis: the left panel of a scheme.
        log_steps: `(s,)`, the decimal logarithms of evenly spaced step sizes.
        layer_edges: `(g + 1,)`, the heights of the edges of the layers, from the top down.
        grows: `(g, s)`, whether each layer grows at each step size.
    """
    # One rectangle for each block of neighbouring layers that grow, over the step sizes between two
    # changes. A layer that does not grow is added at the top and bottom to find the blocks' ends.
    outlines: list[Path] = []
    padded_grows = np.r_[
        np.zeros((1, grows.shape[1]), bool), grows, np.zeros((1, grows.shape[1]), bool)
    ]
    half_step = (log_steps[1] - log_steps[0]) / 2
    changes = np.flatnonzero(np.any(np.diff(padded_grows, axis=1), axis=0))
    for start, stop in zip(np.r_[0, changes + 1], np.r_[changes, len(log_steps) - 1]):
        # The edges at which a block of growing layers begins and ends, in turn.
        layer_bounds = np.flatnonzero(np.diff(padded_grows[:, start].astype(int)))
        # No bounds, and so no rectangle, where no layer grows.
        for top, bottom in zip(layer_edges[layer_bounds[::2]], layer_edges[layer_bounds[1::2]]):
            left_edge, right_edge = log_steps[start] - half_step, log_steps[stop] + half_step
            outlines.append(
                Path(
                    np.array(
                        [
                            [left_edge, top],
                            [right_edge, top],
                            [right_edge, bottom],
                            [left_edge, bottom],
                            [left_edge, top],
                        ]
                    ),
                    closed=True,
                )
            )
    if outlines:
        compound_path = Path.make_compound_path(*outlines)
        axis.add_patch(PathPatch(compound_path, facecolor="none", zorder=2, **HATCH_STYLE))


def _draw_history(axis: Any, melt: Melt, page: Page) -> None:
    """Draw the layers over the iterations at one step size, and the excess history.

    The colour of a layer is that of its ratio at the end. Without a history of the layers, only the
    excess history is drawn.

    Args:
        axis: the right panel of the scheme.
        melt: the scheme.
        page: the page of the panel.
    """
    layers, excess_history = melt.layers, melt.excess_history
    last_iteration = layers.iterations
    history = layers.history(melt.step)
    if history is not None:
        iterations, layer_shares = history
        # The iteration of each column of pixels, and the layers' shares there (g, IMAGE_COLUMNS).
        image_iterations = (
            np.linspace(0, last_iteration, IMAGE_COLUMNS)
            if last_iteration
            else np.zeros(IMAGE_COLUMNS)
        )
        shares_by_column = np.stack(
            [np.interp(image_iterations, iterations, layer_share) for layer_share in layer_shares.T]
        )
        # The heights of the layers' upper edges, from the flattest layer at the bottom up.
        stacked_shares = np.cumsum(shares_by_column[::-1], axis=0)
        heights = (IMAGE_ROWS - np.arange(IMAGE_ROWS) - 0.5) / IMAGE_ROWS
        end_ratios = layers.ratios(np.array([melt.step]))[0]
        # The last colour is for pixels above all layers.
        layer_colors = np.concatenate([_ratio_colors(end_ratios)[::-1], WHITE_PIXEL])
        # The layer of each pixel, counted from the bottom.
        layer_indices = np.stack(
            [np.searchsorted(stacked_shares[:, n], heights) for n in range(IMAGE_COLUMNS)], axis=1
        )
        pixels = layer_colors[layer_indices]
        axis.imshow(
            pixels, extent=(0, max(last_iteration, 1), 0, 1), aspect="auto", interpolation="none"
        )
        upper_edges = np.cumsum(layer_shares[:, ::-1], axis=1)[:, ::-1]
        for layer in layers.separated:
            # The line between two layers ends where one of them has become thin.
            is_thin = (
                np.minimum(layer_shares[:, layer], layer_shares[:, layer + 1]) < SEPARATED_SHARE
            )
            axis.plot(
                iterations,
                np.where(is_thin, np.nan, upper_edges[:, layer + 1]),
                lw=0.35 * page.shape.line,
                **SEPARATOR_STYLE,
            )
    axis.plot(
        np.arange(last_iteration + 1), excess_history, color="black", lw=page.shape.line, zorder=4
    )
    if last_iteration <= 200:  # of more iterations, dots at early ones would overlap
        dot_iterations = np.unique(np.geomspace(1, max(last_iteration, 1), 24).round().astype(int))
        axis.plot(
            dot_iterations, excess_history[dot_iterations], "k.", ms=2.7 * page.shape.line, zorder=5
        )
    # A history above the start leaves the panel.
    axis.set(xlim=(0, max(last_iteration, 1)), ylim=(0, 1))
    page.write_remaining(axis, float(excess_history[-1]), percent(melt.excess_left))


def _legend_entries(drawn_melts: Sequence[Melt]) -> list[tuple[str, dict[str, Any]]]:
    """Return the legend's label and rectangle style of each colour."""
    entries: list[tuple[str, dict[str, Any]]] = [
        ("too small: frozen", {"facecolor": FROZEN_COLOR}),
        ("melted", {"facecolor": MELTED_COLOR}),
        ("too large: grows", {"facecolor": GROWING_COLOR, **HATCH_STYLE}),
    ]
    if any(melt.decided_by_rounding.any() for melt in drawn_melts):
        entries.append((names.BY_ROUNDING, {"facecolor": ROUNDING_COLOR}))
    return entries
