"""What an older store has instead of the arrays of a descent: the histories of its step runs."""

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.measures import FOLLOWS
from normbench.measures.contract import BEST, RULES
from normbench.recording.reuse.recorded import Recorded

# What was found of a scheme, and what it follows from: the runs do not say so themselves.
OF_THEORY = (
    *(names.BASIS, names.PLAIN, names.NOTE, names.AT_INFINITY),
    *(names.MINIMUM_SOURCE, names.MINIMUM_REACHED),
)
OF_THE_BEST = {
    *(names.LIPSCHITZ_BEST.key, names.THRESHOLD_BEST.key, names.SHARPNESS.key),
    *("path", "contours", "fit", "sharpness"),
}
OF_A_SEARCH: tuple[names.Metric | names.Tag, ...] = (
    *(names.CRITICAL, names.CRITICAL_UPPER, names.CRITICAL_DESCENTS),
    names.CENSORED_CRITICAL,
)


def kept(run: Recorded) -> dict[str, NDArray[np.generic]] | None:
    """Return the arrays of a descent from its step runs: of stores that have no such arrays.

    None where they are not the histories themselves, but medians over several starts.
    """
    if run.params.get("starts", "1") != "1" or run.steps.empty:
        return None
    length = int(run.params["iterations"]) + 1
    every = {metric.key: _stacked(run, metric.key, length) for metric in names.HISTORIES}
    known = {key: part for key, part in every.items() if np.isfinite(part).any()}
    costs = every[names.TRAIN_COST.key]
    diverged = (run.steps[names.VERDICT.column] == names.DIVERGED).to_numpy()[:, None]
    stops = np.where(diverged, np.isfinite(costs).sum(axis=2), -1)
    least = run.row[names.MINIMUM.column]
    name, share = next(iter(names.TARGETS.items()))
    exact = run.row[names.BASIS.column].startswith(names.EXACT)
    tie = exact and run.row[names.PLAIN.column] == "true"
    return {
        "step_sizes": run.steps.index.to_numpy(),
        **known,
        "diverged_at": stops,
        "minimum": np.array(np.nanmin(costs, initial=least)),
        "reference": np.array(least + (run.row[names.target(name).column] - least) / share),
        "tie": np.array(run.row[names.THRESHOLD.column] if tie else np.nan),
        "epsilon": np.array(np.finfo(run.params.get("precision", "float64")).eps),
        "fit_seconds": np.array(run.row[names.FIT_SECONDS.column]),
        "seconds_a_step": np.array(run.row.get(names.SECONDS_A_STEP.column, np.nan)),
        FOLLOWS: np.array([*_former(run).items()]),
    }


def _stacked(run: Recorded, key: str, length: int) -> NDArray[np.float64]:
    """Return a history of every step size, `(S, 1, length)`, NaN where there is none."""
    made = np.full((len(run.steps), 1, length), np.nan)
    for number, run_id in enumerate(run.steps["run_id"]):
        values = run.found.series(run_id, key)
        made[number, 0, [*values]] = [*values.values()]
    return made


def _former(run: Recorded) -> dict[str, str]:
    """Return the names of an older run's findings, and what each follows from."""
    theory = f"{names.METRICS}{names.THEORY}"
    of_steps = {
        key for key in run.steps.dropna(axis="columns", how="all") if key.startswith(theory)
    }
    own = [key for key in run.row if key.startswith(theory) and key not in of_steps]
    tags = [tag for tag in OF_THEORY if tag.column in run.row]
    found = [key.removeprefix(names.METRICS) for key in own] + [tag.key for tag in tags]
    words = [word for word in run.arrays if word in OF_THE_BEST]
    searched = [entry.key for entry in OF_A_SEARCH if entry.column in run.row]
    return {
        **{name: BEST if name in OF_THE_BEST else "" for name in (*found, *words)},
        **dict.fromkeys(searched, RULES),
    }
