"""What a sweep ends in: one table on the terminal, the figures on disk, and where everything is."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from normbench import names
from normbench.results.answer import closing as answer
from normbench.results.answer import fastest, tables
from normbench.results.answer import theory_table as theory
from normbench.results.compare import comparisons, heldout, problems
from normbench.results.compare.merging import MOST, crowded
from normbench.results.compare.reached import tuned_once
from normbench.results.figures import BY_DEFAULT
from normbench.results.pages import dashboard
from normbench.results.report import profile
from normbench.results.safe import clean
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

if TYPE_CHECKING:
    from normbench.results.figures.base.material import Options

NEWLINE = "\n"
RATIO = "; ratio: over 2/L, the step that falls and the next, which does not (or the critical step)"
FOLDS = (
    "cross-validation, at the end; low to high, from 6 seeds on: where the median over seeds of "
    "these points lies, not the error on new points"
)
ONCE = "iterations to 1e-2 of the excess, each scheme tuned once: one step size for all splits"
EACH = (
    "iterations to 1e-2 of the excess, each scheme tuned for each split, in pairs; ratio: how much "
    "longer the other takes"
)
HELD_OUT = "test points, at the end; best: the lowest over the iterations, chosen on these points"


def present(
    sweep: Sweep,
    folder: Path,
    options: "Options | None" = None,
    drawn: dict[str, list[Path]] | None = None,
    wanted: Sequence[str] = BY_DEFAULT,
) -> dict[str, list[Path]]:
    """Print runs' table, draw their figures and write their report; return the files by experiment.

    drawn: the files of these very figures and report, where there are some. wanted: the names of
    the figures. Raises ResultsError where the folder cannot be written.
    """
    within = problems.budget(sweep.of_role(names.SCHEME))
    print(f"\n{f'{within}{NEWLINE}' if within else ''}{tables.text(tables.summary(sweep))}\n")
    _print_comparisons(sweep)
    splits = heldout.by_split(sweep)
    for name in sweep.experiments:
        print(textwrap.fill(f"{name}: {theory.explanation(sweep, name)}", 100))
        said = [answer.sentence(sweep, name), *fastest.answers(sweep, name, splits)]
        print(*(textwrap.fill(line, 100) for line in said), sep="\n")
    if len(sweep.experiments) > 1:
        print(textwrap.fill(answer.overall(sweep), 100))
    print()
    _print_failures(sweep)
    if drawn is None:
        from normbench.results.figures import drawing
        from normbench.results.report import page as report

        figures = drawing.write(sweep, folder, wanted, options or drawing.DEFAULT)
        page = report.write(sweep, folder, figures)
        drawn = {name: [*files, page] for name, files in figures.items()}
    for name in sweep.experiments:
        if crowded(sweep, name):
            print(
                f"figures    none of {name}: more than {MOST} schemes; "
                "normbench results figure NAME --where FILTER draws one of some"
            )
    for file in dict.fromkeys(file for files in drawn.values() for file in files):
        print(f"{'report' if file.suffix == '.html' else 'figure':10} {file}")
    for name in sweep.experiments if not sweep.is_query else ():
        print(f"dashboard  {dashboard.link(sweep, name)}  (normbench dashboard serves it)")
    print(f"store      {clean.line(sweep.store)}")
    return drawn


def print_theory(sweep: Sweep) -> None:
    """Print what theory predicts, beside what was observed, and what follows from it."""
    if not _print_predictions(sweep):
        print("nothing was recorded of theory; theory=full finds it out, whatever it costs\n")
    for name in sweep.experiments:
        print(textwrap.fill(f"{name}: {theory.explanation(sweep, name)}", 100))


def _print_predictions(sweep: Sweep) -> bool:
    """Print the table of theory's predictions; return whether there is one."""
    predicted = theory.predictions(sweep)
    if "2/L" not in predicted:
        return False
    ratio = RATIO if "ratio" in predicted else ""
    _print_table(f"theory against observation{ratio}", predicted)
    return True


def _print_comparisons(sweep: Sweep) -> None:
    """Print what theory predicted, how test points fared, and pairs where there are splits."""
    for note in profile.notes([sweep]):
        print(textwrap.fill(note, 100), end="\n\n")
    _print_predictions(sweep)
    pairs, splits = comparisons.repeated(sweep), heldout.by_split(sweep)
    if not splits.empty:
        _print_table(HELD_OUT, heldout.summary(splits))
    folds = heldout.cross_validated(sweep)
    if not folds.empty:
        _print_table(FOLDS, folds)
    once = tuned_once(sweep)
    if not once.empty:
        _print_table(ONCE, comparisons.with_settings(once))
    if not pairs.empty:
        title = EACH
        _print_table(f"{title}\n({comparisons.assurance(pairs)})", pairs)
    if len(judged := heldout.paired(splits)) and judged["splits"].max() > 1:
        title = f"test points at the end, paired; {heldout.unit(splits)}"
        _print_table(f"{title}\n({comparisons.assurance(judged)})\n{heldout.CLAIMS}", judged)


def _print_table(title: str, table: pd.DataFrame) -> None:
    """Print a table under its title, set in from the comparison's own."""
    print(title)
    print(textwrap.indent(tables.text(table), "  "), end="\n\n")


def _print_failures(sweep: Sweep) -> None:
    schemes = sweep.of_role(names.SCHEME)
    failed = schemes[schemes["verdict"] == names.FAILED]
    if failed.empty:
        return
    print(f"{len(failed)} of {len(schemes)} jobs failed:")
    for row in as_rows(failed):
        print(f"  {row['experiment']}, {row['label']}: {row['reason']}")
    print()
