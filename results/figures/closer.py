"""The histories of a few schemes from iteration 1 on: what the start's cost hides."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.figures import histories
from normbench.results.figures.base import material
from normbench.results.store.runs import Sweep

CLOSER = names.setting("study.closer")


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the best runs of the schemes named in `study.closer`, without the start."""
    rows = material.schemes(sweep, experiment)
    named = rows.get(CLOSER, pd.Series(dtype=str)).dropna()
    wanted = [word for text in named[:1] for word in text.strip("[]").replace("'", "").split(", ")]
    runs = rows[rows["normalizer"].isin(wanted)]
    first = max(options.first, 1)
    title = f"{material.title(experiment, rows)}, from iteration {first}"
    return histories.of_runs(sweep, experiment, runs, title, replace(options, first=first))
