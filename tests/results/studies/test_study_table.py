"""The table of studies: what it says of a scheme, and of a store without any study."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.store.comparison_files import Comparison, JobEntry
from normbench.results.store.errors import ResultsError
from normbench.results.studies import study_table


def test_what_is_measured_of_a_scheme_is_said_and_what_is_missing_left_out():
    row = {
        "verdict": names.CONVERGED,
        names.STEPS_TRIED.column: 3.0,
        names.STEP_TAG.column: "0.1",
        names.setting("iterations"): "20",
        names.FINAL_COST.column: 0.25,
        names.FINAL_MISCLASSIFICATIONS.column: np.nan,
        names.LARGEST_CONVERGENT.column: 0.5,
        names.CENSORED.column: "true",
        names.CONDITION.column: 12.5,
    }
    assert study_table.measured(row) == (
        "step 0.1, 20 iterations; cost 0.25; converges up to >=0.5; condition number 12.5"
    )
    counted = row | {names.FINAL_MISCLASSIFICATIONS.column: 4.0, names.CENSORED.column: "false"}
    assert "cost 0.25, 4 misclassified; converges up to 0.5" in study_table.measured(counted)
    failed = row | {"verdict": names.FAILED, "reason": "out of memory"}
    assert study_table.measured(failed) == "failed: out of memory"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (
            {"verdict": names.DIVERGED, names.STEP_TAG.column: np.nan},
            "20 iterations; diverged at every step size",
        ),
        ({names.setting("batch"): "8"}, "step 0.1, 20 passes; cost 0.25; converges up to 0.5"),
        ({names.GRIDLESS.column: "true"}, "20 iterations; cost 0.25"),
    ],
)
def test_a_step_size_is_stated_where_there_is_one_and_passes_are_no_iterations(columns, text):
    row = scheme_row(**{names.LARGEST_CONVERGENT.column: 0.5}) | columns
    assert study_table.measured(row) == text


def shown(monkeypatch, *comparisons, folder="textbook"):
    """Return the studies that are shown of comparisons, the latest first, and the notes."""
    made = [
        Comparison(Path("outputs") / sweep_id, command, "", _jobs(done, jobs), {}, state)
        for sweep_id, command, done, jobs, state in comparisons
    ]
    monkeypatch.setattr(study_table.comparison_files, "recorded", lambda home: made)
    monkeypatch.setattr(study_table.runs, "of_comparisons", lambda chosen: chosen[0].id)
    return study_table.last_sweeps(Path("outputs"), folder)


def _jobs(done, jobs):
    return [JobEntry("e", "k" if number < done else None) for number in range(jobs)]


def test_a_home_without_a_study_says_how_to_run_one(monkeypatch):
    with pytest.raises(ResultsError, match="holds no study of textbook; normbench experiment="):
        shown(monkeypatch, ("s", "normbench dataset=iris", 1, 1, "finished"))


def test_of_each_study_the_last_complete_sweep_is_shown(monkeypatch):
    """The latest sweep of iris was stopped, and the one before was stopped with all its jobs."""
    sweeps, notes = shown(
        monkeypatch,
        ("s6", "normbench experiment=textbook/iris", 1, 2, "stopped"),
        ("s5", "normbench +experiment=textbook/iris seed=1", 2, 2, "stopped"),
        ("s4", "normbench experiment=textbook/iris", 2, 2, "finished"),
        ("s3", "normbench experiment=research/iris", 2, 2, "finished"),
        ("s1", "normbench experiment=textbook/mnist", 2, 2, "finished"),
    )
    assert list(sweeps.items()) == [("mnist", "s1"), ("iris", "s5")]
    (note,) = notes
    assert note.startswith("textbook/iris: comparison s6 was stopped (1 of 2 jobs done)")
    assert note.endswith("; shown is s5.")


def test_without_a_complete_sweep_the_last_one_with_a_job_is_shown(monkeypatch):
    command = "normbench experiment=notes/a"
    cut_off = [("s3", command, 0, 4, "stopped"), ("s2", command, 1, 4, "stopped")]
    sweeps, notes = shown(monkeypatch, *cut_off, folder="notes")
    assert sweeps == {"a": "s2"}
    assert [note.endswith("; shown is s2.") for note in notes] == [True, True]
    with pytest.raises(ResultsError, match=r"outputs: notes/a: comparison s3 was stopped"):
        shown(monkeypatch, cut_off[0], folder="notes")


def scheme_row(**columns):
    row = {"verdict": names.CONVERGED, names.STEPS_TRIED.column: 3.0, "label": "a"}
    row |= {names.STEP_TAG.column: "0.1", names.setting("iterations"): "20"}
    return row | {names.FINAL_COST.column: 0.25} | columns


def test_each_study_and_scheme_has_a_row_with_what_the_source_says():
    says = names.setting("study.says")
    rows = pd.DataFrame([scheme_row(**{says: "large"}), scheme_row(label="b")])
    assert study_table._text(None) == study_table._text(np.nan) == ""
    sweep = SimpleNamespace(of_role=lambda role: rows if role == names.SCHEME else None)
    table = study_table.table({"iris": sweep, "mnist": sweep})
    assert table["study"].tolist() == ["iris", "iris", "mnist", "mnist"]
    assert table["scheme"].tolist() == ["a", "b", "a", "b"]
    assert table["the source says"].tolist() == ["large", "", "large", ""]
    assert table["measured"].tolist() == ["step 0.1, 20 iterations; cost 0.25"] * 4


def test_expected_numbers_of_all_studies_stand_in_one_table(monkeypatch):
    monkeypatch.setattr(
        study_table.expected, "compare_with_source", lambda sweep, study: [{"study": study}] * sweep
    )
    table = study_table.compare_with_sources({"a": 2, "b": 0, "c": 1}, "notes")
    assert table["study"].tolist() == ["notes/a", "notes/a", "notes/c"]
    assert study_table.compare_with_sources({"b": 0}, "notes").empty


def test_limits_and_other_numbers_follow_the_outcome():
    every = scheme_row(
        **{names.LARGEST_FALLING.column: 0.25, names.CENSORED_FALLING.column: "false"},
        **{names.LARGEST_CONVERGENT.column: 0.5, names.CENSORED.column: "true"},
        **{names.IDENTITY_GAP.column: 1.234e-9, names.VARIANCE_LOST.column: 0.1234},
    )
    assert study_table.measured(every) == (
        "step 0.1, 20 iterations; cost 0.25; always falls up to 0.25; converges up to >=0.5; "
        "largest |SS'/P - I| 1.2e-09; 12.3% of the variance lost"
    )
    gone = every | {"verdict": names.DIVERGED}
    assert study_table.measured(gone).startswith(
        "step 0.1, 20 iterations; diverged at every step size; largest"
    )
    still = scheme_row(**{names.STEPS_TRIED.column: 0.0, names.CONDITION.column: 3.0})
    assert study_table.measured(still) == "condition number 3"
    assert study_table.measured(scheme_row(**{names.STEPS_TRIED.column: np.nan})) == ""


@pytest.mark.parametrize(
    ("command", "study"),
    [
        ("normbench experiment=textbook/a_b", "textbook/a_b"),
        ("normbench ++experiment=a/b iterations=3", "a/b"),
        ("normbench 'experiment=a/b' experiment=c/d", "a/b"),
        ("normbench experiment=a-b", ""),
        ("normbench my.experiment=a/b", ""),
        ("normbench", ""),
    ],
)
def test_a_study_is_what_the_command_names(command, study):
    assert study_table._study(command) == study
