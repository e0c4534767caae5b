"""What is made of runs, by hand."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.store import dataset_inputs, filters, recorded_histories
from normbench.results.store.errors import ResultsError
from normbench.results.store.run_labels import _count_equal_numbers

COST = names.TRAIN_COST.key


def row(run_id, role=names.STEP, size="0.1", **columns):
    about = {"run_id": run_id, "experiment": "x", "normalizer": "n", "label": "l", "role": role}
    about |= {"verdict": "v", "parent": "p", names.STEP_TAG.column: size}
    return about | {f"{names.METRICS}{COST}": 1.0} | columns


def series_of(**values):
    return lambda run_id: {COST: dict(enumerate(values.get(run_id, ())))}


def test_histories_are_a_row_an_iteration():
    rows = pd.DataFrame([row("a"), row("c", **{f"{names.METRICS}{COST}": np.nan})])
    table = recorded_histories.table(rows, [COST, "other"], series_of(a=[3.0, 2.0]), None)
    assert list(table) == [*recorded_histories.RUN_COLUMNS, "iteration", COST]
    assert table["iteration"].tolist() == [0, 1]
    assert table[COST].tolist() == [3.0, 2.0]
    assert set(table["run_id"]) == {"a"}
    assert set(table["step_size"]) == {"0.1"}
    nothing = recorded_histories.table(rows[1:], [COST], series_of(), None)
    assert list(nothing) == [*recorded_histories.RUN_COLUMNS, "iteration"]
    assert nothing.empty


def test_a_thinned_history_comes_from_the_arrays_of_its_scheme():
    arrays = {
        "step_sizes": np.array([0.01, 1 / 3, 1.0]),
        COST: np.array([[[9.0, 9.0]] * 2, [[3.0, np.nan], [8.0, 8.0]], [[5.0, 4.0]] * 2]),
    }
    asked = []

    def descent(run_id):
        asked.append(run_id)
        return arrays

    thinned = {names.THINNED.column: "true"}
    rows = [row("a", size="0.333333", **thinned), row("b", names.SCHEME, "1", **thinned)]
    rows.append(row("c", **{names.THINNED.column: "false"}))
    table = recorded_histories.table(pd.DataFrame(rows), [COST], series_of(c=[7.0]), descent)
    assert asked == ["p", "b"]
    assert table[["run_id", "iteration", COST]].to_numpy().tolist() == [
        *(["a", 0, 3.0], ["b", 0, 5.0], ["b", 1, 4.0], ["c", 0, 7.0])
    ]


JOBS = pd.DataFrame(
    [
        {"params.dataset": "iris", "params.cost.l2": "0", "tags.verdict": "failed"},
        {"params.dataset": "digits", "metrics.final/cost": 0.5},
    ]
)


def test_a_filter_that_finds_nothing_is_answered_by_what_is_recorded():
    told = filters.remedy(JOBS, "params.dataset = 'x' and params.dataset = 'y'")
    assert told == "params.dataset is 'digits' or 'iris' there"
    assert filters.remedy(JOBS, "`params.datasets` = 'x'") == (
        "no run has params.datasets; did you mean params.dataset"
    )
    assert filters.remedy(JOBS, "tags.zzz = 'x' and params.cost.l2 = '1'") == (
        "no run has tags.zzz; params.cost.l2 is '0' there"
    )


def test_conditions_are_met_by_jobs_that_have_the_value():
    for where, found in {
        "params.dataset = 'iris'": [0],
        "params.dataset != 'iris'": [1],
        "metrics.final/cost >= 0.5 and params.dataset == 'digits'": [1],
        "`metrics.final/cost` < 0.5": [],
        "tags.verdict = 'failed' or params.dataset = 'digits'": [0, 1],
        "params.dataset = 'a = b'": [],
        "params.zzz = '1'": [],
    }.items():
        assert filters.select(JOBS, where).index.tolist() == found, where
    for where in ("nonsense", "params.dataset", "params.dataset = iris", "params.dataset ="):
        with pytest.raises(ResultsError, match="is no condition; write it as in"):
            filters.select(JOBS, where)


def test_a_data_set_is_told_with_its_sizes():
    dataset = {"name": "d0", "digest": "f00"}
    dataset["profile"] = '{"train_points": 60, "test_points": 0, "features": 2, "task": "classes"}'
    assert dataset_inputs.describe(dataset) == (
        "d0: 60 train points, 0 test points, 2 features; fingerprint f00"
    )
    sizes = {"train_points": 60, "test_points": 0, "features": 2}
    assert dataset_inputs.sizes(dataset) == sizes
    assert (dataset_inputs.describe({}), dataset_inputs.sizes({})) == ("", {})


def test_equal_numbers_of_a_label_are_counted_from_five_on():
    assert _count_equal_numbers("[50, 50, 50, 50, 10]") == "[50, 50, 50, 50, 10]"
    assert _count_equal_numbers("[50, 50, 50, 50, 50, 10]") == "[5 x 50, 10]"
    assert _count_equal_numbers("[5,5,5,5,5,5]") == "[6 x 5]"
    assert _count_equal_numbers("[50, 5, 5, 5, 5, 50]") == "[50, 5, 5, 5, 5, 50]"
