"""Files that sweeps are taken elsewhere in: their members, limits, and what an import begins."""

import hashlib
import json
import stat
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipInfo

import numpy as np
import pytest

from normbench import names
from normbench.datasets import UserError
from normbench.recording.transfer import archive, copies, exporting, importing
from tests.recording.clients import run as a_run
from tests.recording.test_archive import job as packed_job
from tests.recording.test_archive import members, written


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
    copy = exporting.copy_run(
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
    writer = SimpleNamespace(has_run=lambda run: run in there, run=there.__getitem__)
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
    importing.Import._begin_sweeps(here)
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
        store=SimpleNamespace(sync=lambda: did.append("settle")),
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

    here = SimpleNamespace(writer=SimpleNamespace(create_run=begin), written=[])
    for parent in ("", "p"):
        importing.Import._begin_run(here, a_run_of("s"), parent)
    own = a_run_of("s").tags | {names.ORIGIN.key: "o"}
    assert begun == [("e", "n", own, 1), ("e", "n", own | {names.PARENT.key: "p"}, 1)]
    assert here.written == ["r1", "r2"]
