"""What each figure shows, in sentences made from recorded numbers: captions, and texts to read."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import closing as answer
from normbench.results.compare import comparisons, directions
from normbench.results.compare.merging import merged, whole
from normbench.results.compare.reached import excess_left, reached
from normbench.results.figures import components, film, melt, overview, reconstruction, windows
from normbench.results.figures.base import material
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.reasons import EQUAL, extremes
from normbench.results.words.sentences import Said, paragraph, said

MOST = 4  # schemes that have a sentence each; of more, the first and the last
CONDITION = "The condition number of the cost's curvature"
COVARIANCE = "The condition number of the points' covariance"
SHARPEST = "At the end, step size x L / 2"
MUCH = 0.9  # of the variance
FLAT = 1e-12  # of a coordinate's largest entry: one that varies by less than that is constant
Parts = Mapping[str, Any]


def finding(sweep: Sweep, experiment: str, figure: str) -> str:
    """Return what a figure of an experiment shows; empty where no number is recorded for it."""
    made = merged(sweep)
    if figure in ("histories", "closer", "fit"):
        return answer.sentence(sweep, experiment)
    found = FINDINGS.get(figure)
    return paragraph(found(made, experiment)) if found else ""


def _overview(made: Sweep, experiment: str) -> list[Said]:
    """Say the schemes' mean ranks over all problems of the sweep."""
    board = comparisons.leaderboard(reached([whole(made)], overview.TARGET))
    if board.empty:
        return []
    alike = board.groupby(["rank", "solved"], sort=False)["scheme"]
    places = [f"{' = '.join(own)} {rank:.3g} ({solved:.0%})" for (rank, solved), own in alike]
    if len(places) > MOST:
        places = [places[0], "...", places[-1]]
    told = {
        "target": f"{float(overview.TARGET):.0%}".replace("%", " %"),
        "problems": int(board["problems"].max()),
    }
    return [said("mean_ranks", places=", ".join(places), **told)]


def _windows(made: Sweep, experiment: str) -> list[Said]:
    """Say how many directions each scheme's step size serves, and how much they hold."""
    rows = material.schemes(made, experiment)
    arrays = material.fitting(
        made, rows, names.DESCENT_ARRAYS, lambda parts: directions.CURVATURE in parts
    )
    found = []
    for row in as_rows(rows):
        step = pd.to_numeric(row[names.STEP_TAG.column])
        if row["label"] not in arrays or pd.isna(step):
            continue
        iterations = int(row[names.setting("iterations")])
        bars = windows.bars(arrays[row["label"]], iterations)
        count, share = bars.served(float(step))
        gone = 1 - directions.predicted(arrays[row["label"]], float(step), iterations)
        left = excess_left(row, row)
        seen = 1 - min(left, 1.0)
        exact = str(row.get(names.BASIS.column, "")).startswith(names.EXACT)
        if not exact and np.isfinite(left) and abs(gone - seen) > directions.EXPLAINED:
            told = {"step": f"{step:g}", "scheme": row["label"], "seen": f"{seen:.0%}"}
            found.append((count, said("not_served", predicted=f"{gone:.0%}", **told)))
            continue
        told = {"step": f"{step:g}", "count": count, "every": int(bars.times.sum())}
        told |= {"scheme": row["label"], "share": f"{share:.0%}"}
        found.append((count, said("serving", **told, model="" if exact else " at the start")))
    if len(found) > MOST:
        found = sorted(found, key=lambda pair: pair[0])
        found = [found[0], found[-1]]
    return [one for _, one in found]


def _melt(made: Sweep, experiment: str) -> list[Said]:
    """Say how many layers each scheme's step size melts, and how much of the excess is left."""
    rows = material.schemes(made, experiment)
    arrays = material.fitting(made, rows, names.DESCENT_ARRAYS, lambda parts: True)
    melts = sorted(melt.melts(arrays, rows, material.steps(made, experiment)), key=_left_by)
    if len(melts) > MOST:
        melts = [melts[0], melts[-1]]
    found = []
    for one in melts:
        told = {"scheme": one.label, "gone": one.layers.gone(one.step), "step": f"{one.step:.2g}"}
        told |= {"every": len(one.layers.distinct), "left": melt.percent(one.edge[-1])}
        found.append(said("melting", **told))
    return found


def _left_by(one: melt.Melt) -> float:
    return -float(one.edge[-1])


def _film(made: Sweep, experiment: str) -> list[Said]:
    """Say what the numbers of the film's first frame and of its last are."""
    rows = material.schemes(made, experiment)
    arrays = material.fitting(made, rows, "film", lambda parts: True)
    if not arrays:
        return []
    label, reel, _ = film.last(arrays, rows)
    (_, first, before), (_, last, after) = (reel.counters(frame) for frame in (0, -1))
    told = {"first": first, "last": last, "before": before, "after": after}
    return [said("filmed", scheme=label, **told)]


def _best_steps(made: Sweep, experiment: str) -> list[Said]:
    """Say from where to where the step sizes that stand for the schemes reach."""
    rows = material.schemes(made, experiment)
    which = f"The {made.which_step(experiment)} step size"
    return _range(which, rows["label"], pd.to_numeric(rows[names.STEP_TAG.column]))


