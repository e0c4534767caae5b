"""Draw the figures of a sweep and write them as files.

The figures' modules register how each is made, see `material.figure`.
"""

from collections.abc import Sequence
from importlib import import_module
from itertools import chain, islice
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare.merging import has_too_many_schemes, merged
from normbench.results.figures import FIGURES, NAMES, SWEEP_FIGURES
from normbench.results.figures.base import output
from normbench.results.figures.base.forks import map_forked
from normbench.results.figures.base.material import MAKERS, Maker, Options, gridless, skip_reasons
from normbench.results.safe import clean
from normbench.results.store.errors import unwritable
from normbench.results.store.runs import Sweep

DEFAULT = Options()
STEP_SIZE_FIGURES = ("step_sizes", "phase_diagram")


def figure(sweep: Sweep, experiment: str, name: str, options: Options = DEFAULT) -> Figure | None:
    """Return one figure of an experiment; None if nothing was recorded for it.

    Args:
        sweep: the sweep that holds the runs.
        experiment: the experiment's name.
        name: a key of `NAMES`.
        options: the options of drawing.
    """
    return _maker(name).make(merged(sweep), experiment, options)


def missing_figure_message(sweep: Sweep, name: str) -> str:
    """Return the error message that a sweep lacks a figure, with the reason.

    Args:
        sweep: the sweep that holds the runs.
        name: a key of `NAMES`.
    """
    # The reasons that are known, each after a comma; empty if there is none.
    verdicts = set(sweep.of_role(names.SCHEME)["verdict"])
    explanation = ", and every scheme diverged" if verdicts == {names.DIVERGED} else ""
    # Figures of a whole sweep need two problems, whatever the verdicts are.
    explanation = ", for it has one problem" if name in SWEEP_FIGURES else explanation
    notes = sweep.of_role(names.SCHEME).get(names.NOTE.column, pd.Series(dtype=str)).dropna()
    # The notes of theory say which figures it left out, and why.
    reasons_by_note = (skip_reasons(note, name) for note in notes)
    explanation += "".join(f", {reason}" for reason in sorted({*chain(*reasons_by_note)}))
    # Some figures give their own reasons; that every scheme diverged is a reason already.
    why_not = _maker(name).why_not
    if why_not and verdicts != {names.DIVERGED}:
        reasons = [why_not(merged(sweep), experiment) for experiment in sweep.experiments]
        explanation += "".join(f", {reason}" for reason in dict.fromkeys(chain(*reasons)))
    elif gridless(sweep.of_role(names.SCHEME)).all() and name in STEP_SIZE_FIGURES:
        explanation += ", the optimizer finds its own step sizes"
    return (
        f"figure {name}: {sweep.sweep_id} has nothing recorded for it{explanation}; "
        f"it shows {NAMES[name]}; normbench results report draws those that were"
    )


def load(figure_names: Sequence[str]) -> None:
    """Load the modules of figures in advance."""
    for name in figure_names:
        _maker(name)


def _maker(name: str) -> Maker:
    """Return how a figure is made; its module is loaded."""
    import_module(f"normbench.results.figures.{FIGURES[name].module}")
    return MAKERS[name]


def write(
    sweep: Sweep,
    folder: Path,
    figure_names: Sequence[str] = tuple(NAMES),
    options: Options = DEFAULT,
    file_formats: Sequence[str] = ("png", "svg"),
) -> dict[str, list[Path]]:
    """Draw figures of every experiment into a folder; return the files by experiment.

    A figure of the whole sweep is drawn once, and is among the files of each experiment. Figures
    for which nothing was recorded are left out. Unless a single figure is requested, an experiment
    with too many schemes is left out, and with it the figures of the whole sweep.

    Args:
        sweep: the sweep that holds the runs.
        folder: the folder of the files.
        figure_names: keys of `NAMES`.
        options: the options of drawing.
        file_formats: names from `style.FILE_FORMATS`. With `png`, animations are written as GIF;
            `pdf` doubles the time.

    Returns:
        For each experiment the files that exist for it; empty where there are none.

    Raises:
        ResultsError: The folder cannot be written.
    """
    provenance = {"sweep": sweep.sweep_id, "command": clean.blot(sweep.command)}
    # Experiments with too many schemes; empty if a single figure is requested: it is drawn anyway.
    crowded_experiments = {
        name
        for name in sweep.experiments
        if len(figure_names) > 1 and has_too_many_schemes(sweep, name)
    }

    def draw_files(experiment: str, name: str, file_stem: str) -> list[Path]:
        """Write one figure of an experiment, and its animation if it has one; return the files.

        No files are written where nothing was recorded for the figure.
        """
        drawn_figure = figure(sweep, experiment, name, options)
        if drawn_figure is None:
            return []
        folder.mkdir(parents=True, exist_ok=True)
        files = output.save(drawn_figure, folder / file_stem, provenance, file_formats)
        write_gif = _maker(name).write_gif
        if write_gif and "png" in file_formats:
            files.append(folder / f"{file_stem}.gif")
            write_gif(merged(sweep), experiment, files[-1], provenance)
        return files

    has_several = len(sweep.experiments) > 1
    # The arguments of `draw_files`. A figure of the sweep is drawn with any experiment.
    tasks = [
        (sweep.experiments[0], name, name)
        for name in figure_names
        if name in SWEEP_FIGURES and not crowded_experiments
    ]
    sweep_task_count = len(tasks)  # their files belong to all experiments, later ones to one
    tasks += [
        (experiment, name, f"{name}-{clean.name(experiment)}" if has_several else name)
        for experiment in sweep.experiments
        for name in figure_names
        if experiment not in crowded_experiments and name not in SWEEP_FIGURES
    ]
    try:
        files_by_task = map_forked(lambda task: draw_files(*task), tasks)
    except OSError as error:
        raise unwritable(folder, error) from error
    sweep_files = [file for files in files_by_task[:sweep_task_count] for file in files]
    files_by_experiment = {experiment: [*sweep_files] for experiment in sweep.experiments}
    tasks_with_files = zip(tasks, files_by_task, strict=True)
    for (experiment, _, _), files in islice(tasks_with_files, sweep_task_count, None):
        files_by_experiment[experiment] += files
    return files_by_experiment
