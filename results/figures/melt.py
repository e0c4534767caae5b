"""The melt figure: the start's excess in layers, and how each step size melts the layers.

Each scheme has two panels. In the left one, each layer is an eigendirection of the Hessian at the
start, the stiffest on top. Its thickness is the excess along the direction; its colour over the
step size is the share that the iterations leave. The right panel shows the same layers over the
iterations at one step size, the thick line of the left panel. Their upper edge is the excess
history. The colours along the thick line are those of the right panel.
"""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import passes
from normbench.results.compare.reached import start_ratio
from normbench.results.figures.base import material, style, ticks
from normbench.results.figures.base.material import ArraysByLabel
from normbench.results.figures.base.style import SCREEN, Shape
from normbench.results.figures.layers import (
    SEPARATED_SHARE,
    THIN_SHARE,
    Layers,
    layers_from_arrays,
)
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep, which_step

Array = NDArray[np.float64]
Picture = NDArray[np.uint8]  # matplotlib draws floats three times slower
MAX_MELT_SCHEMES = 6  # schemes in a figure
PEAK_RATIO = 1.02  # times the start's excess: higher peaks of a history are mentioned
TIED_EXCESS = 1e-6  # of the start's excess: schemes that differ by less are drawn once
NO_LAYERS_REASON = "recorded without layers (reuse=false descends again)"
IMAGE_COLUMNS, IMAGE_ROWS = 600, 480  # pixels of a panel's image
FROZEN_COLOR, MELTED_COLOR = "#e4dfd5", "#08519c"
GROWING_COLOR, ROUNDING_COLOR = "#e2604f", "#8c8c8c"
MELT_COLOR_MAP = LinearSegmentedColormap.from_list(
    "melt",
    [(0, MELTED_COLOR), (0.1, "#2171b5"), (0.5, "#85bbe0"), (0.9, "#cfdfe9"), (1, FROZEN_COLOR)],
)
SEPARATOR_STYLE: Any = {"color": "white", "zorder": 2.5}
HATCH_STYLE: Any = {"edgecolor": "#b23a2b", "linewidth": 0, "hatch": "////"}
TITLE = (
    "One step size must melt every layer of the cost\n"
    "left, WHY: one step size (thick line) must serve every layer; "
    "right, WHAT: the excess cost melts, layer by layer"
)
MAX_PANELS_HEIGHT = 7.0  # inches of all panels, unless they have their smallest height
MIN_PANEL_HEIGHT = 0.35  # inches


class Melt(NamedTuple):
    """A scheme that the melt figure can draw, because its layers and its step size are known.

    Attributes:
        label: the scheme's label.
        row: the scheme's row.
        layers: the scheme's layers.
        step: the step size of the right panel, the best or a chosen one; one of those tried.
        decided_by_rounding: `(S,)`, for each tried step size whether rounding decides how its run
            ends.
        start_ratio: the excess of the first start as a multiple of that of zero weights.
    """

    label: str
    row: Mapping[Any, Any]
    layers: Layers
    step: float
    decided_by_rounding: NDArray[np.bool_]
    start_ratio: float = 1.0

    @property
    def excess_left(self) -> float:
        """The excess at the end of the right panel, as a share of that of zero weights."""
        return float(self.excess_history[-1]) * self.start_ratio

    @property
    def excess_history(self) -> Array:
        """The excess history at the step size of the right panel, `(K + 1,)`."""
        run = self.layers.run_index(self.step)
        assert run is not None  # see `drawable_schemes`
        return self.layers.excess[run]

    @property
    def stable_profile(self) -> Array:
        """The final excess over step sizes, without step sizes whose end rounding decides."""
        # Exact layers have a profile by the closed form, and not at the tried step sizes.
        profile: Array = self.layers.profile
        return profile if self.layers.exact else profile[~self.decided_by_rounding]


