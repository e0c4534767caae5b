"""The race of the schemes of one problem to a target: iterations, step sizes, and failures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import comparisons, evidence, passes, problems
from normbench.results.compare.merging import unmerged
from normbench.results.compare.reached import (
    compared_metric,
    compares_counts,
    finds_own_steps,
    finer_histories,
    goals,
    step_size,
    time_to_target,
    with_finer_minima,
)
from normbench.results.store.rows import as_rows, number_in, shared_value
from normbench.results.store.runs import Sweep

# The targets of a race, in order of preference: the first that a scheme meets is used.
RACE_TARGETS = ("1e-2", "1e-1")
LOST_VERDICTS = (names.FAILED, names.DIVERGED)  # verdicts of jobs without a best step size


@dataclass(frozen=True)
class Race:
    """The schemes of one problem and their iterations to a target.

    setting: the settings that identify the problem, as text. target: a share of the starting
    excess. iterations: by scheme, the median over splits, infinite where the target is not met.
    step_sizes: by scheme, its step size, NaN where splits differ. is_refined: by scheme, whether
    step sizes between those of the grid were tried. lost_verdicts: the verdict of each scheme all
    of whose jobs failed or diverged. uncertain_schemes: schemes that may miss the target by
    rounding alone. undecided_schemes: schemes that the splits do not show to be slower than the
    fastest, without those all of whose jobs failed. boundary_schemes: schemes that would be shown
    to be slower than another, if their own grids did not end too early. uncounted_schemes: schemes
    whose iterations to the target are not known, and which are not in the other fields.
    splits: the number of splits, or orders of batches; sample: which of the two. enough_splits:
    whether they could show a difference. by_count: whether misclassified points are counted
    instead of the cost. budget: the iterations of each job, None where they differ. unit: what
    an iteration is, such as a pass over the points. ends: where each scheme ended, from
    `lowest_ends`, if the least cost of one is not known, so that the target is a share of an excess
    over the lowest cost seen; else None. own_functions: whether each scheme minimizes another
    function, so that their costs cannot be compared.
    """

    setting: str
    target: str
    iterations: "pd.Series[float]"
    step_sizes: "pd.Series[float]"
    is_refined: "pd.Series[bool]"
    lost_verdicts: Mapping[str, str]
    uncertain_schemes: frozenset[str]
    undecided_schemes: Sequence[str]
    boundary_schemes: frozenset[str]
    uncounted_schemes: Sequence[str]
    splits: int
    sample: str
    enough_splits: bool
    by_count: bool
    budget: int | None
    unit: passes.Unit
    ends: pd.DataFrame | None = None
    own_functions: bool = False

    @property
    def lowest_schemes(self) -> list[str]:
        """The schemes that ended lowest, where the least cost is not known; else empty."""
        if self.ends is None or self.own_functions:
            return []
        return list(self.ends.index[self.ends["place"] == 0])

    @property
    def fewest_iterations(self) -> float:
        """The fewest iterations of a scheme; infinite where none meets the target."""
        return float(self.iterations.min())

    @property
    def fastest_schemes(self) -> list[str]:
        """The schemes with the fewest iterations; empty where none meets the target."""
        is_met = np.isfinite(self.fewest_iterations)
        return (
            list(self.iterations.index[self.iterations == self.fewest_iterations]) if is_met else []
        )

    @property
    def other_iterations(self) -> "pd.Series[float]":
        """The iterations of the other schemes, sorted."""
        return self.iterations.drop(self.fastest_schemes).sort_values(kind="stable")


def races(sweep: Sweep, experiment: str) -> list[Race]:
    """Return the races of an experiment, one a problem.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.

    Returns:
        The races. The target of each is the first of `RACE_TARGETS` that a scheme meets, or the
        last of them if none is met. Jobs without a descent have no race.
    """
    return sweep.get_or_compute(
        ("races", experiment), lambda: _compute_races(sweep.only(experiment))
    )


def race_target(sweep: Sweep) -> str:
    """Return the strictest target of a sweep's races, to which its tables count iterations.

    Of a sweep without a race, it is the first of `RACE_TARGETS`.
    """
    targets = {race.target for name in sweep.experiments for race in races(sweep, name)}
    return next((target for target in RACE_TARGETS if target in targets), RACE_TARGETS[0])


def _compute_races(experiment_sweep: Sweep) -> list[Race]:
    """Return the race of each problem, to the first of `RACE_TARGETS` that a scheme meets.

    If no scheme of a problem meets any, its race is to the last of them.

    Args:
        experiment_sweep: The part of the sweep that belongs to one experiment.

    Returns:
        One race a problem; none for a problem without a descent, or without a value in
        `time_to_target`.
    """
    jobs = problems.scheme_runs([unmerged(experiment_sweep)])
    if jobs.empty:
        return []
    table_for = cache(lambda target: time_to_target([experiment_sweep], target))
    experiment_races = []
    for setting, setting_jobs in jobs.groupby("setting", sort=False):
        for target in RACE_TARGETS:
            table = table_for(target)
            table = table[table["setting"] == setting]
            # A problem has no rows if none of its jobs has a value for this target.
            race = (
                _race(experiment_sweep, str(setting), target, table, setting_jobs)
                if len(table)
                else None
            )
            # A target that no scheme meets is used only if it is the last.
            if race and (race.fastest_schemes or target == RACE_TARGETS[-1]):
                experiment_races.append(race)
                break
    return experiment_races


def _race(
    experiment_sweep: Sweep, setting: str, target: str, table: pd.DataFrame, jobs: pd.DataFrame
) -> Race:
    """Return the race of one problem to a target.

    Args:
        experiment_sweep: The part of the sweep that belongs to the experiment.
        setting: The settings that identify the problem, as text.
        target: The target, one of `RACE_TARGETS`.
        table: The problem's rows of `time_to_target`, one a split and scheme.
        jobs: The problem's scheme runs, one a job.
    """
    by_scheme = table.groupby("scheme", sort=False)
    # Upper medians are values of a split: infinite iterations have no mean with others.
    iterations = by_scheme["value"].quantile(0.5, interpolation="higher")
    steps = by_scheme["step"].agg(lambda sizes: sizes.iloc[0] if sizes.nunique() == 1 else np.nan)
    # An optimizer that finds its own step sizes has none to report, and no grid to refine.
    has_own_steps = jobs.get(names.GRIDLESS.column, pd.Series("", jobs.index)) == "true"
    gridless = set(jobs.loc[has_own_steps, "scheme"])
    steps[steps.index.isin(gridless)] = np.nan
    verdicts = jobs.groupby("scheme", sort=False)["verdict"]
    # All jobs of the scheme failed, or all diverged.
    lost_verdicts = {
        str(scheme): scheme_verdicts.iloc[0]
        for scheme, scheme_verdicts in verdicts
        if scheme_verdicts.nunique() == 1 and scheme_verdicts.iloc[0] in LOST_VERDICTS
    }
    is_met = np.isfinite(iterations.min())
    fastest = list(iterations.index[iterations == iterations.min()]) if is_met else []
    splits = int(table["split"].nunique())
    # A single split cannot show how much iterations vary between splits.
    pairs = comparisons.compare_pairs(table) if splits > 1 else pd.DataFrame()
    candidates = (
        comparisons.indistinguishable_schemes(pairs, fastest) if len(pairs) and fastest else []
    )
    budget = shared_value(jobs, names.setting("iterations"))
    by_count = bool(compares_counts(jobs).any())
    guessed = jobs.get(names.MINIMUM_REACHED.column, pd.Series(dtype=str)) == "false"
    return Race(
        setting=setting,
        target=target,
        iterations=iterations,
        step_sizes=steps,
        # A scheme without a grid counts as refined: no reservation about a grid is made.
        is_refined=by_scheme["finer"].all() | iterations.index.isin(gridless),
        lost_verdicts=lost_verdicts,
        uncertain_schemes=_uncertain_schemes(experiment_sweep, target, jobs),
        undecided_schemes=[
            scheme for scheme in candidates if lost_verdicts.get(scheme) != names.FAILED
        ],
        boundary_schemes=comparisons.boundary_schemes(pairs) if len(pairs) else frozenset(),
        uncounted_schemes=[
            name for name in dict.fromkeys(jobs["scheme"]) if name not in iterations
        ],
        splits=splits,
        sample=problems.sample_name(jobs),
        enough_splits=splits >= evidence.fewest_values(max(len(pairs), 1)),
        by_count=by_count,
        budget=int(float(budget)) if budget else None,
        unit=passes.unit(jobs),
        ends=None if by_count or not guessed.any() else lowest_ends(experiment_sweep, jobs),
        own_functions=problems.minimize_different_functions(jobs),
    )


def lowest_ends(experiment_sweep: Sweep, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the lowest cost that each scheme ended at, at any step size that was recorded.

    Runs at step sizes between those of the grid count; runs that diverged or that rounding decides
    do not.

    Args:
        experiment_sweep: The part of the sweep that belongs to the experiment.
        jobs: The problem's scheme runs, one a job.

    Returns:
        One row a scheme that has such a run, the lowest first. `cost` is the cost at the end, and
        `start` that at the start; of several jobs the medians. `step` is the step size, NaN where
        jobs differ and where the optimizer finds its own. `place` is the place among the schemes,
        from 0; costs tie up to `names.TIED` of what the lowest one fell by, or `TIED_FLOAT32`.
    """
    is_float32 = jobs.get(names.setting("precision"), pd.Series(dtype=str)).eq("float32").any()
    tied_share = names.TIED_FLOAT32 if is_float32 else names.TIED
    sweep, key = unmerged(experiment_sweep), names.TRAIN_COST.key
    steps = sweep.of_role(names.STEP)
    steps = steps[steps["parent"].isin(jobs["run_id"]) & ~steps["verdict"].isin(names.UNRANKED)]
    histories = sweep.histories(steps, [key])
    costs_by_run = dict(list(histories.groupby("run_id")[key])) if key in histories else {}
    runs_by_job: dict[str, dict[float, np.ndarray]] = {}
    for step in as_rows(steps):
        if step["run_id"] in costs_by_run:
            costs = costs_by_run[step["run_id"]].to_numpy(dtype=float)
            runs_by_job.setdefault(step["parent"], {})[step_size(step)] = costs
    rows = []
    for job in as_rows(jobs):
        runs = {**finer_histories(sweep, job), **runs_by_job.get(job["run_id"], {})}
        if not runs:
            continue
        lowest = min(runs.values(), key=lambda costs: costs[-1])
        goal = lowest[-1] + tied_share * abs(lowest[0] - lowest[-1])
        # Of equal costs, that of the smallest step size.
        size = min(size for size, costs in runs.items() if costs[-1] <= goal)
        shown_size = np.nan if finds_own_steps(job) else size
        rows.append([job["scheme"], runs[size][-1], runs[size][0], shown_size])
    table = pd.DataFrame(rows, columns=["scheme", "cost", "start", "step"])
    by_scheme = table.groupby("scheme", sort=False)
    ends = by_scheme[["cost", "start"]].median()
    ends["step"] = by_scheme["step"].agg(
        lambda sizes: sizes.iloc[0] if sizes.nunique() == 1 else np.nan
    )
    lowest_cost = ends["cost"].min()
    scale = abs(ends["start"] - ends["cost"]).where(ends["cost"] == lowest_cost).max()
    places = evidence.tie_ranks(ends["cost"].to_numpy(dtype=float), tied_share * scale)
    return ends.assign(place=places).sort_values("place", kind="stable")


def _uncertain_schemes(experiment_sweep: Sweep, target: str, jobs: pd.DataFrame) -> frozenset[str]:
    """Return the schemes with a run that rounding decides and that ended at or below the target.

    Such a run does not count as one that meets the target, although it may do so.

    Args:
        experiment_sweep: The part of the sweep that belongs to the experiment.
        target: The target, one of `RACE_TARGETS`.
        jobs: The problem's scheme runs, one a job.
    """
    steps = unmerged(experiment_sweep).of_role(names.STEP)
    undecided_steps = steps[steps["verdict"] == names.BY_ROUNDING]
    jobs = with_finer_minima([unmerged(experiment_sweep)], jobs)
    jobs_by_id = {row["run_id"]: row for row in as_rows(jobs.join(goals(jobs, target)))}
    return frozenset(
        job["scheme"]
        for step in as_rows(undecided_steps)
        if (job := jobs_by_id.get(step["parent"])) is not None  # None: of another problem
        and number_in(step, names.final_metric(compared_metric(job)).column) <= job["goal"]
    )
