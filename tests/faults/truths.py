"""Faults after which a command could tell what is not so, or wait for ever."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults import bench
from tests.faults.bench import JOBS, Told, expect, in_the_first, one_line, repeated, told

SOON = 60  # seconds in which a command that waits for nobody has long ended
REMOVED = "was removed while the comparison was at work"


def store_removed(folder: Path, action: str, moment: str, code: int = 1) -> Told:
    """The database is removed amid a sweep: what is told of each job is true."""
    there: list[int] = []

    def count() -> None:
        there.extend([len(set(bench.recorded(folder))), bench.kept(folder)])

    row = in_the_first(folder, moment, action, (code,), count)
    standing, kept = there
    said = {
        f"{kept} of 3 jobs are kept": kept > 0,
        f"{3 - standing - kept} of 3 jobs are neither": standing + kept < 3,
        "every job is recorded": standing == 3 and code == 1,
    }
    for words, true in said.items():
        if (words in row.first.err) != true:
            row.complaints.append(f"{words}: {standing} recorded, {kept} kept: {row.first.err}")
    if kept and f"logged {kept} jobs that an earlier command had kept" not in row.again.err:
        row.complaints.append(f"what was kept is not logged: {row.again.err}")
    return row


def outputs_removed(folder: Path, moment: str, codes: tuple[int, ...] = (0,)) -> Told:
    """The folder of the figures is removed amid a sweep: it is told, and no job is lost."""
    row = in_the_first(folder, moment, "remove outputs", codes, lambda: None)
    if 0 in codes and (REMOVED not in row.first.err or row.before != 3):
        row.complaints.append(f"not told, or {row.before} recorded: {row.first.err}")
    return one_line(row) if codes == (1,) else row


def outputs_removed_joblib(folder: Path) -> Told:
    """The same, while joblib's processes are at work."""
    words = ("seed=range(0,12)", "start=normal", "normalizer=identity", *JOBS)
    words += ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    started = bench.start(folder, *words)
    while len(bench.recorded(folder)) < 2 and started.process.poll() is None:
        time.sleep(0.05)
    shutil.rmtree(folder / "outputs")
    first = bench.end(started)
    row = repeated(folder, "outputs removed, joblib", first, (0,), *words, jobs=12)
    if REMOVED not in first.err:
        row.complaints.append(f"not told: {first.err}")
    return row


def in_the_way(
    folder: Path, fault: str, name: str, put: Callable[[Path], None], words: str
) -> Told:
    """Something that is no record lies where records wait: nobody waits for it, and it is told."""
    made = bench.run(folder, "normalizer=identity", *JOBS)
    assert made.code == 0, made.err
    old = folder / "outputs" / "old"
    (old / "pending").mkdir(parents=True)
    (old / "sweep.json").write_text("{}")
    put(old / name)
    first = bench.end(bench.start(folder, *JOBS), SOON)
    before = len(bench.recorded(folder))
    (old / "pending" / "0.npz").unlink(missing_ok=True)
    again = bench.end(bench.start(folder, *JOBS), SOON)
    row = expect(told(folder, fault, first, before, again), (0,))
    if words not in first.err:
        row.complaints.append(f"not told: {first.err}")
    return row


def lock_in_the_way(folder: Path) -> Told:
    """The file by which jobs are kept apart is a pipe: one line, and nothing waits."""
    (folder / "outputs").mkdir()
    os.mkfifo(folder / "outputs" / f".jobs.{os.getuid()}")
    first = bench.end(bench.start(folder, *JOBS), SOON)
    (folder / "outputs" / f".jobs.{os.getuid()}").unlink()
    return one_line(repeated(folder, "a pipe for a lock", first, (2,), *JOBS))


def _link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


RECORD, ASIDE = "pending/0.npz", "is set aside"
FAULTS: dict[str, Callable[[Path], Told]] = {
    **{
        f"database {action}d, {moment}": lambda f, action=action, moment=moment: store_removed(
            f, action, moment
        )
        for action in ("remove", "replace")
        for moment in ("before writing", "amid writing")
    },
    "database removed, after the last job": lambda f: store_removed(f, "remove", "standing"),
    "database removed, concluding": lambda f: store_removed(f, "remove", "concluding"),
    "outputs removed, starting": lambda f: outputs_removed(f, "starting", (1,)),
    "outputs removed, descending": lambda f: outputs_removed(f, "descending"),
    "outputs removed, amid writing": lambda f: outputs_removed(f, "amid writing"),
    "outputs removed, joblib": outputs_removed_joblib,
    **{
        fault: lambda f, fault=fault, arguments=arguments: in_the_way(f, fault, *arguments)
        for fault, arguments in {
            "pipe for a record": (RECORD, os.mkfifo, ASIDE),
            "link for a record": (RECORD, _link_to_pipe, ASIDE),
            "zeros for a record": (RECORD, lambda path: path.symlink_to("/dev/zero"), ASIDE),
            "folder for a record": (RECORD, Path.mkdir, ASIDE),
            "huge record": (RECORD, _sparse, ASIDE),
            "pipe for a sweep's lock": ("lock", os.mkfifo, "is no regular file"),
        }.items()
    },
    "pipe for the jobs' lock": lock_in_the_way,
}
