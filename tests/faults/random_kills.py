"""Commands killed at random moments, again and again in one folder, until all is recorded."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from normbench.results.store.job_records import JobRecord
from tests.faults import bench
from tests.faults.bench import Told, expect, told

KILLS = 10  # a row; three rows
JOBS = 8  # a command
LONGEST = 4.0  # seconds after which a command is killed, from when it looks for what was left
JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


def killed(folder: Path, seed: int, launcher: tuple[str, ...] = ()) -> Told:
    """Kill a command so many times; where one ends before, the next runs other jobs.

    After each kill every job that was told to be done is in the store, or waits on disk.
    """
    dice = random.Random(seed)
    complaints: list[str] = []
    kills, sets, done = 0, 1, 0
    while kills < KILLS:
        alone = {"ALONE": "1"} if dice.random() < 0.5 else {}
        soon = f"{dice.uniform(0, LONGEST):.3f}"
        ended = bench.struck(
            folder, "tidying", "kill soon", *_words(sets, launcher), SOON=soon, **alone
        )
        done += ended.err.count(": done (")
        kills += ended.code == -9
        sets += ended.code == 0
        found = len(set(bench.recorded(folder)) | set(_waiting(folder)))
        if found < done:
            complaints.append(f"kill {kills}: {done} jobs told to be done, {found} found")
        if ended.code not in (0, -9):
            complaints.append(f"exit code {ended.code}: {ended.err[-500:]}")
    before = len(bench.recorded(folder))
    again = bench.run(folder, *_words(sets, launcher))
    fault = f"{kills} random kills{', joblib' if launcher else ''}, seed {seed}"
    row = expect(told(folder, fault, ended, before, again, JOBS * sets), (0, -9))
    row.complaints += complaints
    return row


def _words(number: int, launcher: tuple[str, ...]) -> tuple[str, ...]:
    seeds = f"seed=range({JOBS * (number - 1)},{JOBS * number})"
    return (seeds, "start=normal", "normalizer=standard", *bench.JOBS, *launcher)


def _waiting(folder: Path) -> Iterator[str]:
    """Yield the fingerprints of the jobs that wait on disk."""
    for file in folder.glob("outputs/*/pending/*.npz"):
        yield JobRecord.load(file).scheme.tags["fingerprint"]


FAULTS: dict[str, Callable[[Path], Told]] = {
    "random kills, 1": lambda folder: killed(folder, 1),
    "random kills, 2": lambda folder: killed(folder, 2),
    "random kills, joblib": lambda folder: killed(folder, 3, JOBLIB),
}
