"""Rank the schemes of a problem by their final cost, excess, or count of misclassified points."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import evidence, problems
from normbench.results.compare.reached import compares_counts, excess_left, start_excess
from normbench.results.store.rows import as_rows
from normbench.results.words.sentences import join_phrases
from normbench.settings import SEEDS, Role, has_role

FINAL_COST = names.FINAL_COST.column
FINAL_COUNT = names.FINAL_MISCLASSIFICATIONS.column
MAX_LISTED_SCHEMES = 4  # the most names that a sentence lists
# How a step sees the points: schemes are ranked at one batch, and one scheme over its batches.
BATCH_SETTINGS = ("batch", "batch_order", "records_per_pass")


def with_final_cost(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the scheme runs that have a final cost, the lowest cost first.

    Left out are failed and diverged jobs, and those whose best run rounding decides.
    """
    if FINAL_COST not in schemes:  # no job recorded a cost
        return schemes.iloc[:0]
    has_no_cost = schemes["verdict"].isin([names.FAILED, *names.UNRANKED])
    return schemes[schemes[FINAL_COST].notna() & ~has_no_cost].sort_values(
        FINAL_COST, kind="stable"
    )


def ranking_criterion(schemes: pd.DataFrame) -> str:
    """Return the criterion of the ranking: `cost`, `excess` (the remaining share) or `count`."""
    if compares_counts(schemes).any():
        return "count"
    return "excess" if problems.minimize_different_functions(schemes) else "cost"


def rank_rows(schemes: pd.DataFrame, criterion: str = "") -> list[list[Mapping[Any, Any]]]:
    """Return the rows of each rank, the best first; values that tie share a rank.

    They tie up to `names.TIED` of the excess, or `names.TIED_FLOAT32` if a scheme is of float32.

    Args:
        schemes: The scheme runs, with a final cost each.
        criterion: `cost`, `excess` or `count`; by default that of `ranking_criterion`. If the
            remaining excess of a scheme is unknown, `excess` ranks by cost instead.

    Returns:
        A list of rows for each rank.
    """
    criterion = criterion or ranking_criterion(schemes)
    rows = as_rows(schemes.sort_index())  # in the order of the sweep, also within a rank
    costs = np.array([row[FINAL_COST] for row in rows])
    remaining_excess = np.array([excess_left(row, row) for row in rows])
    is_float32 = schemes.get(names.setting("precision"), pd.Series(dtype=str)).eq("float32").any()
    tied_share = names.TIED_FLOAT32 if is_float32 else names.TIED
    if criterion == "count":  # counts tie only if they are equal
        rank_numbers = evidence.tie_ranks(np.array([row[FINAL_COUNT] for row in rows]), 0.0)
    elif criterion == "excess" and np.isfinite(remaining_excess).all():
        rank_numbers = evidence.tie_ranks(remaining_excess, tied_share)
    else:
        # Costs tie relative to the smallest starting excess; to the lowest cost if it is unknown.
        start = float(np.nanmin([start_excess(row) for row in rows] + [np.inf]))
        scale = start if np.isfinite(start) else abs(float(costs.min()))
        rank_numbers = evidence.tie_ranks(costs, tied_share * scale)
    return [
        [row for row, row_rank in zip(rows, rank_numbers) if row_rank == rank]
        for rank in range(rank_numbers.max() + 1)
    ]


def labels_of(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the labels of scheme runs."""
    return [row["label"] for row in rows]


def by_problem(schemes: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the scheme runs of one experiment, grouped by problem.

    Costs are comparable if the settings of the problem are equal; the optimizer may differ. Runs
    with different `BATCH_SETTINGS` belong to different problems, unless each problem would then
    have one scheme. Seeds are repetitions.

    Args:
        schemes: The scheme runs of a merged sweep.

    Returns:
        The groups. Their labels are without the settings that identify the problem.
    """
    settings_by_run = problems.problems(schemes)
    grouped = _grouped(schemes, settings_by_run, BATCH_SETTINGS)
    # Groups of one scheme cannot be ranked: then the batches of a scheme are compared instead.
    if all(len(rows) == 1 for rows in grouped):
        return _grouped(schemes, settings_by_run, ())
    return grouped


def _grouped(
    schemes: pd.DataFrame,
    settings_by_run: Sequence[Mapping[str, str]],
    descent_settings: Sequence[str],
) -> list[pd.DataFrame]:
    """Return scheme runs grouped by the settings of the problem and some settings of the descent.

    Args:
        schemes: The scheme runs.
        settings_by_run: The varied settings of each run, from `problems.problems`.
        descent_settings: The names of the settings of the descent that distinguish groups too.

    Returns:
        The groups, in whose labels those settings are left out.
    """
    labels = schemes["label"].copy()
    indexes_by_problem: dict[tuple[tuple[str, str], ...], list[Any]] = {}
    for index, settings in zip(schemes.index, settings_by_run):
        problem_settings = tuple(
            (name, text)
            for name, text in settings.items()
            if name not in SEEDS and (has_role(name, Role.PROBLEM) or name in descent_settings)
        )
        indexes_by_problem.setdefault(problem_settings, []).append(index)
        for name, text in problem_settings:
            # Runs of a group share this setting, so its label need not repeat it.
            labels[index] = labels[index].replace(f", {name}={text}", "")
    return [schemes.loc[rows].assign(label=labels[rows]) for rows in indexes_by_problem.values()]


def names_or_count(labels: Sequence[str]) -> str:
    """Return labels as a sentence lists them, or their number if they are many."""
    return join_phrases(labels) if len(labels) <= MAX_LISTED_SCHEMES else f"{len(labels)} schemes"
