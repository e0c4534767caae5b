"""The terminal: its width, its colours, and whether it shows bars; anything else gets text."""

import os
import shutil
import sys
import textwrap
from typing import TextIO

from rich.console import Console
from rich.text import Text

from normbench.results.safe import clean

NARROWEST, PIPE = 60, 100  # columns: of a terminal that a table fits, and of anything else
SIMPLE = ("dumb", "unknown")  # values of TERM, of terminals that are written to as a pipe is


def console(stream: TextIO | None = None) -> Console:
    """Return a console on a stream, the standard output without.

    On a terminal, marks of colours go past the cleaning: what is printed has to be clean. Colours
    are for terminals alone, and not where NO_COLOR or CI is set.
    """
    stream = sys.stdout if stream is None else stream
    stream.flush()
    columns = shutil.get_terminal_size((PIPE, 24)).columns if stream.isatty() else PIPE
    tty = stream.isatty() and os.environ.get("TERM") not in SIMPLE
    colours = tty and not (os.environ.get("NO_COLOR") or os.environ.get("CI"))
    return Console(
        file=getattr(stream, "wrapped", stream) if tty else stream,
        force_terminal=tty,
        color_system="auto" if colours else None,
        width=max(NARROWEST, columns),
        highlight=False,
        markup=False,
        emoji=False,
    )


def shows_bars(screen: Console) -> bool:
    """Return whether bars of blocks can be drawn: on a terminal that has such characters."""
    return screen.is_terminal and screen.encoding.lower().startswith("utf")


def say(screen: Console, *lines: str, style: str = "") -> None:
    """Print lines, broken between words; on a terminal, longer words are broken, too."""
    for line in lines:
        broken = textwrap.fill(
            clean.sanitize(line),
            screen.width,
            break_long_words=screen.is_terminal,
            break_on_hyphens=False,
        )
        screen.print(Text(broken, style=style), soft_wrap=True)
