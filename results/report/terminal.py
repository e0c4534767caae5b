"""What a comparison ends in: the answer, one table, and where everything is."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console

from normbench import names
from normbench.results.answer import cause, fastest, headline
from normbench.results.answer import closing as answer
from normbench.results.answer import theory_table as theory
from normbench.results.compare import comparisons, heldout, problems
from normbench.results.compare.merging import MOST, crowded, merged
from normbench.results.compare.reached import tuned_once
from normbench.results.figures import BY_DEFAULT
from normbench.results.pages import dashboard
from normbench.results.report import profile, screen, screen_table
from normbench.results.safe import clean
from normbench.results.store import uris
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words import headings

if TYPE_CHECKING:
    from normbench.results.figures.base.material import Options

Files = Mapping[str, Sequence[Path]]
NO_THEORY = "No theory was recorded; theory=full records it, whatever it costs."


def present(
    sweep: Sweep,
    folder: Path,
    options: "Options | None" = None,
    drawn: dict[str, list[Path]] | None = None,
    wanted: Sequence[str] = BY_DEFAULT,
) -> dict[str, list[Path]]:
    """Print the answer and the table, draw figures, write the report; return files by experiment.

    drawn: the files of these very figures and report, where there are some. wanted: the names of
    the figures. Raises ResultsError where the folder cannot be written.
    """
    terminal = screen.console()
    terminal.print()
    _say_answers(terminal, sweep)
    terminal.print()
    within = problems.budget(sweep.of_role(names.SCHEME))
    if within:
        of = answer.medians(merged(sweep).of_role(names.SCHEME))
        screen.say(terminal, f"{within[:1].upper()}{within[1:]}{of}:")
    screen_table.show(terminal, sweep)
    screen.say(terminal, headings.GLOSSARY_LINE, style="dim")
    terminal.print()
    _say_failures(terminal, sweep)
    if drawn is None:
        from normbench.results.figures import drawing
        from normbench.results.report import page as report

        figures = drawing.write(sweep, folder, wanted, options or drawing.DEFAULT)
        page = report.write(sweep, folder, figures)
        drawn = {name: [*files, page] for name, files in figures.items()}
    _say_places(terminal, sweep, drawn)
    return drawn


def _say_answers(terminal: Console, sweep: Sweep) -> None:
    """Print which scheme is best, why, and what has to be known beside."""
    splits = heldout.by_split(sweep)
    several = len(sweep.experiments) > 1
    whole = headline.headline(sweep)
    screen.say(terminal, whole, style="bold")
    for name in sweep.experiments:
        first = headline.headline(sweep, name)
        if several:
            screen.say(terminal, f"{name}: {first}")
        why = cause.cause(sweep, name)
        lines = [why, *theory.notes(sweep, name)] if why else [theory.explanation(sweep, name)]
        lines += [line for line in fastest.answers(sweep, name, splits) if line != first]
        said = f"{whole} {first}"  # a ranking says which runs diverged, too
        lines += [line for line in answer.remarks(sweep, name) if line not in said]
        screen.say(terminal, *lines)
    screen.say(terminal, *profile.notes([sweep]))


def _say_failures(terminal: Console, sweep: Sweep) -> None:
    schemes = sweep.of_role(names.SCHEME)
    failed = schemes[schemes["verdict"] == names.FAILED]
    if failed.empty:
        return
    screen.say(terminal, f"{len(failed)} of {len(schemes)} jobs failed:", style="bold")
    for row in as_rows(failed):
        screen.say(terminal, f"  {row['experiment']}, {row['label']}: {row['reason']}")
    terminal.print()


def _say_places(terminal: Console, sweep: Sweep, drawn: Files) -> None:
    """Print where the files are, and where the comparison is recorded."""
    for name in sweep.experiments:
        if crowded(sweep, name):
            screen.say(
                terminal,
                f"figures    none of {name}: more than {MOST} schemes; "
                "normbench results figure NAME --where FILTER draws one of some",
            )
    screen.say(terminal, f"more       {headings.MORE}")
    every = list(dict.fromkeys(file for files in drawn.values() for file in files))
    for folder in dict.fromkeys(file.parent for file in every):
        own = [file for file in every if file.parent == folder]
        screen.say(terminal, f"files      {_short(folder)}: {_contents(own)}")
    if uris.is_server(sweep.store) and not sweep.is_query:
        for name in sweep.experiments:
            screen.say(terminal, f"dashboard  {dashboard.link(sweep, name)}")
    shows = "" if uris.is_server(sweep.store) else "  (normbench dashboard shows it)"
    screen.say(terminal, f"recorded   {clean.line(sweep.store)}{shows}")


def _short(folder: Path) -> str:
    """Return a folder as seen from the working folder, where it lies within."""
    here = Path(os.getcwd())
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _contents(files: Sequence[Path]) -> str:
    """Return the pages among files by name, and how many figures the others are."""
    pages = list(dict.fromkeys(file.name for file in files if file.suffix == ".html"))
    figures = dict.fromkeys(file.stem for file in files if file.suffix != ".html")
    kinds = dict.fromkeys(file.suffix.lstrip(".") for file in files if file.suffix != ".html")
    count = f"{len(figures)} figure{'s' * (len(figures) > 1)} ({', '.join(kinds)})"
    return " and ".join([*pages, *([count] if figures else [])])


def _without_theory(sweep: Sweep) -> bool:
    """Return whether a job that ran was asked for no theory."""
    jobs = sweep.of_role(names.SCHEME)
    asked = jobs.get(names.setting("theory"), pd.Series(dtype=str))
    return bool((asked[jobs["verdict"] != names.FAILED] == "none").any())


def print_theory(sweep: Sweep) -> None:
    """Print the tables behind the answer: what theory promised, test points, pairs of schemes."""
    terminal = screen.console()
    for note in profile.notes([sweep]):
        screen.say(terminal, note)
    predicted = theory.predictions(sweep)
    if "2/L" in predicted:
        title = headings.PREDICTIONS + (headings.RATIO if "seen / promised" in predicted else "")
        _print_table(terminal, title, predicted)
    else:
        screen.say(
            terminal, NO_THEORY if _without_theory(sweep) else "Theory promises no step size here."
        )
        terminal.print()
    _print_held_out(terminal, sweep)
    for name in sweep.experiments:
        screen.say(terminal, f"{name}: {theory.explanation(sweep, name)}")


def _print_held_out(terminal: Console, sweep: Sweep) -> None:
    """Print how test points fared, and pairs of schemes where there are splits."""
    pairs, splits = comparisons.repeated(sweep), heldout.by_split(sweep)
    if not splits.empty:
        _print_table(terminal, headings.TEST_POINTS, heldout.summary(splits))
    folds = heldout.cross_validated(sweep)
    if not folds.empty:
        _print_table(terminal, headings.FOLDS, folds)
    once = tuned_once(sweep)
    if not once.empty:
        _print_table(terminal, headings.TUNED_ONCE, comparisons.with_settings(once))
    if not pairs.empty:
        _print_table(terminal, f"{headings.PAIRS} ({comparisons.assurance(pairs)})", pairs)
    if len(judged := heldout.paired(splits)) and judged["splits"].max() > 1:
        title = f"{headings.TEST_PAIRS}; {heldout.unit(splits)}"
        title = f"{title} ({comparisons.assurance(judged)}); {heldout.CLAIMS}"
        _print_table(terminal, title, judged)


def _print_table(terminal: Console, title: str, table: pd.DataFrame) -> None:
    """Print a table under its title."""
    screen.say(terminal, title, style="bold")
    screen_table.plain(terminal, table)
    terminal.print()
