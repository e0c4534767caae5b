"""How schemes race to a target on one problem: iterations, step sizes, and who did not arrive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import comparisons, evidence, problems
from normbench.results.compare.merging import whole
from normbench.results.compare.reached import compared, counts, reached
from normbench.results.store.rows import as_rows, number_in, shared_value
from normbench.results.store.runs import Sweep

# The targets by which the fastest descent is chosen, the first that is met.
ASKED = ("1e-2", "1e-1")
LOST = (names.FAILED, names.DIVERGED)  # verdicts of jobs that have no best step size


@dataclass(frozen=True)
class Race:
    """The schemes of one problem on their way to a target, as a share of the start's excess.

    setting: what makes the problem, in words. iterations: of each scheme, the median over splits,
    infinite for those that do not arrive. steps: the step size of each, NaN where there is none.
    refined: whether finer step sizes than the grid's were tried. lost: the verdict of schemes all
    of whose jobs failed or diverged. uncertain: schemes that rounding may have kept from arriving.
    open: those that the splits do not show to be behind the fastest. counted: whether points are
    counted, and not their cost. budget: the iterations that each had, None where they differ.
    """

    setting: str
    target: str
    iterations: "pd.Series[float]"
    steps: "pd.Series[float]"
    refined: "pd.Series[bool]"
    lost: Mapping[str, str]
    uncertain: frozenset[str]
    open: Sequence[str]
    splits: int
    enough: bool
    counted: bool
    budget: int | None

    @property
    def least(self) -> float:
        """The fewest iterations; infinite where no scheme arrives."""
        return float(self.iterations.min())

    @property
    def fastest(self) -> list[str]:
        """The schemes of fewest iterations; empty where none arrives."""
        arrived = np.isfinite(self.least)
        return list(self.iterations.index[self.iterations == self.least]) if arrived else []

    @property
    def others(self) -> "pd.Series[float]":
        """The iterations of all other schemes, the fewest first."""
        return self.iterations.drop(self.fastest).sort_values(kind="stable")


def races(sweep: Sweep, experiment: str) -> list[Race]:
    """Return the races of an experiment, one a problem, to the first of `ASKED` that is met.

    To the last of them where none is. None of jobs without a descent.
    """
    return sweep.get_or_compute(("races", experiment), lambda: _races(sweep.only(experiment)))


def _races(part: Sweep) -> list[Race]:
    """Return `races` of a part of a sweep that is one experiment's."""
    jobs = problems.scheme_runs([whole(part)])
    if jobs.empty:
        return []
    tables = {target: reached([part], target) for target in ASKED}
    every = []
    for setting, own in jobs.groupby("setting", sort=False):
        for target in ASKED:
            table = tables[target]
            table = table[table["setting"] == setting]
            race = _race(part, str(setting), target, table, own) if len(table) else None
            if race and (race.fastest or target == ASKED[-1]):
                every.append(race)
                break
    return every


def _race(part: Sweep, setting: str, target: str, table: pd.DataFrame, jobs: pd.DataFrame) -> Race:
    by_scheme = table.groupby("scheme", sort=False)
    iterations = by_scheme["value"].quantile(0.5, interpolation="higher")
    steps = by_scheme["step"].agg(lambda own: own.iloc[0] if own.nunique() == 1 else np.nan)
    own_steps = jobs.get(names.GRIDLESS.column, pd.Series("", jobs.index)) == "true"
    gridless = set(jobs.loc[own_steps, "scheme"])
    steps[steps.index.isin(gridless)] = np.nan
    verdicts = jobs.groupby("scheme", sort=False)["verdict"]
    lost = {
        str(scheme): own.iloc[0]
        for scheme, own in verdicts
        if own.nunique() == 1 and own.iloc[0] in LOST
    }
    arrived = np.isfinite(iterations.min())
    best = list(iterations.index[iterations == iterations.min()]) if arrived else []
    splits = int(table["split"].nunique())
    pairs = comparisons.paired(table) if splits > 1 else pd.DataFrame()
    # On one split the count is what it is; another split would have another.
    open_ = comparisons.not_told_apart(pairs, best) if len(pairs) and best else []
    budget = shared_value(jobs, names.setting("iterations"))
    return Race(
        setting=setting,
        target=target,
        iterations=iterations,
        steps=steps,
        refined=by_scheme["finer"].all() | iterations.index.isin(gridless),
        lost=lost,
        uncertain=_uncertain(part, target, jobs),
        open=open_,
        splits=splits,
        enough=splits >= evidence.fewest(max(len(pairs), 1)),
        counted=bool(counts(jobs).any()),
        budget=int(float(budget)) if budget else None,
    )


def _uncertain(part: Sweep, target: str, jobs: pd.DataFrame) -> frozenset[str]:
    """Return schemes of which a run that rounding decides ended at the target or below."""
    steps = whole(part).of_role(names.STEP)
    chaotic = steps[steps["verdict"] == names.BY_ROUNDING]
    goals = {row["run_id"]: row for row in as_rows(jobs)}
    return frozenset(
        goals[step["parent"]]["scheme"]
        for step in as_rows(chaotic)
        if step["parent"] in goals and _ends_below(step, goals[step["parent"]], target)
    )


def _ends_below(step: Mapping[Any, Any], job: Mapping[Any, Any], target: str) -> bool:
    final = number_in(step, names.final(compared(job)).column)
    return bool(final <= number_in(job, names.target(target).column))
