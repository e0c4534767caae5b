"""Which figures a sweep has: the tables of each, read once, and the files that they become."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results import clean, names, tables, theory
from normbench.results.errors import ResultsError
from normbench.results.figures import (
    NAMES,
    components,
    contours,
    data,
    features,
    fit,
    histories,
    phase_diagram,
    projection,
    reconstruction,
    sharpness,
    spectrum,
    step_sizes,
    style,
)
from normbench.results.merging import REPEATS, merged
from normbench.results.runs import HISTORIES, QUARTILES, Sweep

CLOSER = names.setting("study.closer")
MOST = 40  # schemes that figures tell apart; a panel each of hundreds would take minutes
SAME = 1e-5  # relative: a step size that was read off a table has six digits
COLUMNS = (names.STEP_TAG.column, step_sizes.COST, step_sizes.STEP)


@dataclass(frozen=True)
class Options:
    """How figures are drawn.

    shape: see `style.FORMATS`. first: the iteration that histories begin at. scale: `linear`,
    `log`, or None to choose by the range. steps: the step sizes whose histories are drawn; the
    best of each scheme where it is empty.
    """

    shape: style.Shape = style.SCREEN
    first: int = 0
    scale: str | None = None
    steps: tuple[float, ...] = ()


DEFAULT = Options()


def figure(sweep: Sweep, experiment: str, name: str, options: Options = DEFAULT) -> Figure | None:
    """Return one figure of an experiment; None where nothing was recorded for it."""
    return MAKERS[name](merged(sweep), experiment, options)


def write(
    sweep: Sweep,
    folder: Path,
    wanted: Sequence[str] = tuple(NAMES),
    options: Options = DEFAULT,
    kinds: Sequence[str] = ("png", "svg"),
) -> dict[str, list[Path]]:
    """Draw figures of every experiment into a folder; return the files by experiment.

    kinds: the formats, of `style.KINDS`; a GIF comes with a PNG, and a PDF doubles the time.
    Figures of which nothing was recorded are left out, and all but a single one that is asked for
    where there are too many schemes. Raises ResultsError where the folder cannot be written.
    """
    written: dict[str, list[Path]] = {}
    facts = {"sweep": sweep.sweep_id, "command": sweep.command}
    try:
        for experiment in sweep.experiments:
            files = written.setdefault(experiment, [])
            if len(wanted) > 1 and crowded(sweep, experiment):
                continue
            for name in wanted:
                stem = name if len(sweep.experiments) == 1 else f"{name}-{clean.name(experiment)}"
                drawn = figure(sweep, experiment, name, options)
                if drawn is not None:
                    folder.mkdir(parents=True, exist_ok=True)
                    files += style.save(drawn, folder / stem, facts, kinds)
                if drawn is not None and "png" in kinds:
                    files += _animated(sweep, experiment, name, folder / f"{stem}.gif", facts)
    except OSError as error:
        raise ResultsError(f"--out {folder}: cannot be written ({error.strerror})") from error
    return written


def crowded(sweep: Sweep, experiment: str) -> bool:
    """Return whether an experiment has more schemes than its figures can tell apart."""
    return len(schemes(merged(sweep), experiment)) > MOST


def schemes(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row a scheme that did not fail, with the columns that figures look for.

    2/L is left out where it does not speak of the optimizer.
    """
    rows = sweep.of_role(names.SCHEME, experiment)
    return _with_columns(theory.thresholds_that_hold(rows[rows["verdict"] != names.FAILED]))


