"""`normbench results` draws the last comparison again, and lists the others.

Heavy libraries are imported where a command needs them, so that `--help` is quick.
"""

import argparse
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normbench import names
from normbench.command.garbage import collect_seldom
from normbench.command.results.arguments import FIGURE_FORMATS, SCREEN_FORMAT, parse, suggest
from normbench.results.figures import NAMES, PHOTOGRAPHIC_FIGURES
from normbench.results.safe import clean
from normbench.results.store import stores
from normbench.results.store.errors import ResultsError, unwritable
from normbench.synonyms import command_of

if TYPE_CHECKING:
    from normbench.results.figures.base.material import Options
    from normbench.results.store.runs import Sweep

WIDE = 110  # columns of what is not on a terminal
SUFFIXES = {"text": "txt", "markdown": "md", "latex": "tex"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of `normbench results`; return its exit code.

    The code is 0, 1 for some commands (such as `studies`) or where the store cannot be written any
    more, 2 on a user's mistake, and 130 on Ctrl-C. A mistake and a lost store are told in one line.

    Args:
        arguments: The words after `normbench results`; those of the process if None. Without the
            name of a command they are those of `show`.
    """
    command_words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # A word that resembles a command is taken for a mistyped one, any other for a sweep's id.
        if not command_words or (
            command_words[0] not in COMMANDS and command_words[0] not in ("-h", "--help")
        ):
            if suggestion := _suggest_command(command_words):
                raise ResultsError(
                    f"results {command_words[0]}: there is no such command{suggestion}"
                )
            command_words.insert(0, "show")
        options = parse(command_words)
        options.store = stores.absolute(options.store)
        if options.command not in OF_RUNS:  # the others enable it in `_sweep`, after heavy imports
            collect_seldom()
        options.left_out = []  # `_sweep` puts the notes of the sweep here
        code = int(COMMANDS[options.command](options))
        # Notes on histories that could not be read: these are read while the command runs.
        _print_notes(options.left_out)
        return code
    # Of these kinds are the errors of results and of a user's settings; any other is a bug.
    except (LookupError, ValueError) as error:
        from normbench.datasets.values import UserError  # it loads numpy

        if not isinstance(error, (ResultsError, UserError)):
            raise
        print(f"normbench: {error.args[0]}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        from normbench.recording.store.connection import StoreLostError  # it loads numpy

        if not isinstance(error, StoreLostError):
            raise
        print(f"normbench: {error}; the same command finishes it", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _suggest_command(words: Sequence[str]) -> str:
    """Return how to type a command that the first of some words resembles; empty without one."""
    if not words:
        return ""
    meant = command_of(words[0], words[1:])
    return f"; type {meant}" if meant else suggest(words[0], COMMANDS)


def _sweep(options: argparse.Namespace) -> "Sweep":
    """Return the sweep that the options choose; print notes on it to the error output.

    Args:
        options: The options `store`, `sweep` and `where`. `left_out` becomes the list to which the
            sweep will add notes on what it cannot read.

    Raises:
        ResultsError: Both `sweep` and `where` are given, or nothing is found.
    """
    from normbench.results.store import runs

    if options.where and options.sweep:
        raise ResultsError(
            f"--where: finds runs of every comparison; leave {' '.join(options.sweep)} out"
        )
    if options.where:
        sweep = runs.load_query(options.store, options.where)
        _print_notes(sweep.left_out)
    else:
        sweep = _read(options.store, options.sweep or ())
    sweep.left_out.clear()  # these notes are printed by now
    options.left_out = sweep.left_out
    collect_seldom()  # the libraries are there by now: of their objects none is garbage
    return sweep


def _read(store: str, sweep_ids: Sequence[str]) -> "Sweep":
    """Return sweeps as one, and print notes on their state to the error output.

    Args:
        store: The URI of the store.
        sweep_ids: The ids of the sweeps; the last sweep if empty.
    """
    from normbench.results.store import state

    sweep, notes = state.read(store, sweep_ids)
    _print_notes(notes)
    return sweep


def _print_notes(notes: Sequence[str]) -> None:
    """Print sentences to the error output, a line each."""
    for note in notes:
        print(note, file=sys.stderr)


def _has_default_drawing(options: argparse.Namespace) -> bool:
    """Return whether the options of drawing are the defaults.

    A comparison draws by these, so that only such figures can be reused.
    """
    # Their defaults are 0, None or empty. That of `components` is None, and 0 is a mistake.
    drawing_settings = options.first_iteration, options.scale, options.steps, options.components
    is_default = options.components is None and options.by == "iterations"
    return options.format == "screen" and not any(drawing_settings) and is_default


def _options(options: argparse.Namespace) -> "Options":
    """Return the options of drawing; raise `ResultsError` for one that is out of its range.

    Args:
        options: The parsed options that `arguments._drawing_options` declares.
    """
    from normbench.results.figures.base.material import Options
    from normbench.results.figures.base.style import FORMATS

    if options.first_iteration < 0:
        raise ResultsError(f"--first-iteration {options.first_iteration}: must be 0 or more")
    if options.components is not None and options.components < 1:
        raise ResultsError(f"--components {options.components}: must be 1 or more")
    try:
        steps = tuple(float(text) for text in options.steps.split(",") if text)
        if not all(0 < step < float("inf") for step in steps):
            raise ValueError  # refused below like a text that is no number
    except ValueError:
        raise ResultsError(
            f"--steps {options.steps}: must be positive numbers with commas, such as 0.1,1"
        ) from None
    shape, first = FORMATS[options.format], options.first_iteration
    return Options(shape, first, options.scale, steps, options.components, options.by)


def _folder(options: argparse.Namespace, sweep: "Sweep") -> Path:
    """Return the folder of the files: `--out`, or by default `outputs/ID`.

    The default of a figure's format other than the screen's is `outputs/ID/FORMAT`.
    """
    shape = getattr(options, "format", SCREEN_FORMAT)
    default_folder = Path("outputs") / clean.name(sweep.sweep_id)
    if shape in FIGURE_FORMATS and shape != SCREEN_FORMAT:  # `shape` may be a table's format
        default_folder /= shape
    return Path(options.out or default_folder).absolute()


def _show(options: argparse.Namespace) -> int:
    """Print a sweep's comparison and draw its figures; figures that are up to date are reused."""
    drawing = None if _has_default_drawing(options) else _options(options)  # None: reuse figures
    from normbench.results.pages import drawn
    from normbench.results.report.terminal import present

    sweep = _sweep(options)
    folder = _folder(options, sweep)
    drawn_files = None if drawing else drawn.current_figures(sweep, folder)

    def write_files() -> dict[str, list[Path]]:
        if drawn_files is not None:
            return drawn_files
        from normbench.results.report import files

        return files.write(sweep, folder, options=_options(options))

    present(sweep, write_files)
    return 0


def _list(options: argparse.Namespace) -> int:
    """Print the sweeps of the store."""
    from normbench.results.store import runs

    _print_table(runs.sweeps(options.store))
    return 0


def _print_table(table: Any) -> None:
    """Print a pandas table: on a terminal in blocks that fit, by rich; elsewhere as text."""
    if _columns():  # a terminal
        from normbench.results.report import screen, screen_table

        screen_table.print_table(screen.console(), table)
        return
    from normbench.results.answer import tables

    print(tables.text(table))


def _columns() -> int:
    """Return how many columns the terminal has; 0 where the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _studies(options: argparse.Namespace) -> int:
    """Print the studies' numbers beside the expected ones.

    Return 1 if some differ without an explanation, else 0.
    """
    from normbench.results.answer import tables
    from normbench.results.studies import expected
    from normbench.results.studies import study_table as studies

    write = tables.TABLE_FORMATS[options.format]
    last, notes = studies.last_sweeps(options.store, options.folder)
    for note in notes:
        print(note, file=sys.stderr)
    checked = studies.compare_with_sources(last, options.folder)
    if checked.empty:  # studies without expected numbers
        print(write(studies.table(last)))
        return 0
    is_text = options.format == "text"  # whose table is narrow, with the reasons below it
    reasons = expected.reasons(checked) if is_text else []
    print(write(expected.narrow_table(checked) if is_text else checked))
    print("".join(f"\n{line}" for line in reasons), end="\n" if reasons else "")
    return 1 if expected.unexplained(checked) else 0


def _table(options: argparse.Namespace) -> int:
    """Print a table of schemes or of histories, or write it to a file and print its path.

    A format that is no text, such as Parquet, is always written.
    """
    from normbench.results.answer import tables

    sweep = _sweep(options)
    has_histories = options.histories or options.all_steps
    # The run of a scheme has the histories of its best step size.
    role = names.STEP if options.all_steps else names.SCHEME
    table = tables.histories(sweep, role) if has_histories else tables.summary(sweep)
    if table.empty:
        raise ResultsError(
            f"table {'--all-steps' if options.all_steps else '--histories'}: {sweep.sweep_id} has "
            "no histories; its jobs failed, or the runs of its steps were deleted"
        )
    # The table of schemes is fitted to a terminal; histories are too long for one.
    if not (options.out or has_histories) and options.format == "text":
        _print_table(table)
        return 0
    formatted = tables.TABLE_FORMATS[options.format](table)
    if not options.out and isinstance(formatted, str):
        print(formatted)
        return 0
    folder = _folder(options, sweep)
    suffix = SUFFIXES.get(options.format, options.format)
    file = folder / f"{'histories' if has_histories else 'table'}.{suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(formatted if isinstance(formatted, bytes) else f"{formatted}\n".encode())
    except OSError as error:
        raise unwritable(folder, error) from error
    print(file)
    return 0


def _theory(options: argparse.Namespace) -> int:
    """Print what theory predicts, and what was seen."""
    from normbench.results.report.terminal import print_theory

    print_theory(_sweep(options))
    return 0


def _glossary(options: argparse.Namespace) -> int:
    """Print the glossary, as wide as the terminal."""
    from normbench.results.words import glossary

    print(glossary.text(_columns() or WIDE))
    return 0


def _figure(options: argparse.Namespace) -> int:
    """Write one figure of a sweep in every file format, and print the files' paths.

    Options that the figure does not take are refused before anything is loaded.
    """
    drawing_options = _options(options)
    if options.name not in NAMES:
        raise ResultsError(
            f"figure {options.name}: no such figure; choose one of {', '.join(NAMES)}"
            f"{suggest(options.name, NAMES)}"
        )
    for option, is_set in (
        ("--scale excess", options.scale == "excess"),
        (f"--by {options.by}", options.by != "iterations"),
    ):
        if is_set and options.name not in ("histories", "closer"):
            raise ResultsError(
                f"{option}: is of histories and closer; leave it out of figure {options.name}"
            )
    if options.dark and options.name in PHOTOGRAPHIC_FIGURES:
        raise ResultsError(
            f"--dark: {options.name} shows images, which are not inverted; leave --dark out"
        )
    from normbench.results.figures import drawing
    from normbench.results.figures.base import output

    sweep = _sweep(options)
    sweep = sweep.of_scheme(options.scheme) if options.scheme else sweep
    folder = _folder(options, sweep)
    file_formats = ("png", "svg", "pdf")
    written = drawing.write(sweep, folder, [options.name], drawing_options, file_formats)
    files = list(dict.fromkeys(file for group in written.values() for file in group))
    if not files:
        raise ResultsError(drawing.missing_figure_message(sweep, options.name))
    if options.dark:
        files += [output.write_dark(file) for file in files if output.has_dark(file)]
    print("\n".join(str(file) for file in files))
    return 0


def _report(options: argparse.Namespace) -> int:
    """Write the report of a sweep, and print its path."""
    from normbench.results.report import page as report

    sweep = _sweep(options)
    print(report.write(sweep, _folder(options, sweep)))
    return 0


def _rejudge(options: argparse.Namespace) -> int:
    """Judge a recorded sweep again by other rules, as a new sweep."""
    from normbench.command.results import rejudge

    sweep, rules = options.sweep, options.rules
    if sweep and "=" in sweep:  # no id: argparse took the first of several rules for it
        sweep, rules = None, [sweep, *rules]
    folder = Path(options.out).absolute() if options.out else None
    rule_values = rejudge.parse_rules(rules)
    old = _read(options.store, [sweep] if sweep else ())
    return rejudge.run(options.store, old, rule_values, folder)


def _delete(options: argparse.Namespace) -> int:
    """Delete sweeps from the store, once the user has confirmed or with `--yes`."""
    from normbench.command.results import delete

    return delete.run(options.store, options.sweep, options.yes)


def _export(options: argparse.Namespace) -> int:
    """Write sweeps to an archive."""
    from normbench.command.results import moving

    return moving.export_sweeps(options.store, options.sweep, options.all, options.overwrite)


def _import(options: argparse.Namespace) -> int:
    """Read an archive into the store; an interrupted import resumes with the same command."""
    from normbench.command.results import moving

    try:
        return moving.import_sweeps(options.store, options.artifacts, options.file)
    except KeyboardInterrupt:
        print("normbench: stopped; the same command finishes the import", file=sys.stderr)
        raise


def _profile(options: argparse.Namespace) -> int:
    """Print the performance profile of schemes over sweeps; draw it where `--out` is given."""
    from normbench.results.figures.base.style import FORMATS
    from normbench.results.report.profile import print_profile

    folder = Path(options.out).absolute() if options.out else None
    shape = FORMATS[options.format]
    print_profile(options.store, options.sweep, options.target, options.by, folder, shape)
    return 0


def _dashboard(options: argparse.Namespace) -> int:
    """Serve MLflow's page of the store until it is stopped."""
    from normbench.results.pages.dashboard import serve
    from normbench.results.store import mlflows_own, uris

    database = uris.database(options.store)
    # In a database that was moved or copied, MLflow would look for artifacts at the old place.
    if database and database.is_file():
        with suppress(sqlite3.Error):  # the server reports it when it reads the file
            mlflows_own.update_artifact_locations(database)
    return serve(options.store, options.host, options.port)


OF_RUNS = ("show", "table", "theory", "figure", "report")  # which begin with `_sweep`
COMMANDS = {
    "show": _show,
    "list": _list,
    "studies": _studies,
    "table": _table,
    "theory": _theory,
    "figure": _figure,
    "report": _report,
    "rejudge": _rejudge,
    "delete": _delete,
    "export": _export,
    "import": _import,
    "profile": _profile,
    "words": _glossary,
    "dashboard": _dashboard,
}
