"""The question that a comparison asks, and its answer in a sentence."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from results.runs import Sweep

COST = "metrics.final/train_cost"
SAME = 1e-6  # relative: costs nearer than that are called the same
MOST = 4  # so many names are read in a sentence


def question(sweep: Sweep, experiment: str) -> str:
    """Return what one experiment of a sweep asks."""
    schemes = sweep.of_role("scheme", experiment)
    which = _which(list(schemes["label"]))
    if COST not in schemes or schemes[COST].isna().all():
        make = "does" if len(schemes) == 1 else "do"
        return f"What {make} {which} make of the points of {experiment}?"
    optimizer = _one(schemes, "tags.optimizer", "gradient_descent").replace("_", " ")
    iterations = _one(schemes, "params.iterations", "")
    parts = [f"{iterations} iterations" if iterations else "", optimizer]
    within = " of ".join(part for part in parts if part)
    within = f" in {within}" if within else ""
    if len(schemes) == 1:
        return f"How far does {which} lower the cost of {experiment}{within}?"
    return f"Which of {which} lowers the cost of {experiment} furthest{within}?"


def sentence(sweep: Sweep, experiment: str) -> str:
    """Return the answer: who reaches the lowest cost, who the highest, and how many failed."""
    schemes = sweep.of_role("scheme", experiment)
    failed = int((schemes["verdict"] == "failed").sum())
    lost = f" {failed} of {len(schemes)} jobs failed." if failed else ""
    known = _finite(schemes)
    if known.empty:
        diverged = int((schemes["verdict"] == "diverged").sum())
        nothing = (
            f" {diverged} of {len(schemes)} stayed finite at no step size." if diverged else ""
        )
        return f"No scheme has a cost to compare.{nothing}{lost}"
    best, worst = known.iloc[0], known.iloc[-1]
    equal = known[known[COST] <= best[COST] + SAME * abs(best[COST])].sort_index()
    reach = "reaches" if len(equal) == 1 else "reach"
    said = f"{names(list(equal['label']))} {reach} the lowest cost, {_at(best)}"
    if len(equal) < len(known):
        said += f"; {worst['label']} ends highest, with {_at(worst)}"
    return f"{said}.{lost}"


def overall(sweep: Sweep) -> str:
    """Return the answer over all experiments of a sweep: who has the lowest cost, how often."""
    if len(sweep.experiments) == 1:
        return sentence(sweep, sweep.experiments[0])
    wins: dict[str, int] = {}
    compared = 0
    for experiment in sweep.experiments:
        known = _finite(sweep.of_role("scheme", experiment))
        compared += len(known) > 0
        for name in known[known[COST] <= known[COST].min() * (1 + SAME)]["label"]:
            wins[name] = wins.get(name, 0) + 1
    if not wins:
        return "No scheme has a cost to compare."
    most = max(wins.values())
    best = [name for name, count in wins.items() if count == most]
    reach = "reaches" if len(best) == 1 else "reach"
    failed = int((sweep.of_role("scheme")["verdict"] == "failed").sum())
    lost = f" {failed} of {len(sweep.of_role('scheme'))} jobs failed." if failed else ""
    return (
        f"{names(best)} {reach} the lowest cost on {most} of {compared} problems, "
        f"each scheme at its best step size.{lost}"
    )


def names(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _which(labels: Sequence[str]) -> str:
    return names(labels) if len(labels) <= MOST else f"{len(labels)} schemes"


def _finite(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return the schemes that have a final cost, the lowest first."""
    if COST not in schemes:
        return schemes.iloc[:0]
    kept = schemes[schemes[COST].notna() & ~schemes["verdict"].isin(["failed", "diverged"])]
    return kept.sort_values(COST, kind="stable")


def _at(row: Any) -> str:
    step = row.get("tags.step_size")
    size = f" at step size {step}" if isinstance(step, str) else ""
    return f"{row[COST]:.4g}{size} ({row['verdict']})"


def _one(rows: pd.DataFrame, column: str, default: str) -> str:
    """Return the value that all rows share; nothing for several, the default for none."""
    found = set(rows[column].dropna()) if column in rows else set()
    if len(found) > 1:
        return ""
    return str(found.pop()) if found else default