def steps(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row a scheme and step size, with the columns that figures look for."""
    return _with_columns(sweep.of_role(names.STEP, experiment))


def _with_columns(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(**{name: None for name in COLUMNS if name not in rows})


def _histories(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    runs = _curves(sweep, experiment, options.steps)
    table = sweep.histories(runs, (*HISTORIES, *QUARTILES))
    if table.empty:
        return None
    return histories.draw(
        table, runs, experiment, first=options.first, scale=options.scale, shape=options.shape
    )


def _closer(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    """Draw the best runs of the schemes named in `study.closer`, without the start."""
    rows = schemes(sweep, experiment)
    named = rows.get(CLOSER, pd.Series(dtype=str)).dropna()
    wanted = [word for text in named[:1] for word in text.strip("[]").replace("'", "").split(", ")]
    runs = rows[rows["normalizer"].isin(wanted)]
    table = sweep.histories(runs, (*HISTORIES, *QUARTILES))
    if table.empty:
        return None
    first = max(options.first, 1)
    title = f"{experiment}, from iteration {first}"
    return histories.draw(table, runs, title, first=first, scale=options.scale, shape=options.shape)


def _curves(sweep: Sweep, experiment: str, sizes: tuple[float, ...]) -> pd.DataFrame:
    """Return the runs whose histories are drawn: the best of each scheme, or chosen steps."""
    every = steps(sweep, experiment)
    if sizes:
        known = every[step_sizes.STEP].astype(float)
        missing = [size for size in sizes if not (abs(known / size - 1) < SAME).any()]
        if missing:
            tried = ", ".join(f"{size:g}" for size in sorted(set(known.dropna())))
            raise ResultsError(f"--steps {missing[0]:g}: was not tried; choose of {tried}")
        return every[[any(abs(size / one - 1) < SAME for one in sizes) for size in known]]
    best = schemes(sweep, experiment)
    diverged = best[best["verdict"] == names.DIVERGED]
    # Where no step size stayed finite, the smallest shows how.
    instead = [
        rows.sort_values(step_sizes.STEP).head(1)
        for rows in (every[every["parent"] == run_id] for run_id in diverged["run_id"])
        if len(rows)
    ]
    return pd.concat([best[best["verdict"] != names.DIVERGED], *instead])


def _step_sizes(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    table = steps(sweep, experiment)
    if table.empty:
        return None
    rows = schemes(sweep, experiment)
    return step_sizes.draw(table, rows, _with_budget(experiment, rows), shape=options.shape)


def _phase_diagram(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    table = steps(sweep, experiment)
    if table.empty:
        return None
    rows = schemes(sweep, experiment)
    return phase_diagram.draw(table, rows, _with_budget(experiment, rows), shape=options.shape)


def _with_budget(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title that says how many iterations the verdicts are about."""
    return ", ".join(filter(None, [experiment, tables.budget(rows)]))


def _sharpness(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
    runs = schemes(sweep, experiment)
    table = sweep.histories(runs, (sharpness.METRIC,))
    if table.empty:
        return None
    return sharpness.draw(
        table, runs, experiment, first=options.first, scale=options.scale, shape=options.shape
    )


def _of_arrays(record: str, draw: Callable[..., Figure]) -> "Maker":
    """Return a maker of the figures that are drawn from one record's arrays."""

    def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
        rows = schemes(sweep, experiment)
        arrays = _arrays(sweep, rows, record)
        over = set(rows.get(REPEATS, pd.Series(dtype=str)).dropna()) - {""}
        title = f"{experiment}, the first of {max(over)}" if over else experiment
        return draw(arrays, rows, title, shape=options.shape) if arrays else None

    return make


def _arrays(sweep: Sweep, rows: pd.DataFrame, record: str) -> dict[str, dict[str, Any]]:
    arrays = sweep.arrays(rows, record)
    if record == "components":  # of points that are images alone
        return {
            label: parts
            for label, parts in arrays.items()
            if components.side(len(parts["original"])) is not None
        }
    return arrays


def _animated(
    sweep: Sweep, experiment: str, name: str, file: Path, facts: dict[str, str]
) -> list[Path]:
    if name != "reconstruction":
        return []
    sweep = merged(sweep)
    rows = schemes(sweep, experiment)
    arrays = _arrays(sweep, rows, "components")
    return [reconstruction.animate(arrays, rows, experiment, file, facts)]


Maker = Callable[[Sweep, str, Options], Figure | None]
MAKERS: dict[str, Maker] = {
    "histories": _histories,
    "closer": _closer,
    "step_sizes": _step_sizes,
    "phase_diagram": _phase_diagram,
    "sharpness": _sharpness,
    "contours": _of_arrays("contours", contours.draw),
    "fit": _of_arrays("fit", fit.draw),
    "data": _of_arrays("points", data.draw),
    "features": _of_arrays("features", features.draw),
    "projection": _of_arrays("projection", projection.draw),
    "spectrum": _of_arrays("spectrum", spectrum.draw),
    "components": _of_arrays("components", components.draw),
    "reconstruction": _of_arrays("components", reconstruction.draw),
}
