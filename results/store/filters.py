"""Filters of jobs, such as `params.dataset = 'digits' and metrics.final/train_cost < 0.1`."""

import re

import pandas as pd

from normbench.datasets.values import did_you_mean
from normbench.results.store.errors import ResultsError

# A text in quotes, an equals sign, or the name of a param, tag or metric.
PARTS = re.compile(
    r"('[^']*'|\"[^\"]*\")|(?<![<>!=])(=)(?!=)|`?((?:params|tags|metrics)\.[\w./]+)`?"
)
MAX_LISTED = 12  # values in a message


def select(jobs: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return the jobs that a filter finds; none where a name of it is of no job.

    Args:
        jobs: One row a job.
        where: Conditions on params and tags, which are texts, and on metrics, as pandas reads them;
            `=` is `==`.

    Raises:
        ResultsError: The filter cannot be read.
    """
    query = PARTS.sub(lambda part: part[1] or (f"`{part[3]}`" if part[3] else "=="), where)
    columns = _columns(where)
    try:
        if not columns:
            raise ValueError("it names nothing")
        return jobs.query(query, engine="python") if set(columns) <= set(jobs) else jobs[:0]
    except Exception as error:  # of any class: pandas' own, or Python's
        raise ResultsError(
            f"--where {where}: is no condition; write it as in "
            "\"params.dataset = 'digits' and tags.normalizer = 'standard'\""
        ) from error


def remedy(jobs: pd.DataFrame, where: str) -> str:
    """Return what a filter could ask for instead, as the end of an error message.

    Args:
        jobs: One row a job.
        where: The filter, as the user wrote it.

    Returns:
        For each name of the filter, a clause with its recorded values, else with the name that may
        be meant.
    """
    clauses = []
    for column in _columns(where):
        if column in jobs:
            values = sorted(map(repr, jobs[column].dropna().unique()))
            clauses.append(f"{column} is {' or '.join(values[:MAX_LISTED])} there")
        else:
            clauses.append(f"no run has {column}{did_you_mean(column, jobs)}")
    return "; ".join(clauses)


def _columns(where: str) -> list[str]:
    """Return the columns that a filter names, each once."""
    return list(dict.fromkeys(part[3] for part in PARTS.finditer(where) if part[3]))
