"""What a fault is told by: commands in a folder of their own, and what its store then holds."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from tests import forks, stores

ROOT = Path(__file__).resolve().parents[2]
STEPS = "step_sizes=[0.1,1]"
JOBS = ("iterations=20", STEPS, "figures=[histories]")  # three schemes, two step sizes
PLACES = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
ENVIRONMENT = {"PYTHONPATH": PLACES, "PATIENCE": "3"}
HUNG = 124  # the code of a command that had to be ended
SECONDS = 240  # after which it is
CHILD = f"import sys; sys.path.insert(1, {str(ROOT)!r}); import tests.faults.child as c; c.main()"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass
class Told:
    """A row of the table: what was done, how it ended, and whether nothing was lost or doubled."""

    fault: str
    first: Ended
    before: int
    again: Ended
    after: int
    complaints: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Started:
    """A command at work. It writes into files: a process that outlives it would hold a pipe."""

    process: subprocess.Popen
    out: IO[str]
    err: IO[str]


def start(folder: Path, *words: str, module: str = "normbench", **options: str) -> Started:
    """Start `python -m MODULE ...` in a folder, in a process group of its own."""
    # `end` closes them.
    out, err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115
    process = subprocess.Popen(
        [sys.executable, "-m", module, *stores.of(folder).named(words)],
        cwd=folder,
        env=forks.user_environment(**ENVIRONMENT | options),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
        # A shell's background job, as these tests may be, ignores Ctrl-C, and so would its child.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    return Started(process, out, err)


def end(started: Started, seconds: float = SECONDS) -> Ended:
    """Wait for a command, and tell how it ended; one that does not end is killed."""
    try:
        code = started.process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.process.pid, signal.SIGKILL)
        started.process.wait()
        code = HUNG
    words = []
    for file in (started.out, started.err):
        file.seek(0)
        words.append(file.read())
        file.close()
    return Ended(code, *words)


def run(folder: Path, *words: str, **options: str) -> Ended:
    """Run `normbench ...` in a folder."""
    return _ended(folder, words, options)


def kept(folder: Path) -> int:
    """Return how many records wait on disk."""
    return len(list(folder.glob("outputs/*/pending/*.npz")))


def struck(folder: Path, moment: str, action: str, *words: str, **options: str) -> Ended:
    """Run the same with a fault in it."""
    return _ended(folder, (moment, action, *words), options, "tests.faults.child", CHILD)


def _ended(
    folder: Path,
    words: tuple[str, ...],
    options: dict[str, str],
    module: str = "normbench",
    program: str = "",
) -> Ended:
    """Run a command in a fork, or as a process of its own where it is to start others itself."""
    if any("launcher" in word for word in words):
        return end(start(folder, *words, module=module, **options))
    words = stores.of(folder).named(words)
    environment = forks.user_environment(**ENVIRONMENT | options)
    ended = forks.run(words, folder, environment, patience=SECONDS, program=program)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def ask(folder: Path, query: str) -> list[tuple]:
    """Return what the database of a folder's store answers; nothing where there is none."""
    return stores.of(folder).ask(query)


def tagged(key: str) -> str:
    """Return the SQL of a run's tag."""
    return f"(select value from tags t where t.run_uuid = r.run_uuid and t.key = '{key}')"


def recorded(folder: Path) -> list[str]:
    """Return the fingerprint of every finished job, once for each time that it stands there."""
    rows = ask(
        folder,
        f"select {tagged('fingerprint')} from runs r "
        f"where {tagged('role')} = 'scheme' and status = 'FINISHED'",
    )
    return [row[0] for row in rows]


def complaints(folder: Path, commands: Sequence[Ended], jobs: int, steps: int = 2) -> list[str]:
    """Return what is wrong in the end: jobs lost or doubled, cut off, or running; tracebacks."""
    found, jobs_there = [], recorded(folder)
    if len(set(jobs_there)) != jobs:
        found.append(f"{len(set(jobs_there))} jobs of {jobs}")
    if len(jobs_there) != len(set(jobs_there)):
        found.append(f"{len(jobs_there) - len(set(jobs_there))} doubled")
    running = ask(folder, "select count(*) from runs where status = 'RUNNING'")
    if running and running[0][0]:
        found.append(f"{running[0][0]} left running")
    found += [f"{count} steps of {steps} in a job" for count in _uneven(folder, steps)]
    cut_off = _whole_steps_of_cut_off_jobs(folder)
    if cut_off:
        found.append(f"{cut_off} whole steps of jobs that were cut off")
    if kept(folder):
        found.append("records left on disk")
    for ended in commands:
        if "Traceback" in ended.err:
            found.append(ended.err[ended.err.index("Traceback") :])
    return found


def _whole_steps_of_cut_off_jobs(folder: Path) -> int:
    rows = ask(
        folder,
        "select count(*) from runs s, tags p, runs r where p.run_uuid = s.run_uuid and "
        "p.key = 'mlflow.parentRunId' and p.value = r.run_uuid and s.status = 'FINISHED' "
        f"and r.status = 'KILLED' and {tagged('role')} = 'scheme'",
    )
    return int(rows[0][0]) if rows else 0


def _uneven(folder: Path, steps: int) -> list[int]:
    """Return how many whole step runs those jobs have that have not as many as they should."""
    rows = ask(
        folder,
        "select (select count(*) from runs s, tags p where p.run_uuid = s.run_uuid and "
        "p.key = 'mlflow.parentRunId' and p.value = r.run_uuid and s.status = 'FINISHED' and "
        "(select count(*) from metrics m where m.run_uuid = s.run_uuid and m.key = 'train/cost') "
        "= 1 + (select cast(value as integer) from params q "
        "where q.run_uuid = r.run_uuid and q.key = 'iterations'))"
        f" from runs r where {tagged('role')} = 'scheme' and status = 'FINISHED'",
    )
    return [row[0] for row in rows if row[0] != steps]


def told(
    folder: Path, fault: str, first: Ended, before: int, again: Ended, jobs: int = 3, steps: int = 2
) -> Told:
    """Return the row of a fault, with what is wrong in the end."""
    row = Told(fault, first, before, again, len(recorded(folder)))
    row.complaints = complaints(folder, [first, again], jobs, steps)
    return row


def expect(row: Told, first: tuple[int, ...], again: int = 0) -> Told:
    """Add a complaint where a command did not end with its code."""
    if row.first.code not in first:
        row.complaints.append(f"exit code {row.first.code}: {row.first.err[-500:]}")
    if row.again.code != again:
        row.complaints.append(f"exit code {row.again.code} again: {row.again.err[-500:]}")
    return row


def repeated(
    folder: Path,
    fault: str,
    first: Ended,
    codes: tuple[int, ...],
    *words: str,
    jobs: int = 3,
    again: int = 0,
) -> Told:
    """Count what a first command has recorded, run the same again, and tell of both."""
    before = len(recorded(folder))
    second = run(folder, *words)
    return expect(told(folder, fault, first, before, second, jobs), codes, again)


def in_the_first(
    folder: Path, moment: str, action: str, codes: tuple[int, ...], repair: Callable[[], None]
) -> Told:
    """Strike the first command, repair what was broken, and run the same again."""
    first = struck(folder, moment, action, *JOBS)
    repair()
    return repeated(folder, f"{action}, {moment}", first, codes, *JOBS)


def one_line(row: Told) -> Told:
    """Add a complaint where the first command said more, or less, than one line."""
    if len(row.first.err.splitlines()) != 1:
        row.complaints.append(f"not one line: {row.first.err}")
    return row
