"""What waits on disk, what stands in its way, and what the store has of a job."""

import dataclasses
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from normbench import names
from normbench.datasets import UserError
from normbench.recording.resume import leftovers, recovery
from normbench.recording.store import connection as store
from normbench.recording.store import records
from normbench.recording.store.connection import Store, StoreLostError
from normbench.recording.store.places import suggested_path
from normbench.results.pages import drawn
from normbench.results.pages.drawn import RecordedFigures
from normbench.results.safe import files
from normbench.results.store import owner
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord, RunRecord
from tests import door, stores

NAME = "data-cost"


@pytest.fixture
def writer(tmp_path, with_store):
    return door.writer(stores.of(tmp_path))


def record(writer, number=0, fingerprint="ab", parent="", **more):
    job = {"job": f"s1/{number}", "sweep_id": "s1", "fingerprint": fingerprint, "descent": "cd"}
    shared = {"sweep_id": "s1", "normalizer": "standard"}
    steps = [
        RunRecord(f"step {n}", shared, [("train/cost", 0.5, k) for k in range(3)]) for n in "ab"
    ]
    scheme = RunRecord("standard", {**shared, **job}, [("train/cost", 0.5, 0)])
    return JobRecord(
        writer.store.safe_uri, NAME, parent, {"iterations": "2"}, scheme, steps, **more
    )


@pytest.fixture
def pending(tmp_path):
    """The folder in which the records of a sweep that is no more wait."""
    folder = tmp_path / "outputs" / "s1" / leftovers.PENDING
    folder.mkdir(parents=True)
    (folder.parent / leftovers.LEDGER).write_text("{}")
    return folder


def statuses(folder):
    """Return the name and the status of each run of a folder's store, the first made first."""
    return stores.of(folder).ask("select r.name, r.status from runs r order by r.start_time")


def link(path):
    path.with_name("there").write_bytes(b"theirs")
    path.symlink_to("there")


def bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("words.npy", b"\0" * 10_000_000)


