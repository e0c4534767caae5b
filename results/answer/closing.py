"""The question that a comparison asks, and its answer in sentences."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import comparisons, evidence, heldout, problems
from normbench.results.compare.merging import REPEATS, merged, whole
from normbench.results.compare.reached import (
    counts,
    excess_left,
    reached,
    start_excess,
    step_size,
    thresholds_that_hold,
)
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import PARTS, Said, listed, paragraph, said
from normbench.settings import Role, has_role
from normbench.verdicts.refinement import AROUND, PER_DECADE

COST = names.FINAL_COST.column
COUNT = names.FINAL_MISCLASSIFICATIONS.column
FEWEST = "fewest misclassified points"
FEW = 3  # step sizes: of fewer, each is an end
ON_GRID = (
    " on this grid"  # of a number for which no step sizes between those of the grid were tried
)
MOST = 4  # so many names are read in a sentence
# Under another setting, such as the optimizer's, the costs of schemes are compared.
PROBLEM = (Role.PROBLEM, Role.REPETITION)
# The targets by which the fastest descent is chosen, the first that is met.
ASKED = ("1e-2", "1e-1")


def question(sweep: Sweep, experiment: str) -> str:
    """Return what one experiment of a sweep asks."""
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    labels = [label for rows in _problems(schemes) for label in rows["label"]]
    which = _which(list(dict.fromkeys(labels)))
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
    groups = _problems(schemes)
    if len(groups) > 1:
        return _counted(groups, sweep, experiment)
    known = _finite(schemes)
    if known.empty:
        return _nothing(sweep, experiment)
    by, ranked = _by(known), _ranked(known)
    after = problems.budget(schemes).replace("in ", "After ", 1) or "At the end"
    whose = "its own" if _own_least(known) else "the"
    places = "; ".join(_place(rows, by, whose) for rows in ranked)
    name = f"by_{by}" if len(ranked) > 1 else "one_place"
    answer = said(name, after=after, places=places, medians=_medians(known))
    return paragraph([answer, *_lost(sweep, experiment)])


def overall(sweep: Sweep) -> str:
    """Return the answer over all experiments of a sweep."""
    if len(sweep.experiments) == 1:
        return sentence(sweep, sweep.experiments[0])
    schemes = merged(sweep)
    groups = [_problems(schemes.of_role(names.SCHEME, name)) for name in sweep.experiments]
    return _counted([rows for group in groups for rows in group], sweep)


def answers(sweep: Sweep, experiment: str, splits: pd.DataFrame) -> list[str]:
    """Return which scheme is best for the data, in sentences: two answers, and what they hide.

    splits: from `heldout.by_split`.
    Which descends fastest, and which predicts best; that the faster one predicts worse, and that
    a test cost rises. None where schemes are not compared on one problem, or where several
    optimizers are: each scheme is then several answers.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    if len(set(problems.scheme_names(schemes).values())) < len(schemes):
        return []
    if len(schemes) < 2 or len(_problems(schemes)) > 1 or _finite(schemes).empty:
        return []
    if problems.without_descent(schemes).all():
        return []
    part = sweep.only(experiment)
    fast, first = _fastest(part)
    splits = splits[splits["experiment"] == experiment]
    if splits.empty:
        folded = (
            names.FOLDS_COST.column in schemes and schemes[names.FOLDS_COST.column].notna().any()
        )
        unknown = [] if folded else [said("predicts_unknown").text]
        return [first.text, *unknown, *_edges(part)]
    best = heldout.predicts_best(splits)
    count = splits["split"].nunique()
    doubt = _doubt(heldout.paired(splits), best, count)
    told = {"result": heldout.told(splits, best), "over": _over(count), "doubt": doubt}
    second = said("predicts", schemes=" = ".join(best), **told)
    faster = heldout.best_and_faster(splits, fast) or heldout.worse_though_faster(splits, fast)
    more = [faster, heldout.rises(splits)]
    return [first.text, second.text, *filter(None, more), *_edges(part)]


