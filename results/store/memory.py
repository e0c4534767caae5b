"""Present jobs in memory as runs of a store, so that both are read by the same code."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from normbench import names
from normbench.results.store import runs
from normbench.results.store.job_records import JobRecord, RunRecord

MEMORY_STORE = "memory"
MEMORY_SWEEP = "compare"  # takes the place of a sweep's id


class MemoryClient:
    """Answers the reader's calls of MLflow's client from jobs' records in memory.

    Args:
        records: The jobs, all of one experiment.
        tags: The tags of the sweep's run.
    """

    def __init__(self, records: Sequence[JobRecord], tags: Mapping[str, str]) -> None:
        self.experiment = records[0].experiment
        self.runs: list[Any] = []
        self._series: dict[tuple[str, str], list[Any]] = {}
        self._arrays: dict[str, Mapping[str, Mapping[str, Any]]] = {}
        sweep = self._add(
            RunRecord(MEMORY_SWEEP, {**tags, names.SWEEP_ID.key: MEMORY_SWEEP}), names.SWEEP
        )
        for record in records:
            scheme = self._add(record.scheme, names.SCHEME, sweep, record)
            self._arrays[scheme] = record.arrays
            for step in record.steps:
                self._add(step, names.STEP, scheme)

    def _add(
        self, run: RunRecord, role: str, parent: str = "", job: JobRecord | None = None
    ) -> str:
        """Add a finished run and return its id.

        Args:
            run: The record of the run.
            role: `sweep`, `scheme` or `step`.
            parent: The id of the run above it; empty without one.
            job: The record of a scheme's job, which has its params and data set; None for a run of
                another role.
        """
        run_id = str(len(self.runs))
        last_values: dict[str, float] = {}
        for key, value, step in run.metrics:
            self._series.setdefault((run_id, key), []).append(
                SimpleNamespace(step=step, value=value)
            )
            last_values[key] = value
        tags = {**run.tags, names.ROLE.key: role} | ({names.PARENT.key: parent} if parent else {})
        timestamp = int(time.time() * 1000)
        dataset_inputs = [SimpleNamespace(dataset=SimpleNamespace(**job.dataset))] if job else []
        self.runs.append(
            SimpleNamespace(
                info=SimpleNamespace(
                    run_id=run_id,
                    experiment_id=self.experiment,
                    run_name=run.name,
                    status="FINISHED",
                    start_time=timestamp,
                    end_time=timestamp,
                ),
                data=SimpleNamespace(
                    tags=tags, params=job.params if job else {}, metrics=last_values
                ),
                inputs=SimpleNamespace(dataset_inputs=dataset_inputs),
            )
        )
        return run_id

    def search_experiments(self) -> list[Any]:
        """Return the one experiment."""
        return [SimpleNamespace(experiment_id=self.experiment, name=self.experiment)]

    def get_metric_history(self, run_id: str, key: str) -> list[Any]:
        """Return the points of a run's metric.

        Args:
            run_id: The id of the run.
            key: The key of the metric.

        Returns:
            The points by step; empty where the run has no such metric.
        """
        return self._series.get((run_id, key), [])

    def download_artifacts(self, run_id: str, path: str, folder: str) -> str:
        """Write the arrays of one record of a run into a folder.

        Args:
            run_id: The id of the run.
            path: The path of the artifact, `arrays/<record>.npz`.
            folder: An existing folder.

        Returns:
            The path of the file.
        """
        file = Path(folder) / Path(path).name
        np.savez(file, **self._arrays[run_id][file.stem])
        return str(file)


def sweep(records: Sequence[JobRecord], tags: Mapping[str, str]) -> runs.Sweep:
    """Return jobs in memory as a sweep.

    Args:
        records: The jobs, all of one experiment.
        tags: The tags of the sweep's run.

    Returns:
        The sweep.
    """
    client = MemoryClient(records, tags)
    return runs.sweep_in_memory(client, client.runs, MEMORY_STORE, MEMORY_SWEEP)
