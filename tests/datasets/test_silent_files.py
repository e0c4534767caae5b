"""Files that look like regular ones and may never give a byte: refused, or waited for a while."""

import os
import threading

import pytest

from normbench.datasets import UserError
from normbench.datasets.arrays import npz
from normbench.datasets.files import csv, parquet
from normbench.datasets.on_disk import files_on_disk
from normbench.datasets.on_disk.npy import npy

LOADERS = {"csv": csv, "npz": npz, "parquet": parquet, "npy": npy}


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="Linux has these files")
def test_a_file_of_the_systems_own_is_refused(kind, linked, tmp_path):
    path = "/proc/version"
    if linked:
        path = str(tmp_path / f"my.{kind}")
        os.symlink("/proc/version", path)
    with pytest.raises(UserError, match=rf"^dataset\.path={path}: is a file of the system's own"):
        LOADERS[kind](path)


@pytest.mark.parametrize("kind", LOADERS)
def test_a_file_that_gives_nothing_is_waited_for_no_longer_than_that(kind, tmp_path, monkeypatch):
    """A pipe without a writer stands for a disk that does not answer."""
    path = tmp_path / f"my.{kind}"
    os.mkfifo(path)
    monkeypatch.setattr(files_on_disk.Path, "is_file", lambda file: True)
    monkeypatch.setattr(files_on_disk, "FIRST_BYTE_SECONDS", 0.05)
    with pytest.raises(UserError, match=rf"^dataset\.path={path}: gives nothing within"):
        LOADERS[kind](str(path))
    with path.open("wb"):  # lets the thread go
        pass
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(1)
