"""`normbench results` draws the last comparison again, and lists the others.

Heavy libraries are imported where a command needs them, so that `--help` is quick.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normbench import names
from normbench.command.garbage import collect_seldom
from normbench.command.results.arguments import FIGURE_FORMATS, SCREEN_FORMAT, parse, suggest
from normbench.results.figures import NAMES, PHOTOGRAPHIC_FIGURES
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError, unwritable
from normbench.synonyms import command_of

if TYPE_CHECKING:
    from normbench.results.figures.base.material import Options
    from normbench.results.store.runs import Sweep

WIDE = 110  # columns of what is not on a terminal
SUFFIXES = {"text": "txt", "markdown": "md", "latex": "tex"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of `normbench results`; return its exit code.

    The code is 0, 1 for some commands (such as `studies`), 2 on a user's mistake, and 130 on
    Ctrl-C. A mistake is told in one line.

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
        options.home = Path(options.home)
        if options.command not in OF_RUNS:  # the others enable it in `_sweep`, after heavy imports
            collect_seldom()
        if options.store and options.command not in OF_STORES:
            _fetch(options)
        return int(COMMANDS[options.command](options))
    # Of these kinds are the errors of results and of a user's settings; any other is a bug.
    except (LookupError, ValueError) as error:
        from normbench.datasets.values import UserError  # it loads numpy

        if not isinstance(error, (ResultsError, UserError)):
            raise
        print(f"normbench: {error.args[0]}", file=sys.stderr)
        return 2
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
        options: The options `home`, `sweep` and `where`.

    Raises:
        ResultsError: Both `sweep` and `where` are given, or nothing is found.
    """
    from normbench.results.store import runs

    if options.where and options.sweep:
        raise ResultsError(
            f"--where: finds runs of every comparison; leave {' '.join(options.sweep)} out"
        )
    if options.where:
        sweep = runs.load_query(options.home, options.where)
        _print_notes(sweep.left_out)
    else:
        sweep = _read(options.home, options.sweep or ())
    collect_seldom()  # the libraries are there by now: of their objects none is garbage
    return sweep


def _read(home: Path, sweep_ids: Sequence[str]) -> "Sweep":
    """Return comparisons as one, and print notes on their state to the error output.

    Args:
        home: The folder of comparisons and their records.
        sweep_ids: The ids of the comparisons; the last one if empty.
    """
    from normbench.results.store import state

    sweep, notes = state.read(home, sweep_ids)
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
    default_folder = options.home / clean.name(sweep.sweep_id)
    if shape in FIGURE_FORMATS and shape != SCREEN_FORMAT:  # `shape` may be a table's format
        default_folder /= shape
    return Path(options.out or default_folder).absolute()


def _show(options: argparse.Namespace) -> int:
    """Print a sweep's comparison and draw its figures; figures that are up to date are reused."""
    drawing = None if _has_default_drawing(options) else _options(options)  # None: reuse figures
    from normbench.record.provenance import code_digest
    from normbench.results.report.terminal import present

    sweep = _sweep(options)
    folder = _folder(options, sweep)
    drawn_files = None
    if not (drawing or sweep.is_query) and folder == sweep.comparisons[0].folder.absolute():
        drawn_files = sweep.comparisons[0].drawn_files(code_digest(), tuple(NAMES))

    def write_files() -> dict[str, list[Path]]:
        if drawn_files is not None:
            return drawn_files
        from normbench.results.report import files

        return files.write(sweep, folder, options=_options(options))

    present(sweep, write_files)
    return 0


def _list(options: argparse.Namespace) -> int:
    """Print the comparisons that are recorded."""
    from normbench.results.store import runs

    _print_table(runs.sweeps(options.home))
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
    last, notes = studies.last_sweeps(options.home, options.folder)
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
            "no histories; its jobs failed"
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
    old = _read(options.home, [sweep] if sweep else ())
    return rejudge.run(old, rule_values, folder)


