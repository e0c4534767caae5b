"""What a job tells of itself while it is at work."""

import numpy as np
import pytest

from normbench.command.sweep.progress import Pace, format_duration
from tests import forks
from tests.command.test_grid import LIGHT

X = np.arange(3000.0).reshape(500, 6)
WORDS = ("normalizer=standard", "iterations=2000", "step_sizes=[0.1]", *LIGHT)
# A clock that runs a thousand times as fast: lines come every hundredth of a second.
PROGRAM = """
import sys, time
real, begun = time.monotonic, time.monotonic()
time.monotonic = lambda: begun + 1000 * (real() - begun)
from normbench.__main__ import main
"""
SCREEN = """
import os, threading
terminal, screen = os.openpty()
os.dup2(screen, 2)
def copy():
    with open("screen", "wb", buffering=0) as file:
        while True:
            file.write(os.read(terminal, 65536))
threading.Thread(target=copy, daemon=True).start()
"""
RUN = "main(sys.argv[1:])\n"
TITLE = "job 1 of 1: breast_cancer softmax standard: "


@pytest.mark.commands
def test_a_line_says_every_ten_seconds_how_far_a_job_is(tmp_path):
    done = forks.run(WORDS, tmp_path, program=PROGRAM + RUN)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if ": iteration " in line]
    assert len(lines) >= 2
    far = [line.removeprefix(f"{TITLE}iteration ").partition(" of 2000, ") for line in lines]
    assert [int(k) for k, _, _ in far] == sorted({int(k) for k, _, _ in far})
    assert all(time.endswith(" left") for _, _, time in far)


@pytest.mark.commands
def test_a_terminal_has_a_bar_in_place_of_lines(tmp_path):
    environment = forks.user_environment(TERM="xterm", COLUMNS="100")
    done = forks.run(WORDS, tmp_path, environment, program=SCREEN + PROGRAM + RUN)
    assert done.returncode == 0
    screen = (tmp_path / "screen").read_text()
    assert "2000/2000" in screen
    assert "\x1b[" in screen
    assert f"{TITLE}iteration " not in screen


def test_a_slow_first_iteration_is_no_measure_of_the_others():
    """As of lbfgs on MNIST: 30 seconds for the first, 0.1 for each of the others."""
    pace = Pace(0, 0.0, warm=False)
    pace.mark(1, 30.0)
    assert pace.seconds_left(100) is None
    pace.mark(2, 30.1)
    assert pace.seconds_left(100) == pytest.approx(9.8)


def test_the_time_that_is_left_follows_the_latest_pace():
    pace = Pace(0, 0.0, warm=True)
    for k in range(1, 11):
        pace.mark(k, 10.0 * k)
    assert pace.seconds_left(1000) == pytest.approx(9900)
    for k in range(11, 400):
        pace.mark(k, 100 + 0.1 * (k - 10))
    assert pace.seconds_left(1000) == pytest.approx(60.1, rel=0.02)


def test_long_times_are_told_in_minutes_and_hours():
    said = {0: "0 s", 119.4: "119 s", 120: "2 min", 7199: "120 min", 7200: "2 h 0 min"}
    said |= {2 * 3600 + 59 * 60 + 40: "3 h 0 min", 100000: "27 h 47 min"}
    assert {seconds: format_duration(seconds) for seconds in said} == said
