"""State in sentences which scheme descends fastest, and which one predicts best."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import closing, headline
from normbench.results.answer.race import RACE_TARGETS, races
from normbench.results.answer.ranking import by_problem, names_or_count, with_final_cost
from normbench.results.compare import comparisons, evidence, heldout, passes, problems
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import ABOVE, HIGH, LOW, step_size, time_to_target
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import CLAUSES, join_phrases, make_sentence, paragraph


def answers(sweep: Sweep, experiment: str, splits: pd.DataFrame) -> list[str]:
    """Return in sentences which scheme descends fastest, and which one predicts best.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.
        splits: One row a scheme and split, from `heldout.by_split`.

    Returns:
        The answers, followed by reservations: that the faster scheme predicts worse, that a test
        cost rises, that a best step size is at an end of the grid. Empty for fewer than two
        schemes with a descent and a final cost, for schemes that are not compared on one problem,
        and for a scheme that was run with several optimizers.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    # A scheme of two rows has several problems or optimizers.
    if len(set(problems.scheme_names(schemes).values())) < len(schemes):
        return []
    if len(schemes) < 2 or len(by_problem(schemes)) > 1 or with_final_cost(schemes).empty:
        return []
    if problems.without_descent(schemes).all():
        return []
    experiment_sweep = sweep.only(experiment)
    # There is no race where no job has a value in `time_to_target`.
    race = next(iter(races(experiment_sweep, experiment)), None)
    target = race.target if race else RACE_TARGETS[0]
    speed_sentences = (
        [paragraph(headline.describe_race(experiment_sweep, experiment, race))] if race else []
    )
    # Without a race nobody leads, and no sentence relates speed to predictions.
    leading_schemes = headline.leaders(with_final_cost(schemes), race) if race else []
    splits = splits[splits["experiment"] == experiment]
    if splits.empty:  # no points were held out
        is_cross_validated = (
            names.FOLDS_COST.column in schemes and schemes[names.FOLDS_COST.column].notna().any()
        )
        untested = [] if is_cross_validated else [make_sentence("predicts_unknown").text]
        return [*speed_sentences, *untested, *_grid_edge_sentences(experiment_sweep, target)]
    best = heldout.best_predictors(splits)
    count = splits["split"].nunique()
    doubt = _doubt_clause(heldout.compare_pairs(splits), best, count)
    fields = {
        "result": heldout.predictions_text(splits, best),
        "over": _medians_note(count),
        "doubt": doubt,
    }
    prediction_sentence = make_sentence("predicts", schemes=" = ".join(best), **fields)
    comparison = heldout.best_and_faster(splits, leading_schemes) or heldout.worse_though_faster(
        splits, leading_schemes
    )
    remarks = [comparison, heldout.describe_rises(splits, passes.unit(schemes))]
    return [
        *speed_sentences,
        prediction_sentence.text,
        *filter(None, remarks),
        *_grid_edge_sentences(experiment_sweep, target),
    ]


def _grid_edge_sentences(experiment_sweep: Sweep, target: str) -> list[str]:
    """Return sentences on schemes whose best step size is at an end of the grid, or beyond it.

    A grid that lies above 2/L as a whole has its own sentence. Each sentence proposes a wider grid.

    Args:
        experiment_sweep: The part of the sweep that belongs to the experiment.
        target: The target of the race, to which the best step size takes the fewest iterations.
    """
    table = time_to_target([experiment_sweep], target)
    table = table[table["value"] > 0]  # a start that meets the target says nothing of the grid
    sizes = {step_size(step) for step in as_rows(experiment_sweep.of_role(names.STEP))}
    if table.empty or not sizes:
        return []
    low, high = min(sizes), max(sizes)
    smallest_exponent, largest_exponent = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    # By end of the grid: the first and last power of ten of a wider grid.
    wider_grids = {
        HIGH: (smallest_exponent, largest_exponent + 2),
        LOW: (smallest_exponent - 2, largest_exponent),
    }
    edges = []
    for end, (first, last) in wider_grids.items():
        is_at_end = (table["end"] == end).groupby(table["scheme"], sort=False)
        schemes = is_at_end.any().index[is_at_end.any()]
        if schemes.empty:
            continue
        splits = "" if is_at_end.all()[schemes].all() else " on some splits"
        fields = {"schemes": join_phrases([*schemes]), "first": first, "last": last}
        edges.append(make_sentence("grid_end", splits=splits, **fields).text)
    # A grid above 2/L is above it on every split.
    is_above = (table["end"] == ABOVE).groupby(table["scheme"], sort=False).all()
    if is_above.any():
        jobs = problems.scheme_runs([experiment_sweep])
        limits = jobs.groupby("scheme", sort=False)[names.THRESHOLD.column].max()
        above = closing.grid_above(limits[is_above.index[is_above]], largest_exponent)
        edges.append(above.text)
    # Finer step sizes reach a decade beyond the grid; NaN where no step size reaches the target.
    is_inside = table["step"].between(low, high) | table["step"].isna() | (table["end"] != "")
    schemes_beyond = [*dict.fromkeys(table.loc[~is_inside, "scheme"])]
    return edges + (
        [make_sentence("grid_beyond", schemes=join_phrases(schemes_beyond)).text]
        if schemes_beyond
        else []
    )


def _medians_note(splits: int) -> str:
    """Return the number of splits that a median is over, or nothing for one split."""
    return f", median of {splits} splits" if splits > 1 else ""


def _doubt_clause(pairs: pd.DataFrame, best: Sequence[str], splits: int) -> str:
    """Return the clauses on schemes that are not shown to differ from the best, or nothing.

    Either the splits do not distinguish them, or they are not judged.

    Args:
        pairs: One row a pair of schemes, from `heldout.compare_pairs`.
        best: The labels of the schemes that predict best.
        splits: The number of splits.
    """
    unjudged = pairs["conclusion"] == comparisons.NOT_JUDGED
    if splits == 1:
        doubt = "one split cannot show a"
    elif splits < evidence.fewest_values(int((~unjudged).sum())):
        doubt = f"{splits} splits are too few to show a"
    else:
        doubt = f"{splits} splits show no"
    clauses = []
    for name, conclusions in (
        ("doubt", (comparisons.OPEN,)),
        ("not_judged", (comparisons.NOT_JUDGED,)),
    ):
        others = comparisons.indistinguishable_schemes(pairs, best, conclusions)
        if others:
            clauses.append(CLAUSES[name].format(doubt=doubt, others=names_or_count(others)))
    return "".join(clauses)
