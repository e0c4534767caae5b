"""The data of the report's interactive explorer: histories and layers by step size, as JSON."""

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from contourpy import contour_generator

from normbench import names
from normbench.results.compare import passes
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import start_ratio
from normbench.results.figures import contours, melt
from normbench.results.figures.base import material, output
from normbench.results.figures.layers import Layers
from normbench.results.store.rows import number_in
from normbench.results.store.runs import Sweep

SCRIPT = (resources.files("normbench.results.report") / "explorer.js").read_text(encoding="utf-8")
# The page's content security policy allows this script and no other.
SCRIPT_HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
# Records of a history after the start; a longer one is reduced to the extremes of 250 bins.
MAX_HISTORY_RECORDS = 500
MAX_LINE_POINTS = 40  # of a contour
MAX_LAYER_ROWS = 101  # iterations whose layers are drawn
CONTOURS_RECORD = "contours"  # the record of the contours' arrays
MAX_EXPLORER_SCHEMES = 12  # as many as colours and lines can distinguish
TRAIN_COST = names.TRAIN_COST.key


def data(sweep: Sweep, experiment: str) -> str:
    """Return the explorer's data of an experiment.

    Args:
        sweep: The runs; of several splits, seeds and starts the first is used.
        experiment: The experiment.

    Returns:
        JSON that is safe inside a script element; empty where the arrays of the descents are not
        recorded, and for more than `MAX_EXPLORER_SCHEMES` schemes.
    """
    runs = merged(sweep)
    rows = material.schemes(runs, experiment)
    arrays = material.drawable_arrays(
        runs, rows, names.DESCENT_ARRAYS, lambda scheme_arrays: TRAIN_COST in scheme_arrays
    )
    if not arrays or len(arrays) > MAX_EXPLORER_SCHEMES:
        return ""
    planes = material.drawable_arrays(
        runs, rows, CONTOURS_RECORD, lambda scheme_arrays: "paths" in scheme_arrays
    )
    levels = contours.levels(list(planes.values())) if planes else None  # common to all schemes
    steps = runs.of_role(names.STEP, experiment)
    layered = {
        scheme_melt.label: scheme_melt for scheme_melt in melt.drawable_schemes(arrays, rows, steps)
    }
    schemes, iterations = [], 0.0
    for label, row, scheme_arrays, look in material.with_arrays(rows, arrays):
        scheme_steps = steps[steps["label"] == label]
        verdicts = dict(
            zip(scheme_steps[names.STEP_TAG.column].astype(float), scheme_steps["verdict"])
        )
        scheme: dict[str, Any] = {"label": label, "color": _css_color(look.color)}
        records = passes.records_per_pass(row)
        scheme |= _steps(scheme_arrays, verdicts, records) | _best(row) | _seconds(row)
        if label in layered:
            scheme |= _layers(layered[label].layers, records)
        # Numbers are shares of the excess of zero weights, lines of that of the start.
        if (ratio := start_ratio(row, scheme_arrays)) != 1:
            scheme["ratio"] = ratio
        # A history has a record at the start, then `records` of them an iteration.
        iterations = max(iterations, (scheme_arrays[TRAIN_COST].shape[-1] - 1) / records)
        if levels and label in planes:
            scheme["plane"] = _plane(planes[label], levels)
        schemes.append(scheme)
    fields = {"iterations": iterations, "which_step": runs.which_step(experiment)}
    return output.script_data({**fields, "schemes": schemes})


def _css_color(color: str) -> str:
    """Return a line's CSS colour; black becomes the text's colour, which is light in dark mode."""
    # Black in any form, such as `#000` or `#000000`, has no other characters.
    return "currentColor" if set(color) <= set("#0") else color