def far_too_much(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


def listen(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


IN_THE_WAY = {
    "a pipe": os.mkfifo,
    "a link": link,
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a folder": Path.mkdir,
    "a packed file": bomb,
    "a sparse file": far_too_much,
    "words": lambda path: path.write_text("words"),
    "a socket": listen,
}


@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_what_is_no_record_is_set_aside_and_nobody_waits_for_it(
    writer, pending, tmp_path, kind, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    record(writer, 1, "cd").save(pending / "1.npz")
    IN_THE_WAY[kind](pending / "0.npz")
    assert leftovers.tidy(writer, tmp_path / "outputs") == 1
    assert "0.refused: could not be logged and is set aside" in capsys.readouterr().err
    assert [path.name for path in pending.glob("*.npz")] == []
    assert not (pending / "there").exists() or (pending / "there").read_bytes() == b"theirs"
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    assert capsys.readouterr().err == ""


def test_a_folder_that_leads_elsewhere_is_left_alone(writer, pending, tmp_path):
    record(writer).save(pending / "0.npz")
    moved = tmp_path / "theirs"
    shutil.move(pending.parent, moved)
    pending.parent.symlink_to(moved)
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    pending.parent.unlink()
    pending.parent.mkdir()
    (pending.parent / leftovers.LEDGER).write_text("{}")
    pending.symlink_to(moved / leftovers.PENDING)
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    assert (moved / leftovers.PENDING / "0.npz").exists()


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a folder"])
def test_a_lock_that_is_no_file_makes_nobody_wait(writer, pending, tmp_path, kind, capsys):
    IN_THE_WAY[kind](pending.parent / owner.LOCK)
    record(writer).save(pending / "0.npz")
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    assert "its records are left as they are" in capsys.readouterr().err
    assert owner.is_locked(pending.parent) is None
    with pytest.raises(OSError, match="is no regular file"):
        leftovers.lock_new_folder(pending.parent)
    IN_THE_WAY[kind](tmp_path / "outputs" / f".jobs.{os.getuid()}")
    with (
        pytest.raises(OSError, match="is no regular file"),
        leftovers.only_one("ab", tmp_path / "outputs"),
    ):
        pass


def test_a_draft_in_the_way_is_not_followed(writer, tmp_path):
    link(tmp_path / "0.draft")
    record(writer).save(tmp_path / "0.npz")
    assert (tmp_path / "there").read_bytes() == b"theirs"
    assert JobRecord.load(tmp_path / "0.npz") == record(writer)


HELD = """
import sys
from pathlib import Path
from normbench.recording.resume import leftovers, recovery
with leftovers.only_one("cd", Path(sys.argv[1])):  # as a job locks its descent
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.commands
def test_a_record_of_a_job_that_another_runs_is_left_for_later(writer, pending, tmp_path):
    """Nobody waits, however long the other takes."""
    record(writer).save(pending / "0.npz")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HELD, str(tmp_path / "outputs")], stdin=pipe, stdout=pipe, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        assert leftovers.tidy(writer, tmp_path / "outputs") == 0
        other.communicate()
    assert leftovers.tidy(writer, tmp_path / "outputs") == 1
    assert not pending.exists()


def test_while_records_are_read_the_others_go_on(writer, pending, tmp_path):
    """Another command that holds the sweep's folder does not keep this one."""
    record(writer).save(pending / "0.npz")
    with (pending.parent / owner.LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert leftovers.tidy(writer, tmp_path / "outputs") == 0
        with pytest.raises(UserError, match="another comparison is at work"):
            leftovers.lock_new_folder(pending.parent)
    assert leftovers.tidy(writer, tmp_path / "outputs") == 1


def test_a_lock_is_lost_with_its_folder(pending):
    with leftovers.lock_new_folder(pending.parent) as lock:
        assert leftovers.is_held(lock, pending.parent)
        assert owner.is_locked(pending.parent)
        shutil.rmtree(pending.parent)
        assert not leftovers.is_held(lock, pending.parent)
        pending.parent.mkdir()
        with leftovers.lock_new_folder(pending.parent):
            assert not leftovers.is_held(lock, pending.parent)


@pytest.mark.parametrize(
    ("tags", "gone"),
    [
        ({}, False),
        ({"folder": "/nowhere"}, False),
        ({"folder": "/nowhere", "host": socket.gethostname()}, True),
        ({"folder": "/nowhere", "host": socket.gethostname(), "pid": "1"}, False),
        ({"folder": "/nowhere", "host": socket.gethostname(), "pid": str(os.getpid())}, True),
        ({"folder": "/nowhere", "host": socket.gethostname(), "pid": "no number"}, True),
        ({"folder": "/nowhere", "host": "another", "pid": "1"}, False),
        ({"folder": "a\0b", "host": "another"}, False),
    ],
)
def test_a_sweep_without_its_folder_lives_as_long_as_its_process(tags, gone):
    assert (owner.is_alive(tags) is False) is gone


@pytest.mark.parametrize(
    ("host", "status"), [(socket.gethostname(), "KILLED"), ("another", "RUNNING")]
)
def test_the_runs_of_a_sweep_that_is_known_to_be_dead_are_ended(writer, tmp_path, host, status):
    writer.start_sweep(NAME, "s1", {"folder": "/nowhere", "host": host})
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    assert [found for _, found in statuses(tmp_path)] == [status]


def test_a_sweeps_lock_that_another_user_put_there_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / owner.LOCK)
    assert owner.is_alive({"folder": str(tmp_path), "host": "another"}) is None


def remove(database):
    for file in database.parent.glob("mlflow.db*"):
        file.unlink()


def replace(database):
    remove(database)
    sqlite3.connect(database).close()


@pytest.mark.sqlite("a file that is removed")
@pytest.mark.parametrize("happens", [remove, replace])
def test_what_cannot_be_read_back_is_not_taken_for_written(writer, happens):
    writer.start_sweep(NAME, "s1", {})
    written = writer.write(record(writer))
    assert list(writer.store.statuses([written, "none"])) == [written]
    happens(writer.store.database)
    assert writer.client.get_run(written).info.status == "FINISHED"  # an open connection's word
    with pytest.raises(StoreLostError, match="cannot be read back"):
        writer.write(record(writer, 1))
    assert writer.store.statuses([written]) == {}


def test_a_job_whose_run_has_another_status_is_not_taken_for_written(writer, monkeypatch):
    def tell_failed(store, run_ids):
        return dict.fromkeys(run_ids, "FAILED")

    monkeypatch.setattr(type(writer.store), "statuses", tell_failed)
    with pytest.raises(StoreLostError, match="cannot be read back"):
        writer.write(record(writer))


@pytest.mark.sqlite("the log beside the file")
def test_what_the_log_of_a_database_held_is_not_taken_for_written(writer, monkeypatch):
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    writer.client._seconds = 0.2
    writer.write(record(writer))
    for ending in ("wal", "shm"):
        Path(f"{writer.store.database}-{ending}").unlink()
    with pytest.raises(StoreLostError, match="cannot be read back"):
        writer.write(record(writer, 1))


def test_the_runs_of_a_sweep_that_goes_on_are_left_alone(writer, tmp_path):
    writer.start_sweep(NAME, "s1", {})
    assert writer.end_abandoned(lambda tags: False) == 0
    assert [status for _, status in statuses(tmp_path)] == ["RUNNING"]


def test_the_steps_of_a_job_that_was_cut_off_are_killed_with_it(writer, tmp_path, monkeypatch):
    parent = writer.start_sweep(NAME, "s1", {})
    writer.write(record(writer, 0, parent=parent))

    def cut_off(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "_log_arrays", cut_off)
    with pytest.raises(KeyboardInterrupt):
        writer.write(record(writer, 1, parent=parent))
    assert writer.end_abandoned(lambda tags: True) == 2
    found = statuses(tmp_path)
    whole = ["FINISHED"] * 3
    assert [status for _, status in found] == ["KILLED", *whole, *["KILLED"] * 3]


def test_a_record_goes_once_it_was_written_by_whoever(writer, pending, tmp_path):
    record(writer).save(pending / "0.npz")
    equal = writer.write(record(writer, 5))
    assert leftovers.tidy(writer, tmp_path / "outputs") == 0
    assert not pending.exists()
    assert writer.client.get_run(equal).data.tags["sweep.s1"] == "0"


REFUSED = "a job that the store refuses"
WAITING = {
    "a job": ({}, False, 1, []),
    "a job whose sweep was deleted": ({"parent": "0" * 32}, False, 1, []),
    "a failed job, beside one that is equal to it": ({"failure": "Traceback"}, True, 1, []),
    "a job of another store": ({"store": "sqlite:///there"}, False, 0, ["0.npz"]),
    REFUSED: ({"params": {"a?": "1"}}, False, 0, ["0.refused"]),
}


REFUSES_WHOLE = pytest.mark.sqlite("a server has no transactions")  # what is begun stays


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=REFUSES_WHOLE) if kind == REFUSED else kind for kind in WAITING],
)
def test_what_waits_is_written_once_left_or_set_aside(writer, pending, tmp_path, kind, capsys):
    change, has_equal, count, left = WAITING[kind]
    if has_equal:
        writer.write(record(writer, 5))
    dataclasses.replace(record(writer), **change).save(pending / "0.npz")
    for written in (count, 0):  # by the next command, and by that after it
        assert leftovers.tidy(writer, tmp_path / "outputs") == written
        assert sorted(file.name for file in pending.glob("*")) == left
    schemes = [status for name, status in statuses(tmp_path) if name == "standard"]
    failed = ["FAILED"] * ("failure" in change)
    assert schemes == ["FINISHED"] * (count + has_equal - len(failed)) + failed
    query = "select value from tags where key = 'mlflow.parentRunId'"
    assert not any(parent == "0" * 32 for (parent,) in stores.of(tmp_path).ask(query))
    refused = "0.refused: could not be logged and is set aside (" in capsys.readouterr().err
    assert refused == (left == ["0.refused"])


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("params", [{}, {"a?": "1"}], ids=["taken", "refused"])
def test_a_job_is_recorded_on_a_full_disk_and_as_failed_where_its_record_is_refused(
    writer, tmp_path, monkeypatch, params, is_full
):
    def fill(record, file):
        file.parent.mkdir(parents=True)
        file.with_suffix(".draft").write_text("half")
        raise OSError("no space")

    if is_full:
        monkeypatch.setattr(JobRecord, "save", fill)
    one = dataclasses.replace(record(writer), params=params)
    header = records.RecordHeader(writer.store.safe_uri, NAME, "", {}, one.scheme.tags)
    ledger = {"process": os.getpid(), "sweep_id": "s1"}
    outcome = recovery.write_record(writer, header, one, tmp_path / "s1", ledger)
    run = writer.client.get_run(outcome["run_id"])
    assert (run.info.status, outcome.get("failure")) == (
        ("FAILED", "bug") if params else ("FINISHED", None)
    )
    left = [file.name for file in (tmp_path / "s1" / leftovers.PENDING).iterdir()]
    assert left == (["0.refused"] if params and not is_full else [])


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_job_waits_with_its_ledger_while_the_store_is_away(
    writer, tmp_path, monkeypatch, is_removed
):
    """Its file may have been removed meanwhile, with the folder of the sweep."""
    folder, one = tmp_path / "s1", record(writer)

    def lose(record):
        if is_removed:
            shutil.rmtree(folder)
        raise StoreLostError("it is away")

    monkeypatch.setattr(writer, "write", lose)
    header = records.RecordHeader(writer.store.safe_uri, NAME, "", {}, one.scheme.tags)
    ledger = {"process": os.getpid(), "sweep_id": "s1"}
    outcome = recovery.write_record(writer, header, one, folder, ledger)
    assert outcome == {"failure": "store", "reason": "it is away", "run_id": ""}
    assert [file.name for file in (folder / leftovers.PENDING).iterdir()] == ["0.npz"]
    assert json.loads((folder / leftovers.LEDGER).read_text()) == ledger


