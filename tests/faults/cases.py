"""The faults: each strikes a command, runs the same command again, and tells of both."""

import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests import stores
from tests.faults import bench, child, nights, random_kills, results_kills, truths
from tests.faults.bench import JOBS, STEPS, Told, expect, in_the_first, one_line, repeated, told
from tests.servers.mlflows import Server, serving

SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")
CODES = {"SIGINT": 130, "SIGTERM": 130, "SIGKILL": -9}
COSTS = """
import os
import signal
from pathlib import Path

import autograd.numpy as anp
import numpy as np


def softmax(scores, y):
    return anp.sum(anp.logaddexp(0.0, -y * scores[:, 0]), axis=-1)


def struck(scores, y):
    if Path("struck").exists():
        exec(Path("struck").read_text())
    return softmax(scores, y)
"""
OWN = (
    "-m",
    "normalizer=standard",
    *JOBS,
    "cost._target_=mine.softmax,mine.struck",
    "packages=[mine]",
)


def signalled(folder: Path, name: str, moment: str) -> Told:
    """A signal at one of five moments."""
    return in_the_first(folder, moment, name, (CODES[name],), lambda: None)


def locked_for_a_while(folder: Path, seconds: float = 30) -> Told:
    """Another process holds the database, and lets it go: the command waits."""
    made = bench.run(folder, "normalizer=identity", *JOBS)
    assert made.code == 0, made.err
    connection = sqlite3.connect(
        folder / "mlflow.db", isolation_level=None, check_same_thread=False
    )
    connection.execute("BEGIN EXCLUSIVE")
    timer = threading.Timer(seconds, connection.rollback)
    timer.start()
    first = bench.run(folder, *JOBS, PATIENCE="60")
    timer.join()
    connection.close()
    return repeated(folder, f"database locked for {seconds:g} s", first, (0,), *JOBS)


def locked_for_good(folder: Path) -> Told:
    """The second job cannot be written, nor the third: both are kept and logged later."""
    row = in_the_first(folder, "before writing", "lock", (1,), lambda: None)
    return _kept(row, 2)


def _kept(row: Told, jobs: int) -> Told:
    if f"logged {jobs} jobs that an earlier command had kept" not in row.again.err:
        row.complaints.append(f"kept records are not logged: {row.first.err} {row.again.err}")
    return row


def corrupt_in_between(folder: Path) -> Told:
    """The database is spoilt before the second job is written; a copy from before is put back."""
    made = bench.run(folder, "normalizer=identity", *JOBS)
    assert made.code == 0, made.err
    copy = folder / "copy.db"
    shutil.copy(folder / "mlflow.db", copy)

    def restore() -> None:
        for file in folder.glob("mlflow.db-*"):
            file.unlink()
        shutil.copy(copy, folder / "mlflow.db")

    return in_the_first(folder, "before writing", "corrupt", (1, 2), restore)


def _spoilt(folder: Path, fault: str, spoil: Callable[[Path], None]) -> Told:
    made = bench.run(folder, "normalizer=identity", *JOBS)
    assert made.code == 0, made.err
    database, copy = folder / "mlflow.db", folder / "copy.db"
    shutil.copy(database, copy)
    spoil(database)
    first = bench.run(folder, *JOBS)
    shutil.copy(copy, database)
    return one_line(repeated(folder, fault, first, (2,), *JOBS))


def corrupt(folder: Path) -> Told:
    """The database is spoilt before the command starts."""
    return _spoilt(
        folder, "corrupt database", lambda file: file.write_bytes(b"no database " * 2000)
    )


def other_schema(folder: Path) -> Told:
    """The database is of another version of MLflow."""

    def spoil(file: Path) -> None:
        with sqlite3.connect(file) as connection:
            connection.execute("update alembic_version set version_num = '0123456789ab'")
        connection.close()

    return _spoilt(folder, "database of another schema version", spoil)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system of that size below a folder; raises PermissionError without the right."""
    place = folder / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True
    )
    if done.returncode:
        raise PermissionError("mounting takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def disk_full(folder: Path, moment: str = "before writing") -> Told:
    """The disk runs full before the second job is written."""
    with small_disk(folder, "12m") as place:
        return in_the_first(place, moment, "fill", (1, 2), (place / "filler").unlink)


def disk_full_from_the_start(folder: Path) -> Told:
    """There is no room for a database."""
    with small_disk(folder, "300k") as place:
        first = bench.run(place, *JOBS)
        subprocess.run(["mount", "-o", "remount,size=20m", str(place)], check=True)
        return one_line(repeated(place, "disk full, from the start", first, (2,), *JOBS))


def disk_full_for_a_while(folder: Path) -> Told:
    """The disk runs full, and has room again while the command waits."""
    with small_disk(folder, "12m") as place:

        def free() -> None:
            while not (place / "filler").exists():
                time.sleep(0.1)
            time.sleep(5)
            (place / "filler").unlink()

        threading.Thread(target=free, daemon=True).start()
        first = bench.struck(place, "before writing", "fill", *JOBS, PATIENCE="60")
        return repeated(place, "disk full for 5 s", first, (0,), *JOBS)


def read_only(folder: Path) -> Told:
    """The folder can be read and not written."""
    with small_disk(folder, "20m") as place:
        made = bench.run(place, "normalizer=identity", *JOBS)
        assert made.code == 0, made.err
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        first = bench.run(place, *JOBS)
        listed = bench.run(place, "results", "table")
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        row = one_line(repeated(place, "read-only folder", first, (2,), *JOBS))
        if listed.code or "identity" not in listed.out:
            row.complaints.append(f"cannot be read: {listed.err}")
        return row


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Give the server of a folder's store, or else one before its file; a fault may kill it."""
    own = stores.of(folder).server
    new = Server(f"sqlite:///{folder}/mlflow.db", folder)
    with nullcontext(own) if own else serving(new) as server:
        (folder / "server.pid").write_text(str(server.process.pid))
        try:
            yield server
        finally:
            server.begin()


