"""The folder of records: found again, judged again, moved, deleted; whatever ends a process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench.costs import softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent
from normbench.record import archive, folder
from normbench.record.identity import Keys
from normbench.record.outcome import RecordHeader, of_failure, of_outcome
from normbench.results.store.comparison_files import Comparison, record_file, recorded
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import JobRecord, RunRecord, is_finished
from normbench.results.store.runs import load
from tests import door

DESCENT = "a" * 64
PARAMS = {"iterations": 5, "record": ["points"], "rules.tail": 0.1, "start": "zeros"}
ONE, OTHER = (Keys(DESCENT, digit * 64) for digit in "12")


@pytest.fixture(scope="module")
def job():
    """A job that is recorded, with the points."""
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((20, 2)), np.arange(20) % 2
    data = make_dataset("two", points, labels, class_names=["no", "yes"], source="-")
    settings = Settings((0.1, 1.0), iterations=5, theory="none", record=("points",))
    outcome = run(Job(data, softmax, StandardScaler(), gradient_descent(), settings))
    header = RecordHeader("two-softmax", PARAMS, {"normalizer": "standard", "descent": DESCENT})
    return of_outcome(header, data, outcome)


def header(**params):
    return RecordHeader("two-softmax", {**PARAMS, **params}, {"normalizer": "standard"})


def test_a_record_is_read_as_it_was_written(tmp_path, job):
    job.save(tmp_path / "a" / "job.npz")
    again = JobRecord.load(tmp_path / "a" / "job.npz")
    for name in ("experiment", "params", "scheme", "steps", "dataset", "failure", "notes"):
        assert getattr(again, name) == getattr(job, name)
    assert list(again.arrays) == list(job.arrays)
    for name, arrays in job.arrays.items():
        assert again.arrays[name].keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(again.arrays[name][key], array)
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["job.npz"]


@pytest.mark.parametrize("kind", ["cut off", "a pickle", "another format", "no header", "text"])
def test_what_is_no_record_is_named(tmp_path, job, kind):
    file = tmp_path / "job.npz"
    job.save(file)
    content = file.read_bytes()
    if kind == "cut off":
        file.write_bytes(content[: len(content) // 2])
    elif kind == "a pickle":
        np.savez(file, header=np.array([os.system, "touch pwned"], object))
    elif kind == "another format":
        np.savez(file, header=np.frombuffer(b'{"format": 2}', np.uint8))
    elif kind == "no header":
        np.savez(file, points=np.zeros(3))
    else:
        file.write_text("text")
    with pytest.raises(ValueError, match=r"job\.npz: is no record \("):
        JobRecord.load(file)
    assert is_finished(file) == (kind in ("a pickle", "another format"))


def test_a_full_disk_leaves_what_was_there(tmp_path, job, monkeypatch):
    file = tmp_path / "job.npz"
    job.save(file)
    content = file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        job.save(file)
    assert file.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == ["job.npz"]


def test_a_job_is_found_where_all_that_it_asks_is_recorded(tmp_path, job):
    assert folder.find(tmp_path, ONE, PARAMS) is None
    job.save(record_file(tmp_path, ONE.key))
    assert folder.find(tmp_path, ONE, PARAMS) == ONE.key
    assert folder.find(tmp_path, OTHER, {**PARAMS, "record": []}) == ONE.key
    assert folder.find(tmp_path, OTHER, {**PARAMS, "record": ["path"]}) is None
    assert folder.find(tmp_path, OTHER, {**PARAMS, "rules.tail": 0.2}) is None
    again = folder.judge_again(tmp_path, OTHER, header(**{"rules.tail": 0.2}))
    assert again.params["rules.tail"] == "0.2"
    assert folder.judge_again(tmp_path, OTHER, header(record=["path"])) is None
    of_failure(header(), ValueError("no")).save(record_file(tmp_path, ONE.key))
    assert folder.find(tmp_path, ONE, PARAMS) is None
    assert folder.find(tmp_path, OTHER, {**PARAMS, "record": []}) is None


CLAIM = """
import sys
from pathlib import Path
from normbench.record import folder
from normbench.record.identity import Keys
keys = Keys("a" * 64, sys.argv[1] * 64)
with folder.claim(Path("."), keys):
    print("begins", flush=True)
    sys.stdin.readline()
