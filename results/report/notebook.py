"""A comparison as a Python object, which displays itself in notebooks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import escape
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.answer import cause, headline, scheme_faults, tables
from normbench.results.answer import closing as answer
from normbench.results.compare import heldout
from normbench.results.figures import NAMES, drawing
from normbench.results.figures.base.material import Options
from normbench.results.figures.histories import HISTORY_AXES
from normbench.results.report import inline
from normbench.results.report import page as report
from normbench.results.safe import clean
from normbench.results.store import runs, state
from normbench.results.store.errors import ResultsError

# The columns of `Comparison.frame`, by the metrics of the histories.
TRAIN_COLUMN_NAMES = {
    names.TRAIN_COST.key: "cost",
    names.TRAIN_MISCLASSIFICATIONS.key: "misclassifications",
}
TEST_COLUMN_NAMES = {
    metric.key: f"test_{column}"
    for metric, column in zip(
        (names.TEST_COST, names.TEST_MISCLASSIFICATIONS), TRAIN_COLUMN_NAMES.values()
    )
}


# Columns of counts, which are recorded as floating-point numbers.
COUNTS = (
    *("misclassified", "test misclassified", "steps", names.DIVERGED),
    *("misclassifications", "test_misclassifications"),
)


class Table(pd.DataFrame):  # type: ignore[misc]
    """A frame that prints every row and column, without pandas' truncation."""

    def __repr__(self) -> str:
        return str(self.to_string())

    def _repr_html_(self) -> str:
        """Return the table in HTML, which a notebook shows."""
        return str(self.to_html())


# Notebooks are dark if the system is, or if JupyterLab or VS Code has a dark theme.
DARK_SELECTORS = "body[data-jp-theme-light=false] .normbench svg, body.vscode-dark .normbench svg"
STYLE = f"""
.normbench p {{ max-width: 46rem; }}
.normbench svg {{ display: block; width: 100%; max-width: 60rem; height: auto; }}
.normbench th, .normbench td {{ text-align: left; white-space: nowrap; padding: .2em .8em; }}
.normbench .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
{DARK_SELECTORS} {{ {inline.DARK_BLEND} }}
@media (prefers-color-scheme: dark) {{
  body:not([data-jp-theme-light=true]):not(.vscode-light) .normbench svg {{ {inline.DARK_BLEND} }}
}}
"""


