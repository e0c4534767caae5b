"""Artifacts in folders of this machine: none outside, none in halves."""

import os
from pathlib import Path

import pytest

from normbench.results.store import local_artifacts


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("file://elsewhere/a/b", None),
        ("mlflow-artifacts:/a/b", None),
        ("s3://a/b", None),
    ],
)
def test_folders_of_this_machine_have_a_path(uri, path):
    assert local_artifacts.folder(uri) == (path and Path(path))


def test_what_lies_outside_is_not_found(tmp_path):
    root = tmp_path / "root"
    (root / "arrays").mkdir(parents=True)
    (root / "arrays" / "path.npz").write_text("in")
    (tmp_path / "secret").write_text("out")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "inside").symlink_to(root / "arrays" / "path.npz")
    assert local_artifacts.find(root, "arrays/path.npz") == root / "arrays" / "path.npz"
    assert local_artifacts.find(root, "inside").read_text() == "in"
    assert local_artifacts.find(root, "arrays").is_dir()
    for name in ("../secret", "link", "missing", str(tmp_path / "secret"), "arrays/../../secret"):
        with pytest.raises(FileNotFoundError, match="No such artifact"):
            local_artifacts.find(root, name)
    # Inside again, but by a way that leads out.
    with pytest.raises(FileNotFoundError):
        local_artifacts.find(root, "arrays/../arrays/path.npz")
    with pytest.raises(FileNotFoundError):
        local_artifacts.find(root, str(root / "arrays"))


def test_entries_are_sorted_and_relative_to_the_root(tmp_path):
    for name in ("b.txt", "a/z.txt", "a/y.txt"):
        local_artifacts.write(tmp_path, name, name)
    assert local_artifacts.entries(tmp_path, "") == [("a", True), ("b.txt", False)]
    assert local_artifacts.entries(tmp_path, "a") == [("a/y.txt", False), ("a/z.txt", False)]
    assert local_artifacts.entries(tmp_path, "missing") == []
    assert local_artifacts.entries(tmp_path, "b.txt") == []
    with pytest.raises(FileNotFoundError):
        local_artifacts.entries(tmp_path / "a", "..")


def test_a_file_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def noted(descriptor):
        synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(local_artifacts.os, "fsync", noted)
    source = tmp_path / "source.txt"
    source.write_text("copied, ü")
    root = tmp_path / "root"
    local_artifacts.copy(source, root, "figures")
    local_artifacts.write(root, "notes/one.txt", "written, ü")
    assert (root / "figures" / "source.txt").read_text() == "copied, ü"
    assert (root / "notes" / "one.txt").read_bytes() == "written, ü".encode()
    drafts = [path for path in synced if local_artifacts.DRAFT_PREFIX in path]
    assert [Path(path).parent.name for path in drafts] == ["figures", "notes"]
    folders = [path for path in synced if path not in drafts]
    assert folders == [str(root / "figures"), str(root / "notes")]

    def broken(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(local_artifacts.os, "replace", broken)
    with pytest.raises(OSError, match="full"):
        local_artifacts.write(root, "notes/one.txt", "new")
    assert (root / "notes" / "one.txt").read_text() == "written, ü"
    assert [file.name for file in (root / "notes").iterdir()] == ["one.txt"]
