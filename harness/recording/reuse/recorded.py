"""One scheme's run as a store has it, with its step sizes' runs and its arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.store.runs import Sweep

Series = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Recorded:
    """A scheme's run as a store has it: one of a sweep's, or of those that a query found."""

    found: Sweep
    run_id: str

    @cached_property
    def row(self) -> Mapping[str, Any]:
        """What is known of the run: its tags, its parameters, the last value of each metric."""
        return {str(key): value for key, value in self._scheme.iloc[0].dropna().items()}

    @cached_property
    def arrays(self) -> dict[str, dict[str, NDArray[Any]]]:
        """All its arrays, by the words that they are recorded under."""
        words = str(self.row.get(names.RECORDED.column, "")).split(",")
        label = self.row["label"]
        return {word: self.found.arrays(self._scheme, word)[label] for word in words if word}

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Its step sizes' runs, by their step size."""
        every = self.found.of_role(names.STEP)
        own = every[every["parent"] == self.run_id]
        return own.set_index(own[names.STEP_SIZE.column].to_numpy(dtype=float))

    @property
    def shown(self) -> float | None:
        """The step size that stands for the scheme.

        None where none stayed finite, or where its run was deleted.
        """
        if names.BEST.column not in self.steps:
            return None
        best = self.steps.index[self.steps[names.BEST.column] == "true"]
        return float(best[0]) if len(best) else None

    @property
    def params(self) -> dict[str, str]:
        """Its parameters, as text."""
        known = {key: value for key, value in self.row.items() if key.startswith(names.PARAMS)}
        return {key.removeprefix(names.PARAMS): value for key, value in known.items()}

    def series(self, key: str) -> Series:
        """Return a metric's values by what MLflow's step counts."""
        values = self.found.series(self.run_id, key)
        return np.array([*values]), np.array([*values.values()])

    @property
    def _scheme(self) -> pd.DataFrame:
        schemes = self.found.of_role(names.SCHEME)
        return schemes[schemes["run_id"] == self.run_id]
