"""What is recorded already: a job that is equal to another, or holds all that is asked of it."""

from collections.abc import Mapping
from typing import Any

from normbench.recording.identity import covers, judged
from normbench.recording.records import Place
from normbench.recording.writer import Writer
from normbench.results import names


def known(writer: Writer, place: Place) -> str | None:
    """Return the id of the finished scheme run that a job need not be run for; None without.

    Of the runs of its descent the equal one, or else one that holds all that the job asks for and
    was judged by the same rules.
    """
    found = writer.of_descent(place.experiment, place.tags[names.DESCENT.key])
    equal = [run for run in found if _tag(run, names.FINGERPRINT) == _mark(place)]
    enough = [run for run in found if _holds(run.data.params, place.params)]
    return next((str(run.info.run_id) for run in [*equal, *enough]), None)


def _holds(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return covers(recorded, wanted) and judged(recorded) == judged(wanted)


def _mark(place: Place) -> str:
    return place.tags[names.FINGERPRINT.key]


def _tag(run: Any, tag: names.Tag) -> str:
    return str(run.data.tags.get(tag.key, ""))
