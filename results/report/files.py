"""Write the files of a comparison: its figures, and the report that shows them."""

from collections.abc import Sequence
from pathlib import Path

from normbench.results.figures import NAMES, drawing
from normbench.results.figures.base.material import Options
from normbench.results.report import page
from normbench.results.store.runs import Sweep


def write(
    sweep: Sweep,
    folder: Path,
    figure_names: Sequence[str] = tuple(NAMES),
    options: Options = drawing.DEFAULT,
    is_complete: bool = False,
) -> dict[str, list[Path]]:
    """Draw the figures of a comparison and write its report; return the files by experiment.

    Args:
        sweep: The runs.
        folder: Where the files are written.
        figure_names: The names of the figures.
        options: How figures are drawn.
        is_complete: Whether all jobs are done; see `page.render`.

    Raises:
        ResultsError: The folder cannot be written.
    """
    figures = drawing.write(sweep, folder, figure_names, options)
    report = page.write(sweep, folder, figures, is_complete)
    return {experiment: [*files, report] for experiment, files in figures.items()}


def prepare(figure_names: Sequence[str]) -> None:
    """Load what `write` needs, in advance.

    Args:
        figure_names: The names of the figures.
    """
    drawing.load(figure_names)
    page.template()
