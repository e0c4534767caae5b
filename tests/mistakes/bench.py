"""What a mistake is told by: the command's answer, and what it leaves."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import forks

MEMORY = 16 << 30  # bytes of addresses that a command may have
PATIENCE = 60  # seconds after which it is ended
NO_NETWORK = "http://127.0.0.1:9"  # nobody runs it: every download fails at once
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
    return answer(of_one_scheme(case.words(top / "files")), top, case.stdout)


def of_one_scheme(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a comparison with one scheme, unless they choose: three take longer."""
    is_open = all("=" in word and not word.startswith("-") for word in words)
    chosen = ("normalizer", "experiment", "hydra")
    if not is_open or any(word.lstrip("+~").startswith(chosen) for word in words):
        return words
    return [*words, "normalizer=identity"]


def answer(words: Sequence[str], top: Path, stdout: str = "") -> Told:
    """Return how the command of some words ends in `work` below a folder."""
    before = _files(top)
    hidden = ("NORMBENCH_DATA", "XDG_CACHE_HOME")
    environment = forks.user_environment()
    environment = {name: value for name, value in environment.items() if name not in hidden}
    environment |= {"HOME": str(top / "home"), "no_proxy": "127.0.0.1"}
    environment |= {"http_proxy": NO_NETWORK, "https_proxy": NO_NETWORK}
    ended = forks.run(words, top / "work", environment, stdout, MEMORY, PATIENCE)
    after = _files(top)
    made, gone = sorted(after - before), sorted(before - after)
    return Told(ended.returncode, ended.stdout, ended.stderr, made, gone, ended.seconds)


def _files(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")}


def emptied(top: Path) -> None:
    """Remove what a case has left, closed folders too."""
    for path in top.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(top)