def _converging(made: Sweep, experiment: str) -> list[Said]:
    """Say how many step sizes of each scheme converged."""
    steps = made.of_role(names.STEP, experiment)
    if steps.empty:
        return []
    tried = steps.groupby("label", sort=False)["verdict"]
    if tried.size().nunique() > 1:
        return []
    counts = tried.agg(lambda own: int((own == names.CONVERGED).sum())).items()
    words = ", ".join(f"{label} {count}" for label, count in counts)
    return [said("converging", steps=int(tried.size().iloc[0]), counts=words)]


def _of(what: str, metric: names.Metric) -> Callable[[Sweep, str], list[Said]]:
    def tell(made: Sweep, experiment: str) -> list[Said]:
        rows = material.schemes(made, experiment)
        return _range(what, rows["label"], rows[metric.column]) if metric.column in rows else []

    return tell


def _of_parts(
    word: str, told: Callable[[Parts], tuple[str, float]], fits: Callable[[Any], bool] = bool
) -> Callable[[Sweep, str], list[Said]]:
    """Return what tells a number of each scheme's arrays of a record, from the least to the most.

    told: makes from a scheme's arrays what the number is, in words, and the number.
    """

    def tell(made: Sweep, experiment: str) -> list[Said]:
        arrays = material.fitting(made, material.schemes(made, experiment), word, fits)
        found: dict[str, dict[str, float]] = {}
        for label, parts in arrays.items():
            what, value = told(parts)
            found.setdefault(what, {})[label] = value
        return [one for what, own in found.items() for one in _range(what, own, own.values())]

    return tell


def _directions(parts: Parts) -> tuple[str, float]:
    """Count the directions that hold most of the variance under a scheme."""
    after = np.sort(np.maximum(parts["after"], 0.0))[::-1]
    held = np.cumsum(after) >= MUCH * (1 - EQUAL) * after.sum()
    every = len(parts["before"])
    what = f"The number of directions, of {every}, that hold {MUCH:.0%} of the variance"
    return what, float(held.argmax() + 1) if after.sum() > 0 else float("nan")


def _widths(parts: Parts) -> tuple[str, float]:
    """Compare the standard deviations of the coordinates that are drawn."""
    values = np.asarray(parts["values"], dtype=float)
    widths = values.std(axis=0)
    widths = widths[widths > FLAT * np.maximum(np.abs(values).max(axis=0), widths.max())]
    shown, every = values.shape[1], int(parts["all"])
    some = f" among {shown} of {every}" if every > shown else ""
    what = f"Of the coordinates that vary{some}, the largest standard deviation over the smallest"
    return what, float(widths.max() / widths.min()) if len(widths) else float("nan")


def _added(parts: Parts) -> tuple[str, float]:
    """Add up the variance of the components that are drawn."""
    kept = len(parts["components"])
    shown = kept if kept <= components.ALL else components.SHOWN
    what = f"The share of the variance that {shown} components add"
    return what, float(parts["variance"][:shown].sum())


def _error(parts: Parts) -> tuple[str, float]:
    """Compare the image amid its build-up with the original."""
    stages = reconstruction.stages(parts["count"])
    place = stages[len(stages) // 2]
    size = float(np.linalg.norm(parts["original"]))
    off = float(np.linalg.norm(parts["built"][place] - parts["original"]))
    some = f"{parts['count'][place]} of {parts['count'][-1]} coordinates"
    return f"The relative error of the image from {some}", off / size if size else float("nan")


def _plane(parts: Parts) -> tuple[str, float]:
    """Add up the variance of the two components that points are drawn in."""
    return "The share of the variance in the plane that is drawn", float(parts["shares"].sum())


def _range(what: str, labels: Iterable[str], values: Iterable[float]) -> list[Said]:
    """Say the least and the most of a number over the schemes; nothing where none has it."""
    known = [
        (float(value), label)
        for value, label in zip(values, labels)
        if pd.notna(value) and np.isfinite(value)
    ]
    if not known:
        return []
    (least, low), (most, high) = extremes(known)
    if most - least <= EQUAL * abs(most):
        return [said("is_one", what=what, value=most, schemes=high)]
    return [said("goes_from", what=what, least=least, low=low, most=most, high=high)]


def _projection(made: Sweep, experiment: str) -> list[Said]:
    rows = material.schemes(made, experiment)
    lost = rows.get(names.VARIANCE_LOST.column, pd.Series(dtype=float))
    told = zip(rows["label"], lost) if len(lost) else ()
    return [
        said("losing", scheme=label, share=f"{value:.3%}")
        for label, value in told
        if pd.notna(value)
    ]


FINDINGS: dict[str, Callable[[Sweep, str], list[Said]]] = {
    "overview": _overview,
    "melt": _melt,
    "windows": _windows,
    "film": _film,
    "step_sizes": _best_steps,
    "phase_diagram": _converging,
    "contours": _of(CONDITION, names.CONDITION),
    "data": _of(COVARIANCE, names.COVARIANCE_CONDITION),
    "sharpness": _of(SHARPEST, names.SHARPNESS),
    "biplot": _of_parts("biplot", _plane),
    "features": _of_parts("features", _widths),
    "projection": _projection,
    "spectrum": _of_parts("spectrum", _directions),
    "components": _of_parts("components", _added, components.is_image),
    "reconstruction": _of_parts("components", _error, components.is_image),
}
