"""End a process soon after its parent: the processes of joblib would wait for jobs for minutes.

`python -P THIS_FILE PARENT -m MODULE WORDS` runs a module as `python -m` does, and watches its
parent from the start. It imports nothing of the package, whose path processes of joblib lack.
"""

import os
import runpy
import sys
import threading
import time
from functools import lru_cache

WATCH_INTERVAL = 1.0  # seconds between two checks of the parent


@lru_cache(maxsize=1)
def end_with(parent: int) -> None:
    """Start a thread that ends this process soon after its parent.

    The cache keeps a second call for the same parent from starting another thread. The next command
    marks the runs that this process was writing as killed, and runs their jobs again.

    Args:
        parent: The id of the parent process.
    """

    def watch() -> None:
        # The system gives this process another parent when the first one has ended.
        while os.getppid() == parent:
            time.sleep(WATCH_INTERVAL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def watched(command: list[str]) -> list[str]:
    """Return a command that runs `command` in a process that ends soon after this process.

    Args:
        command: `[python, "-m", MODULE, *WORDS]`.

    Returns:
        The command that runs this file, see the docstring of the module.
    """
    return [command[0], "-P", __file__, str(os.getpid()), *command[1:]]


def main() -> None:
    """Run the module that follows `-m`, and watch the parent whose id is the first argument."""
    end_with(int(sys.argv[1]))
    sys.argv[:] = sys.argv[sys.argv.index("-m") + 1 :]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
