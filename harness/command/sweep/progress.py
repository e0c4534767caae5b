"""How far a job is: a bar on a terminal, plain lines now and then in a pipe."""

import sys
import time
from collections.abc import Callable
from typing import Any

from normbench.datasets import Dataset
from normbench.datasets.on_disk.points import Points
from normbench.datasets.values import gigabytes
from normbench.results.safe import clean

QUIET_SECONDS = 10.0  # between two lines in a pipe
MINUTE, HOUR = 60, 3600
ITERATION = "iteration"


class Progress:
    """Tells of one job on the standard error; call it with the iteration that is done.

    unit: what is counted, where it is not iterations.
    """

    def __init__(self, title: str, bar: bool = True, unit: str = ITERATION) -> None:
        self.title, self.wanted, self.unit = clean.line(title), bar, unit
        self.started = self.told = time.monotonic()
        self.iterations = 0
        self.first: tuple[int, float] | None = None  # the iteration first done, and when
        self.bar: Any = None
        self.read: Callable[[], str] | None = None
        self.first_done: Callable[[], None] = lambda: None  # called at the first iteration

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
        self._say(f"{self.unit} {iteration} of {self.iterations}, {read}{duration(left)} left")

    def end(self, word: str) -> None:
        """Say what became of the job."""
        if self.bar is not None:
            self.bar.close()
        self._say(f"{word} ({time.monotonic() - self.started:.1f} s)")

    def _go_on(self, iteration: int) -> None:
        """Say that an earlier command made the iterations before this one."""
        if self.bar is not None:
            self.bar.initial = self.bar.n = iteration  # its speed is this command's
            self.bar.clear()
        self._say(f"goes on from iteration {iteration} of {self.iterations}")

    def _say(self, words: str) -> None:
        print(f"{self.title}: {words}", file=sys.stderr, flush=True)


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
        return f"{gigabytes(size)} read at {gigabytes(rate)}/s"

    return said if parts else None


def duration(seconds: float) -> str:
    """Return a time as one says it: `45 s`, `12 min`, `3 h 5 min`."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    hours, rest = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours} h {rest} min"
