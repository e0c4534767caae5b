"""The schemes of the melt figure: their selection, the sentence on each, the notes on others."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare.reached import start_ratio
from normbench.results.figures.base import material, ticks
from normbench.results.figures.base.material import ArraysByLabel
from normbench.results.figures.melt.layers import (
    SEPARATED_SHARE,
    THIN_SHARE,
    Layers,
    layers_from_arrays,
)
from normbench.results.store.rows import as_rows, number_in

MAX_MELT_SCHEMES = 6  # schemes in a figure
PEAK_RATIO = 1.02  # times the start's excess: higher peaks of a history are mentioned
TIED_EXCESS = 1e-6  # of the start's excess: schemes that differ by less are drawn once
NO_LAYERS_REASON = "recorded without layers (reuse=false descends again)"


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
    def excess_history(self) -> NDArray[np.float64]:
        """The excess history at the step size of the right panel, `(K + 1,)`."""
        run = self.layers.run_index(self.step)
        assert run is not None  # see `drawable_schemes`
        return self.layers.excess[run]

    @property
    def stable_profile(self) -> NDArray[np.float64]:
        """The final excess over step sizes, without step sizes whose end rounding decides."""
        # Exact layers have a profile by the closed form, and not at the tried step sizes.
        profile: NDArray[np.float64] = self.layers.profile
        return profile if self.layers.exact else profile[~self.decided_by_rounding]


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
        rounding_sizes = scheme_steps[scheme_steps["verdict"] == names.BY_ROUNDING][
            names.STEP_SIZE.column
        ].astype(float)
        # Step sizes of rows that have no run among the arrays are left out.
        rounding_indices = [
            run_index
            for step_size in rounding_sizes
            if (run_index := layers.run_index(step_size)) is not None
        ]
        decided_by_rounding = np.isin(np.arange(len(layers.step_sizes)), rounding_indices)
        ratio = start_ratio(row, arrays[row["label"]])
        drawable_melts.append(Melt(row["label"], row, layers, step, decided_by_rounding, ratio))
    return drawable_melts


def missing_reasons(schemes: pd.DataFrame, drawn_labels: Sequence[str]) -> dict[str, str]:
    """Return the reason why each scheme without a drawing has none, by its label.

    Args:
        schemes: the rows of all schemes.
        drawn_labels: the labels of the schemes that are drawn.
    """
    return {
        row["label"]: _missing_reason(row)
        for row in as_rows(schemes)
        if row["label"] not in drawn_labels
    }


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
    distinct_melts: list[Melt] = []
    for melt in all_melts:
        for index, distinct_melt in enumerate(distinct_melts):
            if _look_equal(melt, distinct_melt):
                distinct_melts[index] = distinct_melt._replace(
                    label=f"{distinct_melt.label} = {melt.label}"
                )
                break
        else:  # no earlier scheme has an equal drawing
            distinct_melts.append(melt)
    return distinct_melts


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


def choose_melts(
    all_melts: Sequence[Melt],
) -> tuple[list[Melt], list[Melt]]:
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
    ranked_indices = sorted(
        range(1, len(all_melts)), key=lambda index: (all_melts[index].excess_left, index)
    )
    # One scheme fewer at evenly spaced ranks, because the first scheme is drawn anyway.
    ranks = np.linspace(0, len(ranked_indices) - 1, MAX_MELT_SCHEMES - 1).round().astype(int)
    chosen_indices = {0, *(ranked_indices[rank] for rank in ranks)}
    return (
        [melt for index, melt in enumerate(all_melts) if index in chosen_indices],
        [melt for index, melt in enumerate(all_melts) if index not in chosen_indices],
    )


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
