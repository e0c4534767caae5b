"""The commands on results: where they write, what they print, and how they end."""

import io
import os
import re

import pandas as pd
import pytest

from normbench.command.results import commands
from normbench.datasets import UserError
from normbench.results.store.errors import ResultsError
from tests import forks

WIDTH = 60


@pytest.fixture
def results(three, tmp_path):
    """Return a function that runs `normbench results ...` on three schemes; it has to succeed."""

    def run(*words, **options):
        environment = forks.user_environment(COLUMNS=str(WIDTH))
        words = ("results", *words, "--folder", three.home)
        done = forks.run(words, tmp_path, environment, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.commands
def test_a_table_is_printed_or_written_in_its_format(results, three, tmp_path):
    table = pd.read_csv(io.StringIO(results("table", "--format", "csv")))
    assert set(table["scheme"]) == {"identity", "standard", "pca_sphere"}
    (tmp_path / "here").mkdir()
    folders = {"latex": ["--out", "here"], "parquet": []}  # what is no text is always written
    files = [results("table", "--format", name, *more).strip() for name, more in folders.items()]
    assert files == [f"{tmp_path}/here/table.tex", f"{three.home}/sweep-1/table.parquet"]
    assert "pca\\_sphere" in (tmp_path / "here" / "table.tex").read_text()
    assert list(pd.read_parquet(files[1])["scheme"]) == list(table["scheme"])
    histories = pd.read_csv(io.StringIO(results("table", "--histories", "--format", "csv")))
    assert len(histories) == 3 * 11
    every = pd.read_csv(io.StringIO(results("table", "--all-steps", "--format", "csv")))
    assert every["step_size"].nunique() == 3
    standard = results("table", "--where", "params.normalizer = 'standard'", "--format", "csv")
    assert list(pd.read_csv(io.StringIO(standard))["scheme"]) == ["standard"]


@pytest.mark.commands
def test_only_on_a_terminal_a_table_is_fitted_to_its_width(results):
    terminal, screen = os.openpty()
    try:
        results("list", stdout=os.ttyname(screen))
        lines = re.sub(r"\x1b\[[0-9;]*m", "", os.read(terminal, 1 << 16).decode()).splitlines()
    finally:
        os.close(terminal)
        os.close(screen)
    assert 0 < max(map(len, lines)) <= WIDTH
    assert max(map(len, results("list").splitlines())) > WIDTH


@pytest.mark.slow
def test_a_figure_is_written_in_every_format_and_dark_where_it_is_asked_for(
    results, three, tmp_path
):
    files = results("figure", "histories", "--dark", "--out", "here").split()
    assert {f"{tmp_path}/here/histories{end}" for end in (".png", ".svg", ".pdf", "-dark.png")} <= {
        *files
    }
    page = results("figure", "histories", "--format", "page").split()
    assert f"{three.home}/sweep-1/page/histories.png" in page


@pytest.mark.parametrize(
    ("error", "code"),
    [(ResultsError("wrong"), 2), (UserError("wrong"), 2), (KeyboardInterrupt(), 130)],
)
def test_a_mistake_ends_with_2_and_a_stop_with_130(monkeypatch, capsys, error, code):
    def fails(options):
        raise error

    monkeypatch.setitem(commands.COMMANDS, "list", fails)
    assert commands.main(["list"]) == code
    assert capsys.readouterr().err == ("" if code == 130 else "normbench: wrong\n")
    for bug in (KeyError("x"), ValueError("x"), RuntimeError("x")):
        error = bug
        with pytest.raises(type(bug)):
            commands.main(["list"])
