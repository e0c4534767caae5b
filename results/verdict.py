"""The question that a comparison asks, and its answer in a sentence."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench.results import comparisons, names, tables
from normbench.results.runs import Sweep

COST = names.FINAL_COST.column
SAME = 1e-6  # relative: costs nearer than that are called the same
MOST = 4  # so many names are read in a sentence
# Settings under which costs are of other points, another cost or another start: under any other,
# such as the optimizer's, the schemes' costs are compared.
PROBLEM = ("dataset.", "cost.", "start", "seed")


def question(sweep: Sweep, experiment: str) -> str:
    """Return what one experiment of a sweep asks."""
    schemes = sweep.of_role(names.SCHEME, experiment)
    labels = [label for rows in _problems(schemes) for label in rows["label"]]
    which = _which(list(dict.fromkeys(labels)))
    if comparisons.without_descent(schemes).all():
        make = "does" if len(schemes) == 1 else "do"
        return f"What {make} {which} make of the points of {experiment}?"
    optimizer = _one(schemes, names.OPTIMIZER.column, "gradient_descent").replace("_", " ")
    iterations = _one(schemes, names.setting("iterations"), "")
    parts = [f"{iterations} iterations" if iterations else "", optimizer]
    within = " of ".join(part for part in parts if part)
    within = f" in {within}" if within else ""
    if len(schemes) == 1:
        return f"How far does {which} lower the cost of {experiment}{within}?"
    return f"Which of {which} lowers the cost of {experiment} furthest{within}?"


def sentence(sweep: Sweep, experiment: str) -> str:
    """Return the answer: who reaches the lowest cost, who the highest, and how many failed.

    Over several problems, such as splits, it is how often; over several starts it is of their
    median, with a word where the lead over the next is not sure.
    """
    schemes = sweep.of_role(names.SCHEME, experiment)
    problems = _problems(schemes)
    if len(problems) > 1:
        return _counted(problems, schemes)
    known = _finite(schemes)
    if known.empty:
        return _nothing(schemes)
    best, worst = known.iloc[0], known.iloc[-1]
    equal = known[_lowest(known)].sort_index()
    reach = "reaches" if len(equal) == 1 else "reach"
    said = f"{listed(list(equal['label']))} {reach} the lowest cost, {_at(best)}"
    said += _over_starts(sweep, known)
    if len(equal) < len(known):
        said += f"; {worst['label']} ends highest, with {_at(worst)}"
    return f"{said}.{_lost(schemes)}"


def overall(sweep: Sweep) -> str:
    """Return the answer over all experiments of a sweep: who has the lowest cost, how often."""
    if len(sweep.experiments) == 1:
        return sentence(sweep, sweep.experiments[0])
    groups = [_problems(sweep.of_role(names.SCHEME, name)) for name in sweep.experiments]
    return _counted([rows for group in groups for rows in group], sweep.of_role(names.SCHEME))


def _counted(problems: Sequence[pd.DataFrame], schemes: pd.DataFrame) -> str:
    """Return who has the lowest cost on most problems."""
    wins: dict[str, int] = {}
    compared = 0
    for rows in problems:
        known = _finite(rows)
        if known.empty:
            continue
        compared += 1
        for name in known[_lowest(known)]["label"]:
            wins[name] = wins.get(name, 0) + 1
    if not wins:
        return _nothing(schemes)
    most = max(wins.values())
    best = [name for name, count in wins.items() if count == most]
    reach = "reaches" if len(best) == 1 else "reach"
    starts = max(comparisons.starts_of(row) for row in schemes.to_dict("records"))
    medians = f", by the median of {starts} starts" if starts > 1 else ""
    return (
        f"{listed(best)} {reach} the lowest cost on {most} of {compared} problems, "
        f"each scheme at its {tables.step_word(schemes)} step size{medians}.{_lost(schemes)}"
    )


def _problems(schemes: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the scheme runs of one experiment by the problem that their costs are of.

    Where there are several, their labels are without what makes the problem.
    """
    labels = schemes["label"].copy()
    places: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for place, made in zip(schemes.index, comparisons.problems(schemes)):
        own = tuple((name, text) for name, text in made.items() if name.startswith(PROBLEM))
        places.setdefault(own, []).append(place)
        for name, text in own:
            labels[place] = labels[place].replace(f", {name}={text}", "")
    return [schemes.loc[rows].assign(label=labels[rows]) for rows in places.values()]


