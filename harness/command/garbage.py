"""Configure Python's collector of cyclic garbage for a command that ends soon.

MLflow, pandas and other libraries create 400,000 objects that live as long as the process: scanning
them repeatedly, and once more at the end, took a third of a short command.
"""

import atexit
import gc

# Objects made since the last collection that call for the next; Python's own: 700 to 2000.
COLLECTION_THRESHOLD = 50_000


def disable_collection() -> None:
    """Disable garbage collection from now on, and skip the collection at the end of the process.

    `collect_seldom` enables collection again, once the libraries are loaded.
    """
    gc.disable()
    atexit.register(_end)


def collect_seldom() -> None:
    """Enable garbage collection at long intervals, among the objects created from now on.

    Only after `disable_collection`: another process, such as a notebook's, keeps its own settings.
    """
    if gc.isenabled():  # `disable_collection` was not called
        return
    gc.freeze()  # the objects of the libraries are not scanned any more
    gc.set_threshold(COLLECTION_THRESHOLD)
    gc.enable()


def _end() -> None:
    """Skip the last collection: frozen objects are not scanned."""
    gc.freeze()
