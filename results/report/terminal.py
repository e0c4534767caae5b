"""The terminal output at the end of a comparison: the answer, a table and the files."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from normbench import names
from normbench.results.answer import cause, fastest, headline, scheme_faults, seconds, tables
from normbench.results.answer import closing as answer
from normbench.results.answer import theory_table as theory
from normbench.results.answer.race import race_target
from normbench.results.compare import comparisons, heldout, passes, problems
from normbench.results.compare.merging import MAX_DRAWN_SCHEMES, has_too_many_schemes, merged
from normbench.results.compare.reached import tuned_once
from normbench.results.report import profile, screen, screen_table
from normbench.results.safe import clean
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words import headings

Files = Mapping[str, Sequence[Path]]
NO_THEORY = "No theory was recorded; theory=full records it, whatever it costs."


def present(sweep: Sweep, write_files: Callable[[], Files]) -> Files:
    """Print the answer and the table of a comparison, then where its files are.

    Args:
        sweep: The runs.
        write_files: Writes the figures and the report, unless they are there, and returns their
            files by experiment. It is called once the answer is printed.

    Returns:
        The files by experiment.

    Raises:
        ResultsError: The files cannot be written.
    """
    terminal = screen.console()
    terminal.print()
    _say_answers(terminal, sweep)
    terminal.print()
    budget = passes.budget(sweep.of_role(names.SCHEME))
    if budget:  # empty where no job has a descent
        medians_note = answer.medians_note(merged(sweep).of_role(names.SCHEME))
        screen.print_lines(terminal, f"{budget[:1].upper()}{budget[1:]}{medians_note}:")
    screen_table.show(terminal, sweep)
    # Where no least cost is known, nothing is said of an excess.
    if tables.EXCESS_LEFT in tables.summary(sweep):
        screen.print_lines(terminal, headings.GLOSSARY_LINE, style="dim")
    terminal.print()
    _say_failures(terminal, sweep)
    files = write_files()
    _say_locations(terminal, sweep, files)
    return files


def _say_answers(terminal: Console, sweep: Sweep) -> None:
    """Print the headline, then for each experiment the cause or the theory, and the remarks."""
    splits = heldout.by_split(sweep)
    has_several = len(sweep.experiments) > 1
    overall_headline = headline.headline(sweep)
    screen.print_lines(terminal, overall_headline, style="bold")
    for name in sweep.experiments:
        experiment_headline = headline.headline(sweep, name)
        if has_several:
            screen.print_lines(terminal, f"{name}: {experiment_headline}")
        why = cause.cause(sweep, name)
        # The explanation by theory includes its notes; the cause replaces all but these.
        lines = [why, *theory.notes(sweep, name)] if why else [theory.explanation(sweep, name)]
        lines += scheme_faults.remarks(sweep, name)
        # The headline is printed already.
        lines += [
            line for line in fastest.answers(sweep, name, splits) if line != experiment_headline
        ]
        # A headline may already name the diverged runs.
        headlines = f"{overall_headline} {experiment_headline}"
        lines += [
            line
            for line in answer.batch_and_exclusion_remarks(sweep, name)
            if line not in headlines
        ]
        screen.print_lines(terminal, *lines)
    screen.print_lines(terminal, *profile.notes([sweep]), *answer.targets(sweep))


def _say_failures(terminal: Console, sweep: Sweep) -> None:
    """Print the failed jobs with their reasons; nothing where none failed."""
    schemes = sweep.of_role(names.SCHEME)
    failed = schemes[schemes["verdict"] == names.FAILED]
    if failed.empty:
        return
    screen.print_lines(terminal, f"{len(failed)} of {len(schemes)} jobs failed:", style="bold")
    for row in as_rows(failed):
        screen.print_lines(terminal, f"  {row['experiment']}, {row['label']}: {row['reason']}")
    terminal.print()


def _say_locations(terminal: Console, sweep: Sweep, drawn: Files) -> None:
    """Print where the files, the dashboard and the store of the comparison are.

    Args:
        terminal: The console.
        sweep: The runs.
        drawn: The files of the figures and of the report by experiment.
    """
    for name in sweep.experiments:
        if has_too_many_schemes(sweep, name):
            screen.print_lines(
                terminal,
                f"figures    none of {name}: more than {MAX_DRAWN_SCHEMES} schemes; "
                "normbench results figure NAME --where FILTER draws one of some",
            )
    screen.print_lines(terminal, f"more       {headings.MORE_TABLES}")
    all_files = list(dict.fromkeys(file for files in drawn.values() for file in files))
    for folder in dict.fromkeys(file.parent for file in all_files):
        folder_files = [file for file in all_files if file.parent == folder]
        screen.print_lines(
            terminal, f"files      {_relative_path(folder)}: {_contents(folder_files)}"
        )
    is_copied = "://" in sweep.store
    dashboard_hint = "  (normbench dashboard shows it)" if is_copied else ""
    label = "copied to" if is_copied else "recorded"
    screen.print_lines(terminal, f"{label:11}{clean.line(sweep.store)}{dashboard_hint}")


def _relative_path(folder: Path) -> str:
    """Return a folder relative to the working folder if it lies inside."""
    working_folder = Path(os.getcwd())
    return (
        str(folder.relative_to(working_folder))
        if folder.is_relative_to(working_folder)
        else str(folder)
    )


def _contents(files: Sequence[Path]) -> str:
    """Return the names of the pages among files, and the number and formats of the figures."""
    pages = list(dict.fromkeys(file.name for file in files if file.suffix == ".html"))
    figures = dict.fromkeys(file.stem for file in files if file.suffix != ".html")
    formats = dict.fromkeys(file.suffix.lstrip(".") for file in files if file.suffix != ".html")
    count = f"{len(figures)} figure{'s' * (len(figures) > 1)} ({', '.join(formats)})"
    return " and ".join([*pages, *([count] if figures else [])])


def _without_theory(sweep: Sweep) -> bool:
    """Return whether a job that did not fail was run with `theory=none`."""
    # Then theory is missing by choice, not because it promises nothing.
    jobs = sweep.of_role(names.SCHEME)
    asked = jobs.get(names.setting("theory"), pd.Series(dtype=str))
    return bool((asked[jobs["verdict"] != names.FAILED] == "none").any())


def print_theory(sweep: Sweep) -> None:
    """Print the tables behind the answer: predictions of theory, test points, pairs of schemes."""
    terminal = screen.console()
    for note in profile.notes([sweep]):
        screen.print_lines(terminal, note)
    predicted = theory.predictions(sweep)
    if "2/L" in predicted:  # the column is left out where no scheme has a threshold
        title = headings.PREDICTIONS + (
            headings.RATIO_CAPTION if "seen / promised" in predicted else ""
        )
        _print_table(terminal, title, predicted)
    else:
        screen.print_lines(
            terminal, NO_THEORY if _without_theory(sweep) else "Theory promises no step size here."
        )
        terminal.print()
    target = race_target(sweep)
    timed = seconds.seconds(sweep, target)
    if not timed.empty:
        unit = passes.unit(sweep.of_role(names.SCHEME)).with_article
        title = headings.SECONDS.format(unit=unit, share=100 * float(target))
        _print_table(terminal, title, timed)
    _print_held_out(terminal, sweep)
    for name in sweep.experiments:
        screen.print_lines(terminal, f"{name}: {theory.explanation(sweep, name)}")


def _print_held_out(terminal: Console, sweep: Sweep) -> None:
    """Print the tables of held-out points and of repetitions, where there are any.

    The tables are those of test points, of cross-validation, of the best single step size for all
    splits, and of pairs of schemes: by iterations, and by predictions on the test points.
    """
    target, unit = race_target(sweep), passes.unit(sweep.of_role(names.SCHEME))
    pairs, splits = comparisons.compare_pairs_over_splits(sweep, target), heldout.by_split(sweep)
    if not splits.empty:
        _print_table(terminal, headings.TEST_POINTS, heldout.summary(splits, unit))
    folds = heldout.cross_validated(sweep)
    if not folds.empty:
        _print_table(terminal, headings.CROSS_VALIDATION, folds)
    sample = problems.sample_name(problems.scheme_runs([sweep]))
    tuned = tuned_once(sweep, target)
    if not tuned.empty:
        caption = headings.TUNED_ONCE.format(sample=sample)
        title = headings.iterations_to(unit.many, target, caption)
        _print_table(terminal, title, comparisons.with_settings(tuned))
    if not pairs.empty:
        title = headings.iterations_to(unit.many, target, headings.PAIRS.format(sample=sample))
        _print_table(terminal, f"{title} ({comparisons.assurance(pairs, sample)})", pairs)
    # Pairs that share a single split have no conclusion.
    if len(judged := heldout.compare_pairs(splits)) and judged["splits"].max() > 1:
        title = f"{headings.TEST_PAIRS}; {heldout.difference_caption(splits)}"
        title = f"{title} ({comparisons.assurance(judged)}); {heldout.CLAIMS}"
        _print_table(terminal, title, judged)


def _print_table(terminal: Console, title: str, table: pd.DataFrame) -> None:
    """Print a table under its title."""
    screen.print_lines(terminal, title, style="bold")
    screen_table.print_table(terminal, table)
    terminal.print()
