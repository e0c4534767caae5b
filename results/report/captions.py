"""Captions and text alternatives of figures: sentences about the recorded numbers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import closing as answer
from normbench.results.compare import comparisons, passes, problems
from normbench.results.compare.merging import merged, unmerged
from normbench.results.compare.reached import time_to_target
from normbench.results.figures import film, images, melt, overview
from normbench.results.figures.base import material
from normbench.results.store.runs import Sweep
from normbench.results.words.reasons import EQUAL_TOLERANCE, extremes
from normbench.results.words.sentences import Sentence, agree, make_sentence, paragraph

MAX_SENTENCES = 4  # one per scheme; of more schemes, only the first and the last have one
CONDITION_TEXT = "The condition number of the cost's curvature"
COVARIANCE = "The condition number of the points' covariance"
SHARPEST = "At the end, step size x L / 2"
SOFT_LANDING = "The share of directions that a step goes less than 0.1 of the way to their minimum"
VARIANCE_SHARE = 0.9  # of the total variance, which the counted directions hold together
# A coordinate whose standard deviation is below this share of its largest entry is constant.
CONSTANT_SPREAD = 1e-12
Arrays = Mapping[str, Any]


def describe_figure(sweep: Sweep, experiment: str, figure: str) -> str:
    """Return the sentences about the numbers that a figure shows.

    Args:
        sweep: The runs as recorded; their splits and seeds are merged here.
        experiment: The experiment.
        figure: The figure's name.

    Returns:
        The sentences; empty where no number is recorded for the figure.
    """
    if figure in ("histories", "closer", "fit"):  # they show the ranking, which merges by itself
        return answer.ranking_paragraph(sweep, experiment)
    describe = FINDINGS.get(figure)
    return paragraph(describe(merged(sweep), experiment)) if describe else ""


def _overview(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return the sentence on the schemes' mean ranks over all problems of the sweep.

    All functions in `FINDINGS` have these arguments: the merged sweep, and the experiment, which
    this one does not need.
    """
    board = comparisons.leaderboard(
        time_to_target([unmerged(merged_sweep)], overview.OVERVIEW_TARGET)
    )
    if board.empty:
        return []
    ties = board.groupby(["rank", "solved"], sort=False)["scheme"]
    ranks = [
        f"{' = '.join(tied_schemes)} {rank:.3g} ({solved:.0%})"
        for (rank, solved), tied_schemes in ties
    ]
    if len(ranks) > MAX_SENTENCES:  # only the best and the worst are named
        ranks = [ranks[0], "...", ranks[-1]]
    count = int(board["problems"].max())
    fields = {
        "target": f"{float(overview.OVERVIEW_TARGET):.0%}".replace("%", " %"),
        "unit": passes.unit(merged_sweep.of_role(names.SCHEME)).many,
        **agree(count, "problems"),
    }
    return [make_sentence("mean_ranks", places=", ".join(ranks), count=count, **fields)]


