"""Splits and seeds of a scheme as one row: medians and quartiles over them, and how many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import problems
from normbench.results.compare.reached import excess_left, step_size
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import HISTORIES, Sweep
from normbench.verdicts.best_step import best_step

SHARES = (0.25, 0.75)
MOST = 40  # schemes that figures tell apart; a panel each of hundreds would take minutes
REPEATS = "repeats"  # the column that says what a row's medians are over, such as `4 splits`
# Step sizes whose median is one of the grid, an order statistic, and the tag of a lower bound.
OF_THE_GRID = {
    names.LARGEST_CONVERGENT.column: names.CENSORED.column,
    names.LARGEST_FALLING.column: names.CENSORED_FALLING.column,
    names.CRITICAL.column: names.CENSORED_CRITICAL.column,
}


@dataclass(frozen=True, kw_only=True)
class Merged(Sweep):
    """A sweep with one run a scheme, which stands for the runs of all its splits and seeds.

    source: the sweep with all of them. members: their ids, by the id of the run that stands for
    them. Histories are medians with quartiles; arrays and series are of the first split alone.
    """

    source: Sweep = field(repr=False)
    members: Mapping[str, Sequence[str]] = field(repr=False)

    def histories(self, runs: pd.DataFrame, metrics: Sequence[str] = HISTORIES) -> pd.DataFrame:
        """Return one row a run and iteration, as `Sweep.histories`, over each run's members."""
        parts = []
        every = self.source.runs.set_index("run_id", drop=False)
        for row in as_rows(runs):
            own = every.loc[members_of(self, row["run_id"])]
            found = self.source.histories(own, metrics)
            if len(found):
                parts.append(over_members(found, row, len(own)))
        return pd.concat(parts, ignore_index=True) if parts else super().histories(runs.iloc[:0])

    def only(self, experiment: str) -> "Merged":
        """Return the part of the sweep that belongs to one experiment, as `Sweep.only`."""
        own = self.runs["experiment"] == experiment
        if own.all():
            return self
        return self.once(
            ("only", experiment),
            lambda: replace(self, runs=self.runs[own], source=self.source.only(experiment)),
        )


def merged(sweep: Sweep) -> Sweep:
    """Return the sweep with one run a scheme and setting; itself where it has no more."""
    return sweep.once("merged", lambda: _merged(sweep))


def _merged(sweep: Sweep) -> Sweep:
    if isinstance(sweep, Merged) or sweep.of_role(names.SCHEME).empty:
        return sweep
    jobs = problems.placed([sweep])
    if not jobs.duplicated(problems.SCHEME).any():
        return _without_reruns(sweep, jobs)
    jobs = _different(jobs, problems.results([sweep], jobs))
    jobs = jobs[(jobs["verdict"] != names.FAILED) | ~_has_run(jobs)]
    jobs["group"] = jobs.groupby(problems.SCHEME, sort=False).ngroup()
    steps = sweep.of_role(names.STEP)
    steps = steps[steps["parent"].isin(jobs["run_id"])]
    schemes = _schemes(jobs)
    grid, standing = _grid(steps, jobs, schemes)
    schemes = _standing_in(schemes, standing)
    others = sweep.runs[~sweep.runs["role"].isin([names.SCHEME, names.STEP])]
    runs = pd.concat([others, schemes, grid], ignore_index=True)
    members = {
        run_id: list(ids)
        for rows in (grid, schemes)  # of a scheme, those of the step size that stands for it
        for run_id, ids in zip(rows["run_id"], rows["members"])
    }
    runs = runs.drop(columns=["members", "group"]).copy()  # its columns side by side again
    place = (sweep.store, sweep.sweep_id, runs, sweep.client)
    return Merged(*place, source=sweep, members=members)


def _without_reruns(sweep: Sweep, jobs: pd.DataFrame) -> Sweep:
    """Return a sweep with the placed jobs alone; itself where no job was run twice."""
    schemes = sweep.of_role(names.SCHEME)["run_id"]
    earlier = set(schemes) - set(jobs["run_id"])
    if not earlier:
        return sweep
    ids = sweep.runs[["run_id", "parent"]]
    return replace(sweep, runs=sweep.runs[~ids.isin(earlier).any(axis=1)])


def whole(sweep: Sweep) -> Sweep:
    """Return a sweep with every run of it."""
    return sweep.source if isinstance(sweep, Merged) else sweep


def every_job(sweep: Sweep, experiment: str | None = None) -> pd.DataFrame:
    """Return the scheme runs of all splits and seeds, each under the label of its merged row."""
    runs = merged(sweep)
    if not isinstance(runs, Merged):
        return runs.of_role(names.SCHEME, experiment)
    jobs = problems.placed([runs.source])
    jobs = jobs.assign(label=_labels(jobs))
    return jobs if experiment is None else jobs[jobs["experiment"] == experiment]


