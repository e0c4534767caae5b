"""Parts of recording with stores, clients and files that are made by hand, down to their bounds."""

import hashlib
import json
import os
import stat
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipInfo

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.datasets import UserError
from normbench.recording.resume import checkpoints, leftovers, recovery
from normbench.recording.resume.checkpoints import DescentFile
from normbench.recording.reuse import identity, request
from normbench.recording.reuse.recorded import RecordedRun
from normbench.recording.store import database
from normbench.recording.store import writer as writing
from normbench.recording.store.connection import StoreLostError
from normbench.recording.store.records import RecordHeader
from normbench.recording.transfer import archive, copies, exporting, importing
from normbench.results.safe import files
from normbench.results.store.entities import Param
from normbench.results.store.job_records import JobRecord, RunRecord
from tests import stores as places
from tests.recording.test_archive import job as packed_job
from tests.recording.test_archive import members, written
from tests.recording.test_calls import run as a_run
from tests.recording.test_calls import writer_of

DESCENT = "ab" * 32


# What is kept of a descent.


@pytest.mark.parametrize(("takes", "later"), [(1.0, 60.0), (3.0, 60.0), (10.0, 200.0)])
def test_the_next_saving_is_a_minute_or_twenty_savings_later(tmp_path, monkeypatch, takes, later):
    clock = [100.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])

    def write(file, parts):
        clock[0] += takes

    monkeypatch.setattr(checkpoints, "_write", write)
    file = DescentFile(tmp_path, DESCENT, 60.0)
    clock[0] += 59
    assert not file.due()
    clock[0] += 1
    assert file.due()
    file.save({})
    clock[0] += later - 0.5
    assert not file.due()
    clock[0] += 0.5
    assert file.due()


@pytest.mark.parametrize(("numbers", "is_written"), [(12, True), (13, False)])
def test_arrays_of_a_size_that_can_be_read_again_are_written(
    tmp_path, monkeypatch, numbers, is_written
):
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", 8 * 13)
    monkeypatch.setattr(checkpoints.os, "fsync", lambda number: None)
    place = tmp_path / "a" / "b"
    file = DescentFile(place, DESCENT, 60)
    file.save({"a": np.zeros(3), "b": np.array([{}], object)})  # as one of them takes pickle
    assert not place.exists()
    file.save({"a": np.zeros(numbers - 3), "b": np.zeros(3)})
    assert len([*place.glob("*/*.npz")]) == is_written
    if is_written:
        (folder,) = place.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700  # of this user alone


# What waits on disk.


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

    def knows(self, run):
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


@pytest.mark.parametrize(
    ("wait", "flag"), [((), 0), ((True,), 0), ((False,), leftovers.fcntl.LOCK_NB)]
)
def test_a_descent_has_one_byte_of_the_lock_by_its_first_digits(tmp_path, monkeypatch, wait, flag):
    asked = []
    monkeypatch.setattr(leftovers.fcntl, "lockf", lambda file, *of: asked.append(of))
    descent = "0123456789abcde" + "f" * 49
    with leftovers.only_one(descent, tmp_path / "a" / "b", *wait) as is_mine:
        assert is_mine
    assert asked == [(leftovers.fcntl.LOCK_EX | flag, 1, 0x0123456789ABCDE)]


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


# Which recorded job is reused.

PLAIN = {
    "dataset": {"_target_": "normbench.datasets.gaussian.gaussian"},
    "packages": [],
    "iterations": 5,
    **dict.fromkeys(request.UNRELATED_SETTINGS, None),
}


def test_a_request_is_known_by_its_settings_its_choices_and_the_code(monkeypatch):
    monkeypatch.setattr(request, "_code", lambda: ["code"])
    known = request.digest(PLAIN, {"cost": "softmax"})
    assert request.digest(dict(reversed(PLAIN.items())), {"cost": "softmax"}) == known
    assert len(known) == 64
    for word in request.UNRELATED_SETTINGS:
        if word != "packages":
            assert request.digest(PLAIN | {word: "other"}, {"cost": "softmax"}) == known
    others = [
        request.digest(PLAIN | {"iterations": 6}, {"cost": "softmax"}),
        request.digest(PLAIN, {"cost": "perceptron"}),
    ]
    monkeypatch.setattr(request, "_code", lambda: ["another"])
    others.append(request.digest(PLAIN, {"cost": "softmax"}))
    assert len({known, *others}) == 4


