"""The folder of records: which jobs are there, who runs a job, and what goes with a comparison."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from normbench import names
from normbench.record.identity import KEY_PART, Keys, covers, judging_settings, requested_arrays
from normbench.results.store import comparison_files
from normbench.results.store.comparison_files import Comparison, record_file
from normbench.results.store.job_records import JobRecord, is_finished

if TYPE_CHECKING:  # it loads scipy and scikit-learn
    from normbench.record.outcome import RecordHeader


def find(home: Path, keys: Keys, params: Mapping[str, Any]) -> str | None:
    """Return the key of a recorded job that makes a job unnecessary; None without one.

    Args:
        home: The folder of comparisons and their records.
        keys: The keys of the job.
        params: Its parameters.

    Returns:
        Its own key, or that of a job of the same descent, judged by the same rules, of which more
        was requested. Failed jobs do not count.
    """
    if is_finished(record_file(home, keys.key)):
        return keys.key
    judged = judging_settings(params)
    covering = _covering(home, keys, params)
    return next((key for key, job in covering if judging_settings(job.params) == judged), None)


def judge_again(home: Path, keys: Keys, header: "RecordHeader") -> JobRecord | None:
    """Return the record of a job from one of its descent that other rules judged; None without one.

    It is None, too, where every such record has no histories, or loses by the new rules something
    that the job requests.

    Args:
        home: The folder of comparisons and their records.
        keys: The keys of the job.
        header: The header of its record.
    """
    from normbench.record.rejudge import rejudge

    for _, job in _covering(home, keys, header.params):
        record = rejudge(job, header)
        if record and not has_lost(record, header.params):
            return record
    return None


def _covering(home: Path, keys: Keys, params: Mapping[str, Any]) -> Iterator[tuple[str, JobRecord]]:
    """Yield the recorded jobs of a descent that have all that a job requests, with their keys."""
    for file in sorted(record_file(home, "").parent.glob(f"{keys.descent[:KEY_PART]}*.npz")):
        if not is_finished(file):
            continue
        with suppress(OSError, ValueError):  # damaged: as if it were not there
            job = JobRecord.load(file)
            if covers(job.params, params) and not has_lost(job, params):
                yield file.stem, job


def has_lost(job: JobRecord, params: Mapping[str, Any]) -> bool:
    """Return whether a job that was judged again has lost arrays or numbers that are requested."""
    lost_names = set(job.scheme.tags.get(names.DESCEND_AGAIN.key, "").split(","))
    # Settings of their own request these numbers, not the setting `record`. A run that has lost
    # one had it requested, and `covers` has found that the job requests the same numbers.
    requested_metrics = (names.CRITICAL, *names.CROSS_VALIDATED)
    return bool(
        lost_names & {*requested_arrays(params), *(metric.key for metric in requested_metrics)}
    )


@contextmanager
def claim(home: Path, keys: Keys) -> Iterator[None]:
    """Wait until no other process runs a job of the same descent, and keep others out."""
    file = record_file(home, "").with_name(f".{keys.descent[:KEY_PART]}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file):
        yield
        # Whoever waits for the file finds the record, and runs nothing.
        file.unlink(missing_ok=True)


def shared_keys(chosen: Sequence[Comparison]) -> set[str]:
    """Return the keys of comparisons' jobs that other comparisons of their home have, too."""
    ids = {comparison.id for comparison in chosen}
    others = [other for other in comparison_files.recorded(chosen[0].home) if other.id not in ids]
    return {key for comparison in chosen for key in comparison.keys} & {
        key for other in others for key in other.keys
    }


def delete(chosen: Sequence[Comparison]) -> None:
    """Delete comparisons of one home with their folders, and the records that no other one has.

    The file of a comparison goes last: what was cut off can be deleted again.
    """
    shared = shared_keys(chosen)
    for comparison in chosen:
        for key in set(comparison.keys) - shared:
            record_file(comparison.home, key).unlink(missing_ok=True)
        for entry in comparison.folder.iterdir():
            if entry.name != comparison_files.FILE:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (comparison.folder / comparison_files.FILE).unlink()
        with suppress(OSError):
            comparison.folder.rmdir()