@material.figure(
    "melt",
    why_not=lambda sweep, experiment: list(
        dict.fromkeys(missing_reasons(material.schemes(sweep, experiment), ()).values())
    ),
)
def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of an experiment; None if no scheme can be drawn."""
    rows, steps = material.schemes(sweep, experiment), material.steps(sweep, experiment)
    arrays = material.drawable_arrays(
        sweep,
        rows,
        names.DESCENT_ARRAYS,
        lambda scheme_arrays: layers_from_arrays(scheme_arrays) is not None,
    )
    if not drawable_schemes(arrays, rows, steps):
        return None
    title_parts = [material.title_of_first_repeat(experiment, rows), passes.budget(rows)]
    # The costs (S, starts, K + 1): layers are those of the first start.
    starts = max(scheme_arrays[names.TRAIN_COST.key].shape[1] for scheme_arrays in arrays.values())
    title_parts += [f"the first of {starts} starts"] if starts > 1 else []
    title = ", ".join(filter(None, title_parts))
    return draw(arrays, rows, steps, title, shape=options.shape)


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
    melts, omitted_melts = choose_melts(merge_equal(all_melts))
    step_name = which_step(schemes)
    which_size = "the best of the step sizes tried" if step_name == "best" else "its shown step"
    reasons = missing_reasons(schemes, [melt.label for melt in all_melts])
    letters = int(shape.width * 72 / (0.5 * shape.font))  # that fit side by side
    sentences = [fill(summary_sentence(melt, step_name), letters - 12) for melt in melts]
    line_height = 1.3 * shape.font / 72
    text_height = (max(sentence.count("\n") for sentence in sentences) + 3.5) * line_height
    # The panels share a height, up to one that depends on the width.
    smallest = MIN_PANEL_HEIGHT * max(1.0, shape.font / 10)  # the ticks' labels stand apart
    panel_height = max(smallest, MAX_PANELS_HEIGHT / len(melts) - text_height)
    panel_height = min(panel_height, 0.17 * shape.width + 0.4)
    with style.figure_style(shape):
        figure, axes = style.panels(
            2 * len(melts),
            shape,
            "",
            (panel_height + text_height) / (shape.width / 2),
            2,
            sharex="col",
            sharey=True,
            width_ratios=(0.6, 0.4),
        )
        heading = "\n".join(fill(line, letters - 4) for line in TITLE.split("\n"))
        subtitle = style.escape_dollars(fill(f"{title}, each at {which_size}", letters - 4))
        figure.suptitle(f"{heading}\n{subtitle}", fontsize=shape.font)
        figure.set_figheight(figure.get_figheight() + heading.count("\n") * line_height)
        step_limits = _step_limits(melts)
        for step_axis, history_axis, melt, sentence in zip(axes[::2], axes[1::2], melts, sentences):
            _draw_steps(step_axis, melt, step_limits, shape)
            _draw_history(history_axis, melt, shape)
            _write_remaining(history_axis, melt, shape.font / (panel_height * 72))
            # The sentence stands between the label and the panel, across both panels.
            label = style.escape_dollars(melt.label) + "\n" * (sentence.count("\n") + 1)
            step_axis.set_title(label, loc="left", weight="bold")
            place: Any = {"xytext": (0, 4), "textcoords": "offset points", "va": "bottom"}
            step_axis.annotate(
                sentence, (0, 1), xycoords="axes fraction", fontsize="small", color="0.2", **place
            ).set_in_layout(False)
        for axis in axes:
            axis.grid(False)
            axis.tick_params(labelsize="small")
        for history_axis in axes[1::2]:
            history_axis.tick_params(left=False)
        _set_ticks(axes[0], axes[1], shape)
        axes[-2].set_xlabel("step size")
        axes[-1].set_xlabel(material.iteration_label(schemes))
        figure.supylabel("share of the excess cost", fontsize="medium")
        style.add_legend(figure, shape, _legend_handles(melts))
        note = "\n".join(notes(melts, omitted_melts, reasons, step_name))
        style.add_note(figure, shape, note, is_prose=True)
    return figure


def _set_ticks(step_axis: Any, history_axis: Any, shape: Shape) -> None:
    """Set the ticks of the axes, which the panels of a column share."""
    # The axis has decimal logarithms of step sizes, because it shows an image.
    low, high = step_axis.get_xlim()
    max_ticks = int(0.5 * shape.width * 72 / (5.5 * shape.font))  # labels side by side
    tick_values = ticks.log_tick_values(10**low, 10**high, max_ticks)
    step_axis.set_xticks(np.log10(tick_values), [ticks.power_text(tick) for tick in tick_values])
    step_axis.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    ticks.set_even_ticks(history_axis.xaxis, 4 if shape.width > 5 else 2)


def _step_limits(melts: Sequence[Melt]) -> tuple[float, float]:
    """Return the decimal logarithms of the limits of the step sizes.

    For exact layers, they reach from where the stiffest layer begins to melt to where all of the
    stiffest layers that together hold 97 percent of the excess diverge. For measured layers, they
    contain the tried step sizes. In both cases they contain the step size of the right panel.
    """
    low, high = [], []
    for melt in melts:
        layers = melt.layers
        if not layers.exact:
            low.append(layers.step_sizes.min() / 10**layers.half_spacing)
            high.append(layers.step_sizes.max() * 10**layers.half_spacing)
            continue
        # K iterations with step size a leave `(1 - a h)^(2 K)` of a layer of curvature h: about
        # exp(-0.2) at a = 0.1 / (K h). The layer diverges above a = 2 / h.
        is_relevant = np.cumsum(layers.excess_share) <= 0.97
        flattest = layers.curvature[is_relevant].min(initial=layers.curvature[0])
        low += [0.1 / (max(layers.iterations, 1) * layers.curvature[0]), melt.step / 2]
        high += [2.5 / flattest, melt.step * 2]
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
    row_middles = (np.arange(IMAGE_ROWS) + 0.5) / IMAGE_ROWS * layer_tops[-1]
    layer_indices = np.searchsorted(layer_tops[1:-1], row_middles)
    # (IMAGE_ROWS, IMAGE_COLUMNS, 3).
    pixels = _ratio_colors(ratios.T)[layer_indices]
    axis.imshow(pixels, extent=(low, high, 0, 1), aspect="auto", interpolation="none", zorder=1)
    _hatch_growing(axis, log_steps, 1 - layer_tops / layer_tops[-1], ratios.T > 1 + TIED_EXCESS)
    # White lines between two thick layers.
    for layer in layers.separated:
        axis.axhline(1 - layer_tops[layer + 1], lw=0.35 * shape.line, **SEPARATOR_STYLE)
    if not layers.exact:
        # 2 / curvature, above which the quadratic model of a layer diverges, for thick layers.
        limit_style: Any = {"color": "black", "ls": ":", "lw": 0.7 * shape.line, "zorder": 3}
        for top, bottom, curvature in zip(layer_tops, layer_tops[1:], layers.curvatures):
            if bottom - top >= 0.01 and low < np.log10(2 / curvature) < high:
                axis.plot([np.log10(2 / curvature)] * 2, [1 - top, 1 - bottom], **limit_style)
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
    colors[ratios > 1 + TIED_EXCESS] = np.multiply(to_rgb(GROWING_COLOR), 255)
    colors[ratios < 0] = np.multiply(to_rgb(ROUNDING_COLOR), 255)
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
    spacing = log_steps[1] - log_steps[0]
    for layer_grows, top, bottom in zip(grows, layer_edges, layer_edges[1:]):
        # The indices at which a range of step sizes begins, and after which it ends, in turn.
        changes = np.flatnonzero(np.diff(np.r_[False, layer_grows, False].astype(int)))
        ranges = [
            (log_steps[start] - spacing / 2, (stop - start) * spacing)
            for start, stop in changes.reshape(-1, 2)
        ]
        if ranges:
            height = (bottom, top - bottom)
            axis.broken_barh(ranges, height, facecolor="none", zorder=2, **HATCH_STYLE)


def _draw_history(axis: Any, melt: Melt, shape: Shape) -> None:
    """Draw the layers over the iterations at one step size, and the excess history.

    The colour of a layer is that of its ratio at the end. Without a history of the layers, only the
    excess history is drawn.

    Args:
        axis: the right panel of the scheme.
        melt: the scheme.
        shape: the format of the figure.
    """
    layers, excess_history = melt.layers, melt.excess_history
    last_iteration = layers.iterations
    history = layers.history(melt.step)
    if history is not None:
        iterations, layer_shares = history
        # The iteration of each column of pixels, and the layers' shares there (g, IMAGE_COLUMNS).
        image_iterations = np.linspace(0, last_iteration, IMAGE_COLUMNS)
        shares_by_column = np.stack(
            [np.interp(image_iterations, iterations, layer_share) for layer_share in layer_shares.T]
        )
        # The heights of the layers' upper edges, from the flattest layer at the bottom up.
        stacked_shares = np.cumsum(shares_by_column[::-1], axis=0)
        heights = (IMAGE_ROWS - np.arange(IMAGE_ROWS) - 0.5) / IMAGE_ROWS
        end_ratios = layers.ratios(np.array([melt.step]))[0]
        # The last colour, white, is for pixels above all layers.
        layer_colors = _ratio_colors(np.r_[end_ratios[::-1], np.nan])
        # The layer of each pixel, counted from the bottom.
        layer_indices = np.stack(
            [np.searchsorted(column, heights) for column in stacked_shares.T], axis=1
        )
        extent = (0, max(last_iteration, 1), 0, 1)
        pixels = layer_colors[layer_indices]
        axis.imshow(pixels, extent=extent, aspect="auto", interpolation="none")
        upper_edges = np.cumsum(layer_shares[:, ::-1], axis=1)[:, ::-1]
        for layer in layers.separated:
            # The line between two layers ends where one of them has become thin.
            is_thin = layer_shares[:, layer : layer + 2].min(axis=1) < SEPARATED_SHARE
            edge = np.where(is_thin, np.nan, upper_edges[:, layer + 1])
            axis.plot(iterations, edge, lw=0.35 * shape.line, **SEPARATOR_STYLE)
    all_iterations = np.arange(last_iteration + 1)
    axis.plot(all_iterations, excess_history, color="black", lw=shape.line, zorder=4)
    if last_iteration <= 200:  # of more iterations, dots at early ones would overlap
        dots = np.unique(np.geomspace(1, max(last_iteration, 1), 24).round().astype(int))
        axis.plot(dots, excess_history[dots], "k.", ms=2.7 * shape.line, zorder=5)
    # A history above the start leaves the panel.
    axis.set(xlim=(0, max(last_iteration, 1)), ylim=(0, 1))


def _write_remaining(axis: Any, melt: Melt, half_text: float) -> None:
    """Write the share of the excess left, and the word `left`, beside a right panel.

    The number stands at the height of the share. The word is below the number in the upper half of
    the panel, above it in the lower half. `half_text` is half the number's height, as a share of
    the panel's.
    """
    share = np.nan_to_num(melt.excess_history[-1], posinf=1.0)
    half_text = min(0.5, half_text)
    height, font = float(np.clip(share, half_text, 1 - half_text)), axis.xaxis.label.get_size()
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "center"}
    number_style: Any = {"weight": "bold", "fontsize": 1.4 * font}
    axis.annotate(percent(melt.excess_left), (1, height), (0.5 * font, 0), **place, **number_style)
    offset = -1.5 * font if height > 0.5 else 1.5 * font
    axis.annotate("left", (1, height), (0.5 * font, offset), fontsize=0.9 * font, **place)


def _legend_handles(melts: Sequence[Melt]) -> list[Patch]:
    """Return the legend's handle of each colour."""
    handles = [
        Patch(label="too small: frozen", facecolor=FROZEN_COLOR),
        Patch(label="melted", facecolor=MELTED_COLOR),
        Patch(label="too large: grows", facecolor=GROWING_COLOR, **HATCH_STYLE),
    ]
    if any(melt.decided_by_rounding.any() for melt in melts):
        handles.append(Patch(label=names.BY_ROUNDING, facecolor=ROUNDING_COLOR))
    return handles


