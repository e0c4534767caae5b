"""How schemes do on the points that were held out: a faster descent is not a better prediction."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import evidence, problems
from normbench.results.compare.comparisons import OPEN, not_told_apart
from normbench.results.compare.merging import members_of, merged, whole
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import said

BETTER, WORSE = "better", "worse"
CONCLUSIONS = {1: BETTER, -1: WORSE, 0: OPEN}
RISES = 0.05  # of what the test cost fell by: a larger rise from its lowest is said
COLUMNS = ("cost", "best cost", "at", "rate", "best rate", "train rate", "start", "ratio")
NEW_DATA = "on new data"  # the column of the conclusion by the corrected resampled t-test
CLAIMS = (
    "conclusion: for splits of this data set; on new data: for other data from the same source "
    "(t-test of Nadeau and Bengio 2003)"
)


def by_split(sweep: Sweep) -> pd.DataFrame:
    """Return one row a scheme and split: costs and errors of the test points, last and best.

    Each scheme stands at its best step size, the same for all splits; of several seeds a split
    has the median. cost, rate: at the end; best cost, best rate: the lowest over the iterations,
    and `at`: where the cost was lowest; rates are shares of misclassified points, NaN of real
    targets. start: the test cost at the start. ratio: test points per training point, of which
    noisy copies are none. Empty without test points. Not to be changed.
    """
    return sweep.once("by_split", lambda: _by_split(sweep))


def _by_split(sweep: Sweep) -> pd.DataFrame:
    runs, source = merged(sweep), whole(sweep)
    split_of = dict(problems.placed([source])[["run_id", "split"]].itertuples(index=False))
    rows = []
    for scheme in as_rows(runs.of_role(names.SCHEME)):
        if pd.isna(scheme.get(names.FINAL_TEST_COST.column, np.nan)):
            continue
        own = source.runs[source.runs["run_id"].isin(members_of(runs, scheme["run_id"]))]
        histories = source.histories(own)
        parents = {
            row["run_id"]: row["parent"] if row["role"] == names.STEP else row["run_id"]
            for row in as_rows(own)
        }
        for run_id, history in histories.groupby("run_id"):
            place = {"experiment": scheme["experiment"], "scheme": scheme["label"]}
            place["split"] = split_of[parents[run_id]]
            rows.append({**place, **_ends(history.set_index("iteration"), scheme)})
    keys = ["experiment", "scheme", "split"]
    table = pd.DataFrame(rows, columns=[*keys, *COLUMNS])
    return table.groupby(keys, sort=False, as_index=False).median()


def _ends(history: pd.DataFrame, scheme: dict[Any, Any]) -> dict[str, float]:
    cost = history[names.TEST_COST.key].dropna()
    found = {"cost": cost.iloc[-1], "best cost": cost.min(), "start": cost.iloc[0]}
    found["at"] = float(cost.idxmin())
    parts = {"rate": names.TEST_MISCLASSIFICATIONS, "train rate": names.TRAIN_MISCLASSIFICATIONS}
    for name, metric in parts.items():
        count = scheme.get("test_points" if name == "rate" else "train_points", np.nan)
        rate = history.get(metric.key, pd.Series(dtype=float)).dropna() / count
        found[name] = rate.iloc[-1] if len(rate) else np.nan
        found[f"best {name}"] = rate.min() if len(rate) else np.nan
    kind = scheme.get(names.setting("dataset.augment"))
    augmented = isinstance(kind, str) and kind != "None"
    copies = int(scheme[names.setting("dataset.augment_copies")]) if augmented else 0
    points = scheme.get("train_points", np.nan) / (1 + copies)
    found["ratio"] = scheme.get("test_points", np.nan) / points
    return {name: float(found[name]) for name in COLUMNS}


def cross_validated(sweep: Sweep, experiment: str | None = None) -> pd.DataFrame:
    """Return one row a scheme: error and cost of the points that cross-validation held out.

    error, %: the mean over its seeds; low, high: an interval of the median over seeds, from 6 seeds
    on, since the folds of one seed share their data; of real targets these are of the cost. Empty
    without cross-validation.
    """
    rows = []
    for scheme in as_rows(sweep.of_role(names.SCHEME, experiment)):
        if pd.isna(scheme.get(names.FOLDS_COST.column, np.nan)):
            continue
        error = scheme.get(names.FOLDS_ERROR.column, np.nan)
        metric, scale = (names.FOLDS_COST, 1) if pd.isna(error) else (names.FOLDS_ERROR, 100)
        values = np.array([*sweep.series(scheme["run_id"], names.of_seed(metric).key).values()])
        low, high = evidence.interval(scale * values)
        rows.append(
            {
                "experiment": scheme["experiment"],
                "scheme": scheme["label"],
                "folds": scheme.get(names.setting("dataset.folds")),
                "seeds": len(values),
                "error, %": 100 * error,
                "cost": scheme[names.FOLDS_COST.column],
                "low": float(low),
                "high": float(high),
            }
        )
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def summary(splits: pd.DataFrame) -> pd.DataFrame:
    """Return one row a scheme: the medians of `by_split` over the splits, errors in percent.

    `best` is the lowest over the iterations, chosen on the test points themselves: better than
    what one would get on others.
    """
    groups = splits.groupby(["experiment", "scheme"], sort=False)
    middles = groups[list(COLUMNS)].median()
    table = pd.DataFrame(
        {
            "splits": groups.size(),
            "test cost": middles["cost"],
            "best test cost": middles["best cost"],
            "at iteration": middles["at"],
            "train error, %": 100 * middles["train rate"],
            "test error, %": 100 * middles["rate"],
            "q1": 100 * groups["rate"].agg(pd.Series.quantile, 0.25),
            "q3": 100 * groups["rate"].agg(pd.Series.quantile, 0.75),
            "best test error, %": 100 * middles["best rate"],
        }
    ).reset_index()
    if table["splits"].max() == 1:
        table = table.drop(columns=["splits", "q1", "q3"])
    return table.dropna(axis="columns", how="all")


def measure(splits: pd.DataFrame) -> str:
    """Return what predictions are compared by: the error rate, or the cost of real targets."""
    return "cost" if splits["rate"].isna().any() else "rate"


def paired(splits: pd.DataFrame) -> pd.DataFrame:
    """Return one row a pair of schemes: who predicts better at the end, by splits.

    difference: the median of the second's test error (in percent of the points; of real targets
    the test cost) minus the first's, with its interval; conclusion: `better` or `worse` of the
    first, or `none`. The conclusions of a table hold together: see `evidence.judge`. They are about
    splits of this data set; `on new data` has those by `evidence.resampled_t_test`, of the mean
    difference on other data from the same source, by Holm's correction too.
    """
    rows, differences, p_values = [], [], []
    for experiment, part in splits.groupby("experiment", sort=False):
        wide = part.pivot(index="split", columns="scheme", values=measure(part))
        wide = wide[list(dict.fromkeys(part["scheme"]))] * (100 if measure(part) == "rate" else 1)
        for one, other in combinations(wide.columns, 2):
            less = (wide[other] - wide[one]).dropna().to_numpy()
            row = {"experiment": experiment, "scheme": one, "against": other}
            rows.append({**row, "splits": len(less), "wins": evidence.wins(less)})
            differences.append(less)
            p_values.append(evidence.resampled_t_test(less, part["ratio"].median()))
    columns = ["experiment", "scheme", "against", "splits", "wins", "difference", "low", "high"]
    columns += ["conclusion", NEW_DATA]
    if not rows:
        return pd.DataFrame(columns=columns)
    values = evidence.side_by_side(differences)
    judged = evidence.judge(values)
    rejected = np.array(p_values) <= evidence.holm(np.array(p_values))
    signs = np.sign([less.sum() for less in differences]) * rejected
    table = pd.DataFrame(rows).assign(
        difference=evidence.median(values),
        low=judged.low,
        high=judged.high,
        conclusion=[CONCLUSIONS[int(direction)] for direction in judged.direction],
        **{NEW_DATA: [CONCLUSIONS[int(sign)] for sign in signs]},
    )
    return table[columns]


def unit(splits: pd.DataFrame) -> str:
    """Return what the difference of a pair is, in words."""
    what = "test cost" if measure(splits) == "cost" else "percent of the test points misclassified"
    return f"difference: {what}, of `against` minus of `scheme`"


def predicts_best(splits: pd.DataFrame) -> list[str]:
    """Return the schemes with the lowest median error at the end; of real targets, cost."""
    by = splits.groupby("scheme", sort=False)[measure(splits)].median()
    return list(by.index[by <= by.min() + 1e-6 * abs(by.min())])


def told(splits: pd.DataFrame, schemes: Sequence[str], more: int = 0) -> str:
    """Return how schemes do on the test points, in words: the median over the splits.

    more: digits, where fewer do not tell it from another.
    """
    own = splits[splits["scheme"].isin(schemes)]
    by = measure(splits)
    middle = own.groupby("scheme")[by].median().iloc[0]
    if by == "cost":
        return f"test cost {middle:.{4 + more}g}"
    return f"{middle:.{1 + more}%} of the test points misclassified"


def best_and_faster(splits: pd.DataFrame, fast: Sequence[str]) -> str:
    """Return the sentence that the faster schemes predict best; empty where others do as well.

    Or where one of the faster schemes does not.
    """
    best = predicts_best(splits)
    if set(fast) != set(best) or set(best) == set(splits["scheme"]):
        return ""
    count = splits["split"].nunique()
    sure = not not_told_apart(paired(splits), best)
    how = "" if sure else f", though {count} {_splits(count)} too few to be sure"
    return said("faster_predicts_best", how=how).text


def worse_though_faster(splits: pd.DataFrame, fast: Sequence[str]) -> str:
    """Return the sentence that the faster schemes predict worse than others; empty otherwise."""
    best = predicts_best(splits)
    there = [name for name in fast if name in set(splits["scheme"])]
    if not there or set(there) & set(best):
        return ""
    count = splits["split"].nunique()
    sure = not set(there) & set(not_told_apart(paired(splits), best))
    how = f"on {count} splits" if sure else f"though {count} {_splits(count)} too few to be sure"
    faster = " = ".join(there)
    for more in range(8):  # digits, until they differ
        both = {"theirs": told(splits, there, more), "least": told(splits, best, more)}
        if both["theirs"] != both["least"]:
            break
    names_of = {"faster": faster, "best": " = ".join(best)}
    return said("faster_predicts_worse", how=how, **both, **names_of).text


def _splits(count: int) -> str:
    return "split is" if count == 1 else "splits are"


def rises(splits: pd.DataFrame) -> str:
    """Return the sentence that names the schemes whose test cost rises again; empty for none.

    Those of which it does on most of the splits, each judged by itself.
    """
    parts = [
        f"{name} ({told})"
        for name, own in splits.groupby("scheme", sort=False)
        if (told := _rise(own))
    ]
    return said("rises", schemes="; ".join(parts)).text if parts else ""


def _rise(own: pd.DataFrame) -> str:
    """Return how far a scheme's test cost rises from its lowest; empty where it mostly does not."""
    by = own["cost"] - own["best cost"]
    rising = by > RISES * (own["start"] - own["best cost"]).clip(lower=0)
    if 2 * rising.sum() <= len(own):
        return ""
    if len(own) > 1:
        return f"on {rising.sum()} of {len(own)} splits, by {by[rising].median():.3g}, their median"
    row = own.iloc[0]
    where = f"iteration {row['at']:.0f}" if row["at"] else "its start"
    return f"from {row['best cost']:.4g} at {where} to {row['cost']:.4g}"
