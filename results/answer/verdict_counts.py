"""What is to be said of jobs that were judged again by other rules."""

from normbench import names
from normbench.results.store.runs import Sweep
from normbench.results.words import sentences


def told(sweep: Sweep, experiment: str) -> list[str]:
    """Return what was lost with another best step."""
    schemes = sweep.of_role(names.SCHEME, experiment)
    if names.AGAIN.column not in schemes:
        return []
    said = []
    for words, rows in schemes.dropna(subset=names.AGAIN.column).groupby(names.AGAIN.column):
        labels = [names.label_of(word) for word in str(words).split(",")]
        told = {"schemes": "; ".join(rows["label"]), "what": ", ".join(dict.fromkeys(labels))}
        said.append(sentences.said("judged_again", **told).text)
    return said