# The schemes: their selection, the sentence on each, the notes on others.


def drawable_schemes(
    arrays: ArraysByLabel, schemes: pd.DataFrame, steps: pd.DataFrame
) -> list[Melt]:
    """Return the schemes that can be drawn, in the order of their rows.

    A scheme can be drawn if its layers are recorded and its step size is one of those tried.

    Args:
        arrays: by label, the recorded arrays of the descent, see `layers_from_arrays`.
        schemes: one row for each scheme (`label`, `tags.step_size`).
        steps: one row for each scheme and step size (`label`, `verdict`, `metrics.step_size`).
    """
    drawable_melts = []
    for row in as_rows(schemes):
        layers = layers_from_arrays(arrays[row["label"]]) if row["label"] in arrays else None
        step = number_in(row, names.STEP_TAG.column)
        # `run_index` is None also for NaN, a scheme without a best step size.
        if layers is None or layers.run_index(step) is None:
            continue
        scheme_steps = steps[steps["label"] == row["label"]]
        is_undecided = scheme_steps["verdict"] == names.BY_ROUNDING
        undecided_sizes = scheme_steps.loc[is_undecided, names.STEP_SIZE.column].astype(float)
        rounding_indices = {*map(layers.run_index, undecided_sizes)}
        decided_by_rounding = np.array([n in rounding_indices for n in range(len(layers.excess))])
        ratio = start_ratio(row, arrays[row["label"]])
        drawable_melts.append(Melt(row["label"], row, layers, step, decided_by_rounding, ratio))
    return drawable_melts


