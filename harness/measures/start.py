"""What the start is under this scheme, where that is not plain."""

from normbench.measures.contract import Findings, Finished, Measure

NOTES = {
    "normal": "start=normal draws the same weights for every scheme, which are another function "
    "under each (start=same_function draws one function)",
    "same_function": "the start is the same function of the training points under every scheme; on "
    "test points it may differ along directions that a scheme dropped",
}


def take(made: Finished) -> Findings:
    """Return the note of a start that is drawn."""
    assert made.descended is not None
    start = made.descended.settings.start
    note = NOTES.get(start) if isinstance(start, str) else None
    return Findings(notes=(note,) if note else ())


MEASURE = Measure(take)
