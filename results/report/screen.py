"""The console on a terminal or a pipe: its width, its colours and its characters."""

import os
import shutil
import sys
import textwrap
from typing import TextIO

from rich.console import Console
from rich.text import Text

from normbench.results.safe import clean

MIN_COLUMNS = 60  # of a terminal; a table fits
PIPE_COLUMNS = 100  # of any other output
SIMPLE_TERMINALS = ("dumb", "unknown")  # values of TERM; these get the output of a pipe


class _PlainConsole(Console):
    """A console that raises `BrokenPipeError`, where rich's own would end the process."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is handled: what is still to be written to files is written."""
        raise


def console(stream: TextIO | None = None) -> Console:
    """Return a console.

    On a terminal, colour codes bypass the sanitizing stream, so callers must print sanitized text.
    Colours are for terminals only, and are switched off by NO_COLOR or CI.

    Args:
        stream: The stream; the standard output by default.

    Returns:
        The console; its width is at least `MIN_COLUMNS`, and `PIPE_COLUMNS` without a terminal.
    """
    stream = sys.stdout if stream is None else stream
    stream.flush()  # text printed before stays before the console's
    columns = PIPE_COLUMNS
    if stream.isatty():
        columns = shutil.get_terminal_size((PIPE_COLUMNS, 24)).columns
    tty = stream.isatty() and os.environ.get("TERM") not in SIMPLE_TERMINALS
    colours = tty and not (os.environ.get("NO_COLOR") or os.environ.get("CI"))
    return _PlainConsole(
        # A sanitizing stream holds the real one in `wrapped`.
        file=getattr(stream, "wrapped", stream) if tty else stream,
        force_terminal=tty,
        color_system="auto" if colours else None,
        width=max(MIN_COLUMNS, columns),
        highlight=False,
        markup=False,
        emoji=False,
    )


def shows_bars(screen: Console) -> bool:
    """Return whether the console is a terminal that can print block characters."""
    return screen.is_terminal and screen.encoding.lower().startswith("utf")


def print_lines(screen: Console, *lines: str, style: str = "") -> None:
    """Print lines of text.

    Args:
        screen: The console.
        *lines: The lines, sanitized and wrapped between words; on a terminal, words longer than a
            line are broken.
        style: The style of the text, as rich takes it.
    """
    for line in lines:
        wrapped = textwrap.fill(
            clean.sanitize(line),
            screen.width,
            break_long_words=screen.is_terminal,  # elsewhere a path stays whole
            break_on_hyphens=False,
        )
        screen.print(Text(wrapped, style=style), soft_wrap=True)
