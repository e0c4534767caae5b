"""Find files that users name, and say in one line what is wrong with them."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from normbench.datasets.values import UserError, check_path

# Folders whose files the kernel makes, except those in shared memory, which are ordinary files.
SYSTEM_FOLDERS, SHARED_MEMORY_FOLDER = (("/proc", "/sys", "/dev"), "/dev/shm")
FIRST_BYTE_SECONDS = 30.0  # until the first byte of a file must arrive


def find_file(option: str, path: Any, example: str = "my.csv") -> Path:
    """Return the file that a setting names; raise `UserError` where it cannot be read.

    Args:
        option: The name of the setting, such as `dataset.path`.
        path: Its value.
        example: A file name, for the error that shows how to write the setting.

    Raises:
        UserError: The value is no path, names no file or a folder, or the file gives no byte.
    """
    file = check_path(option, path, f"write {option}={example}")
    if file.is_dir():
        raise UserError(f"{option}={path}: is a folder; name a file in it")
    if not file.is_file():
        raise UserError(
            f"{option}={path}: no such file (seen from {Path.cwd()}); a path with a comma, "
            f"a space or = takes two pairs of quotes: {option}='\"a,b.csv\"'"
        )
    refuse_blocking_file(f"{option}={path}", file)
    return file


def refuse_blocking_file(setting: str, file: Path) -> None:
    """Raise `UserError` for a system file, and for a file whose first byte does not arrive.

    Such files look like regular ones, but reading them may never end.

    Args:
        setting: The setting that names the file, as `name=value`, for the error.
        file: The file.
    """
    real_path = Path(os.path.realpath(file))
    if any(map(real_path.is_relative_to, SYSTEM_FOLDERS)) and not real_path.is_relative_to(
        SHARED_MEMORY_FOLDER
    ):
        raise UserError(
            f"{setting}: is a file of the system's own ({real_path}), not one on a disk; copy what "
            "it holds to a file, and name that"
        )
    first_byte_read = threading.Event()  # set at the end of an empty or unreadable file, too

    def read() -> None:
        """Read a byte; in a thread of its own, since the call may block for ever."""
        with (
            suppress(OSError),  # the caller reads the file next, and reports the error
            file.open("rb", buffering=0) as stream,
        ):
            stream.read(1)
        first_byte_read.set()

    # A daemon: it does not keep the program from ending.
    threading.Thread(target=read, daemon=True).start()
    if not first_byte_read.wait(FIRST_BYTE_SECONDS):
        raise UserError(
            f"{setting}: gives nothing within {FIRST_BYTE_SECONDS:.0f} s; see whether its disk or "
            "network answers, or copy it to this machine"
        )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, shortened; its type if there is no message.

    A prefix of pandas' errors, which tells the user nothing, is left out.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("Error tokenizing data. C error: ")[:160]


@contextmanager
def translate_memory_error(setting: str) -> Iterator[None]:
    """Turn a `MemoryError` in the context, where data are read or converted, into `UserError`.

    setting: the setting to which the error is attributed, as `name=value`.
    """
    try:
        yield
    except MemoryError as error:
        raise UserError(
            f"{setting}: takes more memory than there is ({first_line(error)}); leave out columns "
            "that are not needed, or keep fewer points"
        ) from error


@contextmanager
def translate_read_errors(setting: str, rule: str, remedy: str) -> Iterator[None]:
    """Turn whatever a library raises in the context, of a damaged file, into `UserError`.

    Args:
        setting: The setting that names the file, as `name=value`.
        rule: What is wrong with the file, such as `cannot be read as a table`. The library's reason
            follows in brackets.
        remedy: What the user can do, the end of the message.
    """
    try:
        with translate_memory_error(setting):
            yield
    except UserError:  # it says what is wrong better than the rule does
        raise
    except Exception as error:
        raise UserError(f"{setting}: {rule} ({first_line(error)}); {remedy}") from error