def test_a_suggested_place_is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert suggested_path("mlflow.db") == tmp_path / "mlflow.db"
    with pytest.raises(UserError, match=str(tmp_path)):
        _ = Store.at("sqlite:////proc/none/mlflow.db", None, tmp_path).client


def test_only_regular_files_of_a_size_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert files.read_bounded(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="is larger than 4 bytes"):
        files.read_bounded(tmp_path / "file", 4)
    for kind in ("a pipe", "a link", "a folder"):
        IN_THE_WAY[kind](tmp_path / kind)
        with pytest.raises(OSError, match="is no regular file"):
            files.read_bounded(tmp_path / kind, 5)
    with pytest.raises(OSError, match="is no regular file"):
        files.read_bounded(Path("/dev/zero"), 5)


class Tags:
    """A store that says what figures an equal sweep drew."""

    def __init__(self, folder, drawn):
        self.tags = {names.FOLDER.key: str(folder), names.DRAWN_FILES.key: drawn}

    def tags_of_sweep_with(self, *_):
        return self.tags


@pytest.mark.parametrize(
    "name", ["figures/base/style.py", "report/explorer.js", "report/report.html.jinja"]
)
def test_what_draws_changes_what_figures_are_known_by(tmp_path, monkeypatch, name):
    for file in (
        "figures/base/style.py",
        "report/explorer.js",
        "report/report.html.jinja",
        "figures/base/style.pyc",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("a")
    monkeypatch.setattr(drawn, "DRAWING_CODE_FOLDER", tmp_path)

    def digest():
        return RecordedFigures(None, tmp_path, {}, []).digest

    before = digest()
    (tmp_path / "figures/base/style.pyc").write_text("b")
    assert digest() == before
    (tmp_path / name).write_text("b")
    assert digest() != before


def test_figures_are_copied_from_a_neighbour_and_nothing_else_is(tmp_path):
    import hashlib
    import json

    mine = tmp_path / "outputs" / "mine"
    for place in (mine, tmp_path / "outputs" / "other", tmp_path / "elsewhere" / "other"):
        place.mkdir(parents=True)
        (place / "a.png").write_bytes(b"drawn")
        (place / "secret.txt").write_bytes(b"drawn")
        os.mkfifo(place / "pipe.png")
    (mine / "a.png").unlink()
    told = hashlib.sha256(b"drawn").hexdigest()[:16]

    def copied(folder, name, copy=True):
        known = RecordedFigures(Tags(folder, json.dumps({name: told})), mine, {NAME: "1"}, [])
        return known.files(copy)

    neighbour = tmp_path / "outputs" / "other"
    assert copied(neighbour, "a.png", copy=False) == {NAME: [neighbour / "a.png"]}
    assert not (mine / "a.png").exists()
    assert copied(neighbour, "a.png") == {NAME: [mine / "a.png"]}
    assert (mine / "a.png").read_bytes() == b"drawn"
    for folder, name in {
        neighbour: "secret.txt",
        tmp_path / "elsewhere" / "other": "a.png",
        tmp_path / "outputs": "other/a.png",
        neighbour / ".": "../other/a.png",
        Path("/dev"): "zero",
    }.items():
        assert copied(folder, name) is None
    assert copied(neighbour, "pipe.png") is None


def test_arrays_of_a_record_come_back(writer, tmp_path):
    arrays = {"path": {"weights": np.arange(6.0).reshape(2, 3)}}
    record(writer, arrays=arrays).save(tmp_path / "0.npz")
    found = JobRecord.load(tmp_path / "0.npz").arrays
    assert np.array_equal(found["path"]["weights"], arrays["path"]["weights"])


def test_a_job_waits_for_the_disk_once_all_of_it_is_written(writer, monkeypatch):
    seen = []

    def settle(_):
        found = writer.client.search_runs([writer._experiment(NAME)])
        seen.append({run.info.status for run in found})

    monkeypatch.setattr(Store, "sync", settle)
    writer.write(record(writer))
    assert seen == [{"FINISHED"}]


def test_a_ledger_is_that_of_the_last_sweep_in_a_folder_though_it_was_removed(tmp_path):
    ledger = tmp_path / leftovers.LEDGER
    with pytest.raises(FileNotFoundError):
        recovery.read_ledger(ledger)
    for number, sweep in enumerate(("first", "second")):
        ledger.write_text(f'{{"sweep_id": "{sweep}"}}')
        os.utime(ledger, ns=(number, number))  # however fast this machine is
        assert recovery.read_ledger(ledger) == {"sweep_id": sweep}
    ledger.unlink()
    assert recovery.read_ledger(ledger) == {"sweep_id": "second"}


def test_a_folder_of_a_sweep_is_made_with_those_above_it(tmp_path):
    with leftovers.lock_new_folder(tmp_path / "a" / "b") as lock:
        assert leftovers.is_held(lock, tmp_path / "a" / "b")
    with leftovers.lock_new_folder(tmp_path / "a" / "b"):  # once it was given back
        pass
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(FileNotFoundError):
        leftovers.lock_folder(bare)
    assert list(bare.iterdir()) == []


def test_a_folder_that_goes_while_it_is_locked_is_made_once_more(tmp_path, monkeypatch):
    folder, true, calls = tmp_path / "a" / "b", leftovers.lock_folder, []

    def lock(locked, create=False):
        calls.append(create)
        if len(calls) == 1:
            shutil.rmtree(tmp_path / "a")
        return true(locked, create)

    monkeypatch.setattr(leftovers, "lock_folder", lock)
    with leftovers.lock_new_folder(folder) as held:
        assert leftovers.is_held(held, folder)
    assert calls == [True, True]


def test_a_lock_that_was_removed_before_it_was_held_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "is_held", lambda file, folder: False)
    with pytest.raises(FileNotFoundError) as missing:
        leftovers.lock_folder(tmp_path, create=True)
    assert missing.value.filename == str(tmp_path / owner.LOCK)


