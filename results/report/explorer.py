"""What the report's explorer plays with: every step size's history and layers, as JSON."""

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from contourpy import contour_generator

from normbench import names
from normbench.results.compare.merging import merged
from normbench.results.figures import contours, melt
from normbench.results.figures.base import material, output
from normbench.results.store.rows import number_in
from normbench.results.store.runs import Sweep

SCRIPT = (resources.files("normbench.results.report") / "explorer.js").read_text(encoding="utf-8")
# What a page's policy allows to run: this text and no other.
SCRIPT_HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
MAX_ITERATIONS = (
    500  # iterations of a history; of more, the least and the greatest of each of 250 bins
)
MAX_LINE_POINTS = 40  # points of a contour
MAX_LAYER_ROWS = 101  # iterations whose layers are drawn
CONTOURS = "contours"  # the word of record that keeps them
MAX_SCHEMES = 12  # schemes that lines tell apart
COST = names.TRAIN_COST.key


def data(sweep: Sweep, experiment: str) -> str:
    """Return what is known of an experiment's step sizes, as JSON that may stand in a page.

    Of several splits, seeds and starts the first. Empty where no histories are kept.
    """
    runs = merged(sweep)
    rows = material.schemes(runs, experiment)
    arrays = material.fitting(
        runs, rows, names.DESCENT_ARRAYS, lambda scheme_arrays: COST in scheme_arrays
    )
    if not arrays or len(arrays) > MAX_SCHEMES:
        return ""
    planes = material.fitting(runs, rows, CONTOURS, lambda scheme_arrays: "paths" in scheme_arrays)
    levels = contours.levels(list(planes.values())) if planes else None
    steps = runs.of_role(names.STEP, experiment)
    layered = {scheme_melt.label: scheme_melt for scheme_melt in melt.melts(arrays, rows, steps)}
    schemes = []
    for label, row, scheme_arrays, look in material.with_arrays(rows, arrays):
        scheme_steps = steps[steps["label"] == label]
        verdicts = dict(
            zip(scheme_steps[names.STEP_TAG.column].astype(float), scheme_steps["verdict"])
        )
        scheme: dict[str, Any] = {"label": label, "color": _ink(look.color)}
        scheme |= _steps(scheme_arrays, verdicts) | _theory(row)
        if label in layered:
            scheme |= _layers(layered[label].layers)
        if levels and label in planes:
            scheme["plane"] = _plane(planes[label], levels)
        schemes.append(scheme)
    iterations = max(scheme_arrays[COST].shape[-1] for scheme_arrays in arrays.values()) - 1
    return output.script_data({"iterations": iterations, "schemes": schemes})


def _ink(color: str) -> str:
    """Return a line's colour: black is the text's, which is light in the dark."""
    return "currentColor" if set(color) <= set("#0") else color


def _steps(arrays: Mapping[str, Any], verdicts: Mapping[float, str]) -> dict[str, Any]:
    """Return the step sizes, their verdicts, and what their histories leave of the excess.

    `at` (k,) iterations and `left` (S, k): all of them, or, of many, where the least and the
    greatest of each bin stand, so that a zigzag keeps its width. 1 is the start's excess.
    """
    costs = np.asarray(arrays[COST][:, 0], dtype=float)
    minimum = float(arrays["minimum"])
    excess = (costs - minimum) / (costs[0, 0] - minimum) if costs[0, 0] > minimum else costs * 0
    iterations = np.arange(excess.shape[1])
    if len(iterations) > MAX_ITERATIONS + 1:
        edges = np.linspace(1, len(iterations), MAX_ITERATIONS // 2 + 1).round().astype(int)
        bins = np.split(excess, edges[:-1], axis=1)[1:]
        extremes = [
            np.stack([history_bin.min(axis=1), history_bin.max(axis=1)], axis=1)
            for history_bin in bins
        ]
        last = excess[:, -1:]  # what is left at the end is told, so it stands there
        excess = np.concatenate([excess[:, :1], *extremes, last], axis=1)
        iterations = np.r_[0, np.repeat(edges[:-1], 2), len(iterations) - 1]
    rounded_verdicts = {float(f"{size:.6g}"): verdict for size, verdict in verdicts.items()}
    sizes = [float(f"{size:.6g}") for size in arrays["step_sizes"]]
    return {
        "sizes": sizes,
        "verdicts": [rounded_verdicts.get(size, "") for size in sizes],
        "at": iterations.tolist(),
        "left": [_short(history, 5) for history in excess],
    }


def _theory(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return 2/L and the best step, as far as they are known."""
    numbers = {
        "threshold": number_in(row, names.THRESHOLD.column),
        "best": number_in(row, names.STEP_TAG.column),
    }
    return {name: value for name, value in numbers.items() if np.isfinite(value)}


def _layers(layers: melt.Layers) -> dict[str, Any]:
    """Return a scheme's layers: of least squares what their closed form needs, else the measured.

    `thickness` (g,): of each layer that is drawn; `first` (g,): where it begins. `ends` (S, g):
    what each run leaves of each, over the layer. `path_at` (k,), `path` (k, g): what is left along
    the best run.
    """
    described: dict[str, Any] = {"thickness": _short(layers.thickness, 9)}
    if layers.exact:
        described["curvature"] = _short(layers.curvature, 14)
        described["share"] = _short(layers.share, 14)
        described["first"] = layers.drawn.tolist()
        return described
    described["ends"] = [_short(ratios, 3) for ratios in layers.ratios(layers.sizes)]
    history = layers.history(layers.path_step)
    if history is not None:
        rows = _thin(len(history[0]), MAX_LAYER_ROWS)
        described["path_at"] = history[0][rows].tolist()
        described["path"] = [_short(ratios, 3) for ratios in history[1][rows]]
        described["path_step"] = float(f"{layers.path_step:.6g}")
    return described


def _plane(arrays: Mapping[str, Any], levels: tuple[Any, int]) -> dict[str, Any]:
    """Return a scheme's plane of weights: contours, every step's path, and what predicts others.

    Pairs of coordinates stand one after another, from the lower left corner, 1 the window's side.
    """
    corner = np.array([arrays["a"][0], arrays["b"][0]])
    sides = np.array([np.ptp(arrays["a"]), np.ptp(arrays["b"])])
    generator: Any = contour_generator(arrays["a"], arrays["b"], arrays["cost"])
    costs = contours.lines(levels[0], levels[1], arrays["cost"])
    lines = [line for cost in costs for line in generator.lines(cost)]
    plane = {
        "names": [str(name) for name in arrays["names"]],
        "lines": [_short(((line - corner) / sides)[_thin(len(line))].ravel(), 3) for line in lines],
        "at": arrays["paths_at"].tolist(),
        "paths": [_short(((path - corner) / sides).ravel(), 5) for path in arrays["paths"]],
    }
    if len(arrays["minimum"]):
        plane["minimum"] = _short((arrays["minimum"] - corner) / sides, 14)
    if "swing" in arrays:
        plane["curvature"] = _short(arrays["curvature"], 14)
        plane["swing"] = _short((arrays["swing"] / sides).ravel(), 14)
    return plane


def _thin(count: int, max_points: int = MAX_LINE_POINTS) -> Any:
    """Return the places of at most so many points of a line, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, max_points)).round().astype(int))


def _short(values: Any, digits: int) -> list[float | None]:
    """Return numbers of so many digits; None for what is not finite."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
