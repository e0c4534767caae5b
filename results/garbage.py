"""Python's collector of cyclic garbage, in a command that ends soon."""

import atexit
import gc

OBJECTS = 50_000  # made since the last collection, that call for the next; Python's own is 700


def collect_seldom() -> None:
    """Make this process look for garbage seldom, and not at its end.

    MLflow, pandas and the others leave 400,000 objects that live as long as the process: going
    through them again and again, and once more at the end, took a third of a short command.
    """
    gc.set_threshold(OBJECTS)
    atexit.register(gc.freeze)
