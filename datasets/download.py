"""Find remote files in the data folder, or download them into it; check their SHA-256."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from normbench.datasets.values import UserError, check_path

CONNECT_AND_READ_SECONDS = (4.0, 30.0)  # to connect, and between two bytes


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
    """Return the path of a remote file, downloaded from the first address that serves it.

    A file with the right SHA-256 in the data folder is not downloaded; one with another is
    replaced. A download is written under a temporary name, and renamed once its SHA-256 is right.

    Args:
        remote: The remote file.
        data_dir: The data folder, the setting of this name.

    Raises:
        MissingFileError: The folder has no such file, and no download succeeds.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)  # the bar shows the progress instead
    data_folder = check_path("data_dir", data_dir, "name a folder, such as data_dir=data")
    folder, failures = data_folder.absolute() / remote.folder, []
    for address in remote.addresses:
        try:
            arguments = address, remote.sha256, remote.name, folder
            with no_new_folders(folder):
                return Path(pooch.retrieve(*arguments, downloader=_download))
        except (OSError, ValueError) as error:  # of requests, the disk, and another SHA-256
            failures.append(f"{address}: {' '.join(str(error).split())[:160]}")
    raise MissingFileError(
        f"data_dir={data_dir}: has no {remote.name}, and no download of it succeeded "
        f"({'; '.join(failures)}); put it at {folder / remote.name} (SHA-256 {remote.sha256})"
    )


@contextmanager
def no_new_folders(folder: Path) -> Iterator[None]:
    """Where the context raises, remove the folders that it has made, unless they hold a file."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:  # an interrupt, too
        inner = sorted(folder.rglob("*"), reverse=True) if missing else []
        for path in [*inner, *missing]:
            with suppress(OSError):
                path.rmdir()
        raise


def _download(address: str, file: str, _: Any) -> None:
    """Download an address to a file; a terminal shows how far it is."""
    import pooch
    from tqdm import tqdm

    # A sanitizing stream holds incomplete lines back: the bar is drawn on the stream it wraps.
    screen = getattr(sys.stderr, "wrapped", sys.stderr)
    name = address.rpartition("/")[2]
    # `pooch` replaces the total by that of the host's answer.
    with tqdm(desc=name, total=1, unit="B", unit_scale=True, file=screen, disable=None) as bar:
        download = pooch.HTTPDownloader(
            progressbar=bar, chunk_size=1 << 16, timeout=CONNECT_AND_READ_SECONDS
        )
        download(address, file, None)
