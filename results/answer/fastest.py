"""Which scheme descends fastest, and which predicts best, in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer.ranking import (
    by_problem,
    compared_by,
    finite,
    labels_of,
    listed_few,
    ranked,
)
from normbench.results.compare import comparisons, heldout, problems
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import ABOVE, HIGH, LOW, reached, step_size
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import PARTS, Said, listed, said

# Of a number for which no step sizes between those of the grid were tried.
ON_GRID = " on this grid"
# The targets by which the fastest descent is chosen, the first that is met.
ASKED = ("1e-2", "1e-1")


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
    if len(schemes) < 2 or len(by_problem(schemes)) > 1 or finite(schemes).empty:
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
    known = finite(merged(part).of_role(names.SCHEME))
    counted = compared_by(known) == "count"
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
            ranks = ranked(known, "count" if counted else "excess")
            words = [
                f"{' = '.join(alike)} {_count(others[alike[0]], refined[alike[0]])}"
                for alike in _alike(others, refined, ranks)
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
    labels = labels_of(ranked(known, "count" if counted else "excess")[0])
    told = {"target": ASKED[-1], "what": what, "least": "the fewest" if counted else "least of it"}
    return labels, said("nobody", schemes=" = ".join(labels), **told)


def _edges(part: Sweep) -> list[str]:
    """Say whose best step size lies at an end of what was tried, or beyond the grid.

    And whose grid is above 2/L.
    """
    table = reached([part], ASKED[0])
    sizes = {step_size(step) for step in as_rows(part.of_role(names.STEP))}
    if table.empty or not sizes:
        return []
    low, high = min(sizes), max(sizes)
    least, most = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    found = [
        ("grid_end", HIGH, (least, most + 2)),
        ("grid_end", LOW, (least - 2, most)),
        ("grid_above", ABOVE, (least - 3, most)),
    ]
    edges = []
    for name, end, (first, last) in found:
        who = [*dict.fromkeys(table.loc[table["end"] == end, "scheme"])]
        edges += [said(name, schemes=listed(who), first=first, last=last).text] if who else []
    inside = table["step"].between(low, high) | table["step"].isna() | (table["end"] != "")
    beyond = [*dict.fromkeys(table.loc[~inside, "scheme"])]
    return edges + ([said("grid_beyond", schemes=listed(beyond)).text] if beyond else [])


def _alike(
    counts: "pd.Series[float]",
    refined: "pd.Series[bool]",
    ranked: Sequence[Sequence[Mapping[Any, Any]]],
) -> list[list[str]]:
    """Return schemes, those of one rank and one count together."""
    rank = {label: number for number, rows in enumerate(ranked) for label in labels_of(rows)}
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
    show = "split shows" if splits == 1 else "splits show"
    return PARTS["doubt"].format(splits=splits, show=show, others=listed_few(others))
