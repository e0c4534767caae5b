"""A command whose reader leaves, as in `normbench results table | head`, ends quietly."""

import os
import subprocess
import sys

import pytest

from normbench.command.sweep import printing
from tests import forks
from tests.test_waits import SMALL


@pytest.mark.commands
@pytest.mark.parametrize("word", ["table --histories --all-steps", "figure histories"])
def test_every_word_ends_quietly_as_other_commands_do(three, tmp_path, word):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "normbench", "results", *word.split(), "--folder", three.home]
    done = subprocess.run(
        command,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=forks.user_environment(),
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (printing.READER_LEFT_CODE, "")
    assert printing.READER_LEFT_CODE == 128 + 13  # SIGPIPE


@pytest.mark.slow
def test_a_comparison_whose_reader_leaves_draws_its_figures(tmp_path):
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "normbench", *SMALL, "figures=[melt]", "tracking=none"]
    options = {"stderr": subprocess.DEVNULL, "env": forks.user_environment()}
    started = subprocess.Popen(command, stdout=writer, cwd=tmp_path, **options)
    os.close(writer)
    os.close(reader)  # before the answer is printed, as by `head` after its last line
    assert started.wait() in (0, printing.READER_LEFT_CODE)
    assert {file.name for file in tmp_path.glob("outputs/*/*")} >= {"report.html", "melt.png"}


def test_a_broken_pipe_of_something_else_stays_an_error(capfd):
    assert printing.describe_output_error(BrokenPipeError()) is None
