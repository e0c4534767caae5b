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
from normbench.results.answer import closing as answer
from normbench.results.answer import tables
from normbench.results.compare import heldout
from normbench.results.figures import NAMES, drawing
from normbench.results.report import inline
from normbench.results.report import page as report
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


@dataclass(frozen=True, repr=False)
class Comparison:
    """Schemes, compared: of `normbench.compare`, or as a store has them.

    In a notebook it shows its sentence, why that is so, its table and its histories. What a pandas
    frame can do, it does with its `frame`.
    """

    sweep: runs.Sweep
    notes: Sequence[str] = ()  # that the comparison still runs, or was stopped, in sentences

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Every run: one row a run and iteration.

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
        """The best run of each scheme: one row a run and iteration, as `results table` has it."""
        return tables.histories(self.sweep)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a scheme, at its best step size; it shows whole."""
        return Table(tables.summary(self.sweep))

    @cached_property
    def cross_validation(self) -> pd.DataFrame:
        """One row a scheme: what `folds` found of points held out; empty without them."""
        return Table(heldout.cross_validated(self.sweep))

    @cached_property
    def sentence(self) -> str:
        """The answer: which scheme is lowest, at which step size, and what else the numbers say."""
        return answer.overall(self.sweep)

    def figure(self, name: str = "histories", experiment: str | None = None) -> Figure:
        """Return a figure by its name, such as `melt`; experiment: where there are several.

        Raises ResultsError for a figure that there is not, or of which nothing was recorded.
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
        """Write the report, one page that stands alone; return its file."""
        place = Path(file)
        try:
            place.write_text(report.render(self.sweep), encoding="utf-8")
        except OSError as error:
            raise ResultsError(f"report {file}: cannot be written ({error.strerror})") from error
        return place

    def __repr__(self) -> str:
        return "\n\n".join([*self.notes, self.sentence, tables.text(self.table)])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the sentence, why, the table, and the histories."""
        rows = pd.DataFrame(tables.cells(self.table)).to_html(index=False, border=0)
        words = "".join(f"<p>{escape(line)}</p>" for line in (*self.notes, self.sentence))
        why, histories = self._pictures("melt"), self._pictures("histories")
        return f"{words}{why}{rows}{histories}"

    def _pictures(self, name: str) -> str:
        """Return a figure of every experiment that has it, as SVG elements."""
        with TemporaryDirectory() as folder:
            drawn = drawing.write(self.sweep, Path(folder), [name], kinds=["svg"])
            files = list(chain.from_iterable(drawn.values()))
            texts = [(file.stem, file.read_text(encoding="utf-8")) for file in files]
        return "".join(inline.element(text, f"{stem}-") for stem, text in texts)

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
    """Return what was recorded, as `compare` returns it.

    sweep: its id, or `last` for the last one that has results. Raises ResultsError where there is
    no such store or sweep, and where no job of it is recorded.
    """
    for name, value, example in (
        ("sweep", sweep, "an id of `normbench results list`, or 'last'"),
        ("store", store, "a URI, such as 'sqlite:///mlflow.db'"),
    ):
        if not isinstance(value, str):
            raise ResultsError(f"{name} is {type(value).__name__}: must be text; give {example}")
    return Comparison(*state.read(store, () if sweep == "last" else (sweep,)))