def _html(table: pd.DataFrame) -> str:
    """Return a table as HTML, with costs of four digits and numbers aligned to the right."""
    cells = tables.format_cells(table)
    for name in (name for name in tables.COST_COLUMNS if name in table):
        cells[name] = [f"{value:.4g}" if pd.notna(value) else "-" for value in table[name]]
    # Small shares in percent as in sentences; a large share, and a missing one, as formatted above.
    if tables.EXCESS_LEFT in table:
        excess_cells = zip(table[tables.EXCESS_LEFT], cells[tables.EXCESS_LEFT])
        cells[tables.EXCESS_LEFT] = [
            answer.format_share(share) if share < tables.LARGE_COST else cell
            for share, cell in excess_cells
        ]
    attributes = ["" if tables.holds_text(name, table) else ' class="number"' for name in cells]

    def row(tag: str, values: Sequence[str]) -> str:
        """Return a row of the table, with each value in an element `tag`."""
        pairs = zip(values, attributes)
        inside = "".join(f"<{tag}{look}>{escape(value)}</{tag}>" for value, look in pairs)
        return f"<tr>{inside}</tr>"

    body = "".join(row("td", values) for values in zip(*cells.values(), strict=True))
    return f"<table><thead>{row('th', list(cells))}</thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A comparison of schemes, from `normbench.compare` or from a store.

    In a notebook it displays its answer, the cause, its table and its histories. It has all methods
    of a pandas frame, which act on its `frame`.

    Attributes:
        sweep: The runs, as read from the store.
        notes: Sentences on the data, or on a comparison that is still running or was stopped.
    """

    sweep: runs.Sweep
    notes: Sequence[str] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Every run, with one row a run and iteration.

        Columns: normalizer (the scheme's label), step_size, iteration, cost (mean over points),
        misclassifications (NaN for regression), verdict, and for points held out test_cost and
        test_misclassifications. A diverged run has rows up to its last finite iteration.
        """
        steps = self.sweep.of_role(names.STEP)
        histories = self.sweep.histories(steps)
        # The metric has all digits of the step size; that of the histories is the tag with six.
        sizes = steps.set_index("run_id")[names.STEP_SIZE.column].astype(float)
        histories = histories.assign(
            step_size=histories["run_id"].map(sizes), normalizer=histories["label"]
        )
        histories = histories.rename(columns={**TRAIN_COLUMN_NAMES, **TEST_COLUMN_NAMES})
        columns = ["normalizer", "step_size", "iteration", *TRAIN_COLUMN_NAMES.values(), "verdict"]
        test_columns = [name for name in TEST_COLUMN_NAMES.values() if name in histories]
        return _with_integers(histories.reindex(columns=[*columns, *test_columns]))

    @cached_property
    def histories(self) -> pd.DataFrame:
        """The best run of each scheme, one row a run and iteration, as `results table` has it."""
        return tables.histories(self.sweep)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a scheme, at its best step size."""
        return Table(_with_integers(tables.summary(self.sweep)))

    @cached_property
    def cross_validation(self) -> pd.DataFrame:
        """The cross-validated error of each scheme; empty without `dataset.folds`."""
        return Table(heldout.cross_validated(self.sweep))

    @cached_property
    def sentence(self) -> str:
        """Which scheme is fastest, why, and how all of them end."""
        first, overall = headline.headline(self.sweep), answer.overall_ranking(self.sweep)
        if overall.startswith(first):  # without a race, the headline is the overall answer
            return overall
        # The cause is explained for a single experiment only.
        causes = [cause.cause(self.sweep, name) for name in self.sweep.experiments[:1]]
        sentences = [first, *causes * (len(self.sweep.experiments) == 1), *self._faults, overall]
        return " ".join(filter(None, sentences))

    def figure(
        self, name: str = "histories", experiment: str | None = None, by: str = "iterations"
    ) -> Figure:
        """Draw a figure.

        Args:
            name: One of the names on the page *Figures*, such as `melt`.
            experiment: The data set and cost, such as `iris-softmax`; the first by default.
            by: `iterations`, `passes`, `updates` or `seconds`, what histories are drawn over.

        Returns:
            A figure of matplotlib.

        Raises:
            ResultsError: There is no such figure, or nothing was recorded for it.
        """
        if name not in NAMES:
            raise ResultsError(f"figure {name}: there is none; there are {', '.join(NAMES)}")
        experiment = experiment or self.sweep.experiments[0]
        if experiment not in self.sweep.experiments:
            experiments = ", ".join(self.sweep.experiments)
            raise ResultsError(f"experiment {experiment}: is not here; there are {experiments}")
        if by not in HISTORY_AXES:
            raise ResultsError(f"by={by}: must be one of {', '.join(HISTORY_AXES)}")
        figure = drawing.figure(self.sweep, experiment, name, Options(by=by))
        if figure is None:
            raise ResultsError(f"figure {name}: nothing was recorded for it; it is {NAMES[name]}")
        return figure

    def report(self, file: str | Path) -> Path:
        """Write the report, one page that opens without a network.

        Args:
            file: Where it is written; a file of this name is replaced.

        Returns:
            The file.

        Raises:
            ResultsError: It cannot be written there.
        """
        path = Path(file)
        try:
            path.write_text(report.render(self.sweep), encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"report {file}: cannot be written ({error.strerror})") from error
        return path

    def __repr__(self) -> str:
        lines = [*self.notes, self.sentence, *answer.targets(self.sweep)]
        return "\n\n".join([*lines, tables.text(self.table)])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the answer, its cause, the table, and two figures."""
        several = len(self.sweep.experiments) > 1  # the cause is explained for one alone
        lines = [*self.notes, headline.headline(self.sweep)]
        lines += [] if several else [cause.cause(self.sweep, self.sweep.experiments[0])]
        lines += answer.targets(self.sweep)
        lines += self._faults
        title = ", ".join(self.sweep.experiments)
        paragraphs = "".join(f"<p>{escape(clean.sanitize(line))}</p>" for line in lines if line)
        melt, histories = self._pictures("melt"), self._pictures("histories")
        head = f"<style>{STYLE}</style><h4>{escape(clean.sanitize(title))}</h4>"
        return (
            f'<div class="normbench">{head}{paragraphs}{melt}{_html(self.table)}{histories}</div>'
        )

    @property
    def _faults(self) -> list[str]:
        """Sentences on the faults of the schemes, each once."""
        experiments = self.sweep.experiments
        lines = [line for name in experiments for line in scheme_faults.remarks(self.sweep, name)]
        return list(dict.fromkeys(lines))

    def _pictures(self, name: str) -> str:
        """Return the figure of a name for each experiment that has it, as SVG elements in a row."""
        with TemporaryDirectory() as folder:
            drawn = drawing.write(self.sweep, Path(folder), [name], file_formats=["svg"])
            files = list(chain.from_iterable(drawn.values()))
            texts = [file.read_text(encoding="utf-8") for file in files]
        # A page may hold several comparisons: only pictures that are equal share their ids.
        return "".join(inline.element(text, f"{name}-{_digest(text)}-") for text in texts)

    def __getattr__(self, name: str) -> Any:
        # Private names are refused first: notebooks ask for many, and `frame` reads every history.
        if name.startswith("_") or (not hasattr(pd.DataFrame, name) and name not in self.frame):
            raise AttributeError(f"a Comparison has no {name}; its table of all runs is .frame")
        return getattr(self.frame, name)

    def __getitem__(self, key: Any) -> Any:
        return self.frame[key]

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.frame)


def _with_integers(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose counts are integers; medians of counts may have halves, and stay."""
    whole = [
        name
        for name in COUNTS
        if name in table and (table[name].dropna() % 1 == 0).all() and table[name].notna().any()
    ]
    return table.astype({name: "Int64" if table[name].isna().any() else int for name in whole})


def _digest(text: str) -> str:
    """Return a short name of a text that other texts do not have."""
    return sha256(text.encode()).hexdigest()[:8]


def load(sweep: str = "last", folder: str | Path = names.HOME) -> Comparison:
    """Load a recorded comparison.

    Args:
        sweep: Its id, as `normbench results list` prints it; `last` for the last one that has
            results.
        folder: The folder of comparisons and their records; by default `outputs` in the working
            folder.

    Returns:
        The comparison, as `compare` returns it.

    Raises:
        ResultsError: There is no such comparison, or no job of it is recorded.
    """
    if not isinstance(sweep, str):  # such as a number
        kind = type(sweep).__name__
        example = "an id of `normbench results list`, or 'last'"
        raise ResultsError(f"sweep is {kind}: must be text; give {example}")
    return Comparison(*state.read(Path(folder), () if sweep == "last" else (sweep,)))