@pytest.mark.parametrize(
    ("changed", "is_known"),
    [
        ({}, True),
        ({"dataset": {"_target_": "normbench.datasets.bundled.iris"}}, True),
        ({"dataset": {"_target_": "normbench.datasets.files.csv"}}, False),
        ({"dataset": {"_target_": "mine.gaussian"}}, False),
        ({"dataset": {}}, False),
        ({"packages": ["mine"]}, False),
    ],
)
def test_a_request_of_files_or_of_a_users_code_has_no_digest(monkeypatch, changed, is_known):
    monkeypatch.setattr(request, "_code", lambda: [])
    assert (request.digest(PLAIN | changed, {}) is not None) == is_known


def test_the_code_of_a_request_is_that_of_every_room_and_its_options(tmp_path, monkeypatch):
    asked = []

    def find(name):
        asked.append(name)
        return SimpleNamespace(origin=str(tmp_path / name / "__init__.py"))

    def digest():
        return request._code.__wrapped__()

    monkeypatch.setattr(request, "find_spec", find)
    for name in ("normbench", "normbench.costs"):
        (tmp_path / name / "inside").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("1")
    known = [digest()]
    assert asked == [f"normbench.{room}" if room else "normbench" for room in request.CODE_ROOMS]
    assert len(known[0]) == 2 + len(request.REQUEST_LIBRARIES)
    (tmp_path / "normbench.costs" / "words.txt").write_text("1")
    assert digest() == known[0]
    for file in ("a.py", "inside/b.yaml", "inside/c.py"):
        (tmp_path / "normbench.costs" / file).write_text("1")
        known.append(digest())
    (tmp_path / "normbench" / "__init__.py").write_text("2")
    known.append(digest())
    assert len({code[0] for code in known}) == 5


@pytest.mark.parametrize(
    ("params", "is_judged"),
    [
        ({"record": "['path']", "iterations": "5"}, True),
        ({"record": "['points']", "iterations": "0"}, False),
        ({"record": "['points']", "iterations": 0}, False),
        ({"record": "[]", "iterations": "0"}, True),
    ],
)
def test_what_is_recorded_without_a_descent_has_no_rules(params, is_judged):
    found = identity.judging_settings({**params, "rules.tail": "0.2"})
    assert bool(found) == is_judged


@pytest.mark.parametrize("has_batches", [True, False])
@pytest.mark.parametrize("x", [np.ones((2, 2)), "a file"], ids=["in memory", "on disk"])
def test_batches_of_points_on_disk_are_told_to_lie_within_blocks(monkeypatch, has_batches, x):
    """Of any other job nothing is added, so that what was recorded of it is found."""
    texts = []
    monkeypatch.setattr(identity, "_digest", lambda text: texts.append(text) or "digest")
    monkeypatch.setattr(identity, "of_identity", lambda part, params: params)
    dataset = SimpleNamespace(x=x, fingerprint="f", task="binary", classes=2)
    identity.identity({"batch_seed": "0"} if has_batches else {}, dataset, ())
    descent, of_grid, _ = map(json.loads, texts)
    wanted = ["f", "binary", 2]
    if has_batches and isinstance(x, str):
        wanted.append("batches within blocks")
    assert descent[1] == of_grid[1] == wanted
    assert descent[2:] == of_grid[2:] == [{}, identity.NUMBERS, []]


def test_a_module_without_a_file_of_code_is_known_by_its_name():
    assert identity.code_of("sys") == "sys"
    assert identity.code_of("numpy._core._multiarray_umath") == "numpy._core._multiarray_umath"
    assert len(identity.code_of("json.decoder")) == 64


STEPS = pd.DataFrame(
    {
        "run_id": ["a", "b", "c"],
        "parent": ["r", "other", "r"],
        names.STEP_SIZE.column: [0.1, 0.5, 1.0],
        names.BEST.column: ["false", "true", "true"],
    }
)


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        (STEPS, 1.0),
        (STEPS[:2], None),
        (STEPS[:1], None),
        (STEPS.drop(columns=names.BEST.column), None),
    ],
)
def test_the_step_size_that_is_shown_is_the_best_of_the_schemes_own(steps, shown):
    sweep = SimpleNamespace(of_role=lambda role: {names.STEP: steps}[role])
    assert RecordedRun(sweep, "r").shown_step_size == shown


