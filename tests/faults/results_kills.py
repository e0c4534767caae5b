"""Import, rejudge and delete killed at random moments: the repeated command completes them."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests import stores
from tests.faults import bench, nights
from tests.faults.bench import Ended, Told

KILLS = 10  # a command
FIRST, SECOND = "first", "second"  # ids of two sweeps, which share three jobs
DONE = f"sweep {FIRST}: is not in"
AGAIN = 0.6  # share of commands that are killed
SWEEP = ("start=normal", *bench.JOBS, "figures=[]")


def imported(folder: Path, seed: int, kills: int = KILLS) -> Told:
    """Import killed, over and over in one store: it ends with what the file holds, once."""
    archive = folder / "both.zip"
    _record(folder / "source")
    exported = bench.run(folder / "source", "results", "export", "--all", str(archive))
    assert exported.code == 0, exported.err
    (folder / "here").mkdir()
    return _killed(folder, ("results", "import", str(archive)), seed, kills)


def rejudged(folder: Path, seed: int, kills: int = KILLS) -> Told:
    """Rejudge killed: the old sweeps stay, the new one holds each job once."""
    _record(folder / "here")
    return _killed(folder, ("results", "rejudge", SECOND, "rules.tail=0.5"), seed, kills)


def deleted(folder: Path, seed: int, kills: int = KILLS) -> Told:
    """Delete killed: the other sweep keeps all its jobs, and nothing of this one stays."""
    _record(folder / "here")
    return _killed(folder, ("results", "delete", FIRST, "--yes"), seed, kills)


def _record(folder: Path) -> None:
    """Record two sweeps of six jobs, three of which are both's."""
    folder.mkdir()
    for name, seeds in ((FIRST, "0,1"), (SECOND, "1,2")):
        ended = bench.run(folder, *SWEEP, f"seed={seeds}", f"hydra.sweep.dir=outputs/{name}")
        assert ended.code == 0, ended.err


def _killed(folder: Path, words: tuple[str, ...], seed: int, kills: int) -> Told:
    """Kill a command so many times in `here`, and compare with one that nobody disturbed.

    It is repeated after one kill or after several, until it ends; then the folder is as it was.
    """
    dice = random.Random(seed)
    here, copy = folder / "here", folder / "copy"
    shutil.copytree(here, copy)
    started = time.monotonic()
    undisturbed = bench.run(here, *words)
    seconds = time.monotonic() - started
    assert undisturbed.code == 0, undisturbed.err
    wanted = _content(here)
    row = Told(f"{kills} kills of {words[1]}, seed {seed}", undisturbed, 0, undisturbed, 0)
    done = 0
    while done < kills:
        shutil.rmtree(here)
        shutil.copytree(copy, here)
        while dice.random() < AGAIN and done < kills:
            done += _kill(here, words, dice.uniform(0.2, 1.0) * seconds).code == -9
        row.again = bench.run(here, *words)
        _compare(row, here, wanted, done)
    return row


def _kill(folder: Path, words: tuple[str, ...], seconds: float) -> Ended:
    """Kill a command and all its processes after some seconds."""
    started = bench.start(folder, *words)
    with suppress(Exception):
        started.process.wait(seconds)
    with suppress(ProcessLookupError):
        os.killpg(started.process.pid, signal.SIGKILL)
    return bench.end(started)


def _compare(row: Told, folder: Path, wanted: tuple[object, ...], kill: int) -> None:
    """Add a complaint where a folder's store holds anything else than is wanted."""
    done_before = DONE in row.again.err  # what was killed had done all but end
    if (row.again.code and not done_before) or "Traceback" in row.again.err:
        row.complaints.append(f"kill {kill}: exit code {row.again.code}: {row.again.err[-800:]}")
    for name, there, expected in zip(("runs", "content", "files"), _content(folder), wanted):
        if there != expected:
            row.complaints.append(f"kill {kill}: other {name}: {there} for {expected}"[:2000])


def _content(folder: Path) -> tuple[object, ...]:
    """Return how many runs of each kind a store holds, their numbers, and their files."""
    runs = bench.ask(
        folder,
        f"select {bench.tagged('role')}, status, lifecycle_stage, count(*) from runs r "
        "group by 1, 2, 3 order by 1, 2, 3",
    )
    files = Counter(file.name for file in stores.of(folder).kept.glob("**/*") if file.is_file())
    return runs, nights.content(folder), files


FAULTS: dict[str, Callable[[Path], Told]] = {
    "import killed": lambda folder: imported(folder, 1),
    "rejudge killed": lambda folder: rejudged(folder, 2),
    "delete killed": lambda folder: deleted(folder, 3),
}
