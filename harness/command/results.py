"""`normbench results` draws the last comparison again, and lists the others.

Heavy libraries are loaded where a command needs them, so that `--help` is quick.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from normbench.results import clean, names
from normbench.results.errors import ResultsError, unwritable
from normbench.results.figures import NAMES
from normbench.results.stores import DEFAULT_STORE

if TYPE_CHECKING:
    from normbench.results.figures.material import Options
    from normbench.results.runs import Sweep

TABLES = ("text", "markdown", "csv", "latex", "parquet")
SHAPES = ("column", "page", "slide", "screen")
SUFFIXES = {"text": "txt", "markdown": "md", "latex": "tex"}

EXAMPLES = """examples:
  normbench results                              the last sweep's table and figures
  normbench results list                         the sweeps of the store
  normbench results figure histories --first-iteration 1 --format page
  normbench results figure histories --steps 0.1,1 --scale linear
  normbench results figure contours --out figures
  normbench results figure film --scheme zca_sphere
  normbench results report                       one HTML file with all of it
  normbench results rejudge rules.tail=0.2       the last sweep by other rules
  normbench results table SWEEP SWEEP            several sweeps side by side
  normbench results delete SWEEP                 a sweep, for good
  normbench results table --format latex
  normbench results table --histories --format parquet --out tables
  normbench results table --histories --where "params.dataset = 'digits'" --format csv

