"""Find out whether the process that runs a comparison is alive.

A sweep holds a lock on a file in its folder; the system releases the lock however the process ends.
"""

import fcntl
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from normbench import names
from normbench.results.safe.files import open_descriptor

LOCK = "lock"  # the file in a sweep's folder that the sweep's process locks


def is_locked(folder: Path) -> bool | None:
    """Return whether the sweep of a folder is running.

    A shared lock is tried, which fails while the sweep holds its exclusive lock.

    Args:
        folder: The folder of the sweep.

    Returns:
        True also where this user may not open the lock file; None without a lock file, or on a file
        system without locks.
    """
    try:
        file = os.fdopen(open_descriptor(folder / LOCK))
    except PermissionError:  # another user's sweep, which must not be ended
        return True
    except (OSError, ValueError):
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return None
    return False


def host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def is_alive(tags: Mapping[str, str]) -> bool | None:
    """Return whether the process of a sweep is alive.

    The lock answers on any machine that can read the sweep's folder. Without the folder, the
    process number answers on the sweep's own machine.

    Args:
        tags: The tags of the sweep's run.

    Returns:
        Whether it is alive; None where that is unknown.
    """
    if names.FOLDER.key not in tags:
        return None
    locked = is_locked(Path(tags[names.FOLDER.key]))
    if locked is not None:
        return locked
    if tags.get(names.HOST.key) != host():
        return None
    return _is_another_process(tags.get(names.PROCESS.key, ""))


def _is_another_process(number: str) -> bool:
    """Return whether a process with this number runs here and is not this one.

    Args:
        number: The number, as the tag of a sweep's run has it; false for a text that is none.
    """
    try:
        process = int(number)
        if process == os.getpid():  # the number was given to this process after the sweep ended
            return False
        os.kill(process, 0)  # signal 0 is only a question: it raises an error without a process
    except PermissionError:  # the process of another user
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True
