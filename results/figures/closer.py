"""The histories of a few schemes from iteration 1 on, on the scale of the costs after the start."""

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.figures import histories
from normbench.results.figures.base import material
from normbench.results.store.runs import Sweep

CLOSER_SCHEMES = names.setting("study.closer")


def make(sweep: Sweep, experiment: str, options: material.Options) -> Figure | None:
    """Return the figure of the histories of the normalizers in the setting `study.closer`.

    The histories begin at iteration 1, or later if `options.first` says so: without the start,
    the scale is that of the later costs. The figure is None if there is nothing to draw, as without
    this setting.
    """
    rows = material.schemes(sweep, experiment)
    # The setting is recorded as the text of a list, "['a', 'b']", and is the same for all schemes.
    settings = rows.get(CLOSER_SCHEMES, pd.Series(dtype=str)).dropna()
    normalizers = [
        normalizer
        for setting in settings[:1]
        for normalizer in setting.strip("[]").replace("'", "").split(", ")
    ]
    runs = rows[rows["normalizer"].isin(normalizers)]
    first = max(options.first, 1)  # 0 would be the start
    title = f"{material.title(experiment, rows)}, from iteration {first}"
    return histories.draw_runs(sweep, experiment, runs, title, replace(options, first=first))