normbench results alone, or with a sweep's id, is normbench results show."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; exit 0, or 2 with one line on a user's mistake."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not words or (words[0] not in COMMANDS and words[0] not in ("-h", "--help")):
            near = _near(words[0], COMMANDS) if words else ""
            if near:
                raise ResultsError(f"results {words[0]}: there is no such command{near}")
            words.insert(0, "show")
        options = _parser().parse_args(words)
        return int(COMMANDS[options.command](options))
    except ResultsError as error:
        print(f"normbench: {error.args[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _near(word: str, known: Iterable[str]) -> str:
    from normbench.datasets.values import did_you_mean

    return did_you_mean(word, known)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as every other mistake's."""

    flags: ClassVar[set[str]] = set()  # of all commands

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument, and remember how it is written."""
        self.flags.update(name for name in names if name.startswith("-"))
        return super().add_argument(*names, **options)

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        near = _near(unknown[1], self.flags) if unknown else ""
        raise ResultsError(f"{message}; {self.prog} --help shows what there is{near}")


def _parser() -> argparse.ArgumentParser:
    store = _Parser(add_help=False)
    store.add_argument(
        "--store",
        metavar="URI",
        default=DEFAULT_STORE,
        help="MLflow's tracking URI: a database or a server (%(default)s)",
    )
    chosen = _Parser(add_help=False, parents=[store])
    chosen.add_argument(
        "sweep", nargs="*", help="the sweep's id; the last one without, several as if they were one"
    )
    chosen.add_argument(
        "--where",
        metavar="FILTER",
        help="the scheme runs of every sweep that MLflow's filter finds, such as "
        "\"params.dataset = 'digits' and tags.normalizer = 'standard'\"",
    )
    drawn = _drawing_options()
    parser = _Parser(
        prog="normbench results",
        description="Tables and figures of recorded comparisons, read from MLflow.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    show = commands.add_parser(
        "show", parents=[chosen, drawn], help="a sweep's table and every figure that it has"
    )
    show.add_argument("--out", metavar="FOLDER", help="where figures go (outputs/SWEEP)")

    commands.add_parser("list", parents=[store], help="the sweeps of a store")

    studies = commands.add_parser(
        "studies",
        parents=[store],
        help="the studies of conf/experiment: what the source says, what was measured",
    )
    studies.add_argument("folder", nargs="?", default="textbook", help="(%(default)s)")
    studies.add_argument(
        "--format", choices=("text", "markdown", "csv"), default="text", help="(%(default)s)"
    )

    table = commands.add_parser(
        "table",
        parents=[chosen],
        help="a sweep's table, or its histories, as text, Markdown, CSV, LaTeX or Parquet",
        description="One row a scheme; with --histories one row a run and iteration. In Python: "
        "normbench.results.tables.histories(normbench.results.runs.load(STORE, SWEEP)) is the "
        "same as a pandas frame.",
    )
    table.add_argument("--format", choices=TABLES, default="text", help="(%(default)s)")
    table.add_argument(
        "--histories", action="store_true", help="one row a scheme's best run and iteration"
    )
    table.add_argument("--all-steps", action="store_true", help="histories of every step size")
    table.add_argument(
        "--out", metavar="FOLDER", help="write a file there; without, print (Parquet: outputs)"
    )

    rejudge = commands.add_parser(
        "rejudge",
        parents=[store],
        help="a sweep judged by other rules, without a descent, as a sweep of its own",
        description="What is recorded stays as it is. What follows from a step size that no "
        "longer stands for its scheme is left out: the command of the sweep, with these rules, "
        "descends again.",
    )
    rejudge.add_argument("sweep", nargs="?", help="the sweep's id; the last one without")
    rejudge.add_argument("rules", nargs="+", metavar="RULE", help="such as rules.tail=0.2")
    rejudge.add_argument("--out", metavar="FOLDER", help="where figures go (outputs/SWEEP)")

    delete = commands.add_parser(
        "delete",
        parents=[store],
        help="sweeps with their runs, artifacts and figures, for good",
        description="Jobs that other sweeps share stay, and become theirs.",
    )
    delete.add_argument("sweep", nargs="+", help="the sweeps' ids")
    delete.add_argument("--yes", action="store_true", help="do not ask")

    named = _Parser(add_help=False)  # a parent, so that NAME comes before SWEEP
    named.add_argument("name", metavar="NAME", help="one of those above")
    figure = commands.add_parser(
        "figure",
        parents=[named, chosen, drawn],
        help="one figure, as PNG, SVG and PDF",
        description="figures:\n" + "\n".join(f"  {key:16}{what}" for key, what in NAMES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    figure.add_argument("--out", metavar="FOLDER", help="where the files go (outputs/SWEEP)")
    figure.add_argument(
        "--scheme", metavar="NAME", help="of one scheme alone; a film is of the last without"
    )

    report = commands.add_parser(
        "report", parents=[chosen], help="the whole comparison as one HTML file"
    )
    report.add_argument("--out", metavar="FOLDER", help="where report.html goes (outputs/SWEEP)")

    profile = commands.add_parser(
        "profile", parents=[store], help="which scheme is faster, in the last sweep or several"
    )
    profile.add_argument(
        "sweep",
        nargs="*",
        help="sweeps' ids; the last one without; a job of two of them counts as in the later",
    )
    profile.add_argument("--target", default="1e-2", help="1e-1, 1e-2 or 1e-3 (%(default)s)")
    profile.add_argument("--by", default="iterations", help="iterations or seconds (%(default)s)")
    profile.add_argument(
        "--out", metavar="FOLDER", help="draw the performance profiles there, as PNG, SVG and PDF"
    )
    profile.add_argument(
        "--format", choices=SHAPES, default="screen", help="of the figure (%(default)s)"
    )

    dashboard = commands.add_parser("dashboard", parents=[store], help="MLflow's UI, here")
    dashboard.add_argument("--port", type=int, default=5000, help="(%(default)s)")
    dashboard.add_argument("--host", default="127.0.0.1", help="(%(default)s: this machine only)")
    return parser


def _drawing_options() -> _Parser:
    drawn = _Parser(add_help=False)
    drawn.add_argument(
        "--format",
        choices=SHAPES,
        default="screen",
        help="3.3 inches of a column, 6.5 of a page, a 13-inch slide, or a screen (%(default)s)",
    )
    drawn.add_argument(
        "--first-iteration",
        type=int,
        default=0,
        metavar="K",
        help="where histories begin: 1 leaves the start out (%(default)s)",
    )
    drawn.add_argument(
        "--scale",
        choices=("linear", "log", "excess"),
        help="of histories' vertical axes; by the range of the values without; excess: cost minus "
        "least cost, logarithmic, with the slopes that theory predicts",
    )
    drawn.add_argument(
        "--steps",
        metavar="LIST",
        default="",
        help="histories of these step sizes, such as 0.1,1; each scheme's best without",
    )
    drawn.add_argument(
        "--components",
        type=int,
        metavar="N",
        help="how many components of a scheme are drawn as images, up to 64; 16 without",
    )
    return drawn


def _sweep(options: argparse.Namespace) -> "Sweep":
    from normbench.results import runs

    if options.where and options.sweep:
        raise ResultsError(
            f"--where: finds runs of every sweep; leave {' '.join(options.sweep)} out"
        )
    if options.where:
        return runs.query(options.store, options.where)
    return runs.load(options.store, *(options.sweep or [runs.last_sweep_id(options.store)]))


def _options(options: argparse.Namespace) -> "Options":
    from normbench.results.figures.material import Options
    from normbench.results.figures.style import FORMATS

    if options.first_iteration < 0:
        raise ResultsError(f"--first-iteration {options.first_iteration}: must be 0 or more")
    if options.components is not None and options.components < 1:
        raise ResultsError(f"--components {options.components}: must be 1 or more")
    try:
        steps = tuple(float(word) for word in options.steps.split(",") if word)
        if not all(0 < step < float("inf") for step in steps):
            raise ValueError
    except ValueError:
        raise ResultsError(
            f"--steps {options.steps}: must be positive numbers with commas, such as 0.1,1"
        ) from None
    shape, first = FORMATS[options.format], options.first_iteration
    return Options(shape, first, options.scale, steps, options.components)


def _folder(options: argparse.Namespace, sweep: "Sweep") -> Path:
    return Path(options.out or Path("outputs") / clean.name(sweep.sweep_id)).absolute()


def _show(options: argparse.Namespace) -> int:
    drawing = _options(options)
    from normbench.results.conclusion import present

    sweep = _sweep(options)
    present(sweep, _folder(options, sweep), drawing)
    return 0


def _list(options: argparse.Namespace) -> int:
    from normbench.results import runs, tables

    print(tables.text(runs.sweeps(options.store)))
    return 0


def _studies(options: argparse.Namespace) -> int:
    from normbench.results import expected, studies, tables

    write = tables.FORMATS[options.format]
    checked = studies.checked(options.store, options.folder)
    if checked.empty:  # studies that say no numbers
        print(write(studies.table(options.store, options.folder)))
        return 0
    below = expected.reasons(checked) if options.format == "text" else []
    print(write(expected.narrow(checked) if options.format == "text" else checked))
    print("".join(f"\n{line}" for line in below), end="\n" if below else "")
    return 1 if expected.unexplained(checked) else 0


def _table(options: argparse.Namespace) -> int:
    from normbench.results import tables

    sweep = _sweep(options)
    long = options.histories or options.all_steps
    role = names.STEP if options.all_steps else names.SCHEME
    table = tables.histories(sweep, role) if long else tables.summary(sweep)
    made = tables.FORMATS[options.format](table)
    if not options.out and isinstance(made, str):
        print(made)
        return 0
    folder = _folder(options, sweep)
    suffix = SUFFIXES.get(options.format, options.format)
    file = folder / f"{'histories' if long else 'table'}.{suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(made if isinstance(made, bytes) else f"{made}\n".encode())
    except OSError as error:
        raise unwritable(folder, error) from error
    print(file)
    return 0


def _figure(options: argparse.Namespace) -> int:
    drawing_options = _options(options)
    if options.name not in NAMES:
        raise ResultsError(
            f"figure {options.name}: no such figure; choose one of {', '.join(NAMES)}"
            f"{_near(options.name, NAMES)}"
        )
    if options.scale == "excess" and options.name not in ("histories", "closer"):
        raise ResultsError(
            f"--scale excess: is of histories and closer; leave it out of figure {options.name}"
        )
    from normbench.results import drawing

    sweep = _sweep(options)
    sweep = sweep.of_scheme(options.scheme) if options.scheme else sweep
    folder = _folder(options, sweep)
    kinds = ("png", "svg", "pdf")
    written = drawing.write(sweep, folder, [options.name], drawing_options, kinds)
    files = list(dict.fromkeys(file for group in written.values() for file in group))
    if not files:
        raise ResultsError(drawing.lacking(sweep, options.name))
    print("\n".join(str(file) for file in files))
    return 0


def _report(options: argparse.Namespace) -> int:
    from normbench.results import report

    sweep = _sweep(options)
    print(report.write(sweep, _folder(options, sweep)))
    return 0


def _rejudge(options: argparse.Namespace) -> int:
    from normbench.command import rejudge
    from normbench.datasets import UserError
    from normbench.results import runs

    sweep, rules = options.sweep, options.rules
    if sweep and "=" in sweep:
        sweep, rules = None, [sweep, *rules]
    sweep = sweep or runs.last_sweep_id(options.store)
    folder = Path(options.out).absolute() if options.out else None
    try:
        return rejudge.run(options.store, sweep, rules, folder)
    except UserError as error:
        raise ResultsError(str(error)) from error


def _delete(options: argparse.Namespace) -> int:
    from normbench.command import delete

    return delete.run(options.store, options.sweep, options.yes)


def _profile(options: argparse.Namespace) -> int:
    from normbench.results.figures.style import FORMATS
    from normbench.results.profile import tell

    folder = Path(options.out).absolute() if options.out else None
    shape = FORMATS[options.format]
    tell(options.store, options.sweep, options.target, options.by, folder, shape)
    return 0


def _dashboard(options: argparse.Namespace) -> int:
    from normbench.results.dashboard import serve

    return serve(options.store, options.host, options.port)


COMMANDS = {
    "show": _show,
    "list": _list,
    "studies": _studies,
    "table": _table,
    "figure": _figure,
    "report": _report,
    "rejudge": _rejudge,
    "delete": _delete,
    "profile": _profile,
    "dashboard": _dashboard,
}
