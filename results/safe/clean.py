"""Sanitize text from outside before it enters a terminal, a table, a path or a page.

Headers, labels, tags and paths may come from other people. Their characters can move the cursor,
reverse the reading order, split a table row, leave a folder or carry a script.
"""

import re
import sys
import threading
from typing import Any

# The password in `//user:password@`. It may contain an @; digits before a slash are a port.
PASSWORD = re.compile(r"(//[^\s/:@]{0,200}:)(?!\d{1,5}[/?#])[^\s@]{1,500}@(?:[^\s@/,'\"]{0,200}@)*")
BLOT = "***"
# Control characters except newline and tab, invisible characters, characters that reverse a line,
# and lone surrogates, which no encoding can write. The joiners U+200C and U+200D are kept.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
MARKUP = re.compile(r"[\\`*\[\]|#~!]|(?<!\w)_|_(?!\w)")
MAX_NAME_LENGTH = 150  # characters of one component of a path


def escape_invisible(text: str) -> str:
    """Return a text with each invisible character replaced by its escape sequence in Python."""
    return INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)  # without the quotes


def blot(text: str) -> str:
    """Return a text with each password in `//user:password@` replaced by `***`."""
    return PASSWORD.sub(rf"\1{BLOT}@", text)


def without_user(uri: str) -> str:
    """Return a URI without its user and password, which a browser can still open."""
    return re.sub(r"://.*@", "://", uri, flags=re.S)


def sanitize(text: str) -> str:
    """Return a text for display: passwords are blotted and invisible characters are escaped."""
    return escape_invisible(blot(text))


def line(text: str) -> str:
    """Return a sanitized text as one line, for a table cell, a label or a title."""
    return recorded_line(blot(text))


def recorded_line(text: str) -> str:
    """Return a text that was read back as one line, with invisible characters escaped.

    Passwords were blotted before the text was recorded.
    """
    return text if text.isprintable() else escape_invisible(" ".join(text.split()))


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, sanitized; its type without a message."""
    return line(next(iter(str(error).strip().splitlines()), type(error).__name__))


def markdown(text: str) -> str:
    """Return a text as one line of Markdown, escaped so that nothing in it is markup."""
    text = line(text).replace("&", "&amp;").replace("<", "&lt;")
    return MARKUP.sub(r"\\\g<0>", text)


def code(text: str) -> str:
    """Return a text as Markdown code; as escaped Markdown if it contains a backtick or `<`."""
    text = line(text)
    return markdown(text) if {"`", "<"} & set(text) else f"`{text}`"


def name(text: str, max_length: int = MAX_NAME_LENGTH) -> str:
    """Return a text as one component of a path.

    Args:
        text: Any text; other characters than letters, digits, `_`, blanks, dots and dashes become
            `_`.
        max_length: The largest number of characters.

    Returns:
        The component; `data` where nothing is left of the text.
    """
    return re.sub(r"[^\w .-]", "_", text).strip(". ")[:max_length] or "data"


class Stream:
    """A stream that sanitizes text line by line: one write may hold only a part of a password.

    Args:
        wrapped: The stream that gets the sanitized text.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self._pending_text = ""
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def write(self, text: str) -> int:
        """Buffer a text and write its complete lines to the wrapped stream, sanitized.

        Returns:
            The number of characters of the text, as for any stream.
        """
        with self._lock:
            buffered_text = self._pending_text + text
            complete_lines, newline, self._pending_text = buffered_text.rpartition("\n")
            if newline:
                self.wrapped.write(sanitize(complete_lines) + newline)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for text in lines:
            self.write(text)

    def flush(self) -> None:
        """Write the buffered text, even if its line is incomplete, and flush the wrapped stream."""
        with self._lock:
            pending_text, self._pending_text = self._pending_text, ""
            if pending_text:
                self.wrapped.write(sanitize(pending_text))
        self.wrapped.flush()


def guard() -> None:
    """Sanitize everything that this process prints to its standard output and error.

    Loggers, warnings and tracebacks print through the same streams.
    """
    for stream_name in ("stdout", "stderr"):
        stream = getattr(sys, stream_name)
        if stream is not None and not isinstance(stream, Stream):
            setattr(sys, stream_name, Stream(stream))