def test_a_recorded_run_has_its_arrays_its_parameters_and_its_series():
    schemes = pd.DataFrame(
        {
            "run_id": ["r", "other"],
            "label": ["mine", "theirs"],
            names.RECORDED.column: ["path,points", ""],
            f"{names.PARAMS}cost": ["softmax", "perceptron"],
            "tags.gone": [None, "x"],
        }
    )
    sweep = SimpleNamespace(
        of_role=lambda role: {names.SCHEME: schemes}[role],
        arrays=lambda rows, name: {label: {name: 1} for label in rows["label"]},
        series=lambda run_id, key: {0: 2.0, 5: 1.0} if (run_id, key) == ("r", "m") else {},
    )
    mine = RecordedRun(sweep, "r")
    assert mine.arrays == {"path": {"path": 1}, "points": {"points": 1}}
    assert mine.params == {"cost": "softmax"}
    assert "tags.gone" not in mine.row
    assert [part.tolist() for part in mine.series("m")] == [[0, 5], [2, 1]]
    assert RecordedRun(sweep, "other").arrays == {}


# What is asked of a store.


@pytest.fixture
def own(tmp_path, with_store):
    return places.of(tmp_path).store.client


@pytest.mark.sqlite("of the file itself")
def test_a_run_has_the_times_that_it_is_given_or_the_present_ones(own, monkeypatch):
    monkeypatch.setattr(database.time, "time", lambda: 12.3456)
    given = own.create_run("0", 5, {names.USER.key: "me"}, "one").info
    now = own.create_run("0", None, {}, "two").info
    assert (given.start_time, now.start_time) == (5, 12345)
    assert (given.status, given.run_name, given.end_time) == ("RUNNING", "one", None)
    own.set_terminated(given.run_id, "KILLED", 9)
    own.set_terminated(now.run_id)
    ends = [own.get_run(one.run_id).info for one in (given, now)]
    assert [(end.status, end.end_time) for end in ends] == [("KILLED", 9), ("FINISHED", 12345)]


@pytest.mark.sqlite("of the file itself")
def test_texts_are_cut_off_where_mlflow_cuts_them(own):
    run_id = own.create_run("0", 5, {}, "one").info.run_id
    own.log_batch(run_id, params=[Param("p", "x" * 6001)], tags=[Param("t", "y" * 8001)])
    data = own.get_run(run_id).data
    assert (len(data.params["p"]), len(data.tags["t"])) == (6000, 8000)


@pytest.mark.sqlite("of the file itself")
def test_a_value_is_kept_as_json_that_one_can_read(own, tmp_path):
    run_id = own.create_run("0", 5, {}, "one").info.run_id
    own.log_dict(run_id, [{"a": Path("b")}], "jobs.json")
    file = own.download_artifacts(run_id, "jobs.json", str(tmp_path))
    assert Path(file).read_text() == '[\n  {\n    "a": "b"\n  }\n]'


@pytest.mark.parametrize("folder", [None, Path("here")])
def test_artifacts_that_are_not_in_a_folder_are_mlflows_to_write(monkeypatch, folder):
    asked, wrote = [], []
    mlflow = SimpleNamespace(
        log_text=lambda *of: asked.append(of), log_artifact=lambda *of: asked.append(of)
    )
    monkeypatch.setattr(database.local_artifacts, "write", lambda *of: wrote.append(of))
    monkeypatch.setattr(database.local_artifacts, "copy", lambda *of: wrote.append(of))
    here = SimpleNamespace(_folder=lambda run_id: folder, _mlflow=mlflow)
    database.WritableDatabase.log_text(here, "r", "words", "a.txt")
    database.WritableDatabase.log_artifact(here, "r", "b.png", None)
    if folder is None:
        assert (asked, wrote) == ([("r", "words", "a.txt"), ("r", "b.png", None)], [])
    else:
        assert (asked, wrote) == ([], [(folder, "a.txt", "words"), (Path("b.png"), folder, "")])


def test_an_artifact_of_no_folder_is_a_topmost_one():
    writer, client = writer_of()
    for folder in ("", "figures"):
        writer.log_file("r", Path("a.png"), folder)
    assert client.named("log_artifact") == [("r", "a.png", None), ("r", "a.png", "figures")]