def missing_reasons(schemes: pd.DataFrame, drawn_labels: Sequence[str]) -> dict[str, str]:
    """Return the reason why each scheme without a drawing has none, by its label.

    Args:
        schemes: the rows of all schemes.
        drawn_labels: the labels of the schemes that are drawn.
    """
    missing = [row for row in as_rows(schemes) if row["label"] not in drawn_labels]
    return {row["label"]: _missing_reason(row) for row in missing}


def _missing_reason(row: Mapping[Any, Any]) -> str:
    """Return the reason why a scheme has no drawing, the most specific that is recorded.

    Args:
        row: the row of the scheme.
    """
    recorded_reason = row.get(names.NO_LAYERS.column)
    if row["verdict"] == names.DIVERGED:
        return "it diverged at every step size"
    if isinstance(recorded_reason, str) and recorded_reason:
        return recorded_reason
    if pd.isna(row.get(names.STEP_TAG.column)):
        return "it has no best step size"
    return "theory=none" if row.get(names.setting("theory")) == "none" else NO_LAYERS_REASON


def merge_equal(all_melts: Sequence[Melt]) -> list[Melt]:
    """Return the first scheme of each distinct drawing, labelled `first = second = ...`."""
    groups = style.group_equal(all_melts, _look_equal)
    return [group[0]._replace(label=" = ".join(melt.label for melt in group)) for group in groups]


