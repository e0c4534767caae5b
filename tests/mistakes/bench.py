"""What a mistake is told by: the command's answer, and what it leaves."""

import atexit
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

SECONDS = 10.0  # of the processor, within which a command says what is wrong


@dataclass(frozen=True)
class Case:
    """A mistake: what makes its words, and fragments of the line that the user reads.

    words: called with a folder for files; the command itself runs in `work` beside it. stdout: a
    file that the standard output goes to.
    """

    kind: str
    words: Callable[[Path], Sequence[str]]
    fragments: tuple[str, ...]
    stdout: str = ""


@dataclass(frozen=True)
class Told:
    """How a command ended, what it printed, and which files it made or took away.

    seconds: of the processor's time, for other tests may keep the machine busy.
    """

    code: int
    out: str
    err: str
    made: list[str]
    gone: list[str]
    seconds: float

    def complaints(self, fragments: Sequence[str] = ()) -> list[str]:
        """Return what is wrong with the answer to a mistake."""
        found = [] if self.code == 2 else [f"exit code {self.code}"]
        lines = self.err.splitlines()
        if len(lines) != 1 or not lines[0].startswith("normbench: "):
            found.append(f"{len(lines)} lines: {self.err[-3000:]}")
        found += [f"{fragment!r} is not said" for fragment in fragments if fragment not in self.err]
        if self.out:
            found.append(f"prints {self.out[:200]}")
        found += [f"leaves {name}" for name in self.made] + [f"takes {name}" for name in self.gone]
        if self.seconds > SECONDS:
            found.append(f"{self.seconds:.1f} s")
        return found


def typed(*words: str) -> Callable[[Path], list[str]]:
    """Return what makes words that need no file."""
    return lambda folder: list(words)


def ask(case: Case, top: Path) -> Told:
    """Return how a command answers a mistake in an empty folder."""
    for name in ("files", "work", "home"):
        (top / name).mkdir()
    return answer(case.words(top / "files"), top, case.stdout)


def answer(words: Sequence[str], top: Path, stdout: str = "") -> Told:
    """Return how the command of some words ends in `work` below a folder."""
    before = _files(top)
    out, err = top / "out.txt", top / "err.txt"
    order = {"words": words, "top": str(top), "out": stdout or str(out), "err": str(err)}
    server = _server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps(order) + "\n")
    server.stdin.flush()
    ended = json.loads(server.stdout.readline())
    printed = "" if stdout else out.read_text(errors="replace")
    told = err.read_text(errors="replace")
    for file in (out, err):
        file.unlink(missing_ok=True)
    after = _files(top)
    made, gone = sorted(after - before), sorted(before - after)
    return Told(ended["code"], printed, told, made, gone, ended["seconds"])


@cache
def _server() -> subprocess.Popen[str]:
    """Return the process that is forked; it ends with this one, which holds its other end."""
    words = [sys.executable, "-m", "tests.mistakes.forks"]
    pipe = subprocess.PIPE
    server = subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)
    return server


def _files(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")}


def emptied(top: Path) -> None:
    """Remove what a case has left, closed folders too."""
    for path in top.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(top)
