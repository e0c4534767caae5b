"""The table of a comparison on a terminal: its headings, widths, bars and sparklines."""

import io
import os

import numpy as np
import pandas as pd
import pytest
from rich.bar import Bar
from rich.text import Text

from normbench import names
from normbench.results.answer import tables
from normbench.results.report import screen, screen_table
from tests.results.made import runs
from tests.results.report.test_screen import ESCAPE, Terminal

BLOCKS = screen_table.BLOCKS


@pytest.fixture
def printed(monkeypatch):
    """Return a function that gives the lines of a table on a terminal so many columns wide."""

    def of(table, columns):
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        stream = Terminal()
        screen_table.print_table(screen.console(stream), table)
        return [ESCAPE.sub("", line).rstrip() for line in stream.getvalue().splitlines()]

    return of


def test_a_heading_of_several_words_is_split_near_its_middle():
    assert screen_table._head("scheme") == "scheme"
    assert screen_table._head("converges up to") == "converges\nup to"
    assert screen_table._head("a bcd efghijk") == "a bcd\nefghijk"
    assert screen_table._head("abcdefg hij k") == "abcdefg\nhij k"
    assert screen_table._head(screen_table.BAR) == ""


def test_a_width_is_that_of_the_longest_cell_or_half_of_the_heading():
    assert screen_table._width("scheme", [Text("a"), Text("abcdefgh")]) == 8
    assert screen_table._width("converges up to", [Text("a")]) == 9
    assert screen_table._width("a", [Bar(1.0, 0.0, 0.5)]) == 8
    assert screen_table._width("a", [Text("名前")]) == 4  # each takes two columns
    assert screen_table._width("abc", []) == 3
    cells = {"scheme": [Text("abcdefgh")], "n": [Text("12")]}
    assert screen_table._table_width(cells) == 8 + 2 + 2 + 2


