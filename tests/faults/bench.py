"""Commands in a folder of their own, which a test may end at any moment, and their records."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from normbench import names
from normbench.results.store.comparison_files import FILE, Comparison, record_file
from normbench.results.store.job_records import JobRecord, is_finished
from tests import forks

ROOT = Path(__file__).resolve().parents[2]
PLACES = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
HUNG = 124  # the code of a command that had to be ended
SECONDS = 240  # after which it is


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Started:
    """A command at work. It writes into files: a process that outlives it would hold a pipe."""

    process: subprocess.Popen
    out: IO[str]
    err: IO[str]


def start(folder: Path, *words: str, **options: str) -> Started:
    """Start `normbench ...` in a folder, in a process group of its own."""
    # `end` closes them.
    out, err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115
    process = subprocess.Popen(
        [sys.executable, "-m", "normbench", *with_no_copy(words)],
        cwd=folder,
        env=environment(**options),
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
    if any("launcher" in word for word in words):  # which starts processes itself
        return end(start(folder, *words, **options))
    ended = forks.run(with_no_copy(words), folder, environment(**options), patience=SECONDS)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def with_no_copy(words: tuple[str, ...]) -> list[str]:
    """Return the words of a command, of a comparison without a copy in MLflow."""
    is_copied = words[:1] == ("results",) or any("tracking" in word for word in words)
    return [*words] if is_copied else [*words, "tracking=none"]


def environment(**options: str) -> dict[str, str]:
    """Return the environment of a command."""
    return forks.user_environment(**{"PYTHONPATH": PLACES} | options)


def recorded(folder: Path) -> list[str]:
    """Return the keys of the finished jobs of a folder."""
    return sorted(file.stem for file in folder.glob("outputs/records/*.npz") if is_finished(file))


def tags(folder: Path, tag: names.Tag) -> list[str]:
    """Return a tag of each finished job of a folder's one comparison, in the order of its jobs."""
    (file,) = folder.glob(f"outputs/*/{FILE}")
    places = [record_file(folder / "outputs", key) for key in Comparison.read(file.parent).keys]
    return [JobRecord.load(place).scheme.tags[tag.key] for place in places if is_finished(place)]


def descents(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the finished jobs of a folder keep of their descents, but for the seconds."""
    found = {}
    for key in recorded(folder):
        kept = JobRecord.load(folder / "outputs" / "records" / f"{key}.npz")
        arrays = kept.arrays[names.DESCENT_ARRAYS]
        found[key] = {name: array for name, array in arrays.items() if "seconds" not in name}
    return found
