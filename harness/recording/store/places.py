"""Folders that are written to: whether they can be, and what to name instead."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from normbench.datasets import UserError
from normbench.results.store import stores, uris


def own_place(name: str) -> Path:
    """Return a path to suggest: in the user's home, which nobody else writes to."""
    try:
        return Path.home() / name
    except RuntimeError:  # a user without a home
        return Path.cwd() / name


def try_folder(folder: Path) -> None:
    """Raise OSError unless a folder can be written or made, by a trial that nobody else sees."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    os.rmdir(tempfile.mkdtemp(dir=there))


def try_remote(artifacts: str, opened: Callable[[str], Any]) -> None:
    """Raise an error unless a file can be written to a URI of artifacts, read and deleted.

    opened: gives MLflow's repository of a URI.
    """
    if uris.is_server(artifacts):
        stores.knock(artifacts)  # MLflow itself waits for minutes
    probe = f"probe-{uuid4().hex}"
    place: Any = opened(f"{artifacts.rstrip('/')}/{probe}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / probe
        file.write_text(probe)
        place.log_artifact(str(file))
        try:
            there = Path(place.download_artifacts(probe, tempfile.mkdtemp(dir=folder))).read_text()
        finally:
            with suppress(NotImplementedError):  # not every kind of place can
                place.delete_artifacts()
    if there != probe:
        raise OSError("what was written there is not what is read")


def refuse_left(store: str, experiment: str, artifacts: str) -> None:
    """Raise `UserError` where an experiment's folder of artifacts was left behind.

    store: the database's URI, to be shown. The folder may be another user's, or another machine's.
    """
    if not artifacts.startswith("file:"):
        return
    folder = uris.path_of(artifacts)
    try:
        try_folder(folder)
    except OSError as error:
        raise UserError(
            f"tracking.uri={store}: the artifacts of {experiment} belong in {folder}, which cannot "
            f"be written ({error.strerror or error}); move the folder {folder.parent.name}, as it "
            "was, beside the database, or record elsewhere, such as "
            f"tracking.uri={uris.of_file(own_place('mlflow.db'))}"
        ) from error
