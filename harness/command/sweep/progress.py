"""The progress of a job: a bar on a terminal, occasional plain lines in a pipe."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Self

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import Points
from normbench.datasets.values import format_gigabytes
from normbench.results.safe import clean

QUIET_SECONDS = 10.0  # between two lines in a pipe
CHECK_SECONDS = 1.0  # seconds: between two looks whether a phase has taken long enough for a line
MINUTE, HOUR = 60, 3600
ITERATION = "iteration"
AGAIN = "descends again what rounding may decide"  # after the last iteration
RECENT, APART, FEWEST = 20.0, 0.2, 3  # seconds that a pace is of, and between its marks; marks
REFRESHES = 2  # of a bar, in a second


class Pace:
    """How fast iterations pass now: the first may take as long as many, and runs that end none."""

    def __init__(self, iteration: int, now: float, warm: bool) -> None:
        """Begin at an iteration; warm: whether the first interval tells of those to come."""
        self._marks = deque([(iteration, now)])
        self._warm = warm

    def mark(self, iteration: int, now: float) -> None:
        """Take note that an iteration is done."""
        if not self._warm:
            self._marks.clear()
            self._warm = True
        if len(self._marks) > FEWEST and now - self._marks[-2][1] < APART:
            self._marks.pop()
        self._marks.append((iteration, now))
        while len(self._marks) > FEWEST and now - self._marks[1][1] > RECENT:
            self._marks.popleft()

    def seconds_left(self, iterations: int) -> float | None:
        """Return the seconds that the iterations up to the last one take; None for not known."""
        (first, began), (last, now) = self._marks[0], self._marks[-1]
        return (now - began) / (last - first) * (iterations - last) if last > first else None


class Progress:
    """Reports one job on the standard error; call it with each finished iteration.

    unit: what is counted, where it is not iterations. total_seconds_left: returns the seconds left
    of the whole command, None as long as they are unknown.
    """

    def __init__(
        self,
        title: str,
        bar: bool = True,
        unit: str = ITERATION,
        total_seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.title, self.wanted, self.unit, self.total_seconds_left = (
            clean.line(title),
            bar,
            unit,
            total_seconds_left,
        )
        self.stopped = Event()
        self.doing: tuple[str, float] | None = None  # what the job does, and since when
        self.started = self.last_line_time = time.monotonic()
        self.iterations = 0
        self.pace: Pace | None = None  # from the first iteration on
        self.bar: Any = None
        self.shown = 0.0  # when the bar was changed last
        self.read: Callable[[], str] | None = None
        self.first_done: Callable[[], None] = lambda: None  # called at the first iteration

    def phase(self, doing: str) -> None:
        """Set what the job does from now on; a line reports it where it takes long."""
        if self.doing is None:
            Thread(target=self._watch, daemon=True).start()
        self.doing = doing, time.monotonic()
        self._show(doing=doing)

    def begin(self, iterations: int, read: Callable[[], str] | None = None) -> None:
        """Start counting iterations, of which an earlier command may have done some.

        read: returns how much of a file was read since.
        """
        self.iterations, self.read = iterations, read
        self.pace = None if self.unit == ITERATION else Pace(0, time.monotonic(), warm=True)
        if self.wanted and sys.stderr.isatty():
            self.bar = _bar(self.title, iterations)
            self.bar.start()

    def __call__(self, iteration: int) -> None:
        """Report a finished iteration; the first reported one need not be the start."""
        time_now = time.monotonic()
        if self.doing and iteration == self.iterations:
            self.doing = AGAIN, now
        if self.pace is None:
            self.pace = Pace(iteration, now, warm=False)
            self.first_done()
            if iteration:
                self._say(f"goes on from iteration {iteration} of {self.iterations}")
        else:
            self.pace.mark(iteration, now)
        if self.bar is not None and (
            now - self.shown >= 1 / REFRESHES or iteration in (0, self.iterations)
        ):
            self.shown = now
            self._show(completed=iteration, doing=", ".join(self._facts()))
        elif self.bar is None and now - self.told >= QUIET_SECONDS and (facts := self._facts()):
            self.told = now
            done = f"{self.unit} {iteration} of {self.iterations}"
            self._say(f"{', '.join([done, *facts])}{self._of_all()}")

    def _facts(self) -> list[str]:
        """Return what is known beside the iteration: how much was read, and how long it takes."""
        assert self.pace is not None
        left = self.pace.seconds_left(self.iterations)
        known = [self.read()] if self.read else []
        return known + ([] if left is None else [f"{duration(left)} left"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop reporting."""
        self.stopped.set()
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def end(self, outcome: str) -> None:
        """Print the outcome of the job."""
        self.stop()
        self._say(f"{outcome} ({time.monotonic() - self.started:.1f} s)")

    def _watch(self) -> None:
        """Say what the job does whenever nothing was said for long."""
        while not self.stopped.wait(LOOK):
            now = time.monotonic()
            if (
                self.bar is None
                and self.doing
                and now - max(self.told, self.doing[1]) >= QUIET_SECONDS
            ):
                self.told = now
                doing, since = self.doing
                self._say(f"{doing}, {format_duration(time_now - since)} so far{self._of_all()}")

    def _of_all(self) -> str:
        """Return the time left of the whole command, where that is known."""
        seconds_left = self.total_seconds_left()
        return "" if seconds_left is None else f"; {format_duration(seconds_left)} left in all"

    def _show(self, **fields: Any) -> None:
        """Change what the bar shows, where there is one."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], **fields)

    def _say(self, words: str) -> None:
        line = f"{self.title}: {words}"
        if self.bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self.bar.console.print(clean.line(line), soft_wrap=True)


def _bar(title: str, iterations: int) -> Any:
    """Return a bar on the terminal: what is done, how much of it, and what else is known."""
    from rich import progress
    from rich.table import Column

    from normbench.results.report import screen

    name = Column(no_wrap=True, overflow="ellipsis", ratio=2)
    more = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    bar = progress.Progress(
        progress.TextColumn("{task.description}", markup=False, table_column=name),
        progress.BarColumn(bar_width=12),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[doing]}", markup=False, table_column=more),
        console=screen.console(sys.stderr),
        refresh_per_second=REFRESHES,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )
    bar.add_task(title, total=iterations, doing="")
    return bar


@contextmanager
def telling_phase(title: str, doing: str) -> Iterator[None]:
    """Report something that may take long, as long as the context lasts."""
    progress = Progress(title, bar=False)
    progress.phase(doing)
    try:
        yield
    finally:
        progress.stop()


def estimate_seconds_left(started: float, number: int, jobs: int) -> Callable[[], float | None]:
    """Return a function of the seconds left of a sweep, estimated from the finished jobs.

    started: of the sweep, by `time.time`. number: of the current job, from 0.
    """
    job_started = time.time()

    def seconds_left() -> float | None:
        if not number or jobs < 2:
            return None
        job_seconds = (job_started - started) / number * (jobs - number)
        return max(0.0, job_seconds - (time.time() - job_started))

    return seconds_left


def describe_reading(dataset: Dataset) -> Callable[[], str] | None:
    """Return a function that describes how much of a data set's files was read since, and how fast.

    None where all points are in memory.
    """
    sources_of_dataset = [
        points.source for points in (dataset.x, dataset.x_test) if isinstance(points, Points)
    ]
    sources = {
        id(source): source for source in sources_of_dataset
    }.values()  # both parts may be of one file

    def read() -> int:
        return sum(source.bytes_read for source in sources)

    started, before = time.monotonic(), read()

    def describe() -> str:
        size = read() - before
        rate = size / max(1e-9, time.monotonic() - started)
        return f"{format_gigabytes(size)} read at {format_gigabytes(rate)}/s"

    return describe if sources_of_dataset else None


def format_duration(seconds: float) -> str:
    """Return a time as text: `45 s`, `12 min`, `3 h 5 min`."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    hours, minutes = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours} h {minutes} min"
