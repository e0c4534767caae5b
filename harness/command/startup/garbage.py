"""Python's collector of cyclic garbage, in a command that ends soon.

MLflow, pandas and the others leave 400,000 objects that live as long as the process: going through
them again and again, and once more at the end, took a third of a short command.
"""

import atexit
import gc
import sys

# Objects made since the last collection that call for the next; Python's own: 700 to 2000.
OBJECTS = 50_000


def collect_nothing_yet() -> None:
    """Make this process look for no garbage while it loads its libraries, and not at its end."""
    gc.disable()
    atexit.register(_end)


def collect_seldom() -> None:
    """Make this process look for garbage seldom, among what is made from now on.

    Only after `collect_nothing_yet`: another's process, as a notebook's, does as it likes.
    """
    if gc.isenabled():
        return
    gc.freeze()
    gc.set_threshold(OBJECTS)
    gc.enable()


def _end() -> None:
    """Close the databases, which the last collection would have done, and leave it out."""
    if "normbench.results.store.mlflows_own" in sys.modules:
        from normbench.results.store import mlflows_own

        mlflows_own.close_connections()
    gc.freeze()