def _over_starts(sweep: Sweep, known: pd.DataFrame) -> str:
    """Return how sure several starts make the lead of the first over the next; of one nothing."""
    starts = comparisons.starts_of(known.iloc[0])
    if starts == 1:
        return ""
    medians = f", the median of {starts} starts"
    after = known[~_lowest(known)]
    if after.empty:
        return medians
    first, second = (_by_start(sweep, row, starts) for row in (known.iloc[0], after.iloc[0]))
    with np.errstate(invalid="ignore"):
        lead = np.nan_to_num(second - first, nan=0.0, posinf=np.inf, neginf=-np.inf)
    sure = comparisons.interval(lead)[0] > 0
    return medians if sure else f"{medians}, too few for a sure lead over {after.iloc[0]['label']}"


def _by_start(sweep: Sweep, scheme: Any, starts: int) -> comparisons.Array:
    """Return each start's last cost `(starts,)` under a scheme, infinite where it diverged."""
    steps = sweep.of_role(names.STEP, scheme["experiment"])
    shown = steps[(steps["parent"] == scheme["run_id"]) & (steps.get(names.BEST.column) == "true")]
    found = sweep.series(shown["run_id"].iloc[0], names.START_COST.key) if len(shown) else {}
    return np.array([found.get(start, np.inf) for start in range(starts)])


def _nothing(schemes: pd.DataFrame) -> str:
    """Return why there is no answer."""
    if comparisons.without_descent(schemes).all():
        return (
            f"No descent was made: the figures show the points under each scheme.{_lost(schemes)}"
        )
    return f"No scheme has a cost to compare.{_lost(schemes)}"


def _lost(schemes: pd.DataFrame) -> str:
    """Return which schemes no step size of the grid suited, and how many jobs failed."""
    diverged = list(dict.fromkeys(schemes.loc[schemes["verdict"] == names.DIVERGED, "label"]))
    several = schemes["experiment"].nunique() > 1 or len(diverged) > MOST
    count = int((schemes["verdict"] == names.DIVERGED).sum())
    who = f"{count} of {len(schemes)} jobs" if several else listed(diverged)
    failed = int((schemes["verdict"] == names.FAILED).sum())
    said = f" {who} diverged at every step size." if count else ""
    return said + (f" {failed} of {len(schemes)} jobs failed." if failed else "")


def _lowest(known: pd.DataFrame) -> pd.Series:
    """Return which costs are the lowest, or the same as it."""
    least = known[COST].min()
    return known[COST] <= least + SAME * abs(least)


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _which(labels: Sequence[str]) -> str:
    return listed(labels) if len(labels) <= MOST else f"{len(labels)} schemes"


def _finite(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the schemes that have a final cost, the lowest first."""
    if COST not in schemes:
        return schemes.iloc[:0]
    kept = schemes[schemes[COST].notna() & ~schemes["verdict"].isin([names.FAILED, names.DIVERGED])]
    return kept.sort_values(COST, kind="stable")


def _at(row: Any) -> str:
    step = row.get(names.STEP_TAG.column)
    size = f" at step size {step}" if isinstance(step, str) else ""
    return f"{row[COST]:.4g}{size} ({row['verdict']})"


def _one(rows: pd.DataFrame, column: str, default: str) -> str:
    """Return the value that all rows share; nothing for several, the default for none."""
    found = set(rows[column].dropna()) if column in rows else set()
    if len(found) > 1:
        return ""
    return str(found.pop()) if found else default
