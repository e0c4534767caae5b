"""Find recorded jobs that have all that a new job requests, or that can be judged again."""

from collections.abc import Mapping, Sequence
from typing import Any

from normbench import names
from normbench.recording.reuse.identity import covers, judging_settings, requested_arrays
from normbench.recording.reuse.recorded import RecordedRun
from normbench.recording.reuse.rejudge import rejudge_run
from normbench.recording.store.records import RecordHeader
from normbench.recording.store.writer import Writer, input_of
from normbench.results.store.job_records import JobRecord
from normbench.results.store.runs import load_scheme


def find_runs_of_descent(writer: Writer, header: RecordHeader) -> list[Any]:
    """Return the recorded runs of the descent of a job that have all that the job requests.

    Args:
        writer: The writer to the store.
        header: The header of the record of the job; its tag `descent` has the digest of the
            descent.

    Returns:
        The finished runs of schemes, the latest first, whatever rules judged them.
    """
    return [
        run
        for run in writer.runs_of_descent(header.experiment, header.tags[names.DESCENT.key])
        if covers(run.data.params, header.params) and not lost_request(run.data.tags, header.params)
    ]


def find_equal_run(descent_runs: Sequence[Any], header: RecordHeader) -> str | None:
    """Return the id of a recorded run that a job can reuse as it is.

    Args:
        descent_runs: The result of `find_runs_of_descent`.
        header: The header of the record of the job.

    Returns:
        The id of a run with the fingerprint of the job, or else of one that was judged by the same
        rules, of which more was requested; None without one.
    """
    fingerprint = header.tags[names.FINGERPRINT.key]
    equal = [run for run in descent_runs if run.data.tags.get(names.FINGERPRINT.key) == fingerprint]
    # Each of the runs has all that the job requests; equal rules suffice.
    equally_judged = [
        run
        for run in descent_runs
        if judging_settings(run.data.params) == judging_settings(header.params)
    ]
    return next((str(run.info.run_id) for run in [*equal, *equally_judged]), None)


def rejudge_recorded(
    writer: Writer, descent_runs: Sequence[Any], header: RecordHeader
) -> JobRecord | None:
    """Return the record of a job from a recorded run, judged by the rules of the job.

    Args:
        writer: The writer to the store.
        descent_runs: The result of `find_runs_of_descent`.
        header: The header of the record of the job.

    Returns:
        The record; None where every run has no histories, or loses by the new rules something that
        the job requests.
    """
    for run in descent_runs:
        recorded = RecordedRun(load_scheme(writer.store.uri, run.info.run_id), run.info.run_id)
        record = rejudge_run(recorded, header, input_of(run))
        if record and not lost_request(record.scheme.tags, header.params):
            return record
    return None


def lost_request(tags: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    """Return whether a run that was judged again has lost arrays or numbers that are requested.

    Args:
        tags: The tags of the run.
        wanted: The parameters of the job that might reuse it.

    Returns:
        True where only a new descent can give these arrays or numbers.
    """
    lost_names = set(tags.get(names.DESCEND_AGAIN.key, "").split(","))
    # Settings of their own request these numbers, not the setting `record`. A run that has lost
    # one had it requested, and `covers` has found that the job requests the same numbers.
    requested_metrics = (names.CRITICAL, *names.CROSS_VALIDATED)
    requested_keys = (metric.key for metric in requested_metrics)
    return bool(lost_names & {*requested_arrays(wanted), *requested_keys})
