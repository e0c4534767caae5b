"""Ctrl-C and SIGTERM: either ends a command, even where a library makes another error of it.

Python raises `KeyboardInterrupt` wherever a signal finds it, also within a library that catches it
and raises an error of its own: the job at work would be recorded as failed, or its task as one with
a bug.
"""

import signal
from types import FrameType

_received: list[int] = []  # signals


def install_handlers(*signals: int) -> None:
    """Raise `KeyboardInterrupt` at these signals from now on, unless this process ignores them.

    Signals that were received before, by an earlier command of the process, are forgotten.
    """
    _received.clear()
    for number in signals:
        # Ignored, for example, is Ctrl-C by a command that a script has started in the background.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def raise_if_interrupted(error: BaseException) -> None:
    """Raise `KeyboardInterrupt` if a signal was received; the error then only followed from it.

    Args:
        error: The error that was caught; without a signal, the caller handles it.
    """
    if _received:
        raise KeyboardInterrupt from error


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Record a signal for `raise_if_interrupted`, and raise `KeyboardInterrupt`."""
    _received.append(number)
    raise KeyboardInterrupt
