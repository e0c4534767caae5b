"""Schemes ranked by the costs that they end with, problem by problem."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import evidence, problems
from normbench.results.compare.reached import counts, excess_left, start_excess
from normbench.results.store.rows import as_rows
from normbench.results.words.sentences import listed
from normbench.settings import Role, has_role

COST = names.FINAL_COST.column
COUNT = names.FINAL_MISCLASSIFICATIONS.column
MOST = 4  # so many names are read in a sentence
# Under another setting, such as the optimizer's, the costs of schemes are compared.
PROBLEM = (Role.PROBLEM, Role.REPETITION)


def finite(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the schemes that have a final cost, the lowest first."""
    if COST not in schemes:
        return schemes.iloc[:0]
    lost = schemes["verdict"].isin([names.FAILED, *names.UNRANKED])
    return schemes[schemes[COST].notna() & ~lost].sort_values(COST, kind="stable")


def compared_by(known: pd.DataFrame) -> str:
    """Return what schemes are ranked by: their `cost`, the `excess` left, or a `count`."""
    if counts(known).any():
        return "count"
    return "excess" if problems.own_functions(known) else "cost"


def ranked(known: pd.DataFrame, by: str = "") -> list[list[Mapping[Any, Any]]]:
    """Return the rows of each rank, the lowest cost first; costs that are equal share one.

    by: what they are ranked by, see `_by`; by cost, where the excess that is left is not known.
    """
    by = by or compared_by(known)
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


def labels_of(rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the labels of scheme runs."""
    return [row["label"] for row in rows]


def by_problem(schemes: pd.DataFrame) -> list[pd.DataFrame]:
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


def listed_few(labels: Sequence[str]) -> str:
    """Return labels as a sentence lists them, or how many they are."""
    return listed(labels) if len(labels) <= MOST else f"{len(labels)} schemes"
