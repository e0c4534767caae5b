"""A process that ends soon after the one that started it: joblib's would wait for jobs for minutes.

`python -P THIS_FILE PARENT -m MODULE WORDS` runs a module as `python -m` does, watched from the
first moment on. Nothing of the package is imported here: joblib's processes begin without its path.
"""

import os
import runpy
import sys
import threading
import time
from functools import lru_cache

WATCH = 1.0  # seconds between two looks at whether the process that started this one is there


@lru_cache(maxsize=1)
def end_with(parent: int) -> None:
    """End this process soon after its parent, from a thread.

    What it was writing is ended and written again by the next command.
    """

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def watched(command: list[str]) -> list[str]:
    """Return the command `python -m MODULE WORDS` of a child that ends with this process."""
    return [command[0], "-P", __file__, str(os.getpid()), *command[1:]]


def main() -> None:
    """Run the module that follows `-m`."""
    end_with(int(sys.argv[1]))
    sys.argv[:] = sys.argv[sys.argv.index("-m") + 1 :]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
