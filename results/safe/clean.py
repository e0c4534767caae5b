"""What comes from outside, cleaned where it enters a terminal, a table, a path or a page.

A header, a label, a tag or a path of another's may hold anything: marks that move the cursor, turn
the reading order around, split a row, leave a folder or carry a program.
"""

import re
import sys
import threading
from typing import Any

from normbench.results.safe import secrets

# Control characters but the newline and the tab, what cannot be seen or turns a line around, and
# what no encoding can write. The joiners of letters (U+200C and U+200D) stay.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
MARKUP = re.compile(r"[\\`*\[\]|#~!]|(?<!\w)_|_(?!\w)")
MAX_NAME_LENGTH = 150  # characters of a part of a path


def escape_invisible(text: str) -> str:
    """Return a text in which every mark can be seen: an escape stands as its number."""
    return INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)


def sanitize(text: str) -> str:
    """Return a text for whoever looks: without secrets, and every mark in it can be seen."""
    return escape_invisible(secrets.blot(text))


def line(text: str) -> str:
    """Return the same as one line, for a cell of a table, a label or a title."""
    text = secrets.blot(text)
    return text if text.isprintable() else escape_invisible(" ".join(text.split()))


def first_line(error: BaseException) -> str:
    """Return what an error says in its first line, cleaned."""
    return line(next(iter(str(error).strip().splitlines()), type(error).__name__))


def markdown(text: str) -> str:
    """Return a text as one line of Markdown in which nothing is markup, a link or a tag."""
    text = line(text).replace("&", "&amp;").replace("<", "&lt;")
    return MARKUP.sub(r"\\\g<0>", text)


def code(text: str) -> str:
    """Return a text as Markdown's code, or, where a mark in it could end that, as `markdown`."""
    text = line(text)
    return markdown(text) if {"`", "<"} & set(text) else f"`{text}`"


def name(text: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Return a text as one part of a path: letters, digits, blanks, dots and dashes, no folder."""
    return re.sub(r"[^\w .-]", "_", text).strip(". ")[:max_length] or "data"


class Stream:
    """A stream through which text goes cleaned, line by line: a secret may come in pieces."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self._pending_text = ""
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def write(self, text: str) -> int:
        """Take a text; whole lines of it go on."""
        with self._lock:
            complete_lines, newline, self._pending_text = (self._pending_text + text).rpartition(
                "\n"
            )
            if newline:
                self.wrapped.write(sanitize(complete_lines) + newline)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Take several texts."""
        for text in lines:
            self.write(text)

    def flush(self) -> None:
        """Let go on what has come, a whole line or not."""
        with self._lock:
            pending_text, self._pending_text = self._pending_text, ""
            if pending_text:
                self.wrapped.write(sanitize(pending_text))
        self.wrapped.flush()


def guard(*arguments: str) -> None:
    """Let this process print nothing but cleaned text, without the secrets of some words.

    Loggers, warnings and tracebacks print through the same streams.
    """
    secrets.learn_environment()
    secrets.learn(*arguments)
    for side in ("stdout", "stderr"):
        stream = getattr(sys, side)
        if stream is not None and not isinstance(stream, Stream):
            setattr(sys, side, Stream(stream))
