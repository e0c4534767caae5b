"""Find, copy and write artifacts in local folders, in MLflow's layout."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from normbench.results.store.uris import path_of

DRAFT_PREFIX = ".artifact.uploading."  # the prefix of a file's name while it is written


class ArtifactEntry(NamedTuple):
    """A file or folder among artifacts, as MLflow's client lists it.

    Attributes:
        path: Its path relative to the artifacts' folder.
        is_dir: Whether it is a folder.
    """

    path: str
    is_dir: bool


def folder(uri: str) -> Path | None:
    """Return the folder of an artifacts' URI; None where they are not on this machine."""
    scheme, host, *_ = urlsplit(uri)
    return path_of(uri) if scheme in ("", "file") and host in ("", "localhost") else None


def find(root: Path, name: str) -> Path:
    """Return the path of an artifact.

    Args:
        root: The folder of a run's artifacts.
        name: The artifact's path in it.

    Returns:
        The path of the file or folder.

    Raises:
        FileNotFoundError: There is none, or the name leads out of the folder.
    """
    file = root / name
    relative_path = PurePosixPath(name)
    inside = not relative_path.is_absolute() and ".." not in relative_path.parts
    if not inside or not file.exists() or not file.resolve().is_relative_to(root.resolve()):
        raise FileNotFoundError(f"No such artifact: '{name}'")
    return file


def entries(root: Path, name: str) -> list[ArtifactEntry]:
    """Return the files and folders in a folder of artifacts, sorted; none where it is missing.

    Args:
        root: The folder of a run's artifacts.
        name: The path of a folder in it; empty for itself.

    Returns:
        The entries.
    """
    if not (root / name).is_dir():
        return []
    # `find` refuses a name that leads out of the folder.
    files = sorted(find(root, name).iterdir()) if name else sorted(root.iterdir())
    return [ArtifactEntry(file.relative_to(root).as_posix(), file.is_dir()) for file in files]


def copy(file: Path, root: Path, name: str) -> None:
    """Copy a file into a folder of artifacts atomically.

    Args:
        file: The file.
        root: The folder of a run's artifacts.
        name: The path of the target folder in it.
    """
    _write_atomically(root / name / file.name, lambda draft: shutil.copy2(file, draft))


def write(root: Path, name: str, text: str) -> None:
    """Write a text as an artifact atomically.

    Args:
        root: The folder of a run's artifacts.
        name: The path of the file in it.
        text: The text.
    """
    _write_atomically(root / name, lambda draft: draft.write_text(text, encoding="utf-8"))


def _write_atomically(file: Path, write_draft: Callable[[Path], Any]) -> None:
    """Write a draft beside a file, then replace the file by it; missing folders are created.

    Args:
        file: The file, which may exist.
        write_draft: Writes the content to the path that it is given.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{DRAFT_PREFIX}{uuid4().hex}")
    try:
        write_draft(draft)
        _sync(draft)
        os.replace(draft, file)
        _sync(file.parent)  # the new name is an entry of the folder
    finally:
        draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Flush a file or a folder to the disk, so that a finished run is sure to have its arrays."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