@pytest.mark.parametrize(("sweep", "locked"), [("s1", True), ("s1", False), ("another", True)])
def test_the_ledger_of_a_sweep_goes_with_its_folder(tmp_path, sweep, locked):
    folder = tmp_path / "s"
    with leftovers.lock_new_folder(folder) as lock:
        (folder / leftovers.LEDGER).write_text('{"sweep_id": "s1"}')
        leftovers.remove_ledger(folder, sweep, lock if locked else None)
    is_own = sweep == "s1"
    assert (folder / leftovers.LEDGER).exists() != is_own
    assert (folder / owner.LOCK).exists() != (is_own and locked)
    assert folder.exists() != (is_own and locked)


@pytest.mark.parametrize("words", ["[]", "{}", "words", "3"])
def test_a_ledger_that_is_none_stays(tmp_path, words):
    (tmp_path / leftovers.LEDGER).write_text(words)
    leftovers.remove_ledger(tmp_path, "s1", None)
    assert (tmp_path / leftovers.LEDGER).read_text() == words


def test_jobs_of_two_descents_run_at_once_and_those_of_one_do_not(tmp_path):
    """The lock is the process's own: another process asks for it."""
    one, other = "0123456789abcdef" * 4, "f" * 64
    with leftovers.only_one(one, tmp_path, wait=False) as is_mine:
        assert is_mine
        command = (
            "import sys; from pathlib import Path; "
            "from normbench.recording.resume.leftovers import only_one\n"
            "for descent in sys.argv[2:]:\n"
            "    with only_one(descent, Path(sys.argv[1]), wait=False) as mine: print(mine)"
        )
        words = [sys.executable, "-c", command, str(tmp_path), one, other]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "True"]
    assert [path.name for path in tmp_path.iterdir()] == [f".jobs.{os.getuid()}"]
    assert (tmp_path / f".jobs.{os.getuid()}").stat().st_mode & 0o777 == 0o600


