"""What a sweep leaves in MLflow's pages at its end: chart views, colours, descriptions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normbench import names
from normbench.results.pages.writing import Writer
from normbench.results.store.rows import as_rows

if TYPE_CHECKING:
    from normbench.results.store.runs import Sweep

MELT = "melt"  # the figure that says why


def publish(writer: Writer, sweep: "Sweep", parents: Mapping[str, str]) -> None:
    """Save the views of a sweep, then the descriptions, which name them.

    parents: the sweep run of each experiment. A store that refuses a view or a description
    keeps its runs: the links then hold a search instead.
    """
    for experiment, parent in parents.items():
        _color(writer, sweep, experiment)
        describe(writer, sweep, experiment, parent)


def attach(
    writer: Writer,
    sweep: "Sweep",
    written: Mapping[str, Sequence[Path]],
    parents: Mapping[str, str],
) -> None:
    """Put the figures on a sweep's runs, and on each scheme's a description and that figure.

    written: the figures' files by experiment; parents: likewise the sweep's runs. Runs that the
    sweep took in have their own, and those that failed have their traceback.
    """
    from normbench.results.compare.merging import crowded
    from normbench.results.pages import description

    for experiment, files in written.items():
        for file in files:
            writer.log_file(parents[experiment], file)
        melt_files = [file.name for file in files if _is_melt(file)]
        if melt_files:
            text = description.write(sweep, experiment, melt_files[0])
            _note(writer, experiment, parents[experiment], text)
        if crowded(sweep, experiment):
            continue  # some 30 ms a run
        schemes = sweep.of_role(names.SCHEME, experiment)
        descended = schemes[schemes[names.SWEEP_ID.column] == sweep.sweep_id]
        descended = descended[descended[names.VERDICT.key] != names.FAILED]
        for row in as_rows(descended):
            writer.tag(row["run_id"], {names.DESCRIPTION.key: description.of_scheme(row)})
            for file in files:
                if _is_melt(file):
                    writer.log_file(row["run_id"], file)


def _color(writer: Writer, sweep: "Sweep", experiment: str) -> None:
    """Give the runs the figures' colours, where they have another."""
    from normbench.results.pages import view

    rows = sweep.only(experiment).runs.set_index("run_id")
    recorded_colors = rows.get(names.COLOR.column, rows[names.ROLE.column])
    for run_id, color in view.colors(sweep, experiment).items():
        if recorded_colors[run_id] != color:
            writer.tag(run_id, {names.COLOR.key: color})


def describe(writer: Writer, sweep: "Sweep", experiment: str, parent: str) -> None:
    """Save an experiment's views of a sweep, then the notes, which link to them and to its runs."""
    from normbench.results.pages import description, view

    writer.tag_experiment(experiment, view.tags(sweep, experiment))
    _note(writer, experiment, parent, description.write(sweep, experiment))


def _is_melt(file: Path) -> bool:
    return file.name.startswith(MELT) and file.suffix == ".png"


def _note(writer: Writer, experiment: str, parent: str, text: str) -> None:
    """Describe a sweep run and its experiment, unless that has a description of somebody's own."""
    from normbench.results.pages import description

    writer.tag(parent, {names.DESCRIPTION.key: text})
    before = writer.experiment_tags(experiment).get(names.DESCRIPTION.key, "")
    if not before or description.SIGNED in before:
        writer.tag_experiment(experiment, {names.DESCRIPTION.key: text})
