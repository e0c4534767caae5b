"""Passes and updates over the size of a batch: the table, and up to where larger ones pay."""

from normbench.results.answer import closing
from normbench.results.compare.batch_gains import batch_table, saturated_batches
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
    (said,) = closing.remarks(sweep(3, 4, 30), "x")
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
    assert closing.remarks(sweep(3, 4, 30), "x")
    twice = sweep(3, 4, 30, 30, sizes=("1", "10", "100", "None"))  # both are of all 100 points
    assert closing.remarks(twice, "x") == []


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
        (sentence,) = closing.remarks(several, "x")
        assert sentence.startswith("Beyond a batch of 10 larger batches save less than half")
