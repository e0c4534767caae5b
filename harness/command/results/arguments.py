"""The argument parser of `normbench results`."""

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn

from normbench import names
from normbench.results.figures import NAMES
from normbench.results.store.errors import ResultsError
from normbench.synonyms import OPENING_FLAGS, flag_of

TABLES = ("text", "markdown", "csv", "latex", "parquet")
SCREEN_FORMAT = "screen"  # the format of the figures that a comparison ends in
FIGURE_FORMATS = ("column", "page", "slide", SCREEN_FORMAT)

EXAMPLES = """examples:
  normbench results                              the last comparison's table and figures
  normbench results list                         the comparisons that are recorded
  normbench results figure histories --first-iteration 1 --format page
  normbench results figure histories --steps 0.1,1 --scale linear
  normbench results figure contours --out figures
  normbench results figure film --scheme zca_sphere
  normbench results theory                       what theory allows, and what worked
  normbench results words                        what the words of the output mean
  normbench results report                       one HTML file with all of it
  normbench results rejudge rules.tail=0.2       the last comparison by other rules
  normbench results table ID ID                  several comparisons side by side
  normbench results delete ID                    a comparison, for good
  normbench results export ID house.zip          a comparison in one file
  normbench results import house.zip
  normbench results --store http://host:5000     the last comparison of a server of MLflow's
  normbench results publish ID --store http://host:5000
  normbench results table --format latex
  normbench results table --histories --format parquet --out tables
  normbench results table --histories --where "params.dataset = 'digits'" --format csv

normbench results alone, or with a comparison's id, is normbench results show."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the parsed options; raise `ResultsError` for arguments that do not exist.

    argparse reports a sweep that follows an option, as in `table --format csv SWEEP`, as unknown:
    it is added to the sweeps here.

    Args:
        arguments: The words after `normbench results`, the name of a command first.
    """
    parser = _parser()
    options, trailing = parser.parse_known_args(arguments)
    takes_several = isinstance(getattr(options, "sweep", None), list)
    if trailing and (not takes_several or any(argument.startswith("-") for argument in trailing)):
        parser.error(f"unrecognized arguments: {' '.join(trailing)}")
    if trailing:
        options.sweep += trailing
    return options