def _delete(options: argparse.Namespace) -> int:
    """Delete comparisons, once the user has confirmed or with `--yes`."""
    from normbench.record import folder
    from normbench.results.store import comparison_files

    chosen = comparison_files.select(options.home, options.sweep)
    for comparison in chosen:
        if comparison.is_running:
            raise ResultsError(f"comparison {comparison.id}: is at work; stop it, or wait for it")
    stay = len(folder.shared_keys(chosen))
    jobs = len({key for comparison in chosen for key in comparison.keys}) - stay
    summary = f"{jobs} job{'s' * (jobs != 1)}, with their records and figures"
    summary += f"; {stay} that other comparisons share stay" if stay else ""
    sweep_names = ", ".join(comparison.id for comparison in chosen)
    if not options.yes and not _confirm(f"delete {sweep_names}: {summary}"):
        print("nothing is deleted")
        return 0
    folder.delete(chosen)
    print(f"deleted {sweep_names}: {summary}")
    if any(comparison.tracking for comparison in chosen):
        print("what MLflow has of them stays there; it is deleted on its pages")
    return 0


def _confirm(question: str) -> bool:
    """Return whether the user confirms; raise ResultsError where there is no terminal."""
    if not sys.stdin.isatty():
        raise ResultsError(f"{question}: nobody can be asked here; add --yes")
    try:
        return input(f"{question}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:  # Ctrl-D
        print()
        return False


def _export(options: argparse.Namespace) -> int:
    """Write comparisons into one file, and print its path."""
    from normbench.record import archive
    from normbench.results.store import comparison_files

    *sweeps, name = options.sweep
    if bool(sweeps) == options.all:  # both, or neither
        rule = "--all leaves no comparison to name" if options.all else "names no comparison"
        raise ResultsError(
            f"export {' '.join(options.sweep)}: {rule}; write normbench results export ID FILE, or "
            "--all FILE"
        )
    chosen = comparison_files.select(options.home, sweeps)
    chosen = chosen or comparison_files.recorded(options.home)  # with --all
    if not chosen:
        raise comparison_files.empty_home(options.home)
    file = Path(name).absolute()
    counts = archive.write(chosen, file, options.overwrite)
    print(f"exported {counts}: {file.stat().st_size / 1e6:.3g} MB")
    print(file)
    return 0


def _import(options: argparse.Namespace) -> int:
    """Read the comparisons of a file that `export` wrote."""
    from normbench.record import archive

    counts, new_ids = archive.read(Path(options.file), options.home)
    for old, new in new_ids.items():
        print(f"comparison {old} is {new} here: another one has its id")
    print(f"imported {counts}")
    return 0


def _publish(options: argparse.Namespace) -> int:
    """Copy a comparison to MLflow."""
    from normbench.record import mlflow
    from normbench.results.store import comparison_files

    (comparison,) = comparison_files.select(options.home, [options.sweep])
    uri = options.store or comparison.tracking
    if not uri:
        raise ResultsError(f"publish {comparison.id}: names no MLflow; add --store URI")
    mlflow.publish(options.home, comparison.id, uri)
    print(f"copied to  {clean.line(uri)}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    """Fetch the comparisons of a store of MLflow's, or those that the options name."""
    from normbench.record import mlflow

    if not options.store:
        raise ResultsError("fetch: names no MLflow; add --store URI")
    ids = getattr(options, "sweep", None) or [None]
    ids = [ids] if isinstance(ids, str) else ids
    fetched = [mlflow.fetch(options.store, options.home, sweep_id) for sweep_id in ids]
    if options.command in OF_RUNS and not options.where:
        options.sweep = fetched
    if options.command == "fetch":
        print(f"fetched {', '.join(map(clean.line, fetched))}")
    return 0


def _profile(options: argparse.Namespace) -> int:
    """Print the performance profile of schemes over sweeps; draw it where `--out` is given."""
    from normbench.results.figures.base.style import FORMATS
    from normbench.results.report.profile import print_profile

    folder = Path(options.out).absolute() if options.out else None
    shape = FORMATS[options.format]
    print_profile(options.home, options.sweep, options.target, options.by, folder, shape)
    return 0


def _dashboard(options: argparse.Namespace) -> int:
    """Serve MLflow's page of the copy until it is stopped."""
    from normbench.record.dashboard import serve

    serve(options.home, options.store, options.host, options.port)
    return 0


OF_RUNS = ("show", "table", "theory", "figure", "report")  # which begin with `_sweep`
OF_STORES = ("publish", "fetch", "dashboard", "export", "import", "delete", "words")
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
    "publish": _publish,
    "fetch": _fetch,
    "profile": _profile,
    "words": _glossary,
    "dashboard": _dashboard,
}
