"""The progress of a job: a bar on a terminal, occasional plain lines in a pipe."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Self

from normbench.results.safe import clean

QUIET_SECONDS = 10.0  # between two lines in a pipe
CHECK_SECONDS = 1.0  # between two checks whether a phase has taken long enough for a line
MINUTE, HOUR = 60, 3600
ITERATION = "iteration"
SHADOWS_PHASE = "descends again what rounding may decide"  # after the last iteration
# The seconds that a pace is measured over, the seconds between two marks of it, and the fewest
# marks that are kept.
PACE_SECONDS, MARK_SECONDS, MIN_MARKS = 20.0, 0.2, 3
REFRESHES = 2  # of a bar, per second


class Pace:
    """The present pace of iterations, from the marks of the last `PACE_SECONDS`.

    The mean over all iterations would mislead: the first one may be slow, and ended runs take no
    more time. A mark is an iteration with the time at which it was done.
    """

    def __init__(self, iteration: int, seconds: float, warm: bool) -> None:
        """Begin at an iteration.

        Args:
            iteration: The number of the iteration.
            seconds: The time, by `time.monotonic`.
            warm: Whether the interval up to the next mark is typical of later ones; otherwise it is
                left out.
        """
        self._marks = deque([(iteration, seconds)])
        self._warm = warm

    def mark(self, iteration: int, seconds: float) -> None:
        """Record that an iteration is done at a time.

        Args:
            iteration: The number of the iteration.
            seconds: The time, by `time.monotonic`.
        """
        if not self._warm:  # the slow first interval is left out: the pace begins at its end
            self._marks.clear()
            self._warm = True
        # The last mark is replaced while it is close to the one before it.
        if len(self._marks) > MIN_MARKS and seconds - self._marks[-2][1] < MARK_SECONDS:
            self._marks.pop()
        self._marks.append((iteration, seconds))
        # The first mark is dropped once the second one alone covers the time of a pace.
        while len(self._marks) > MIN_MARKS and seconds - self._marks[1][1] > PACE_SECONDS:
            self._marks.popleft()

    def seconds_left(self, iterations: int) -> float | None:
        """Return the estimated seconds until all iterations are done; None where unknown.

        Args:
            iterations: The number of the last iteration.
        """
        (first, first_seconds), (last, last_seconds) = self._marks[0], self._marks[-1]
        if last <= first:  # a single mark
            return None
        return (last_seconds - first_seconds) / (last - first) * (iterations - last)


class Progress:
    """Reports one job on the standard error; call it with each finished iteration.

    Args:
        title: What the lines begin with.
        bar: Whether a terminal shows a bar instead of lines.
        unit: What is counted, where it is not iterations.
        total_seconds_left: Returns the seconds left of the whole command, None as long as they are
            unknown.
    """

    def __init__(
        self,
        title: str,
        bar: bool = True,
        unit: str = ITERATION,
        total_seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.title, self.unit = clean.line(title), unit
        self.wants_bar = bar
        self.total_seconds_left = total_seconds_left
        self.stopped = Event()
        self.current_phase: tuple[str, float] | None = None  # what the job does, and since when
        self.started = self.last_line_time = time.monotonic()
        self.iterations = 0
        self.pace: Pace | None = None  # from the first iteration on
        self.bar: Any = None  # the bar on the terminal, once there is one
        self.last_refresh = 0.0  # when the bar was changed last

    def phase(self, doing: str) -> None:
        """Set what the job does from now on; a line reports it where it takes long.

        Args:
            doing: A phrase whose subject is the job, such as `reads the data`.
        """
        if self.current_phase is None:  # the first phase starts the thread that watches all
            Thread(target=self._watch, daemon=True).start()
        self.current_phase = doing, time.monotonic()
        self._show(doing=doing)

    def begin(self, iterations: int) -> None:
        """Start counting iterations, of which an earlier command may have done some.

        Args:
            iterations: The number of the last iteration.
        """
        self.iterations = iterations
        # The pace of iterations begins at the first reported one, that of other units here.
        self.pace = None if self.unit == ITERATION else Pace(0, time.monotonic(), warm=True)
        if self.wants_bar and sys.stderr.isatty():
            self.bar = _bar(self.title, iterations)
            self.bar.start()

    def __call__(self, iteration: int) -> None:
        """Report a finished iteration.

        Args:
            iteration: The number of the iteration. The first reported one is 0, or that from which
                a descent resumes.
        """
        seconds = time.monotonic()
        # After the last iteration only the shadows are left: runs repeated from a start perturbed
        # by rounding. A job that reports phases says so where they take long.
        if self.current_phase and iteration == self.iterations:
            self.current_phase = SHADOWS_PHASE, seconds
        if self.pace is None:
            self.pace = Pace(iteration, seconds, warm=False)
            if iteration:
                self._say(f"goes on from iteration {iteration} of {self.iterations}")
        else:
            self.pace.mark(iteration, seconds)
        # On a terminal the bar is refreshed, always at the first and at the last iteration. In a
        # pipe a line is printed where some time has passed, and there is something to say.
        if self.bar is not None and (
            seconds - self.last_refresh >= 1 / REFRESHES or iteration in (0, self.iterations)
        ):
            self.last_refresh = seconds
            self._show(completed=iteration, doing=", ".join(self._facts()))
        elif (
            self.bar is None
            and seconds - self.last_line_time >= QUIET_SECONDS
            and (facts := self._facts())
        ):
            self.last_line_time = seconds
            done_iterations = f"{self.unit} {iteration} of {self.iterations}"
            self._say(f"{', '.join([done_iterations, *facts])}{self._of_all()}")

    def _facts(self) -> list[str]:
        """Return what is known beside the iteration: the time left."""
        assert self.pace is not None
        seconds_left = self.pace.seconds_left(self.iterations)
        return [] if seconds_left is None else [f"{format_duration(seconds_left)} left"]

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
        """Stop reporting, and print the outcome of the job with the seconds that it took."""
        self.stop()
        self._say(f"{outcome} ({time.monotonic() - self.started:.1f} s)")

    def _watch(self) -> None:
        """Print the present phase whenever nothing was printed for `QUIET_SECONDS`, until stopped.

        It runs in a thread of its own, and prints nothing while there is a bar.
        """
        while not self.stopped.wait(CHECK_SECONDS):
            seconds = time.monotonic()
            if (
                self.bar is None
                and self.current_phase
                and seconds - max(self.last_line_time, self.current_phase[1]) >= QUIET_SECONDS
            ):
                self.last_line_time = seconds
                doing, since = self.current_phase
                self._say(f"{doing}, {format_duration(seconds - since)} so far{self._of_all()}")

    def _of_all(self) -> str:
        """Return the time left of the whole command, where that is known."""
        seconds_left = self.total_seconds_left()
        return "" if seconds_left is None else f"; {format_duration(seconds_left)} left in all"

    def _show(self, **fields: Any) -> None:
        """Change what the bar shows, where there is one."""
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], **fields)

    def _say(self, text: str) -> None:
        """Print a line about the job to the error output."""
        line = f"{self.title}: {text}"
        if self.bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self.bar.console.print(clean.line(line), soft_wrap=True)


def _bar(title: str, iterations: int) -> Any:
    """Return rich's bar for the terminal, not started: title, bar, count, and what else is known.

    Args:
        title: The text before the bar.
        iterations: The count at which the bar is full.
    """
    from rich import progress
    from rich.table import Column

    from normbench.results.report import screen

    name = Column(no_wrap=True, overflow="ellipsis", ratio=2)
    facts_column = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    bar = progress.Progress(
        progress.TextColumn("{task.description}", markup=False, table_column=name),
        progress.BarColumn(bar_width=12),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[doing]}", markup=False, table_column=facts_column),
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
def report_phase(title: str, doing: str) -> Iterator[None]:
    """Print a line about the content of the context whenever it takes long.

    Args:
        title: The beginning of the line that is printed.
        doing: What is done, such as `reads the points`.
    """
    progress = Progress(title, bar=False)
    progress.phase(doing)
    try:
        yield
    finally:
        progress.stop()


def estimate_seconds_left(started: float, jobs_done: int, jobs: int) -> Callable[[], float | None]:
    """Return a function that estimates the seconds left of a sweep; to be called as a job starts.

    This job and all later ones are taken to last as long as the finished ones did on average.

    Args:
        started: When the sweep started, by `time.time`.
        jobs_done: The number of jobs that were finished before this one starts.
        jobs: The number of jobs of the sweep.

    Returns:
        A function of no arguments. It returns None where no job was finished before, and in a sweep
        of one job.
    """
    job_started = time.time()

    def seconds_left() -> float | None:
        """Return the seconds left if the remaining jobs take the mean of the finished ones."""
        if not jobs_done or jobs < 2:
            return None
        seconds_per_job = (job_started - started) / jobs_done
        # Of this job and all later ones, when this job started.
        remaining_seconds = seconds_per_job * (jobs - jobs_done)
        return max(0.0, remaining_seconds - (time.time() - job_started))

    return seconds_left


def format_duration(seconds: float) -> str:
    """Return a time as text: `45 s`, `12 min`, `3 h 5 min`."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    hours, minutes = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours} h {minutes} min"
