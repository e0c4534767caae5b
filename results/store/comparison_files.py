"""A comparison: `outputs/ID/comparison.json`, with the keys of its jobs, and what is said of it.

The home of comparisons is a folder, by default `outputs`: a folder for each comparison, and
`records/KEY.npz` for each job of any of them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from normbench import names
from normbench.results.safe import clean
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import written_whole

FILE, LOCK = "comparison.json", ".lock"
OLD_DATABASE = Path("mlflow.db")  # where results were recorded before records were files
COMPARISON_FORMAT = 1
RUNNING, FINISHED, INTERRUPTED = "running", "finished", "stopped"
FAILED = names.FAILED
STATES = (RUNNING, FINISHED, INTERRUPTED, FAILED)
PLAIN_NAME = re.compile(r"\w[\w .-]*")  # of a file in the folder, or of a record
COMPLETE = "was stopped after its last job: every job is recorded, and nothing runs again"


@dataclass(frozen=True)
class JobEntry:
    """A job of a comparison: its experiment, and its key once it is done (None before)."""

    experiment: str
    key: str | None = None
    reused: bool = False


@dataclass
class Comparison:
    """A comparison, as it is in its file.

    Attributes:
        folder: Its folder; the name is its id.
        command: The command that made it, without passwords.
        tracking: The URI of MLflow's store that its copy goes to; empty without a copy.
        jobs: Its jobs, in the order of the command.
        tags: Versions, the commit, the digest of the code, and what its study expects.
        state: `running`, `finished`, `failed` (every job, or the command itself) or `stopped`.
        started: When it was started, UTC in ISO's form.
        ended: When it ended; empty before.
        figures: The names of the figures that were drawn.
        files: The names of their files, and of the report, by experiment.
    """

    folder: Path
    command: str
    tracking: str
    jobs: list[JobEntry]
    tags: dict[str, str]
    state: str = RUNNING
    started: str = ""
    ended: str = ""
    figures: list[str] = field(default_factory=list)
    files: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Comparison":
        """Return the comparison of a folder.

        Raises:
            OSError: It has none, or it cannot be read.
            ValueError: Its file is not one of a comparison.
        """
        try:
            fields = json.loads((folder / FILE).read_bytes())
            if fields.pop("format") != COMPARISON_FORMAT:
                raise ValueError("its format is another one")
            del fields["id"]
            jobs = [JobEntry(**job) for job in fields.pop("jobs")]
            comparison = cls(folder, jobs=jobs, **fields)
            comparison._check()
            return comparison
        except OSError:
            raise
        except Exception as error:  # of any class: that of the first part that is not as written
            raise ValueError(f"{folder / FILE}: is no comparison ({error})") from error

    def _check(self) -> None:
        """Raise an error unless its parts have their types, and no name is a path."""
        texts = [self.command, self.tracking, self.ended, *self.figures]
        texts += [job.experiment for job in self.jobs]
        texts += [text for pair in self.tags.items() for text in pair]
        if not all(isinstance(text, str) for text in texts) or self.state not in STATES:
            raise ValueError("a text of it is none")
        drawn = [name for group in self.files.values() for name in group]
        if not all(PLAIN_NAME.fullmatch(name) for name in (*self.keys, *drawn)):
            raise ValueError("a name in it is a path")
        datetime.fromisoformat(self.started)

    def write(self) -> None:
        """Write its file; raise OSError where that is not possible."""
        self.started = self.started or now()
        fields = {**vars(self), "jobs": [asdict(job) for job in self.jobs]}
        del fields["folder"]
        text = json.dumps({"format": COMPARISON_FORMAT, "id": self.id, **fields}, indent=1)
        with written_whole(self.folder / FILE) as draft:
            draft.write(text.encode())

    def end(self, state: str) -> None:
        """Write that it has ended, in a state."""
        self.state, self.ended = state, now()
        self.write()

    def add(self, number: int, key: str, reused: bool) -> None:
        """Write that a job is done; number: its place in the comparison, from 0."""
        entry = self.jobs[number]
        if entry.key != key:
            self.jobs[number] = replace(entry, key=key, reused=reused)
            self.write()

    @property
    def id(self) -> str:
        """Its id, the name of its folder."""
        return self.folder.name

    @property
    def home(self) -> Path:
        """The folder of comparisons and their records."""
        return self.folder.parent

    @property
    def keys(self) -> list[str]:
        """The keys of the jobs that are done."""
        return [job.key for job in self.jobs if job.key]

    @property
    def is_running(self) -> bool:
        """Whether a process is at work on it."""
        if self.state != RUNNING:
            return False
        try:
            with FileLock(self.folder / LOCK, timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # a folder of another user's
            return False

    @property
    def status(self) -> str:
        """Its state in MLflow's words: RUNNING, FINISHED, FAILED or KILLED."""
        is_left = self.state == RUNNING and not self.is_running
        return "KILLED" if is_left or self.state == INTERRUPTED else self.state.upper()

    @property
    def has_ended(self) -> bool:
        """Whether it came to its end: nothing is left to run."""
        return self.state in (FINISHED, FAILED) and len(self.keys) == len(self.jobs)

    @property
    def predicate(self) -> str:
        """What is said of it, as of `comparison ID`; empty once it has ended."""
        done, jobs = len(self.keys), len(self.jobs)
        if self.has_ended:
            return ""
        if self.is_running:
            return f"is still running ({done} of {jobs} job{'s' * (jobs != 1)} done)"
        if done == jobs:
            return COMPLETE
        count = f"{done} of {jobs} job{'s' * (jobs != 1)}"
        return f"was stopped ({count} done); the same command runs the rest"

    def keep_drawn(
        self, code: str, figures: Iterable[str], files: Mapping[str, Sequence[Path]]
    ) -> None:
        """Keep what was drawn, until it is written: see `drawn_files`.

        Args:
            code: The digest of the code that drew it.
            figures: The names of the figures.
            files: The files in its folder, by experiment.
        """
        self.figures, self.tags[names.CODE.key] = list(figures), code
        self.files = {name: [file.name for file in group] for name, group in files.items()}

    def drawn_files(self, code: str, figures: Sequence[str]) -> dict[str, list[Path]] | None:
        """Return its figures and its report by experiment; None where they have to be drawn.

        Args:
            code: The digest of the code that would draw them.
            figures: The names of the figures.
        """
        is_drawn = self.has_ended and self.tags.get(names.CODE.key) == code
        if not is_drawn or self.figures != list(figures):
            return None
        files = {
            experiment: [self.folder / name for name in file_names]
            for experiment, file_names in self.files.items()
        }
        are_there = all(file.is_file() for group in files.values() for file in group)
        return files if are_there else None

    @property
    def run_tags(self) -> dict[str, str]:
        """The tags of its run in MLflow, and in a table of runs."""
        own = {names.SWEEP_ID: self.id, names.COMMAND: self.command, names.JOBS: len(self.jobs)}
        return {**{tag.key: str(value) for tag, value in own.items()}, **self.tags}


