"""Why one scheme is faster than another, in a sentence, where the curvature explains it.

It compares the fastest scheme with the slowest whose run its own curvature explains: what the
directions at the start predict of it has to agree with what was recorded.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from normbench import names
from normbench.results.answer.race import Race, races
from normbench.results.compare import directions
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import excess_left
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.results.words.reasons import Found
from normbench.results.words.sentences import PARTS, Said, paragraph, said

STRETCHED = 10.0  # the ratio of condition numbers from which on one is called the cause
VALLEY = 1e3  # the condition number from which on the cost is a narrow valley
ROUND = 10.0  # and that up to which it is round
DISTINCT = 2.0  # the ratio from which on a condition number is lower than another


class Curved(NamedTuple):
    """A scheme in a race: its row, the iterations that it took, its condition number.

    bounded: whether the condition number is only known to be larger.
    """

    label: str
    row: Mapping[Any, Any]
    iterations: float
    condition: float
    bounded: bool

    @property
    def number(self) -> str:
        """The condition number for reading: 140, 2.4e12, more than 1e30."""
        short = float(f"{self.condition:.2g}")
        text = (
            f"{short:g}" if short < 1e4 else f"{short:.2g}".replace("e+0", "e").replace("e+", "e")
        )
        return f"more than {text}" if self.bounded else text

    @property
    def raw(self) -> bool:
        """Whether the scheme leaves the points as they are."""
        recorded = Found.of_row(self.row)
        changes = (names.CENTRES, names.SHIFTS, names.SCALES, names.ROTATES)
        return recorded.says(names.AFFINE) and not any(map(recorded.says, changes))


def cause(sweep: Sweep, experiment: str) -> str:
    """Return why the fastest scheme of an experiment is faster; empty where that is not known."""
    every = races(sweep, experiment)
    return paragraph(of_race(merged(sweep), experiment, every[0])) if len(every) == 1 else ""


def of_race(sweep: Sweep, experiment: str, race: Race) -> list[Said]:
    """Return the cause, and that it is not the whole one where a rounder cost is slower."""
    rows = sweep.of_role(names.SCHEME, experiment)
    every = _curved(race, as_rows(rows))
    if len(every) < 2 or race.counted or race.budget is None or race.least == 0:
        return []
    fast = min(every, key=lambda one: (_order(one), one.condition))
    arrays = sweep.arrays(rows, names.KEPT)
    slower = sorted((one for one in every if _order(one) > _order(fast)), key=_order, reverse=True)
    for slow in slower:
        parts = arrays.get(slow.label, {})
        if slow.condition < STRETCHED * fast.condition or not _explained(race, slow, parts):
            continue
        rounder = [one for one in slower if DISTINCT * one.condition <= fast.condition]
        return [_why(race, slow, fast), *_rounder(rounder)]
    return []


def _curved(race: Race, rows: list[dict[Any, Any]]) -> list[Curved]:
    """Return the schemes of a race whose condition number speaks of their descent."""
    every = []
    for row in rows:
        label = row["label"]
        if label not in race.iterations or label in race.lost or label in race.open:
            continue
        if label in race.uncertain and np.isinf(race.iterations[label]):
            continue
        known, limit = (number_in(row, m.column) for m in (names.CONDITION, names.CONDITION_LIMIT))
        if row.get(names.PLAIN.column) == "false" or np.isnan([known, limit]).all():
            continue
        bounded = bool(np.isnan(known))
        condition = limit if bounded else known
        every.append(Curved(label, row, float(race.iterations[label]), condition, bounded))
    return every


def _order(one: Curved) -> tuple[float, float]:
    arrived = np.isfinite(one.iterations)
    return one.iterations, 0.0 if arrived else excess_left(one.row, one.row)


def _explained(race: Race, slow: Curved, parts: Mapping[str, Any]) -> bool:
    """Return whether the directions at the start predict what was recorded of a slow scheme.

    Of one that meets the target, that it takes at least half of its iterations and is near it
    then; of another, that it does not, and what is left.
    """
    if directions.CURVATURE not in parts:
        return False
    target, count = float(race.target), slow.iterations
    if np.isfinite(count):
        step = float(race.steps[slow.label])
        late = directions.predicted(parts, step, count / 2) > target
        return late and directions.predicted(parts, step, count) <= target + directions.EXPLAINED
    step, left = number_in(slow.row, names.STEP_TAG.column), excess_left(slow.row, slow.row)
    predicted = directions.predicted(parts, step, race.budget or 0)
    return predicted > target and abs(predicted - min(left, 1.0)) <= directions.EXPLAINED


def _why(race: Race, slow: Curved, fast: Curved) -> Said:
    shape = "valley" if slow.condition >= VALLEY else "stretched"
    shape_of_slow = f"{'raw' if slow.raw else 'scheme'}_{shape}"
    is_round = fast.condition <= ROUND
    shape_of_fast = f"{'raw' if fast.raw else 'scheme'}_{'round' if is_round else 'rounder'}"
    contraction = (fast.condition - 1) / (fast.condition + 1)  # an iteration, by the best step size
    suits = is_round and contraction ** (race.budget or 0) <= np.exp(-1)
    return said(
        "why",
        slow=PARTS[shape_of_slow].format(label=slow.label),
        most=slow.number,
        fast=PARTS[shape_of_fast].format(label=fast.label),
        least=fast.number,
        suits=PARTS["suits"] if suits else "",
    )


def _rounder(rounder: list[Curved]) -> list[Said]:
    if not rounder:
        return []
    one = min(rounder, key=lambda each: each.condition)
    return [said("rounder", scheme=one.label, least=one.number)]
