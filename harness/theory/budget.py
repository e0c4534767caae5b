"""Budget the work and memory of theory, counted and never timed.

Theory may not take longer than the descent that it explains. Work is counted in passes over the
points, each of one run's gradient, so that two runs of one sweep decide equally; skipped work is
reported, and `theory=full` asks for it.
"""

from typing import NamedTuple

from normbench.datasets.values import machine_memory, memory_limit

FREE_PRODUCTS = 1e8  # multiplications, some tenth of a second: so many are always allowed
THEORY_MEMORY_SHARE = 1 / 4  # of the machine's memory
SKIPPED = "skipped: more work than the descent; theory=full asks for it"
TOO_MUCH_MEMORY = "skipped: more than a quarter of the memory; theory=full asks for it"


class Work(NamedTuple):
    """Passes over the points, and the bytes of memory needed at once."""

    passes: float = 0.0
    memory: float = 0.0


def allowance(theory_setting: str, passes: int, points: int, weights: int) -> Work:
    """Return the work that theory may take: half of the passes of the descent.

    At least the work of a tenth of a second; at most a quarter of the machine's memory, or of the
    setting `memory`.

    Args:
        theory_setting: `auto`, or `full` for no limit.
        passes: Of the descent, runs counted.
        points: The number of points P.
        weights: Of one model, C (N + 1).

    Returns:
        Passes over the points, and bytes.
    """
    if theory_setting == "full":
        return Work(float("inf"), float("inf"))
    memory = THEORY_MEMORY_SHARE * min(machine_memory(), memory_limit())
    return Work(max(passes / 2, FREE_PRODUCTS / (4 * points * weights)), memory)


class Budget:
    """The remaining work and memory; each task asks before it starts."""

    def __init__(self, allowed: Work) -> None:
        self.passes_left, self.memory = allowed
        self.too_long: list[str] = []
        self.too_large: list[str] = []

    def allows(self, work: Work) -> bool:
        """Return whether the rest suffices, without subtracting or recording anything."""
        return work.memory <= self.memory and work.passes <= self.passes_left

    def affords(self, task: str, work: Work) -> bool:
        """Subtract the work of a task, if the rest suffices; otherwise record the task as skipped.

        Args:
            task: Its name in the note on skipped work.
            work: Its passes over the points, and its bytes.

        Returns:
            Whether the task may start.
        """
        if work.memory > self.memory:
            self.too_large.append(task)
            return False
        if work.passes > self.passes_left:
            self.too_long.append(task)
            return False
        self.passes_left -= work.passes
        return True

    @property
    def note(self) -> str:
        """What was skipped, and how to ask for it; empty where nothing was skipped."""
        skipped = ((self.too_long, SKIPPED), (self.too_large, TOO_MUCH_MEMORY))
        return "; ".join(f"{', '.join(tasks)} {reason}" for tasks, reason in skipped if tasks)
