"""The commands on results: what each is given, where it writes, and how it ends."""

import argparse
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from normbench import names
from normbench.command import entry
from normbench.command.config.errors import SweepError
from normbench.command.results import commands
from normbench.datasets import UserError
from normbench.recording.store.connection import StoreLostError
from normbench.results.answer import tables
from normbench.results.figures import drawing
from normbench.results.report import files, page, terminal
from normbench.results.store import runs, state
from normbench.results.store.errors import ResultsError
from tests.results.made import runs as made_by_hand


def drawn(**changes):
    """Return the options of a command that draws, as they are by default but for changes."""
    given = {
        "format": "screen",
        "first_iteration": 0,
        "scale": None,
        "steps": "",
        "by": "iterations",
    }
    given |= {"components": None, "out": None, "dark": False, "scheme": None, "name": "histories"}
    return argparse.Namespace(**given | changes)


@pytest.mark.parametrize(
    ("changes", "is_default"),
    [
        ({}, True),
        ({"format": "page"}, False),
        ({"first_iteration": 1}, False),
        ({"scale": "excess"}, False),
        ({"steps": "0.1"}, False),
        ({"components": 3}, False),
        ({"components": 0}, False),
        ({"by": "seconds"}, False),
    ],
)
def test_figures_are_a_comparisons_own_where_nothing_is_asked_for(changes, is_default):
    assert commands._has_default_drawing(drawn(**changes)) is is_default


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"first_iteration": -1}, "--first-iteration -1: must be 0 or more"),
        ({"components": 0}, "--components 0: must be 1 or more"),
        ({"steps": "0.1,0"}, "--steps 0.1,0: must be positive numbers with commas"),
        ({"steps": "inf"}, "--steps inf: must be positive"),
        ({"steps": "nan,1"}, "--steps nan,1: must be positive"),
        ({"steps": "a"}, "--steps a: must be positive"),
    ],
)
def test_options_of_drawing_are_checked(changes, words):
    with pytest.raises(ResultsError, match=words):
        commands._options(drawn(**changes))


def test_options_of_drawing_are_those_that_are_given():
    options = commands._options(drawn(steps="0.1,,1", components=1, by="seconds", scale="excess"))
    assert options.steps == (0.1, 1.0)
    assert (options.components, options.by, options.scale) == (1, "seconds", "excess")
    assert commands._options(drawn()).steps == ()


def test_files_of_another_format_stand_in_a_folder_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep = SimpleNamespace(sweep_id="a/b")
    folder = tmp_path / "outputs" / "a_b"
    assert commands._folder(drawn(), sweep) == folder
    assert commands._folder(drawn(format="page"), sweep) == folder / "page"
    assert commands._folder(drawn(format="csv"), sweep) == folder
    assert commands._folder(argparse.Namespace(out=None), sweep) == folder
    assert commands._folder(drawn(format="page", out="here"), sweep) == tmp_path / "here"


def chosen(**changes):
    return argparse.Namespace(**{"store": "-", "where": None, "sweep": None} | changes)


def test_a_sweep_is_chosen_by_its_id_or_by_a_filter(monkeypatch, capsys):
    read, asked = made_by_hand(("x", "a", {1.0: 3.0})), made_by_hand(("y", "a", {1.0: 3.0}))
    read.left_out.append("of the sweep")
    asked.left_out.append("of the filter")
    given = []
    monkeypatch.setattr(
        state, "read", lambda store, ids: given.append(ids) or (read, ["It is running."])
    )
    monkeypatch.setattr(runs, "load_query", lambda store, where: given.append(where) or asked)
    options = chosen(sweep=["s"])
    assert commands._sweep(options) is read
    assert options.left_out is read.left_out == []
    assert capsys.readouterr().err == "It is running.\n"
    assert commands._sweep(chosen()) is read
    options = chosen(where="params.x = '1'")
    assert commands._sweep(options) is asked
    assert options.left_out == []
    assert capsys.readouterr().err == "It is running.\nof the filter\n"
    assert given == [["s"], (), "params.x = '1'"]
    with pytest.raises(ResultsError, match=r"^--where: finds runs of every comparison; leave s t"):
        commands._sweep(chosen(where="x", sweep=["s", "t"]))