def of_sweep(folder, status="RUNNING"):
    tags = {names.FOLDER.key: str(folder), names.SWEEP_ID.key: "s1"}
    return SimpleNamespace(info=SimpleNamespace(status=status), data=SimpleNamespace(tags=tags))


def test_a_sweep_is_at_work_while_it_runs_and_holds_its_folder(tmp_path):
    with leftovers.lock_new_folder(tmp_path):
        leftovers.refuse_at_work([of_sweep(tmp_path, "FINISHED")])
        with pytest.raises(ResultsError, match="comparison s1: is at work; stop it, or wait"):
            leftovers.refuse_at_work([of_sweep(tmp_path, "FINISHED"), of_sweep(tmp_path)])
    leftovers.refuse_at_work([of_sweep(tmp_path)])
    tags = leftovers.owner_tags(tmp_path)
    assert tags == {"host": socket.gethostname(), "pid": str(os.getpid()), "folder": str(tmp_path)}


def test_what_waits_is_read_in_order_and_drafts_of_it_go(pending):
    for name in ("1.npz", "0.npz", "0.refused", "2.draft"):
        (pending / name).write_text("")
    (pending / "3.draft").mkdir()
    assert [file.name for file in leftovers._waiting(pending.parent)] == ["0.npz", "1.npz"]
    left = sorted(path.name for path in pending.iterdir())
    assert left == ["0.npz", "0.refused", "1.npz", "3.draft"]
    assert leftovers._has_records(pending.parent)
    (pending.parent / leftovers.LEDGER).unlink()
    assert not leftovers._has_records(pending.parent)
    (pending.parent / leftovers.LEDGER).mkdir()
    assert not leftovers._has_records(pending.parent)
