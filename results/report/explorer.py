"""What the report's explorer plays with: every step size's history and windows, as JSON."""

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import numpy as np
from contourpy import contour_generator

from normbench import names
from normbench.results.compare.merging import merged
from normbench.results.figures import contours, windows
from normbench.results.figures.base import material, output
from normbench.results.store.rows import number_in
from normbench.results.store.runs import Sweep

SCRIPT = (resources.files("normbench.results.report") / "explorer.js").read_text(encoding="utf-8")
# What a page's policy allows to run: this text and no other.
HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POINTS = 50  # of a history: evenly on a log axis, first and last kept
DIRECTIONS = 100  # of least squares, whose histories follow from them at every step size
LINE = 40  # points of a contour
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
    schemes = []
    for label, row, parts, look in material.with_arrays(rows, kept):
        own = steps[steps["label"] == label]
        verdicts = dict(zip(own[names.STEP_TAG.column].astype(float), own["verdict"]))
        scheme: dict[str, Any] = {"label": label, "color": _ink(look.color)}
        scheme |= _steps(parts, verdicts) | _theory(row, parts)
        if levels and label in planes:
            scheme["plane"] = _plane(planes[label], levels)
        schemes.append(scheme)
    iterations = max(parts[COST].shape[-1] for parts in kept.values()) - 1
    return output.script_data({"iterations": iterations, "schemes": schemes})


def _ink(color: str) -> str:
    """Return a line's colour: black is the text's, which is light in the dark."""
    return "currentColor" if set(color) <= set("#0") else color


def _steps(parts: Mapping[str, Any], verdicts: Mapping[float, str]) -> dict[str, Any]:
    """Return the step sizes, their verdicts, and their histories, thinned."""
    costs = parts[COST][:, 0]
    last = costs.shape[-1] - 1
    at = np.unique(np.r_[0, np.geomspace(1, max(last, 1), POINTS).round().astype(int)])
    at = at[at <= last]
    told = {float(f"{size:.6g}"): verdict for size, verdict in verdicts.items()}
    sizes = [float(f"{size:.6g}") for size in parts["step_sizes"]]
    return {
        "sizes": sizes,
        "verdicts": [told.get(size, "") for size in sizes],
        "at": at.tolist(),
        "costs": [_short(cost[at], 5) for cost in costs],
    }


def _theory(row: Mapping[Any, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the least cost, 2/L, the best step and the windows, as far as they are known."""
    numbers = {
        "least": number_in(row, names.MINIMUM.column),
        "threshold": number_in(row, names.THRESHOLD.column),
        "best": number_in(row, names.STEP_TAG.column),
    }
    found: dict[str, Any] = {name: value for name, value in numbers.items() if np.isfinite(value)}
    if windows.CURVATURE not in parts:
        return found
    bars = windows.grouped(windows.bars(parts, parts[COST].shape[-1] - 1))
    found["windows"] = [_short(part, 4) for part in (bars.low, bars.high, bars.share)]
    exact = str(row.get(names.BASIS.column, "")).startswith(names.EXACT)
    if exact and len(parts[windows.CURVATURE]) <= DIRECTIONS:
        found["curvature"] = _short(parts[windows.CURVATURE], 14)
        found["excess"] = _short(parts[windows.SHARE], 14)
    return found


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


def _thin(count: int) -> Any:
    """Return the places of at most so many points of a line, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, LINE)).round().astype(int))


def _short(values: Any, digits: int) -> list[float | None]:
    """Return numbers of so many digits; None for what is not finite."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
