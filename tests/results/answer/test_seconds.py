"""The table of seconds, of sweeps made by hand: its columns, its rows and what it divides."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer.seconds import seconds
from normbench.results.store.runs import Sweep
from tests.results.made import runs

COLUMNS = ["scheme", "fit", "an iteration", "fit in iterations"]
COLUMNS += ["iterations to target", "seconds to target"]


def timed(*jobs, fit=2.0, iteration=0.5, **settings):
    """Return a sweep whose jobs took these seconds to fit, and for an iteration."""
    frame = runs(*jobs, **{"iterations": "50", **settings}).runs
    schemes, columns = frame["role"] == "scheme", (names.FIT_SECONDS, names.SECONDS_A_STEP)
    for metric, values in zip(columns, (fit, iteration)):
        frame.loc[schemes, metric.column] = values
    count, of_count = (names.reached("1e-2", measure).column for measure in names.MEASURES)
    times = names.FIT_SECONDS.column, names.SECONDS_A_STEP.column
    frame[of_count] = frame[times[0]] + frame[count] * frame[times[1]]
    return Sweep("-", "s", frame)


def test_a_fit_is_told_in_iterations_and_a_target_in_both():
    table = seconds(timed(("x", "a", {1.0: 6.0}), ("x", "b", {1.0: (np.inf, 0.5)})), "1e-2")
    assert list(table) == COLUMNS
    assert table.loc[0].tolist() == ["a", 2.0, 0.5, 4.0, 6.0, 5.0]
    assert table.loc[1].tolist()[:4] == ["b", 2.0, 0.5, 4.0]
    assert table.loc[1, COLUMNS[4:]].isna().all()


def test_the_experiment_is_named_where_there_are_several():
    jobs = [("x", "a", {1.0: 6.0}), ("y", "a", {1.0: 8.0})]
    table = seconds(timed(*jobs), "1e-2")
    assert list(table) == ["experiment", *COLUMNS]
    assert table["experiment"].tolist() == ["x", "y"]
    assert table["seconds to target"].tolist() == [5.0, 6.0]


@pytest.mark.parametrize("unknown", [0.0, np.nan])
def test_a_scheme_whose_iterations_have_no_seconds_is_left_out(unknown):
    jobs = [("x", "a", {1.0: 6.0}), ("x", "b", {1.0: 8.0})]
    assert seconds(timed(*jobs, iteration=[unknown, 0.5]), "1e-2")["scheme"].tolist() == ["b"]
    assert seconds(timed(*jobs, iteration=unknown), "1e-2").equals(pd.DataFrame())


def test_schemes_without_a_descent_have_no_seconds_of_an_iteration():
    assert seconds(timed(("x", "a", {1.0: 6.0}), iterations="0"), "1e-2").empty


def test_of_batches_the_seconds_are_those_of_passes():
    table = seconds(timed(("x", "a", {1.0: 6.0}), batch="8"), "1e-2")
    assert list(table) == [
        *("scheme", "fit", "a pass", "fit in passes", "passes to target", "seconds to target")
    ]
    assert table.loc[0].tolist() == ["a", 2.0, 0.5, 4.0, 6.0, 5.0]
