"""The recorded run of a scheme, with the runs of its step sizes and its arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.store.runs import Sweep

Series = tuple[NDArray[np.int64], NDArray[np.float64]]  # the steps of MLflow, and the values there


@dataclass(frozen=True)
class RecordedRun:
    """The recorded run of a scheme.

    Attributes:
        sweep: Loaded runs that contain it and the runs of its step sizes: those of a sweep, or
            those that a query found.
        run_id: The id of the run of the scheme.
    """

    sweep: Sweep
    run_id: str

    @cached_property
    def row(self) -> Mapping[str, Any]:
        """The tags, parameters and last values of metrics of the run, by the columns of `sweep`.

        Columns that only other runs have are left out.
        """
        return {str(key): value for key, value in self._scheme.iloc[0].dropna().items()}

    @cached_property
    def arrays(self) -> dict[str, dict[str, NDArray[Any]]]:
        """The arrays of the scheme: `arrays[name][key]`.

        `name` is a word of the setting `record`, or `names.DESCENT_ARRAYS`. Empty where the run has
        recorded no arrays.
        """
        array_names = str(self.row.get(names.RECORDED.column, "")).split(",")
        label = self.row["label"]
        return {name: self.sweep.arrays(self._scheme, name)[label] for name in array_names if name}

    @cached_property
    def steps(self) -> pd.DataFrame:
        """The rows of the runs of its step sizes, with the step size as the index."""
        sweep_steps = self.sweep.of_role(names.STEP)
        scheme_steps = sweep_steps[sweep_steps["parent"] == self.run_id]
        return scheme_steps.set_index(scheme_steps[names.STEP_SIZE.column].to_numpy(dtype=float))

    @property
    def shown_step_size(self) -> float | None:
        """The step size that represents the scheme.

        It is None where no step size stayed finite, or where its run was deleted.
        """
        if names.BEST.column not in self.steps:
            return None
        best = self.steps.index[self.steps[names.BEST.column] == "true"]
        return float(best[0]) if len(best) else None

    @property
    def params(self) -> dict[str, str]:
        """Its parameters, as text."""
        params = {key: value for key, value in self.row.items() if key.startswith(names.PARAMS)}
        return {key.removeprefix(names.PARAMS): value for key, value in params.items()}

    def series(self, key: str) -> Series:
        """Return two arrays: the steps of a metric in MLflow, and its values at these steps."""
        values = self.sweep.series(self.run_id, key)
        return np.array([*values]), np.array([*values.values()])

    @property
    def _scheme(self) -> pd.DataFrame:
        """The row of the scheme."""
        schemes = self.sweep.of_role(names.SCHEME)
        return schemes[schemes["run_id"] == self.run_id]
