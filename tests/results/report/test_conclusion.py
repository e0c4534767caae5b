"""What a command prints at its end, of sweeps made by hand."""

from pathlib import Path

import pandas as pd
import pytest

from normbench.results.answer import fastest
from normbench.results.report import terminal as conclusion
from tests.results.compare.test_heldout import splits
from tests.results.made import runs

TWO = [("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 9.0})]
NOTHING = pd.DataFrame(columns=["scheme"])


@pytest.fixture
def told(monkeypatch, capsys):
    """Return a function that gives what is printed of a sweep that stands in no store."""
    monkeypatch.setattr(conclusion.clean, "line", lambda store: store)
    monkeypatch.setattr(conclusion.dashboard, "link", lambda sweep, name: f"to {name}")

    def of(sweep, **drawn):
        conclusion.present(sweep, Path("."), drawn=drawn)
        return capsys.readouterr().out

    return of


def test_several_experiments_end_in_one_sentence_over_all(told):
    one, two = told(runs(*TWO)), told(runs(*TWO, ("y", "a", {1.0: 1.0}), ("y", "b", {1.0: 2.0})))
    assert one.count("After gradient descent") == 1
    assert "the lowest cost on how many" not in one
    assert two.count("Of 2 problems, ") == 1
    assert [line for line in two.splitlines() if line.startswith("dashboard")] == [
        f"dashboard  to {name}  (normbench dashboard serves it)" for name in "xy"
    ]
    assert "failed" not in two
    for begin in ("x: ", "After gradient descent", "Of 2 problems"):  # in lines of a terminal
        assert any(line.startswith(begin) and len(line) > 60 for line in two.splitlines())
    assert max(map(len, two.splitlines())) <= 100


def test_jobs_that_failed_stand_there_with_their_reasons(told):
    sweep = runs(*TWO, ("x", "c", None))
    sweep.runs.loc[sweep.runs["verdict"] == "failed", "reason"] = "it broke"
    text = told(sweep)
    assert "1 of 3 jobs failed:\n  x, c: it broke\n" in text


def test_each_file_is_named_once_and_by_its_kind(told):
    page = Path("report.html")
    text = told(runs(*TWO), x=[Path("a.svg"), page], y=[page])
    assert "figure     a.svg\nreport     report.html\ndashboard" in text


@pytest.mark.parametrize("columns", [["scheme"], ["scheme", "2/L"], ["scheme", "2/L", "ratio"]])
def test_what_theory_predicted_stands_beside_where_there_is_something(told, columns, monkeypatch):
    table = pd.DataFrame([["a", 0.5, 1.5][: len(columns)]], columns=columns)
    monkeypatch.setattr(conclusion.theory, "predictions", lambda sweep: table)
    monkeypatch.setattr(conclusion.profile, "notes", lambda sweeps: ["a long note " * 12])
    text = told(runs(*TWO))
    assert ("theory against observation" in text) == ("2/L" in columns)
    assert (conclusion.RATIO in text) == ("ratio" in columns)
    lines = [line for line in text.splitlines() if line.startswith("a long note")]
    assert max(map(len, lines)) in range(80, 101)


def test_theory_is_printed_alone(capsys, monkeypatch):
    table = pd.DataFrame({"scheme": ["a"], "2/L": [0.5]})
    monkeypatch.setattr(conclusion.theory, "predictions", lambda sweep: table)
    conclusion.print_theory(runs(*TWO))
    assert capsys.readouterr().out.startswith("theory against observation\n")
    monkeypatch.setattr(conclusion.theory, "predictions", lambda sweep: NOTHING)
    conclusion.print_theory(runs(*TWO))
    text = capsys.readouterr().out
    assert text.startswith("nothing was recorded of theory; theory=full")
    assert "\nx: " in text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_test_points_are_told_by_scheme_and_in_pairs_of_several_splits(told, count, monkeypatch):
    held = splits(a=[0.1, 0.1], b=[0.2, 0.2]).query("split < @count")
    monkeypatch.setattr(conclusion.comparisons, "repeated", lambda sweep: NOTHING)
    monkeypatch.setattr(conclusion.heldout, "by_split", lambda sweep: held)
    monkeypatch.setattr(fastest, "answers", lambda *of: [])
    text = told(runs(*TWO))
    assert (conclusion.HELD_OUT in text) == (count > 0)
    assert ("test points at the end, paired" in text) == (count > 1)
    for phrase in ("on new data: on other data", "Nadeau and Bengio 2003", "  on new data\n"):
        assert (phrase in text) == (count > 1)
    assert "iterations to 1e-2 of the excess, paired" not in text
