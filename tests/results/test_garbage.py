"""A command looks for garbage seldom, and what has to be done at its end is still done."""

import subprocess
import sys

from tests.conftest import ROOT

CODE = """
import gc, weakref
from normbench.results.garbage import OBJECTS, collect_nothing_yet, collect_seldom

class Ring:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("collected")

collect_nothing_yet()
assert not gc.isenabled()
old = weakref.ref(Ring())
collect_seldom()
assert gc.isenabled() and gc.get_threshold()[0] == OBJECTS
Ring()
gc.collect()
print("lives" if old() else "gone")  # what is there by then is not gone through again
rings = [Ring()]
weakref.finalize(rings[0], print, "finalized")
del rings
"""


def test_the_end_does_what_is_due_without_going_through_every_object():
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["collected", "lives", "finalized"]