"""


def claiming(place, digit):
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", CLAIM, digit]
    return subprocess.Popen(words, cwd=place, stdin=pipe, stdout=pipe, text=True)


@pytest.mark.slow
def test_jobs_of_one_descent_wait_for_each_other_and_go_on_after_a_kill(tmp_path):
    with claiming(tmp_path, "1") as one:
        assert one.stdout.readline() == "begins\n"
        with claiming(tmp_path, "2") as other:
            time.sleep(1)
            one.send_signal(signal.SIGKILL)
            assert other.stdout.readline() == "begins\n"
            other.communicate("\n")
        assert other.returncode == 0


@pytest.fixture
def home(tmp_path, job):
    """A home of the comparisons `a`, of one job, and `b`, of it and another one."""
    door.keep(tmp_path, "a", "normbench", {ONE.key: job})
    door.keep(tmp_path, "b", "normbench iterations=6", {ONE.key: job, OTHER.key: job})
    (tmp_path / "a" / "melt.png").write_bytes(b"png")
    return tmp_path


def test_what_another_comparison_shares_stays(home):
    one, other = (Comparison.read(home / name) for name in "ab")
    folder.delete([other])
    assert record_file(home, ONE.key).exists()
    assert not record_file(home, OTHER.key).exists()
    assert [comparison.id for comparison in recorded(home)] == ["a"]
    folder.delete([one])
    assert list((home / "records").iterdir()) == []
    assert not (home / "a").exists()


def test_comparisons_are_moved_in_a_file(home, tmp_path_factory):
    there = tmp_path_factory.mktemp("there")
    file = there / "house.zip"
    chosen = [Comparison.read(home / name) for name in "ab"]
    chosen[0].files = {"two-softmax": ["melt.png"]}
    assert archive.write(chosen, file, overwrite=False) == "2 comparisons, 2 jobs"
    with pytest.raises(ResultsError, match="exists"):
        archive.write(chosen, file, overwrite=False)
    assert "a/melt.png" in ZipFile(file).namelist()
    assert archive.read(file, there / "new") == ("2 comparisons, 2 jobs", {})
    assert archive.read(file, there / "new") == ("2 comparisons, 0 jobs", {})
    assert not (there / "new" / "a" / "melt.png").exists()  # of others it may be anything
    for name in "ab":
        first, second = load(home, name).runs, load(there / "new", name).runs
        assert first.drop(columns="started").equals(second.drop(columns="started"))
    door.keep(there / "other", "a", "normbench seed=1", {})
    assert archive.read(file, there / "other")[1] == {"a": "a-2"}


@pytest.mark.parametrize("name", ["../records/x.npz", "/tmp/x.npz", "records/../../x.npz", "a/b/c"])
def test_no_path_leaves_the_folder_that_is_imported_to(home, tmp_path_factory, name):
    file = tmp_path_factory.mktemp("file") / "house.zip"
    archive.write([Comparison.read(home / "a")], file, overwrite=False)
    with ZipFile(file, "a") as packed:
        packed.writestr(name, b"x")
    there = file.parent / "there"
    archive.read(file, there)
    names = {str(entry.relative_to(there)) for entry in there.rglob("*") if entry.is_file()}
    assert names == {f"records/{ONE.key}.npz", "a/comparison.json"}


def test_a_damaged_record_is_not_imported(home, tmp_path_factory):
    file = tmp_path_factory.mktemp("file") / "house.zip"
    record_file(home, ONE.key).write_bytes(b"x")
    archive.write([Comparison.read(home / "a")], file, overwrite=False)
    with pytest.raises(ResultsError, match="cannot be read"):
        archive.read(file, file.parent / "there")
    assert not Path(file.parent / "there").exists()


def test_a_record_that_cannot_be_read_is_named_and_left_out(home):
    record_file(home, OTHER.key).write_bytes(b"x")
    sweep = load(home, "b")
    assert list(sweep.of_role("scheme")["run_id"]) == [ONE.key]
    (note,) = sweep.left_out
    assert OTHER.key in note


def test_a_job_without_tags_is_a_record(tmp_path):
    JobRecord("e", {}, RunRecord("r", {})).save(tmp_path / "r.npz")
    assert JobRecord.load(tmp_path / "r.npz").steps == []
