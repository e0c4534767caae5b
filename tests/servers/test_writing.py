"""Several processes write to a server at once: every metric is there, nothing is doubled."""

import time
import urllib.request

import pytest

from tests.benchmarks import writing
from tests.benchmarks.stores import Setting, line, measured
from tests.mistakes.stores import BODIES
from tests.mistakes.stores import server as a_server
from tests.servers.network import delayed

JOBS, PROCESSES = 4, 2


@pytest.mark.long
@pytest.mark.slow
def test_processes_lose_and_double_nothing():
    setting = Setting("server", JOBS, PROCESSES, workers=1)
    done, refused = measured(setting)
    assert done.whole, line(setting, done, refused)
    assert refused == 0


def test_what_is_lost_doubled_or_wrong_is_found(tmp_path):
    """The check itself, on a file: one job is missing, one is there twice."""
    from tests import stores

    place = stores.file(tmp_path)
    writer = writing._writer(place.uri, place.artifacts)
    parent = writer.start_sweep(writing.NAME, writing.SWEEP, {})
    for number in (0, 1):
        writer.write(writing.record(number, parent))
    assert writing.found(place.ask, 2) == {"lost": 0, "doubled": 0, "right": True}
    writer.write(writing.record(1, parent))
    assert writing.found(place.ask, 3) == {"lost": 1, "doubled": 1, "right": True}
    (run,) = [run for run in writer.runs_of_sweep(writing.SWEEP) if run.info.run_id == parent]
    writer.client.log_metric(run.info.run_id, "train/cost", 7.0)
    assert not writing.found(place.ask, 3)["right"]


def test_a_slow_network_delays_every_answer():
    with (
        a_server() as address,
        delayed(int(address.rpartition(":")[2]), 0.05) as port,
    ):
        started = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/html") as answer:
            assert answer.read() == BODIES["html"][1]
        assert time.monotonic() - started > 0.05
