"""Files of an export that are damaged, hostile or another's: one line, and nothing is imported."""

import hashlib
import json
import os
import re
import struct
import sys
import zipfile

import numpy as np
import pytest

from normbench.command.results.commands import main
from normbench.datasets import UserError
from normbench.recording.transfer import archive, copies
from normbench.recording.transfer.archive import packed, unpacked
from normbench.recording.transfer.importing import Contents

ORIGIN, STEP, SWEEP = "a" * 32, "b" * 32, "c" * 32


def run(own, role, **other):
    """A run as it stands in a file; other: what of it is another."""
    tags = {"role": role, "sweep_id": "s", **other.pop("tags", {})}
    numbers = {"status": "FINISHED", "started": 1, "ended": 2, "metrics": {"m": [[0, 1.5, 3]]}}
    words = {"origin": own, "experiment": "e", "name": "n", "params": {"p": "1"}}
    return {**numbers, **words, "tags": tags, "inputs": [], "artifacts": {}, **other}


def job(step=None, **other):
    return {"scheme": run(ORIGIN, "scheme", **other), "steps": [run(STEP, "step", **(step or {}))]}


def members(changed=None, **scheme):
    """The members of a small file; changed: those that are others, None for one that is gone."""
    plain = {
        "experiments.json": {"e": {}},
        f"sweeps/{SWEEP}.json": run(SWEEP, "sweep"),
        f"jobs/{ORIGIN}.json": job(**scheme),
        **(changed or {}),
    }
    return {
        name: value if isinstance(value, bytes) else json.dumps(value).encode()
        for name, value in plain.items()
        if value is not None
    }


def written(file, held, manifest=None, info=lambda name: name):
    """Write a file by hand whose manifest is right, unless another is given."""
    told = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in held.items()
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in held.items():
            made.writestr(info(name), content)
        about = {"format": 1, "normbench": "0", "members": told, **(manifest or {})}
        made.writestr("manifest.json", about if isinstance(about, str) else json.dumps(about))
    return file


def look(file):
    """What a file holds, and its job."""
    with unpacked(file) as found:
        contents = Contents(found)
        return contents, contents.job(contents.jobs[0])


def test_a_small_file_is_read(tmp_path):
    found, one = look(written(tmp_path / "x.zip", members()))
    assert found.ids == {"s"}
    assert one.scheme.metrics == {"m": [(0, 1.5, 3)]}


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o120777 << 16
    return info


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../../x", "artifacts//x", "a\\..\\x", "./x", "x/", "\x1b[2J"]
)
def test_a_name_that_leaves_its_folder_is_refused(name, tmp_path):
    with pytest.raises(UserError, match=r"is no name that a file may have|no plain file"):
        look(written(tmp_path / "x.zip", members({name: b"x"})))


def test_a_link_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no plain file"):
        look(written(tmp_path / "x.zip", members(), info=link))


def test_what_unpacks_to_far_more_is_not_unpacked(tmp_path, monkeypatch):
    bomb = members({"artifacts/x": bytes(archive.ALLOWED_BYTES + 1)})
    file = written(tmp_path / "x.zip", bomb)
    assert file.stat().st_size < archive.ALLOWED_BYTES / archive.MAX_COMPRESSION
    monkeypatch.setattr(hashlib, "file_digest", None)  # nothing is read
    with pytest.raises(UserError, match=r"it is 6.+e-05 GB and would be 0.0671 GB"):
        look(file)


def test_a_size_that_is_told_wrong_is_not_believed(tmp_path):
    """The zip's own list says 10 bytes, where 10 million follow."""
    file = written(tmp_path / "x.zip", members({"artifacts/x": bytes(10**7)}))
    raw = bytearray(file.read_bytes())
    place = raw.find(b"PK\x01\x02")
    while place >= 0:
        if raw[place + 46 : place + 57] == b"artifacts/x":
            raw[place + 24 : place + 28] = struct.pack("<I", 10)
        place = raw.find(b"PK\x01\x02", place + 1)
    file.write_bytes(raw)
    with pytest.raises(UserError, match="is of another size"):
        look(file)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_file_that_is_cut_off_or_changed_is_refused(place, tmp_path):
    file = written(
        tmp_path / "x.zip", members({f"jobs/{ORIGIN}.json": job(params={"p": "1" * 99})})
    )
    whole = file.read_bytes()
    at = int(place * len(whole))
    file.write_bytes(whole[:at])
    with pytest.raises(UserError, match="is no whole file of normbench results export"):
        look(file)
    number = whole.find(b"PK\x01\x02") - 20  # within the manifest's content
    file.write_bytes(whole[:number] + bytes([whole[number] ^ 1]) + whole[number + 1 :])
    with pytest.raises(UserError, match="is no whole file of normbench results export"):
        look(file)


