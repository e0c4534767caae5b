"""A comparison as an object, for Python and notebooks: what was found, and it shows itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.answer import cause, headline, tables
from normbench.results.answer import closing as answer
from normbench.results.compare import heldout
from normbench.results.figures import NAMES, drawing
from normbench.results.report import inline
from normbench.results.report import page as report
from normbench.results.safe import clean
from normbench.results.store import runs, state
from normbench.results.store.errors import ResultsError
from normbench.results.store.stores import DEFAULT_STORE

# The columns of a frame, by the histories that they hold.
TRAIN = {names.TRAIN_COST.key: "cost", names.TRAIN_MISCLASSIFICATIONS.key: "misclassifications"}
TEST = {
    metric.key: f"test_{column}"
    for metric, column in zip((names.TEST_COST, names.TEST_MISCLASSIFICATIONS), TRAIN.values())
}


class Table(pd.DataFrame):  # type: ignore[misc]
    """A frame that shows every row and column, whatever pandas would leave out of a wide one."""

    def __repr__(self) -> str:
        return str(self.to_string())

    def _repr_html_(self) -> str:
        return str(self.to_html())


# Notebooks are dark where the system is, and where JupyterLab or VS Code has a dark theme.
DARK = "body[data-jp-theme-light=false] .normbench svg, body.vscode-dark .normbench svg"
STYLE = f"""
.normbench p {{ max-width: 46rem; }}
.normbench svg {{ display: block; width: 100%; max-width: 60rem; height: auto; }}
.normbench th, .normbench td {{ text-align: left; white-space: nowrap; padding: .2em .8em; }}
.normbench .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
{DARK} {{ {inline.INVERTED} }}
@media (prefers-color-scheme: dark) {{
  body:not([data-jp-theme-light=true]):not(.vscode-light) .normbench svg {{ {inline.INVERTED} }}
}}
"""


def _html(table: pd.DataFrame) -> str:
    """Return a table as HTML, numbers of four digits at most and to the right."""
    cells = tables.cells(table)
    for name in (name for name in tables.COSTS if name in table):
        cells[name] = [f"{value:.4g}" if pd.notna(value) else "-" for value in table[name]]
    if tables.EXCESS_LEFT in table:
        pairs_of_cells = zip(table[tables.EXCESS_LEFT], cells[tables.EXCESS_LEFT])
        cells[tables.EXCESS_LEFT] = [
            answer.share(left) if left < tables.LARGE else cell for left, cell in pairs_of_cells
        ]
    looks = ["" if tables.is_words(name, table) else ' class="number"' for name in cells]

    def row(tag: str, values: Sequence[str]) -> str:
        pairs = zip(values, looks)
        inside = "".join(f"<{tag}{look}>{escape(value)}</{tag}>" for value, look in pairs)
        return f"<tr>{inside}</tr>"

    body = "".join(row("td", values) for values in zip(*cells.values(), strict=True))
    return f"<table><thead>{row('th', list(cells))}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Schemes, compared: of `normbench.compare`, or as a store has them.

    In a notebook it shows its sentence, why that is so, its table and its histories. What a pandas
    frame can do, it does with its `frame`.

    Attributes:
        sweep: The runs, as the reader of the store has them.
        notes: Sentences that say that the comparison still runs, or was stopped.
    """

    sweep: runs.Sweep
    notes: Sequence[str] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Every run, with one row a run and iteration.

        Columns: normalizer (with what tells it from others of that name), step_size, iteration,
        cost (mean over points), misclassifications (NaN for regression), verdict, and of points
        held out test_cost and test_misclassifications. A diverged run has rows up to its last
        finite iteration.
        """
        steps = self.sweep.of_role(names.STEP)
        found = self.sweep.histories(steps)
        sizes = steps.set_index("run_id")[names.STEP_SIZE.column].astype(float)
        found = found.assign(step_size=found["run_id"].map(sizes), normalizer=found["label"])
        found = found.rename(columns={**TRAIN, **TEST})
        kept = ["normalizer", "step_size", "iteration", *TRAIN.values(), "verdict"]
        return found.reindex(columns=[*kept, *(name for name in TEST.values() if name in found)])

    @cached_property
    def histories(self) -> pd.DataFrame:
        """The best run of each scheme, one row a run and iteration, as `results table` has it."""
        return tables.histories(self.sweep)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a scheme, at its best step size; it shows whole."""
        return Table(tables.summary(self.sweep))

    @cached_property
    def cross_validation(self) -> pd.DataFrame:
        """What `folds` found of points held out, one row a scheme; empty without them."""
        return Table(heldout.cross_validated(self.sweep))

    @cached_property
    def sentence(self) -> str:
        """Which scheme is fastest, why, and how all of them end."""
        first, overall = headline.headline(self.sweep), answer.overall(self.sweep)
        if overall.startswith(first):  # without a race
            return overall
        causes = [cause.cause(self.sweep, name) for name in self.sweep.experiments[:1]]
        lines = [first, *causes * (len(self.sweep.experiments) == 1), overall]
        return " ".join(filter(None, lines))

    def figure(self, name: str = "histories", experiment: str | None = None) -> Figure:
        """Draw a figure.

        Args:
            name: One of the names on the page *Figures*, such as `melt`.
            experiment: Which data set and cost, such as `iris-softmax`; the first by default.

        Returns:
            A figure of matplotlib.

        Raises:
            ResultsError: There is no such figure, or nothing was recorded for it.
        """
        if name not in NAMES:
            raise ResultsError(f"figure {name}: there is none; there are {', '.join(NAMES)}")
        experiment = experiment or self.sweep.experiments[0]
        if experiment not in self.sweep.experiments:
            there = ", ".join(self.sweep.experiments)
            raise ResultsError(f"experiment {experiment}: is not here; there are {there}")
        drawn = drawing.figure(self.sweep, experiment, name)
        if drawn is None:
            raise ResultsError(f"figure {name}: nothing was recorded for it; it is {NAMES[name]}")
        return drawn

    def report(self, file: str | Path) -> Path:
        """Write the report, one page that opens without a network.

        Args:
            file: Where it is written; a file of this name is replaced.

        Returns:
            The file.

        Raises:
            ResultsError: It cannot be written there.
        """
        place = Path(file)
        try:
            place.write_text(report.render(self.sweep), encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"report {file}: cannot be written ({error.strerror})") from error
        return place

    def __repr__(self) -> str:
        return "\n\n".join([*self.notes, self.sentence, tables.text(self.table)])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the data, the answer, its cause in words and drawn."""
        several = len(self.sweep.experiments) > 1
        told = [*self.notes, headline.headline(self.sweep)]
        told += [] if several else [cause.cause(self.sweep, self.sweep.experiments[0])]
        title = ", ".join(self.sweep.experiments)
        words = "".join(f"<p>{escape(clean.shown(line))}</p>" for line in told if line)
        why, histories = self._pictures("melt"), self._pictures("histories")
        head = f"<style>{STYLE}</style><h4>{escape(clean.shown(title))}</h4>"
        return f'<div class="normbench">{head}{words}{why}{_html(self.table)}{histories}</div>'

    def _pictures(self, name: str) -> str:
        """Return a figure of every experiment that has it, as SVG elements."""
        with TemporaryDirectory() as folder:
            drawn = drawing.write(self.sweep, Path(folder), [name], kinds=["svg"])
            files = list(chain.from_iterable(drawn.values()))
            texts = [(file.stem, file.read_text(encoding="utf-8")) for file in files]
        return "".join(inline.element(text, f"{clean.name(stem)}-") for stem, text in texts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (not hasattr(pd.DataFrame, name) and name not in self.frame):
            raise AttributeError(f"a Comparison has no {name}; its table of all runs is .frame")
        return getattr(self.frame, name)

    def __getitem__(self, key: Any) -> Any:
        return self.frame[key]

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frame)


def load(sweep: str = "last", store: str = DEFAULT_STORE) -> Comparison:
    """Load a recorded comparison.

    Args:
        sweep: Its id, as `normbench results list` prints it; `last` for the last one that has
            results.
        store: An MLflow store or server; by default `mlflow.db` in the working folder.

    Returns:
        What `compare` returns.

    Raises:
        ResultsError: There is no such store or sweep, or no job of it is recorded.
    """
    for name, value, example in (
        ("sweep", sweep, "an id of `normbench results list`, or 'last'"),
        ("store", store, "a URI, such as 'sqlite:///mlflow.db'"),
    ):
        if not isinstance(value, str):
            raise ResultsError(f"{name} is {type(value).__name__}: must be text; give {example}")
    return Comparison(*state.read(store, () if sweep == "last" else (sweep,)))
