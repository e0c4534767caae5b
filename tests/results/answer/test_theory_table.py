"""Cells that would be false: of promised and observed step sizes, and of seconds."""

from dataclasses import replace

import numpy as np
import pytest

from normbench import names
from normbench.results.answer import seconds, theory_table
from tests.results.made import runs, tagged

GRID = {0.5: (9.0, 0.3), 1.0: (5.0, 0.2), 4.0: (3.0, 0.1)}
FALLING, CONVERGING = "always falls up to", "converges up to"
SEEN, AT_END, CONDITION = "seen / promised", "2/L at the end", "condition number"
PROMISED = {"THRESHOLD": 2.0}
FALLS = {**PROMISED, "LARGEST_FALLING": 1.0}
CRITICAL = {**PROMISED, "CRITICAL": 3.0}
FAR = {"THRESHOLD_BEST": 9.0, "AT_INFINITY": "true"}

# What is recorded of a scheme, a column, and its cell; None: it is left out.
CELLS = [
    (CRITICAL, SEEN, "1.5"),
    (CRITICAL | {"CENSORED_CRITICAL": "true"}, SEEN, ">=1.5"),
    (CRITICAL | {"CENSORED_CRITICAL": "true"}, "critical step", ">=3"),
    (FALLS, SEEN, "0.5 to 2"),
    # The largest is recorded to all digits, which may be one in a billion off.
    (FALLS | {"LARGEST_FALLING": 1.0 - 1e-10}, SEEN, "0.5 to 2"),
    (FALLS | {"LARGEST_FALLING": 0.99}, SEEN, "0.495 to 0.5"),
    (FALLS | {"CENSORED_FALLING": "true"}, SEEN, ">=0.5"),
    (FALLS | {"LARGEST_FALLING": 4.0}, SEEN, None),
    (PROMISED, SEEN, "<0.25"),
    (FALLS | {"PLAIN": "false"}, SEEN, None),
    (FALLS | {"THRESHOLD": 0.0}, SEEN, None),
    ({"LARGEST_FALLING": 1.0}, SEEN, None),
    ({"LARGEST_FALLING": 0.123456}, FALLING, "0.1235"),
    ({"LARGEST_FALLING": 0.5, "CENSORED_FALLING": "true"}, FALLING, ">=0.5"),
    ({"LARGEST_CONVERGENT": 4.0, "CENSORED": "false"}, CONVERGING, "4"),
    ({"LARGEST_CONVERGENT": 4.0, "CENSORED": "true"}, CONVERGING, ">=4"),
    ({"CENSORED": "true"}, CONVERGING, None),
    ({"LARGEST_CONVERGENT": 4.0, "GRIDLESS": "true"}, CONVERGING, None),
    ({"LARGEST_FALLING": 4.0, "GRIDLESS": "true"}, FALLING, None),
    ({"CONDITION": 12345.6}, CONDITION, "1.235e+04"),
    ({"CONDITION_LIMIT": 1e30}, CONDITION, ">1e+30"),
    ({"CONDITION": 7.0, "CONDITION_LIMIT": 1e30}, CONDITION, "7"),
    # A curvature that goes to 0 with the cost; the excess at the start is 1.
    (FAR | {"FINAL_COST": names.TIED}, AT_END, None),
    (FAR | {"FINAL_COST": 1.01 * names.TIED}, AT_END, 9.0),
    (FAR | {"FINAL_COST": names.TIED, "AT_INFINITY": "false"}, AT_END, 9.0),
]


@pytest.mark.parametrize(("recorded", "column", "cell"), CELLS)
def test_a_cell_is_a_bound_where_it_is_one_and_empty_where_nothing_is_known(recorded, column, cell):
    sweep = tagged(runs(("x", "a", GRID), iterations="50"), role="scheme", **recorded)
    (row,) = theory_table.predictions(sweep).to_dict("records")
    assert row.get(column) == cell


def test_without_a_descent_or_a_step_above_0_nothing_was_seen():
    for jobs, settings in ((GRID, {"iterations": "0"}), ({0.0: 3.0}, {})):
        sweep = tagged(runs(("x", "a", jobs), **settings), **PROMISED)
        assert SEEN not in theory_table.predictions(sweep)


def test_failed_jobs_and_steps_of_another_scheme_say_nothing():
    jobs = [("x", "a", {0.0: 3.0, 1.0: 5.0}), ("x", "b", {0.1: 9.0, 2.0: 9.0}), ("x", "c", None)]
    table = theory_table.predictions(tagged(runs(*jobs), "a", "scheme", **PROMISED))
    assert table["scheme"].tolist() == ["a", "b"]
    assert table[SEEN].fillna("").tolist() == ["<0.5", ""]
    assert "experiment" not in table


def timed(*jobs, step=0.5, **settings):
    """Return the table of jobs that took 2 seconds to fit, and some for an iteration."""
    sweep = tagged(
        runs(*jobs, **{"iterations": "50", **settings}),
        role="scheme",
        **{"FIT_SECONDS": 2.0, "SECONDS_A_STEP": step},
    )
    count, of_count = (names.reached("1e-2", measure).column for measure in names.MEASURES)
    times = sweep.runs[count] * sweep.runs[names.SECONDS_A_STEP.column]
    frame = sweep.runs.assign(**{of_count: sweep.runs[names.FIT_SECONDS.column] + times})
    return seconds.seconds(replace(sweep, runs=frame), "1e-2")


def test_seconds_are_counted_with_the_fit_where_they_are_known():
    jobs = [("x", "a", {1.0: 6.0}), ("x", "b", {1.0: (np.inf, 0.5)}), ("x", "c", {1.0: 6.0})]
    table = timed(*jobs, step={"a": 0.5, "b": 0.5, "c": 0.0})
    assert table.columns.tolist() == [
        *("scheme", "fit", "an iteration", "fit in iterations"),
        *("iterations to target", "seconds to target"),
    ]
    assert table.loc[0].tolist() == ["a", 2.0, 0.5, 4.0, 6.0, 5.0]
    assert table.loc[1, ["iterations to target", "seconds to target"]].isna().all()
    assert table["scheme"].tolist() == ["a", "b"]
    assert timed(jobs[0], step=np.nan).empty
    assert timed(jobs[0], iterations="0").empty
    assert "passes to target" in timed(jobs[0], batch="8")
