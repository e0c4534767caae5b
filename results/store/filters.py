"""Filters of jobs, such as `params.dataset = 'digits' and metrics.final/train_cost < 0.1`."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from normbench.datasets.values import did_you_mean
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord

CONDITION_PATTERN = re.compile(
    r"(params|tags|metrics)\.[`\"]?([\w./]+)[`\"]?\s*(=|!=|<=|>=|<|>|like)\s*('[^']*'|\"[^\"]*\"|\S+)",
    re.IGNORECASE,
)
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "like": lambda text, pattern: fnmatchcase(text, pattern.replace("%", "*")),
}
MAX_LISTED = 12  # values in a message


def parse(where: str) -> Callable[[JobRecord], bool]:
    """Return whether a job meets the conditions of a filter, as a function of its record.

    Args:
        where: Conditions that `and` joins, in MLflow's words: of `params`, `tags` or `metrics`.

    Raises:
        ResultsError: A condition cannot be read.
    """
    conditions = []
    for text in re.split(r"\s+and\s+", where.strip(), flags=re.IGNORECASE):
        condition = CONDITION_PATTERN.fullmatch(text.strip())
        if condition is None:
            raise ResultsError(
                f"--where {where}: {text} is no condition; write it as in "
                "\"params.dataset = 'digits' and tags.normalizer = 'standard'\""
            )
        conditions.append(condition.groups())

    def selects(record: JobRecord) -> bool:
        """Return whether a job meets every condition."""
        return all(_meets(record, *condition) for condition in conditions)

    return selects


def _meets(record: JobRecord, collection: str, name: str, comparison: str, written: str) -> bool:
    """Return whether a job meets a condition; one that lacks the value does not."""
    value: Any = _values(record)[collection.lower()].get(name)
    expected: Any = written.strip("'\"")
    if collection.lower() == "metrics":
        try:
            expected = float(expected)
        except ValueError:
            return False
    return value is not None and COMPARISONS[comparison.lower()](value, expected)


def _values(record: JobRecord) -> dict[str, Mapping[str, Any]]:
    """Return the params, tags and last metrics of a job by name."""
    last = {key: value for key, value, _ in record.scheme.metrics}
    return {"params": record.params, "tags": record.scheme.tags, "metrics": last}


def remedy(where: str, recorded: Iterable[JobRecord]) -> str:
    """Return what a filter could ask for instead, as the end of an error message.

    Args:
        where: The filter, as the user wrote it.
        recorded: The recorded jobs.

    Returns:
        For each name of the filter, a clause with its recorded values, else with the name that may
        be meant.
    """
    jobs = [_values(record) for record in recorded]
    clauses = []
    for collection, name in dict.fromkeys(group[:2] for group in CONDITION_PATTERN.findall(where)):
        values = sorted({str(job[collection][name]) for job in jobs if name in job[collection]})
        recorded_names = sorted({key for job in jobs for key in job[collection]})
        clauses.append(
            f"{collection}.{name} is {' or '.join(values[:MAX_LISTED])} there"
            if values
            else f"no run has {collection}.{name}"
            + did_you_mean(name, recorded_names, f"{collection}.")
        )
    return "; ".join(clauses)
