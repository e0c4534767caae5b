"""What a job tells of itself while it is at work."""

import io
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from normbench.command.sweep.progress import (
    SHADOWS_PHASE,
    Pace,
    Progress,
    describe_reading,
    estimate_seconds_left,
    format_duration,
    report_phase,
)
from normbench.datasets.on_disk.npy import NpyPoints, npy
from normbench.datasets.on_disk.row_groups import RowGroups
from normbench.datasets.on_disk.row_selection import SelectedRows

X = np.arange(3000.0).reshape(500, 6)


@pytest.fixture
def clock(monkeypatch):
    """The seconds that have passed; a test lets them pass."""
    seconds = [0.0]
    monkeypatch.setattr("normbench.command.sweep.progress.time.monotonic", lambda: seconds[0])
    return seconds


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.arange(500) % 2)
    return tmp_path / "X.npy"


def told(clock, progress, iterations, seconds=1.0):
    for k in iterations:
        progress(k)
        clock[0] += seconds


def test_progress_tells_where_a_job_goes_on(clock, capsys):
    progress = Progress("job")
    progress.begin(1000)
    told(clock, progress, range(400, 431))
    assert capsys.readouterr().err.splitlines() == [
        "job: goes on from iteration 400 of 1000",
        "job: iteration 410 of 1000, 10 min left",
        "job: iteration 420 of 1000, 10 min left",
        "job: iteration 430 of 1000, 10 min left",
    ]


class Ticks:
    """Stands in for a thread that looks now and then: it does so when it is told to."""

    def __init__(self, clock):
        self.clock, self.looks, self.set = clock, 0, lambda: None

    def wait(self, seconds):
        self.clock[0] += 6
        self.looks += 1
        return self.looks > 6


def test_a_phase_that_takes_long_is_told(clock, capsys, monkeypatch):
    progress = Progress("job 2 of 3", total_seconds_left=lambda: 240)
    progress.stopped = Ticks(clock)
    progress.current_phase = "reads the data", 0.0  # so that no thread begins
    progress.phase("fits the scheme")
    progress._watch()
    assert capsys.readouterr().err.splitlines() == [
        "job 2 of 3: fits the scheme, 12 s so far; 4 min left in all",
        "job 2 of 3: fits the scheme, 24 s so far; 4 min left in all",
        "job 2 of 3: fits the scheme, 36 s so far; 4 min left in all",
    ]


def test_a_thread_tells_of_a_phase_and_ends(monkeypatch, capsys):
    monkeypatch.setattr("normbench.command.sweep.progress.CHECK_SECONDS", 0.001)
    monkeypatch.setattr("normbench.command.sweep.progress.QUIET_SECONDS", 0.01)
    before = set(threading.enumerate())
    with report_phase("all jobs are done", "draws"):
        (thread,) = set(threading.enumerate()) - before
        time.sleep(0.3)
    thread.join(10)
    assert not thread.is_alive()
    assert capsys.readouterr().err.startswith("all jobs are done: draws, 0 s so far\n")


def test_after_the_last_iteration_a_job_descends_again(clock):
    progress = Progress("job")
    progress.current_phase = "descends", 0.0
    progress.begin(3)
    told(clock, progress, range(4))
    assert progress.current_phase == (SHADOWS_PHASE, 3.0)


