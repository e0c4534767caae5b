"""The seconds of each scheme: of its fit, of an iteration of one run, and to a target."""

from typing import Any

import pandas as pd

from normbench import names
from normbench.results.compare import passes, problems
from normbench.results.compare.merging import counts_to_target, merged
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep


def seconds(sweep: Sweep, target: str) -> pd.DataFrame:
    """Return the seconds of each scheme that descended; empty where none were recorded.

    Args:
        sweep: The sweep.
        target: The target, a key of `names.TARGETS`.

    Returns:
        One row a scheme, the median over splits and seeds; the column `experiment` only where the
        sweep has several.

        - fit: of fitting the scheme and transforming the points;
        - an iteration: of one run, its share of the descent of the whole grid;
        - fit in iterations: the iterations of one run that take as long as the fit;
        - iterations to target, seconds to target: at the step size of the fewest iterations, the
          seconds with those of the fit; NaN where the target was not reached. The target is the
          same for all schemes, as in `time_to_target`.

        With batches, the columns name passes instead of iterations.
    """
    schemes = merged(sweep).of_role(names.SCHEME)
    # NaN, of a job whose seconds were not recorded, is not above 0.
    timed = [
        row
        for row in as_rows(schemes[~problems.without_descent(schemes)])
        if number_in(row, names.SECONDS_A_STEP.column) > 0
    ]
    if not timed:
        return pd.DataFrame()
    by_measure = {
        measure: counts_to_target(sweep, target, measure) for measure in ("iterations", "seconds")
    }
    unit = passes.unit(schemes)
    rows = []
    several_experiments = len(sweep.experiments) > 1
    for row in timed:
        fit, iteration = (
            number_in(row, metric.column) for metric in (names.FIT_SECONDS, names.SECONDS_A_STEP)
        )
        table_row: dict[str, Any] = {"experiment": row["experiment"]} if several_experiments else {}
        table_row |= {
            "scheme": row["label"],
            "fit": fit,
            unit.with_article: iteration,
            f"fit in {unit.many}": fit / iteration,
        }
        for measure, counts in by_measure.items():
            name = unit.many if measure == "iterations" else measure
            table_row[f"{name} to target"] = counts[row["run_id"]]
        rows.append(table_row)
    return pd.DataFrame(rows)
