"""What is to be said of jobs that were judged again by other rules."""

import pandas as pd

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.words import sentences


def told(sweep: Sweep, experiment: str) -> list[str]:
    """Return what was lost with another best step, and which jobs are shown as judged before."""
    schemes = sweep.of_role(names.SCHEME, experiment)
    return [*_lost(schemes), *_as_before(sweep, experiment, schemes)]


def _lost(schemes: pd.DataFrame) -> list[str]:
    if names.AGAIN.column not in schemes:
        return []
    said = []
    for words, rows in schemes.dropna(subset=names.AGAIN.column).groupby(names.AGAIN.column):
        labels = [names.label_of(word) for word in str(words).split(",")]
        told = {"schemes": "; ".join(rows["label"]), "what": ", ".join(dict.fromkeys(labels))}
        said.append(sentences.said("judged_again", **told).text)
    return said


def _as_before(sweep: Sweep, experiment: str, schemes: pd.DataFrame) -> list[str]:
    """Return which jobs the sweep's rules could not judge: their own medians are all there is."""
    rows = sweep.of_role(names.SWEEP, experiment)
    given = rows.get(names.REJUDGED.column, pd.Series(dtype=str)).dropna()
    rules = dict(word.split("=", 1) for words in given for word in str(words).split())
    descended = schemes[schemes["verdict"].ne(names.FAILED) & schemes["verdict"].ne("")]
    other = pd.Series(False, index=descended.index)
    for key, value in rules.items():
        other |= descended[names.setting(key)].astype(str) != value
    if not other.any():
        return []
    labels = "; ".join(descended["label"][other])
    return [sentences.said("judged_before", rules=" ".join(given), schemes=labels).text]
