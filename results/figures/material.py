"""What figures are made from: a sweep's rows, with the columns that figures look for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench.results import names, tables, theory
from normbench.results.figures import style
from normbench.results.merging import REPEATS
from normbench.results.runs import HISTORIES, QUARTILES, Sweep

Arrays = dict[str, dict[str, Any]]
COLUMNS = (names.STEP_TAG.column, names.FINAL_COST.column, names.STEP_SIZE.column)


@dataclass(frozen=True)
class Options:
    """How figures are drawn.

    shape: see `style.FORMATS`. first: the iteration that histories begin at. scale: `linear`,
    `log`, or None to choose by the range. steps: the step sizes whose histories are drawn; the
    best of each scheme where it is empty.
    """

    shape: style.Shape = style.SCREEN
    first: int = 0
    scale: str | None = None
    steps: tuple[float, ...] = ()


Maker = Callable[[Sweep, str, Options], Figure | None]


def schemes(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row a scheme that did not fail, with the columns that figures look for.

    2/L is left out where it does not speak of the optimizer.
    """
    rows = sweep.of_role(names.SCHEME, experiment)
    return _with_columns(theory.thresholds_that_hold(rows[rows["verdict"] != names.FAILED]))


def steps(sweep: Sweep, experiment: str) -> pd.DataFrame:
    """Return one row a scheme and step size, with the columns that figures look for."""
    return _with_columns(sweep.of_role(names.STEP, experiment))


def _with_columns(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(**{name: None for name in COLUMNS if name not in rows})


def histories(sweep: Sweep, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the costs and misclassifications of runs, with quartiles where there are any."""
    return sweep.histories(runs, (*HISTORIES, *QUARTILES))


def with_budget(experiment: str, rows: pd.DataFrame) -> str:
    """Return a title that says how many iterations the verdicts are about."""
    return ", ".join(filter(None, [experiment, tables.budget(rows)]))


def of_arrays(
    word: str,
    draw: Callable[..., Figure],
    fits: Callable[[dict[str, Any]], bool] = lambda parts: True,
) -> Maker:
    """Return the maker of a figure that is drawn from the arrays which `record=[word]` asks for.

    fits: whether one scheme's arrays can be drawn.
    """

    def make(sweep: Sweep, experiment: str, options: Options) -> Figure | None:
        rows = schemes(sweep, experiment)
        arrays = fitting(sweep, rows, word, fits)
        over = set(rows.get(REPEATS, pd.Series(dtype=str)).dropna()) - {""}
        title = f"{experiment}, the first of {max(over)}" if over else experiment
        return draw(arrays, rows, title, shape=options.shape) if arrays else None

    return make


def fitting(
    sweep: Sweep, rows: pd.DataFrame, word: str, fits: Callable[[dict[str, Any]], bool]
) -> Arrays:
    """Return the arrays of a word that can be drawn, by the label of their scheme."""
    found = sweep.arrays(rows, word)
    return {label: parts for label, parts in found.items() if fits(parts)}
