"""Labels say in what the schemes of an experiment differ, and in nothing else."""

import pandas as pd
import pytest

from normbench import names
from normbench.results.store import run_labels

SWEEP_ID = names.SWEEP_ID.column


def table(*rows):
    common = {"role": names.SCHEME, "experiment": "iris-softmax", "normalizer": "standard"}
    made = [common | {"run_id": f"r{n}", SWEEP_ID: "s"} | row for n, row in enumerate(rows)]
    return pd.DataFrame(made)


def params(**settings):
    return {names.setting(key.replace("__", ".")): value for key, value in settings.items()}


def told(*rows):
    return run_labels.labels(table(*rows)).tolist()


def test_a_scheme_alone_is_its_normalizer():
    rows = (
        {"normalizer": "standard", **params(seed="1")},
        {"normalizer": "pca", **params(seed="2")},
    )
    assert told(*rows) == ["standard", "pca"]
    assert told({names.FIT_ON: "all"}, {"normalizer": "pca", names.FIT_ON: "train"}) == [
        "standard (fitted on all)",
        "pca",
    ]


def test_what_differs_is_told_with_its_value_as_typed():
    rows = [params(seed=seed, l2=l2, iterations="9") for seed, l2 in (("1", "0.1"), ("2", "None"))]
    assert told(*rows) == ["standard, seed=1, l2=0.1", "standard, seed=2, l2=null"]


def test_an_option_of_a_normalizer_has_its_own_name_alone():
    rows = [params(normalizer__ridge=ridge) for ridge in ("0", "0.001")]
    assert told(*rows) == ["standard, ridge=0", "standard, ridge=0.001"]


def test_an_option_is_told_where_the_same_choice_has_others():
    rows = [
        params(optimizer="adam", optimizer__epsilon="1e-8"),
        params(optimizer="adam", optimizer__epsilon="1e-4"),
        params(optimizer="momentum", optimizer__epsilon=None),
    ]
    assert told(*rows) == [
        "standard, optimizer=adam, optimizer.epsilon=1e-8",
        "standard, optimizer=adam, optimizer.epsilon=1e-4",
        "standard, optimizer=momentum",
    ]
    rows[1] = params(optimizer="other", optimizer__epsilon="1e-4")
    assert told(*rows)[:2] == ["standard, optimizer=adam", "standard, optimizer=other"]


def test_a_setting_that_follows_the_optimizer_is_told_where_one_optimizer_has_several():
    rows = [
        params(optimizer="adam", iterations="9"),
        params(optimizer="momentum", iterations="20"),
    ]
    assert told(*rows) == ["standard, optimizer=adam", "standard, optimizer=momentum"]
    rows.append(params(optimizer="adam", iterations="20"))
    assert told(*rows) == [
        "standard, optimizer=adam, iterations=9",
        "standard, optimizer=momentum",
        "standard, optimizer=adam, iterations=20",
    ]


def test_where_a_file_lies_distinguishes_no_schemes():
    rows = [params(seed=str(n), data_dir=f"/{n}") for n in range(2)]
    assert told(*rows) == ["standard, seed=0", "standard, seed=1"]


def test_the_same_job_run_again_has_its_sweep_and_run():
    rows = [{**params(seed=seed), SWEEP_ID: sweep} for seed, sweep in (("1", "a"), ("1", "b"))]
    assert told(*rows) == [
        f"standard, {names.SWEEP_ID.key}=a, run_id=r0",
        f"standard, {names.SWEEP_ID.key}=b, run_id=r1",
    ]
    rows.append({**params(seed="2"), SWEEP_ID: "b"})
    assert told(*rows)[2] == "standard, seed=2"


def test_only_schemes_of_one_experiment_are_told_apart():
    rows = [
        {"experiment": "iris", **params(seed="1")},
        {"experiment": "wine", **params(seed="2")},
        {"experiment": "wine", **params(seed="3"), "role": names.STEP},
        {"experiment": "wine", **params(seed="4"), "role": names.SWEEP},
    ]
    assert told(*rows) == ["standard"] * 4
    rows[3]["role"] = names.SCHEME
    assert told(*rows) == ["standard", "standard, seed=2", "standard", "standard, seed=4"]


@pytest.mark.parametrize("column", ["start", "stands_in", None])
def test_a_start_that_stands_for_another_is_told_as_asked(column):
    start, stands_in = names.setting("start"), names.STANDS_IN.column
    rows = pd.DataFrame({start: ["zeros", "normal"], stands_in: ["true", None]})
    if column:
        rows = rows.drop(columns=[start if column == "start" else stands_in])
        assert run_labels.with_requested_start(rows) is rows
    else:
        assert run_labels.with_requested_start(rows)[start].tolist() == ["same_function", "normal"]
