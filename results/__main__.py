"""The command line: `python -m results` draws the last comparison again, and lists the others."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

COMMANDS = ("show", "list", "dashboard")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; exit 0, or 2 with one line on a user's mistake."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or (words[0] not in COMMANDS and words[0] not in ("-h", "--help")):
        words.insert(0, "show")
    options = _parser().parse_args(words)
    try:
        return int(options.run(options))
    except LookupError as error:
        print(f"results: {error.args[0]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    from results.runs import DEFAULT_STORE

    store = argparse.ArgumentParser(add_help=False)
    store.add_argument(
        "--store", metavar="URI", default=DEFAULT_STORE, help="MLflow's store (%(default)s)"
    )
    parser = argparse.ArgumentParser(
        prog="python -m results",
        description="Tables and figures of recorded comparisons, read from MLflow.",
        epilog="python -m results alone, or with a sweep's id, is python -m results show.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    show = commands.add_parser("show", parents=[store], help="a sweep's table and figures")
    show.add_argument("sweep", nargs="?", help="the sweep's id; the last one without")
    show.add_argument("--out", metavar="FOLDER", help="where figures go (outputs/SWEEP)")
    show.set_defaults(run=_show)

    sweeps = commands.add_parser("list", parents=[store], help="the sweeps of a store")
    sweeps.set_defaults(run=_list)

    dashboard = commands.add_parser("dashboard", parents=[store], help="MLflow's UI, here")
    dashboard.add_argument("--port", type=int, default=5000, help="(%(default)s)")
    dashboard.add_argument("--host", default="127.0.0.1", help="(%(default)s: this machine only)")
    dashboard.set_defaults(run=_dashboard)
    return parser


def _show(options: argparse.Namespace) -> int:
    from results.conclusion import conclude
    from results.runs import last_sweep_id

    sweep_id = options.sweep or last_sweep_id(options.store)
    folder = Path(options.out) if options.out else Path("outputs") / sweep_id
    conclude(options.store, sweep_id, folder.absolute())
    return 0


def _list(options: argparse.Namespace) -> int:
    from results import runs, tables

    print(tables.text(runs.sweeps(options.store)))
    return 0


def _dashboard(options: argparse.Namespace) -> int:
    from results.dashboard import serve

    return serve(options.store, options.host, options.port)


if __name__ == "__main__":
    sys.exit(main())