@pytest.fixture
def swept(monkeypatch):
    sweep = made_by_hand(("x", "a", {1.0: 3.0}))
    monkeypatch.setattr(commands, "_sweep", lambda options: sweep)
    return sweep


def tabled(**changes):
    given = {"format": "text", "histories": False, "all_steps": False, "out": None}
    return argparse.Namespace(**given | changes)


def test_a_table_is_printed_or_written_in_its_format(swept, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    summary = pd.DataFrame({"scheme": ["a"], "cost": [1.0]})
    histories = pd.DataFrame({"scheme": ["a", "a"], "iteration": [0, 1]})
    asked = []
    monkeypatch.setattr(tables, "summary", lambda sweep: summary)
    monkeypatch.setattr(tables, "histories", lambda sweep, role: asked.append(role) or histories)
    printed = []
    monkeypatch.setattr(commands, "_print_table", printed.append)
    assert commands._table(tabled()) == 0
    assert printed == [summary]
    assert commands._table(tabled(histories=True)) == 0
    assert commands._table(tabled(all_steps=True, format="markdown")) == 0
    assert asked == [names.SCHEME, names.STEP]
    assert capsys.readouterr().out == (f"{tables.text(histories)}\n{tables.markdown(histories)}\n")
    assert printed == [summary]
    assert commands._table(tabled(out="here", format="latex")) == 0
    assert (tmp_path / "here" / "table.tex").read_text() == f"{tables.latex(summary)}\n"
    assert commands._table(tabled(out="here", histories=True)) == 0
    assert (tmp_path / "here" / "histories.txt").read_text() == f"{tables.text(histories)}\n"
    assert commands._table(tabled(format="parquet")) == 0
    written = capsys.readouterr().out.splitlines()
    files = ("here/table.tex", "here/histories.txt", "outputs/s/table.parquet")
    assert written == [str(tmp_path / file) for file in files]
    assert pd.read_parquet(written[-1])["scheme"].tolist() == ["a"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        commands._table(tabled(out="file"))


@pytest.mark.parametrize(("all_steps", "word"), [(False, "--histories"), (True, "--all-steps")])
def test_histories_that_are_gone_are_told(swept, monkeypatch, all_steps, word):
    monkeypatch.setattr(tables, "histories", lambda sweep, role: pd.DataFrame())
    with pytest.raises(ResultsError, match=f"^table {word}: s has no histories; its jobs failed"):
        commands._table(tabled(histories=True, all_steps=all_steps))


def test_a_table_on_a_terminal_is_printed_in_blocks(monkeypatch, capsys):
    table = pd.DataFrame({"scheme": ["a"], "cost": [1.0]})
    blocks = []
    monkeypatch.setattr(commands, "_columns", lambda: 80)
    monkeypatch.setattr(
        "normbench.results.report.screen_table.print_table",
        lambda console, given: blocks.append(given),
    )
    commands._print_table(table)
    assert (blocks, capsys.readouterr().out) == ([table], "")
    monkeypatch.setattr(commands, "_columns", lambda: 0)
    commands._print_table(table)
    assert len(blocks) == 1
    assert capsys.readouterr().out == f"{tables.text(table)}\n"


def test_only_a_terminal_has_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "77")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    assert commands._columns() == 0
    stream.isatty = lambda: True
    assert commands._columns() == 77


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "historys"}, "figure historys: no such figure; choose one of .*; did you mean"),
        ({"name": "data", "scale": "excess"}, "^--scale excess: is of histories and closer; leave"),
        ({"name": "data", "by": "seconds"}, "^--by seconds: is of histories and closer; leave it"),
        ({"name": "components", "dark": True}, "^--dark: components shows images, which are not"),
    ],
)
def test_options_that_a_figure_does_not_have_are_refused(changes, words):
    with pytest.raises(ResultsError, match=words):
        commands._figure(drawn(**changes))