def record_file(home: Path, key: str) -> Path:
    """Return the file of the record with a key."""
    return home / "records" / f"{key}.npz"


def now() -> str:
    """Return the present time, UTC in ISO's form."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def recorded(home: Path) -> list[Comparison]:
    """Return the comparisons of a home, the latest first; folders without one are left out."""
    comparisons = []
    for file in home.glob(f"*/{FILE}"):
        try:
            comparisons.append(Comparison.read(file.parent))
        except (OSError, ValueError):
            continue
    return sorted(comparisons, key=lambda other: (other.started, other.id), reverse=True)


def select(home: Path, ids: Iterable[str]) -> list[Comparison]:
    """Return comparisons of a home by their ids.

    Raises:
        ResultsError: There is no such comparison.
    """
    chosen = []
    for sweep_id in dict.fromkeys(ids):
        try:
            if sweep_id != Path(sweep_id).name:
                raise FileNotFoundError
            chosen.append(Comparison.read(home / sweep_id))
        except (OSError, ValueError) as error:
            raise ResultsError(
                f"comparison {clean.line(sweep_id)}: is not in {home}; "
                "normbench results list shows them"
            ) from error
    return chosen


def empty_home(home: Path) -> ResultsError:
    """Return the error for a home without a comparison."""
    old = (
        f"; {OLD_DATABASE} may hold results of a version that kept them there: the same commands "
        "run them again"
        if OLD_DATABASE.is_file()
        else ""
    )
    return ResultsError(f"{home}: holds no comparison; run normbench first{old}")


def sentences(comparisons: Iterable[Comparison]) -> list[str]:
    """Return one sentence about each comparison that has not ended; several are named by id."""
    shown = list(comparisons)
    subjects = (
        ["This comparison"] if len(shown) == 1 else [f"Comparison {each.id}" for each in shown]
    )
    return [f"{name} {each.predicate}." for name, each in zip(subjects, shown) if each.predicate]