def test_blocks_of_columns_begin_with_the_names_and_are_as_wide_as_fits(printed):
    """Two columns of numbers beside the names take 8 + 2 times 2 + 22 = 34 of the columns."""
    table = pd.DataFrame({"scheme": ["abcdefgh", "b"]} | {f"number{k}": [k, k] for k in range(8)})
    lines = printed(table, 60)
    heads = [line.split() for line in lines if line.startswith("scheme")]
    assert heads == [
        ["scheme", *(f"number{k}" for k in range(5))],
        ["scheme", *(f"number{k}" for k in range(5, 8))],
    ]
    assert max(map(len, lines)) <= 60
    assert [line.split() for line in lines if line.startswith("b ")] == [
        ["b", *map(str, range(5))],
        ["b", *map(str, range(5, 8))],
    ]
    exact = 8 + 2 + 5 * (7 + 2)  # five columns of numbers just fit
    table = table.rename(columns={"scheme": "scheme" + 5 * "x"})
    for columns, count in ((exact + 5, 5), (exact + 5 - 1, 5 - 1)):
        first = next(line for line in printed(table, columns) if line.startswith("scheme"))
        assert len(first.split()) == 1 + max(count, (60 - 15) // 9)


def test_texts_stand_to_the_left_and_numbers_to_the_right(printed):
    head, first, second = printed(pd.DataFrame({"scheme": ["ab", "c"], "n": [1234, 5]}), 80)
    assert (head, first, second) == ("scheme     n", "ab      1234", "c          5")


def test_headings_are_names_of_data_and_no_markup(printed):
    lines = printed(pd.DataFrame({"scheme": ["a"], ":smile:": [1.5]}), 80)
    assert lines[0].split() == ["scheme", ":smile:"]
    assert printed(pd.DataFrame({"scheme": ["a"], "[bold]": [1.5]}), 80)[0].split()[1] == "[bold]"


def test_a_console_prints_words_as_they_are(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for stream in (Terminal(), io.StringIO()):
        screen.console(stream).print(":smile: [bold]words[/bold] 12")
        assert stream.getvalue() == ":smile: [bold]words[/bold] 12\n"


@pytest.mark.parametrize(
    ("kind", "columns", "width"),
    [(Terminal, 40, 60), (Terminal, 61, 61), (Terminal, 200, 200), (io.StringIO, 200, 100)],
)
def test_a_console_is_as_wide_as_its_terminal_and_not_too_narrow(monkeypatch, kind, columns, width):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert screen.console(kind()).width == width
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback: os.terminal_size((77, 24)))
    assert screen.console(Terminal()).width == 77


def test_words_longer_than_a_line_are_broken_on_a_terminal_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    long = "x" * 130
    stream, pipe = Terminal(), io.StringIO()
    screen.print_lines(screen.console(stream), f"one {long}", "two-parts " * 7)
    lines = [ESCAPE.sub("", line) for line in stream.getvalue().splitlines()]
    assert lines[:3] == [f"one {56 * 'x'}", 60 * "x", 14 * "x"]
    assert lines[3:] == [("two-parts " * 6).strip(), "two-parts"]
    screen.print_lines(screen.console(pipe), f"one {long}")
    assert pipe.getvalue().splitlines() == ["one", long]


@pytest.mark.parametrize(
    ("color", "readable"),
    [
        ("#d40000", False),  # 0.30 of 0.831 is 0.249
        ("#d60000", True),
        ("#006b00", False),
        ("#006e00", True),
        ("#0000ff", False),
        ("#8200ff", True),  # 0.153 + 0.11
        ("#4a4a4a", True),  # grey of 0.29
        ("#3f3f3f", False),  # 0.247
    ],
)
def test_a_colour_is_readable_by_its_luminance(color, readable):
    assert screen_table._readable(color) == (color if readable else "default")


def test_a_sparkline_samples_eight_iterations_on_a_logarithmic_scale():
    assert screen_table.sparkline(np.array([1.0, 1e-3]), 1e-3) == 4 * "█" + 4 * "▁"
    line = screen_table.sparkline(np.geomspace(1, 1e-7, 8), 1e-7)
    assert line == BLOCKS[::-1]
    assert screen_table.sparkline(np.array([3.0, 1e-9]), 1e-2) == 4 * "█" + 4 * "▁"
    assert screen_table.sparkline(np.array([1.0, np.nan, 0.5]), 1e-2) == ""


def recorded(monkeypatch, histories, counted=(), minimum=0.0):
    """Return the sparklines of schemes of these costs, of an excess of 2 at the start."""
    made = runs(*(("x", scheme, {1.0: 3.0}) for scheme in histories))
    rows = made.of_role(names.SCHEME).to_dict("records")
    frames = []
    for row in rows:
        row[names.MINIMUM.column] = minimum
        is_counted = row["normalizer"] in counted
        row[names.target("1e-1").column] = 0.2 if is_counted else minimum + 0.2
        if is_counted:
            row[names.COMPARED.column] = names.MISCLASSIFICATIONS
        frame = pd.DataFrame(
            {"run_id": row["run_id"], names.TRAIN_COST.key: histories[row["label"]]}
        )
        if is_counted:
            frame[names.TRAIN_MISCLASSIFICATIONS.key] = frame[names.TRAIN_COST.key]
            frame[names.TRAIN_COST.key] = 9.0
        frames.append(frame)
    monkeypatch.setattr(tables, "histories", lambda sweep: pd.concat(frames, ignore_index=True))
    return screen_table._histories(made, rows)


def test_sparklines_share_a_foot_which_is_the_least_share_within_bounds(monkeypatch):
    falling, deep = 2 * np.geomspace(1, 1e-4, 8), 2 * np.geomspace(1, 1e-12, 8)

    def lines(foot, *histories):
        return [screen_table.sparkline(history / 2, foot) for history in histories]

    assert recorded(monkeypatch, {"a": falling}) == lines(1e-4, falling)
    both = recorded(monkeypatch, {"a": falling, "b": deep})
    assert both == lines(1e-6, falling, deep)
    slow = np.linspace(2, 1, 8)
    assert recorded(monkeypatch, {"a": slow}) == lines(0.1, slow)
    assert recorded(monkeypatch, {"a": falling + 5}, minimum=5.0) == lines(1e-4, falling)
    lost = np.r_[2.0, np.inf]
    assert recorded(monkeypatch, {"a": lost, "b": slow}) == ["", *lines(0.1, slow)]
    assert recorded(monkeypatch, {"a": falling[:1], "b": slow}) == ["", *lines(0.1, slow)]
    two = falling[[0, -1]]
    assert recorded(monkeypatch, {"a": two, "b": slow}) == lines(1e-4, two, slow)


def test_a_sparkline_is_of_misclassified_points_where_these_are_compared(monkeypatch):
    history = 2 * np.geomspace(1, 1e-4, 8)
    # The least cost is none of the counts, the least of which is 0.
    made = recorded(monkeypatch, {"a": history}, counted=("a",), minimum=0.7)
    assert made == [screen_table.sparkline(history / 2, 1e-4)]


def test_bars_and_histories_follow_the_excess_left(monkeypatch):
    made = runs(*(("x", scheme, {1.0: 3.0}) for scheme in "abc"))
    summary = pd.DataFrame({"scheme": list("abc"), tables.EXCESS_LEFT: [0.25, 7.0, np.nan]})
    cells = {"scheme": list("abc"), tables.EXCESS_LEFT: list("123"), "cost": list("456")}
    colors = ["#ff0000", "#00ff00", "#0000ff"]
    monkeypatch.setattr(screen_table, "_histories", lambda sweep, rows: ["█▁", "", "█▂"])
    drawn = screen_table._with_pictures(cells, summary, made, [], colors)
    bar, history = screen_table.BAR, screen_table.HISTORY
    assert list(drawn) == ["scheme", tables.EXCESS_LEFT, bar, history, "cost"]
    first, second, last = drawn[bar]
    assert [(one.size, one.begin, one.end, one.width) for one in (first, second)] == [
        *((1.0, 0.0, 0.25, 8), (1.0, 0.0, 1.0, 8))
    ]
    assert str(last) == ""
    assert [line.style for line in drawn[history]] == colors
    monkeypatch.setattr(screen_table, "_histories", lambda sweep, rows: ["", "", ""])
    assert history not in screen_table._with_pictures(cells, summary, made, [], colors)


def test_columns_of_equal_counts_are_left_out_at_the_bounds():
    table = pd.DataFrame({"scheme": ["a", "b"], "seconds": [10.0, np.nan], "diverged": [np.nan, 0]})
    assert list(screen_table.without_uninformative(table)) == ["scheme"]
    longer = table.assign(seconds=[10.5, np.nan], diverged=[np.nan, 1], steps=[np.nan, 2])
    assert list(screen_table.without_uninformative(longer)) == ["scheme", "seconds", "diverged"]


def test_a_narrow_terminal_leaves_out_the_least_telling_columns_first(monkeypatch):
    """So many columns go that the rest fits, and no more; the others stand."""
    words = {"scheme": ["a", "b"], "cost left": ["0.1", "0.2"]}
    optional = {name: ["12345678", "2"] for name in screen_table.OPTIONAL_COLUMNS}
    monkeypatch.setattr(screen_table, "without_uninformative", lambda table: table)
    monkeypatch.setattr(tables, "summary", lambda sweep: pd.DataFrame({**words, **optional}))
    monkeypatch.setattr(screen, "shows_bars", lambda terminal: False)
    shown = []
    monkeypatch.setattr(
        screen_table,
        "_print_columns",
        lambda terminal, cells, holds_text: shown.append(list(cells)),
    )
    made = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 3.0}))
    monkeypatch.setenv("TERM", "xterm")
    full = screen_table._texts(pd.DataFrame({**words, **optional}))
    for left_out in (0, 1, 4):
        rest = {k: full[k] for k in full if k not in screen_table.OPTIONAL_COLUMNS[:left_out]}
        monkeypatch.setenv("COLUMNS", str(screen_table._table_width(rest)))
        screen_table.show(screen.console(Terminal()), made)
        assert shown[-1] == list(rest)


def test_pictures_stand_to_the_left_as_texts_do(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    cells = {"scheme": [Text("a"), Text("b")], screen_table.HISTORY: [Text("█"), Text("█▁▁▁▁▁▁▁")]}
    screen_table._print_columns(screen.console(stream), cells, {"scheme": True})
    lines = [ESCAPE.sub("", line).rstrip() for line in stream.getvalue().splitlines()]
    assert lines == ["scheme  history", "a       █", "b       █▁▁▁▁▁▁▁"]
