"""How many jobs a store takes a second, from processes that write the records of a real job."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any

from normbench.results.store.job_records import JobRecord
from tests.stores import Ask

NAME = "breast_cancer-softmax"
SWEEP = "measured"
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 3600.0  # seconds until the writers are ready, and until they are done


@dataclass(frozen=True)
class Written:
    """What some processes wrote, and what it took.

    seconds: from the first write to the last. of_job: the median of a job's. writers, server: the
    processor's seconds a job, of each of the servers. connections: the most that
    the database had at once. errors: of the writers, in one line each. lost, doubled: jobs, by what
    the database holds. right: whether it has every metric, and their sums.
    """

    jobs: int
    processes: int
    seconds: float
    of_job: float
    writers: float
    server: Sequence[float]
    connections: int
    errors: Sequence[str]
    lost: int
    doubled: int
    right: bool

    @property
    def whole(self) -> bool:
        """Whether nothing is lost, doubled or wrong."""
        return not self.errors and self.lost == self.doubled == 0 and self.right

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.seconds


@cache
def prepared() -> JobRecord:
    """Return the record of the default comparison's job: ten step sizes, 100 iterations."""
    from sklearn.preprocessing import StandardScaler

    from normbench.costs import softmax
    from normbench.datasets.bundled import breast_cancer
    from normbench.engine.settings import Settings
    from normbench.job import Job, run
    from normbench.optimizers import gradient_descent
    from normbench.recording.store import records

    data = breast_cancer()
    sizes = tuple(10.0**power for power in range(-7, 3))
    made = run(Job(data, softmax, StandardScaler(), gradient_descent(), Settings(sizes)))
    tags = {
        "normalizer": "standard",
        "sweep_id": SWEEP,
        "job": "",
        "fingerprint": "",
        "descent": "",
    }
    params = {"normalizer": "standard", "iterations": 100, "step_sizes": sizes}
    return records.of_outcome(records.RecordHeader("", NAME, "", params, tags), data, made)


def record(number: int, parent: str) -> JobRecord:
    """Return the record of a job of a number."""
    made = prepared()
    own = {"job": f"{SWEEP}/{number}", "fingerprint": f"{number:016x}", "descent": f"{number:016x}"}
    own |= {f"sweep.{SWEEP}": str(number)}
    return replace(made, parent=parent, scheme=replace(made.scheme, tags=made.scheme.tags | own))


def spent(server: int) -> float:
    """Return the processor's seconds of a server's processes, and of those that have ended.

    They have its session, but PostgreSQL's, each of which begins one of its own.
    """
    total = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if server in (int(parts[1]), int(parts[3])):
            total += sum(map(int, parts[11:15]))
    return total / TICKS


def write(
    uri: str,
    artifacts: str | None,
    ask: Ask,
    jobs: int,
    processes: int,
    servers: Sequence[int] = (),
) -> Written:
    """Write jobs to an empty store by processes of their own; return what it took.

    ask: what its database answers. servers: the numbers of its processes, whose time counts.
    """
    prepared()
    context = multiprocessing.get_context("fork")  # the libraries are read once
    told: Any = context.Queue()
    barrier = context.Barrier(processes + 1)
    _in_process(context, lambda: told.put(_writer(uri, artifacts).start_sweep(NAME, SWEEP, {})))
    parent = told.get(timeout=PATIENCE)
    shares = [range(first, jobs, processes) for first in range(processes)]
    writers = [
        context.Process(target=_share, args=(uri, artifacts, parent, share, barrier, told))
        for share in shares
    ]
    for process in writers:
        process.start()
    barrier.wait(PATIENCE)
    started, before, most = time.monotonic(), [*map(spent, servers)], 0
    while any(process.is_alive() for process in writers) and told.qsize() < processes:
        most = max(most, _connections(ask) if servers else 0)
        time.sleep(0.2)
    seconds = time.monotonic() - started
    server = [(after - first) / jobs for first, after in zip(before, map(spent, servers))]
    shown = [told.get(timeout=PATIENCE) for _ in writers]
    for process in writers:
        process.join()
    times = sorted(taken for one in shown for taken in one["times"])
    return Written(
        jobs,
        processes,
        seconds,
        times[len(times) // 2] if times else float("nan"),
        sum(one["spent"] for one in shown) / jobs,
        server,
        most,
        [error for one in shown for error in one["errors"]],
        **found(ask, jobs),
    )


def found(ask: Ask, jobs: int) -> dict[str, Any]:
    """Return what a database has of the jobs: lost and doubled ones, and whether all is right."""
    role = "(select value from tags t where t.run_uuid = r.run_uuid and t.key = 'role')"
    job = "(select value from tags t where t.run_uuid = r.run_uuid and t.key = 'job')"
    rows = ask(f"select {job} from runs r where {role} = 'scheme' and status = 'FINISHED'")
    there = {str(row[0]) for row in rows}
    expected = {f"{SWEEP}/{number}" for number in range(jobs)}
    sums = {
        key: (count, total)
        for key, count, total in ask("select key, count(*), sum(value) from metrics group by key")
    }
    (steps,) = ask(f"select count(*) from runs r where {role} = 'step' and status = 'FINISHED'")
    right = steps[0] == jobs * len(prepared().steps) and sums.keys() == _sums().keys()
    right = right and all(
        sums[key][0] == jobs * count and isclose(sums[key][1], jobs * total, rel_tol=1e-9)
        for key, (count, total) in _sums().items()
    )
    return {"lost": len(expected - there), "doubled": len(rows) - len(there), "right": right}


def _sums() -> Mapping[str, tuple[int, float]]:
    """Return how many values a job has of each metric, and their sum."""
    sums: dict[str, tuple[int, float]] = {}
    made = prepared()
    for run in (made.scheme, *made.steps):
        for key, value, _ in run.metrics:
            count, total = sums.get(key, (0, 0.0))
            sums[key] = count + 1, total + value
    return sums


def _connections(ask: Ask) -> int:
    return int(
        ask("select count(*) from pg_stat_activity where datname = current_database()")[0][0]
    )


def _writer(uri: str, artifacts: str | None) -> Any:
    from normbench.recording.store.connection import Store
    from normbench.recording.store.writer import Writer

    return Writer(Store.at(uri, artifacts, Path.cwd()))


def _in_process(context: Any, call: Callable[[], Any]) -> None:
    process = context.Process(target=call)
    process.start()
    process.join()


def _share(
    uri: str, artifacts: str | None, parent: str, share: range, barrier: Any, told: Any
) -> None:
    """Write a share of the jobs; tell of the times and the errors."""
    times: list[float] = []
    errors: list[str] = []
    writer = _writer(uri, artifacts)
    barrier.wait(PATIENCE)
    before = time.process_time()
    for number in share:
        started = time.monotonic()
        try:
            writer.write(record(number, parent))
        except Exception:
            errors.append(traceback.format_exc().splitlines()[-1])
        times.append(time.monotonic() - started)
    told.put({"times": times, "errors": errors, "spent": time.process_time() - before})
