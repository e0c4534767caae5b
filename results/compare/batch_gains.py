"""What a larger batch gains: passes and steps to a target by the size of the batch."""

import pandas as pd

from normbench import names
from normbench.results.compare.merging import counts_to_target, merged
from normbench.results.compare.passes import (
    BATCH_SETTING,
    TRAIN_POINTS,
    batch_size,
    records_per_pass,
)
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

BATCH_COLUMNS = [
    *("scheme", "normalizer", "batch", "passes", "updates", "stable", "knee", "records"),
    "grid_end",
]
TARGET = "1e-2"  # of the excess
FEWEST_BATCH_SIZES = 3  # sizes of a batch: of fewer, nothing is said
FEWEST_RECORDS = 3  # to the target: after fewer, nobody knows how many updates it took


def batch_table(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return the passes and updates to 1e-2 of the excess, by scheme and batch.

    The batch of a job without the setting `batch` is all points.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        One row a scheme and batch, with the columns `BATCH_COLUMNS`; empty where no job has a
        batch. `passes`, `updates` and `records` are what the target takes, each NaN where it is
        not reached. `stable` is the largest step size that converged; `grid_end` says that no
        larger one failed, so that `stable` is a lower bound. `knee` is the batch beyond which
        theory predicts little gain, NaN where it is unknown.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    # Batches are compared only where a job has one and the number of all points is known.
    if (
        BATCH_SETTING not in schemes
        or TRAIN_POINTS not in schemes
        or (schemes[BATCH_SETTING] == "None").all()
    ):
        return pd.DataFrame(columns=BATCH_COLUMNS)
    rows = []
    counts = counts_to_target(sweep, TARGET)
    for row in as_rows(schemes):
        points = pd.to_numeric(row[TRAIN_POINTS], errors="coerce")
        batch = batch_size(row)
        count = float(counts[row["run_id"]])  # passes to the target, NaN if it is not reached
        stable = row.get(names.LARGEST_CONVERGENT.column, float("nan"))
        updates_per_pass = -(-points // batch)  # rounded up
        rows.append(
            {
                "scheme": names.normalizer_label(row),
                "normalizer": row["normalizer"],
                "batch": batch,
                "passes": count,
                "updates": count * updates_per_pass,
                "stable": stable,
                "knee": row.get(names.KNEE.column, float("nan")),
                "records": count * records_per_pass(row),
                "grid_end": row.get(names.CENSORED.column) == "true",
            }
        )
    table = pd.DataFrame(rows, columns=BATCH_COLUMNS)
    return table.sort_values(["scheme", "batch"], kind="stable", ignore_index=True)


def saturated_batches(table: pd.DataFrame) -> dict[str, float]:
    """Return, by scheme, the smallest batch that takes at most twice the updates of the largest.

    Larger batches than that save at most half of the updates. A batch that reaches the target in
    fewer than `FEWEST_RECORDS` records is left out. A scheme is left out if its largest batch is,
    or does not reach the target; if it has fewer than `FEWEST_BATCH_SIZES` sizes; or if only its
    largest batch takes so few updates.

    Args:
        table: One row a scheme and batch, from `batch_table`.
    """
    batches = {}
    for scheme, rows in table.groupby("scheme", sort=False):
        # NaN records, of a batch that does not reach the target, are left out too.
        reaching_rows = rows[rows["records"] >= FEWEST_RECORDS].sort_values("batch")
        largest = rows["batch"].max()
        # The largest batch is what the others are compared with.
        if rows["batch"].nunique() < FEWEST_BATCH_SIZES or largest != reaching_rows["batch"].max():
            continue
        updates = reaching_rows["updates"]
        saturated = reaching_rows.loc[updates <= 2 * updates.iloc[-1], "batch"]
        if saturated.iloc[0] < largest:  # else all smaller batches take over twice as many
            batches[str(scheme)] = float(saturated.iloc[0])
    return batches
