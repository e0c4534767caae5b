"""Artifacts in folders of this machine: found, copied and written, as MLflow does it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from normbench.results.store.uris import path_of

DRAFT = ".artifact.uploading."  # before the name of a file that is being written


class Entry(NamedTuple):
    """A file or a folder among artifacts; path: from where they begin."""

    path: str
    is_dir: bool


def folder(uri: str) -> Path | None:
    """Return the folder of artifacts of a URI; None where they are not on this machine."""
    scheme, host, *_ = urlsplit(uri)
    return path_of(uri) if scheme in ("", "file") and host in ("", "localhost") else None


def find(root: Path, name: str) -> Path:
    """Return the file of an artifact. Raises FileNotFoundError, also for a name that leaves."""
    file = root / name
    relative_path = PurePosixPath(name)
    inside = not relative_path.is_absolute() and ".." not in relative_path.parts
    if not inside or not file.exists() or not file.resolve().is_relative_to(root.resolve()):
        raise FileNotFoundError(f"No such artifact: '{name}'")
    return file


def entries(root: Path, name: str) -> list[Entry]:
    """Return what is in a folder of artifacts, by name; nothing where there is no such folder."""
    if not (root / name).is_dir():
        return []
    files = sorted(find(root, name).iterdir()) if name else sorted(root.iterdir())
    return [Entry(file.relative_to(root).as_posix(), file.is_dir()) for file in files]


def copy(file: Path, root: Path, name: str) -> None:
    """Copy a file into a folder of artifacts, whole or not at all."""
    _write_atomically(root / name / file.name, lambda draft: shutil.copy2(file, draft))


def write(root: Path, name: str, text: str) -> None:
    """Write a text among artifacts, whole or not at all."""
    _write_atomically(root / name, lambda draft: draft.write_text(text, encoding="utf-8"))


def _write_atomically(file: Path, write_draft: Callable[[Path], Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{DRAFT}{uuid4().hex}")
    try:
        write_draft(draft)
        _sync(draft)
        os.replace(draft, file)
        _sync(file.parent)
    finally:
        draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Bring a file, or a folder's entries, to the disk: a run that is finished has its arrays."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
