"""What theory may cost: work and memory, counted and never timed.

Nothing may take longer than the descent that it explains. Work is counted in passes over the
points, each of one run's gradient, so that two runs of one sweep decide alike; what is skipped
says so, and `theory=full` asks for it.
"""

from typing import NamedTuple

from normbench.datasets.values import machine_memory, memory_limit

SMALL = 1e8  # multiplications, some tenth of a second: so many are always allowed
SHARE = 1 / 4  # of the machine's memory
SKIPPED = "skipped: more work than the descent; theory=full asks for it"
TOO_MUCH_MEMORY = "skipped: more than a quarter of the memory; theory=full asks for it"


class Work(NamedTuple):
    """Passes over the points, and the bytes that are held at once."""

    passes: float = 0.0
    memory: float = 0.0


def allowance(asked: str, made: int, points: int, weights: int) -> Work:
    """Return what theory may take: half of the passes that the descent makes.

    At least what a tenth of a second does; at most a quarter of the machine's memory, or of the
    setting `memory`. No limit with `theory=full`. weights: of one model, C (N + 1).
    """
    if asked == "full":
        return Work(float("inf"), float("inf"))
    memory = SHARE * min(machine_memory(), memory_limit())
    return Work(max(made / 2, SMALL / (4 * points * weights)), memory)


class Budget:
    """The work that is left to do; it is asked before each piece of work."""

    def __init__(self, allowed: Work) -> None:
        self.left, self.memory = allowed
        self.dear: list[str] = []
        self.large: list[str] = []

    def allows(self, work: Work) -> bool:
        """Return whether there is enough left; nothing is taken, nothing remembered."""
        return work.memory <= self.memory and work.passes <= self.left

    def affords(self, what: str, work: Work) -> bool:
        """Return whether there is enough left, and take it; remember what there was not."""
        if work.memory > self.memory:
            self.large.append(what)
            return False
        if work.passes > self.left:
            self.dear.append(what)
            return False
        self.left -= work.passes
        return True

    @property
    def note(self) -> str:
        """What was skipped, and how to ask for it; empty where nothing was."""
        kinds = ((self.dear, SKIPPED), (self.large, TOO_MUCH_MEMORY))
        return "; ".join(f"{', '.join(what)} {why}" for what, why in kinds if what)