def test_another_checksum_is_refused(tmp_path):
    held = members()
    told = {name: {"sha256": "0" * 64, "bytes": len(text)} for name, text in held.items()}
    with pytest.raises(UserError, match="has another checksum"):
        look(written(tmp_path / "x.zip", held, {"members": told}))


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"format": 2, "normbench": "9.1\x1b[2J"}, r"is of format 2, by normbench 9\.1\\x1b"),
        ({"format": "1"}, "its manifest says no format"),
        ({"members": {}}, "its members are not those of its manifest"),
        ({"members": 3}, "is no whole file"),
        ({"members": {name: {} for name in members()}}, "is no whole file"),
    ],
)
def test_a_manifest_that_is_another_s_is_refused(manifest, words, tmp_path):
    with pytest.raises(UserError, match=words):
        look(written(tmp_path / "x.zip", members(), manifest))


DEEP = b'{"e": ' * (sys.getrecursionlimit() * 50) + b"1"


@pytest.mark.parametrize(
    "held",
    [
        members(tags={"role": "step"}),
        members(tags={"sweep_id": "s'; drop table runs"}),
        members(tags={"sweep_id": "another"}),
        members(tags={"sweep.another": "0"}),
        members(tags={"x": 3}),
        members(status="RUNNING"),
        members(origin="../" * 10),
        members(origin="f" * 32),
        members(step={"origin": ORIGIN}),
        members(step={"tags": {"sweep_id": "another"}}),
        members(experiment="another"),
        members(started=1e300),
        members(ended=True),
        members(metrics={"m": [["0", 1, 1]]}),
        members(metrics={"m": [[0, "1", 1]]}),
        members(metrics={"m": [[0, 1]]}),
        members(metrics=[]),
        members(inputs=[{"input": {"name": "x"}, "tags": {}}]),
        members(artifacts={"x": "0" * 64}),
        members(artifacts={"../experiments.json": "0" * 64}),
        members({"artifacts/x": b"of nobody"}),
        members({"experiments.json": None}),
        members({"experiments.json": []}),
        members({"experiments.json": DEEP}),
        members({f"jobs/{ORIGIN}.json": b"{}"}),
        members({f"jobs/{ORIGIN}.json": b"\xff"}),
        members({f"jobs/{ORIGIN}.json": {"scheme": run(ORIGIN, "scheme"), "steps": {}}}),
        members({f"sweeps/{'d' * 32}.json": run("d" * 32, "sweep")}),
    ],
    ids=range(28),
)
def test_contents_that_no_export_wrote_are_refused(held, tmp_path):
    with pytest.raises(UserError, match="is no whole file of normbench results export"):
        look(written(tmp_path / "x.zip", held))


LONG = "x" * 100_000
GIVEN = {"name": "x", "digest": "1", "source_type": "t", "source": "s"}


