"""Write figures and report of a comparison in a process that loads their libraries in advance.

While this process reads the data and runs the jobs, the other one loads Matplotlib.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from normbench.command.garbage import collect_seldom

if TYPE_CHECKING:
    from normbench.results.figures.base.forks import PreparedCall

Files = dict[str, list[Path]]  # by experiment


class Drawing:
    """The figures and the report of one comparison."""

    def __init__(self) -> None:
        self._call: PreparedCall[Files] | None = None

    def prepare(self, figure_names: Sequence[str]) -> None:
        """Start the process, unless it is started; to be called once the settings are checked.

        Args:
            figure_names: The names of the figures.
        """
        from normbench.results.figures.base.forks import PreparedCall

        if self._call is None:
            self._call = PreparedCall(partial(_load, figure_names), _write)

    def begin(
        self, folder: Path, figure_names: Sequence[str], drawn: Files | None
    ) -> Callable[[], Files]:
        """Begin to write the files; return a function that waits for them, and returns them.

        Args:
            folder: The folder of the comparison, where the files are written.
            figure_names: The names of the figures.
            drawn: Its files, where they are there already.
        """
        if drawn is not None:
            return lambda: drawn
        arguments = folder, figure_names
        if self._call is None:  # no job of this sweep ran
            return cache(partial(_write, *arguments))
        self._call.begin(*arguments)
        return self._call.result

    def end(self) -> None:
        """End the process, if it still runs."""
        if self._call is not None:
            self._call.end()


def _load(figure_names: Sequence[str]) -> None:
    """Load what `_write` needs."""
    from normbench.results.report import files

    files.prepare(figure_names)
    collect_seldom()


def _write(folder: Path, figure_names: Sequence[str]) -> Files:
    """Write the figures and the report of a comparison; return the files by experiment."""
    from normbench.results.report import files
    from normbench.results.store.runs import load

    sweep = load(folder.parent, folder.name)
    return files.write(sweep, folder, figure_names, is_complete=True)
