"""Present jobs in memory as a comparison, so that both are read by the same code."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from normbench.results.store import comparison_files
from normbench.results.store.comparison_files import Comparison, JobEntry
from normbench.results.store.job_records import JobRecord
from normbench.results.store.runs import Sweep, sweep_of

MEMORY_STORE = "memory"
MEMORY_SWEEP = "compare"  # takes the place of a comparison's id


def sweep(records: Sequence[JobRecord], command: str, tags: Mapping[str, str]) -> Sweep:
    """Return jobs in memory as a comparison.

    Args:
        records: The jobs.
        command: What made them.
        tags: The tags of the comparison.

    Returns:
        The comparison.
    """
    by_key = {str(number): record for number, record in enumerate(records)}
    jobs = [JobEntry(record.experiment, key) for key, record in by_key.items()]
    comparison = Comparison(
        Path(MEMORY_SWEEP),
        command,
        "",
        jobs,
        dict(tags),
        comparison_files.FINISHED,
        comparison_files.now(),
    )
    return replace(sweep_of([comparison], by_key), store=MEMORY_STORE)