def _look_equal(first_melt: Melt, second_melt: Melt) -> bool:
    """Return whether two schemes have equal drawings, except where rounding decides the end.

    Compared are the step size, its excess history, the final excess over step sizes, and the step
    sizes whose end rounding decides.
    """
    tolerances: Any = {"rtol": 0, "atol": TIED_EXCESS, "equal_nan": True}
    array_pairs = (
        (first_melt.excess_history, second_melt.excess_history),
        (first_melt.stable_profile, second_melt.stable_profile),
    )
    return (
        first_melt.step == second_melt.step
        and np.array_equal(first_melt.decided_by_rounding, second_melt.decided_by_rounding)
        and all(a.shape == b.shape and np.allclose(a, b, **tolerances) for a, b in array_pairs)
    )


def choose_melts(all_melts: Sequence[Melt]) -> tuple[list[Melt], list[Melt]]:
    """Return the schemes that are drawn, `MAX_MELT_SCHEMES` at most, and those that are left out.

    The first scheme is drawn, because the others are compared with it. The others are chosen at
    even distances in the order of the excess left, so that the best and the worst are drawn.

    Args:
        all_melts: the schemes, in order.

    Returns:
        Both lists, in the order of the schemes.
    """
    if len(all_melts) <= MAX_MELT_SCHEMES:
        return list(all_melts), []
    others = sorted(range(1, len(all_melts)), key=lambda index: all_melts[index].excess_left)
    # One scheme fewer at evenly spaced ranks, because the first scheme is drawn anyway.
    ranks = np.linspace(0, len(others) - 1, MAX_MELT_SCHEMES - 1).round().astype(int)
    chosen = {0, *(others[rank] for rank in ranks)}
    drawn_melts = [melt for index, melt in enumerate(all_melts) if index in chosen]
    return drawn_melts, [melt for index, melt in enumerate(all_melts) if index not in chosen]