def server_away_for_a_while(folder: Path) -> Told:
    """The server is killed before the second job is written, and started again at once."""
    with served(folder) as server:
        words = (*JOBS, "tracking=server", f"tracking.uri={server.uri}")
        moment = ("before writing", "end server")
        place = {"module": "tests.faults.child", "PATIENCE": "120"}
        started = bench.start(folder, *moment, *words, **place)
        # A port closes some moments before the process that held it is seen to have ended.
        while server.running and started.process.poll() is None:
            time.sleep(0.2)
        server.begin()
        first = bench.end(started)
        return repeated(folder, "server killed and started again", first, (0,), *words)


def server_away(folder: Path) -> Told:
    """The server is killed before the second job is written, and back for the next command."""
    with served(folder) as server:
        words = (*JOBS, "tracking=server", f"tracking.uri={server.uri}")
        first = bench.struck(folder, "before writing", "end server", *words)
        server.begin()
        fault = "server killed, back for the next command"
        return _kept(repeated(folder, fault, first, (1,), *words), 2)


def server_silent(folder: Path, seconds: float = 20) -> Told:
    """The server is halted for some seconds after the first job, and goes on: the command waits."""
    with served(folder) as server:
        words = (*JOBS, "tracking=server", f"tracking.uri={server.uri}")
        started = bench.start(folder, *words)
        while not bench.recorded(folder) and started.process.poll() is None:
            time.sleep(0.05)
        os.killpg(server.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.killpg(server.process.pid, signal.SIGCONT)
        first = bench.end(started)
        return repeated(folder, f"server silent for {seconds:g} s", first, (0,), *words)


def job_failing(folder: Path) -> Told:
    """One job's scheme refuses its points; it fails again, the other is reused."""
    words = ("normalizer=standard,power", "normalizer.method=box-cox", "iterations=20", STEPS)
    words += ("figures=[]",)
    first = bench.run(folder, *words)
    row = repeated(folder, "job failing: box-cox", first, (2,), *words, jobs=1, again=2)
    if "reused 1 of 2" not in row.again.out:
        row.complaints.append("the finished job is not reused")
    return row


def cost_raising(folder: Path, fault: str, code: str, exits: int = 1) -> Told:
    """One of a user's two costs fails, as long as the file `struck` is there."""
    (folder / "mine.py").write_text(COSTS)
    (folder / "struck").write_text(code)
    first = bench.run(folder, *OWN)
    (folder / "struck").unlink()
    row = repeated(folder, fault, first, (exits,), *OWN, jobs=2)
    if "1 of 2 jobs failed" not in first.out:
        row.complaints.append(f"not one failed: {first.out}")
    return row


def worker_killed(folder: Path) -> Told:
    """A process of joblib's is killed, as the system does when memory runs out."""
    (folder / "mine.py").write_text(COSTS)
    (folder / "struck").write_text("os.kill(os.getpid(), signal.SIGKILL)")
    words = (*OWN, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    first = bench.run(folder, *words)
    (folder / "struck").unlink()
    return repeated(folder, "joblib's process killed", first, (1,), *words, jobs=2)


def joblib_signalled(folder: Path, name: str) -> Told:
    """The command is struck while joblib's processes are at work."""
    words = ("seed=range(0,12)", "start=normal", "normalizer=identity", *JOBS)
    words += ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    started = bench.start(folder, *words)
    process = started.process
    while len(bench.recorded(folder)) < 2 and process.poll() is None:
        time.sleep(0.05)
    number = getattr(signal, name)
    if name == "SIGINT":  # Ctrl-C reaches the processes too
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    first = bench.end(started)
    before = len(bench.recorded(folder))
    again = bench.run(folder, *words)
    time.sleep(2)  # for a process that outlived its sweep
    bench.run(folder, *words)
    row = told(folder, f"{name}, amid a joblib sweep", first, before, again, 12)
    return expect(row, (CODES[name],))


def broken_file(folder: Path) -> Told:
    """A file of the user's is no table; it is repaired."""
    good = "a,b,y\n" + "\n".join(f"{n % 7},{n * n % 11},{n % 2}" for n in range(40)) + "\n"
    (folder / "good.csv").write_text(good)
    (folder / "bad.csv").write_bytes(b"\x80\x04\x95 broken off")
    words = ("-m", "dataset=csv", "dataset.path=good.csv,bad.csv", "dataset.target=y")
    words += ("normalizer=standard", *JOBS)
    first = bench.run(folder, *words)
    (folder / "bad.csv").write_text(good.replace("0,", "3,"))
    return repeated(folder, "broken data file", first, (2,), *words, jobs=2)


def broken_download(folder: Path) -> Told:
    """A file in the data folder is not the one that belongs there."""
    file = folder / "data" / "MNIST" / "raw" / "t10k-images-idx3-ubyte.gz"
    file.parent.mkdir(parents=True)
    for name in _files_of_mnist():
        (file.parent / name).write_bytes(b"broken off")
        (folder / "data" / name).write_bytes(b"broken off")
    words = ("-m", "dataset=breast_cancer,mnist", "cost=multiclass_softmax", "data_dir=data")
    words += ("normalizer=standard", *JOBS)
    first = bench.run(folder, *words)
    return repeated(folder, "corrupt download", first, (2,), *words, jobs=1, again=2)


def _files_of_mnist() -> list[str]:
    parts = (("train", "t10k"), ("images-idx3", "labels-idx1"))
    return [f"{part}-{kind}-ubyte.gz" for part in parts[0] for kind in parts[1]]


def two_at_once(folder: Path) -> Told:
    """The same command twice, at the same time."""
    both = [bench.start(folder, *JOBS) for _ in range(2)]
    first, other = (bench.end(process) for process in both)
    row = repeated(folder, "two sweeps at once", first, (0,), *JOBS)
    if other.code or "Traceback" in other.err:
        row.complaints.append(other.err)
    return row


def eight_at_once(folder: Path) -> Told:
    """Eight processes are the first to use a folder."""
    words = ("normalizer=standard", "start=normal", *JOBS)
    all_of_them = [bench.start(folder, *words, f"seed={number}") for number in range(8)]
    ended = [bench.end(process) for process in all_of_them]
    words += ("seed=range(0,8)",)
    row = repeated(folder, "first use by 8 processes", ended[0], (0,), *words, jobs=8)
    row.complaints += [other.err for other in ended if other.code or "Traceback" in other.err]
    return row


def clock_set_back(folder: Path) -> Told:
    """Killed, then a day back: the next sweep's folder, and so its name, is the first one's."""
    words = (*JOBS, "hydra.sweep.dir=outputs/same")
    first = bench.struck(folder, "before writing", "SIGKILL", *words)
    before = len(bench.recorded(folder))
    again = bench.struck(folder, "set back", "24", *words)
    return expect(told(folder, "clock set back by a day", first, before, again), (-9,))


def signals() -> dict[str, Callable[[Path], Told]]:
    """Return each signal at each moment."""
    return {
        f"{name}, {moment}": lambda folder, name=name, moment=moment: signalled(
            folder, name, moment
        )
        for name in SIGNALS
        for moment in child.MOMENTS
        if moment not in ("tidying", "standing")
    }


FAULTS: dict[str, Callable[[Path], Told]] = {
    **signals(),
    **{f"{name}, joblib": lambda f, name=name: joblib_signalled(f, name) for name in SIGNALS},
    "locked for a while": locked_for_a_while,
    "locked for good": locked_for_good,
    "corrupt": corrupt,
    "corrupt in between": corrupt_in_between,
    "other schema": other_schema,
    "disk full": disk_full,
    "disk full, from the start": disk_full_from_the_start,
    "disk full for a while": disk_full_for_a_while,
    "disk full, concluding": lambda folder: disk_full(folder, "concluding"),
    "read-only": read_only,
    "server away for a while": server_away_for_a_while,
    "server away": server_away,
    "server silent": server_silent,
    "job failing": job_failing,
    "cost raising": lambda f: cost_raising(f, "user's cost raises", "raise RuntimeError('mine')"),
    "cost leaving": lambda f: cost_raising(f, "user's cost calls exit", "raise SystemExit(0)"),
    "out of memory": lambda f: cost_raising(f, "out of memory in a job", "np.ones((1 << 50,))", 2),
    "worker killed": worker_killed,
    "broken file": broken_file,
    "broken download": broken_download,
    "two at once": two_at_once,
    "eight at once": eight_at_once,
    "clock set back": clock_set_back,
    **truths.FAULTS,
    **random_kills.FAULTS,
    **nights.FAULTS,
    **results_kills.FAULTS,
}
