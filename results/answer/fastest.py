"""Which scheme descends fastest, and which predicts best, in sentences."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import headline
from normbench.results.answer.race import ASKED, races
from normbench.results.answer.ranking import by_problem, finite, listed_few
from normbench.results.compare import comparisons, heldout, problems
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import ABOVE, HIGH, LOW, reached, step_size
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import PARTS, listed, paragraph, said


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
    race = next(iter(races(part, experiment)), None)  # none of no iterations, or unknown counts
    first = [paragraph(headline.of_race(part, experiment, race))] if race else []
    fast = headline.leaders(finite(schemes), race) if race else []
    splits = splits[splits["experiment"] == experiment]
    if splits.empty:
        folded = (
            names.FOLDS_COST.column in schemes and schemes[names.FOLDS_COST.column].notna().any()
        )
        unknown = [] if folded else [said("predicts_unknown").text]
        return [*first, *unknown, *_edges(part)]
    best = heldout.predicts_best(splits)
    count = splits["split"].nunique()
    doubt = _doubt(heldout.paired(splits), best, count)
    told = {"result": heldout.told(splits, best), "over": _over(count), "doubt": doubt}
    second = said("predicts", schemes=" = ".join(best), **told)
    faster = heldout.best_and_faster(splits, fast) or heldout.worse_though_faster(splits, fast)
    more = [faster, heldout.rises(splits)]
    return [*first, second.text, *filter(None, more), *_edges(part)]


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
        there = (table["end"] == end).groupby(table["scheme"], sort=False)
        on_splits = there.all() if end == ABOVE else there.any()
        who = [*on_splits.index[on_splits]]
        edges += [said(name, schemes=listed(who), first=first, last=last).text] if who else []
    inside = table["step"].between(low, high) | table["step"].isna() | (table["end"] != "")
    beyond = [*dict.fromkeys(table.loc[~inside, "scheme"])]
    return edges + ([said("grid_beyond", schemes=listed(beyond)).text] if beyond else [])


def _over(splits: int) -> str:
    return f", median of {splits} splits" if splits > 1 else ""


def _doubt(pairs: pd.DataFrame, best: Sequence[str], splits: int) -> str:
    """Return from which schemes the best are not told apart by so many splits; empty for none."""
    others = comparisons.not_told_apart(pairs, best)
    if not others:
        return ""
    show = "split shows" if splits == 1 else "splits show"
    return PARTS["doubt"].format(splits=splits, show=show, others=listed_few(others))
