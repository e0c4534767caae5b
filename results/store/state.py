"""Comparisons with what is said of their state: the last one, or those of given ids."""

from collections.abc import Sequence
from pathlib import Path

from normbench.results.store import comparison_files
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import Sweep, of_comparisons


def read(home: Path, sweep_ids: Sequence[str] = ()) -> tuple[Sweep, list[str]]:
    """Load comparisons, together with sentences about their state.

    Args:
        home: The folder of comparisons and their records.
        sweep_ids: The comparisons; without any, the last one with a job.

    Returns:
        The comparisons as one, and the sentences.

    Raises:
        ResultsError: No job is recorded; the message tells the state.
    """
    notes: list[str] = []
    chosen = comparison_files.select(home, sweep_ids)
    if not chosen:
        recorded = comparison_files.recorded(home)
        if not recorded:
            raise comparison_files.empty_home(home)
        chosen = [next((other for other in recorded if other.keys), recorded[0])]
        if chosen[0] is not recorded[0]:  # the last comparison has no recorded job
            notes.append(
                f"The last comparison, {recorded[0].id}, {recorded[0].predicate}. "
                f"Shown is {chosen[0].id}, the last one that has results."
            )
    if not any(comparison.keys for comparison in chosen):
        raise ResultsError(
            "; ".join(
                f"comparison {comparison.id}: has no results yet; it {comparison.predicate}"
                for comparison in chosen
            )
        )
    sweep = of_comparisons(chosen)
    if not sweep.records:
        raise ResultsError(" ".join(sweep.left_out))
    return sweep, [*notes, *sweep.left_out, *comparison_files.sentences(chosen)]
