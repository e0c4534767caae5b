"""The table of studies: what it says of a scheme, and of a store without any study."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
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


def test_a_store_without_a_study_says_how_to_run_one(monkeypatch):
    nothing = pd.DataFrame({"command": [], "sweep": []})
    monkeypatch.setattr(study_table.runs, "sweeps", lambda store: nothing)
    with pytest.raises(ResultsError, match="holds no study of textbook; normbench experiment="):
        study_table.last_sweeps("here.db")
