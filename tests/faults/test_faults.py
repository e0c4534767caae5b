"""Kills at any moment, a full disk, two commands: nothing lost, doubled, halved or changed."""

import os
import resource
import signal
import time
from functools import partial

import numpy as np
import pytest

from normbench.results.store.comparison_files import Comparison
from normbench.results.store.job_records import JobRecord
from tests.faults import bench

pytestmark = pytest.mark.slow

WORDS = ("normalizer=identity,standard,minmax,pca_sphere", "seed=1,2", "start=normal")
WORDS += ("iterations=300", "step_sizes=[0.1,1]", "figures=[]", "theory=none", "refine=false")
JOBS = 8


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What is recorded where nothing happens, and the seconds that it takes."""
    folder, began = tmp_path_factory.mktemp("undisturbed"), time.monotonic()
    ended = bench.end(bench.start(folder, *WORDS))
    assert ended.code == 0, ended.err
    return bench.descents(folder), time.monotonic() - began


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")])
@pytest.mark.parametrize("kills", [pytest.param(3), pytest.param(50, marks=[pytest.mark.whole])])
def test_kills_at_random_lose_double_and_change_nothing(tmp_path, undisturbed, launcher, kills):
    wanted, seconds = undisturbed
    rng, before = np.random.default_rng(kills + len(launcher)), {}
    for _ in range(kills):
        started = bench.start(tmp_path, *WORDS, *launcher)
        time.sleep(rng.uniform(0, 1.2 * seconds))
        os.killpg(started.process.pid, signal.SIGKILL)
        bench.end(started)
        for file in tmp_path.glob("outputs/records/*.npz"):
            JobRecord.load(file)  # each one is whole
        assert set(before) <= set(bench.recorded(tmp_path))
        before = bench.descents(tmp_path)
    ended = bench.run(tmp_path, *WORDS, *launcher)
    assert ended.code == 0, ended.err
    found = bench.descents(tmp_path)
    assert found.keys() == wanted.keys()
    for key, descent in wanted.items():
        for name, array in descent.items():
            np.testing.assert_array_equal(found[key][name], array)
    (file,) = tmp_path.glob("outputs/*/comparison.json")  # it was taken up again each time
    comparison = Comparison.read(file.parent)
    assert comparison.has_ended
    assert sorted(comparison.keys) == sorted(wanted)


def test_two_commands_at_once_run_each_job_once(tmp_path, undisturbed):
    started = [bench.start(tmp_path, *WORDS) for _ in range(2)]
    ended = [bench.end(each) for each in started]
    assert [each.code for each in ended] == [0, 0], ended
    assert bench.descents(tmp_path).keys() == undisturbed[0].keys()
    assert "".join(each.err for each in ended).count(": done (") == JOBS


def limited(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_disk_that_is_full_is_one_line_and_nothing_half_written(tmp_path, monkeypatch):
    popen = bench.subprocess.Popen

    def small(*words, preexec_fn, **options):
        return popen(*words, preexec_fn=partial(limited, 6000), **options)

    with monkeypatch.context() as patch:
        patch.setattr(bench.subprocess, "Popen", small)
        ended = bench.end(bench.start(tmp_path, *WORDS))
    assert ended.code == 1, ended.err
    assert "Traceback" not in ended.err
    assert "cannot be written (File too large); 8 of 8 jobs are not recorded" in ended.err
    assert not [*tmp_path.glob("outputs/records/*")]
    assert bench.run(tmp_path, *WORDS).code == 0


def test_a_damaged_record_is_made_anew(tmp_path):
    words = ("normalizer=standard", *WORDS[2:])
    assert bench.run(tmp_path, *words).code == 0
    (file,) = tmp_path.glob("outputs/records/*.npz")
    file.write_bytes(file.read_bytes()[:1000])
    again = bench.run(tmp_path, *words)
    assert again.code == 0
    assert "reused" not in again.out
    assert JobRecord.load(file).steps
