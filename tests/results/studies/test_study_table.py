"""The table of studies: what it says of a scheme, and of a store without any study."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.store.errors import ResultsError
from normbench.results.store.state import Phase, State
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


def test_a_store_without_a_study_says_how_to_run_one(monkeypatch):
    nothing = pd.DataFrame({"command": [], "sweep": []})
    monkeypatch.setattr(study_table.runs, "sweeps", lambda store: nothing)
    with pytest.raises(ResultsError, match="holds no study of textbook; normbench experiment="):
        study_table.last_sweeps("here.db")


def store_of(monkeypatch, commands, states):
    """Make a store of sweeps, the latest first: commands by id, states by id."""
    rows = pd.DataFrame([{"sweep": key, "command": text} for key, text in commands])
    monkeypatch.setattr(study_table.runs, "sweeps", lambda store: rows)
    loads = []

    def load(store, sweep_id):
        loads.append(sweep_id)
        return SimpleNamespace(sweep_id=sweep_id)

    monkeypatch.setattr(study_table.runs, "load", load)
    monkeypatch.setattr(study_table.state, "state_of", lambda sweep: states[sweep.sweep_id])
    return loads


def ended(sweep_id, done=2, jobs=2, phase=Phase.ENDED):
    return State(sweep_id, phase, done, jobs)


def test_of_each_study_the_last_complete_sweep_is_shown(monkeypatch):
    """The latest sweep of iris was stopped, and the one before was stopped with all its jobs."""
    commands = [
        ("s6", "normbench experiment=textbook/iris"),
        ("s5", "normbench +experiment=textbook/iris seed=1"),
        ("s5", "normbench +experiment=textbook/iris seed=1"),  # of a second experiment
        ("s4", "normbench experiment=textbook/iris"),
        ("s3", "normbench experiment=research/iris"),
        ("s2", "normbench dataset=iris"),
        ("s1", "normbench experiment=textbook/mnist"),
    ]
    states = {
        "s6": ended("s6", 1, 2, Phase.STOPPED),
        "s5": ended("s5", 2, 2, Phase.STOPPED),
        "s1": ended("s1"),
    }
    loads = store_of(monkeypatch, commands, states)
    sweeps, notes = study_table.last_sweeps("-")
    assert [(name, sweep.sweep_id) for name, sweep in sweeps.items()] == [
        *(("mnist", "s1"), ("iris", "s5"))
    ]
    assert notes == [
        f"textbook/iris: comparison s6 {states['s6'].predicate}; shown is s5.",
    ]
    assert loads == ["s1", "s6", "s5"]


def test_without_a_complete_sweep_the_last_one_with_a_job_is_shown(monkeypatch):
    commands = [(key, "normbench experiment=notes/a") for key in ("s3", "s2", "s1")]
    states = {
        "s3": ended("s3", 0, 4, Phase.ENDED),  # nothing is recorded
        "s2": ended("s2", 1, 4, Phase.STOPPED),
        "s1": ended("s1", 2, 4, Phase.STOPPED),
    }
    store_of(monkeypatch, commands, states)
    sweeps, notes = study_table.last_sweeps("-", "notes")
    assert sweeps["a"].sweep_id == "s2"
    assert len(notes) == 3
    assert all(note.endswith("; shown is s2.") for note in notes)
    states |= {"s2": ended("s2", 0, 4, Phase.STOPPED), "s1": ended("s1", 0, 4, Phase.STOPPED)}
    with pytest.raises(ResultsError, match=r"--store here: notes/a: comparison s3 ") as told:
        study_table.last_sweeps("here", "notes")
    assert str(told.value).count("; notes/a: comparison s") == 2
    assert not str(told.value).endswith(".")


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