def _steps(
    arrays: Mapping[str, Any], verdicts: Mapping[float, str], records: int
) -> dict[str, Any]:
    """Return the S step sizes, their verdicts and their histories of the excess.

    A history of more than `MAX_HISTORY_RECORDS` records is reduced to the minimum and the
    maximum of each bin of records, so that a zigzag keeps its width.

    Args:
        arrays: The scheme's arrays of the descents.
        verdicts: The verdict by step size.
        records: The number of records of an iteration, see `passes.records_per_pass`.

    Returns:
        `sizes` and `verdicts` (S,); `at` (k,), the iterations; and `left` (S, k), the excess there
        as a share of the excess at the start.
    """
    costs = np.asarray(arrays[TRAIN_COST][:, 0], dtype=float)  # (S, K + 1), of the first start
    minimum = float(arrays["minimum"])
    # A start at the least cost has no excess, of which nothing is left.
    excess = (costs - minimum) / (costs[0, 0] - minimum) if costs[0, 0] > minimum else costs * 0
    record_count = excess.shape[1]
    record_numbers = np.arange(record_count)
    if record_count > MAX_HISTORY_RECORDS + 1:
        # The bins begin at record 1: the start and the last record are kept as they are.
        edges = np.linspace(1, record_count, MAX_HISTORY_RECORDS // 2 + 1).round().astype(int)
        bins = np.split(excess, edges[:-1], axis=1)[1:]
        extremes = [
            np.stack([history_bin.min(axis=1), history_bin.max(axis=1)], axis=1)
            for history_bin in bins
        ]
        last = excess[:, -1:]  # the page prints the excess left at the last iteration
        excess = np.concatenate([excess[:, :1], *extremes, last], axis=1)
        # Both extremes of a bin stand at the bin's first record.
        record_numbers = np.r_[0, np.repeat(edges[:-1], 2), record_count - 1]
    # Verdicts are recorded by step sizes of six digits.
    rounded_verdicts = {float(f"{size:.6g}"): verdict for size, verdict in verdicts.items()}
    sizes = [float(f"{size:.6g}") for size in arrays["step_sizes"]]
    return {
        "sizes": sizes,
        "verdicts": [rounded_verdicts.get(size, "") for size in sizes],
        "at": _in_iterations(record_numbers, records),
        "left": [_rounded(history, 5) for history in excess],
    }


def _in_iterations(numbers: Any, records: int) -> list[float]:
    """Convert numbers of records `(k,)` to iterations, each of which has `records` records."""
    return list((numbers / records if records > 1 else numbers).tolist())


def _best(row: Mapping[Any, Any]) -> dict[str, float]:
    """Return `best`, the best or shown step size of a scheme run; nothing where it has none."""
    best = number_in(row, names.STEP_TAG.column)
    return {"best": best} if np.isfinite(best) else {}


def _seconds(row: Mapping[Any, Any]) -> dict[str, float]:
    """Return `fit` and `step`, the seconds of a scheme's fit and of an iteration of one run.

    The result is empty where they are not recorded.
    """
    fit, step = (
        number_in(row, metric.column) for metric in (names.FIT_SECONDS, names.SECONDS_A_STEP)
    )
    is_timed = np.isfinite(fit) and step > 0
    return {"fit": float(f"{fit:.3g}"), "step": float(f"{step:.3g}")} if is_timed else {}


def _layers(layers: Layers, records: int) -> dict[str, Any]:
    """Return a scheme's g drawn layers: for least squares a closed form, else measurements.

    A layer is the excess at the start along a direction, or along a group of directions.

    Args:
        layers: The layers.
        records: The number of records of an iteration.

    Returns:
        `thickness` (g,) of each layer. For least squares also the `curvature` and `share` of each
        direction, and `first` (g,), the direction where each layer begins. Otherwise `ends` (S, g),
        the share of each layer that each of the S runs leaves; and, if recorded, `path` (k, g),
        that share along the run of step size `path_step`, at the iterations `path_at` (k,).
    """
    described: dict[str, Any] = {"thickness": _rounded(layers.thickness, 9)}
    if layers.exact:  # the page computes what is left by the closed form
        described["curvature"] = _rounded(layers.curvature, 14)
        described["share"] = _rounded(layers.excess_share, 14)
        described["first"] = layers.drawn_offsets.tolist()
        return described
    described["ends"] = [_rounded(ratios, 3) for ratios in layers.ratios(layers.step_sizes)]
    # The iterations (k,) and the shares (k, g) of the recorded run; None without one.
    history = layers.history(layers.path_step)
    if history is not None:
        rows = _spread_indices(len(history[0]), MAX_LAYER_ROWS)
        described["path_at"] = _in_iterations(history[0][rows], records)
        described["path"] = [_rounded(ratios, 3) for ratios in history[1][rows]]
        described["path_step"] = float(f"{layers.path_step:.6g}")
    return described


def _plane(arrays: Mapping[str, Any], levels: tuple[Any, int]) -> dict[str, Any]:
    """Return a scheme's plane of weights: contours, paths, and the terms that predict more paths.

    Points are flat lists of coordinate pairs, measured from the lower left corner in units of the
    window's sides.

    Args:
        arrays: The scheme's arrays of the record `contours`.
        levels: The costs at which all schemes' contours are drawn, from `contours.levels`.

    Returns:
        `names` of the two weights; `lines`, the contours; `paths`, one a step size, at the
        iterations `at`; `minimum`, if one is recorded; and, where descents in the plane have a
        closed form, its terms `curvature` (n,) and `swing` (n, 2): the point after k iterations of
        step size h is `minimum + sum over n of (1 - h curvature)^k swing`.
    """
    corner = np.array([arrays["a"][0], arrays["b"][0]])
    sides = np.array([np.ptp(arrays["a"]), np.ptp(arrays["b"])])
    # `a` and `b` are the weights along the sides; row i of `cost` is at b[i], column j at a[j].
    generator: Any = contour_generator(arrays["a"], arrays["b"], arrays["cost"])
    costs = contours.select_panel_levels(levels[0], levels[1], arrays["cost"])
    lines = [line for cost in costs for line in generator.lines(cost)]
    plane = {
        "names": [str(name) for name in arrays["names"]],
        "lines": [
            _rounded(((line - corner) / sides)[_spread_indices(len(line))].ravel(), 3)
            for line in lines
        ],
        "at": arrays["paths_at"].tolist(),
        "paths": [_rounded(((path - corner) / sides).ravel(), 5) for path in arrays["paths"]],
    }
    if len(arrays["minimum"]):  # empty for a minimum that is not known
        plane["minimum"] = _rounded((arrays["minimum"] - corner) / sides, 14)
    if "swing" in arrays:
        plane["curvature"] = _rounded(arrays["curvature"], 14)
        plane["swing"] = _rounded((arrays["swing"] / sides).ravel(), 14)
    return plane


def _spread_indices(count: int, max_points: int = MAX_LINE_POINTS) -> Any:
    """Return the evenly spread indices of at most so many points, the first and last included."""
    return np.unique(np.linspace(0, count - 1, min(count, max_points)).round().astype(int))


def _rounded(values: Any, digits: int) -> list[float | None]:
    """Return numbers rounded to significant digits; None for those that are not finite."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