def test_a_user_without_a_name_is_unknown(monkeypatch):
    for error in (KeyError, OSError):

        def fail(error=error):
            raise error

        monkeypatch.setattr("getpass.getuser", fail)
        assert writing._user() == "unknown"


@pytest.mark.parametrize(
    ("code", "said", "reason"),
    [
        (0, "a warning", ""),
        (1, "first\nsecond\nlast words\n", "(last words)"),
        (1, "", "(no reason given)"),
    ],
)
def test_runs_of_a_file_are_collected_by_thousands(monkeypatch, code, said, reason):
    writer, client = writer_of()
    writer.store.uri, asked = "sqlite:////a.db", []

    def run(words, env, **more):
        assert more == {"capture_output": True, "text": True}
        asked.append((words[3].split(","), env["STORE"]))
        return SimpleNamespace(returncode=code, stderr=said)

    monkeypatch.setattr(writing.subprocess, "run", run)
    runs = [a_run(f"r{number}", **{names.ROLE.key: names.SCHEME}) for number in range(1500)]
    deleted = [a_run(f"d{number}") for number in range(501)]
    told = writer.remove(runs, deleted)
    assert told.endswith(reason)
    assert bool(told) == bool(reason)
    ids = [f"r{number}" for number in range(1500)] + [f"d{number}" for number in range(501)]
    blocks = [ids[:1000], ids[1000:2000], ids[2000:]]
    assert asked == [(block, "sqlite:////a.db") for block in blocks[: 1 if code else 3]]
    assert client.named("delete_run") == [(run_id,) for run_id in ids[:1500]]


def test_a_server_keeps_deleted_runs_and_loses_the_artifacts_of_all_but_steps(monkeypatch):
    writer, client = writer_of()
    cleared = []
    monkeypatch.setattr(writer, "_remove_artifacts", lambda run: cleared.append(run.info.run_id))
    monkeypatch.setattr(writing.subprocess, "run", None)
    roles = {"a": names.SWEEP, "b": names.SCHEME, "c": names.STEP}
    runs = [a_run(run_id, **{names.ROLE.key: role}) for run_id, role in roles.items()]
    assert writer.remove(runs).startswith("the server keeps them as deleted runs")
    assert cleared == ["a", "b"]
    assert client.named("delete_run") == [("a",), ("b",), ("c",)]
    assert writer.deleted_of("s") == []


# What moves to another store.


def a_member(name="a", kind=0, flags=0, compression=ZIP_DEFLATED):
    info = ZipInfo(name)
    info.external_attr, info.flag_bits, info.compress_type = kind << 16, flags, compression
    return info


@pytest.mark.parametrize(
    ("changed", "is_plain"),
    [
        ({}, True),
        ({"compression": ZIP_STORED}, True),
        ({"compression": ZIP_BZIP2}, False),
        ({"kind": stat.S_IFREG | 0o644}, True),
        ({"kind": 0o644}, True),
        ({"kind": stat.S_IFDIR | 0o755}, False),
        ({"kind": stat.S_IFLNK | 0o777}, False),
        ({"flags": 0x1}, False),  # encrypted
        ({"flags": 0x802}, True),  # a way to compress, and a name in UTF-8
    ],
)
def test_a_member_is_a_plain_file(changed, is_plain):
    if is_plain:
        archive._check_member(a_member(**changed))
        return
    with pytest.raises(ValueError, match="is no plain file"):
        archive._check_member(a_member(**changed))


def test_a_member_that_is_there_twice_is_refused():
    twice = SimpleNamespace(infolist=lambda: [a_member(), a_member()])
    with pytest.raises(ValueError, match="are not those of its manifest"):
        archive._check(twice, {"a": {"sha256": "", "bytes": 0}}, 9)


@pytest.mark.parametrize(("size", "words"), [(100, "says no format"), (101, "is too long")])
def test_a_manifest_is_read_up_to_its_largest_size(monkeypatch, size, words):
    monkeypatch.setattr(archive, "MAX_MANIFEST", 100)
    packed = SimpleNamespace(
        getinfo=lambda name: SimpleNamespace(file_size=size), read=lambda name: b"{}"
    )
    with pytest.raises(ValueError, match=words):
        archive._members(Path("x.zip"), packed)