def percent(share: float) -> str:
    """Return a share of the excess as text: 67 %, 1.9 %, <0.01 %; `gone off` if not finite.

    A share below `TIED_EXCESS` is 0 %.
    """
    if not np.isfinite(share):
        return "gone off"
    if share < TIED_EXCESS:
        return "0 %"
    if share >= 100:  # 10,000 % and more: two digits and a power of ten
        return f"{ticks.short_text(100 * float(f'{share:.2g}'))} %"
    if share < 1e-4:
        return "<0.01 %"
    digits = f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}"
    return f"{digits} %"


def _short_step(value: float) -> str:
    """Return a step size with two digits as text: 6·10⁻⁷, 10⁻⁵, 0.075."""
    return ticks.short_text(float(f"{value:.2g}")).removeprefix("1·")


def summary_sentence(melt: Melt, step_name: str) -> str:
    """Return the sentence above a scheme's panels.

    It tells up to which step size the scheme converges or ends below its start, and how many layers
    the step size of the right panel removes.

    Args:
        melt: the scheme.
        step_name: the step size of the right panel, `best` or `shown`.
    """
    layers = melt.layers
    layer_count, gone_count = len(layers.distinct_offsets), layers.count_gone(melt.step)
    end_text = (
        f"at the {step_name} step, {_short_step(melt.step)}, {gone_count} "
        f"of {layer_count} layer{'s' * (layer_count != 1)} "
        f"{'is' if gone_count == 1 else 'are'} gone"
    )
    # A history that rises above its start is mentioned, if not by rounding alone.
    peak_excess = float(np.nanmax(melt.excess_history))
    if peak_excess > PEAK_RATIO:
        end_text += f", after a peak of {percent(peak_excess * melt.start_ratio)}"
    if layers.exact:
        step_limit = 2 / layers.curvature[0]
        stiffest_share = np.add.reduceat(layers.excess_share, layers.distinct_offsets)[0]
        # A thick layer is visible: only a thin one needs to be named as the cause.
        cause = f" because of a layer of {percent(stiffest_share)}" if stiffest_share < 0.2 else ""
        return f"diverges above 2/L = {_short_step(step_limit)}{cause}; {end_text}"
    # The runs whose end rounding does not decide, by increasing step size.
    ranked_runs = np.flatnonzero(~melt.decided_by_rounding)
    ranked_runs = ranked_runs[np.argsort(layers.step_sizes[ranked_runs])]
    ends_below = layers.excess[ranked_runs, -1] <= 1
    if ends_below.all() and not melt.decided_by_rounding.any():
        return f"ends below its start at every step size tried; {end_text}"
    # The number of runs before the first one that ends above its start.
    run_count = len(ranked_runs) if ends_below.all() else int(np.argmin(ends_below))
    if not run_count:
        return f"ends above its start from the smallest step size tried on; {end_text}"
    largest_step = _short_step(layers.step_sizes[ranked_runs[run_count - 1]])
    return f"ends below its start up to step {largest_step}; {end_text}"


