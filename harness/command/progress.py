"""How far a job is: a bar on a terminal, plain lines now and then in a pipe."""

import sys
import time
from typing import Any

from normbench.results import clean

QUIET_SECONDS = 10.0  # between two lines in a pipe


class Progress:
    """Tells of one job on the standard error; call it with the iteration that is done.

    unit: what is counted, where it is not iterations.
    """

    def __init__(self, title: str, bar: bool = True, unit: str = "iteration") -> None:
        self.title, self.wanted, self.unit = clean.line(title), bar, unit
        self.started = self.told = time.monotonic()
        self.iterations = 0
        self.bar: Any = None

    def begin(self, iterations: int) -> None:
        """Start counting iterations."""
        self.iterations = iterations
        if self.wanted and sys.stderr.isatty():
            from tqdm import tqdm

            # Past the cleaning, which would show the bar's own marks; the title is clean.
            screen = getattr(sys.stderr, "behind", sys.stderr)
            self.bar = tqdm(
                total=iterations, desc=self.title, file=screen, leave=False, unit=self.unit
            )

    def __call__(self, iteration: int) -> None:
        """Tell that an iteration is done."""
        if self.bar is not None:
            self.bar.update(iteration - self.bar.n)
            return
        now = time.monotonic()
        if now - self.told < QUIET_SECONDS or not iteration:
            return
        self.told = now
        left = (now - self.started) / iteration * (self.iterations - iteration)
        self._say(f"{self.unit} {iteration} of {self.iterations}, {left:.0f} s left")

    def end(self, word: str) -> None:
        """Say what became of the job."""
        if self.bar is not None:
            self.bar.close()
        self._say(f"{word} ({time.monotonic() - self.started:.1f} s)")

    def _say(self, words: str) -> None:
        print(f"{self.title}: {words}", file=sys.stderr, flush=True)