def test_a_figure_is_written_once_and_dark_where_it_is_asked_for(swept, monkeypatch, capsys):
    files = [Path("/o/a.png"), Path("/o/a.svg")]
    given = []

    def write(sweep, folder, wanted, options, formats):
        given.append((sweep, wanted, formats))
        return {"x": files, "y": files[:1]}

    monkeypatch.setattr(drawing, "write", write)
    monkeypatch.setattr(
        "normbench.results.figures.base.output.write_dark",
        lambda file: file.with_stem(f"{file.stem}-dark"),
    )
    for name in ("histories", "closer"):
        assert commands._figure(drawn(name=name, scale="excess", by="seconds")) == 0
    assert capsys.readouterr().out == 2 * "/o/a.png\n/o/a.svg\n"
    assert given[0] == (swept, ["histories"], ("png", "svg", "pdf"))
    assert commands._figure(drawn(dark=True)) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [*map(str, files), "/o/a-dark.png"]
    commands._figure(drawn(scheme="a"))
    assert given[-1][0] is not swept
    monkeypatch.setattr(drawing, "write", lambda *given: {})
    monkeypatch.setattr(drawing, "missing_figure_message", lambda sweep, name: f"{name} is lacking")
    with pytest.raises(ResultsError, match="histories is lacking"):
        commands._figure(drawn())


def test_a_comparison_is_shown_with_the_figures_that_are_there(swept, monkeypatch, tmp_path):
    shown, written = [], []
    monkeypatch.setattr(
        terminal, "present", lambda sweep, write_files: shown.append((sweep, write_files()))
    )
    monkeypatch.setattr(
        files, "write", lambda *given, **options: written.append((given, options)) or "new"
    )
    there = {"x": []}
    monkeypatch.setattr(
        "normbench.results.pages.drawn.current_figures", lambda sweep, folder: there
    )
    assert commands._show(drawn(out=str(tmp_path))) == 0
    assert shown == [(swept, {"x": []})]
    assert not written
    there = None
    assert commands._show(drawn(out=str(tmp_path))) == 0
    assert commands._show(drawn(out=str(tmp_path), by="seconds")) == 0
    assert shown[1:] == [(swept, "new"), (swept, "new")]
    assert [given for given, _ in written] == [(swept, tmp_path)] * 2
    assert [options["options"].by for _, options in written] == ["iterations", "seconds"]


