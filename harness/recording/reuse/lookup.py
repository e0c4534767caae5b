"""What is recorded already: a job that holds all that another asks for, or can be judged anew."""

from collections.abc import Mapping, Sequence
from typing import Any

from normbench import names
from normbench.recording.reuse.identity import arrays_asked, covers, judged
from normbench.recording.reuse.recorded import Recorded
from normbench.recording.reuse.rejudge import rejudged
from normbench.recording.store.records import Place
from normbench.recording.store.writer import Writer, input_of
from normbench.results.store.job_records import JobRecord
from normbench.results.store.runs import scheme


def of_descent(writer: Writer, place: Place) -> list[Any]:
    """Return the runs of a job's descent that hold all that it asks for beside its judging."""
    return [
        run
        for run in writer.of_descent(place.experiment, place.tags[names.DESCENT.key])
        if covers(run.data.params, place.params) and not lacks(run.data.tags, place.params)
    ]


def known(found: Sequence[Any], place: Place) -> str | None:
    """Return the id of the finished scheme run that a job need not be run for, else None.

    Of the runs that `of_descent` found the equal one, or else one that was judged by the same
    rules.
    """
    mark = place.tags[names.FINGERPRINT.key]
    equal = [run for run in found if run.data.tags.get(names.FINGERPRINT.key) == mark]
    enough = [run for run in found if judged(run.data.params) == judged(place.params)]
    return next((str(run.info.run_id) for run in [*equal, *enough]), None)


def judged_again(writer: Writer, found: Sequence[Any], place: Place) -> JobRecord | None:
    """Return a job as a run that `of_descent` found gives it, judged by the job's own rules.

    None where there is no such run, or where judging it again loses some of what is asked for.
    """
    for run in found:
        recorded = Recorded(scheme(writer.store.uri, run.info.run_id), run.info.run_id)
        made = rejudged(recorded, place, input_of(run))
        if made and not lacks(made.scheme.tags, place.params):
            return made
    return None


def lacks(tags: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    """Return whether a run that was judged again has lost what is asked for by name."""
    lost = set(tags.get(names.AGAIN.key, "").split(","))
    searched = (names.CRITICAL, *names.CROSS_VALIDATED)
    return bool(lost & {*arrays_asked(wanted), *(metric.key for metric in searched)})
