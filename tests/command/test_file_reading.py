"""What is told while a file is read and there is no iteration yet."""

import re
import time

import numpy as np
import pytest

from normbench.command.sweep import file_reading
from normbench.command.sweep.file_reading import FileReading
from normbench.command.sweep.progress import Progress
from normbench.datasets.on_disk import files_on_disk
from normbench.datasets.on_disk.npy import NpyPoints


@pytest.fixture
def points(tmp_path, monkeypatch):
    """Points of a file, the only one; the clock is at 10 s."""
    np.save(tmp_path / "X.npy", np.zeros((1000, 4)))
    monkeypatch.setattr(files_on_disk, "open_points", set())
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    points = NpyPoints("dataset.path=X.npy", tmp_path / "X.npy")
    points.count_bytes(-points.bytes_read)
    return points


def test_bytes_and_the_time_that_is_left_are_told(points, monkeypatch):
    reading = FileReading("job 1")
    assert reading.lines() == []
    size = points.opened.stamp[0]
    points.count_bytes(size // 4)
    monkeypatch.setattr(time, "monotonic", lambda: 20.0)
    assert reading.lines() == ["X.npy, 8.03e-06 GB of 3.21e-05 GB read, 30 s left"]
    points.count_bytes(size)
    assert re.search(r" GB read for the 2\. time, \d+ s left$", reading.lines()[0])


def test_a_file_that_is_opened_later_is_told_of_from_its_first_byte(points, monkeypatch):
    files_on_disk.open_points.clear()
    reading = FileReading("job 1")
    points.count_bytes(points.opened.stamp[0] // 2)
    files_on_disk.open_points.add(points)
    monkeypatch.setattr(time, "monotonic", lambda: 20.0)
    assert reading.lines()[0].endswith("GB read, 10 s left")


def test_lines_come_by_themselves_until_the_first_iteration(points, monkeypatch, capsys):
    monkeypatch.undo()
    monkeypatch.setattr(files_on_disk, "open_points", {points})
    monkeypatch.setattr(file_reading, "FIRST_LINE_SECONDS", 0.01)
    monkeypatch.setattr(file_reading, "QUIET_SECONDS", 0.01)
    progress, said = Progress("job"), ""
    with FileReading("job 1") as reading:
        progress.first_done = reading.stop
        points.count_bytes(100)
        while "job 1: X.npy" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
        progress.begin(10)
        progress(0)
        reading._thread.join(5)
        assert not reading._thread.is_alive()
