"""What the one writer leaves of a sweep that stopped."""

import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest

from normbench.datasets import UserError
from normbench.recording.store.writer import Writer
from normbench.results.store.job_records import RunRecord
from tests import door, stores


@pytest.fixture
def writer(tmp_path, with_store):
    return door.writer(stores.of(tmp_path))


def test_a_job_cut_off_is_killed_and_not_taken_for_written(writer):
    sweep = writer.start_sweep("data-cost", "s1", {})
    job = RunRecord("standard", {"job": "s1/0", "sweep_id": "s1"})
    scheme = writer._create("data-cost", job, "scheme", sweep)
    assert writer.end_abandoned(lambda tags: tags["sweep_id"] == "s1", "FAILED") == 2
    status = {run: writer.client.get_run(run).info.status for run in (sweep, scheme)}
    assert status == {sweep: "FAILED", scheme: "KILLED"}
    assert not writer.has_ended_job("data-cost", "s1/0")
    assert writer.end_abandoned(lambda tags: True) == 0


def test_a_job_that_differs_beside_its_grid_is_found(writer):
    sweep = writer.start_sweep("data-cost", "s1", {})
    job = RunRecord("standard", {"job": "s1/0", "grid_descent": "g", "descent": "d"})
    writer.finish(writer._create("data-cost", job, "scheme", sweep), "FINISHED")
    assert writer.has_grid("data-cost", "g", "other")
    assert not writer.has_grid("data-cost", "g", "d")
    assert not writer.has_grid("data-cost", "h", "other")


def test_the_id_of_a_comparison_is_given_once_although_its_own_run_is_deleted(writer):
    sweep_id, parents = writer.start_new_sweep(["data-cost", "other-cost"], "s", {"jobs": "1"})
    assert sweep_id == "s"
    assert sorted(parents.values()) == sorted(writer.sweep_runs("s").values())
    job = RunRecord("standard", {"sweep_id": "s", "sweep.s": "0"})
    scheme = writer._create("data-cost", job, "scheme", parents["data-cost"])
    for run in parents.values():
        writer.client.delete_run(run)
    assert writer.unused_sweep_id("s") == "s.2"
    writer.tag(scheme, {"sweep_id": "another"})  # a job of another comparison, which `s` reused
    assert writer.unused_sweep_id("s") == "s.2"
    writer.untag(scheme, ["sweep.s"])
    assert writer.unused_sweep_id("s") == "s"


def test_no_call_takes_more_than_a_server_does(writer):
    sizes = {"metrics": [], "params": []}

    def log_batch(run_id, **entries):
        for kind, given in entries.items():
            sizes[kind].append(len(given))

    writer.client = SimpleNamespace(log_batch=log_batch)
    writer.log_points("r", [("m", 0.5, 3, k) for k in range(2001)])
    writer.log_params("r", {f"p{number}": "" for number in range(201)})
    assert sizes == {"metrics": [1000, 1000, 1], "params": [100, 100, 1]}


@pytest.mark.sqlite("a server has no transactions")
def test_comparisons_that_start_at_once_get_different_ids(writer, tmp_path, monkeypatch):
    ids, ready, together = [], threading.Barrier(2), threading.Barrier(2, timeout=0.2)
    writers = [door.writer(stores.of(tmp_path)) for _ in range(2)]
    unused_sweep_id = Writer.unused_sweep_id

    def ask_together(self, preferred):
        """Wait for the other one between the question and the answer, if it can ask meanwhile."""
        unused_id = unused_sweep_id(self, preferred)
        with suppress(threading.BrokenBarrierError):
            together.wait()
        return unused_id

    monkeypatch.setattr(Writer, "unused_sweep_id", ask_together)

    def start(writer):
        unused_sweep_id(writer, "s")  # opens the store, which takes longer than to ask
        ready.wait()
        ids.append(writer.start_new_sweep(["data-cost"], "s", {})[0])

    threads = [threading.Thread(target=start, args=[writer]) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ids) == ["s", "s.2"]


def test_an_experiment_that_was_deleted_is_told_in_one_line(writer):
    writer.start_sweep("data-cost", "s", {})
    (experiment,) = writer.sweep_runs("s")
    writer.client.delete_experiment(experiment)
    with pytest.raises(UserError, match="the experiment data-cost was deleted there; restore it"):
        Writer(writer.store).start_new_sweep(["data-cost"], "s", {})
