"""Explain in a sentence why one scheme is faster than another, where the curvature explains it.

The fastest scheme is compared with the slowest scheme whose descent its own curvature explains:
the descent predicted from the curvature at the start has to agree with the recorded one.
"""

from collections.abc import Mapping
from math import isclose
from typing import Any, NamedTuple

import numpy as np

from normbench import names
from normbench.results.answer.race import Race, races
from normbench.results.answer.ranking import names_or_count
from normbench.results.compare import directions, evidence
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import excess_left, start_ratio
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.results.words.reasons import EQUAL_TOLERANCE, SchemeRecord
from normbench.results.words.sentences import CLAUSES, Sentence, agree, make_sentence, paragraph

STRETCH_RATIO = 10.0  # least ratio of condition numbers that is reported as the cause
VALLEY_CONDITION = 1e3  # least condition number of a cost that is called a narrow valley
ROUND_CONDITION = 10.0  # largest condition number of a cost that is called round
DISTINCT_RATIO = 2.0  # least ratio of condition numbers of which one is called lower


class RacedScheme(NamedTuple):
    """A scheme in a race: its scheme run, its iterations, and its condition number.

    bounded: whether `condition` is only a lower bound of the condition number.
    """

    label: str
    row: Mapping[Any, Any]
    iterations: float
    condition: float
    bounded: bool

    @property
    def number(self) -> str:
        """The condition number as text, such as `140`, `2.4e12` or `more than 1e30`."""
        # Two digits: in full below 1e4, else as `2.4e12`, without the plus and zero of `2.4e+09`.
        short = float(f"{self.condition:.2g}")
        text = (
            f"{short:g}" if short < 1e4 else f"{short:.2g}".replace("e+0", "e").replace("e+", "e")
        )
        return f"more than {text}" if self.bounded else text

    @property
    def raw(self) -> bool:
        """Whether the scheme leaves the points as they are.

        The tags of its changes are recorded for affine schemes only, so any other is not raw.
        """
        recorded = SchemeRecord.from_row(self.row)
        changes = (names.CENTRES, names.SHIFTS, names.SCALES, names.ROTATES)
        return recorded.is_true(names.AFFINE) and not any(map(recorded.is_true, changes))


def cause(sweep: Sweep, experiment: str) -> str:
    """Return why the fastest scheme of an experiment is faster.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        A paragraph; empty if the cause is unknown, or if the experiment has no race or several.
    """
    experiment_races = races(sweep, experiment)
    if len(experiment_races) != 1:
        return ""
    return paragraph(explain_race(merged(sweep), experiment, experiment_races[0]))


def explain_race(sweep: Sweep, experiment: str, race: Race) -> list[Sentence]:
    """Return the cause, with a reservation where a scheme with a rounder cost is slower.

    The fastest scheme is compared with the slowest one that has a much larger condition number and
    whose recorded descent the curvature explains.

    Args:
        sweep: The sweep, merged over its splits and seeds.
        experiment: The name of the experiment.
        race: The race of the experiment's only problem.

    Returns:
        The sentences; none where curvature does not explain the difference, where fewer than two
        schemes can be compared, and where the race has no budget that all jobs share.
    """
    if race.ends is not None:  # the target is a share of an excess that is not known
        return []
    rows = sweep.of_role(names.SCHEME, experiment)
    raced_schemes = _raced_schemes(race, as_rows(rows))
    # Curvature explains a cost, not a count, and only descents of one known number of iterations.
    # A target that is met at the start (0 iterations) says nothing of the descent.
    if (
        len(raced_schemes) < 2
        or race.by_count
        or race.budget is None
        or race.fewest_iterations == 0
    ):
        return []
    places = _places(raced_schemes)
    # Of equally fast schemes, the one of the lowest condition number; of equal ones the first.
    fastest = _roundest([scheme for scheme in raced_schemes if places[scheme.label] == 0])[0]
    arrays = sweep.arrays(rows, names.DESCENT_ARRAYS)
    slower_schemes = sorted(
        (scheme for scheme in raced_schemes if places[scheme.label] > 0),
        key=lambda scheme: places[scheme.label],
        reverse=True,
    )
    for slower_scheme in slower_schemes:  # the slowest first
        window_arrays = arrays.get(slower_scheme.label, {})  # empty where none were recorded
        if slower_scheme.condition < STRETCH_RATIO * fastest.condition or not _is_explained(
            race, slower_scheme, window_arrays
        ):
            continue
        # Slower than the fastest although rounder: these contradict the explanation.
        rounder_schemes = [
            scheme
            for scheme in raced_schemes
            if places[scheme.label] > 0 and DISTINCT_RATIO * scheme.condition <= fastest.condition
        ]
        return [_cause_sentence(race, slower_scheme, fastest), *_rounder_sentences(rounder_schemes)]
    return []


def _raced_schemes(race: Race, rows: list[dict[Any, Any]]) -> list[RacedScheme]:
    """Return the schemes of a race whose condition number describes their descent.

    A scheme is left out if all its jobs failed or diverged, if splits or rounding leave its place
    in the race undecided, if it was not run by plain gradient descent, or if its condition number
    is unknown.

    Args:
        race: The race.
        rows: The scheme runs of the race's experiment.
    """
    raced_schemes = []
    for row in rows:
        label = row["label"]
        if (
            label not in race.iterations
            or label in race.lost_verdicts
            or label in race.undecided_schemes
        ):
            continue
        # Rounding decides whether the scheme meets the target.
        if label in race.uncertain_schemes and np.isinf(race.iterations[label]):
            continue
        condition_number, limit = (
            number_in(row, metric.column) for metric in (names.CONDITION, names.CONDITION_LIMIT)
        )
        if row.get(names.PLAIN.column) == "false" or np.isnan([condition_number, limit]).all():
            continue
        bounded = bool(np.isnan(condition_number))  # only the lower bound `limit` is known
        condition = limit if bounded else condition_number
        raced_schemes.append(
            RacedScheme(label, row, float(race.iterations[label]), condition, bounded)
        )
    return raced_schemes