def members_of(sweep: Sweep, run_id: str) -> list[str]:
    """Return the ids of the runs that a run stands for: of a sweep that is not merged, its own."""
    return list(sweep.members.get(run_id, [run_id])) if isinstance(sweep, Merged) else [run_id]


def _different(jobs: pd.DataFrame, came_to: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return jobs without copies: those of one scheme and split that came to equal results."""
    kept: list[Any] = []
    for _, same in jobs.groupby([*problems.SCHEME, "split"], sort=False):
        own: list[Mapping[str, float]] = []
        for place, run_id in same["run_id"].items():
            if not any(problems.equal(came_to[run_id], other) for other in own):
                own.append(came_to[run_id])
                kept.append(place)
    return jobs.loc[sorted(kept)].copy()


def _has_run(jobs: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by job, whether a job of its scheme did not fail."""
    keys = [jobs[column] for column in problems.SCHEME]
    return (jobs["verdict"] != names.FAILED).groupby(keys).transform("any")


def _schemes(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return a row a group of jobs: a scheme on a problem."""
    found = _together(jobs, "group")
    return found.assign(
        label=_labels(found), **{REPEATS: [repeats(same) for _, same in jobs.groupby("group")]}
    )


def _labels(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return the labels of schemes on their problems."""
    return rows[["scheme", "setting"]].apply(lambda row: ", ".join(filter(None, row)), axis=1)


def repeats(jobs: pd.DataFrame) -> str:
    """Return what jobs of one scheme repeat, in words: `4 splits`, `3 seeds`; empty for one."""
    splits = jobs["split"].nunique()
    seeds = -(-len(jobs) // max(splits, 1))
    words = [f"{splits} splits" if splits > 1 else "", f"{seeds} seeds" if seeds > 1 else ""]
    return " x ".join(word for word in words if word)


def repeated_over(rows: pd.DataFrame) -> list[str]:
    """Return what the medians of merged rows are over, each once, in order."""
    return sorted(set(rows.get(REPEATS, pd.Series(dtype=str)).dropna()) - {""})


def _grid(
    steps: pd.DataFrame, jobs: pd.DataFrame, schemes: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row a scheme and step size, and of these the rows that stand for their scheme."""
    if steps.empty:
        return steps.assign(group=0, members=None), steps.assign(group=0, members=None)
    about = jobs.set_index("run_id")
    group = steps["parent"].map(about["group"])
    rows = as_rows(steps)
    sizes = pd.Series([step_size(row) for row in rows], index=steps.index)
    place = pd.Series(list(zip(group, sizes)), index=steps.index)
    found = _together(steps.assign(place=place), "place")
    found[["group", "size"]] = found["place"].tolist()
    own = schemes.set_index("group")
    sources = (("label", "label"), (REPEATS, REPEATS), ("parent", "run_id"))
    found = _with(found, {column: found["group"].map(own[source]) for column, source in sources})
    found = _with(found, _verdicts(steps, place, found))
    parents = about.to_dict("index")
    left = pd.Series([excess_left(row, parents[row["parent"]]) for row in rows], index=steps.index)
    best = {
        number: _standing(same, sizes, left, jobs[jobs["group"] == number])
        for number, same in steps.groupby(group)
    }
    standing = found["size"] == found["group"].map(best)
    found[names.BEST.column] = standing.map({True: "true", False: "false"})
    found = found.drop(columns=["place", "size"])
    return found, found[standing]


def _standing_in(schemes: pd.DataFrame, standing: pd.DataFrame) -> pd.DataFrame:
    """Return scheme rows with what the step size that stands for each came to."""
    families = tuple(names.METRICS + family for family in (names.TRAIN, names.TEST))
    finals = [names.final(metric).column for metric in names.HISTORIES]
    words = [names.STEP_TAG.column, names.VERDICT.column, "verdict", "reason", "members"]
    columns = [
        column for column in standing if column.startswith(families) or column in (*finals, *words)
    ]
    own = standing.set_index("group")[columns]
    found = schemes.set_index("group")
    there = pd.Series(found.index.isin(own.index), index=found.index)
    nothing = pd.Series(None, index=found.index, dtype=object)
    new = {
        column: own[column].reindex(found.index).where(there, found.get(column, nothing))
        for column in columns
    }
    return _with(found, new).reset_index()


def _with(rows: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows with other columns, put in at once: one by one they would scatter the table."""
    kept = rows.drop(columns=[name for name in columns if name in rows])
    return pd.concat([kept, pd.DataFrame(dict(columns), index=rows.index)], axis=1).copy()


def _together(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return groups of runs as one each: the first, medians of numbers, and words that all share.

    Of a parameter that varies, all values; quartiles beside the final values of histories; of
    largest step sizes one of the grid. members: the ids of the runs of each.
    """
    groups = rows.groupby(by, sort=False)
    found = rows.drop_duplicates(by).set_index(by)
    found = _with(found, {"members": groups["run_id"].agg(list)})
    if not rows[by].duplicated().any():
        return found.reset_index()
    numbers = [name for name in rows if name.startswith(names.METRICS)]
    finals = {metric: names.final(metric).column for metric in names.HISTORIES}
    new: dict[str, Any] = dict(groups[numbers].median().items())
    new |= {
        names.quartile(metric, part).column: groups[final].quantile(share)
        for metric, final in finals.items()
        for part, share in zip(names.QUARTILES, SHARES)
        if final in rows
    }
    words = [name for name in rows if name.startswith((names.PARAMS, names.TAGS))]
    varied = groups[words].nunique(dropna=False) > 1
    for name in varied.columns[varied.any()]:
        joined = groups[name].agg(lambda part: ", ".join(dict.fromkeys(part.dropna())))
        of_all = joined if name.startswith(names.PARAMS) else None
        new[name] = found[name].astype(object).where(~varied[name], of_all)
    for name in (name for name in OF_THE_GRID if name in rows):
        middles, bounds = zip(*(_on_the_grid(same, name) for _, same in groups))
        new |= {
            name: pd.Series(middles, found.index),
            OF_THE_GRID[name]: pd.Series(bounds, found.index),
        }
    return _with(found, new).reset_index()


def _on_the_grid(rows: pd.DataFrame, name: str) -> tuple[float, str]:
    """Return the smallest step size of some splits, and whether it may be larger.

    It is what holds on every split, as the verdict is the worst: NaN where one split has none.
    """
    if rows[name].isna().any():
        return float("nan"), "false"
    least = float(rows[name].min())
    tag = OF_THE_GRID[name]
    of_least = rows.loc[rows[name] == least, tag] if tag in rows else pd.Series(dtype=str)
    return least, str(bool(len(of_least)) and bool((of_least == "true").all())).lower()


def _verdicts(
    steps: pd.DataFrame, place: "pd.Series[Any]", found: pd.DataFrame
) -> dict[str, list[str]]:
    """Return the verdict on the runs of each step size, the worst, and how many had which."""
    order = list(names.VERDICTS)
    words, reasons = [], []
    each = dict(list(steps["verdict"].groupby(place)))
    for own, over in zip(found["place"], found[REPEATS]):
        verdicts = list(each[own])
        counts = {word: verdicts.count(word) for word in order if word in verdicts}
        shown = ", ".join(f"{count} {word}" for word, count in counts.items())
        words.append(max(verdicts, key=order.index))
        reasons.append(f"of {over}: {shown}" if len(counts) > 1 else "")
    return {"verdict": words, names.VERDICT.column: words, "reason": reasons}


def _standing(
    steps: pd.DataFrame, sizes: "pd.Series[float]", left: "pd.Series[float]", jobs: pd.DataFrame
) -> float:
    """Return the step size that stands for a scheme on all its splits: the shown or the best."""
    first = jobs.iloc[0]
    if first.get(names.STEP_CHOSEN.column) == "true":
        shown = step_size(first)  # perhaps of six digits
        return float(min(sizes[steps.index], key=lambda size: abs(size - shown)))
    held = pd.to_numeric(steps.get(names.TO_LOWEST.column, pd.Series(np.nan, index=steps.index)))
    by = sizes[steps.index]
    each = held.fillna(np.inf).groupby(by)
    unreached = each.agg(lambda part: np.isinf(part).sum()) + len(jobs) - each.size()
    upper = each.quantile(0.75, interpolation="higher")
    ends = left[steps.index].groupby(by).median()
    number = best_step([*upper.index], upper, unreached, ends)
    assert number is not None
    return float(upper.index[number])


def over_members(found: pd.DataFrame, row: Mapping[Any, Any], count: int) -> pd.DataFrame:
    """Return the histories of several runs as one: medians, with quartiles over the runs.

    It ends where the first of them does.
    """
    if count == 1:
        return found.assign(run_id=row["run_id"], label=row["label"], verdict=row["verdict"])
    by = found.groupby("iteration")
    there = by.size() == count
    metrics = [metric.key for metric in names.HISTORIES if metric.key in found]
    table = by[metrics].median()
    for metric in names.HISTORIES:
        for part, share in zip(names.QUARTILES, SHARES) if metric.key in found else ():
            table[names.quartile(metric, part).key] = by[metric.key].quantile(share)
    table = table[there].reset_index()
    about = {**row, "step_size": row.get(names.STEP_TAG.column)}
    first = ("run_id", "experiment", "normalizer", "label", "step_size", "verdict")
    for place, name in enumerate(first):
        table.insert(place, name, about[name])
    return table


def crowded(sweep: Sweep, experiment: str) -> bool:
    """Return whether an experiment has more schemes than its figures can tell apart."""
    rows = merged(sweep).of_role(names.SCHEME, experiment)
    return int((rows["verdict"] != names.FAILED).sum()) > MOST
