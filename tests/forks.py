"""The command line without its imports: a process that has them forks into each command.

A command's imports take two seconds of a processor, its answer to a mistake a fifth of one. What a
command does while it imports (kernels, what it loads at all) is tested by processes of their own.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 120  # seconds after which a command is ended
THREADS = "OMP_NUM_THREADS"
KEPT = {"MPLCONFIGDIR", "OPENBLAS_CORETYPE"}  # what the loaded libraries have read already
# Modules, and packages with all that is below them.
LOADED = (
    *(f"normbench.{name}" for name in ("__main__", "command", "costs", "datasets", "measures")),
    *(f"normbench.{name}" for name in ("normalizers", "optimizers", "recording", "rehearsal")),
    *("normbench.results", "normbench.theory", "normbench.verdicts"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "contourpy", "jinja2"),
    *("PIL.PngImagePlugin", "pandas", "pyarrow.parquet", "pyarrow.pandas_compat"),
    *("sklearn.decomposition", "sklearn.datasets"),
)
# What takes a second and few commands need, by a part of their words or of their program.
ASKED = {"http://": "mlflow"}


@dataclass(frozen=True)
class Ended:
    """How a command ended, what it printed, and the seconds of the processor that it took."""

    returncode: int
    stdout: str
    stderr: str
    seconds: float


def user_environment(**changes: str) -> dict[str, str]:
    """Return this process's environment as a user has it, with changes.

    The Makefile gives tests one thread, with which a command draws by itself; a user's forks.
    """
    return {name: text for name, text in os.environ.items() if name != THREADS} | changes


def run(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    stdout: str = "",
    memory: int = 0,
    patience: int = PATIENCE,
    program: str = "",
) -> Ended:
    """Return how `normbench WORDS` ends in a folder, or `python -c PROGRAM WORDS`.

    environment: all of it, a user's where it is None. stdout: a file that the standard
    output goes to instead. memory: the bytes of addresses that it may have, 0 for any number.
    """
    with TemporaryDirectory() as place:
        out, err = Path(place) / "out", Path(place) / "err"
        order = {
            "words": list(words),
            "folder": str(folder),
            "environment": user_environment() if environment is None else dict(environment),
            "files": [os.devnull, stdout or str(out), str(err)],
            "memory": memory,
            "patience": patience,
            "program": program,
        }
        server = _server()
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        ended = json.loads(server.stdout.readline())
        printed = "" if stdout else out.read_text(errors="replace")
        told = err.read_text(errors="replace")
    assert ended["code"] != -signal.SIGALRM, f"{words}: not ended after {patience} s; {told}"
    return Ended(ended["code"], printed, told, ended["seconds"])


@cache
def _server() -> subprocess.Popen[str]:
    """Return the process that is forked; it ends with this one, which holds its other end."""
    pipe = subprocess.PIPE
    words = [sys.executable, "-m", "tests.forks"]
    settings = user_environment()  # a library reads its number of threads where it is loaded
    server = subprocess.Popen(words, cwd=ROOT, env=settings, stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)
    return server


def serve() -> None:
    """Answer each order, a line of JSON, with how its command ended."""
    from normbench.command.startup import kernels

    kernels.choose()
    for name in LOADED:
        module = importlib.import_module(name)
        below = pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.")
        for found in below if name.startswith("normbench.") else []:
            importlib.import_module(found.name)
    from normbench.recording.store.connection import Store

    with TemporaryDirectory() as place:
        assert Store.at(f"sqlite:///{place}/mlflow.db", None, Path(place)).client
    import matplotlib
    from hydra.core.plugins import Plugins
    from sklearn.preprocessing import StandardScaler

    from normbench.results.report import page

    os.environ["MPLCONFIGDIR"] = matplotlib.get_cachedir()  # found as well where HOME is empty
    Plugins.instance()
    _compose()
    page.template()
    StandardScaler().fit([[0.0]])  # looks for other libraries' kinds of tables, once a process
    gc.collect()
    gc.freeze()  # else each command would write to the memory of all that is loaded, and copy it
    for line in sys.stdin:
        order = json.loads(line)
        for sign, name in ASKED.items():
            if any(sign in word for word in (order["program"], *order["words"])):
                importlib.import_module(name)
        child = os.fork()
        if child == 0:
            _be_the_command(order)
        _, status, used = os.wait4(child, 0)
        with suppress(ProcessLookupError):  # what it has left running
            os.killpg(child, signal.SIGKILL)
        told = {"code": os.waitstatus_to_exitcode(status), "seconds": used.ru_utime + used.ru_stime}
        print(json.dumps(told), flush=True)


def _compose() -> None:
    """Compose a command that ends in a mistake: parsers keep what they learn of their grammars."""
    from hydra.core.hydra_config import HydraConfig

    from normbench.command.sweep import line
    from normbench.datasets import UserError

    with suppress(UserError):
        line.run(["dataset=csv", "dataset.path=/none/none.csv"])
    HydraConfig.instance().cfg = None


def _be_the_command(order: dict[str, Any]) -> None:
    """Run the command of an order as its own process would, and end."""
    signal.alarm(order["patience"])
    os.setsid()
    # A shell's background job, as these tests may be, ignores Ctrl-C, and so would its child.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in enumerate(order["files"]):
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    if order["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (order["memory"],) * 2)
    sys.dont_write_bytecode = True  # beside a user's own package Python would leave files
    kept = {name: os.environ[name] for name in (KEPT & os.environ.keys())}
    os.environ.clear()
    os.environ.update(order["environment"] | kept)
    os.chdir(order["folder"])
    sys.path[0] = order["folder"]
    sys.argv[1:] = order["words"]
    os._exit(_exit_code(order["words"], order["program"]))


def _exit_code(words: list[str], program: str) -> int:
    """Return the exit code that Python would end a command with, or a program."""
    from normbench.__main__ import main

    code = 0
    try:
        if program:
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        else:
            main(words)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        return 120
    return code


if __name__ == "__main__":
    serve()
