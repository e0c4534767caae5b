"""Find remote files in the data folder, or download them into it; check their SHA-256."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from normbench.datasets.values import UserError, check_path, format_gigabytes

CONNECT_AND_READ_SECONDS = (4.0, 30.0)  # to connect, and between two bytes
LARGEST_DOWNLOAD = 1 << 30  # bytes of a remote file; the largest has 30 MB


class MissingFileError(UserError):
    """A remote file is not in the data folder, and cannot be downloaded."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on the internet: its name, SHA-256, addresses, and folder under `data_dir`.

    The addresses are tried in their order. An empty folder stands for `data_dir` itself.
    """

    name: str
    sha256: str
    addresses: tuple[str, ...]
    folder: str = ""


def fetch(remote: RemoteFile, data_dir: Any) -> Path:
    """Return the path of a remote file, downloaded from the first address that answers.

    A file that is in the data folder already is not downloaded, but its SHA-256 is checked. A
    download is written under a temporary name and renamed once its SHA-256 is right.

    Args:
        remote: The remote file.
        data_dir: The data folder, the setting of this name.

    Raises:
        UserError: The file in the folder has another SHA-256, or cannot be read.
        MissingFileError: The folder has no such file, and no download succeeds.
    """
    folder = check_path("data_dir", data_dir, "name a folder, such as data_dir=data").absolute()
    path = folder / remote.folder / remote.name
    try:
        if path.exists():
            _check_sha256(path, remote)
            return path
    except OSError as error:
        raise UserError(
            f"data_dir={data_dir}: {path} cannot be read ({error.strerror}); "
            "name a folder of files that can be"
        ) from error
    failures = []  # a reason for each address
    with no_empty_folders(path.parent):
        for address in remote.addresses:
            reason = _download(address, path, remote.sha256)
            if reason is None:
                return path
            failures.append(f"{urlsplit(address).hostname}: {reason}")
        raise MissingFileError(
            f"data_dir={data_dir}: has no {path.name}, and no download of it succeeded "
            f"({'; '.join(failures)}); fetch it from {' or '.join(remote.addresses)} "
            f"and put it at {path} (SHA-256 {remote.sha256})"
        )


@contextmanager
def no_empty_folders(folder: Path) -> Iterator[None]:
    """Where the context raises, remove the empty folders that were created in it.

    Args:
        folder: The folder of a download, which need not exist. Folders that were created below it
            or above it are removed as well as the folder itself.
    """
    missing_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    paths_before = set(folder.rglob("*"))
    try:
        yield
    except BaseException:  # an interrupt, too
        new_folders = [
            path for path in folder.rglob("*") if path.is_dir() and path not in paths_before
        ]
        # From within outwards, so that a folder is empty once those within it are removed.
        for path in [*sorted(new_folders, reverse=True), *missing_folders]:
            with suppress(OSError):  # the folder is not empty, or is gone
                path.rmdir()
        raise


def _check_sha256(path: Path, remote: RemoteFile) -> None:
    """Raise `UserError` for a file with another SHA-256 than the remote file's.

    Also raised for a folder, for a file that cannot be read to its end, and for one too large to be
    the remote file.

    Args:
        path: The file in the data folder.
        remote: The remote file that it should be.
    """
    if path.is_dir():
        raise UserError(f"{path}: is a folder; it must be the file {remote.name}")
    from normbench.datasets.on_disk.files_on_disk import refuse_blocking_file  # loads NumPy

    refuse_blocking_file(str(path), path)
    size = path.stat().st_size
    if size > LARGEST_DOWNLOAD:  # the SHA-256 would take reading all of it
        raise UserError(
            f"{path}: has {format_gigabytes(size)}, and {remote.name} has less than "
            f"{format_gigabytes(LARGEST_DOWNLOAD)}; it is another file: remove it, and it is "
            f"downloaded again from {' or '.join(remote.addresses)}"
        )
    with path.open("rb") as file:
        actual_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if actual_sha256 != remote.sha256:
        raise UserError(
            f"{path}: has the SHA-256 {actual_sha256} ({size} bytes) and should have "
            f"{remote.sha256}; it is damaged or another file: remove it, and it is downloaded "
            f"again from {' or '.join(remote.addresses)}"
        )


def _download(address: str, path: Path, sha256: str) -> str | None:
    """Download an address to a path; return None, or the reason why that failed.

    The reason follows the host's name in a message. It is returned instead of raised, since the
    caller tries the next address.

    Args:
        address: The address, of one file.
        path: Where to write the file; missing folders are created.
        sha256: The SHA-256 that the file must have; with another one nothing is kept.
    """
    import logging

    import pooch
    import requests

    pooch.get_logger().setLevel(logging.WARNING)  # the bar shows the progress instead
    progress_bar = _Bar(path.name)
    downloader = pooch.HTTPDownloader(
        progressbar=progress_bar, chunk_size=1 << 16, timeout=CONNECT_AND_READ_SECONDS
    )
    try:
        pooch.retrieve(
            address, known_hash=sha256, fname=path.name, path=path.parent, downloader=downloader
        )
    except requests.ConnectionError as error:
        # A host that stalls while it sends; one that never answers is a `Timeout`.
        return "does not answer" if "timed out" in str(error) else "cannot be reached"
    except requests.Timeout:
        return "does not answer"
    except requests.HTTPError as error:
        return str(error).split(" for url")[0]  # without the address, which the message gives
    except requests.RequestException as error:
        return f"breaks off ({type(error).__name__})"
    except ValueError:  # of pooch, for another SHA-256
        return "serves another file (its SHA-256 differs)"
    except OSError as error:
        # The error that pooch raises for a folder has a text alone; its context has the reason.
        reason = error.strerror or getattr(error.__context__, "strerror", None) or error
        return f"{path.parent} cannot be written ({reason})"
    finally:
        progress_bar.close()
    return None


class _Bar:
    """A progress bar on the standard error of a terminal, with the methods that pooch calls.

    It shows nothing where the standard error is no terminal.
    """

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TransferSpeedColumn,
        )

        # A sanitizing stream holds incomplete lines back: draw on the stream that it wraps.
        screen = Console(file=getattr(sys.stderr, "wrapped", sys.stderr), stderr=True)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
        self._progress = Progress(
            *columns, TransferSpeedColumn(), console=screen, disable=not sys.stderr.isatty()
        )
        self._task = self._progress.add_task(name, total=None)  # until the host tells the size

    @property
    def total(self) -> float | None:
        """The bytes of the whole file; pooch says how many they are, once it knows."""
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: float) -> None:
        """Start the bar: a host has answered with the size."""
        self._progress.start()  # not before: no bar where no host answers
        self._progress.update(self._task, total=size)

    def update(self, size: int) -> None:
        """Show that so many bytes more have come."""
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        """Set the bar to 0: at the end pooch resets it, then updates it by the whole size."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Show no more."""
        self._progress.stop()
