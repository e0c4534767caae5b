"""Report how much of a file was read, while a file is checked or a scheme is fitted."""

import sys
import threading
import time
from typing import Self

from normbench.command.sweep.progress import QUIET_SECONDS, format_duration
from normbench.datasets.on_disk import files_on_disk
from normbench.datasets.values import format_gigabytes
from normbench.results.safe import clean

FIRST_LINE_SECONDS = 1.0  # until the first line


class FileReading:
    """Prints every few seconds how far each file of points is read, until it is stopped.

    Args:
        title: What the lines begin with.
    """

    def __init__(self, title: str) -> None:
        self.title = clean.line(title)
        self._ended = threading.Event()
        # For each file, the bytes that were read of it before, and when counting began.
        self._began = {source: (source.bytes_read, time.monotonic()) for source in _sources()}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop printing."""
        self._ended.set()

    def _run(self) -> None:
        """Print lines until stopped: as soon as there are some, then every `QUIET_SECONDS`."""
        wait = FIRST_LINE_SECONDS
        while not self._ended.wait(wait):
            lines = self.lines()
            wait = QUIET_SECONDS if lines else FIRST_LINE_SECONDS
            for line in lines:
                print(f"{self.title}: {line}", file=sys.stderr, flush=True)

    def lines(self) -> list[str]:
        """Return a line for each file of which something was read since this object was made.

        A file may be read several times: a line is about the current time.
        """
        lines = []
        for source in _sources():
            # A file that was opened later counts from its opening. The first entry of a file's
            # stamp is its size in bytes.
            bytes_before, began = self._began.setdefault(source, (0, source.opened_at))
            bytes_read, file_size = source.bytes_read - bytes_before, source.opened.stamp[0]
            # A turn is one reading of the whole file; `turn_bytes` were read in the current one.
            if bytes_read and file_size:
                completed_turns, turn_bytes = divmod(bytes_read, file_size)
                rate = bytes_read / max(1e-9, time.monotonic() - began)  # no division by zero
                turn_text = f" for the {completed_turns + 1}. time" if completed_turns else ""
                lines.append(
                    f"{source.path.name}, {format_gigabytes(turn_bytes)} of "
                    f"{format_gigabytes(file_size)} read{turn_text}, "
                    f"{format_duration((file_size - turn_bytes) / rate)} left"
                )
        return lines


def _sources() -> list[files_on_disk.FilePoints]:
    """Return the points of the open files; none while another thread opens or closes one."""
    try:
        return list(files_on_disk.open_points)
    except RuntimeError:  # the collection was changed during the iteration
        return []
