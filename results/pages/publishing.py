"""Write a sweep's chart views, colours, descriptions and figures to MLflow's pages."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normbench import names
from normbench.results.pages.writing import Writer
from normbench.results.store.rows import as_rows

if TYPE_CHECKING:
    from normbench.results.store.runs import Sweep

MELT = "melt"  # the figure that explains the answer


def publish(writer: Writer, sweep: "Sweep", parents: Mapping[str, str]) -> None:
    """Save the colours, the views and the descriptions of a sweep.

    If the store refuses a view, the links contain a search instead.

    Args:
        writer: The writer of MLflow.
        sweep: The runs.
        parents: The id of the sweep run by experiment.
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
    """Log the figures on the sweep's own runs, and `melt` on the schemes' runs; describe both.

    Where `melt` is drawn, the description of the sweep's run shows it. Reused runs have a
    description already, and failed ones have their traceback.

    Args:
        writer: The writer of MLflow.
        sweep: The runs.
        written: The figures' files by experiment.
        parents: The id of the sweep run by experiment.
    """
    from normbench.results.compare.merging import has_too_many_schemes
    from normbench.results.pages import description

    for experiment, files in written.items():
        for file in files:
            writer.log_file(parents[experiment], file)
        melt_files = [file for file in files if _is_melt(file)]
        if melt_files:
            text = description.write(sweep, experiment, melt_files[0].name)
            _set_description(writer, experiment, parents[experiment], text)
        if has_too_many_schemes(sweep, experiment):
            continue  # a description and a figure would take some 30 ms a run
        schemes = sweep.of_role(names.SCHEME, experiment)
        descended = schemes[schemes[names.SWEEP_ID.column] == sweep.sweep_id]
        descended = descended[descended[names.VERDICT.key] != names.FAILED]
        for row in as_rows(descended):
            writer.tag(row["run_id"], {names.DESCRIPTION.key: description.of_scheme(row)})
            for file in melt_files:
                writer.log_file(row["run_id"], file)


def _color(writer: Writer, sweep: "Sweep", experiment: str) -> None:
    """Set the figures' colours as tags of the runs that have another colour or none.

    Args:
        writer: The writer of MLflow.
        sweep: The runs.
        experiment: The experiment, whose scheme and step runs get colours.
    """
    from normbench.results.pages import view

    rows = sweep.only(experiment).runs.set_index("run_id")
    # Where no run has a colour, the column of roles takes the place: no role equals a colour.
    recorded_colors = rows.get(names.COLOR.column, rows[names.ROLE.column])
    for run_id, color in view.colors(sweep, experiment).items():
        if recorded_colors[run_id] != color:
            writer.tag(run_id, {names.COLOR.key: color})


def describe(writer: Writer, sweep: "Sweep", experiment: str, parent: str) -> None:
    """Save the views of an experiment, then the descriptions, which link to them.

    Args:
        writer: The writer of MLflow.
        sweep: The runs.
        experiment: The experiment.
        parent: The id of the sweep's run in it.
    """
    from normbench.results.pages import description, view

    writer.tag_experiment(experiment, view.tags(sweep, experiment))
    _set_description(writer, experiment, parent, description.write(sweep, experiment))


def _is_melt(file: Path) -> bool:
    """Return whether a file is the PNG of the `melt` figure."""
    return file.name.startswith(MELT) and file.suffix == ".png"


def _set_description(writer: Writer, experiment: str, parent: str, text: str) -> None:
    """Set the description of a sweep run, and of its experiment unless a user wrote one.

    Args:
        writer: The writer of MLflow.
        experiment: The experiment.
        parent: The id of the sweep run.
        text: The description, in Markdown.
    """
    from normbench.results.pages import description

    writer.tag(parent, {names.DESCRIPTION.key: text})
    recorded_text = writer.experiment_tags(experiment).get(names.DESCRIPTION.key, "")
    if not recorded_text or description.SIGNED in recorded_text:
        writer.tag_experiment(experiment, {names.DESCRIPTION.key: text})