def _melt(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return sentences on how many layers of each scheme are gone, and how much excess is left.

    A layer is the excess at the start along one direction; it is gone when less than a tenth is
    left of it.
    """
    rows = material.schemes(merged_sweep, experiment)
    arrays = material.drawable_arrays(merged_sweep, rows, names.DESCENT_ARRAYS)
    # The scheme with the most excess left comes first; of many, the first and the last are named.
    melts = sorted(
        melt.drawable_schemes(arrays, rows, material.steps(merged_sweep, experiment)),
        key=lambda scheme_melt: -scheme_melt.excess_left,
    )
    if len(melts) > MAX_SENTENCES:
        melts = [melts[0], melts[-1]]
    sentences = []
    for scheme_melt in melts:
        gone = scheme_melt.layers.count_gone(scheme_melt.step)
        every = len(scheme_melt.layers.distinct_offsets)
        step = f"{float(f'{scheme_melt.step:.2g}'):g}"
        fields = {"scheme": scheme_melt.label, "gone": gone, "step": step}
        fields |= {"every": every, "left": melt.percent(scheme_melt.excess_left)}
        is_guessed = scheme_melt.row.get(names.MINIMUM_REACHED.column) == "false"
        fields["over"] = " over the lowest cost that it saw" if is_guessed else ""
        fields |= {**agree(every, "layers"), **agree(gone, "are")}
        sentences.append(make_sentence("melting", **fields))
    return sentences


def _film(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return the sentence on the condition number of the cost in the film's first and last frame.

    The film is that of the last scheme that has one.
    """
    rows = material.schemes(merged_sweep, experiment)
    arrays = material.drawable_arrays(merged_sweep, rows, "film")
    if not arrays:
        return []
    label, reel, _ = film.last_film(arrays, rows)
    # `counters` gives a frame's L, condition number and iterations to 1 percent, as texts.
    (_, first, before), (_, last, after) = (reel.counters(frame) for frame in (0, -1))
    counters = {"first": first, "last": last, "before": before, "after": after}
    return [make_sentence("filmed", scheme=label, **counters)]


def _schemes_on_grids(merged_sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return the scheme runs that descended with the step sizes of a grid.

    Left out are those without a descent and those whose optimizer finds its own step sizes.
    """
    rows = material.schemes(merged_sweep, experiment)
    return rows[~(problems.without_descent(rows) | material.gridless(rows))]


def _best_steps(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return the sentence on the range of the schemes' best (or shown) step sizes."""
    rows = _schemes_on_grids(merged_sweep, experiment)
    quantity = f"The {merged_sweep.which_step(experiment)} step size"
    return _range(quantity, rows["label"], pd.to_numeric(rows[names.STEP_TAG.column]))


def _converging(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return the sentence on how many step sizes of each scheme converged.

    There is none if the schemes were tried at different numbers of step sizes.
    """
    steps = merged_sweep.of_role(names.STEP, experiment)
    steps = steps[steps["parent"].isin(_schemes_on_grids(merged_sweep, experiment)["run_id"])]
    if steps.empty:
        return []
    tried = steps.groupby("label", sort=False)["verdict"]
    if tried.size().nunique() > 1:  # the counts would not compare
        return []
    counts = tried.agg(lambda verdicts: int((verdicts == names.CONVERGED).sum())).items()
    count_list = ", ".join(f"{label} {count}" for label, count in counts)
    return [make_sentence("converging", steps=int(tried.size().iloc[0]), counts=count_list)]


def _range_of_metric(quantity: str, metric: names.Metric) -> Callable[[Sweep, str], list[Sentence]]:
    """Return a function for `FINDINGS`: the sentence on the range of a metric over the schemes.

    Args:
        quantity: The name of the metric in the sentence.
        metric: The metric.
    """

    def describe(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
        """Return the sentence on the range of the metric; none where it is not recorded."""
        rows = material.schemes(merged_sweep, experiment)
        return _range(quantity, rows["label"], rows[metric.column]) if metric.column in rows else []

    return describe


def _range_of_arrays(
    record: str, measure: Callable[[Arrays], tuple[str, float]], fits: Callable[[Any], bool] = bool
) -> Callable[[Sweep, str], list[Sentence]]:
    """Return a function for `FINDINGS`: the range of a number computed from recorded arrays.

    Args:
        record: The name of the record that has the arrays.
        measure: Returns the name of the number and its value from a scheme's arrays.
        fits: Whether a scheme's arrays can be measured; by default if there are any.
    """

    def describe(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
        """Return a sentence for each name that `measure` returns.

        The names differ between schemes where they contain counts, as of directions.
        """
        arrays = material.drawable_arrays(
            merged_sweep, material.schemes(merged_sweep, experiment), record, fits
        )
        values: dict[str, dict[str, float]] = {}
        for label, scheme_arrays in arrays.items():
            quantity, value = measure(scheme_arrays)
            values.setdefault(quantity, {})[label] = value
        return [
            sentence
            for quantity, value_by_scheme in values.items()
            for sentence in _range(quantity, value_by_scheme, value_by_scheme.values())
        ]

    return describe


def _direction_count(arrays: Arrays) -> tuple[str, float]:
    """Return the name and value of the number of directions that hold most of the variance.

    Args:
        arrays: `before` (N,) and `after` (M,), the variances along the principal directions of the
            points before and after the scheme.
    """
    variances = np.sort(np.maximum(arrays["after"], 0.0))[::-1]
    # The tolerance absorbs rounding in the sums; `argmax` is the first direction that is enough.
    is_enough = np.cumsum(variances) >= VARIANCE_SHARE * (1 - EQUAL_TOLERANCE) * variances.sum()
    direction_count = len(arrays["before"])
    quantity = (
        f"The number of directions, of {direction_count}, that hold {VARIANCE_SHARE:.0%} "
        "of the variance"
    )
    return quantity, float(is_enough.argmax() + 1) if variances.sum() > 0 else float("nan")


def _widths(arrays: Arrays) -> tuple[str, float]:
    """Return the name and value of the ratio of the largest to the smallest standard deviation.

    The ratio is over the drawn coordinates that are not constant.

    Args:
        arrays: `values`, the drawn coordinates of the points `(P, n)`; `all`, the number of all
            coordinates.
    """
    values = np.asarray(arrays["values"], dtype=float)
    widths = values.std(axis=0)
    # A constant coordinate has a spread by rounding: a tiny share of its largest entry, or of the
    # largest spread.
    widths = widths[widths > CONSTANT_SPREAD * np.maximum(np.abs(values).max(axis=0), widths.max())]
    shown_count, coordinate_count = values.shape[1], int(arrays["all"])
    selection = (
        f" among {shown_count} of {coordinate_count}" if coordinate_count > shown_count else ""
    )
    quantity = (
        f"Of the coordinates that vary{selection}, the largest standard deviation over the smallest"
    )
    return quantity, float(widths.max() / widths.min()) if len(widths) else float("nan")


def _variance_of_components(arrays: Arrays) -> tuple[str, float]:
    """Return the name and value of the share of the variance of the components that are drawn.

    Args:
        arrays: `components`, one row each; `variance`, the share of the variance of each.
    """
    # The figure shows all components if they are few, else a default number.
    component_count = len(arrays["components"])
    shown_count = images.shown_components(component_count)
    quantity = f"The share of the variance that {shown_count} components add"
    return quantity, float(arrays["variance"][:shown_count].sum())


def _reconstruction_error(arrays: Arrays) -> tuple[str, float]:
    """Return the name and value of the image's relative error halfway through reconstruction.

    Args:
        arrays: `original`, the image; `built`, its reconstructions; `count`, the number of
            coordinates that each is made of.
    """
    # The reconstructions that the figure shows, as positions in `built`.
    stages = images.stages(arrays["count"])
    middle_stage = stages[len(stages) // 2]
    norm = float(np.linalg.norm(arrays["original"]))
    error = float(np.linalg.norm(arrays["built"][middle_stage] - arrays["original"]))
    selection = f"{arrays['count'][middle_stage]} of {arrays['count'][-1]} coordinates"
    quantity = f"The relative error of the image from {selection}"
    return quantity, error / norm if norm else float("nan")


def _variance_of_plane(arrays: Arrays) -> tuple[str, float]:
    """Return the name and value of the share of the variance in the plane that is drawn."""
    return "The share of the variance in the plane that is drawn", float(arrays["shares"].sum())


def _range(quantity: str, labels: Iterable[str], values: Iterable[float]) -> list[Sentence]:
    """Return the sentence on the minimum and maximum of a quantity over the schemes.

    Args:
        quantity: The name of the quantity, the subject of the sentence.
        labels: The label of each scheme.
        values: The value of each scheme; those that are missing or not finite are left out.

    Returns:
        One sentence; none where no value is left.
    """
    finite_values = [
        (float(value), label)
        for value, label in zip(values, labels)
        if pd.notna(value) and np.isfinite(value)
    ]
    if not finite_values:
        return []
    (minimum, minimum_schemes), (maximum, maximum_schemes) = extremes(finite_values)
    if maximum - minimum <= EQUAL_TOLERANCE * abs(maximum):  # one value for all schemes
        return [make_sentence("is_one", what=quantity, value=maximum, schemes=maximum_schemes)]
    return [
        make_sentence(
            "goes_from",
            what=quantity,
            least=minimum,
            low=minimum_schemes,
            most=maximum,
            high=maximum_schemes,
        )
    ]


def _projection(merged_sweep: Sweep, experiment: str) -> list[Sentence]:
    """Return a sentence on the share of the variance that each scheme's projection loses.

    There is none for a scheme, such as one without a projection, that has no such record.
    """
    rows = material.schemes(merged_sweep, experiment)
    variance_lost = rows.get(names.VARIANCE_LOST.column, pd.Series(dtype=float))
    losses = zip(rows["label"], variance_lost) if len(variance_lost) else ()
    return [
        make_sentence("losing", scheme=label, share=f"{value:.3%}")
        for label, value in losses
        if pd.notna(value)
    ]


FINDINGS: dict[str, Callable[[Sweep, str], list[Sentence]]] = {
    "overview": _overview,
    "melt": _melt,
    "film": _film,
    "step_sizes": _best_steps,
    "phase_diagram": _converging,
    "contours": _range_of_metric(CONDITION_TEXT, names.CONDITION),
    "data": _range_of_metric(COVARIANCE, names.COVARIANCE_CONDITION),
    "sharpness": _range_of_metric(SHARPEST, names.SHARPNESS),
    "landing": _range_of_metric(SOFT_LANDING, names.LANDING_SOFT),
    "biplot": _range_of_arrays("biplot", _variance_of_plane),
    "features": _range_of_arrays("features", _widths),
    "projection": _projection,
    "spectrum": _range_of_arrays("spectrum", _direction_count),
    "components": _range_of_arrays("components", _variance_of_components, images.is_image),
    "reconstruction": _range_of_arrays("components", _reconstruction_error, images.is_image),
}
