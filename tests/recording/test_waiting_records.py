"""Records that wait on disk for a store that is away, and are written later."""

import json
import os
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from normbench import names
from normbench.recording.resume import leftovers, recovery
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.records import RecordHeader
from normbench.results.store.job_records import JobRecord, RunRecord


def record(store="sqlite:///here", parent="p", failure="", **tags):
    own = {names.JOB.key: "s/7", names.DESCENT.key: "cd", names.FINGERPRINT.key: "f", **tags}
    return JobRecord(store, "e", parent, {}, RunRecord("standard", own), failure=failure)


class Written:
    """A writer that notes what is written, to a store that has what it is told."""

    def __init__(self, jobs=(), equal=None, runs=("p",), errors=()):
        self.store = SimpleNamespace(safe_uri="sqlite:///here")
        self.jobs, self.equal, self.runs, self.errors = jobs, equal, runs, list(errors)
        self.records, self.adopted, self.asked = [], [], []

    def has_ended_job(self, experiment, job):
        return job in self.jobs

    def find_by_fingerprint(self, experiment, fingerprint):
        self.asked.append(fingerprint)
        return self.equal

    def adopt(self, run, job):
        self.adopted.append((run, job))

    def has_run(self, run):
        return run in self.runs

    def write(self, one):
        error = self.errors.pop(0) if self.errors else None
        if error:
            raise error
        self.records.append(one)
        return "new"


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Return a function that recovers a record that waits, and what is left of its file."""

    def recovered(writer, one, is_owner=True):
        asked = []

        @contextmanager
        def only_one(descent, folders, wait):
            asked.append((descent, folders, wait))
            yield is_owner

        monkeypatch.setattr(leftovers, "only_one", only_one)
        monkeypatch.setattr(leftovers.JobRecord, "load", lambda file: one)
        file = tmp_path / "s" / "pending" / "7.npz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        told = leftovers._recover(writer, file, tmp_path)
        assert asked in ([], [(one.scheme.tags.get(names.DESCENT.key, "0"), tmp_path, False)])
        return told, sorted(path.name for path in tmp_path.glob("s/pending/*"))

    return recovered


@pytest.mark.parametrize(("runs", "parent"), [(("p",), "p"), ((), "")])
def test_a_record_that_waits_is_written_below_its_sweep_where_that_is_known(waiting, runs, parent):
    writer = Written(runs=runs)
    assert waiting(writer, record()) == (True, [])
    (one,) = writer.records
    assert (one.parent, one.experiment, one.scheme.name) == (parent, "e", "standard")
    assert writer.adopted == []


def test_a_record_of_another_store_or_of_a_job_that_is_run_is_left(waiting):
    for writer, one, is_owner in (
        (Written(), record("sqlite:///there"), True),
        (Written(), record(), False),
    ):
        assert waiting(writer, one, is_owner) == (False, ["7.npz"])
        assert writer.records == writer.asked == []


def test_a_record_whose_job_the_store_has_goes_and_an_equal_job_joins_its_sweep(waiting):
    there = Written(jobs=("s/7",), equal="old")
    assert waiting(there, record()) == (False, [])
    assert (there.records, there.adopted) == ([], [])
    equal = Written(equal="old")
    assert waiting(equal, record()) == (False, [])
    assert (equal.records, equal.adopted, equal.asked) == ([], [("old", "s/7")], ["f"])
    for failed in (record(failure="Traceback"), record(**{names.FINGERPRINT.key: ""})):
        writer = Written(equal="old")  # such a job is equal to none
        assert waiting(writer, failed) == (True, [])
        assert (writer.asked, writer.adopted, len(writer.records)) == ([], [], 1)


def test_a_record_that_the_store_refuses_is_set_aside_and_one_that_is_away_is_waited_for(
    waiting, capsys
):
    assert waiting(Written(errors=[ValueError("no\nmore")]), record()) == (False, ["7.refused"])
    assert "7.refused: could not be logged and is set aside (no" in capsys.readouterr().err
    with pytest.raises(StoreLostError):
        waiting(Written(errors=[StoreLostError("away")]), record())


@pytest.mark.parametrize(("alive", "ends"), [(True, False), (False, True), (None, False)])
def test_runs_of_sweeps_that_are_known_to_be_dead_are_ended(tmp_path, monkeypatch, alive, ends):
    judged = []
    monkeypatch.setattr(leftovers.owner, "is_alive", lambda tags: alive)
    writer = SimpleNamespace(end_abandoned=lambda abandoned: judged.append(abandoned({})))
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    assert judged == [ends]
    assert (tmp_path / "outputs").is_dir()


HEADER = RecordHeader("-", "e", "p", {}, {names.NORMALIZER.key: "standard"})


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery.JobRecord, "save", save)
    return {"process": os.getpid(), "sweep_id": "s"}


def save(one, file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(one.scheme.name)


def test_a_record_waits_on_disk_while_it_is_written_and_goes_then(tmp_path, ledger):
    seen = []

    def write(one):
        seen.extend(path.name for path in (tmp_path / "pending").iterdir())
        return "new"

    writer = SimpleNamespace(write=write)
    assert recovery.write_record(writer, HEADER, record(), tmp_path, ledger) == {"run_id": "new"}
    assert seen == ["7.npz"]
    assert [*(tmp_path / "pending").iterdir()] == []
    assert json.loads((tmp_path / recovery.LEDGER).read_text()) == ledger


def test_a_record_that_the_disk_does_not_hold_is_written_to_the_store(
    tmp_path, ledger, monkeypatch
):
    def fill(one, file):
        raise OSError("no space")

    monkeypatch.setattr(recovery.JobRecord, "save", fill)
    outcome = recovery.write_record(Written(), HEADER, record(), tmp_path, ledger)
    assert outcome == {"run_id": "new"}
    assert [*tmp_path.iterdir()] == []


def test_a_record_that_is_refused_is_kept_aside_and_its_job_has_failed(tmp_path, ledger):
    writer = Written(errors=[ValueError("too long")])
    outcome = recovery.write_record(writer, HEADER, record(), tmp_path, ledger)
    assert outcome.pop("reason").endswith(": too long")  # and the line that raised it
    assert outcome == {"failure": "bug", "run_id": "new"}
    (failed,) = writer.records
    assert failed.scheme.tags[names.VERDICT.key] == names.FAILED
    assert [path.name for path in (tmp_path / "pending").iterdir()] == ["7.refused"]


@pytest.mark.parametrize(
    "errors",
    [
        [StoreLostError("it is away")],
        [OSError("it is away")],
        [ValueError("no"), StoreLostError("it is away")],
    ],
)
@pytest.mark.parametrize("is_removed", [False, True])
def test_where_the_store_is_away_the_record_waits(tmp_path, ledger, errors, is_removed):
    writer = Written(errors=errors)
    write = writer.write

    def removing(one):
        if is_removed:  # or the disk was full
            (tmp_path / "pending" / "7.npz").unlink(missing_ok=True)
        return write(one)

    writer.write = removing
    outcome = recovery.write_record(writer, HEADER, record(), tmp_path, ledger)
    assert outcome == {"failure": "store", "reason": "it is away", "run_id": ""}
    assert [path.name for path in (tmp_path / "pending").iterdir()] == ["7.npz"]


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_record_that_the_disk_does_not_hold_leaves_no_draft(tmp_path, is_begun):
    file = tmp_path / "s" / "pending" / "7.npz"
    file.parent.mkdir(parents=True)

    def fill(target):
        if is_begun:
            target.with_suffix(".draft").write_text("half")
        raise OSError("no space")

    recovery._save(SimpleNamespace(save=fill), file, {})
    assert [*file.parent.iterdir()] == []
