"""The table of the studies of `conf/experiment`: what the source says, and what was measured."""

import re
import shlex
from typing import Any

import pandas as pd

from normbench.results import runs
from normbench.results.errors import ResultsError
from normbench.results.runs import Sweep
from normbench.results.theory import bounded

EXPERIMENT = re.compile(r"experiment=([\w/]+)")


def last(store: str, folder: str) -> dict[str, str]:
    """Return the last sweep's id of each study in a folder of `conf/experiment`, by its name.

    In the order in which they ran. Raises ResultsError where there is no such store.
    """
    found: dict[str, str] = {}
    for row in runs.sweeps(store).to_dict("records"):
        name = _study(row["command"])
        if name.startswith(f"{folder}/"):
            found.setdefault(name.removeprefix(f"{folder}/"), row["sweep"])
    return dict(reversed(found.items()))


def _study(command: str) -> str:
    """Return the study that a command names: `textbook/mnist`; nothing where it names none."""
    words = (EXPERIMENT.fullmatch(word.lstrip("+")) for word in shlex.split(command))
    return next((word[1] for word in words if word), "")


def table(store: str, folder: str = "textbook") -> pd.DataFrame:
    """Return one row a study and scheme: `study`, `scheme`, `the source says`, `measured`.

    Raises ResultsError where no study of the folder is in the store.
    """
    rows = []
    for name, sweep_id in last(store, folder).items():
        sweep = runs.load(store, sweep_id)
        for row in sweep.of_role("scheme").to_dict("records"):
            rows.append(
                {
                    "study": name,
                    "scheme": row["label"],
                    "the source says": _text(row.get("params.study.says")),
                    "measured": measured(sweep, row),
                }
            )
    if not rows:
        raise ResultsError(
            f"--store {store}: holds no study of {folder}; make {folder} runs them, or "
            f"normbench experiment={folder}/NAME one of them"
        )
    return pd.DataFrame(rows)


def measured(sweep: Sweep, row: dict[Any, Any]) -> str:
    """Return what one scheme of a study came to, in words: a row of the scheme runs."""
    if row["verdict"] == "failed":
        return f"failed: {row['reason']}"
    words = _descent(row) if _number(row, "final/steps_tried") else []
    words += [
        text.format(value)
        for name, text in NUMBERS.items()
        if (value := _number(row, name)) is not None
    ]
    return "; ".join(words)


# What is told of a scheme beside its descent, where it was recorded.
NUMBERS = {
    "theory/condition_number": "condition {:.4g}",
    "theory/identity_gap": "largest |SS'/P - I| {:.2g}",
    "theory/variance_lost": "{:.1%} of the variance lost",
}


def _descent(row: dict[Any, Any]) -> list[str]:
    """Return the run that stands for the scheme, and the largest step sizes of the grid."""
    words = [f"step {row.get('tags.step_size')}, {row.get('params.iterations')} iterations"]
    if row["verdict"] == "diverged":
        return [*words, "diverged at every step size"]
    ended = [f"cost {_number(row, 'final/train_cost'):.4g}"]
    wrong = _number(row, "final/train_misclassifications")
    if wrong is not None:
        ended.append(f"{wrong:g} misclassified")
    limits = {
        "falls up to": ("final/largest_falling_step", "tags.censored_falling"),
        "settles up to": ("final/largest_convergent_step", "tags.censored"),
    }
    for text, (name, censored) in limits.items():
        limit = bounded(_number(row, name), row.get(censored))
        if limit is not None:
            words.append(f"{text} {limit}")
    return [words[0], ", ".join(ended), *words[1:]]


def _number(row: dict[Any, Any], name: str) -> float | None:
    value = row.get(f"metrics.{name}")
    return None if value is None or pd.isna(value) else float(value)


def _text(value: Any) -> str:
    return "" if value is None or pd.isna(value) else str(value)
