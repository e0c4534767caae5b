"""Jobs a second, by the number of processes that write and by the store that takes them.

`python -m tests.benchmarks.stores [--jobs 240] [--processes 1,2,4,8] [--stores sqlite,server]
[--workers 4] [--delay 0.01]` writes the record of a real job as often as it is told, counts what
the database then holds, and prints a row for each. Exits 1 where anything is lost or doubled.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from normbench.results.store import mlflows_own
from tests.benchmarks.writing import Written, prepared, write
from tests.servers.mlflows import Server, serving
from tests.servers.network import delayed
from tests.servers.ports import HOST
from tests.servers.postgres import postgres
from tests.stores import Ask, Place, of

STORES = ("sqlite", "server")


@dataclass(frozen=True)
class Setting:
    """What is measured: a store, and how many write to it."""

    store: str
    jobs: int
    processes: int
    workers: int = 4
    delay: float = 0.0
    environment: tuple[tuple[str, str], ...] = ()
    connections: int = 100


@contextmanager
def opened(setting: Setting) -> Iterator[tuple[str, str | None, Ask, tuple[int, ...], Path | None]]:
    """Give a store's URI, artifacts, database, its server's processes and the server's log."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        if setting.store == "sqlite":
            file: Place = of(folder)
            yield file.uri, file.artifacts, file.ask, (), None
            return
        with postgres(durable=True, max_connections=str(setting.connections)) as base:
            own = {"environment": dict(setting.environment), "workers": setting.workers}
            with serving(Server(base.create("measured"), folder, **own)) as server:
                far = delayed(server.port, setting.delay) if setting.delay else None
                with far or nullcontext(server.port) as port:
                    servers = (base.process.pid, server.process.pid)
                    uri = f"http://{HOST}:{port}"
                    yield uri, None, lambda query: base.ask("measured", query), servers, server.log


def measured(setting: Setting) -> tuple[Written, int]:
    """Return what was written in a setting, and how often the server answered with an error."""
    with opened(setting) as (uri, artifacts, ask, servers, log):
        done = write(uri, artifacts, ask, setting.jobs, setting.processes, servers)
        refused = len(re.findall(r'HTTP/1.1" 5\d\d', log.read_text())) if log else 0
    return done, refused


def line(setting: Setting, done: Written, refused: int) -> str:
    """Return a row of the table."""
    database, server = done.server or (0.0, 0.0)
    return (
        f"{setting.store:7}{setting.workers:8}{1000 * setting.delay:7.0f}{setting.processes:10}"
        f"{done.jobs:6}{done.rate:9.2f}{done.of_job:9.2f}{done.writers:9.2f}{server:8.2f}{database:8.2f}"
        f"{done.connections:8}{refused:6}{done.lost:6}{done.doubled:8}  "
        f"{'yes' if done.whole else f'no {list(done.errors[:1])}'}"
    )


TITLES = (
    f"{'store':7}{'workers':>8}{'ms':>7}{'processes':>10}{'jobs':>6}{'jobs/s':>9}{'s/job':>9}"
    f"{'writer':>9}{'server':>8}{'base':>8}{'connec':>8}{'5xx':>6}{'lost':>6}{'doubled':>8}"
    "  every metric"
)


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stores")
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--processes", default="1,2,4,8")
    parser.add_argument("--stores", default=",".join(STORES))
    parser.add_argument("--workers", type=int, default=4, help="of mlflow server")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds of the network")
    parser.add_argument("--connections", type=int, default=100, help="that PostgreSQL allows")
    parser.add_argument("--setting", action="append", default=[], help="NAME=VALUE of the server")
    told = parser.parse_args()
    mlflows_own.set_environment(retries=1)
    made = prepared()
    entries = sum(len(run.metrics) for run in (made.scheme, *made.steps))
    cores = len(os.sched_getaffinity(0))
    print(f"a job: {len(made.steps) + 1} runs, {entries} metrics; {cores} cores")
    print(TITLES, flush=True)
    environment = tuple(tuple(word.split("=", 1)) for word in told.setting)
    bad = 0
    for store in told.stores.split(","):
        for processes in map(int, told.processes.split(",")):
            setting = Setting(
                *(
                    store,
                    told.jobs,
                    processes,
                    told.workers,
                    told.delay if store == "server" else 0,
                ),
                environment=environment,
                connections=told.connections,
            )
            done, refused = measured(setting)
            bad += not done.whole
            print(line(setting, done, refused), flush=True)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
