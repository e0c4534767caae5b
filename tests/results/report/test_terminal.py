"""What stands on the terminal around a comparison's table: failures, files and where they are."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.compare import heldout
from normbench.results.report import page, screen, terminal
from tests.results.compare.test_heldout import splits
from tests.results.made import runs
from tests.results.report.test_closing import batches


def lines_of(write, *given):
    stream = io.StringIO()
    write(screen.console(stream), *given)
    return stream.getvalue().splitlines()


def test_files_are_told_by_their_pages_figures_and_formats():
    folder = Path("/out")
    figures = [folder / f"{name}.{kind}" for name in ("a", "b") for kind in ("png", "svg")]
    report = folder / "report.html"
    assert terminal._contents([*figures, report]) == "report.html and 2 figures (png, svg)"
    assert terminal._contents(figures[:2]) == "1 figure (png, svg)"
    assert terminal._contents([report, report]) == "report.html"
    both = [report, folder / "a.html", figures[0]]
    assert terminal._contents(both) == "report.html and a.html and 1 figure (png)"


def test_a_folder_inside_the_working_folder_is_told_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert terminal._relative_path(tmp_path / "a" / "b") == "a/b"
    assert terminal._relative_path(tmp_path.parent) == str(tmp_path.parent)


def test_failed_jobs_are_counted_with_their_reasons():
    made = runs(("x", "a", {1.0: 3.0}), ("x", "b", None), ("y", "c", None))
    made.runs["reason"] = made.runs["normalizer"].map({"b": "out of memory", "c": "no data"})
    assert lines_of(terminal._say_failures, made) == [
        *("2 of 3 jobs failed:", "  x, b: out of memory", "  y, c: no data", "")
    ]
    assert lines_of(terminal._say_failures, runs(("x", "a", {1.0: 3.0}))) == []


@pytest.fixture
def located(monkeypatch):
    monkeypatch.setattr(terminal.dashboard, "link", lambda sweep, name: f"http://charts/{name}")

    def of(store, sweep_id="s", files=(), schemes=1):
        jobs = [(name, f"s{n}", {1.0: 3.0}) for name in "xy" for n in range(schemes)]
        sweep = replace(runs(*jobs), store=store, sweep_id=sweep_id)
        drawn = {name: [Path("/o") / name for name in files] for name in "xy"}
        return lines_of(terminal._say_locations, sweep, drawn)

    return of


def test_a_server_has_links_and_a_file_the_command_that_shows_it(located):
    told = located("http://host")
    assert told[-3:] == [
        *(f"dashboard  http://charts/{name}" for name in "xy"),
        "recorded   http://host",
    ]
    local = located("sqlite:///a.db", files=("a.png", "report.html"))
    assert local[-1] == "recorded   sqlite:///a.db  (normbench dashboard shows it)"
    assert not any(line.startswith("dashboard") for line in local)
    assert [line for line in local if line.startswith("files")] == [
        "files      /o: report.html and 1 figure (png)"
    ]


def test_a_query_has_no_charts_of_its_own(located):
    from normbench.results.store.runs import QUERY

    told = located("http://host", QUERY)
    assert told[-1] == "recorded   http://host"
    assert not any(line.startswith("dashboard") for line in told)


def test_of_more_schemes_than_a_figure_shows_none_is_drawn(located):
    most = terminal.MAX_DRAWN_SCHEMES
    told = " ".join(located("a.db", schemes=most + 1))
    for name in "xy":
        assert f"figures    none of {name}: more than {most} schemes;" in told
    assert "figures" not in " ".join(located("a.db", schemes=most))


@pytest.mark.parametrize(
    ("theories", "without"),
    [
        ({"a": "none", "b": "full"}, True),
        ({"a": "full", "b": "quick"}, False),
        ({"a": None, "b": "none"}, False),
    ],
)
def test_a_job_that_ran_without_theory_is_one_that_did_not_fail(theories, without):
    """Of the last ones, scheme b failed."""
    jobs = [("x", name, {1.0: 3.0}, {"theory": kind or "full"}) for name, kind in theories.items()]
    if theories["a"] is None:
        jobs[1] = ("x", "b", None, {"theory": "none"})
    assert terminal._without_theory(runs(*jobs)) == without
    assert not terminal._without_theory(runs(("x", "a", {1.0: 3.0})))


def test_pairs_on_test_points_are_told_where_any_pair_has_several_splits():
    """A third scheme has one split alone, and so have its pairs."""
    table = pd.concat([splits(a=[0.1, 0.1], b=[0.2, 0.3]), splits(c=[0.2])], ignore_index=True)
    assert set(heldout.compare_pairs(table)["splits"]) == {1, 2}
    assert len(page._held_out(table, pd.DataFrame())) == 2


def held_out(monkeypatch, of_splits, folds):
    monkeypatch.setattr(terminal.heldout, "by_split", lambda sweep: of_splits)
    monkeypatch.setattr(terminal.heldout, "cross_validated", lambda sweep: folds)
    return lines_of(terminal._print_held_out, runs(("x", "a", {1.0: 3.0})))


def test_points_held_out_have_tables_where_there_are_any(monkeypatch):
    nothing, without = pd.DataFrame(), splits(a=[0.1]).iloc[:0]
    assert held_out(monkeypatch, without, nothing) == []
    folds = pd.DataFrame({"scheme": ["a"], "error": [0.125]})
    told = held_out(monkeypatch, without, folds)
    assert " ".join(told).startswith(terminal.headings.CROSS_VALIDATION)
    assert ["scheme", "error"] in [line.split() for line in told]
    both = held_out(monkeypatch, splits(a=[0.1, 0.1], b=[0.2, 0.3]), nothing)
    assert both[0] == terminal.headings.TEST_POINTS
    (title,) = (line for line in both if line.startswith(terminal.headings.TEST_PAIRS))
    assert "; " in title
    one = held_out(monkeypatch, splits(a=[0.1], b=[0.2]), nothing)
    assert not any(line.startswith(terminal.headings.TEST_PAIRS) for line in one)


def test_lost_runs_have_a_verdict_and_a_reason():
    made = runs(("x", "a", {1.0: 3.0, 2.0: 3.0, 3.0: 3.0}), ("x", "b", None), ("x", "c", None))
    made.runs["reason"], made.runs["status"] = "why", "FINISHED"
    is_step = made.runs["role"] == names.STEP
    made.runs.loc[is_step, "verdict"] = [names.DIVERGED, names.CONVERGED, names.BY_ROUNDING]
    unfinished = (made.runs["normalizer"] == "c") & (made.runs["role"] == names.SCHEME)
    made.runs.loc[unfinished, ["verdict", "reason", "status"]] = ["", "", "KILLED"]
    table = page._failed_runs(made)
    assert table["columns"] == ["scheme", "step size", "verdict", "reason"]
    assert [(row[0], *row[2:]) for row in table["rows"]] == [
        ("b", "failed", "why"),
        ("c", "unfinished", "the job ended as KILLED"),
        ("a", "diverged", "why"),
        ("a", names.BY_ROUNDING, "why"),
    ]
    assert [row[1] for row in table["rows"]][2:] == ["1", "3"]
    made.runs.loc[unfinished, "status"] = "FINISHED"
    assert len(page._failed_runs(replace(made))["rows"]) == 3
    assert page._failed_runs(replace(runs(("x", "a", {1.0: 3.0})))) is None


def test_an_environment_is_that_of_the_sweep_run():
    version = names.version("numpy").column
    made = runs(("x", "a", {1.0: 3.0}))
    made.runs[version], made.runs[names.BLAS.column] = "2.0", "openblas"
    made.runs[names.COMMIT.column], made.runs[names.GIT_DIRTY.column] = "abc", "true"
    expected = [("numpy", "2.0"), ("linear algebra", "openblas"), ("commit", "abc, with changes")]
    assert page._environment(made) == expected
    made.runs[names.GIT_DIRTY.column] = "false"
    assert page._environment(replace(made))[-1] == ("commit", "abc")
    assert page._environment(runs(("x", "a", {1.0: 3.0}))) == []


def test_a_start_is_that_of_the_first_sweep_run_or_of_the_first_scheme():
    made = runs(("x", "a", {1.0: 3.0}), ("y", "a", {1.0: 3.0}))
    second = 1_700_000_000
    started = {"sweep": [second + 60, second + 120], "scheme": [second + 240, second + 180]}
    for role, times in started.items():
        made.runs.loc[made.runs["role"] == role, "started"] = np.array(times) * 1000.0
    assert page._started(made) == "2023-11-14 22:14 UTC"
    schemes = replace(made, runs=made.runs[made.runs["role"] != "sweep"])
    assert page._started(schemes) == "2023-11-14 22:16 UTC"


def test_settings_that_all_share_stand_apart_from_those_that_differ():
    schemes = pd.DataFrame(
        {"label": ["a", "b"], "params.same": ["1", "1"], "params.own": ["2", None]}
        | {"params.never": [None, None], "tags.other": ["x", "y"]}
    )
    shared, table = page._settings(schemes)
    assert shared == [("same", "1")]
    assert table["columns"] == ["scheme", "own"]
    assert [row[0] for row in table["rows"]] == ["a", "b"]
    assert page._settings(schemes[:1]) == ([("own", "2"), ("same", "1")], None)


def test_each_step_size_has_its_row_without_the_cost_of_one_that_diverged():
    made = runs(("x", "a", {1.0: (3.0, 0.25), 2.0: (3.0, 0.5)}))
    is_step = made.runs["role"] == names.STEP
    made.runs.loc[is_step, "verdict"] = [names.CONVERGED, names.DIVERGED]
    made.runs[names.FINAL_MISCLASSIFICATIONS.column] = 7.0
    table = page._steps(made)
    assert table["columns"][:4] == ["scheme", "step size", "verdict", "cost"]
    first, second = table["rows"]
    assert first[:4] == ("a", "1", "converged", "0.250000")
    assert second[2:4] == ("diverged", "-")
    assert (first[-1], second[-1]) == ("7", "-")
    assert page._steps(runs(("x", "a", None))) is None


def test_pairs_have_a_table_where_there_are_two_splits():
    jobs = [
        ("x", s, {1.0: (n + count, n / 1e3 + 1e-4)}, {"dataset.split_seed": str(n), "data": str(n)})
        for s, count in (("a", 3.0), ("b", 5.0))
        for n in range(2)
    ]
    table = page._pairs(runs(*jobs))
    assert [row[:2] for row in table["rows"]] == [("x", "a")]
    assert "1 pair of schemes needs at least 6 splits" in table["caption"]
    assert page._pairs(runs(*jobs[::2])) is None


def test_theory_has_a_table_where_it_promises_a_step_size():
    made = runs(("x", "a", {1.0: 3.0}))
    assert page._predictions(made) is None
    promised = replace(made, runs=made.runs.assign(**{names.THRESHOLD.column: 2.0}))
    table = page._predictions(promised)
    assert table["caption"] == page.headings.PREDICTIONS
    assert table["columns"][:2] == ["scheme", "2/L"]
    assert table["words"][:2] == [True, False]
    assert table["rows"][0][:2] == ("a", "2")


def test_cross_validation_has_a_table_where_there_are_no_test_points():
    without, folds = splits(a=[0.1]).iloc[:0], pd.DataFrame({"scheme": ["a"], "cost": [0.5]})
    assert page._held_out(without, pd.DataFrame()) == []
    (table,) = page._held_out(without, folds)
    assert table["caption"] == page.headings.CROSS_VALIDATION
    (table,) = page._held_out(splits(a=[0.1]), folds)
    assert table["caption"] == page.headings.TEST_POINTS


def test_schemes_without_an_explanation_have_none():
    schemes = runs(("x", "a", {1.0: 3.0}), ("x", "b", {1.0: 3.0})).of_role(names.SCHEME)
    assert page._explanations(schemes) == []
    explained = schemes.assign(**{names.EXPLANATION.column: ["All of it.", None]})
    assert [(label, whole) for label, _, whole in page._explanations(explained)] == [
        ("a", "All of it.")
    ]


@pytest.mark.parametrize(
    ("found", "caption", "words"),
    [
        ("It is 3.", "It is 3. ({}.)", "Figure: It is 3. The numbers stand in the tables."),
        ("", "{}.", "Figure: {}, x. The numbers stand in the tables."),
    ],
)
def test_a_picture_has_a_caption_and_words_in_its_place(
    monkeypatch, tmp_path, found, caption, words
):
    monkeypatch.setattr(page.captions, "describe_figure", lambda sweep, experiment, name: found)
    monkeypatch.setattr(page, "_png", lambda sweep, experiment, name: "data:")
    file = tmp_path / "melt-x.png"
    text = "<svg><rect/></svg>"
    file.with_suffix(".svg").write_text(text)
    described = page.NAMES["melt"].split(" (")[0]
    described = described[0].upper() + described[1:]
    for most, kind in ((len(text), "svg"), (len(text) - 1, "png")):
        monkeypatch.setattr(page, "MAX_SVG_LENGTH", most)
        (drawn,) = page._pictures("s1", runs(("x", "a", {1.0: 3.0})), "x", [file], ["fit", "melt"])
        assert drawn["caption"] == caption.format(described)
        assert drawn["words"] == words.format(described)
        assert drawn["plot"] is True
        assert set(drawn) == {"caption", "words", "plot", kind}


def test_only_texts_are_sanitized_on_a_page():
    assert page._sanitize(3) == 3
    assert page._sanitize(None) is None
    assert "secret" not in page._sanitize("http://me:secret@host")


def test_a_report_names_the_batch_beyond_which_little_is_gained_and_says_nothing_twice():
    sweep = batches(3, 4, 30)
    sweep.runs["status"], sweep.runs["reason"] = "FINISHED", ""
    sweep.runs["label"] = sweep.runs["run_id"].str.partition("-")[0]  # one a job
    steps = sweep.runs["role"] == "step"
    sweep.runs.loc[sweep.runs.index[steps][0], "verdict"] = names.BY_ROUNDING
    section = page._section("s1", sweep, "x", ())
    (line,) = (line for line in section["answers"] if line.startswith("Beyond a batch of "))
    assert line not in section["ranking"]
    assert "decided by rounding" in section["ranking"]
    assert "decided by rounding" not in " ".join(section["answers"])


def test_a_report_of_one_experiment_asks_its_question(monkeypatch):
    monkeypatch.setattr(page.cause, "cause", lambda sweep, name: f"Why {name}?")
    made = [runs(*((e, s, {1.0: 3.0}) for e in which for s in "ab")) for which in ("x", "xy")]
    for sweep in made:
        sweep.runs["started"], sweep.runs["status"], sweep.runs["reason"] = 0.0, "FINISHED", ""
    one, two = (page.render(sweep, {}) for sweep in made)
    assert "<title>Which of a and b lowers the cost of x" in one.replace("\n", "")
    assert "<title>Which of 2 normalization schemes lowers" in two.replace("\n", "")
    assert one.count("Why x?") >= 1
    assert "Why y?" in two
