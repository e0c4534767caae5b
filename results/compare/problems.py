"""What two schemes can be compared on: problems, and the splits of the data that repeat them.

A problem is one data set, cost and setting. A split of it is one training part: what was drawn
from one data set shares its data, whatever the start. Equal results are one result.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

import pandas as pd

from normbench import names
from normbench.results.store.rows import as_rows, shared_value
from normbench.results.store.run_labels import as_set
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import said
from normbench.settings import SEEDS, makes_problem

OWN = "each scheme's own"
HYDRA_RANGE = re.compile(
    r"range\((?:start=)?(-?\d+)(?:,(?:stop=)?(-?\d+))?(?:,(?:step=)?(-?[1-9]\d*))?\)"
)
EQUAL = 1e-9  # relative: the results of equal jobs differ by rounding
# What tells two results apart: of a scheme, and at each step size, whose costs may all be 0.
MARKS = (names.LIPSCHITZ, names.LIPSCHITZ_START, names.MINIMUM)
ENDS = (
    *map(names.final, names.HISTORIES),
    *(names.reached(target) for target in names.TARGETS),
)
PLACE = ["experiment", "setting"]  # the columns that make a problem
SCHEME = [*PLACE, "scheme"]  # and a scheme on it
Results = dict[str, list[Mapping[str, float]]]  # by scheme, of each of its jobs
# What to do about a seed that changes nothing.
REMEDIES = {
    "seed": "; start=normal draws starts by it, and dataset.split_seed draws splits",
    "dataset.split_seed": "; dataset.test_fraction=0.25 holds points out by it",
    "dataset.seed": "",
}


def scheme_runs(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Return the scheme runs of jobs with a descent, `placed`."""
    runs = placed(sweeps)
    return runs[~without_descent(runs)].reset_index(drop=True)


def placed(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Return scheme runs, each with its place in the comparison.

    Columns beside the runs' own: sweep (its number), setting, draw (the seeds), split (a number;
    equal ones share their data, or all of their results), scheme (its name with the options that
    vary). Of a job that was run twice the last counts.
    """
    if len(sweeps) == 1:
        return sweeps[0].once("placed", lambda: _placed(sweeps)).copy()
    return _placed(sweeps)


def _placed(sweeps: Sequence[Sweep]) -> pd.DataFrame:
    parts = [one.of_role(names.SCHEME).assign(sweep=number) for number, one in enumerate(sweeps)]
    runs = pd.concat(parts, ignore_index=True)
    made = problems(runs, "sweep")
    known_as = scheme_names(runs)
    varied = [{name: one[name] for name in one if name not in SEEDS} for one in made]
    columns = {
        "setting": [", ".join(f"{name}={one[name]}" for name in one) for one in varied],
        "draw": [", ".join(draws) for draws in _draws(runs)],
        "scheme": [known_as[run_id] for run_id in runs["run_id"]],
    }
    # Words also where there are no runs: tables are merged by them.
    runs = runs.assign(
        **{name: pd.Series(own, runs.index, object) for name, own in columns.items()}
    )
    runs = runs.drop_duplicates([*SCHEME, "draw"], keep="last", ignore_index=True)
    return runs.assign(split=_splits(runs, results(sweeps, runs)))


def without_descent(schemes: pd.DataFrame) -> "pd.Series[bool]":
    """Return, by run, whether it only fits its scheme and records: `iterations=0`."""
    asked = schemes.get(names.setting("iterations"), pd.Series("", index=schemes.index))
    return asked.astype(str) == "0"


def starts_of(scheme: Mapping[Any, Any]) -> int:
    """Return how many starts a scheme run's job had."""
    try:
        return int(scheme.get(names.setting("starts")) or 1)
    except ValueError:
        return 1


def own_functions(schemes: pd.DataFrame) -> bool:
    """Return whether a penalty makes each scheme minimize a function of its own.

    `cost.l2` on the transformed weights does; with `cost.l2_in=features` all have the same.
    """
    none = pd.Series(dtype=str)
    penalty = pd.to_numeric(schemes.get(names.setting("cost.l2"), none), errors="coerce")
    where = schemes.get(names.setting("cost.l2_in"), none).reindex(penalty.index)
    return bool(((penalty > 0) & (where != "features")).any())


