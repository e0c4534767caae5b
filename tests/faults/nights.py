"""One long descent that is cut off again and again: what is recorded could not tell of it."""

import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests import stores
from tests.faults import bench
from tests.faults.bench import Ended, Told, expect, told

KILLS = 2
FEWEST, MOST = 60, 110  # iterations of a command before it is killed: two come to under 300
SIZES = 4  # two of which diverge, under momentum, which keeps a state
JOBS = 2
# The first job is done when the second, the long one, is cut off.
WORDS = (
    *("dataset=digits", "dataset.points=100"),
    "cost=multiclass_softmax",
    "optimizer=momentum",
    "normalizer=standard,identity",
    "iterations='${per_scheme:{standard:10,identity:300}}'",
    "step_sizes=[0.001,0.1,1e200,1e300]",
    "dataset.test_fraction=0.2",
    "figures=[]",
)
GOES_ON = re.compile(r"goes on from iteration (\d+) of 300")
CLOCKS = ("fit_seconds", "seconds_a_step")


def killed(folder: Path) -> Told:
    """Killed at three random iterations of one descent, each time the same command again."""
    dice = random.Random(24)
    here, complaints, reached = _folders(folder), [], [0]
    for kill in range(KILLS):
        number = str(dice.randint(FEWEST, MOST) + 11 * (not kill))
        first = bench.struck(here, "descending", "SIGKILL", *WORDS, "checkpoint=0.001", CALL=number)
        reached += _gone_on(first)
        complaints += [f"kill {kill}: {first.code}"] * (first.code != -9)
        complaints += [f"kill {kill}: {done} jobs" for done in [_done(here)] if done != 1]
    row = _ended(folder, here, f"{KILLS} kills of one descent", first)
    reached += _gone_on(row.again)
    # Where saving takes long, on a busy machine, none may have been due between two kills.
    if len(reached) != KILLS + 1 or sorted(reached) != reached or not reached[-1]:
        complaints.append(f"goes on from {reached}")
    row.complaints += complaints
    return expect(row, (-9,))


def stopped(folder: Path, name: str) -> Told:
    """Stopped before its time has come to be kept: it is kept on the way out."""
    here = _folders(folder)
    first = bench.struck(here, "descending", name, *WORDS, CALL="111")
    row = _ended(folder, here, f"{name}, amid a long descent", first)
    if _gone_on(row.again) not in ([98], [99], [100]):
        row.complaints.append(f"goes on from {_gone_on(row.again)}")
    return expect(row, (130,))


def at_once(folder: Path) -> Told:
    """Killed, then twice at the same time, each running all again: they share the file."""
    here = _folders(folder)
    words = (*WORDS, "checkpoint=0.02", "reuse=false")
    killed = bench.struck(here, "descending", "SIGKILL", *words, CALL="150")
    assert killed.code == -9, killed.err
    both = [bench.start(here, *words) for _ in range(2)]
    first, other = (bench.end(process) for process in both)
    complaints = [ended.err for ended in (first, other) if ended.code or not _gone_on(ended)]
    done = _done(here)
    found, wanted = content(here), _undisturbed(folder)
    row = Told("two at once on one descent", first, done, other, done, complaints)
    # The first job three times, of the kill too; the second twice.
    times = {row: count for row, count in found[0].items() if count not in (2, 3)}
    if times or set(found[0]) != set(wanted[0]):
        row.complaints.append(f"other numbers: {list(times)[:3]}")
    return expect(row, (0,))


def _folders(folder: Path) -> Path:
    """Make the folder of the commands that are cut off, and that of the other one."""
    for name in ("struck", "undisturbed"):
        (folder / name).mkdir()
    return folder / "struck"


def _ended(folder: Path, here: Path, fault: str, first: Ended) -> Told:
    """Run the command to its end, and another that nobody disturbs: they find the same."""
    before = _done(here)
    again = bench.run(here, *WORDS)
    row = told(here, fault, first, before, again, JOBS, SIZES)
    found, wanted = content(here), _undisturbed(folder)
    if found != wanted:
        other = list(set(found[0].items()) ^ set(wanted[0].items()))[:5]
        row.complaints.append(f"other numbers: {other}")
    if list(here.glob("outputs/.checkpoints.*")):
        row.complaints.append("a checkpoint is left")
    return row


def _undisturbed(folder: Path) -> tuple[Counter, list[bytes]]:
    """Return what the command records that nobody cuts off; a server forgets the others then."""
    ended = bench.run(folder / "undisturbed", *WORDS)
    assert ended.code == 0, ended.err
    return content(folder / "undisturbed")


def content(folder: Path, jobs: int = JOBS) -> tuple[Counter, list[bytes]]:
    """Return all that is recorded of finished jobs but clocks, and the bytes of their histories.

    Of each metric and each tag that is said of the descent, how often it stands there.
    """
    whole = f"r.status = 'FINISHED' and {bench.tagged('role')} in ('scheme', 'step')"
    rows = bench.ask(
        folder,
        "select r.name, m.key, m.step, m.value, m.is_nan from runs r, metrics m "
        f"where m.run_uuid = r.run_uuid and {whole}",
    )
    rows = [row for row in rows if not row[1].startswith("time/") and "seconds" not in row[1]]
    rows += bench.ask(
        folder,
        "select r.name, t.key, t.value from runs r, tags t where t.run_uuid = r.run_uuid "
        f"and {whole} and t.key in ('verdict', 'reason', 'best', 'step_size', 'descent')",
    )
    runs = {row[0] for row in bench.ask(folder, f"select r.run_uuid from runs r where {whole}")}
    histories = []
    for file in stores.of(folder).kept.glob("**/descent.npz"):
        if runs & set(file.parts):
            with np.load(file) as packed:
                parts = [packed[name].tobytes() for name in packed.files if name not in CLOCKS]
            histories.append(b"".join(parts))
    assert rows, folder
    assert len(histories) >= jobs, folder
    return Counter(rows), sorted(histories)


def _gone_on(ended: Ended) -> list[int]:
    return [int(found) for found in GOES_ON.findall(ended.err)]


def _done(folder: Path) -> int:
    return len(bench.recorded(folder))


FAULTS: dict[str, Callable[[Path], Told]] = {
    "night, kills": killed,
    "night, SIGINT": lambda folder: stopped(folder, "SIGINT"),
    "night, SIGTERM": lambda folder: stopped(folder, "SIGTERM"),
    "night, two at once": at_once,
}
