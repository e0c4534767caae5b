"""Checkpoints on disk: when they are saved, how large they may be, their lock."""

import stat

import numpy as np
import pytest

from normbench.recording.resume import checkpoints, leftovers
from normbench.recording.resume.checkpoints import DescentFile
from normbench.results.safe import files

DESCENT = "ab" * 32


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