def problems(schemes: pd.DataFrame, sweep: str | None = None) -> list[dict[str, str]]:
    """Return, by run, what makes its problem: the settings that were varied, by their names.

    schemes: scheme runs; sweep: the column that tells of which sweep each is, where they are of
    several. A setting that a scheme had several values of in one experiment makes other problems;
    one that each scheme of a sweep has to itself (`${per_scheme:...}`) is the same for them all.
    One that each optimizer has to itself comes with the optimizer.
    """
    schemes = as_set(schemes)
    found: dict[Any, dict[str, str]] = {place: {} for place in schemes.index}
    varied = [
        name
        for name in schemes.columns
        if name.startswith(names.PARAMS) and makes_problem(name.removeprefix(names.PARAMS))
    ]
    for _, rows in schemes.groupby("experiment", sort=False):
        for name in varied:
            if rows[name].nunique(dropna=False) == 1 or _one_each(rows, name):
                continue
            choice = name.rpartition(".")[0]  # such as the optimizer's, whose options come with it
            named = [by for by in (choice, names.setting("optimizer")) if by in rows and by != name]
            if any(_one_each(rows, name, by) for by in named):
                continue
            for _, part in rows.groupby(sweep) if sweep else [(None, rows)]:
                own = part[name].nunique(dropna=False) > 1 and _one_each(part, name)
                for place, value in part[name].dropna().items():
                    found[place][name.removeprefix(names.PARAMS)] = (
                        OWN if own else names.typed(value)
                    )
    return list(found.values())


def _one_each(schemes: pd.DataFrame, name: str, by: str = "normalizer") -> bool:
    """Return whether each normalizer, or each option of a choice, has one value of a setting."""
    return bool((schemes.groupby(by)[name].nunique(dropna=False) <= 1).all())


def scheme_names(schemes: pd.DataFrame) -> dict[str, str]:
    """Return, by run, the normalizer's name, with its own options where they were varied."""
    own_option = names.setting("normalizer.")
    options = [name for name in schemes.columns if name.startswith(own_option)]
    found = {}
    for _, same in schemes.groupby("normalizer"):
        own = [name for name in options if same[name].nunique(dropna=False) > 1]
        for row in as_rows(same):
            extra = [f"{name.removeprefix(own_option)}={names.typed(row[name])}" for name in own]
            found[row["run_id"]] = ", ".join([names.fitted(row), *extra])
    return found