def test_what_is_left_of_a_command_follows_from_its_jobs_that_are_done(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("normbench.command.sweep.progress.time.time", lambda: now[0])
    assert estimate_seconds_left(0.0, 0, 5)() is None
    assert estimate_seconds_left(0.0, 0, 1)() is None
    left = estimate_seconds_left(0.0, 2, 5)  # 50 seconds a job
    assert left() == 150
    now[0] = 120
    assert left() == 130
    now[0] = 1000
    assert left() == 0


def test_what_is_no_iteration_does_not_go_on(clock, capsys):
    progress = Progress("export", unit="job")
    progress.begin(20)
    clock[0] += 10
    told(clock, progress, range(1, 3), 10)
    assert capsys.readouterr().err.splitlines() == [
        "export: job 1 of 20, 3 min left",
        "export: job 2 of 20, 3 min left",
    ]


def test_a_bar_begins_where_a_job_goes_on(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    progress = Progress("job")
    progress.begin(1000, lambda: "5 GB read at 1 GB/s")
    progress(400)
    progress(410)
    progress.last_refresh = 0.0  # long ago
    progress(430)
    progress.bar.refresh()
    progress.end("done")
    assert "goes on from iteration 400 of 1000" in screen.getvalue()
    assert "430/1000" in screen.getvalue()
    assert "5 GB read at 1 GB/s" in screen.getvalue()
    assert (
        max(len(line) for line in re.split(r"\x1b\[\S*?[A-Za-z]|[\r\n]", screen.getvalue())) <= 100
    )


def test_a_slow_first_iteration_is_no_measure_of_the_others():
    """As of lbfgs on MNIST: 30 seconds for the first, 0.1 for each of the others."""
    pace = Pace(0, 0.0, warm=False)
    pace.mark(1, 30.0)
    assert pace.seconds_left(100) is None
    pace.mark(2, 30.1)
    assert pace.seconds_left(100) == pytest.approx(9.8)


def test_the_time_that_is_left_follows_the_latest_pace():
    pace = Pace(0, 0.0, warm=True)
    for k in range(1, 11):
        pace.mark(k, 10.0 * k)
    assert pace.seconds_left(1000) == pytest.approx(9900)
    for k in range(11, 400):
        pace.mark(k, 100 + 0.1 * (k - 10))
    assert pace.seconds_left(1000) == pytest.approx(60.1, rel=0.02)
    assert len(pace._marks) < 150


def test_long_times_are_told_in_minutes_and_hours():
    said = {0: "0 s", 119: "119 s", 121: "2 min", 719: "12 min", 7199: "120 min"}
    said |= {7200: "2 h 0 min", 11100: "3 h 5 min", 100000: "27 h 47 min"}
    assert {seconds: format_duration(seconds) for seconds in said} == said


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", ">f8"])
def test_every_byte_of_a_file_that_is_read_is_counted(tmp_path, kind):
    np.save(tmp_path / "X.npy", X.astype(kind))
    points = NpyPoints("dataset.path=X.npy", tmp_path / "X.npy")
    size = X.astype(kind).nbytes
    assert points.bytes_read == 0
    points[:]
    assert points.bytes_read == size
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda row: points[row : row + 1], range(500)):
            pass
    assert points.bytes_read == 2 * size


def test_of_a_parquet_file_the_columns_that_are_read_are_counted(tmp_path):
    """As they are packed: measured, 17% more than random numbers take by themselves."""
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((5000, 4)), columns=list("abcd"))
    table.to_parquet(tmp_path / "x.parquet", row_group_size=1000)
    points = RowGroups("dataset.path=x.parquet", tmp_path / "x.parquet", ("a", "c"))
    points[:]
    size = 5000 * 2 * 8
    assert size / 2 < points.bytes_read < 1.5 * size
    before = points.bytes_read
    points[4100:4900]  # of the group that this thread has
    assert points.bytes_read == before
    points[:1000]
    assert points.bytes_read == pytest.approx(1.2 * before, rel=0.01)


def test_both_parts_of_one_file_are_counted_once(file, clock):
    points = NpyPoints("dataset.path=X.npy", file)
    parts = [SelectedRows(points, np.arange(500) % 2 == part) for part in (0, 1)]
    parts[0][:]
    read = describe_reading(SimpleNamespace(x=parts[0], x_test=parts[1]))
    clock[0] += 2
    before = points.bytes_read
    for part in parts:
        part[:]
    size = points.bytes_read - before
    assert size >= X.nbytes
    # What was read before the job does not count.
    assert read() == f"{size / 1e9:.3g} GB read at {size / 2e9:.3g} GB/s"


def test_points_in_memory_are_not_read(file):
    assert describe_reading(npy(str(file), str(file.with_name("y.npy")))) is None


def test_progress_tells_what_is_read(clock, capsys):
    progress = Progress("job")
    progress.begin(100, lambda: "96 GB read at 1.1 GB/s")
    told(clock, progress, range(13), 8.5)
    assert capsys.readouterr().err.splitlines()[-1] == (
        "job: iteration 12 of 100, 96 GB read at 1.1 GB/s, 12 min left"
    )


def test_nothing_is_told_of_a_job_that_was_cut_off():
    def cut_off():
        with progress:
            progress.phase("descends")
            raise KeyboardInterrupt

    progress = Progress("job 1")
    with pytest.raises(KeyboardInterrupt):
        cut_off()
    assert progress.stopped.is_set()