def _fastest(part: Sweep) -> tuple[list[str], Said]:
    """Return the schemes that descend fastest, and the sentence that says so."""
    known = _finite(merged(part).of_role(names.SCHEME))
    counted = _by(known) == "count"
    what = "points misclassified" if counted else "excess"
    for target in ASKED:
        table = reached([part], target)
        if table.empty:  # of no iterations
            continue
        middle = table.groupby("scheme", sort=False)["value"].quantile(0.5, interpolation="higher")
        if np.isfinite(middle.min()):
            fast = list(middle.index[middle == middle.min()])
            if middle.min() == 0:  # its own start is so low: this is not descent
                there = {"schemes": " = ".join(fast), "target": target, "what": what}
                return [], said("starts_there", **there)
            others = middle[middle > middle.min()].sort_values(kind="stable")
            refined = table.groupby("scheme", sort=False)["finer"].all()
            ranked = _ranked(known, "count" if counted else "excess")
            words = [
                f"{' = '.join(alike)} {_count(others[alike[0]], refined[alike[0]])}"
                for alike in _alike(others, refined, ranked)
            ]
            after = f" ({', '.join(words)})" if words else ""
            least = f"{middle.min():.0f}"
            least += " iteration" if least == "1" else " iterations"
            least += "" if refined[fast].all() else ON_GRID
            told = {"count": least, "target": target, "what": what, "others": after}
            count = table["split"].nunique()
            # On one split the count is what it is; another split would have another.
            doubt = _doubt(comparisons.paired(table), fast, count) if count > 1 else ""
            schemes = " = ".join(fast)
            return fast, said("fastest", schemes=schemes, **told, over=_over(count), doubt=doubt)
    labels = _labels(_ranked(known, "count" if counted else "excess")[0])
    told = {"target": ASKED[-1], "what": what, "least": "the fewest" if counted else "least of it"}
    return labels, said("nobody", schemes=" = ".join(labels), **told)


def _edges(part: Sweep) -> list[str]:
    """Say whose best step size lies at an end of what was tried, and whose grid is above 2/L.

    Of a grid of `FEW` step sizes or more; finer step sizes reach a decade beyond its ends.
    """
    sizes = {step_size(step) for step in as_rows(part.of_role(names.STEP))}
    if len(sizes) < FEW:
        return []
    low, high = min(sizes), max(sizes)
    least, most = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    table = reached([part], ASKED[0])
    table = table[np.isfinite(table["value"].astype(float))]
    reach = np.where(table["finer"].astype(bool), 10 ** (1 - AROUND / PER_DECADE), 1.0)
    above = thresholds_that_hold(merged(part).of_role(names.SCHEME))
    above = above[above.get(names.THRESHOLD.column, pd.Series(np.nan, above.index)) < low]
    found = [
        ("grid_end", table.loc[table["step"] >= high * reach, "scheme"], (least, most + 2)),
        ("grid_end", table.loc[table["step"] <= low / reach, "scheme"], (least - 2, most)),
        ("grid_above", above["label"], (least - 3, most)),
    ]
    return [
        said(name, schemes=listed(list(dict.fromkeys(who))), first=first, last=last).text
        for name, who, (first, last) in found
        if len(who)
    ]


def _alike(
    counts: "pd.Series[float]",
    refined: "pd.Series[bool]",
    ranked: Sequence[Sequence[Mapping[Any, Any]]],
) -> list[list[str]]:
    """Return schemes, those of one rank and one count together."""
    rank = {label: number for number, rows in enumerate(ranked) for label in _labels(rows)}
    found: dict[Any, list[str]] = {}
    for name, count in counts.items():
        key = (rank.get(str(name), name), count, refined[name])
        found.setdefault(key, []).append(str(name))
    return list(found.values())


def _count(value: float, refined: bool) -> str:
    if np.isfinite(value):
        return f"{value:.0f}" if refined else f"{value:.0f}{ON_GRID}"
    return "not reached" if refined else f"not{ON_GRID}"


def _over(splits: int) -> str:
    return f", median of {splits} splits" if splits > 1 else ""


def _doubt(pairs: pd.DataFrame, best: Sequence[str], splits: int) -> str:
    """Return from which schemes the best are not told apart by so many splits; empty for none."""
    others = comparisons.not_told_apart(pairs, best)
    if not others:
        return ""
    does = "split does" if splits == 1 else "splits do"
    it = "it" if len(best) == 1 else "them"
    return PARTS["doubt"].format(splits=splits, does=does, it=it, others=_which(others))


def _by(known: pd.DataFrame) -> str:
    """Return what schemes are ranked by: their `cost`, the `excess` left, or a `count`."""
    if counts(known).any():
        return "count"
    return "excess" if problems.own_functions(known) else "cost"


