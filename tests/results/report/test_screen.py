"""What a terminal shows: nothing wider than itself, colours only where they are wanted."""

import io
import re

import numpy as np
import pandas as pd
import pytest

from normbench.results.report import screen, screen_table, terminal
from tests.recorded import three as three
from tests.results.made import runs

ESCAPE = re.compile(r"\x1b\[[\d;]*m")
LONG = "chain, normalizer.steps=[standard, pca_sphere, another_one], normalizer.ridge=1e-07"


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Return a function that gives what a comparison ends in on a terminal so many columns wide."""
    for name in ("NO_COLOR", "CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def of(sweep, columns, stream=None, **environment):
        stream = Terminal() if stream is None else stream
        monkeypatch.setenv("COLUMNS", str(columns))
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stdout", stream)
        terminal.present(sweep, dict)
        return stream.getvalue()

    return of


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal(three, shown, columns):
    lines = [ESCAPE.sub("", line).rstrip() for line in shown(three.sweep, columns).splitlines()]
    assert max(map(len, lines)) <= columns
    heads = next(line for line in lines if line.startswith("scheme"))
    assert ("verdict" in heads) or columns == 60
    assert "cost left" in heads
    stream = Terminal()
    screen_table.print_table(
        screen.console(stream),
        pd.DataFrame({"scheme": [LONG, "a"], **{f"number {k}": [k / 7, 1.0] for k in range(14)}}),
    )
    lines = [ESCAPE.sub("", line).rstrip() for line in stream.getvalue().splitlines()]
    assert max(map(len, lines)) <= columns
    numbers = [word for line in lines for word in line.split() if word.startswith("0.")]
    assert numbers == [f"{k / 7:.6g}" for k in range(1, 7)]  # none is broken


def test_the_answer_is_bold_and_schemes_have_their_colours(three, shown):
    text = shown(three.sweep, 100, COLORTERM="truecolor")
    assert text.splitlines()[1].startswith("\x1b[1m")
    colored = re.search(r"\x1b\[(38;[\d;]+)mstandard", text)
    other = re.search(r"\x1b\[(38;[\d;]+)mpca_sphere", text)
    assert colored[1] != other[1]  # in 8 bits or 24: rich keeps what it rendered first


@pytest.mark.parametrize("how", [{"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}, {}])
def test_text_without_colours_is_plain(three, shown, how):
    stream = None if how else io.StringIO()
    text = shown(three.sweep, 100, stream, FORCE_COLOR="1", **how)
    assert "\x1b" not in text
    assert ("\u2588" in text) == ("NO_COLOR" in how or "CI" in how)


def test_a_terminal_without_such_characters_has_no_bars(three, shown):
    stream = Terminal()
    stream.encoding = "ascii"
    assert shown(three.sweep, 100, stream).isascii()


def test_a_history_is_drawn_from_its_start_to_its_end():
    shares = np.geomspace(1, 1e-3, 101)
    line = screen_table.sparkline(shares, 1e-3)
    assert (len(line), line[0], line[-1]) == (8, "\u2588", "\u2581")
    assert sorted(line, reverse=True) == list(line)
    assert screen_table.sparkline(shares[:1], 1e-3) == ""
    assert screen_table.sparkline(np.array([1.0, np.inf]), 1e-3) == ""


def test_columns_that_tell_nothing_are_left_out():
    table = pd.DataFrame(
        {"scheme": ["a", "b"], "steps": [10, 10], "diverged": [0, 0], "seconds": [0.1, 9.0]}
    )
    assert list(screen_table.without_uninformative(table)) == ["scheme"]
    told = table.assign(steps=[10, 9], diverged=[0, 1], seconds=[0.1, 11.0])
    assert list(screen_table.without_uninformative(told)) == list(table)


def test_a_colour_too_dark_for_a_dark_terminal_is_the_terminal_s_own():
    assert screen_table._readable("#000000") == "default"
    assert screen_table._readable("#e69f00") == "#e69f00"


def test_a_failed_job_has_a_row_too(shown):
    sweep = runs(("x", "a", {1.0: 3.0}), ("x", "c", None))
    sweep.runs["reason"] = ""
    assert "scheme" in shown(sweep, 80)
