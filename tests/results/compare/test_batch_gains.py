"""Passes and updates over the size of a batch: the table, and up to where larger ones pay."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.answer import closing
from normbench.results.compare.batch_gains import BATCH_COLUMNS, batch_table, saturated_batches
from normbench.results.compare.passes import BATCH_SETTING
from normbench.results.store.runs import Sweep
from tests.results.figures.test_batch_sizes import sweep
from tests.results.made import runs


def test_a_table_has_passes_and_updates_by_batch():
    table = batch_table(sweep(3, 4, 30), "x")
    rows = table[table["scheme"] == "standard"]
    assert rows[["batch", "passes", "updates"]].to_numpy().tolist() == [
        [1, 3, 300],
        [10, 4, 40],
        [100, 30, 30],
    ]
    assert saturated_batches(table) == {"standard": 10, "pca_sphere": 10}
    (said,) = closing.batch_and_exclusion_remarks(sweep(3, 4, 30), "x")
    assert said == (
        "Beyond a batch of 10 larger batches save less than half of the steps under pca_sphere; "
        "under standard, 10."
    )


def test_a_batch_saves_less_than_half_up_to_twice_the_updates_and_counts_from_three_records():
    """Of 100 points: 10 a batch are 10 updates a pass, so 6 passes are twice the 30 of all."""
    assert saturated_batches(batch_table(sweep(9, 6, 30), "x"))["standard"] == 10
    assert "standard" not in saturated_batches(batch_table(sweep(9, 7, 30), "x"))
    assert saturated_batches(batch_table(sweep(9, 3, 30), "x"))["standard"] == 10
    assert "standard" not in saturated_batches(batch_table(sweep(9, 2, 30), "x"))


def test_the_rows_of_a_table_are_numbered_in_their_order():
    table = batch_table(sweep(9, 6, 30), "x")
    assert table.index.tolist() == [*range(6)]
    assert table["scheme"].tolist() == ["pca_sphere"] * 3 + ["standard"] * 3


def test_nothing_is_said_of_batches_of_one_size_in_several_problems():
    assert closing.batch_and_exclusion_remarks(sweep(3, 4, 30), "x")
    twice = sweep(3, 4, 30, 30, sizes=("1", "10", "100", "None"))  # both are of all 100 points
    assert closing.batch_and_exclusion_remarks(twice, "x") == []


def test_several_orders_and_several_splits_have_passes_updates_and_the_sentence():
    for seed_name in ("batch_seed", "dataset.split_seed"):
        jobs = [
            (
                "x",
                "standard",
                {1.0: (count + number, 1e-3 + 1e-6 * number)},
                {"batch": size, seed_name: str(number), "data": seed_name[:7] + str(number)},
            )
            for count, size in ((3, "1"), (4, "10"), (30, "None"))
            for number in range(3)
        ]
        if seed_name == "batch_seed":
            jobs = [(*job[:3], job[3] | {"data": "same"}) for job in jobs]
        several = Sweep("-", "s", runs(*jobs).runs.assign(train_points=100))
        table = batch_table(several, "x")
        assert table[["batch", "passes", "updates"]].to_numpy().tolist() == [
            [1, 4, 400],
            [10, 5, 50],
            [100, 31, 31],
        ]
        (sentence,) = closing.batch_and_exclusion_remarks(several, "x")
        assert sentence.startswith("Beyond a batch of 10 larger batches save less than half")


def batched(*sizes, points=100, records=None, **tags):
    """Return a sweep of one scheme in batches of these sizes, each of which takes 6 passes."""
    own = {} if records is None else {"records_per_pass": str(records)}
    jobs = [("x", "a", {1.0: 6.0}, {"batch": size, **own}) for size in sizes]
    frame = runs(*jobs).runs.assign(train_points=points)
    for name, value in tags.items():
        frame[getattr(names, name).column] = value
    return Sweep("-", "s", frame)


def test_a_table_is_there_where_one_job_has_a_batch_of_known_points():
    assert batch_table(batched("None"), "x").empty
    assert batch_table(batched("10"), "x")["batch"].tolist() == [10]
    assert batch_table(batched("10", "None"), "x")["batch"].tolist() == [10, 100]
    unknown = batched("10").runs.drop(columns="train_points")
    assert batch_table(Sweep("-", "s", unknown), "x").empty
    assert [*batch_table(Sweep("-", "s", unknown), "x")] == BATCH_COLUMNS
    without = batched("10").runs.drop(columns=BATCH_SETTING)
    assert batch_table(Sweep("-", "s", without), "x").empty


def test_the_last_batch_of_a_pass_may_be_a_part_and_records_are_several_a_pass():
    """Of 100 points 30 a batch are 4 updates a pass, the last one of 10 points."""
    sweep = batched("30", records=4, LARGEST_CONVERGENT=2.5, KNEE=11.0, CENSORED="true")
    (row,) = batch_table(sweep, "x").to_dict("records")
    assert row == {
        **{"scheme": "a", "normalizer": "a", "batch": 30, "passes": 6, "updates": 24},
        **{"stable": 2.5, "knee": 11, "records": 24, "grid_end": True},
    }
    (plain,) = batch_table(batched("50"), "x").to_dict("records")
    assert (plain["updates"], plain["records"], plain["grid_end"]) == (12, 6, False)
    assert np.isnan([plain["stable"], plain["knee"]]).all()
    assert not batch_table(batched("50", CENSORED="false"), "x")["grid_end"].any()


@pytest.mark.parametrize(
    ("batches", "updates", "records", "least"),
    [
        ([1, 10, 100], [60, 60, 30], [9, 9, 9], 1),
        ([1, 10, 100], [61, 60, 30], [9, 9, 9], 10),
        ([1, 10, 100], [61, 61, 30], [9, 9, 9], None),
        ([1, 10, 100], [60, 60, 30], [2, 3, 9], 10),
        ([1, 10, 100], [60, 60, 30], [9, 9, 2], None),  # of the largest it is not known
        ([1, 10, 10], [60, 60, 60], [9, 9, 9], None),
        ([10, 100, 1], [60, 30, 60], [9, 9, 9], 1),
        ([1, 10, 100], [30, 60, np.inf], [9, 9, np.inf], 1),
    ],
)
def test_the_least_batch_takes_at_most_twice_the_updates_of_the_largest(
    batches, updates, records, least
):
    rows = pd.DataFrame({"scheme": "a", "batch": batches, "updates": updates, "records": records})
    assert saturated_batches(rows) == ({} if least is None else {"a": least})


def test_schemes_stand_in_the_order_of_their_table():
    rows = [("b", 1), ("b", 10), ("b", 100), ("a", 1), ("a", 10), ("a", 100)]
    table = pd.DataFrame(rows, columns=["scheme", "batch"]).assign(updates=5, records=9)
    assert [*saturated_batches(table)] == ["b", "a"]
