"""Commands killed at random moments, again and again in one folder, until all is recorded.

A hundred in all (`HUNDRED`): of the main process, of its group, of joblib's processes, of MLflow's
server and of PostgreSQL, with a store of a file and of a server.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from normbench.results.store.job_records import JobRecord
from tests import stores
from tests.faults import bench
from tests.faults.bench import Ended, Told, expect, told

KILLS = 10  # a row; three rows
JOBS = 8  # a command
LONGEST = 4.0  # seconds after which a command is killed, from when it looks for what was left
START = 2.0  # seconds until a command has found the server that is then killed
JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")


def killed(
    folder: Path,
    seed: int,
    launcher: tuple[str, ...] = (),
    most: int = KILLS,
    victim: str = "",
) -> Told:
    """Kill a command so many times; where one ends before, the next runs other jobs.

    After each kill every job that was told to be done is in the store, or waits on disk; in the
    end each has the numbers of one that nobody disturbed. victim: a name of `VICTIMS`, which is
    killed in place of the command.
    """
    dice = random.Random(seed)
    complaints: list[str] = []
    codes = CODES[victim]
    kills, sets, done = 0, 1, 0
    while kills < most:
        alone = {"ALONE": "1"} if dice.random() < 0.5 else {}
        soon = dice.uniform(0, LONGEST)
        if victim:
            ended, struck = _victim_killed(folder, _words(sets, launcher), soon, victim)
        else:
            words = ("tidying", "kill soon", *_words(sets, launcher))
            ended = bench.struck(folder, *words, SOON=f"{soon:.3f}", **alone)
            struck = ended.code == -9
        done += ended.err.count(": done (")
        kills += struck
        sets += ended.code == 0
        jobs_there = len(set(bench.recorded(folder)) | set(_waiting(folder)))
        if jobs_there < done:
            complaints.append(f"kill {kills}: {done} jobs told to be done, {jobs_there} found")
        if ended.code not in codes:
            complaints.append(f"exit code {ended.code}: {ended.err[-500:]}")
    before = len(bench.recorded(folder))
    again = bench.run(folder, *_words(sets, launcher))
    of = (", joblib" if launcher else "") + (f", of its {victim}" if victim else "")
    fault = f"{kills} random kills{of}, seed {seed}"
    row = expect(told(folder, fault, ended, before, again, JOBS * sets), codes)
    row.complaints += complaints
    costs = _costs(folder)
    calm = folder / "calm"
    calm.mkdir()
    for number in range(1, sets + 1):
        bench.run(calm, *_words(number, ()))
    different = [job for job, wanted in _costs(calm).items() if costs.get(job) != wanted]
    row.complaints += [f"{len(different)} jobs have other numbers"] if different else []
    return row


def _victim_killed(
    folder: Path, words: tuple[str, ...], soon: float, victim: str
) -> tuple[Ended, bool]:
    """Start a command, and kill its victim some seconds later; return whether it was killed."""
    started = bench.start(folder, *words)
    struck = VICTIMS[victim](folder, started.process, soon)
    return bench.end(started), struck


def _kill_worker(_: Path, process: subprocess.Popen, soon: float) -> bool:
    """Kill one of joblib's processes some seconds after the first is there."""
    while process.poll() is None and not _workers(process.pid):
        time.sleep(0.05)
    time.sleep(soon)
    struck = False
    for worker in _workers(process.pid)[:1]:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
            struck = True
    return struck


def _kill_server(folder: Path, process: subprocess.Popen, soon: float) -> bool:
    """Kill MLflow's server and its workers, and start it again."""
    time.sleep(START + soon)
    if process.poll() is not None:
        return False
    server = stores.of(folder).server
    server.kill()
    server.begin()
    return True


def _kill_postgres(folder: Path, process: subprocess.Popen, soon: float) -> bool:
    """Kill a process of PostgreSQL's that serves the store: it then ends all, and recovers."""
    time.sleep(START + soon)
    if process.poll() is not None:
        return False
    query = "select pid from pg_stat_activity where datname = current_database()"
    others = [number for (number,) in bench.ask(folder, f"{query} and pid <> pg_backend_pid()")]
    for number in others[:1]:
        os.kill(number, signal.SIGKILL)
    return bool(others)


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


VICTIMS = {"worker": _kill_worker, "server": _kill_server, "postgres": _kill_postgres}
# How a command may end: with 1 where it kept jobs on disk, with 2 where no store could be opened.
CODES = {"": (0, -9), "worker": (0, 1), "server": (0, 1, 2), "postgres": (0, 1, 2)}
FAULTS: dict[str, Callable[[Path], Told]] = {
    "random kills, 1": lambda folder: killed(folder, 1),
    "random kills, 2": lambda folder: killed(folder, 2),
    "random kills, joblib": lambda folder: killed(folder, 3, JOBLIB),
}
HUNDRED: dict[str, Callable[[Path], Told]] = {
    "25 kills": lambda folder: killed(folder, 4, most=25),
    "20 kills, joblib": lambda folder: killed(folder, 5, JOBLIB, 20),
    "15 kills of joblib's processes": lambda folder: killed(folder, 6, JOBLIB, 15, "worker"),
}
ON_A_SERVER: dict[str, Callable[[Path], Told]] = {
    "15 kills, server": lambda folder: killed(folder, 7, most=15),
    "5 kills of joblib's processes, server": lambda f: killed(f, 8, JOBLIB, 5, "worker"),
    "10 kills of MLflow's server": lambda folder: killed(folder, 9, most=10, victim="server"),
    "10 kills of PostgreSQL": lambda folder: killed(folder, 10, most=10, victim="postgres"),
}