@pytest.mark.parametrize(
    "held",
    {
        "a long parameter": members(params={"p": LONG}),
        "a long parameter's name": members(params={LONG: "1"}),
        "a parameter's name that is a path": members(params={"../p": "1"}),
        "an empty parameter's name": members(params={"": "1"}),
        "a long tag": members(tags={"t": LONG}),
        "an empty tag's name": members(tags={"": "1"}),
        "a tag of a sweep that is not there": members(tags={"sweep.another": "0"}),
        "such a tag of a step": members(step={"tags": {"sweep.another": "0"}}),
        "such a tag of a sweep": members(
            {f"sweeps/{SWEEP}.json": run(SWEEP, "sweep", tags={"sweep.another": "0"})}
        ),
        "no name": members(name=""),
        "a long name": members(name=LONG),
        "two names": members(tags={"mlflow.runName": "another"}),
        "a mark that no database takes": members(params={"p": "a\0b"}),
        "half a letter": members(params={"p": "\ud800"}),
        "an infinite value": members(metrics={"m": [[0, float("inf"), 3]]}),
        "a value that no float holds": members(metrics={"m": [[0, 10**400, 3]]}),
        "a step that no database holds": members(metrics={"m": [[10**400, 1.0, 3]]}),
        "a value before 1970": members(metrics={"m": [[0, 1.0, -3]]}),
        "a doubled value": members(metrics={"m": [[0, 1.0, 3], [1, 1.0, 3], [1, 1.0, 3]]}),
        "a doubled NaN": members(metrics={"m": [[1, float("nan"), 3]] * 2}),
        "two values of one step": members(metrics={"m": [[0, 1.0, 3], [0, 2.0, 4]]}),
        "a metric without values": members(metrics={"m": []}),
        "a long metric's name": members(metrics={LONG: [[0, 1.0, 3]]}),
        "an empty metric's name": members(metrics={"": [[0, 1.0, 3]]}),
        "no time": members(started=0),
        "a data set twice": members(inputs=[{"input": GIVEN, "tags": {}}] * 2),
        "a long data set": members(inputs=[{"input": {**GIVEN, "name": LONG}, "tags": {}}]),
        "a data set of more": members(inputs=[{"input": {**GIVEN, "more": "x"}, "tags": {}}]),
        "a data set's long tag": members(inputs=[{"input": GIVEN, "tags": {"x": LONG}}]),
        "an experiment without a name": members({"experiments.json": {"e": {}, "": {}}}),
        "an experiment with a long name": members({"experiments.json": {"e": {}, LONG: {}}}),
    }.items(),
    ids=lambda held: held[0],
)
def test_what_a_store_would_refuse_or_change_is_refused_before_it_is_made(
    held, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "x.zip", held[1])
    assert main(["import", "x.zip"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"normbench: .*x\.zip: is no whole file of .*; export it again\n", said)
    assert len(said) < 1000
    assert os.listdir(tmp_path) == ["x.zip"]


@pytest.mark.parametrize(
    "names", [["a", "a/b"], ["x" * 201], ["\u00e9" * 150]], ids=["folder", "long", "bytes"]
)
def test_artifacts_that_no_folder_holds_are_refused(names, tmp_path):
    told = dict.fromkeys(names, hashlib.sha256(b"1").hexdigest())
    content = {f"artifacts/{ORIGIN}/{name}": b"1" for name in names}
    held = members(content | {f"jobs/{ORIGIN}.json": job(artifacts=told)})
    with pytest.raises(UserError, match=r"an artifact is a folder|name of an artifact is too long"):
        look(written(tmp_path / "x.zip", held))


def test_a_zero_below_is_the_zero_that_every_store_keeps(tmp_path):
    _, one = look(written(tmp_path / "x.zip", members(metrics={"m": [[0, -0.0, 3]]})))
    assert str(one.scheme.metrics["m"][0][1]) == "0.0"


def test_places_of_another_machine_are_left_out(tmp_path):
    """`results delete` removes what a sweep drew: a file from elsewhere names no folder here."""
    tags = {"folder": "/home/me", "pid": "1", "drawn_files": "{}", "mlflow.parentRunId": STEP}
    _, one = look(written(tmp_path / "x.zip", members(tags=tags | {"imported_from": STEP})))
    assert set(one.scheme.tags) == {"role", "sweep_id", "mlflow.runName"}


def test_a_job_that_is_larger_than_the_memory_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: 1000)
    with pytest.raises(
        UserError, match=r"takes .* of memory, .*; import it on a machine with more"
    ):
        look(written(tmp_path / "x.zip", members()))


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "text", "empty", "another zip"])
def test_what_is_no_export_is_told_in_a_line(kind, tmp_path):
    file = tmp_path / "x.zip"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind in ("text", "empty"):
        file.write_text("text" if kind == "text" else "")
    elif kind == "another zip":
        with zipfile.ZipFile(file, "w") as made:
            made.writestr("word/document.xml", "x")
    words = "cannot be read" if kind in ("missing", "folder", "pipe") else "is no whole file"
    with pytest.raises(UserError, match=rf"^{file}: {words}[^\n]*$"):
        look(file)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "x.zip"
    with pytest.raises(TypeError), packed(file, False, {}) as pack:
        pack.add("a", None)
    assert os.listdir(tmp_path) == []
    (tmp_path / ".x.zip.draft").write_bytes(b"left by an export that was killed" * 99)
    with packed(file, False, {"counts": {"jobs": 1}}) as pack:
        pack.add("a", b"1")
        with pytest.raises(UserError, match="another export writes it"):
            packed(file, False, {}).__enter__()
    with unpacked(file) as found:
        manifest = json.loads(found.content(archive.MANIFEST))
        assert (found.content("a"), manifest["counts"]) == (b"1", {"jobs": 1})
        with pytest.raises(UserError, match="another import reads it"):
            unpacked(file).__enter__()
    before = file.read_bytes()
    with pytest.raises(UserError, match="is there; name another file, or add --overwrite"):
        packed(file, False, {}).__enter__()
    assert file.read_bytes() == before
    with packed(file, True, {}) as pack:
        pack.add("b", b"2")
    with unpacked(file) as found:
        assert found.content("b") == b"2"
    assert os.listdir(tmp_path) == ["x.zip"]


