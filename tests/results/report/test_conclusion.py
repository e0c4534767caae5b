"""What a command prints at its end, of sweeps made by hand."""

from pathlib import Path

import pandas as pd
import pytest

from normbench import names
from normbench.results.report import terminal as conclusion
from normbench.results.words import headings
from tests.results.compare.test_heldout import splits
from tests.results.made import runs
from tests.results.report.test_closing import Ended

TWO = [("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 9.0})]
NOTHING = pd.DataFrame(columns=["scheme"])


@pytest.fixture
def told(monkeypatch, capsys):
    """Return a function that gives what is printed of a sweep that stands in no store."""
    monkeypatch.setattr(conclusion.clean, "line", lambda store: store)
    monkeypatch.setattr(conclusion.dashboard, "link", lambda sweep, name: f"to {name}")

    def of(sweep, **drawn):
        conclusion.present(sweep, lambda: drawn)
        return capsys.readouterr().out

    return of


def test_several_experiments_begin_with_one_sentence_over_all(told):
    one, two = told(runs(*TWO)), told(runs(*TWO, ("y", "a", {1.0: 1.0}), ("y", "b", {1.0: 2.0})))
    assert one.lstrip().startswith("Fastest on this grid: a. ")
    assert two.lstrip().startswith("a is fastest on 2 of 2 problems")
    assert [line.split(": ")[0] for line in two.splitlines() if line[:2] in ("x:", "y:")] == [
        "x",
        "y",
    ]
    assert "failed" not in two
    assert max(map(len, two.splitlines())) <= 100


def test_jobs_that_failed_stand_there_with_their_reasons(told):
    sweep = runs(*TWO, ("x", "c", None))
    sweep.runs.loc[sweep.runs["verdict"] == "failed", "reason"] = "it broke"
    text = told(sweep)
    assert "1 of 3 jobs failed:\n  x, c: it broke\n" in text


def test_files_stand_in_a_line_a_folder(told):
    page, figures = Path("out/report.html"), [Path("out/a.svg"), Path("out/a.png"), Path("b/c.svg")]
    text = told(runs(*TWO), x=[figures[0], figures[1], page], y=[page, figures[2]])
    assert (
        "files      out: report.html and 1 figure (svg, png)\nfiles      b: 1 figure (svg)\n"
        in text
    )


def test_a_folder_within_the_working_folder_is_named_from_there(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = told(runs(*TWO), x=[tmp_path / "outputs" / "report.html", Path("/else/where/a.svg")])
    assert "files      outputs: report.html\n" in text
    assert "files      /else/where: 1 figure (svg)\n" in text


@pytest.mark.parametrize("more", [(), ("2/L",), ("2/L", "seen / promised")])
def test_theory_is_printed_alone(capsys, monkeypatch, more):
    table = pd.DataFrame([["a", 0.5, "1 to 2"][: 1 + len(more)]], columns=["scheme", *more])
    monkeypatch.setattr(conclusion.theory, "predictions", lambda sweep: table)
    monkeypatch.setattr(conclusion.profile, "notes", lambda sweeps: ["a long note " * 12])
    conclusion.print_theory(runs(*TWO, theory="none"))
    text = capsys.readouterr().out
    assert (headings.PREDICTIONS in text) == bool(more)
    assert ("No theory was recorded; theory=full" in text) == (not more)
    assert ("seen / promised: the largest" in text) == (len(more) == 2)
    assert "\nx: " in text
    assert max(map(len, text.splitlines())) in range(80, 101)


@pytest.mark.parametrize(
    ("jobs", "theory"),
    [(TWO, "full"), (TWO, "auto"), ([("x", "a", None)], "none"), ([("x", "a", None)], "full")],
)
def test_no_setting_is_named_that_would_not_help(capsys, jobs, theory):
    """A cost without curvature, and jobs that failed: neither has a 2/L, whatever is asked for."""
    conclusion.print_theory(runs(*jobs, theory=theory))
    text = capsys.readouterr().out
    assert "theory=full" not in text
    assert "Theory promises no step size here.\n" in text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_test_points_are_told_by_scheme_and_in_pairs_of_several_splits(capsys, count, monkeypatch):
    held = splits(a=[0.1, 0.1], b=[0.2, 0.2]).query("split < @count")
    monkeypatch.setattr(
        conclusion.comparisons, "compare_pairs_over_splits", lambda sweep, target: NOTHING
    )
    monkeypatch.setattr(conclusion.heldout, "by_split", lambda sweep: held)
    conclusion.print_theory(runs(*TWO))
    text = " ".join(capsys.readouterr().out.split())
    assert (headings.TEST_POINTS in text) == (count > 0)
    assert (headings.TEST_PAIRS in text) == (count > 1)
    for phrase in ("on new data: for other data", "Nadeau and Bengio 2003"):
        assert (phrase in text) == (count > 1)
    assert headings.PAIRS.format(sample="splits") not in text


def test_orders_of_batches_are_not_called_splits(capsys):
    jobs = [
        ("x", name, {1.0: (count + n, 0.001 + n / 1e4)}, {"batch_seed": str(n)})
        for name, count in (("a", 3.0), ("b", 5.0))
        for n in range(2)
    ]
    conclusion.print_theory(runs(*jobs, batch="30", data="same"))
    text = " ".join(capsys.readouterr().out.split())
    assert "each scheme with one step size for all orders of the batches" in text
    assert "best step size for each of the orders of the batches, in pairs" in text


@pytest.mark.parametrize(
    ("settings", "budget"),
    [
        ({"iterations": "50"}, "In 50 iterations of gradient descent:"),
        ({"iterations": "50", "starts": "3"}, "descent (medians of 3 starts):"),
        ({"iterations": "0"}, ""),
    ],
)
def test_above_the_table_stands_the_budget(told, settings, budget):
    text = told(runs(*TWO, **settings))
    assert any(line.endswith(budget) for line in text.splitlines() if line[:3] == "In ") == bool(
        budget
    )


@pytest.mark.parametrize("known", [True, False])
def test_excess_is_explained_below_a_table_that_has_one(told, known):
    frame = runs(*TWO, iterations="50").runs
    frame[names.MINIMUM_REACHED.column] = str(known).lower()
    words = " ".join(told(Ended("-", "s", frame)).split())
    assert (headings.GLOSSARY_LINE in words) == known
    assert ("excess cost left" in words) == known
    assert ("excess" in words) == known


def test_a_cause_takes_the_place_of_the_theory(told, monkeypatch):
    known = {"x": "Why: it is rounder.", "y": ""}
    monkeypatch.setattr(conclusion.cause, "cause", lambda sweep, name: known[name])
    monkeypatch.setattr(conclusion.theory, "notes", lambda sweep, name: [f"Note: of {name}."])
    monkeypatch.setattr(conclusion.theory, "explanation", lambda sweep, name: f"All of {name}.")
    lines = told(runs(*TWO, ("y", "a", {1.0: 1.0}), ("y", "b", {1.0: 2.0}))).splitlines()
    start = lines.index("Why: it is rounder.")
    assert lines[start + 1] == "Note: of x."
    assert "All of y." in lines[start:]
    assert "All of x." not in lines
    assert "Note: of y." not in lines


def test_what_a_headline_has_said_is_not_said_again(told, monkeypatch):
    headline = conclusion.headline.headline(runs(*TWO))
    monkeypatch.setattr(
        conclusion.fastest, "answers", lambda sweep, name, splits: [headline, "It predicts best."]
    )
    said = ["of the excess cost", "Another remark."]  # the first is a part of the headline
    monkeypatch.setattr(conclusion.answer, "batch_and_exclusion_remarks", lambda sweep, name: said)
    words = " ".join(told(runs(*TWO)).split())
    assert words.count(headline) == 1
    assert words.count("of the excess cost in") == 1
    assert "It predicts best. Another remark." in words


def test_what_is_asked_for_is_drawn_and_stands_in_the_report(tmp_path, monkeypatch):
    from normbench.results.figures import drawing
    from normbench.results.report import files, page

    asked = []
    monkeypatch.setattr(
        drawing, "write", lambda *given: asked.append(given[2:]) or {"x": [Path("a.svg")]}
    )
    monkeypatch.setattr(page, "write", lambda sweep, folder, *_: folder / "report.html")
    written = files.write(runs(*TWO), tmp_path, ["melt"])
    assert written == {"x": [Path("a.svg"), tmp_path / "report.html"]}
    assert asked == [(["melt"], drawing.DEFAULT)]


def test_files_are_written_once_the_answer_is_printed(monkeypatch, capsys):
    printed = []

    def write_files():
        printed.append(capsys.readouterr().out)
        return {"x": [Path("a.svg")]}

    monkeypatch.setattr(conclusion.clean, "line", lambda store: store)
    assert conclusion.present(runs(*TWO), write_files) == {"x": [Path("a.svg")]}
    (before,) = printed
    assert "Fastest on this grid: a. " in before
    assert "files " not in before
    assert "files " in capsys.readouterr().out
