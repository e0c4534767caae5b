"""The lines and the bar of a job's progress, at the bounds of when they are printed."""

from types import SimpleNamespace

import pytest

from normbench.command.sweep import progress as reports
from normbench.command.sweep.progress import Pace, Progress, format_duration


@pytest.fixture
def clock(monkeypatch):
    """The seconds that have passed; a test lets them pass."""
    seconds = [0.0]
    monkeypatch.setattr(reports.time, "monotonic", lambda: seconds[0])
    return seconds


def test_a_pace_is_that_of_the_last_twenty_seconds():
    pace = Pace(0, 0.0, warm=True)
    for k in range(1, 41):
        pace.mark(k, float(k))
    assert pace.seconds_left(100) == pytest.approx(60)
    pace.mark(41, 61.0)  # 21 s for one: the oldest marks go, but for the fewest
    assert pace.seconds_left(100) == pytest.approx((61 - 39) / 2 * 59)


def test_marks_that_lie_close_are_one():
    pace = Pace(0, 0.0, warm=True)
    kept = {}
    for k in range(1, 8):
        pace.mark(k, k / 16)
        kept[k] = [iteration for iteration, _ in pace._marks]
    assert kept[3] == [0, 1, 2, 3]  # of so few none goes
    assert kept[4] == [0, 1, 2, 4]
    assert kept[5] == [0, 1, 2, 5]
    assert kept[6] == [0, 1, 2, 5, 6]  # 0.25 s after the last but one
    assert kept[7] == [0, 1, 2, 5, 7]


def test_without_two_iterations_no_time_is_known():
    pace = Pace(5, 1.0, warm=True)
    assert pace.seconds_left(9) is None
    pace.mark(5, 2.0)
    assert pace.seconds_left(9) is None
    pace.mark(7, 3.0)
    assert pace.seconds_left(9) == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((119.4, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h 0 min")),
        *((2 * 3600 + 59 * 60 + 40, "3 h 0 min"), (0.4, "0 s")),
    ],
)
def test_a_duration_changes_its_unit_at_two(seconds, text):
    assert format_duration(seconds) == text


def test_a_line_is_printed_every_ten_seconds(clock, capsys):
    progress = Progress("job", total_seconds_left=lambda: 100.0)
    progress.begin(5)
    for k, seconds in enumerate((0.0, 9.0, 10.0, 19.9, 20.0)):
        clock[0] = seconds
        progress(k)
    assert capsys.readouterr().err.splitlines() == [
        "job: iteration 2 of 5, 3 s left; 100 s left in all",
        "job: iteration 4 of 5, 4 s left; 100 s left in all",
    ]


def test_the_first_iteration_is_told_once(clock):
    begun = []
    progress = Progress("job")
    progress.first_done = lambda: begun.append(1)
    progress.begin(5)
    for k in range(3):
        progress(k)
    assert begun == [1]
    assert progress.current_phase is None


class Bar:
    """A bar that keeps what it shows."""

    task_ids = (7,)

    def __init__(self):
        self.shown, self.lines, self.is_stopped = [], [], False
        self.console = SimpleNamespace(print=lambda line, soft_wrap: self.lines.append(line))

    def update(self, task, **fields):
        assert task == 7
        self.shown.append(fields)

    def start(self):
        self.is_stopped = False

    def stop(self):
        self.is_stopped = True


def with_bar(clock, iterations=100):
    progress = Progress("job")
    progress.begin(iterations)
    progress.bar = Bar()
    return progress, progress.bar


def test_a_bar_moves_twice_a_second_and_at_both_ends(clock, capsys):
    clock[0] = 100.0
    progress, bar = with_bar(clock, 5)
    moved = {0: 100.0, 1: 100.4, 2: 100.5, 3: 100.6, 4: 100.9, 5: 100.95}
    for k, seconds in moved.items():
        clock[0] = seconds
        progress(k)
    assert [fields["completed"] for fields in bar.shown] == [0, 2, 5]
    assert bar.shown[1]["doing"] == "0 s left"
    assert bar.shown[0]["doing"] == ""
    progress.phase("draws")
    assert bar.shown[-1] == {"doing": "draws"}
    clock[0] = 102.5
    progress.end("done")
    assert bar.is_stopped
    assert progress.bar is None
    assert progress.stopped.is_set()
    assert capsys.readouterr().err == "job: done (2.5 s)\n"


def test_a_line_beside_a_bar_goes_through_its_console(clock, capsys):
    progress, bar = with_bar(clock)
    progress(40)
    assert bar.lines == ["job: goes on from iteration 40 of 100"]
    assert capsys.readouterr().err == ""


def test_a_bar_is_for_a_terminal_that_wants_one(monkeypatch):
    bars = []

    def bar(title, iterations):
        bars.append((title, iterations))
        return Bar()

    monkeypatch.setattr(reports, "_bar", bar)
    for wanted, terminal in ((True, False), (False, True), (True, True)):
        monkeypatch.setattr(reports.sys, "stderr", SimpleNamespace(isatty=lambda t=terminal: t))
        Progress("job", bar=wanted).begin(9)
    assert bars == [("job", 9)]


class Looks:
    """Stands in for the event of the end: some looks pass, each after some seconds."""

    def __init__(self, clock, *seconds):
        self.clock, self.seconds = clock, list(seconds)

    def wait(self, interval):
        assert interval == reports.CHECK_SECONDS
        if not self.seconds:
            return True
        self.clock[0] = self.seconds.pop(0)
        return False


def test_a_phase_is_told_ten_seconds_after_it_began_or_after_the_last_line(clock, capsys):
    progress = Progress("job")
    progress.current_phase = "draws", 5.0
    progress.stopped = Looks(clock, 14.9, 15.0, 24.9, 25.0)
    progress._watch()
    assert capsys.readouterr().err.splitlines() == [
        "job: draws, 10 s so far",
        "job: draws, 20 s so far",
    ]
    progress.bar = Bar()
    progress.stopped = Looks(clock, 100.0)
    progress._watch()
    progress.bar, progress.current_phase = None, None
    progress.stopped = Looks(clock, 200.0)
    progress._watch()
    assert capsys.readouterr().err == ""


def test_a_thread_watches_from_the_first_phase_on_and_is_one(clock, monkeypatch):
    threads = []

    class Thread:
        def __init__(self, target, daemon):
            assert daemon is True
            threads.append(target)

        def start(self):
            pass

    monkeypatch.setattr(reports, "Thread", Thread)
    progress = Progress("job")
    progress.phase("reads")
    clock[0] = 3.0
    progress.phase("draws")
    assert progress.current_phase == ("draws", 3.0)
    assert threads == [progress._watch]
