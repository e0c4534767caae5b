"""The question that a comparison asks, and its answer in sentences."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer.ranking import (
    COST,
    COUNT,
    MOST,
    by_problem,
    compared_by,
    finite,
    labels_of,
    listed_few,
    ranked,
)
from normbench.results.compare import problems
from normbench.results.compare.merging import REPEATS, every_job, merged, whole
from normbench.results.compare.reached import (
    counts,
    excess_left,
    start_excess,
    step_size,
    thresholds_that_hold,
)
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import PARTS, Said, listed, paragraph, said

FEWEST = "fewest misclassified points"


def question(sweep: Sweep, experiment: str) -> str:
    """Return what one experiment of a sweep asks."""
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    labels = [label for rows in by_problem(schemes) for label in rows["label"]]
    which = listed_few(list(dict.fromkeys(labels)))
    if problems.without_descent(schemes).all():
        make = "does" if len(schemes) == 1 else "do"
        return f"What {make} {which} make of the points of {experiment}?"
    within = problems.budget(schemes)
    within = f" {within}" if within else ""
    if counts(schemes).any():
        if len(schemes) == 1:
            return f"How few points of {experiment} does {which} leave misclassified{within}?"
        return f"Which of {which} leaves the fewest points of {experiment} misclassified{within}?"
    if len(schemes) == 1:
        return f"How far does {which} lower the cost of {experiment}{within}?"
    return f"Which of {which} lowers the cost of {experiment} furthest{within}?"


def sentence(sweep: Sweep, experiment: str) -> str:
    """Return the answer: every scheme, from the lowest cost up, and how many jobs failed.

    Or from the fewest misclassified points up, where the costs tell nothing of each other.

    Schemes whose costs are equal to rounding stand together. Splits, seeds and starts are one
    value a scheme, their median. Over several problems it is how often a scheme is lowest, and
    its mean rank. Where a penalty makes each scheme minimize another function, schemes are told
    by what is left of their own excess, and not ranked by cost.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    groups = by_problem(schemes)
    if len(groups) > 1:
        return _counted(groups, sweep, experiment)
    known = finite(schemes)
    if known.empty:
        return _nothing(sweep, experiment)
    by, ranks = compared_by(known), ranked(known)
    after = problems.budget(schemes).replace("in ", "After ", 1) or "At the end"
    whose = "its own" if _own_least(known) else "the"
    places = "; ".join(_place(rows, by, whose) for rows in ranks)
    name = f"by_{by}" if len(ranks) > 1 else "one_place"
    answer = said(name, after=after, places=places, medians=medians(known))
    return paragraph([answer, *_lost(sweep, experiment)])


def remarks(sweep: Sweep, experiment: str) -> list[str]:
    """Return what is said of runs that diverged, that rounding decides, and of failed jobs."""
    return [one.text for one in _lost(sweep, experiment)]


def overall(sweep: Sweep) -> str:
    """Return the answer over all experiments of a sweep."""
    if len(sweep.experiments) == 1:
        return sentence(sweep, sweep.experiments[0])
    schemes = merged(sweep)
    groups = [by_problem(schemes.of_role(names.SCHEME, name)) for name in sweep.experiments]
    return _counted([rows for group in groups for rows in group], sweep)


def _counted(groups: Sequence[pd.DataFrame], sweep: Sweep, experiment: str | None = None) -> str:
    """Return how often each scheme has the lowest cost, and its mean rank, over problems."""
    labels = list(dict.fromkeys(label for rows in groups for label in rows["label"]))
    wins = dict.fromkeys(labels, 0)
    ranks: dict[str, list[float]] = {label: [] for label in labels}
    compared = 0
    for rows in groups:
        known = finite(rows)
        if known.empty:
            continue
        compared += 1
        equals = [labels_of(equal) for equal in ranked(known)]
        for label in equals[0]:
            wins[label] += 1
        above = 0
        for equal in (*equals, {*rows["label"]} - {*known["label"]}):
            for label in equal:
                ranks[label].append(above + (len(equal) + 1) / 2)
            above += len(equal)
    if not compared:
        return _nothing(sweep, experiment)
    means = {label: round(float(np.mean(own)), 9) for label, own in ranks.items() if own}
    order = sorted(means, key=lambda label: (means[label], -wins[label]))
    parts = [
        f"{' = '.join(alike)} {won} ({mean:.3g})"
        for (won, mean), alike in groupby(order, key=lambda label: (wins[label], means[label]))
    ]
    by = counts(pd.concat(groups))
    lowest = "lowest cost" if not by.any() else FEWEST if by.all() else f"lowest cost or {FEWEST}"
    which = sweep.which_step()
    told = {"lowest": lowest, "wins": ", ".join(parts), "which": which}
    answer = said("counted", problems=compared, **told)
    return paragraph([answer, *_lost(sweep, experiment)])


def medians(known: pd.DataFrame) -> str:
    """Return what the costs are medians of: splits, seeds, starts; nothing of a single run."""
    over = set(known.get(REPEATS, pd.Series(dtype=str)).dropna()) - {""}
    starts = max((problems.starts_of(row) for row in as_rows(known)), default=1)
    words = [*sorted(over), *([f"{starts} starts"] if starts > 1 else [])]
    return f" (medians of {' x '.join(words)})" if words else ""


