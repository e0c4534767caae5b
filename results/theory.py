"""Prediction against observation: the step sizes that theory allows, and those that worked."""

import pandas as pd

from normbench.results import names
from normbench.results.runs import Sweep

PLAIN = names.PLAIN.column
NOTE = names.NOTE.column
THRESHOLD = names.THRESHOLD.column
LARGEST = names.LARGEST_CONVERGENT.column


def predictions(sweep: Sweep) -> pd.DataFrame:
    """Return one row a scheme: predicted threshold, observed ones, and their ratio.

    `2/L`: of the global bound, or of the curvature at the start where the cost has none; `2/L
    best`: at the weights of the best step. falls: the largest step size of the grid up to which
    the cost falls throughout; converges: the largest that settles (`>=` where no larger one
    failed); critical: where it was searched for. ratio: `falls` over `2/L`, of plain gradient
    descent alone.
    """
    rows = []
    several = len(sweep.experiments) > 1
    for row in sweep.of_role(names.SCHEME).to_dict("records"):
        if row["verdict"] == names.FAILED:
            continue
        predicted = row.get(THRESHOLD)
        falls = row.get(names.LARGEST_FALLING.column)
        critical = row.get(names.CRITICAL.column)
        known = not any(value is None or pd.isna(value) for value in (predicted, falls))
        known = known and row.get(PLAIN) != "false"
        entry = {"experiment": row["experiment"]} if several else {}
        entry |= {
            "scheme": row["label"],
            "L": row.get(names.LIPSCHITZ.column),
            "2/L": predicted,
            "2/L best": row.get(names.THRESHOLD_BEST.column),
            "falls": bounded(falls, row.get(names.CENSORED_FALLING.column)),
            "converges": bounded(row.get(LARGEST), row.get(names.CENSORED.column)),
            "critical": bounded(critical, row.get(names.CENSORED_CRITICAL.column)),
            "ratio": falls / predicted if known and predicted else None,
            "condition": row.get(names.CONDITION.column),
        }
        rows.append(entry)
    table = pd.DataFrame(rows)
    optional = ["L", "2/L", "2/L best", "critical", "ratio", "condition"]
    empty = [name for name in optional if name in table and table[name].isna().all()]
    return table.drop(columns=empty)


def bounded(value: float | None, censored: str | None) -> str | None:
    """Return a step size in words: `>=0.1` where nothing above it failed; None for none."""
    if value is None or pd.isna(value):
        return None
    return f"{'>=' if censored == 'true' else ''}{value:.4g}"


def explanation(sweep: Sweep, experiment: str) -> str:
    """Return what the numbers say of one experiment's schemes, in a few plain sentences."""
    schemes = sweep.of_role(names.SCHEME, experiment)
    if len(schemes) and (schemes["verdict"] == names.FAILED).all():
        return "No step was made: every job failed."
    if not len(sweep.of_role(names.STEP, experiment)):
        return "No step was made: what the schemes did to the points is in the figures."
    sentences = [
        *_largest_threshold(thresholds_that_hold(schemes)),
        *_largest_convergent(schemes),
        *_least(schemes),
        *_notes(schemes),
    ]
    return " ".join(sentences)


def thresholds_that_hold(schemes: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with 2/L only where it speaks of the optimizer: plain descent."""
    if PLAIN not in schemes or THRESHOLD not in schemes:
        return schemes
    return schemes.assign(**{THRESHOLD: schemes[THRESHOLD].where(schemes[PLAIN] != "false")})


def _known(schemes: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows that have a number in a column, by increasing value."""
    if column not in schemes:
        return schemes.iloc[:0]
    return schemes[schemes[column].notna()].sort_values(column, kind="stable")


def _largest_threshold(schemes: pd.DataFrame) -> list[str]:
    known = _known(schemes, THRESHOLD)
    if len(known) < 2:
        return []
    low, high = known.iloc[0], known.iloc[-1]
    least, most = (row[THRESHOLD] for row in (low, high))
    if most <= least * 1.02:
        return [f"Theory allows the same step size under every scheme, 2/L = {most:.4g}."]
    return [
        f"Theory allows the largest step size under {high['label']} (2/L = {most:.4g}), "
        f"{most / least:.3g} times that of {low['label']} ({least:.4g})."
    ]


def _largest_convergent(schemes: pd.DataFrame) -> list[str]:
    known = _known(schemes, LARGEST)
    if known.empty:
        return ["No scheme settled at any step size of this grid."]
    most = known[LARGEST].iloc[-1]
    rows = known[known[LARGEST] == most]
    listed = "; ".join(rows["label"])  # a label has commas of its own
    above = (rows[names.CENSORED.column] == "true").any()
    more = "; the grid ends before a larger one fails" if above else ""
    return [f"The largest convergent step of the grid is {most:g} ({listed}){more}."]


def _least(schemes: pd.DataFrame) -> list[str]:
    known = schemes.get(names.AT_INFINITY.column, pd.Series(dtype=str))
    if (known == "true").any():
        return ["The classes are separable: the least cost is 0, at infinity."]
    return []


def _notes(schemes: pd.DataFrame) -> list[str]:
    """Return what theory could not say, and of which schemes where it is not of all."""
    if NOTE not in schemes:
        return []
    known = schemes[schemes[NOTE].notna()]
    said = []
    for note, rows in known.groupby(NOTE, sort=False):
        of = "" if len(rows) == len(schemes) else f"{'; '.join(rows['label'])}: "
        said.append(f"Note: {of}{note}.")
    return said
