"""Commands killed at random moments, again and again in one folder, until all is recorded.

A hundred in all (`HUNDRED`): of the main process, of its group, and of joblib's processes.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from normbench.results.store.job_records import JobRecord
from tests.faults import bench
from tests.faults.bench import Ended, Told, expect, told

KILLS = 10  # a row; three rows
JOBS = 8  # a command
LONGEST = 4.0  # seconds after which a command is killed, from when it looks for what was left
JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


def killed(
    folder: Path, seed: int, launcher: tuple[str, ...] = (), most: int = KILLS, worker: bool = False
) -> Told:
    """Kill a command so many times; where one ends before, the next runs other jobs.

    After each kill every job that was told to be done is in the store, or waits on disk; in the
    end each has the numbers of one that nobody disturbed. worker: joblib's processes are killed,
    not the command's.
    """
    dice = random.Random(seed)
    complaints: list[str] = []
    kills, sets, done = 0, 1, 0
    while kills < most:
        alone = {"ALONE": "1"} if dice.random() < 0.5 else {}
        soon = dice.uniform(0, LONGEST)
        if worker:
            ended, struck = _worker_killed(folder, _words(sets, launcher), soon)
        else:
            words = ("tidying", "kill soon", *_words(sets, launcher))
            ended = bench.struck(folder, *words, SOON=f"{soon:.3f}", **alone)
            struck = ended.code == -9
        done += ended.err.count(": done (")
        kills += struck
        sets += ended.code == 0
        found = len(set(bench.recorded(folder)) | set(_waiting(folder)))
        if found < done:
            complaints.append(f"kill {kills}: {done} jobs told to be done, {found} found")
        if ended.code not in (0, 1 if worker else -9):
            complaints.append(f"exit code {ended.code}: {ended.err[-500:]}")
    before = len(bench.recorded(folder))
    again = bench.run(folder, *_words(sets, launcher))
    of = (", joblib" if launcher else "") + ("'s processes" if worker else "")
    fault = f"{kills} random kills{of}, seed {seed}"
    row = expect(told(folder, fault, ended, before, again, JOBS * sets), (0, 1 if worker else -9))
    row.complaints += complaints
    calm = folder / "calm"
    calm.mkdir()
    for number in range(1, sets + 1):
        bench.run(calm, *_words(number, ()))
    different = [job for job, costs in _costs(calm).items() if _costs(folder).get(job) != costs]
    row.complaints += [f"{len(different)} jobs have other numbers"] if different else []
    return row


def _worker_killed(folder: Path, words: tuple[str, ...], soon: float) -> tuple[Ended, bool]:
    """Kill one of joblib's processes some seconds after the first is there; return whether."""
    started, struck = bench.start(folder, *words), False
    while started.process.poll() is None and not _workers(started.process.pid):
        time.sleep(0.05)
    time.sleep(soon)
    for worker in _workers(started.process.pid)[:1]:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
            struck = True
    return bench.end(started), struck


def _workers(process: int) -> list[int]:
    """Return the numbers of joblib's processes that a process started."""
    children = Path(f"/proc/{process}/task/{process}/children")
    found = []
    for child in children.read_text().split() if children.exists() else ():
        with suppress(OSError):
            if b"popen_loky_posix" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


def _costs(folder: Path) -> dict[str, set[tuple[object, ...]]]:
    """Return the histories of all finished jobs by their fingerprints."""
    query = (
        f"select {bench.tagged('fingerprint')}, s.run_uuid, m.step, m.value, z.value "
        "from runs r, tags p, runs s, metrics m, tags z where s.run_uuid = p.run_uuid "
        "and p.key = 'mlflow.parentRunId' and p.value = r.run_uuid and m.run_uuid = s.run_uuid "
        "and m.key = 'train/cost' and z.run_uuid = s.run_uuid and z.key = 'step_size' "
        f"and {bench.tagged('role')} = 'scheme' and r.status = 'FINISHED'"
    )
    found: dict[str, set[tuple[object, ...]]] = {}
    for job, _, *point in bench.ask(folder, query):
        found.setdefault(job, set()).add(tuple(point))
    return found


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
HUNDRED: dict[str, Callable[[Path], Told]] = {
    "40 kills": lambda folder: killed(folder, 4, most=40),
    "40 kills, joblib": lambda folder: killed(folder, 5, JOBLIB, 40),
    "20 kills of joblib's processes": lambda folder: killed(folder, 6, JOBLIB, 20, worker=True),
}