def test_a_folder_that_is_not_there_is_told_of(tmp_path):
    with pytest.raises(UserError, match=r"cannot be written .*; name a file that can"):
        packed(tmp_path / "none" / "x.zip", False, {}).__enter__()


def test_a_name_that_no_file_may_have_is_not_written(tmp_path):
    with (
        pytest.raises(UserError, match="is no name that a file may have"),
        packed(tmp_path / "x.zip", False, {}) as pack,
    ):
        pack.add("artifacts/\\x", b"1")


def test_copies_are_equal_by_every_value_nan_included():
    one = copies.job_of(json.dumps(job(metrics={"m": [[0, float("nan"), 3]]})).encode()).scheme
    two = copies.job_of(json.dumps(job(metrics={"m": [[0, float("nan"), 4]]})).encode()).scheme
    assert (
        one.content_text
        == copies.job_of(copies.serialize(copies.JobCopy(one, []))).scheme.content_text
    )
    assert one.content_text != two.content_text


def test_a_large_file_that_is_not_packed_tightly_is_read(tmp_path, monkeypatch):
    """Beyond the bytes that any file may hold, a hundred times its size is allowed."""
    monkeypatch.setattr(archive, "ALLOWED_BYTES", 1000)
    noise = np.random.default_rng(0).bytes(50_000)
    file = written(tmp_path / "x.zip", members({"artifacts/x": noise}))
    with unpacked(file):
        pass
    monkeypatch.setattr(archive, "MAX_COMPRESSION", 0.5)
    with pytest.raises(UserError, match="would be"), unpacked(file):
        pass


EDGE = 1 << 62


@pytest.mark.parametrize(
    ("changed", "is_read"),
    [
        *(({"metrics": {"m": [[step, 1.5, 3]]}}, True) for step in (1 - EDGE, EDGE - 1)),
        *(({"metrics": {"m": [[step, 1.5, 3]]}}, False) for step in (-EDGE, EDGE)),
        *(({"metrics": {"m": [[0, 1.5, time]]}}, False) for time in (-EDGE, EDGE)),
        *(({"started": time}, True) for time in (1, EDGE - 1)),
        *(({"ended": time}, False) for time in (0, -1, EDGE)),
    ],
    ids=str,
)
def test_whole_numbers_and_times_have_bounds(changed, is_read):
    content = json.dumps(job(**changed)).encode()
    if is_read:
        assert copies.job_of(content).scheme.name == "n"
        return
    with pytest.raises(ValueError, match=r"62|than 0|4611686018427387904"):
        copies.job_of(content)


@pytest.mark.parametrize("sweep", ["a b", "../x", "é", "x" * 251])
def test_each_sweep_of_a_run_is_a_word_of_letters_digits_and_dots(sweep):
    assert copies.job_of(json.dumps(job(tags={"sweep.a-b.2": "0"})).encode())
    with pytest.raises(ValueError, match="a run is no scheme's"):
        copies.job_of(json.dumps(job(tags={f"sweep.{sweep}": "0"})).encode())
