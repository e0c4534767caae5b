"""A process with every library loaded, which forks into each command.

A command's imports take two seconds, its answer to a mistake a fifth of one.
"""

import atexit
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

PATIENCE = 60  # seconds after which a command is ended
MEMORY = 16 << 30  # bytes of addresses that it may have
LOADED = (
    "normbench.__main__",
    *("normbench.command.line", "normbench.command.job", "normbench.command.results"),
    *("normbench.command.rehearsal", "normbench.recording.store", "normbench.results.conclusion"),
    *("pandas", "pyarrow.parquet", "sklearn.decomposition", "sklearn.datasets"),
)
NO_NETWORK = "http://127.0.0.1:9"  # nobody runs it: every download fails at once


def serve() -> None:
    """Answer each order, a line of JSON, with how its command ended."""
    for name in LOADED:
        importlib.import_module(name)
    import matplotlib
    from hydra.core.plugins import Plugins

    os.environ["MPLCONFIGDIR"] = matplotlib.get_cachedir()  # found as well where HOME is empty
    Plugins.instance()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _be_the_command(order)
        _, status, used = os.wait4(child, 0)
        told = {"code": os.waitstatus_to_exitcode(status), "seconds": used.ru_utime + used.ru_stime}
        print(json.dumps(told), flush=True)


def _be_the_command(order: dict[str, Any]) -> None:
    """Run the command of an order as its own process would, and end."""
    signal.alarm(PATIENCE)
    os.setsid()
    for number, name in enumerate((os.devnull, order["out"], order["err"])):
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    top = Path(order["top"])
    sys.dont_write_bytecode = True  # beside a user's own package Python would leave files
    os.environ |= {"HOME": str(top / "home"), "no_proxy": "127.0.0.1"}
    os.environ |= {"http_proxy": NO_NETWORK, "https_proxy": NO_NETWORK}
    for name in ("NORMBENCH_DATA", "XDG_CACHE_HOME"):
        os.environ.pop(name, None)
    os.chdir(top / "work")
    os._exit(_exit_code(order["words"]))


def _exit_code(words: list[str]) -> int:
    """Return the exit code that Python would end a command with."""
    from normbench.__main__ import main

    code = 0
    try:
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
