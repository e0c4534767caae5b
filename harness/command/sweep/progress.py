"""How far a job is: a bar on a terminal, plain lines now and then in a pipe."""

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
LOOK = 1.0  # seconds: between two looks whether a phase has taken long enough for a line
MINUTE, HOUR = 60, 3600
ITERATION = "iteration"
AGAIN = "descends again what rounding may decide"  # after the last iteration


class Progress:
    """Tells of one job on the standard error; call it with the iteration that is done.

    unit: what is counted, where it is not iterations. whole: gives the seconds that are left of
    the whole command, None as long as nobody knows.
    """

    def __init__(
        self,
        title: str,
        bar: bool = True,
        unit: str = ITERATION,
        whole: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.title, self.wanted, self.unit, self.whole = clean.line(title), bar, unit, whole
        self.stopped = Event()
        self.doing: tuple[str, float] | None = None  # what the job does, and since when
        self.started = self.told = time.monotonic()
        self.iterations = 0
        self.first: tuple[int, float] | None = None  # the iteration first done, and when
        self.bar: Any = None
        self.read: Callable[[], str] | None = None
        self.first_done: Callable[[], None] = lambda: None  # called at the first iteration

    def phase(self, doing: str) -> None:
        """Tell what the job does from now on; where that takes long, a line says so."""
        if self.doing is None:
            Thread(target=self._watch, daemon=True).start()
        self.doing = doing, time.monotonic()
        if self.bar is not None:
            self.bar.set_postfix_str(doing)

    def begin(self, iterations: int, read: Callable[[], str] | None = None) -> None:
        """Start counting iterations, of which an earlier command may have done some.

        read: says how much of a file was read since.
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
        """Tell that an iteration is done; the first that is told need not be the start."""
        now = time.monotonic()
        if self.doing and iteration == self.iterations:
            self.doing = AGAIN, now
        if self.first is None:
            self.first = iteration, now
            self.first_done()
            if iteration:
                self._go_on(iteration)
        if self.bar is not None:
            if self.read:
                self.bar.set_postfix_str(self.read(), refresh=False)
            self.bar.update(iteration - self.bar.n)
            return
        done = iteration - self.first[0]
        if now - self.told < QUIET_SECONDS or not done:
            return
        self.told = now
        left = (now - self.first[1]) / done * (self.iterations - iteration)
        read = f"{self.read()}, " if self.read else ""
        self._say(
            f"{self.unit} {iteration} of {self.iterations}, {read}{duration(left)} left"
            f"{self._of_all()}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Tell no more of what the job does."""
        self.stopped.set()
        if self.bar is not None:
            self.bar.close()

    def end(self, word: str) -> None:
        """Say what became of the job."""
        self.stop()
        self._say(f"{word} ({time.monotonic() - self.started:.1f} s)")

    def _watch(self) -> None:
        """Say what the job does whenever nothing was said for long."""
        while not self.stopped.wait(LOOK):
            now = time.monotonic()
            if self.bar is not None:
                self.bar.refresh()
            elif self.doing and now - max(self.told, self.doing[1]) >= QUIET_SECONDS:
                self.told = now
                doing, since = self.doing
                self._say(f"{doing}, {duration(now - since)} so far{self._of_all()}")

    def _of_all(self) -> str:
        """Return how long the whole command will take, where that is known."""
        left = self.whole()
        return "" if left is None else f"; {duration(left)} left in all"

    def _go_on(self, iteration: int) -> None:
        """Say that an earlier command made the iterations before this one."""
        if self.bar is not None:
            self.bar.initial = self.bar.n = iteration  # its speed is this command's
            self.bar.clear()
        self._say(f"goes on from iteration {iteration} of {self.iterations}")

    def _say(self, words: str) -> None:
        print(f"{self.title}: {words}", file=sys.stderr, flush=True)


@contextmanager
def telling(title: str, doing: str) -> Iterator[None]:
    """Tell of something that may take long, as long as the context lasts."""
    progress = Progress(title, bar=False)
    progress.phase(doing)
    try:
        yield
    finally:
        progress.stop()


def left_of(started: float, number: int, jobs: int) -> Callable[[], float | None]:
    """Return what gives the seconds that are left of a sweep, by the jobs that are done.

    started: of the sweep, by `time.time`. number: of the job at work, from 0.
    """
    begun = time.time()

    def left() -> float | None:
        if not number or jobs < 2:
            return None
        whole = (begun - started) / number * (jobs - number)
        return max(0.0, whole - (time.time() - begun))

    return left


def reading(dataset: Dataset) -> Callable[[], str] | None:
    """Return what says how much of a data set's files was read since now, and how fast.

    None where all points are in memory.
    """
    parts = [part.source for part in (dataset.x, dataset.x_test) if isinstance(part, Points)]
    sources = {id(source): source for source in parts}.values()  # both parts may be of one file

    def read() -> int:
        return sum(source.bytes_read for source in sources)

    started, before = time.monotonic(), read()

    def said() -> str:
        size = read() - before
        rate = size / max(1e-9, time.monotonic() - started)
        return f"{format_gigabytes(size)} read at {format_gigabytes(rate)}/s"

    return said if parts else None


def duration(seconds: float) -> str:
    """Return a time as one says it: `45 s`, `12 min`, `3 h 5 min`."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    hours, rest = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours} h {rest} min"
