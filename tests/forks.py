"""The command line without its imports: a process that has them forks into each command.

A command's imports take two seconds of a processor, its answer to a mistake a fifth of one. What a
command does while it imports (what it loads at all) is tested by processes of their own.
"""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import tomllib
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300  # seconds after which a command is ended
THREADS = "OMP_NUM_THREADS"
KEPT = {"MPLCONFIGDIR"}  # what the loaded libraries have read already
# Libraries that a command imports late, beside all modules of the package itself.
LOADED = (
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "contourpy", "jinja2"),
    *("PIL.PngImagePlugin", "pandas", "pyarrow.parquet", "pyarrow.pandas_compat"),
    *("sklearn.decomposition", "sklearn.datasets"),
)
# What takes a second or two and few commands need, by a part of their words or of their program.
MLFLOWS_STORE = "mlflow.store.tracking.sqlalchemy_store"
ASKED = {"--store http://": "mlflow"} | dict.fromkeys(
    ("--store sqlite://", "MlflowClient"), MLFLOWS_STORE
)


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
    with _as_before():
        _compose()
    for name in (*_modules(), *LOADED):
        importlib.import_module(name)
    import matplotlib
    from sklearn.preprocessing import StandardScaler

    os.environ["MPLCONFIGDIR"] = matplotlib.get_cachedir()  # found as well where HOME is empty
    StandardScaler().fit([[0.0]])  # looks for other libraries' kinds of tables, once a process
    gc.collect()
    gc.freeze()  # else each command would write to the memory of all that is loaded, and copy it
    for line in sys.stdin:
        order = json.loads(line)
        said = " ".join([*order["words"], order["program"]])
        for sign, name in ASKED.items():
            if sign in said:
                importlib.import_module(name)
        child = os.fork()
        if child == 0:
            _be_the_command(order)
        _, status, used = os.wait4(child, 0)
        with suppress(ProcessLookupError):  # what it has left running
            os.killpg(child, signal.SIGKILL)
        told = {"code": os.waitstatus_to_exitcode(status), "seconds": used.ru_utime + used.ru_stime}
        print(json.dumps(told), flush=True)


def _modules() -> Iterator[str]:
    """Yield the name of every module of the installed packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for package in project["tool"]["setuptools"]["packages"]:
        folders = importlib.import_module(package).__path__
        for module in pkgutil.iter_modules(folders, f"{package}."):
            if not module.ispkg:
                yield module.name


def _compose() -> None:
    """Run a whole command that ends in a mistake: parsers keep what they learn of their grammars.

    Hydra keeps its config for the process, and each command has to begin without one.
    """
    from hydra.core.hydra_config import HydraConfig

    from normbench.__main__ import main

    with suppress(SystemExit):
        main(["dataset=csv", "dataset.path=/none/none.csv"])
    HydraConfig.instance().cfg = None


@contextmanager
def _as_before() -> Iterator[None]:
    """Leave the streams, signals, warnings, paths and collector as they were at the end."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    path = list(sys.path)
    streams = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with streams[0], streams[1], warnings.catch_warnings():
        yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sys.path[:] = path
    gc.enable()


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