def _nothing(sweep: Sweep, experiment: str | None) -> str:
    """Return why there is no answer."""
    none = problems.without_descent(sweep.of_role(names.SCHEME, experiment)).all()
    why = said("no_descent" if none else "no_cost")
    return paragraph([why, *_lost(sweep, experiment)])


def _all_above(sweep: Sweep, experiment: str | None) -> list[Said]:
    """Say which step sizes to try where all that were tried are above 2/L, on every split."""
    jobs = thresholds_that_hold(every_job(sweep, experiment))
    sizes = [step_size(step) for step in as_rows(whole(sweep).of_role(names.STEP, experiment))]
    if names.THRESHOLD.column not in jobs or not sizes or jobs["experiment"].nunique() > 1:
        return []
    limits = jobs.groupby("label", sort=False)[names.THRESHOLD.column].max().astype(float)
    limits = limits[limits < min(sizes)]
    if limits.empty:
        return []
    powers = np.log10(limits)
    decades = {"first": int(np.floor(powers.min())) - 2, "last": int(np.ceil(powers.max())) + 1}
    return [said("grid_above", schemes=listed([str(label) for label in limits.index]), **decades)]


def _lost(sweep: Sweep, experiment: str | None) -> list[Said]:
    """Return which schemes diverged at all step sizes on all splits, and how many jobs failed."""
    jobs = every_job(sweep, experiment)
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    diverged = jobs["verdict"] == names.DIVERGED
    count = int(diverged.sum())
    on_all_splits = diverged.groupby(jobs["label"], sort=False).transform("all")
    labels = list(dict.fromkeys(jobs.loc[on_all_splits, "label"]))
    several = jobs["experiment"].nunique() > 1 or len(labels) > MOST
    named = not several and (diverged == on_all_splits).all()
    who = listed(labels) if named else f"{count} of {len(jobs)} jobs"
    failed = int((jobs["verdict"] == names.FAILED).sum())
    found = [said("all_diverged", who=who)] if count else []
    found += _all_above(sweep, experiment) if count and finite(schemes).empty else []
    found += [said("some_failed", failed=failed, jobs=len(jobs))] if failed else []
    return found + _by_rounding(whole(sweep), experiment)


def _by_rounding(sweep: Sweep, experiment: str | None) -> list[Said]:
    """Say how many step sizes rounding decides, and whether that was looked for."""
    steps = sweep.of_role(names.STEP, experiment)
    schemes = sweep.of_role(names.SCHEME, experiment)
    count = int((steps["verdict"] == names.BY_ROUNDING).sum())
    one = {"are": "is", "them": "it"} if count == 1 else {"are": "are", "them": "them"}
    found = [said("by_rounding", count=count, runs=len(steps), **one)] if count else []
    unseen = schemes.get(names.setting("shadows"), pd.Series(dtype=str)) == "False"
    return found + ([said("no_shadows")] if unseen.any() else [])


def _own_least(known: pd.DataFrame) -> bool:
    """Return whether a scheme has a least cost of its own, as one that drops directions has."""
    rows = as_rows(known)
    solved = [row for row in rows if row.get(names.MINIMUM_REACHED.column) == "true"]
    least = [row[names.MINIMUM.column] for row in solved]
    return len(least) > 1 and max(least) - min(least) > 1e-3 * max(map(start_excess, solved))


def _place(rows: Sequence[Mapping[Any, Any]], by: str, whose: str) -> str:
    """Return equal schemes, what they are ranked by, their step sizes, verdicts and the rest.

    whose: excess it is of which a share is left.
    """
    still = rows[0].get(names.setting("iterations")) == "0"
    sizes = [] if still else list(dict.fromkeys(row.get(names.STEP_TAG.column) for row in rows))
    told = [size for size in sizes if isinstance(size, str)]
    at = f" at step size{'s' if len(told) > 1 else ''} {listed(told)}" if told else ""
    verdicts = "no step" if still else listed(list(dict.fromkeys(row["verdict"] for row in rows)))
    left = excess_left(rows[0], rows[0])
    solved = rows[0].get(names.MINIMUM_REACHED.column) == "true" and np.isfinite(left)
    about = {"labels": " = ".join(labels_of(rows)), "at": at, "told": verdicts}
    if by == "count":
        return PARTS[by].format(**about, count=rows[0][COUNT])
    if by == "excess":
        rest = (
            f"{share(left)} of its excess cost{_of(rows[0])} left"
            if solved
            else "of an unknown excess cost"
        )
        return PARTS[by].format(**about, left=rest)
    if solved:
        about["told"] = f"{verdicts}, {share(left)} of {whose} excess cost{_of(rows[0])} left"
    cost, told_apart = rows[0][COST], names.TIED * start_excess(rows[0])
    name = "low" if abs(cost) < told_apart else by
    return PARTS[name].format(**about, cost=told_apart if name == "low" else cost)


def _of(scheme: Mapping[Any, Any]) -> str:
    """Say whose excess is the whole, where runs do not start at zero weights."""
    start = scheme.get(names.setting("start"), "zeros")
    return "" if start in ("zeros", "None", None) else " of zero weights"


def share(left: float) -> str:
    """Return a share of the excess in percent; what no two costs are told apart by is so called."""
    if abs(left) < names.TIED:
        return f"under {100 * names.TIED:.4f}%"
    percent = 100 * left
    return f"{percent:.2g}%" if percent < 100 else f"{percent:.0f}%"