def test_a_report_is_written_where_it_is_asked_for(swept, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(page, "write", lambda sweep, folder: folder / sweep.sweep_id)
    assert commands._report(argparse.Namespace(out=str(tmp_path))) == 0
    assert capsys.readouterr().out == f"{tmp_path / 's'}\n"


def studied(monkeypatch, checked, write="text"):
    from normbench.results.studies import study_table

    monkeypatch.setattr(study_table, "last_sweeps", lambda store, folder: ({"a": 1}, ["A note."]))
    monkeypatch.setattr(
        study_table, "compare_with_sources", lambda last, folder: pd.DataFrame(checked)
    )
    monkeypatch.setattr(study_table, "table", lambda last: pd.DataFrame({"study": ["plain"]}))
    return commands._studies(argparse.Namespace(store="-", folder="notes", format=write))


def test_studies_end_with_1_where_a_number_differs_without_a_reason(monkeypatch, capsys):
    row = {"study": "s", "what": "w", "the source says": "1", "measured": "1"}
    agrees, differs = ({**row, "verdict": word, "why": ""} for word in ("agrees", "differs"))
    assert studied(monkeypatch, [agrees]) == 0
    shown = capsys.readouterr()
    assert shown.err == "A note.\n"
    assert len(shown.out.splitlines()) == 2
    assert studied(monkeypatch, [agrees, differs]) == 1
    assert capsys.readouterr().out.endswith("\n\ns, w: differs, and nobody says why\n")
    assert studied(monkeypatch, [{**differs, "why": "because"}]) == 0
    assert capsys.readouterr().out.endswith("\n\ns, w: because\n")
    assert studied(monkeypatch, [differs], "csv") == 1
    out = capsys.readouterr().out
    assert "nobody says" not in out
    assert "why" in out.splitlines()[0]
    assert studied(monkeypatch, []) == 0
    assert "plain" in capsys.readouterr().out


def test_a_command_that_there_is_not_is_told_and_any_other_word_is_shown(monkeypatch, capsys):
    given = []
    monkeypatch.setitem(commands.COMMANDS, "show", lambda options: given.append(options.sweep) or 3)
    assert commands.main(["tabel"]) == 2
    assert "results tabel: there is no such command; did you mean table" in capsys.readouterr().err
    assert commands.main([]) == 3
    assert commands.main(["some-sweep"]) == 3
    assert [list(sweep) for sweep in given] == [[], ["some-sweep"]]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ResultsError("wrong"), 2),
        (UserError("wrong"), 2),
        (StoreLostError("wrong"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_a_mistake_ends_with_2_a_lost_store_with_1_and_a_stop_with_130(
    monkeypatch, capsys, error, code
):
    def fails(options):
        raise error

    monkeypatch.setitem(commands.COMMANDS, "list", fails)
    assert commands.main(["list"]) == code
    remedy = "; the same command finishes it" if code == 1 else ""
    assert capsys.readouterr().err == ("" if code == 130 else f"normbench: wrong{remedy}\n")
    for bug in (KeyError("x"), ValueError("x"), RuntimeError("x")):
        error = bug
        with pytest.raises(type(bug)):
            commands.main(["list"])


def test_a_rule_may_stand_in_the_place_of_the_sweep(monkeypatch):
    from normbench.command.results import rejudge

    given = []
    monkeypatch.setattr(rejudge, "parse_rules", lambda rules: rules)
    monkeypatch.setattr(rejudge, "run", lambda *more: given.append(more) or 0)
    monkeypatch.setattr(commands, "_read", lambda store, ids: ids)
    options = {"store": "-", "sweep": "rules.tail=1", "rules": ["rules.x=2"], "out": None}
    assert commands._rejudge(argparse.Namespace(**options)) == 0
    assert given == [("-", (), ["rules.tail=1", "rules.x=2"], None)]
    options |= {"sweep": "s", "out": "/o"}
    commands._rejudge(argparse.Namespace(**options))
    assert given[-1] == ("-", ["s"], ["rules.x=2"], Path("/o"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SweepError("a\n b"), ("a b", 1)),
        (StoreLostError("gone"), ("gone", 1)),
        (UserError("x=1: wrong"), ("x=1: wrong", 2)),
        (ValueError("a bug"), (None, 1)),
    ],
)
def test_an_error_has_a_line_and_an_exit_code(error, expected):
    assert entry._describe_error(error) == expected


def test_a_command_line_goes_to_the_results_or_to_a_comparison(monkeypatch, capsys):
    from normbench.command.startup import kernels
    from normbench.command.sweep import line

    given = []
    monkeypatch.setattr(commands, "main", lambda words: given.append(words) or 5)
    monkeypatch.setattr(kernels, "choose", lambda: given.append("kernels"))
    monkeypatch.setattr(line, "run", given.append)
    assert entry._dispatch(["results", "list"]) == 5
    assert entry._dispatch(["dashboard", "--port", "1"]) == 5
    assert entry._dispatch(["seed=1"]) == entry._dispatch([]) == 0
    assert given == [
        *(["list"], ["dashboard", "--port", "1"], "kernels", ["seed=1"], "kernels", [])
    ]
    for words in (["--help"], ["-h"]):
        assert entry._dispatch(words) == 0
        assert "normbench" in capsys.readouterr().out
    assert len(given) == 6

    def fails(words):
        raise UserError("seed=x: wrong") if words else KeyError("a bug")

    monkeypatch.setattr(line, "run", fails)
    assert entry._dispatch(["seed=x"]) == 2
    assert capsys.readouterr().err == "normbench: seed=x: wrong\n"
    with pytest.raises(KeyError):
        entry._dispatch([])