def _grid_text(melts: Sequence[Melt]) -> str:
    """Return a clause that the tried step sizes are powers of ten; empty where they are not."""
    powers = np.log10(np.concatenate([melt.layers.step_sizes for melt in melts]))
    are_powers = len(powers) > 0 and bool(np.allclose(powers, powers.round(), rtol=0, atol=1e-6))
    return ", which are powers of ten" if are_powers else ""


def notes(
    drawn_melts: Sequence[Melt],
    omitted_melts: Sequence[Melt],
    reasons_by_label: Mapping[str, str],
    step_name: str = "best",
) -> list[str]:
    """Return the notes below the panels: a caption, then those on starts, costs, other schemes.

    Args:
        drawn_melts: the schemes that are drawn.
        omitted_melts: the schemes that are left out because there is no room.
        reasons_by_label: for each scheme that cannot be drawn, by label, the reason.
        step_name: the step size of the right panels, `best` or `shown`.
    """
    caption = (
        "Each layer is a direction of the cost (an eigenvector of its Hessian at the start), the "
    )
    caption += "most curved on top, as thick as the excess cost to be removed along it. "
    if all(melt.layers.exact for melt in drawn_melts):
        iterations = {melt.layers.iterations for melt in drawn_melts}
        budget = f"{iterations.pop()}" if len(iterations) == 1 else "iterations"
        caption += "Its colour is what the iterations at that step size leave of it, "
        caption += f"|1 - step size x curvature|^(2 x {budget}). "
    else:
        caption += "Its colour is what is left of it after the run at that step size. "
        caption += "Dotted: 2/h at the start, for a layer of curvature h. "
    caption += "The colours along the thick line are what the right panel ends with."
    if step_name == "best":
        caption += f" The best step is one of those tried{_grid_text(drawn_melts)}."
    if any(len(melt.layers.distinct_offsets) < len(melt.layers.curvature) for melt in drawn_melts):
        caption += " Directions of equal curvature count as one layer."
    if any(len(melt.layers.separated) for melt in drawn_melts):
        caption += f" Thin lines separate layers of at least {100 * SEPARATED_SHARE:g} % each."
    if any(
        len(melt.layers.drawn_offsets) < len(melt.layers.distinct_offsets) for melt in drawn_melts
    ):
        caption += f" Neighbours of under {THIN_SHARE:.1%} each are merged.".replace("%", " %")
    notes = [caption]
    # The start at zero weights has the same cost under all schemes; others differ.
    starts = {str(melt.row.get(names.setting("start"))) for melt in drawn_melts}
    if starts - {"zeros", "None"}:
        notes.append(
            "The excess cost is that of each scheme's own start; what is left, and a peak, are "
            "shares of that of zero weights."
        )
    unsolved_labels = [
        melt.label for melt in drawn_melts if melt.row.get(names.MINIMUM_REACHED.column) == "false"
    ]
    if unsolved_labels:
        notes.append(f"{', '.join(unsolved_labels)}: {material.LOWEST_COST_NOTE}.")
    if omitted_melts:
        omitted_text = ", ".join(
            f"{melt.label} {percent(melt.excess_left)}" for melt in omitted_melts
        )
        notes.append(f"Not drawn, with the excess cost left: {omitted_text}.")
    by_reason: dict[str, list[str]] = {}
    for label, reason in reasons_by_label.items():
        by_reason.setdefault(reason, []).append(label)
    return notes + [
        f"No picture of {', '.join(labels)}: {reason}." for reason, labels in by_reason.items()
    ]
