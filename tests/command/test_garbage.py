"""A command looks for garbage seldom, and what has to be done at its end is still done."""

import subprocess
import sys

import pytest

from normbench.command.startup.garbage import COLLECTION_THRESHOLD
from tests.conftest import ROOT

LAST = "mlflow.store.tracking.sqlalchemy_store"  # of the large libraries
CODE = """
import gc, weakref
from normbench.command.startup.garbage import COLLECTION_THRESHOLD
from normbench.command.startup.garbage import disable_collection, collect_seldom

class Ring:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("collected")

before = gc.get_threshold()
collect_seldom()
assert gc.get_threshold() == before and not gc.get_freeze_count()
disable_collection()
assert not gc.isenabled()
old = weakref.ref(Ring())
collect_seldom()
assert gc.isenabled() and gc.get_threshold()[0] == COLLECTION_THRESHOLD
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


@pytest.mark.commands
def test_results_looks_for_no_garbage_before_a_sweep_is_loaded(three):
    code = f"""
import gc, sys
from normbench.__main__ import main
seen = []  # of each collection after the command's first lines, whether the libraries were there
gc.callbacks.append(
    lambda *_: (
        gc.get_threshold()[0] == {COLLECTION_THRESHOLD} and seen.append("{LAST}" in sys.modules)
    )
)
try:
    main(["results", "table", "--store", {three.uri!r}])
except SystemExit as end:
    assert not end.code
assert gc.isenabled() and all(seen), seen
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