def _places(raced_schemes: list[RacedScheme]) -> dict[str, int]:
    """Return the places of schemes in a race by label, from 0 for the fastest; ties share one.

    They are ordered by the iterations to the target. The schemes that do not meet it come last, by
    the excess that they leave, which ties up to `names.TIED`.

    Args:
        raced_schemes: The schemes.
    """
    counts = evidence.tie_ranks(np.array([scheme.iterations for scheme in raced_schemes]), 0.0)
    # A scheme run has the final cost of its best step size, so it is both arguments.
    excess = [
        0.0 if np.isfinite(scheme.iterations) else excess_left(scheme.row, scheme.row)
        for scheme in raced_schemes
    ]
    ranks = evidence.tie_ranks(np.array(excess), names.TIED)
    keys = list(zip(counts.tolist(), ranks.tolist()))
    order = sorted(set(keys))
    return {scheme.label: order.index(key) for scheme, key in zip(raced_schemes, keys)}


def _roundest(raced_schemes: list[RacedScheme]) -> list[RacedScheme]:
    """Return the schemes of the lowest condition number, equal ones in the order of the sweep."""
    lowest = min(scheme.condition for scheme in raced_schemes)
    return [
        scheme
        for scheme in raced_schemes
        if isclose(scheme.condition, lowest, rel_tol=EQUAL_TOLERANCE)
    ]


def _is_explained(race: Race, slower_scheme: RacedScheme, arrays: Mapping[str, Any]) -> bool:
    """Return whether the curvature at the start predicts the recorded descent of a slow scheme.

    For a scheme that meets the target, it must predict that half of the iterations are too few and
    that the excess is near the target after all of them. For a scheme that does not, it must
    predict that the target is not met, and the remaining excess.

    Args:
        race: The race.
        slower_scheme: The scheme.
        arrays: The arrays of its scheme run, for `directions.predicted_excess`.

    Returns:
        False also where the curvatures at the start are not recorded.
    """
    if directions.LAYER_CURVATURE not in arrays:
        return False
    # The prediction is a share of the excess of the run's own start, the target of zero weights'.
    ratio = start_ratio(slower_scheme.row, arrays)
    target, count = float(race.target) / ratio, slower_scheme.iterations
    if np.isfinite(count):  # the scheme meets the target
        step = float(race.step_sizes[slower_scheme.label])
        exceeds_at_half = directions.predicted_excess(arrays, step, count / 2) > target
        return (
            exceeds_at_half
            and directions.predicted_excess(arrays, step, count)
            <= target + directions.EXPLANATION_TOLERANCE
        )
    step, remaining_excess = (
        number_in(slower_scheme.row, names.STEP_TAG.column),
        excess_left(slower_scheme.row, slower_scheme.row) / ratio,
    )
    predicted_share = directions.predicted_excess(arrays, step, race.budget or 0)
    # The prediction is at most 1, so a recorded excess above the start's counts as 1.
    return (
        predicted_share > target
        and abs(predicted_share - min(remaining_excess, 1.0)) <= directions.EXPLANATION_TOLERANCE
    )


def _cause_sentence(race: Race, slower_scheme: RacedScheme, fastest: RacedScheme) -> Sentence:
    """Return the sentence that compares the cost's shape under a slow and the fastest scheme.

    Args:
        race: The race, whose budget of iterations decides whether one step size suits all.
        slower_scheme: The slow scheme, of a much larger condition number.
        fastest: The fastest scheme.
    """
    # Keys of `CLAUSES`, such as `raw_valley` and `scheme_round`.
    shape = "valley" if slower_scheme.condition >= VALLEY_CONDITION else "stretched"
    shape_of_slow = f"{'raw' if slower_scheme.raw else 'scheme'}_{shape}"
    is_round = fastest.condition <= ROUND_CONDITION
    shape_of_fast = f"{'raw' if fastest.raw else 'scheme'}_{'round' if is_round else 'rounder'}"
    # The factor per iteration of the slowest direction, at the step size that is best for this
    # condition number. The step size suits every direction if the budget shrinks that one by 1 / e.
    contraction = (fastest.condition - 1) / (fastest.condition + 1)
    suits_all = is_round and contraction ** (race.budget or 0) <= np.exp(-1)
    return make_sentence(
        "why",
        slow=CLAUSES[shape_of_slow].format(label=slower_scheme.label),
        most=slower_scheme.number,
        fast=CLAUSES[shape_of_fast].format(label=fastest.label),
        least=fastest.number,
        suits=CLAUSES["suits"] if suits_all else "",
    )


def _rounder_sentences(rounder_schemes: list[RacedScheme]) -> list[Sentence]:
    """Return the sentence on the slower schemes of the lowest condition number, if there are any.

    Args:
        rounder_schemes: The schemes that are slower than the fastest, although their condition
            numbers are lower.
    """
    if not rounder_schemes:
        return []
    roundest = _roundest(rounder_schemes)
    labels = names_or_count([scheme.label for scheme in roundest])
    verbs = agree(len(roundest), "make", "are")
    return [make_sentence("rounder", schemes=labels, least=roundest[0].number, **verbs)]
