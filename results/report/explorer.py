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
HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POINTS = 500  # iterations of a history; of more, the least and the greatest of each of 250 bins
LINE = 40  # points of a contour
ROWS = 101  # iterations whose layers are drawn
CONTOURS = "contours"  # the word of record that keeps them
MOST = 12  # schemes that lines tell apart
COST = names.TRAIN_COST.key


def data(sweep: Sweep, experiment: str) -> str:
    """Return what is known of an experiment's step sizes, as JSON that may stand in a page.

    Of several splits, seeds and starts the first. Empty where no histories are kept.
    """
    runs = merged(sweep)
    rows = material.schemes(runs, experiment)
    kept = material.fitting(runs, rows, names.KEPT, lambda parts: COST in parts)
    if not kept or len(kept) > MOST:
        return ""
    planes = material.fitting(runs, rows, CONTOURS, lambda parts: "paths" in parts)
    levels = contours.levels(list(planes.values())) if planes else None
    steps = runs.of_role(names.STEP, experiment)
    layered = {one.label: one for one in melt.melts(kept, rows, steps)}
    schemes = []
    for label, row, parts, look in material.with_arrays(rows, kept):
        own = steps[steps["label"] == label]
        verdicts = dict(zip(own[names.STEP_TAG.column].astype(float), own["verdict"]))
        scheme: dict[str, Any] = {"label": label, "color": _ink(look.color)}
        scheme |= _steps(parts, verdicts) | _best(row)
        if label in layered:
            scheme |= _layers(layered[label].layers)
        if levels and label in planes:
            scheme["plane"] = _plane(planes[label], levels)
        schemes.append(scheme)
    iterations = max(parts[COST].shape[-1] for parts in kept.values()) - 1
    about = {"iterations": iterations, "which_step": runs.which_step(experiment)}
    return output.script_data({**about, "schemes": schemes})


def _ink(color: str) -> str:
    """Return a line's colour: black is the text's, which is light in the dark."""
    return "currentColor" if set(color) <= set("#0") else color


def _steps(parts: Mapping[str, Any], verdicts: Mapping[float, str]) -> dict[str, Any]:
    """Return the step sizes, their verdicts, and what their histories leave of the excess.

    `at` (k,) iterations and `left` (S, k): all of them, or, of many, where the least and the
    greatest of each bin stand, so that a zigzag keeps its width. 1 is the start's excess.
    """
    costs = np.asarray(parts[COST][:, 0], dtype=float)
    least = float(parts["minimum"])
    excess = (costs - least) / (costs[0, 0] - least) if costs[0, 0] > least else costs * 0
    at = np.arange(excess.shape[1])
    if len(at) > POINTS + 1:
        edges = np.linspace(1, len(at), POINTS // 2 + 1).round().astype(int)
        pairs = np.split(excess, edges[:-1], axis=1)[1:]
        ends = [np.stack([part.min(axis=1), part.max(axis=1)], axis=1) for part in pairs]
        last = excess[:, -1:]  # what is left at the end is told, so it stands there
        excess = np.concatenate([excess[:, :1], *ends, last], axis=1)
        at = np.r_[0, np.repeat(edges[:-1], 2), len(at) - 1]
    told = {float(f"{size:.6g}"): verdict for size, verdict in verdicts.items()}
    sizes = [float(f"{size:.6g}") for size in parts["step_sizes"]]
    return {
        "sizes": sizes,
        "verdicts": [told.get(size, "") for size in sizes],
        "at": at.tolist(),
        "left": [_short(own, 5) for own in excess],
    }


def _best(row: Mapping[Any, Any]) -> dict[str, float]:
    """Return the step that stands for a scheme, where there is one."""
    best = number_in(row, names.STEP_TAG.column)
    return {"best": best} if np.isfinite(best) else {}


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
    described["ends"] = [_short(own, 3) for own in layers.ratios(layers.sizes)]
    history = layers.history(layers.path_step)
    if history is not None:
        kept = _thin(len(history[0]), ROWS)
        described["path_at"] = history[0][kept].tolist()
        described["path"] = [_short(own, 3) for own in history[1][kept]]
        described["path_step"] = float(f"{layers.path_step:.6g}")
    return described


def _plane(parts: Mapping[str, Any], levels: tuple[Any, int]) -> dict[str, Any]:
    """Return a scheme's plane of weights: contours, every step's path, and what predicts others.

    Pairs of coordinates stand one after another, from the lower left corner, 1 the window's side.
    """
    corner = np.array([parts["a"][0], parts["b"][0]])
    side = np.array([np.ptp(parts["a"]), np.ptp(parts["b"])])
    found: Any = contour_generator(parts["a"], parts["b"], parts["cost"])
    costs = contours.lines(levels[0], levels[1], parts["cost"])
    lines = [line for cost in costs for line in found.lines(cost)]
    plane = {
        "names": [str(name) for name in parts["names"]],
        "lines": [_short(((line - corner) / side)[_thin(len(line))].ravel(), 3) for line in lines],
        "at": parts["paths_at"].tolist(),
        "paths": [_short(((path - corner) / side).ravel(), 5) for path in parts["paths"]],
    }
    if len(parts["minimum"]):
        plane["minimum"] = _short((parts["minimum"] - corner) / side, 14)
    if "swing" in parts:
        plane["curvature"] = _short(parts["curvature"], 14)
        plane["swing"] = _short((parts["swing"] / side).ravel(), 14)
    return plane


def _thin(count: int, most: int = LINE) -> Any:
    """Return the places of at most so many points of a line, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def _short(values: Any, digits: int) -> list[float | None]:
    """Return numbers of so many digits; None for what is not finite."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
