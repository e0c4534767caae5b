"""How long a store is waited for, and what is said: by a clock that only waiting moves."""

import re
from types import SimpleNamespace

import pytest

from normbench.recording.store import connection
from normbench.recording.store.connection import RetryingClient, StoreLostError, retry_call

LOCKED = "database is locked"


class Clock:
    """The module time, whose seconds pass while one sleeps, and while a call is made."""

    def __init__(self):
        self.now, self.pauses = 100.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(connection, "time", clock)
    return clock


def failing(times, words=LOCKED, cause=None, seconds=0.0, clock=None):
    """Return a call that fails some times, and then returns how often it was made."""
    calls = []

    def call():
        calls.append(None)
        if clock:
            clock.now += seconds
        if len(calls) <= times:
            raise RuntimeError(words) from cause
        return len(calls)

    return call


def test_pauses_double_up_to_five_seconds(clock):
    assert retry_call(failing(9), "sqlite:///a.db", 60.0) == 10
    assert clock.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5])


@pytest.mark.parametrize(("seconds", "calls"), [(0.25, 4), (0.7, 4), (1.4, 4), (1.51, 5), (3.2, 6)])
def test_no_pause_goes_beyond_the_patience_but_four_calls_are_made(seconds, calls, clock):
    """After n calls 0.1 (2^n - 1) seconds have been slept: 1.5 before the fifth."""
    with pytest.raises(StoreLostError, match="locked") as lost:
        retry_call(failing(99), "sqlite:///a.db", seconds)
    assert len(clock.pauses) == calls - 1
    assert str(lost.value).startswith("tracking.uri=sqlite:///a.db: the store cannot be written (")
    assert isinstance(lost.value.__cause__, RuntimeError)


def test_without_patience_one_call_is_made(clock):
    for seconds, fewest, pauses in ((0.0, 4, 0), (0.05, 1, 0), (0.05, 2, 1), (1.0, 1, 3)):
        clock.pauses.clear()
        with pytest.raises(StoreLostError):
            retry_call(failing(99), "sqlite:///a.db", seconds, min_calls=fewest)
        assert len(clock.pauses) == pauses


def test_a_call_that_takes_longer_than_the_patience_is_made_four_times(clock):
    call = failing(99, seconds=50.0, clock=clock)
    with pytest.raises(StoreLostError):
        retry_call(call, "sqlite:///a.db", 60.0)
    assert len(clock.pauses) == 3


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
    assert clock.pauses == []


def test_a_race_passes_for_data_sets_alone(clock):
    for name, passes in (("log_inputs", True), ("log_batch", False)):
        client = SimpleNamespace(**{name: failing(1, "UNIQUE constraint failed")})
        call = getattr(RetryingClient(client, "sqlite:///a.db"), name)
        if passes:
            assert call() == 2
        else:
            with pytest.raises(RuntimeError, match="UNIQUE"):
                call()


def test_after_a_store_was_lost_the_next_calls_do_not_wait(clock):
    client = RetryingClient(SimpleNamespace(get_run=failing(99)), "sqlite:///a.db")
    assert not client.has_transactions
    for waits in (True, False, False):
        clock.pauses.clear()
        with pytest.raises(StoreLostError):
            client.get_run()
        assert bool(clock.pauses) == waits
    back = RetryingClient(SimpleNamespace(get_run=lambda run: run), "sqlite:///a.db")
    assert back.get_run("a") == back.get_run(run="a") == "a"


def test_a_run_is_read_with_its_patience_of_a_minute(clock):
    with pytest.raises(StoreLostError):
        RetryingClient(SimpleNamespace(get_run=failing(99)), "sqlite:///a.db").get_run()
    assert 55 <= clock.now - 100 <= 60
