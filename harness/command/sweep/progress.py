"""The progress of a job: a bar on a terminal, occasional plain lines in a pipe."""

import sys
import time
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
SHADOWS_PHASE = "descends again what rounding may decide"  # after the last iteration


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
        self.first: tuple[int, float] | None = None  # the iteration first done, and when
        self.bar: Any = None
        self.read: Callable[[], str] | None = None
        self.first_done: Callable[[], None] = lambda: None  # called at the first iteration

    def phase(self, doing: str) -> None:
        """Set what the job does from now on; a line reports it where it takes long."""
        if self.doing is None:
            Thread(target=self._watch, daemon=True).start()
        self.doing = doing, time.monotonic()
        if self.bar is not None:
            self.bar.set_postfix_str(doing)

    def begin(self, iterations: int, read: Callable[[], str] | None = None) -> None:
        """Start counting iterations, of which an earlier command may have done some.

        read: returns how much of a file was read since.
        """
        self.iterations, self.read = iterations, read
        self.first = None if self.unit == ITERATION else (0, time.monotonic())
        if self.wanted and sys.stderr.isatty():
            from tqdm import tqdm

            # Past the cleaning, which would show the bar's own marks; the title is clean.
            screen = getattr(sys.stderr, "behind", sys.stderr)
            self.bar = tqdm(
                total=iterations, desc=self.title, file=screen, leave=False, unit=self.unit
            )

    def __call__(self, iteration: int) -> None:
        """Report a finished iteration; the first reported one need not be the start."""
        time_now = time.monotonic()
        if self.doing and iteration == self.iterations:
            self.doing = SHADOWS_PHASE, time_now
        if self.first is None:
            self.first = iteration, time_now
            self.first_done()
            if iteration:
                self._go_on(iteration)
        if self.bar is not None:
            if self.read:
                self.bar.set_postfix_str(self.read(), refresh=False)
            self.bar.update(iteration - self.bar.n)
            return
        done_iterations = iteration - self.first[0]
        if time_now - self.last_line_time < QUIET_SECONDS or not done_iterations:
            return
        self.last_line_time = time_now
        seconds_left = (time_now - self.first[1]) / done_iterations * (self.iterations - iteration)
        read = f"{self.read()}, " if self.read else ""
        self._say(
            f"{self.unit} {iteration} of {self.iterations}, {read}{format_duration(seconds_left)} "
            f"left{self._of_all()}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop reporting."""
        self.stopped.set()
        if self.bar is not None:
            self.bar.close()

    def end(self, outcome: str) -> None:
        """Print the outcome of the job."""
        self.stop()
        self._say(f"{outcome} ({time.monotonic() - self.started:.1f} s)")

    def _watch(self) -> None:
        """Print what the job does whenever nothing was printed for long."""
        while not self.stopped.wait(CHECK_SECONDS):
            time_now = time.monotonic()
            if self.bar is not None:
                self.bar.refresh()
            elif self.doing and time_now - max(self.last_line_time, self.doing[1]) >= QUIET_SECONDS:
                self.last_line_time = time_now
                doing, since = self.doing
                self._say(f"{doing}, {format_duration(time_now - since)} so far{self._of_all()}")

    def _of_all(self) -> str:
        """Return the time left of the whole command, where that is known."""
        seconds_left = self.total_seconds_left()
        return "" if seconds_left is None else f"; {format_duration(seconds_left)} left in all"

    def _go_on(self, iteration: int) -> None:
        """Print that an earlier command made the iterations before this one."""
        if self.bar is not None:
            self.bar.initial = self.bar.n = iteration  # its speed is this command's
            self.bar.clear()
        self._say(f"goes on from iteration {iteration} of {self.iterations}")

    def _say(self, text: str) -> None:
        print(f"{self.title}: {text}", file=sys.stderr, flush=True)


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
