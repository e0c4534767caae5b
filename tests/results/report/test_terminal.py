"""What a command prints at its end: nothing wider than the terminal, nothing twice, no markup."""

import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import tables
from normbench.results.report import screen, screen_table, terminal
from normbench.results.words import headings
from tests.results.compare.test_heldout import splits
from tests.results.made import recorded, repeated, runs, tagged

ESCAPE = re.compile(r"\x1b\[[\d;]*m")
LONG = "chain, normalizer.steps=[standard, pca_sphere, another_one], normalizer.ridge=1e-07"
TWO = [("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 9.0})]
OTHER = [("y", "a", {1.0: 1.0}), ("y", "b", {1.0: 2.0})]


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

    def of(sweep, columns=100, stream=None, drawn=(), **environment):
        stream = io.StringIO() if stream is None else stream
        for name, value in {"COLUMNS": str(columns), **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stdout", stream)
        terminal.present(sweep, lambda: dict(drawn))
        return stream.getvalue()

    return of


def plain(text):
    return [ESCAPE.sub("", line).rstrip() for line in text.splitlines()]


def table_lines(table, columns, monkeypatch):
    """Return the lines of a table on a terminal so many columns wide."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    screen_table.print_table(screen.console(stream), table)
    return plain(stream.getvalue())


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_nothing_is_wider_than_the_terminal_and_no_number_is_broken(
    three, shown, columns, monkeypatch
):
    lines = plain(shown(three.sweep, columns, Terminal()))
    assert max(map(len, lines)) <= columns
    heads = next(line for line in lines if line.startswith("scheme"))
    assert "cost left" in heads
    assert ("verdict" in heads) or columns == 60  # the least telling columns go first
    wide = {"scheme": [LONG, "a"], **{f"number {k}": [k / 7, 1.0] for k in range(14)}}
    lines = table_lines(pd.DataFrame(wide), columns, monkeypatch)
    assert max(map(len, lines)) <= columns
    numbers = [word for line in lines for word in line.split() if word.startswith("0.")]
    assert numbers == [f"{k / 7:.6g}" for k in range(1, 7)]


def test_the_answer_is_bold_and_schemes_have_their_colours(three, shown):
    text = shown(three.sweep, 100, Terminal(), COLORTERM="truecolor")
    assert text.splitlines()[1].startswith("\x1b[1m")
    standard, sphere = (
        re.search(rf"\x1b\[(38;[\d;]+)m{name}", text)[1] for name in ("standard", "pca_sphere")
    )
    assert standard != sphere


@pytest.mark.parametrize("how", [{"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}, {}])
def test_text_without_colours_is_plain(three, shown, how):
    stream = Terminal() if how else None
    text = shown(three.sweep, 100, stream, FORCE_COLOR="1", **how)
    assert "\x1b" not in text
    assert ("\u2588" in text) == ("NO_COLOR" in how or "CI" in how)


def test_a_terminal_without_such_characters_has_no_bars(three, shown):
    stream = Terminal()
    stream.encoding = "ascii"
    assert shown(three.sweep, 100, stream).isascii()


def test_names_of_data_are_no_markup(monkeypatch):
    table = pd.DataFrame({"scheme": ["[red]a", "名前"], ":smile:": [1.5, 1], "[bold]": [1234, 5]})
    assert table_lines(table, 80, monkeypatch) == [
        "scheme  :smile:  [bold]",
        "[red]a      1.5    1234",
        "名前          1       5",
    ]
    for stream in (Terminal(), io.StringIO()):
        screen.print_lines(screen.console(stream), ":smile: [bold]words[/bold] 12")
        assert stream.getvalue() == ":smile: [bold]words[/bold] 12\n"


def test_words_longer_than_a_line_are_broken_on_a_terminal_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")  # less than any comparison fits in: 60 are taken
    stream, pipe = Terminal(), io.StringIO()
    for each in (stream, pipe):
        screen.print_lines(screen.console(each), f"one {130 * 'x'}", "two-parts " * 7)
    lines = plain(stream.getvalue())
    assert lines[:3] == [f"one {56 * 'x'}", 60 * "x", 14 * "x"]
    assert lines[3:] == [("two-parts " * 6).strip(), "two-parts"]
    assert pipe.getvalue().splitlines()[:2] == ["one", 130 * "x"]


def test_a_sparkline_is_of_the_excess_on_a_logarithmic_scale():
    assert screen_table.sparkline(np.geomspace(1, 1e-7, 8), 1e-7) == screen_table.BLOCKS[::-1]
    assert screen_table.sparkline(np.array([3.0, 1e-9]), 1e-2) == 4 * "█" + 4 * "▁"
    for lost in ([1.0], [1.0, np.inf], [1.0, np.nan, 0.5]):
        assert screen_table.sparkline(np.array(lost), 1e-2) == ""


def test_colours_too_dark_for_a_dark_terminal_are_its_own():
    """By luminance: 0.30 of 0.831 is 0.249."""
    for color, readable in (("#d40000", 0), ("#d60000", 1), ("#3f3f3f", 0), ("#e69f00", 1)):
        assert screen_table._readable(color) == (color if readable else "default")


def test_a_sparkline_and_a_bar_are_of_what_is_compared(monkeypatch):
    sweep = tagged(runs(*TWO, ("x", "c", None)), MINIMUM_REACHED="true", FINAL_COST={"a": 0.25})
    history = np.geomspace(1, 1e-4, 8)
    rows = sweep.of_role(names.SCHEME).to_dict("records")
    frames = [
        pd.DataFrame({"run_id": row["run_id"], names.TRAIN_COST.key: history}) for row in rows[:2]
    ]
    monkeypatch.setattr(tables, "histories", lambda sweep: pd.concat(frames, ignore_index=True))
    lines = [screen_table.sparkline(history, 1e-4)] * 2
    assert screen_table._histories(sweep, rows) == [*lines, ""]
    for row in rows:  # counts, the least of which is 0
        row[names.COMPARED.column], row[names.MINIMUM.column] = names.MISCLASSIFICATIONS, 0.7
    for frame in frames:
        frame[names.TRAIN_MISCLASSIFICATIONS.key] = frame[names.TRAIN_COST.key]
        frame[names.TRAIN_COST.key] = 9.0
    assert screen_table._histories(sweep, rows) == [*lines, ""]


def test_columns_that_tell_nothing_are_left_out():
    table = pd.DataFrame(
        {"scheme": ["a", "b"], "steps": [10, 10], "diverged": [np.nan, 0], "seconds": [0.1, 9.0]}
    )
    assert list(screen_table.without_uninformative(table)) == ["scheme"]
    told = table.assign(steps=[10, 9], diverged=[0, 1], seconds=[0.1, 11.0])
    assert list(screen_table.without_uninformative(told)) == list(table)


def test_several_experiments_begin_with_one_sentence_over_all_and_say_nothing_twice(shown):
    one, two = shown(runs(*TWO)), shown(runs(*TWO, *OTHER))
    assert one.lstrip().startswith("Fastest on this grid: a. ")
    assert one.count("of the excess cost in") == 1
    assert two.lstrip().startswith("a is fastest on 2 of 2 problems")
    assert [line.split(": ")[0] for line in two.splitlines() if line[:2] in ("x:", "y:")] == [*"xy"]
    assert "failed" not in two
    lost = shown(tagged(runs(*TWO), "b", verdict=names.DIVERGED))
    assert lost.count("b diverged at every step size.") == 1


def test_jobs_that_failed_stand_there_with_their_reasons(shown):
    sweep = tagged(runs(*TWO, ("x", "c", None)), "c", reason="it [b]broke[/b]")
    assert "1 of 3 jobs failed:\n  x, c: it [b]broke[/b]\n" in shown(sweep)


@pytest.mark.parametrize("known", [True, False])
def test_excess_is_explained_below_a_table_that_has_one(shown, known):
    sweep = tagged(runs(*TWO, iterations="50"), MINIMUM_REACHED=str(known).lower())
    text = shown(recorded(sweep))
    words = " ".join(text.split())
    assert (headings.GLOSSARY_LINE in words) == ("excess" in words) == known


@pytest.mark.parametrize(
    ("settings", "budget"),
    [
        ({"iterations": "50", "starts": "3"}, "In 50 iterations of gradient descent (medians of 3"),
        ({"iterations": "0"}, None),
    ],
)
def test_above_the_table_stands_the_budget(shown, settings, budget):
    lines = [line for line in shown(runs(*TWO, **settings)).splitlines() if line[:3] == "In "]
    assert [line.startswith(budget) for line in lines] == [True] * bool(budget)


def test_a_cause_takes_the_place_of_the_theory_but_for_notes(shown, monkeypatch):
    causes = {"x": "Why: it is rounder.", "y": ""}
    monkeypatch.setattr(terminal.cause, "cause", lambda sweep, name: causes[name])
    monkeypatch.setattr(terminal.theory, "notes", lambda sweep, name: [f"Note: of {name}."])
    monkeypatch.setattr(terminal.theory, "explanation", lambda sweep, name: f"All of {name}.")
    lines = shown(runs(*TWO, *OTHER)).splitlines()
    start = lines.index("Why: it is rounder.")
    assert lines[start + 1] == "Note: of x."
    assert "All of y." in lines[start:]
    assert not {"All of x.", "Note: of y."} & {*lines}


def test_files_are_told_by_folder_once_the_answer_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed = []

    def write_files():
        printed.append(capsys.readouterr().out)
        out = tmp_path / "outputs"
        return {
            "x": [out / "report.html", out / "a.svg", out / "a.png", Path("/else/b.svg")],
            "y": [out / "report.html"],
        }

    terminal.present(runs(*TWO), write_files)
    assert "Fastest on this grid: a. " in printed[0]
    assert "files " not in printed[0]
    assert (
        "files      outputs: report.html and 1 figure (svg, png)\n"
        "files      /else: 1 figure (svg)\n"
    ) in capsys.readouterr().out


@pytest.mark.parametrize("store", ["http://host", "sqlite:///a.db", "outputs"])
def test_what_is_copied_to_mlflow_is_shown_by_the_dashboard(shown, store):
    text = shown(replace(runs(*TWO), store=store))
    hint = "  (normbench dashboard shows it)" if "://" in store else ""
    label = "copied to" if hint else "recorded"
    assert text.endswith(f"{label:11}{store}{hint}\n")


def test_a_password_of_a_store_is_not_printed(shown):
    assert "secret" not in shown(replace(runs(*TWO), store="postgresql://me:secret@host/db"))


def test_of_more_schemes_than_a_figure_shows_none_is_drawn(shown):
    most = terminal.MAX_DRAWN_SCHEMES
    for count in (most, most + 1):
        text = shown(runs(*(("x", f"s{n}", {1.0: 3.0}) for n in range(count))))
        assert (f"figures    none of x: more than {most} schemes;" in text) == (count > most)


@pytest.mark.parametrize(
    ("jobs", "theory", "asked"),
    [
        (TWO, "none", True),
        (TWO, "full", False),  # a cost without curvature
        ([("x", "a", None)], "none", False),
    ],
)
def test_no_setting_is_named_that_would_not_help(capsys, jobs, theory, asked):
    terminal.print_theory(runs(*jobs, theory=theory))
    text = capsys.readouterr().out
    assert ("No theory was recorded; theory=full" in text) == asked
    assert ("Theory promises no step size here.\n" in text) == (not asked)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_test_points_are_told_by_scheme_and_in_pairs_of_several_splits(capsys, count, monkeypatch):
    held = splits(a=[0.1, 0.1], b=[0.2, 0.2]).query("split < @count")
    monkeypatch.setattr(terminal.heldout, "by_split", lambda sweep: held)
    terminal.print_theory(runs(*TWO))
    text = " ".join(capsys.readouterr().out.split())
    assert (headings.TEST_POINTS in text) == (count > 0)
    for phrase in (headings.TEST_PAIRS, "on new data: for other data", "Nadeau and Bengio 2003"):
        assert (phrase in text) == (count > 1)


def test_cross_validation_has_a_table(capsys, monkeypatch):
    folds = pd.DataFrame({"scheme": ["a"], "error": [0.125]})
    monkeypatch.setattr(terminal.heldout, "cross_validated", lambda sweep: folds)
    terminal.print_theory(runs(*TWO))
    assert headings.CROSS_VALIDATION in " ".join(capsys.readouterr().out.split())


def test_orders_of_batches_are_not_called_splits(capsys):
    jobs = repeated(2, "batch_seed", a=[3.0, 4.0], b=[5.0, 6.0])
    terminal.print_theory(runs(*jobs, batch="30"))
    text = " ".join(capsys.readouterr().out.split())
    assert "each scheme with one step size for all orders of the batches" in text
    assert "best step size for each of the orders of the batches, in pairs" in text
