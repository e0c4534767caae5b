"""Archives of arrays are opened as they were written, or not at all."""

import errno
import os
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest

from normbench.results.safe import files


def test_an_archive_that_numpy_saved_is_opened(tmp_path):
    file = tmp_path / "arrays.npz"
    np.savez(file, x=np.arange(3))
    with files.open_stored_arrays(file) as stream, np.load(stream) as arrays:
        np.testing.assert_array_equal(arrays["x"], np.arange(3))


@pytest.mark.parametrize("compressed", ["all members", "one member"])
def test_an_archive_with_a_compressed_member_is_refused(tmp_path, compressed):
    file = tmp_path / "arrays.npz"
    with ZipFile(file, "w") as archive:
        archive.writestr("x.npy", bytes(range(200)), ZIP_DEFLATED)
        kind = ZIP_DEFLATED if compressed == "all members" else ZIP_STORED
        archive.writestr("y.npy", bytes(range(200)), kind)
    with pytest.raises(ValueError, match="not what was written"), files.open_stored_arrays(file):
        pass


def test_a_file_is_read_up_to_so_many_bytes(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"12345")
    assert files.read_bounded(file, 5) == b"12345"
    assert files.read_bounded(file, 9) == b"12345"
    with pytest.raises(OSError, match="is larger than 4 bytes") as told:
        files.read_bounded(file, 4)
    assert told.value.errno == errno.EFBIG


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "dangling link"])
def test_only_regular_files_are_opened(tmp_path, kind):
    file = tmp_path / "a"
    (tmp_path / "b").write_bytes(b"x")
    if kind == "link":
        file.symlink_to(tmp_path / "b")
    elif kind == "dangling link":
        file.symlink_to(tmp_path / "nothing")
    elif kind == "folder":
        file.mkdir()
    else:
        os.mkfifo(file)
    with pytest.raises(OSError, match="is no regular file") as told:
        files.open_descriptor(file)
    assert told.value.errno == errno.EINVAL


def test_a_new_file_has_the_permissions_that_are_asked_for(tmp_path):
    before = os.umask(0)
    try:
        for name, mode in (("a", None), ("b", 0o600)):
            more = () if mode is None else (mode,)
            os.close(files.open_descriptor(tmp_path / name, os.O_CREAT | os.O_WRONLY, *more))
            assert (tmp_path / name).stat().st_mode & 0o777 == (mode or 0o644)
    finally:
        os.umask(before)
    with pytest.raises(FileNotFoundError):
        files.open_descriptor(tmp_path / "nothing")


def test_a_descriptor_is_not_inherited_and_does_not_wait(tmp_path):
    import fcntl

    (tmp_path / "a").write_bytes(b"x")
    descriptor = files.open_descriptor(tmp_path / "a")
    try:
        assert not os.get_inheritable(descriptor)
        assert fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_NONBLOCK
    finally:
        os.close(descriptor)


def test_archives_are_opened_up_to_the_largest_size(tmp_path, monkeypatch):
    stored, compressed = tmp_path / "stored.npz", tmp_path / "compressed.npz"
    values = np.arange(100)
    np.savez(stored, x=values)
    np.savez_compressed(compressed, x=values)
    size = stored.stat().st_size
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", size)
    with files.open_stored_arrays(stored) as stream, np.load(stream) as arrays:
        assert arrays["x"].sum() == values.sum()
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", size - 1)
    with pytest.raises(ValueError, match="not what was written"), files.open_stored_arrays(stored):
        pass
    with ZipFile(compressed) as archive:
        (member,) = archive.infolist()
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", member.file_size)
    with files.open_compressed_arrays(compressed) as stream, np.load(stream) as arrays:
        assert arrays["x"].sum() == values.sum()
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", member.file_size - 1)
    match = "it would take 9.28e-07 GB of memory"
    with pytest.raises(ValueError, match=match), files.open_compressed_arrays(compressed):
        pass


def test_arrays_take_a_quarter_of_the_memory_at_most(tmp_path, monkeypatch):
    file = tmp_path / "a.npz"
    np.savez_compressed(file, x=np.arange(100), y=np.arange(100))
    pages = {"SC_PAGE_SIZE": 928, "SC_PHYS_PAGES": 8}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    with files.open_compressed_arrays(file):
        pass
    pages["SC_PHYS_PAGES"] = 7
    with pytest.raises(ValueError, match="GB of memory"), files.open_compressed_arrays(file):
        pass


def test_members_that_say_to_be_larger_than_the_file_are_refused(tmp_path):
    file = tmp_path / "a.npz"
    with ZipFile(file, "w") as archive:
        archive.writestr("x.npy", bytes(200), ZIP_STORED)
    raw = file.read_bytes()
    size = (200).to_bytes(4, "little")
    assert raw.count(size + size) == 2
    place = raw.rindex(size + size) + 4  # in the list of members: its size when it is unpacked
    file.write_bytes(raw[:place] + (10**6).to_bytes(4, "little") + raw[place + 4 :])
    with pytest.raises(ValueError, match="not what was written"), files.open_stored_arrays(file):
        pass
