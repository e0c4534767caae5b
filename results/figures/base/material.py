"""What figures are made from: a sweep's rows, with the columns that figures look for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare import problems
from normbench.results.compare.merging import repeated_over
from normbench.results.compare.reached import thresholds_that_hold
from normbench.results.figures.base import style
from normbench.results.store import dataset_inputs as inputs
from normbench.results.store.rows import as_rows, shared_value
from normbench.results.store.runs import HISTORIES, QUARTILES, Sweep, which_step

Parts = Mapping[str, Any]  # what is recorded of one scheme
Arrays = Mapping[str, Parts]  # by the label of the scheme
COLUMNS = (names.STEP_TAG.column, names.FINAL_COST.column, names.STEP_SIZE.column)
START = "start_cost"  # a column of schemes: the cost at the start, NaN where it is not known


@dataclass(frozen=True)
class Options:
    """How figures are drawn.

    shape: see `style.FORMATS`. first: the iteration that histories begin at. scale: `linear`,
    `log`, or None to choose by the range. steps: the step sizes whose histories are drawn; the
    best of each scheme where it is empty. components: how many of a scheme; None for a few.
    """

    shape: style.Shape = style.SCREEN
    first: int = 0
    scale: str | None = None
    steps: tuple[float, ...] = ()
    components: int | None = None


class Drawn(NamedTuple):
    """A scheme that a figure shows: its row, its arrays and its look."""

    label: str
    row: Mapping[Any, Any]
    parts: Parts
    look: style.Look


def with_arrays(schemes: pd.DataFrame, arrays: Arrays) -> list[Drawn]:
    """Return the schemes that have arrays, in the order of their rows."""
    rows = [row for row in as_rows(schemes) if row["label"] in arrays]
    looks = style.looks([row["normalizer"] for row in rows])
    return [Drawn(row["label"], row, arrays[row["label"]], look) for row, look in zip(rows, looks)]


Maker = Callable[[Sweep, str, Options], Figure | None]


def schemes(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row a scheme that did not fail, with the columns that figures look for.

    2/L is left out where it does not speak of the optimizer.
    """
    rows = sweep.of_role(names.SCHEME, experiment)
    return _with_columns(thresholds_that_hold(rows[rows["verdict"] != names.FAILED]))


def steps(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row a scheme and step size, with the columns that figures look for."""
    return _with_columns(sweep.of_role(names.STEP, experiment))


def gridless(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether each scheme's optimizer finds its own step sizes: there is no axis of them."""
    return rows.get(names.GRIDLESS.column, pd.Series("", index=rows.index)) == "true"


def _with_columns(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(**{name: None for name in COLUMNS if name not in rows})


def helps(scheme: Mapping[Any, Any], cost: float) -> bool:
    """Return whether a final cost lies below the scheme's start, or counts are compared instead."""
    counted = scheme.get(names.COMPARED.column) == names.MISCLASSIFICATIONS
    start = pd.to_numeric(scheme.get(START), errors="coerce")
    return bool(counted or pd.isna(start) or cost <= start)


def with_starts(sweep: Sweep, rows: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with the cost at the start."""
    cost = names.TRAIN_COST.key
    table = sweep.histories(rows, [cost])
    if cost not in table:
        return rows.assign(**{START: float("nan")})
    first = table[table["iteration"] == 0].set_index("run_id")[cost]
    return rows.assign(**{START: rows["run_id"].map(first)})


def histories(sweep: Sweep, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the costs and misclassifications of runs, with quartiles where there are any."""
    return sweep.histories(runs, (*HISTORIES, *QUARTILES))


def title(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title in words: the data, points x features, the cost.

    rows: the experiment's scheme runs; what differs between them, as over splits, is left out.
    """
    labels = (names.setting("dataset"), names.DATASET.column)
    dataset = next(filter(None, (shared_value(rows, name) for name in labels)), "")
    rest = experiment.removeprefix(f"{dataset}-") if dataset else experiment
    sizes = [shared_value(rows, name) for name in inputs.SIZES]
    train, test, features = (f"{float(size):g}" if size else "" for size in sizes)
    held = f"{test} test points" if test not in ("", "0") else ""
    words = [dataset.replace("_", " "), f"{train} x {features}" if train and features else ""]
    if rest != dataset:
        words.append(rest.replace("_", " "))
    leaks = names.FIT_ON in rows and (rows[names.FIT_ON] == "all").any()
    seen = "some schemes fitted on the test points too" if leaks else ""
    return ", ".join(filter(None, [*words, held, seen]))


def with_budget(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title that says how many iterations the verdicts are about."""
    return ", ".join(filter(None, [title(experiment, rows), problems.budget(rows)]))


def best_words(schemes: pd.DataFrame) -> str:
    """Return what the step size that stands for a scheme is, as a legend has it."""
    if which_step(schemes) == "shown":
        return "shown step, by choice"
    counted = names.COMPARED.column in schemes and schemes[names.COMPARED.column].notna().any()
    return f"best step: first to the {'fewest misclassified' if counted else 'lowest cost'}"


def of_steps(
    draw: Callable[..., Figure], fits: Callable[[pd.DataFrame], bool] = lambda steps: True
) -> Maker:
    """Return the maker of a figure that is drawn from step sizes and schemes; None without them.

    Schemes whose optimizer finds its own step sizes are left out. fits: whether the step sizes can
    be drawn.
    """

    def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
        table, rows = steps(sweep, experiment), schemes(sweep, experiment)
        if gridless(rows).any():
            rows = rows[~gridless(rows)]
            table = table[table["label"].isin(rows["label"])]
        if table.empty or rows.empty or not fits(table):
            return None
        rows = with_starts(sweep, rows)
        return draw(table, rows, with_budget(experiment, rows), shape=options.shape)

    return make


def of_arrays(
    word: str,
    draw: Callable[..., Figure],
    fits: Callable[[Parts], bool] = lambda parts: True,
) -> Maker:
    """Return the maker of a figure that is drawn from the arrays which `record=[word]` asks for.

    fits: whether one scheme's arrays can be drawn.
    """

    def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
        rows = schemes(sweep, experiment)
        arrays = fitting(sweep, rows, word, fits)
        words = of_first(experiment, rows)
        return draw(arrays, rows, words, shape=options.shape) if arrays else None

    return make


def of_first(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title that says of how many splits and seeds the first is shown."""
    over = repeated_over(rows)
    words = title(experiment, rows)
    return f"{words}, the first of {over[-1]}" if over else words


def fitting(sweep: Sweep, rows: pd.DataFrame, word: str, fits: Callable[[Parts], bool]) -> Arrays:
    """Return the arrays of a word that can be drawn, by the label of their scheme."""
    return {label: parts for label, parts in sweep.arrays(rows, word).items() if fits(parts)}
