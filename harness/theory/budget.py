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
    """The work of a task, counted.

    Attributes:
        passes: Passes over the points, each of the work of one run's gradient.
        memory: The bytes of memory needed at once.
    """

    passes: float = 0.0
    memory: float = 0.0


def allowance(theory_setting: str, passes: int, points: int, weights: int) -> Work:
    """Return the work that theory may take: half of the passes of the descent.

    At least the work of a tenth of a second is allowed. The memory is a quarter of the machine's,
    or of the setting `memory` where that is less.

    Args:
        theory_setting: The setting `theory`: `full` for no limit; any other value is limited.
        passes: The passes of the descent: its iterations, summed over all runs.
        points: The number of points P.
        weights: The number of weights of one model, C (N + 1).

    Returns:
        Passes over the points, and bytes; both infinite for `full`.
    """
    if theory_setting == "full":
        return Work(float("inf"), float("inf"))
    memory = THEORY_MEMORY_SHARE * min(machine_memory(), memory_limit())
    products_of_pass = 4 * points * weights  # two products with the points
    return Work(max(passes / 2, FREE_PRODUCTS / products_of_pass), memory)


class Budget:
    """The remaining work and memory of theory; each task asks before it starts.

    Attributes:
        passes_left: The passes that may still be made. Each task reduces them.
        memory: The bytes that a task may need at once. They are free again after each task.
        too_long: The names of the tasks that were skipped for their passes.
        too_large: The names of the tasks that were skipped for their memory.
    """

    def __init__(self, allowed: Work) -> None:
        self.passes_left, self.memory = allowed
        self.too_long: list[str] = []
        self.too_large: list[str] = []

    def allows(self, work: Work) -> bool:
        """Return whether the budget suffices for work, without subtracting or noting anything."""
        return work.memory <= self.memory and work.passes <= self.passes_left

    def affords(self, task: str, work: Work) -> bool:
        """Subtract the work of a task, if the budget suffices; otherwise note it as skipped.

        Args:
            task: The name of the task in the note on skipped work.
            work: The passes of the task over the points, and its bytes.

        Returns:
            Whether the task may start.
        """
        # A task that lacks both is noted once, for its memory.
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