def suggest(text: str, choices: Iterable[str]) -> str:
    """Return `; did you mean X`, with the choice that is most similar; empty where none is."""
    from normbench.datasets.values import did_you_mean

    return did_you_mean(text, choices)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as every other mistake's."""

    flags: ClassVar[set[str]] = set()  # of all commands

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument, and remember how it is written."""
        self.flags.update(name for name in names if name.startswith("-"))
        return super().add_argument(*names, **options)

    def error(self, message: str) -> NoReturn:
        """Raise `ResultsError` with argparse's message, in place of its usage text and exit."""
        unknown = re.match(r"unrecognized arguments: ([^\s=]+)", message)
        flag = unknown[1] if unknown else ""
        if flag in OPENING_FLAGS:
            raise ResultsError(
                f"{flag}: there is no such flag; open the file that normbench results report prints"
            )
        suggestion = suggest(flag, self.flags) if flag else ""
        if meant := flag_of(flag):
            suggestion = f"; did you mean {meant}"
        raise ResultsError(f"{message}; {self.prog} --help shows what there is{suggestion}")


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; the option `command` has the name of the typed one."""
    store = _Parser(add_help=False)
    store.add_argument(
        "--folder",
        metavar="HOME",
        default=names.HOME,
        dest="home",
        help="the folder of comparisons and of their records (%(default)s)",
    )
    store.add_argument(
        "--store",
        metavar="URI",
        help="MLflow's tracking URI, a server or a database, from which they are fetched before",
    )
    sweep_options = _Parser(add_help=False, parents=[store])
    sweep_options.add_argument(
        "sweep",
        nargs="*",
        help="the comparison's id (normbench results list); without, the last one; several "
        "are shown as one",
        metavar="ID",
    )
    sweep_options.add_argument(
        "--where",
        metavar="FILTER",
        help="the jobs of every comparison that a filter finds, such as "
        "\"params.dataset = 'digits' and tags.normalizer = 'standard'\"",
    )
    drawing_options = _drawing_options()
    parser = _Parser(
        prog="normbench results",
        description="Tables and figures of recorded comparisons.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    show = commands.add_parser(
        "show",
        parents=[sweep_options, drawing_options],
        help="a comparison's table and every figure that it has",
    )
    show.add_argument(
        "--out",
        metavar="FOLDER",
        help="where figures go (outputs/ID, of a format outputs/ID/FORMAT)",
    )

    commands.add_parser(
        "list", parents=[store], help="the comparisons that are recorded, with their ids"
    )

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
        parents=[sweep_options],
        help="a comparison's table, or its histories, as text, Markdown, CSV, LaTeX or Parquet",
        description="One row a scheme; with --histories one row a run and iteration. In Python: "
        "normbench.results.answer.tables.histories("
        "normbench.load(ID).sweep) is the same as a pandas frame.",
    )
    table.add_argument("--format", choices=TABLES, default="text", help="(%(default)s)")
    table.add_argument(
        "--histories", action="store_true", help="one row a scheme's best run and iteration"
    )
    table.add_argument("--all-steps", action="store_true", help="histories of every step size")
    table.add_argument(
        "--out", metavar="FOLDER", help="write a file there; without, print (Parquet: outputs)"
    )

    commands.add_parser(
        "theory",
        parents=[sweep_options],
        help="the step sizes that theory allows, beside those that worked, and why",
    )

    commands.add_parser("words", parents=[store], help="what the words of the output mean")

    rejudge = commands.add_parser(
        "rejudge",
        parents=[store],
        help="a comparison judged by other rules, without a descent, as a comparison of its own",
        description="What is recorded stays as it is. What follows from a step size that no "
        "longer stands for its scheme is left out: the comparison's command, with these rules, "
        "descends again.",
    )
    rejudge.add_argument(
        "sweep", nargs="?", metavar="ID", help="the comparison's id; without, the last one"
    )
    rejudge.add_argument("rules", nargs="+", metavar="RULE", help="such as rules.tail=0.2")
    rejudge.add_argument("--out", metavar="FOLDER", help="where figures go (outputs/ID)")

    delete = commands.add_parser(
        "delete",
        parents=[store],
        help="comparisons with their records and folders, for good",
        description="Jobs that other comparisons share stay, and so do copies in MLflow.",
    )
    delete.add_argument("sweep", nargs="+", metavar="ID", help="the comparisons' ids")
    delete.add_argument("--yes", action="store_true", help="do not ask")

    _add_moving(commands, store)
    name_argument = _Parser(add_help=False)  # a parent, so that NAME comes before SWEEP
    name_argument.add_argument("name", metavar="NAME", help="one of those above")
    figure = commands.add_parser(
        "figure",
        parents=[name_argument, sweep_options, drawing_options],
        help="one figure, as PNG, SVG and PDF",
        description="figures:\n"
        + "\n".join(f"  {key:16}{help_text}" for key, help_text in NAMES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    figure.add_argument(
        "--out",
        metavar="FOLDER",
        help="where the files go (outputs/ID, of a format outputs/ID/FORMAT)",
    )
    figure.add_argument(
        "--scheme", metavar="NAME", help="of one scheme alone; a film is of the last without"
    )
    figure.add_argument(
        "--dark",
        action="store_true",
        help="PNG and SVG for dark pages too, without a ground: NAME-dark.png, NAME-dark.svg",
    )

    report = commands.add_parser(
        "report", parents=[sweep_options], help="the whole comparison as one HTML file"
    )
    report.add_argument("--out", metavar="FOLDER", help="where report.html goes (outputs/ID)")

    profile = commands.add_parser(
        "profile", parents=[store], help="which scheme is faster, in the last comparison or several"
    )
    profile.add_argument(
        "sweep",
        nargs="*",
        metavar="ID",
        help="the comparisons' ids; without, the last one; a job of two counts as in the later",
    )
    profile.add_argument("--target", default="1e-2", help="1e-1, 1e-2 or 1e-3 (%(default)s)")
    profile.add_argument("--by", default="iterations", help="iterations or seconds (%(default)s)")
    profile.add_argument(
        "--out", metavar="FOLDER", help="draw the performance profiles there, as PNG, SVG and PDF"
    )
    profile.add_argument(
        "--format",
        choices=FIGURE_FORMATS,
        default=SCREEN_FORMAT,
        help="of the figure (%(default)s)",
    )

    publish = commands.add_parser(
        "publish", parents=[store], help="a comparison copied, again or to another MLflow"
    )
    publish.add_argument("sweep", metavar="ID", help="the comparison's id")

    fetch = commands.add_parser(
        "fetch",
        parents=[store],
        help="a comparison of a store of MLflow's, whose jobs are then reused here",
    )
    fetch.add_argument(
        "sweep", nargs="?", metavar="ID", help="the comparison's id; without, the last one"
    )

    dashboard = commands.add_parser("dashboard", parents=[store], help="MLflow's UI, here")
    dashboard.add_argument("--port", type=int, default=5000, help="(%(default)s)")
    dashboard.add_argument("--host", default="127.0.0.1", help="(%(default)s: this machine only)")
    return parser


def _add_moving(commands: Any, store: _Parser) -> None:
    """Add the commands `export` and `import`.

    Args:
        commands: argparse's subparsers of all commands.
        store: The parser of `--folder`, which both take.
    """
    export = commands.add_parser(
        "export",
        parents=[store],
        usage="%(prog)s [--folder HOME] [--all] [--overwrite] ID... FILE",
        help="comparisons with their records and figures, as one file that import reads",
        description="Jobs that a comparison took from others go with it.",
    )
    export.add_argument(
        "sweep",
        nargs="+",
        metavar="ID... FILE",
        help="the comparisons' ids, then the file to write",
    )
    export.add_argument(
        "--all", action="store_true", help="every comparison that is recorded: no ids"
    )
    export.add_argument("--overwrite", action="store_true", help="replace a file that is there")

    arrive = commands.add_parser(
        "import",
        parents=[store],
        help="the comparisons of a file that export wrote, to be recorded here",
        description="What is there already is not written again. A comparison whose id another one "
        "has gets a number behind it. Figures are not taken over: normbench results draws them.",
    )
    arrive.add_argument("file", metavar="FILE", help="what export wrote")


def _drawing_options() -> _Parser:
    """Return a parser of the options of drawing, for commands to take it as a parent."""
    drawing_options = _Parser(add_help=False)
    drawing_options.add_argument(
        "--format",
        choices=FIGURE_FORMATS,
        default=SCREEN_FORMAT,
        help="3.3 inches of a column, 6.5 of a page, a 13-inch slide, or a screen (%(default)s)",
    )
    drawing_options.add_argument(
        "--first-iteration",
        type=int,
        default=0,
        metavar="K",
        help="where histories begin: 1 leaves the start out (%(default)s)",
    )
    drawing_options.add_argument(
        "--scale",
        choices=("linear", "log", "excess"),
        help="of histories' vertical axes; by the range of the values without; excess: cost minus "
        "least cost, logarithmic, with the slopes that theory predicts",
    )
    drawing_options.add_argument(
        "--by",
        choices=("iterations", "passes", "updates", "seconds"),
        default="iterations",
        help="what histories are over; with a batch, iterations are passes over the points; "
        "seconds: of one run, after those of the scheme's fit (%(default)s)",
    )
    drawing_options.add_argument(
        "--steps",
        metavar="LIST",
        default="",
        help="histories of these step sizes, such as 0.1,1; each scheme's best without",
    )
    drawing_options.add_argument(
        "--components",
        type=int,
        metavar="N",
        help="how many components of a scheme are drawn as images, up to 64; 16 without",
    )
    return drawing_options
