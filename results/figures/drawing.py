"""The figures of a sweep, and the files that they become.

A figure is a module of `normbench.results.figures` with a function `make`, which returns the figure
of an experiment, or None where nothing was recorded for it; `moving` writes files that move, too.
"""

from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare.merging import crowded, merged
from normbench.results.figures import BY_DEFAULT, NAMES, WHOLE
from normbench.results.figures.base import output
from normbench.results.figures.base.material import Options, gridless
from normbench.results.safe import clean
from normbench.results.store.errors import unwritable
from normbench.results.store.runs import Sweep

DEFAULT = Options()
OVER_STEP_SIZES = ("step_sizes", "phase_diagram")


def figure(sweep: Sweep, experiment: str, name: str, options: Options = DEFAULT) -> Figure | None:
    """Return one figure of an experiment; None where nothing was recorded for it."""
    drawn: Figure | None = _module(name).make(merged(sweep), experiment, options)
    return drawn


def lacking(sweep: Sweep, name: str) -> str:
    """Return that a sweep has nothing for a figure, why, and which figures it has."""
    verdicts = set(sweep.of_role(names.SCHEME)["verdict"])
    why = ", and every scheme diverged" if verdicts == {names.DIVERGED} else ""
    why = ", for it has one problem" if name in WHOLE else why
    noted = sweep.of_role(names.SCHEME).get(names.NOTE.column, pd.Series(dtype=str)).dropna()
    told = {part for note in noted for part in note.split("; ") if part.startswith(f"{name}: ")}
    why += "".join(f", {part.removeprefix(f'{name}: ')}" for part in sorted(told))
    if hasattr(_module(name), "why_not") and verdicts != {names.DIVERGED}:
        reasons = [_module(name).why_not(merged(sweep), each) for each in sweep.experiments]
        why += "".join(f", {reason}" for reason in dict.fromkeys(chain(*reasons)))
    elif gridless(sweep.of_role(names.SCHEME)).all() and name in OVER_STEP_SIZES:
        why += ", the optimizer finds its own step sizes"
    there = [
        other
        for other in NAMES
        if any(figure(sweep, experiment, other) is not None for experiment in sweep.experiments)
    ]
    return (
        f"figure {name}: {sweep.sweep_id} has nothing recorded for it{why}; "
        f"it shows {NAMES[name]}; there are {', '.join(there) or 'none'}"
    )


def _module(name: str) -> Any:
    return import_module(f"normbench.results.figures.{name}")


def write(
    sweep: Sweep,
    folder: Path,
    wanted: Sequence[str] = BY_DEFAULT,
    options: Options = DEFAULT,
    kinds: Sequence[str] = ("png", "svg"),
) -> dict[str, list[Path]]:
    """Draw figures of every experiment into a folder; return the files by experiment.

    kinds: the formats, of `style.KINDS`; a GIF comes with a PNG, a film that plays with an SVG, and
    a PDF doubles the time.
    A figure of the whole sweep is drawn once, and is among the files of each experiment.
    Figures of which nothing was recorded are left out, and all but a single one that is asked for
    where there are too many schemes. Raises ResultsError where the folder cannot be written.
    """
    written: dict[str, list[Path]] = {}
    facts = {"sweep": sweep.sweep_id, "command": sweep.command}
    full = {name for name in sweep.experiments if len(wanted) > 1 and crowded(sweep, name)}

    def put(experiment: str, name: str, stem: str) -> list[Path]:
        drawn = figure(sweep, experiment, name, options)
        if drawn is None:
            return []
        folder.mkdir(parents=True, exist_ok=True)
        files = output.save(drawn, folder / stem, facts, kinds)
        if hasattr(_module(name), "moving"):
            files += _module(name).moving(merged(sweep), experiment, folder / stem, facts, kinds)
        return files

    try:
        first = sweep.experiments[0]
        whole = [put(first, name, name) for name in wanted if name in WHOLE and not full]
        for experiment in sweep.experiments:
            files = written.setdefault(experiment, [file for group in whole for file in group])
            for name in wanted if experiment not in full else ():
                stem = name if len(sweep.experiments) == 1 else f"{name}-{clean.name(experiment)}"
                files += put(experiment, name, stem) if name not in WHOLE else []
    except OSError as error:
        raise unwritable(folder, error) from error
    return written