def test_a_file_may_hold_a_hundred_times_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "ALLOWED_BYTES", 1000)
    for repeats, is_read in ((30, True), (3000, False)):
        content = members({"artifacts/x": np.random.default_rng(0).bytes(1000) * repeats})
        file = written(tmp_path / "x.zip", content)
        ratio = 1000 * repeats / file.stat().st_size
        assert (10 < ratio < 100) if is_read else (ratio > 100)
        if is_read:
            with archive.unpacked(file) as found:
                assert len(found.content("artifacts/x")) == 1000 * repeats
            continue
        with pytest.raises(UserError, match="would be"), archive.unpacked(file):
            pass


def test_a_file_is_packed_by_blocks_with_its_size_and_checksum(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "BLOCK", 4)
    content = b"0123456789"
    (tmp_path / "a").write_bytes(content)
    with archive.packed(tmp_path / "x.zip", False, {}) as pack:
        assert pack.add_file("f", tmp_path / "a") == hashlib.sha256(content).hexdigest()
        pack.add("g", b"1")
    assert pack.members["f"]["bytes"] == 10
    assert pack.members["g"] == {"sha256": hashlib.sha256(b"1").hexdigest(), "bytes": 1}
    with archive.unpacked(tmp_path / "x.zip") as found:
        assert found.content("f") == content
        found.extract("f", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == content


@pytest.mark.parametrize(
    "metrics",
    [
        {"m": [[0, 1.0, 0]]},  # logged in 1970
        {"m": [[-3, 1.0, 1]]},
        {"m": [[0, 1.0, 3], [1, 1.0, 3]]},
        {"m": [[-1, 1.0, 3], [1, 1.0, 3], [1, 2.0, 3]]},
    ],
)
def test_points_of_a_history_are_distinct(metrics):
    one = copies.job_of(json.dumps(packed_job(metrics=metrics)).encode()).scheme
    assert one.metrics["m"] == [tuple(point) for point in metrics["m"]]


def test_an_artifact_has_a_name_of_two_hundred_bytes_at_most():
    copies._check_artifacts(["a" * 200, "é" * 100, "folder/b"])
    with pytest.raises(ValueError, match="too long"):
        copies._check_artifacts(["a", "b" * 201])


class Recorded:
    """A client whose metrics have a history."""

    def get_metric_history(self, run_id, key):
        return [
            SimpleNamespace(step=step, value=value, timestamp=9)
            for step, value in ((2, 1.0), (0, 3.0))
        ]


@pytest.mark.parametrize(
    ("status", "end", "told"),
    [
        ("FINISHED", 8, ("FINISHED", 8)),
        ("FAILED", 8, ("FAILED", 8)),
        ("KILLED", 8, ("KILLED", 8)),
        ("RUNNING", None, ("KILLED", 5)),  # it was cut off
    ],
)
def test_a_copy_of_a_run_has_its_times_its_values_and_its_checksums(
    tmp_path, monkeypatch, status, end, told
):
    made = []

    def artifact(client, store, run_id, name, folder):
        made.append((store, run_id, name))
        return Path(folder) / name

    monkeypatch.setattr(exporting.stores, "artifact", artifact)
    monkeypatch.setattr(
        exporting.mlflows_own, "last_points", lambda run: {"one": (0, 7.0, 4), "many": (2, 1.0, 9)}
    )
    info = SimpleNamespace(
        run_id="r", run_name="n", status=status, start_time=5, end_time=end, experiment_id="7"
    )
    kept_tags = {names.SWEEP_ID.key: "s"}
    tags = kept_tags | {names.FOLDER.key: "/home/me", names.ORIGIN.key: "first"}
    data = SimpleNamespace(tags=tags, params={"p": "1"})
    run = SimpleNamespace(info=info, data=data, inputs=None)
    keep = {"a": "sha of a", "b": "sha of b"}
    copy = exporting.read(
        Recorded(), "uri", run, "e", ["b", "a"], lambda name, file: keep[file.name]
    )
    assert (copy.status, copy.ended, copy.started) == (*told, 5)
    assert (copy.origin, copy.experiment, copy.name) == ("first", "e", "n")
    assert (copy.tags, copy.params, copy.inputs) == (kept_tags, {"p": "1"}, [])
    assert copy.metrics == {"one": [(0, 7.0, 4)], "many": [(0, 3.0, 9), (2, 1.0, 9)]}
    assert copy.artifacts == keep
    assert made == [("uri", "r", "b"), ("uri", "r", "a")]
    counts = {"runs": 1, "values": 10, "artifacts": 100}
    exporting.count(counts, [copy, copy])
    assert counts == {"runs": 3, "values": 16, "artifacts": 104}


def test_a_run_that_is_no_copy_is_its_own_origin():
    assert exporting.origin(a_run("r")) == "r"
    assert exporting.origin(a_run("r", **{names.ORIGIN.key: "first"})) == "first"
    assert exporting._role(a_run("r")) == ""


@pytest.mark.parametrize(("free", "is_full"), [(29, True), (30, False)])
def test_contents_that_the_disk_does_not_hold_are_refused(tmp_path, monkeypatch, free, is_full):
    monkeypatch.setattr(importing.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    held = {"a": {"bytes": 10}, "b": {"bytes": 20}}
    contents = SimpleNamespace(file=SimpleNamespace(file="x.zip", members=held))
    importing.Contents.refuse_full(contents, tmp_path / "none")
    if not is_full:
        importing.Contents.refuse_full(contents, tmp_path)
        return
    with pytest.raises(UserError, match=r"x\.zip: takes .* of the disk"):
        importing.Contents.refuse_full(contents, tmp_path)


def stored(run_id, stage="active", status="FINISHED", **tags):
    info = SimpleNamespace(run_id=run_id, lifecycle_stage=stage, status=status)
    return SimpleNamespace(info=info, data=SimpleNamespace(tags=tags))


def test_a_run_of_a_file_is_there_as_a_copy_or_as_the_original():
    of_sweep = {names.SWEEP_ID.key: "s"}
    there = {
        "original": stored("original", **of_sweep),
        "deleted": stored("deleted", "deleted", **of_sweep),
        "foreign": stored("foreign"),  # no run of a comparison
        "both": stored("both", **of_sweep),
    }
    copy = stored("new id", **of_sweep)
    writer = SimpleNamespace(knows=lambda run: run in there, run=there.__getitem__)
    here = SimpleNamespace(_imported={"copied": copy, "both": copy}, writer=writer)
    found = {
        origin: importing.Import._find(here, origin)
        for origin in ("original", "deleted", "foreign", "copied", "both", "none")
    }
    assert found == {
        **{"original": there["original"], "deleted": None, "foreign": None},
        **{"copied": copy, "both": copy, "none": None},
    }


def a_run_of(sweep, role=names.SWEEP, origin="o", experiment="e", **tags):
    own = {names.SWEEP_ID.key: sweep, names.ROLE.key: role, **tags}
    return copies.RunCopy(origin, experiment, "n", "FINISHED", 1, 2, own, {}, {}, [], {})


def test_a_sweep_keeps_the_id_that_it_has_in_the_store_or_gets_an_unused_one():
    contents = SimpleNamespace(sweeps=[a_run_of("a", origin="1"), a_run_of("b", origin="2")])
    there = {"2": stored("r", **{names.SWEEP_ID.key: "b.2"})}
    writer = SimpleNamespace(unused_sweep_id=lambda sweep: f"{sweep} unused")
    here = SimpleNamespace(contents=contents, writer=writer, _find=there.get)
    ids = [importing.Import._sweep_id(here, sweep) for sweep in ("a", "b")]
    assert ids == ["a unused", "b.2"]
    here.sweeps = {"a": "a", "b": "b.2"}
    assert importing.Import.new_ids.fget(here) == {"b": "b.2"}


def test_an_import_begins_the_sweeps_that_are_missing_and_ends_those_that_were_cut_off():
    """New tags of an experiment are set, and those that it has stay."""
    sweeps = [a_run_of(name, origin=name) for name in ("new", "whole", "cut off")]
    there = {
        "whole": stored("r1", **{names.SWEEP_ID.key: "whole"}),
        "cut off": stored("r2", status="RUNNING", **{names.SWEEP_ID.key: "cut off"}),
    }
    tagged, begun = [], []
    writer = SimpleNamespace(
        experiment_tags=lambda name: {"note": "mine"},
        tag_experiment=lambda name, tags: tagged.append((name, tags)),
    )

    def begin(run, parent):
        begun.append((run.sweep, parent))
        return "r0"

    here = SimpleNamespace(
        contents=SimpleNamespace(experiments={"e": {"note": "theirs", "more": "1"}}, sweeps=sweeps),
        writer=writer,
        sweeps={"new": "new.2", "whole": "whole", "cut off": "cut off"},
        _find=there.get,
        _begin_run=begin,
        parents={},
        due=[],
    )
    importing.Import._begin(here)
    assert tagged == [("e", {"more": "1"})]
    assert begun == [("new.2", "")]
    assert here.parents == {("new.2", "e"): "r0", ("whole", "e"): "r1", ("cut off", "e"): "r2"}
    assert here.due == [sweeps[0], sweeps[2]]


def import_of_a_job(present, is_copy):
    """Return what importing a job of sweeps s and t does where the store has a run of it."""
    did = []
    members_of = {names.membership(sweep).key: "3" for sweep in "st"}
    scheme = a_run_of("s", names.SCHEME, "o", **members_of)
    steps = [a_run_of("s", names.STEP, origin) for origin in ("p", "q")]

    def begin(run, parent):
        did.append(f"begin {run.origin} below {parent}")
        return f"new {run.origin}"

    def compare(run, run_id, found):
        did.append(f"compare {run_id} with {found.info.run_id}")

    runs = {name: stored(f"new {name}") for name in "opq"}
    writer = SimpleNamespace(
        tag=lambda run, tags: did.append((run, tags)),
        search_runs=lambda query: [runs["q"], runs["p"]] if "new o" in query else ["old step"],
        remove=lambda removed: did.append(f"remove {len(removed)}"),
        finish=lambda run, *how: did.append(f"finish {run}"),
        store=SimpleNamespace(settle=lambda: did.append("settle")),
    )
    here = SimpleNamespace(
        contents=SimpleNamespace(job=lambda name: copies.JobCopy(scheme, steps)),
        sweeps={"s": "s", "t": "t"},
        writer=writer,
        reader=SimpleNamespace(get_run=lambda run: runs["o"]),
        parents={("s", "e"): "sweep"},
        jobs={},
        counts=dict.fromkeys(copies.COUNT_NAMES, 0),
        present_jobs=0,
        _imported={"o": present} if is_copy else {},
        _find=lambda origin: present,
        _begin_run=begin,
        _fill=lambda run, run_id: did.append(f"fill {run_id}"),
        _compare=compare,
    )
    importing.Import._import_job(here, "jobs/o.json")
    return did, here


@pytest.mark.parametrize(
    ("status", "is_copy"),
    [("FINISHED", True), ("FAILED", True), ("FINISHED", False), ("RUNNING", False)],
)
@pytest.mark.parametrize("known", ["s", "st"])
def test_a_job_that_the_store_has_joins_the_sweeps_of_the_file(status, is_copy, known):
    own = {names.membership(sweep).key: "3" for sweep in known}
    did, here = import_of_a_job(stored("there", status=status, **own), is_copy)
    joined = [("there", {names.membership("t").key: "3"})]
    assert did == (joined if known == "s" else [])
    assert (here.jobs, here.present_jobs) == ({"o": "there"}, 1)
    assert set(here.counts.values()) == {0}


@pytest.mark.parametrize("present", [None, stored("there", status="RUNNING")])
def test_a_job_that_is_missing_or_incomplete_is_written_and_its_scheme_ends_last(present):
    did, here = import_of_a_job(present, present is not None)
    assert did == [
        *(["remove 2"] if present else []),  # its step and itself
        *("begin o below sweep", "begin p below new o", "begin q below new o"),
        *("fill new q", "finish new q", "fill new p", "finish new p"),
        *("fill new o", "finish new o", "settle"),
        *(f"compare new {name} with new {name}" for name in "opq"),
    ]
    assert (here.jobs, here.present_jobs) == ({"o": "new o"}, 0)
    assert (here.counts[names.JOBS.key], here.counts["runs"]) == (1, 3)


def test_a_run_that_is_begun_has_its_origin_and_its_parent():
    begun = []

    def begin(*of):
        begun.append(of)
        return f"r{len(begun)}"

    here = SimpleNamespace(writer=SimpleNamespace(begin=begin), written=[])
    for parent in ("", "p"):
        importing.Import._begin_run(here, a_run_of("s"), parent)
    own = a_run_of("s").tags | {names.ORIGIN.key: "o"}
    assert begun == [("e", "n", own, 1), ("e", "n", own | {names.PARENT.key: "p"}, 1)]
    assert here.written == ["r1", "r2"]