def _draws(schemes: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return, by run, the values of its seeds."""
    return [
        tuple(str(row.get(names.setting(name), "0")) for name in SEEDS) for row in as_rows(schemes)
    ]


def results(sweeps: Sequence[Sweep], schemes: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return, by scheme run, what it came to: `MARKS`, and `ENDS` at each step size."""
    found = {row["run_id"]: _numbers(row, MARKS) for row in as_rows(schemes)}
    for sweep in sweeps:
        steps = sweep.of_role(names.STEP)
        if steps.empty:
            continue
        wanted = [names.STEP_TAG.column, *(metric.column for metric in ENDS)]
        columns = [column for column in wanted if column in steps]
        for row in as_rows(steps[["parent", *columns]]):
            if row["parent"] in found:
                ends = _numbers(row, ENDS)
                size = row[names.STEP_TAG.column]
                found[row["parent"]] |= {f"{size} {key}": value for key, value in ends.items()}
    return found


def _numbers(row: Mapping[Any, Any], metrics: Sequence[names.Metric]) -> dict[str, float]:
    known = {metric.key: row.get(metric.column) for metric in metrics}
    return {key: value for key, value in known.items() if value is not None and value == value}


def equal(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether two runs came to the same, to rounding; nothing is no result."""
    return (
        bool(one)
        and one.keys() == other.keys()
        and all(isclose(one[key], other[key], rel_tol=EQUAL) for key in one)
    )


def _splits(schemes: pd.DataFrame, came_to: Mapping[str, Mapping[str, float]]) -> list[int]:
    """Return, by run, the number of its split within its problem.

    One split is what has the same data (its fingerprint is recorded; a job that failed has none,
    and is of the split that the others of its seeds are of), or the same results throughout.
    """
    rows = as_rows(schemes)
    seeds = [
        (row["experiment"], row["setting"], *draws[:2]) for row, draws in zip(rows, _draws(schemes))
    ]
    data = {key: row["data"] for key, row in zip(seeds, rows) if row.get("data")}
    labels = [(*key[:2], data.get(key, key[2:])) for key in seeds]
    own: dict[Any, Results] = {}
    for row, label in zip(rows, labels):
        found = own.setdefault(label, {})
        found.setdefault(row["scheme"], []).append(came_to.get(row["run_id"], {}))
    numbers: dict[Any, int] = {}
    for label, mine in own.items():
        before = [other for other in numbers if other[:2] == label[:2]]
        same = (numbers[other] for other in before if _copies(mine, own[other]))
        numbers[label] = next(same, len(before))
    return [numbers[label] for label in labels]


def _copies(one: Results, other: Results) -> bool:
    """Return whether two splits have the same results under every scheme."""
    return one.keys() == other.keys() and all(
        equal(mine, yours) for name in one for mine in one[name] for yours in other[name]
    )


def idle_seeds(sweeps: Sequence[Sweep]) -> list[str]:
    """Return a sentence for each seed that was varied and changed nothing.

    That is where the jobs that differ in it alone came to equal results, or where a command that
    varies it has one run for all its values: a job that draws nothing by it is not run again.
    """
    schemes = scheme_runs(sweeps)
    came_to = results(sweeps, schemes)
    rows = list(zip(as_rows(schemes), _draws(schemes)))
    counts = _asked_in_vain(sweeps)
    for place, name in enumerate(SEEDS):
        groups: dict[Any, list[str]] = {}
        for row, draws in rows:
            key = (*(row[column] for column in SCHEME), draws[:place], draws[place + 1 :])
            groups.setdefault(key, []).append(row["run_id"])
        several = [ids for ids in groups.values() if len(ids) > 1]
        if several and all(equal(came_to[ids[0]], came_to[one]) for ids in several for one in ids):
            counts[name] = max(map(len, several))
    return [
        said("idle_seed", name=name, count=counts[name], remedy=REMEDIES[name]).text
        for name in SEEDS
        if name in counts
    ]


def _asked_in_vain(sweeps: Sequence[Sweep]) -> dict[str, int]:
    """Return how many values of each seed a command gives whose runs all have one value."""
    found = {}
    for sweep in sweeps:
        runs = sweep.of_role(names.SCHEME)
        for word in shlex.split(sweep.command) if len(sweep.experiments) else ():
            name, _, values = word.lstrip("+").rstrip(";").partition("=")
            column = names.setting(name)
            several = _values_asked(values) if name in SEEDS else 1
            if several > 1 and column in runs and runs[column].nunique() == 1:
                found[name] = several
    return found


def _values_asked(text: str) -> int:
    """Return how many values a word of Hydra's gives a seed: `0,1,2` or `range(0,3)`."""
    bounds = HYDRA_RANGE.fullmatch(text.replace(" ", ""))
    return len(range(*map(int, filter(None, bounds.groups())))) if bounds else text.count(",") + 1


def budget(schemes: pd.DataFrame) -> str:
    """Return what the descents of scheme runs had: `in 100 iterations of gradient descent`.

    What differs between them is left out; empty where there was no descent.
    """
    optimizer = shared_value(schemes, names.OPTIMIZER.column, "gradient_descent").replace("_", " ")
    asked = shared_value(schemes, names.setting("iterations"))
    iterations = int(float(asked)) if asked else None  # a user may have written 1e3
    if iterations == 0:
        return ""
    count = "1 iteration" if iterations == 1 else f"{iterations} iterations"
    parts = ["" if iterations is None else count, optimizer]
    within = " of ".join(part for part in parts if part)
    return f"in {within}" if within else ""
