"""What is to be said of jobs that were judged again by other rules."""

import pandas as pd

from normbench.results import names
from normbench.results.runs import Sweep


def sentences(sweep: Sweep, experiment: str) -> list[str]:
    """Return what was lost with another best step, and which jobs are shown as judged before."""
    schemes = sweep.of_role(names.SCHEME, experiment)
    return [*_lost(schemes), *_as_before(sweep, experiment, schemes)]


def _lost(schemes: pd.DataFrame) -> list[str]:
    if names.AGAIN.column not in schemes:
        return []
    said = []
    for words, rows in schemes.dropna(subset=names.AGAIN.column).groupby(names.AGAIN.column):
        labels = [names.label_of(word) for word in str(words).split(",")]
        said.append(
            f"Judged again, {'; '.join(rows['label'])}: what belonged to another step or other "
            f"rules is left out ({', '.join(dict.fromkeys(labels))}); to have it, descend again."
        )
    return said


def _as_before(sweep: Sweep, experiment: str, schemes: pd.DataFrame) -> list[str]:
    """Return which jobs the sweep's rules could not judge: their own medians are all there is."""
    rows = sweep.of_role(names.SWEEP, experiment)
    told = rows.get(names.REJUDGED.column, pd.Series(dtype=str)).dropna()
    rules = dict(word.split("=", 1) for words in told for word in str(words).split())
    descended = schemes[schemes["verdict"].ne(names.FAILED) & schemes["verdict"].ne("")]
    other = pd.Series(False, index=descended.index)
    for key, value in rules.items():
        other |= descended[names.setting(key)].astype(str) != value
    if not other.any():
        return []
    labels = "; ".join(descended["label"][other])
    return [
        f"Judged as before, not by {' '.join(told)}: {labels}, of which the store has medians over "
        "several starts alone."
    ]
