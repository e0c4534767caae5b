"""How long a store is waited for, and what is said: by a clock that only waiting moves."""

import re
from types import SimpleNamespace

import pytest

from normbench.recording.store import connection
from normbench.recording.store.connection import RetryingClient, StoreLostError, retry_call

LOCKED = "database is locked"


class Clock:
    """The module time, whose seconds pass while one sleeps."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(connection, "time", clock)
    return clock


def failing(times, words=LOCKED, cause=None):
    """Return a call that fails some times, and then returns how often it was made."""
    calls = []

    def call():
        calls.append(None)
        if len(calls) <= times:
            raise RuntimeError(words) from cause
        return len(calls)

    return call


def test_a_store_is_waited_for_a_minute_and_then_lost(clock):
    client = RetryingClient(SimpleNamespace(get_run=failing(99)), "sqlite:///a.db")
    with pytest.raises(StoreLostError, match=r"^tracking\.uri=sqlite:///a\.db: .*locked"):
        client.get_run()
    assert 55 <= clock.now - 100 <= 60


@pytest.mark.parametrize(("times", "said"), [(5, 0), (6, 1), (12, 1)])
def test_after_two_seconds_it_is_said_once_what_is_waited_for(times, said, clock, capsys):
    retry_call(failing(times), "http://me:secret1@host:5000", 60.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == said
    for line in lines:
        assert re.fullmatch(r"tracking\.uri=http://\S*host:5000: .*locked.*; trying for 60 s", line)
        assert "secret1" not in line


def test_while_a_store_is_opened_nothing_is_said(clock, capsys):
    retry_call(failing(6), "sqlite:///a.db", connection.OPENING_PATIENCE)
    assert capsys.readouterr().err == ""
    retry_call(failing(6), "sqlite:///a.db", connection.OPENING_PATIENCE + 1)
    assert "trying for 11 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "cause", "passes"),
    [
        ("it fails", None, None),
        ("it fails", OSError("Connection refused"), True),
        ("DATABASE IS LOCKED", None, True),
        ("already exists", None, None),
        (f"{LOCKED}, no such table: runs", None, False),
        (LOCKED, OSError("permission denied"), False),
        ("attempt to write a readonly database", None, False),
    ],
)
def test_an_error_passes_or_lasts_by_its_words_and_those_of_its_cause(words, cause, passes, clock):
    call = failing(1, words, cause)
    if passes:
        assert retry_call(call, "sqlite:///a.db", 60.0) == 2
        return
    with pytest.raises(RuntimeError if passes is None else StoreLostError) as raised:
        retry_call(call, "sqlite:///a.db", 60.0)
    assert isinstance(raised.value, StoreLostError) == (passes is not None)
    assert clock.now == 100
