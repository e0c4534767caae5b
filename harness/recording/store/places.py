"""Check that folders and artifact stores can be written, and suggest another place if not."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from normbench.datasets import UserError
from normbench.results.store import stores, uris


def suggested_path(name: str) -> Path:
    """Return a path in the home of the user, or else in the working folder, for error messages."""
    try:
        return Path.home() / name
    except RuntimeError:  # a user without a home
        return Path.cwd() / name


def try_folder(folder: Path) -> None:
    """Raise OSError unless a folder can be written or created; a temporary folder tests it."""
    # The nearest existing folder, in which the missing ones would be created.
    existing = next(candidate for candidate in (folder, *folder.parents) if candidate.exists())
    os.rmdir(tempfile.mkdtemp(dir=existing))


def try_remote(artifacts: str, open_repository: Callable[[str], Any]) -> None:
    """Check that a file can be written to an artifact URI, read and deleted.

    Args:
        artifacts: The URI.
        open_repository: Returns the artifact repository of MLflow for a URI.

    Raises:
        Exception: The repository refuses, or gives back another content.
    """
    if uris.is_server(artifacts):
        stores.knock(artifacts)  # MLflow itself waits for minutes
    probe = f"probe-{uuid4().hex}"
    repository: Any = open_repository(f"{artifacts.rstrip('/')}/{probe}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / probe
        file.write_text(probe)
        repository.log_artifact(str(file))
        try:
            content = Path(
                repository.download_artifacts(probe, tempfile.mkdtemp(dir=folder))
            ).read_text()
        finally:
            with suppress(NotImplementedError):  # not every repository can delete
                repository.delete_artifacts()
    if content != probe:
        raise OSError("what was written there is not what is read")


def check_artifact_folder(store: str, experiment: str, artifacts: str) -> None:
    """Raise `UserError` if the folder of artifacts of an experiment cannot be written.

    The folder may belong to another user, or to another machine from which the database was moved.
    Artifacts that are not in a local folder are not checked.

    Args:
        store: The URI of the database, without its password.
        experiment: The name of the experiment.
        artifacts: The URI of its artifacts.

    Raises:
        UserError: The folder cannot be written.
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
            f"tracking.uri={uris.of_file(suggested_path('mlflow.db'))}"
        ) from error