def _ranked(known: pd.DataFrame, by: str = "") -> list[list[Mapping[Any, Any]]]:
    """Return the rows of each rank, the lowest cost first; costs that are equal share one.

    by: what they are ranked by, see `_by`; by cost, where the excess that is left is not known.
    """
    by = by or _by(known)
    rows = as_rows(known.sort_index())
    costs = np.array([row[COST] for row in rows])
    left = np.array([excess_left(row, row) for row in rows])
    if by == "count":
        places = evidence.tied(np.array([row[COUNT] for row in rows]), 0.0)
    elif by == "excess" and np.isfinite(left).all():
        places = evidence.tied(left, names.TIED)
    else:
        start = float(np.nanmin([start_excess(row) for row in rows] + [np.inf]))
        least = start if np.isfinite(start) else abs(float(costs.min()))
        places = evidence.tied(costs, names.TIED * least)
    return [
        [row for row, place in zip(rows, places) if place == rank]
        for rank in range(places.max() + 1)
    ]


def _labels(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    return [row["label"] for row in rows]


def _counted(groups: Sequence[pd.DataFrame], sweep: Sweep, experiment: str | None = None) -> str:
    """Return how often each scheme has the lowest cost, and its mean rank, over problems."""
    labels = list(dict.fromkeys(label for rows in groups for label in rows["label"]))
    wins = dict.fromkeys(labels, 0)
    ranks: dict[str, list[float]] = {label: [] for label in labels}
    compared = 0
    for rows in groups:
        known = _finite(rows)
        if known.empty:
            continue
        compared += 1
        equals = [_labels(equal) for equal in _ranked(known)]
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


def _problems(schemes: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the scheme runs of one experiment by the problem that their costs are of.

    Where there are several, their labels are without what makes the problem.
    """
    labels = schemes["label"].copy()
    places: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for place, made in zip(schemes.index, problems.problems(schemes)):
        own = tuple((name, text) for name, text in made.items() if has_role(name, *PROBLEM))
        places.setdefault(own, []).append(place)
        for name, text in own:
            labels[place] = labels[place].replace(f", {name}={text}", "")
    return [schemes.loc[rows].assign(label=labels[rows]) for rows in places.values()]


def _medians(known: pd.DataFrame) -> str:
    """Return what the costs are medians of: splits, seeds, starts; nothing of a single run."""
    over = set(known.get(REPEATS, pd.Series(dtype=str)).dropna()) - {""}
    starts = max(problems.starts_of(row) for row in as_rows(known))
    words = [*sorted(over), *([f"{starts} starts"] if starts > 1 else [])]
    return f" (medians of {' x '.join(words)})" if words else ""


def _nothing(sweep: Sweep, experiment: str | None) -> str:
    """Return why there is no answer."""
    none = problems.without_descent(sweep.of_role(names.SCHEME, experiment)).all()
    why = said("no_descent" if none else "no_cost")
    return paragraph([why, *_lost(sweep, experiment)])


def _lost(sweep: Sweep, experiment: str | None) -> list[Said]:
    """Return which schemes no step size of the grid suited, and how many jobs failed."""
    jobs = whole(sweep).of_role(names.SCHEME, experiment)
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    diverged = list(dict.fromkeys(schemes.loc[schemes["verdict"] == names.DIVERGED, "label"]))
    several = schemes["experiment"].nunique() > 1 or len(diverged) > MOST
    count = int((jobs["verdict"] == names.DIVERGED).sum())
    who = f"{count} of {len(jobs)} jobs" if several or not diverged else listed(diverged)
    failed = int((jobs["verdict"] == names.FAILED).sum())
    found = [said("all_diverged", who=who)] if count else []
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


def _which(labels: Sequence[str]) -> str:
    return listed(labels) if len(labels) <= MOST else f"{len(labels)} schemes"


def _finite(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the schemes that have a final cost, the lowest first."""
    if COST not in schemes:
        return schemes.iloc[:0]
    lost = schemes["verdict"].isin([names.FAILED, *names.UNRANKED])
    return schemes[schemes[COST].notna() & ~lost].sort_values(COST, kind="stable")


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
    about = {"labels": " = ".join(_labels(rows)), "at": at, "told": verdicts}
    if by == "count":
        return PARTS[by].format(**about, count=rows[0][COUNT])
    if by == "excess":
        rest = f"{share(left)} of its excess{_of(rows[0])} left" if solved else "of unknown excess"
        return PARTS[by].format(**about, left=rest)
    if solved:
        about["told"] = f"{verdicts}, {share(left)} of {whose} excess{_of(rows[0])} left"
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
