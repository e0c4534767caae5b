"""What is true of the jobs of a comparison.

Found again from the jobs' histories, independent of the code that says sentences.
"""

import json
import re

import numpy as np

from tests import door
from tests.claims.claims import UNRANKED, Witness, near

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
GOALS = ("1e-1", "1e-2", "1e-3")


class Jury:
    """What is true of the schemes of one comparison, found again."""

    def __init__(self, made):
        self.see = {label: Witness(job, outcome) for label, job, outcome in made}
        self.outcomes = {label: outcome for label, _, outcome in made}
        self.again = {}
        self.best = {
            label: outcome.steps[outcome.best]
            for label, outcome in self.outcomes.items()
            if outcome.best is not None
        }
        first = next(iter(self.see.values()))
        self.counted = first.traits.positively_homogeneous
        self.points = len(first.y)
        self.tests = len(first.job.dataset.y_test)

    def values(self, label, step):
        key = "train/misclassifications" if self.counted else "train/cost"
        return step.histories[key]

    def least(self, label):
        return 0.0 if self.counted else self.outcomes[label].findings.metrics["theory/minimum"]

    def start(self, label):
        return self.points if self.counted else self.see[label].at_zero()

    def end(self, label):
        return self.values(label, self.best[label])[-1]

    def left(self, label):
        return (self.end(label) - self.least(label)) / (self.start(label) - self.least(label))

    def goal(self, label, target):
        return self.least(label) + float(target) * (self.start(label) - self.least(label))

    def count(self, label, step, goal):
        """The iterations that a step size takes to a goal, held to the end.

        Where rounding decides its end: if all of its shadows take as many.
        """
        values = self.values(label, step)
        above = np.flatnonzero(values > goal)
        held = above[-1] + 1 if len(above) else 0
        if held == len(values) or step.verdict == UNRANKED[1]:
            return np.inf
        return held if step.verdict != UNRANKED[0] or self.sure(label, step, goal, held) else np.inf

    def sure(self, label, step, goal, held):
        """Whether all shadows of a run that rounding decides take as many iterations."""
        kept = self.outcomes[label].arrays["descent"]
        if step.step_size not in kept["step_sizes"]:  # a finer one, of which no shadow is kept
            return False
        number = list(kept["step_sizes"]).index(step.step_size)
        counts = kept["shadows_reached"][number, 0].T  # by target, each shadow's
        own = [abs(self.goal(label, target) - goal) <= 1e-5 * abs(goal) for target in GOALS]
        return any(mine and np.all(part == held) for mine, part in zip(own, counts))

    def tag(self, label):
        return json.loads(self.outcomes[label].findings.tags.get("refined", "{}"))

    def owns(self, label, target):
        """Whether a target is the scheme's own, and no other scheme's."""
        lowest = min(self.goal(one, target) for one in self.see)
        return self.goal(label, target) <= lowest + 1e-6 * abs(lowest)

    def refined(self, label, target):
        """Whether finer step sizes were tried for a target, or for any where it is another's."""
        tag = self.tag(label)
        if not self.owns(label, target):
            return bool(tag.get("numbers"))
        return target in tag.get("targets", ())

    def finer(self, label, numbers):
        """Step sizes of the lattice, descended to their end, by their number."""
        known = self.again.setdefault(label, {})
        new = [number for number in numbers if number not in known]
        sizes = tuple(10.0 ** (number / 16) for number in new)
        if new:
            known |= dict(zip(new, door.descend_again(self.see[label].job, sizes).steps))
        return {number: known[number] for number in numbers}

    def fewest(self, label, target, more=0.0):
        """The iterations to a target at the step size that takes fewest; infinite for never.

        Where finer step sizes were tried: the least median of three neighbours, around the best of
        every fourth, within a decade of the best of the grid. Of those, the ones whose larger
        neighbours were kept: a run that parts from its shadow before it arrives is not relied on.
        """
        goal = min(self.goal(one, target) for one in self.see) * (1 + more)
        outcome = self.outcomes[label]
        grid = {
            round(16 * np.log10(step.step_size), 9): self.count(label, step, goal)
            for step in outcome.steps
        }
        fewest = min(grid.values(), default=np.inf)
        if not self.refined(label, target):
            return fewest
        if not self.owns(label, target):  # counted in what was recorded
            finer = self.finer(label, self.tag(label)["numbers"])
            return min(fewest, *(self.count(label, step, goal) for step in finer.values()))
        first = min(grid, key=lambda n: (grid[n], n))
        if np.isinf(fewest):
            first = 16 * np.log10(self.best[label].step_size)

        def counts(numbers):
            finer = self.finer(label, [n for n in numbers if n not in grid])
            return grid | {n: self.count(label, step, goal) for n, step in finer.items()}

        near_it = [n for n in range(-400, 401, 4) if abs(n - first) <= 16 + 1e-9]
        coarse = counts(near_it)
        tried = {*self.tag(label)["numbers"], *grid}
        centres = [n for n in near_it if tried.issuperset(range(n, n + 4))] or near_it
        centre = min(centres, key=lambda n: (coarse[n], n))
        if np.isinf(coarse[centre]):
            return np.inf
        around = range(centre - 3, centre + 4)
        fine = counts(around)
        window = [np.inf, *(fine[number] for number in around), np.inf]
        return min(sorted(window[n : n + 3])[1] for n in range(7))

    def takes(self, label, target, said):
        """Whether a scheme takes so many iterations, up to rounding of the target."""
        counts = [self.fewest(label, target, more) for more in (-2e-6, 0, 2e-6)]
        return (np.inf if said.startswith("not") else float(said.split()[0])) in counts

    def test_history(self, label):
        kind = "cost" if self.see[label].job.dataset.classes == 0 else "misclassifications"
        return self.best[label].histories[f"test/{kind}"]

    def test_end(self, label):
        return self.test_history(label)[-1]

    def on_test(self, label, said):
        """Whether what is said of a scheme's test points is so."""
        (number,) = re.findall(NUMBER, said)
        if "cost" in said:
            return near(number, self.test_end(label), 1e-3)
        return abs(float(number) / 100 - self.test_end(label) / self.tests) < 5.1e-4
