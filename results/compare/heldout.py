"""Compare the predictions of schemes on held-out points: test points and cross-validation."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import evidence, passes, problems
from normbench.results.compare.comparisons import NOT_JUDGED, OPEN, indistinguishable_schemes
from normbench.results.compare.merging import members_of, merged, unmerged
from normbench.results.compare.reached import excess_left, over_lowest_seen
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import agree, join_phrases, make_sentence

BETTER, WORSE = "better", "worse"
PREDICTION_CONCLUSIONS = {1: BETTER, -1: WORSE, 0: OPEN}
RISE_TOLERANCE = 0.05  # share of the fall of the test cost; a larger rise is reported
SPLIT_COLUMNS = ("cost", "best cost", "at", "rate", "best rate", "train rate", "start", "ratio")
ARRIVED_SHARE = names.TARGETS["1e-1"]  # a descent that leaves more of its excess has not arrived
ONE_SPLIT = "on one split, which cannot show a difference"
NEW_DATA = "on new data"  # the column of the conclusion by the corrected resampled t-test
CLAIMS = (
    "conclusion: for splits of this data set; on new data: for other data from the same source "
    "(t-test of Nadeau and Bengio 2003); not judged: a descent of the pair has not arrived, since "
    f"it leaves more than {100 * ARRIVED_SHARE:g} % of the excess cost"
)


def by_split(sweep: Sweep) -> pd.DataFrame:
    """Return costs and errors on the test points, by scheme and split.

    Each scheme is at its best step size, the same for all splits. The table is cached: callers must
    not modify it.

    Args:
        sweep: The sweep, merged or not.

    Returns:
        One row a scheme and split, the median over its seeds; empty without test points. `cost`
        and `rate` are the values at the end; `best cost` and `best rate` are the lowest over the
        iterations, and `at` is the iteration, or the pass, of the lowest cost. `train rate` is that
        of the training points at the end. `start` is the test cost at the start. Rates are shares
        of misclassified points, NaN for real targets. `ratio` is the number of test points per
        training point, without noisy copies. `arrived` is whether all descents of the scheme on
        that split have arrived, see `_has_arrived`.
    """
    return sweep.get_or_compute("by_split", lambda: _compute_by_split(sweep))


def _compute_by_split(sweep: Sweep) -> pd.DataFrame:
    """Return the table of `by_split`, with the median over the seeds of a scheme on each split."""
    runs, source = merged(sweep), unmerged(sweep)
    splits_by_id = dict(
        problems.scheme_runs_with_groups([source])[["run_id", "split"]].itertuples(index=False)
    )
    jobs = {row["run_id"]: row for row in as_rows(over_lowest_seen(source))}
    rows = []
    for scheme in as_rows(runs.of_role(names.SCHEME)):
        if pd.isna(scheme.get(names.FINAL_TEST_COST.column, np.nan)):
            continue  # no points were held out, or the job failed
        # A merged scheme has step runs as members, at the step size that represents it; any other
        # scheme has its own run, whose history is that of its best step size.
        member_runs = source.runs[source.runs["run_id"].isin(members_of(runs, scheme["run_id"]))]
        histories = source.histories(member_runs)
        members = {row["run_id"]: row for row in as_rows(member_runs)}
        for run_id, history in histories.groupby("run_id"):
            row_key = {"experiment": scheme["experiment"], "scheme": scheme["label"]}
            run = members[str(run_id)]
            job = jobs[run["parent"] if run["role"] == names.STEP else run["run_id"]]
            row_key |= {"split": splits_by_id[job["run_id"]], "arrived": _has_arrived(run, job)}
            rows.append({**row_key, **_costs_and_rates(history.set_index("iteration"), scheme)})
    keys = ["experiment", "scheme", "split"]
    table = pd.DataFrame(rows, columns=[*keys, "arrived", *SPLIT_COLUMNS])
    groups = table.groupby(keys, sort=False)
    medians = groups[list(SPLIT_COLUMNS)].median()
    return medians.assign(arrived=groups["arrived"].all()).reset_index()


def _has_arrived(run: dict[Any, Any], job: dict[Any, Any]) -> bool:
    """Return whether a descent has arrived: it leaves at most `ARRIVED_SHARE` of the excess.

    Where the least cost is not known, it also has to be at rest, since the lowest cost that was
    seen is then its own.

    Args:
        run: The step run, or the scheme run itself.
        job: The scheme run of its job.
    """
    is_known = job.get(names.MINIMUM_REACHED.column) != "false"
    # A share that is not known is NaN, for which the comparison is false.
    return excess_left(run, job) <= ARRIVED_SHARE + names.TIED and (
        is_known or run["verdict"] == names.CONVERGED
    )


def _costs_and_rates(history: pd.DataFrame, scheme: dict[Any, Any]) -> dict[str, float]:
    """Return the values of `SPLIT_COLUMNS` of one run, see `by_split`.

    Args:
        history: The metrics of the run, indexed by record.
        scheme: The scheme run, with the numbers of points and its settings.
    """
    cost = history[names.TEST_COST.key].dropna()  # without iterations whose cost is not recorded
    columns = {"cost": cost.iloc[-1], "best cost": cost.min(), "start": cost.iloc[0]}
    columns["at"] = float(cost.idxmin()) / passes.records_per_pass(scheme)
    test_points, train_points = (
        scheme.get(column, np.nan) for column in ("test_points", "train_points")
    )
    for name, metric, point_count in (
        ("rate", names.TEST_MISCLASSIFICATIONS, test_points),
        ("train rate", names.TRAIN_MISCLASSIFICATIONS, train_points),
    ):
        # Real targets have no misclassified points: an empty series, and NaN below.
        rate = history.get(metric.key, pd.Series(dtype=float)).dropna() / point_count
        columns[name] = rate.iloc[-1] if len(rate) else np.nan
        columns[f"best {name}"] = rate.min() if len(rate) else np.nan
    augmentation = scheme.get(names.setting("dataset.augment"))
    is_augmented = isinstance(augmentation, str) and augmentation != "None"
    copies = int(scheme[names.setting("dataset.augment_copies")]) if is_augmented else 0
    # The training points include the copies that augment them.
    columns["ratio"] = test_points / (train_points / (1 + copies))
    return {name: float(columns[name]) for name in SPLIT_COLUMNS}


def cross_validated(sweep: Sweep, experiment: str | None = None) -> pd.DataFrame:
    """Return the cross-validated error and cost of each scheme.

    Args:
        sweep: The sweep.
        experiment: The experiment; None for all of them.

    Returns:
        One row a scheme; empty without cross-validation. `error, %` is the mean over the seeds.
        `low` and `high` are a confidence interval of the median over the seeds, from 6 seeds on;
        seeds are the unit because the folds of one seed share their data. For real targets the
        interval is of the cost, which is in its own column. `folds` and `seeds` are the numbers of
        folds of a seed and of seeds.
    """
    rows = []
    for scheme in as_rows(sweep.of_role(names.SCHEME, experiment)):
        if pd.isna(scheme.get(names.FOLDS_COST.column, np.nan)):
            continue
        # Real targets have no error: their interval is of the cost.
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


def summary(splits: pd.DataFrame, unit: passes.Unit = passes.ITERATION_UNIT) -> pd.DataFrame:
    """Return one row a scheme: the medians of `by_split` over the splits, errors in percent.

    The columns `best ...` are the lowest over the iterations. The iteration is chosen on the test
    points themselves, so these are lower than on new points. Columns that are empty for all schemes
    are left out, and those that describe several splits where there is one.

    Args:
        splits: One row a scheme and split, from `by_split`.
        unit: What an iteration is, see `passes.unit`.
    """
    groups = splits.groupby(["experiment", "scheme"], sort=False)
    middles = groups[list(SPLIT_COLUMNS)].median()
    table = pd.DataFrame(
        {
            "splits": groups.size(),
            "test cost": middles["cost"],
            "best test cost": middles["best cost"],
            f"at {unit.one}": middles["at"],
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


def prediction_column(splits: pd.DataFrame) -> str:
    """Return the column that compares predictions: `rate`, or `cost` for real targets.

    A single scheme or split without a rate is enough for `cost`, so that all are compared by one.
    """
    return "cost" if splits["rate"].isna().any() else "rate"


def compare_pairs(splits: pd.DataFrame) -> pd.DataFrame:
    """Return which scheme predicts better at the end: one row a pair of schemes.

    The conclusions of a table hold together, see `evidence.judge`.

    Args:
        splits: One row a scheme and split, from `by_split`.

    Returns:
        A table of pairs. `splits` is the number of splits that both schemes were run on, `wins` the
        share of them on which the first scheme is better; a tie is half a win. `difference` is
        the median over the splits of the test error (in percent of the points; for real targets
        the test cost) of the second scheme minus that of the first, with the confidence interval
        `low` to `high`. `conclusion` is `better` or `worse` for the first scheme, or `none`, about
        splits of this data set. `on new data` is the conclusion about other data from the same
        source, by `evidence.resampled_t_test` of the mean difference and Holm's correction. Both
        are `not judged` where a descent of the pair has not arrived on some split that they share.
    """
    rows, differences, p_values, judged = [], [], [], []  # one entry a pair
    for experiment, experiment_rows in splits.groupby("experiment", sort=False):
        errors_by_scheme = experiment_rows.pivot(
            index="split", columns="scheme", values=prediction_column(experiment_rows)
        )
        errors_by_scheme = errors_by_scheme[list(dict.fromkeys(experiment_rows["scheme"]))] * (
            100 if prediction_column(experiment_rows) == "rate" else 1
        )
        arrived = experiment_rows.pivot(index="split", columns="scheme", values="arrived")
        for first, second in combinations(errors_by_scheme.columns, 2):
            # Only splits that both schemes were run on.
            split_differences = (
                (errors_by_scheme[second] - errors_by_scheme[first]).dropna().to_numpy()
            )
            row = {"experiment": experiment, "scheme": first, "against": second}
            rows.append(
                {
                    **row,
                    "splits": len(split_differences),
                    "wins": evidence.win_share(split_differences),
                }
            )
            differences.append(split_differences)
            pair_splits = errors_by_scheme[[first, second]].dropna().index
            judged.append(bool(arrived.loc[pair_splits, [first, second]].all(axis=None)))
            p_values.append(
                evidence.resampled_t_test(split_differences, experiment_rows["ratio"].median())
            )
    columns = ["experiment", "scheme", "against", "splits", "wins", "difference", "low", "high"]
    columns += ["conclusion", NEW_DATA]
    if not rows:
        return pd.DataFrame(columns=columns)
    values = evidence.pad_pairs(differences)
    table = pd.DataFrame(rows).assign(difference=evidence.median(values), low=np.nan, high=np.nan)
    table = table.assign(**{"conclusion": NOT_JUDGED, NEW_DATA: NOT_JUDGED})
    if any(judged):
        conclusions = evidence.judge(values[judged])
        # On new data: the sign of the mean difference where the t-test rejects, else 0.
        levels = evidence.holm(np.array(p_values)[judged])
        is_rejected = np.array(p_values)[judged] <= levels
        signs = np.sign(np.nansum(values[judged], axis=1)) * is_rejected
        table.loc[judged, ["low", "high"]] = np.column_stack([conclusions.low, conclusions.high])
        for column, directions in (("conclusion", conclusions.direction), (NEW_DATA, signs)):
            table.loc[judged, column] = [PREDICTION_CONCLUSIONS[int(d)] for d in directions]
    return table[columns]


def difference_caption(splits: pd.DataFrame) -> str:
    """Return what the column `difference` of `compare_pairs` measures, for the table's caption.

    Args:
        splits: The argument of `compare_pairs`.
    """
    quantities = {"cost": "test cost", "rate": "percent of the test points misclassified"}
    experiments_by_quantity: dict[str, list[str]] = {}
    for experiment, rows in splits.groupby("experiment", sort=False):
        quantity = quantities[prediction_column(rows)]
        experiments_by_quantity.setdefault(quantity, []).append(str(experiment))
    quantity_text = " or ".join(
        f"{quantity} ({', '.join(experiments)})" if len(experiments_by_quantity) > 1 else quantity
        for quantity, experiments in experiments_by_quantity.items()
    )
    return f"difference: {quantity_text}, of `against` minus of `scheme`"


def best_predictors(splits: pd.DataFrame) -> list[str]:
    """Return the schemes with the lowest median error at the end; for real targets, cost.

    Args:
        splits: One row a scheme and split of one experiment, from `by_split`.
    """
    # Equal up to rounding counts as best, so the list has at least one scheme.
    medians = splits.groupby("scheme", sort=False)[prediction_column(splits)].median()
    rounding = 1e-6 * abs(medians.min())  # medians that differ by less are equal
    return list(medians.index[medians <= medians.min() + rounding])


def predictions_text(splits: pd.DataFrame, schemes: Sequence[str], extra_digits: int = 0) -> str:
    """Return the median test error, or test cost, of equally good schemes in words.

    Args:
        splits: One row a scheme and split, from `by_split`.
        schemes: The labels of schemes with equal medians.
        extra_digits: Digits beyond the usual ones, to distinguish close medians.

    Returns:
        A phrase such as `5.0% of the test points misclassified`.
    """
    scheme_splits = splits[splits["scheme"].isin(schemes)]
    column = prediction_column(splits)
    median = scheme_splits.groupby("scheme")[column].median().iloc[0]
    if column == "cost":
        return f"test cost {median:.{4 + extra_digits}g}"
    return f"{median:.{1 + extra_digits}%} of the test points misclassified"


def best_and_faster(splits: pd.DataFrame, fastest_schemes: Sequence[str]) -> str:
    """Return the sentence that the fastest schemes, and no others, predict best.

    Args:
        splits: One row a scheme and split, from `by_split`.
        fastest_schemes: The labels of the fastest schemes.

    Returns:
        The sentence, with a doubt where the splits are too few; empty where it does not hold, holds
        of all schemes, or is not judged.
    """
    best, pairs = best_predictors(splits), compare_pairs(splits)
    # If all schemes predict equally well, the fastest ones are not better.
    if set(fastest_schemes) != set(best) or set(best) == set(splits["scheme"]):
        return ""
    if indistinguishable_schemes(pairs, best, [NOT_JUDGED]):
        return ""
    doubt = _doubt(splits) if indistinguishable_schemes(pairs, best) else ""
    how = f", {doubt}" if doubt else ""
    return make_sentence("faster_predicts_best", how=how, **_agree_schemes(best)).text


def worse_though_faster(splits: pd.DataFrame, fastest_schemes: Sequence[str]) -> str:
    """Return the sentence that the fastest schemes predict worse than others.

    Args:
        splits: One row a scheme and split, from `by_split`.
        fastest_schemes: The labels of the fastest schemes.

    Returns:
        The sentence, with as many digits as distinguish the errors; empty where one of these
        schemes predicts best, none was tested, or one is not judged.
    """
    best, pairs = best_predictors(splits), compare_pairs(splits)
    tested_schemes = [name for name in fastest_schemes if name in set(splits["scheme"])]
    if not tested_schemes or set(tested_schemes) & set(best):
        return ""
    if set(tested_schemes) & set(indistinguishable_schemes(pairs, best, [NOT_JUDGED])):
        return ""
    # Otherwise each of the fastest schemes is shown to differ from every best one.
    is_open = set(tested_schemes) & set(indistinguishable_schemes(pairs, best))
    doubt = _doubt(splits) if is_open else f"on {splits['split'].nunique()} splits"
    for extra_digits in range(8):  # until the texts differ
        least = predictions_text(splits, best, extra_digits)
        schemes_by_text: dict[str, list[str]] = {}  # schemes that are equally fast
        for scheme in tested_schemes:
            text = predictions_text(splits, [scheme], extra_digits)
            schemes_by_text.setdefault(text, []).append(scheme)
        if least not in schemes_by_text:
            break
    theirs = [f"{text} under {' = '.join(schemes)}" for text, schemes in schemes_by_text.items()]
    fields = {"how": doubt, "least": least, "best": " = ".join(best)}
    fields |= {"theirs": join_phrases(theirs), **_agree_schemes(tested_schemes)}
    return make_sentence("faster_predicts_worse", **fields).text


def _agree_schemes(schemes: Sequence[str]) -> dict[str, str]:
    """Return the words of a sentence on the schemes that descend faster, in their number."""
    return agree(len(schemes), "schemes", "descend", "predict")


def _doubt(splits: pd.DataFrame) -> str:
    """Return the clause that the splits are too few to show a difference of predictions.

    Args:
        splits: One row a scheme and split, from `by_split`.
    """
    count = splits["split"].nunique()
    return ONE_SPLIT if count == 1 else f"though {count} splits are too few to be sure"


def describe_rises(splits: pd.DataFrame, unit: passes.Unit = passes.ITERATION_UNIT) -> str:
    """Return the sentence that names the schemes whose test cost rises again; empty for none.

    A scheme is named where its test cost rises on more than half of the splits.

    Args:
        splits: One row a scheme and split, from `by_split`.
        unit: What an iteration is, see `passes.unit`.
    """
    scheme_rises = [
        f"{name} ({rise})"
        for name, scheme_splits in splits.groupby("scheme", sort=False)
        if (rise := _describe_rise(scheme_splits, unit))
    ]
    return make_sentence("rises", schemes="; ".join(scheme_rises)).text if scheme_rises else ""


def _describe_rise(scheme_splits: pd.DataFrame, unit: passes.Unit) -> str:
    """Return in words how much a scheme's test cost rises from its minimum to the end.

    The text is empty unless the cost rises on more than half of the splits. A rise counts if it is
    more than `RISE_TOLERANCE` of the fall from the start to the minimum.

    Args:
        scheme_splits: The scheme's rows of `by_split`, one a split.
        unit: What an iteration is, see `passes.unit`.
    """
    # By split: from the lowest test cost to the last, and from the start to the lowest.
    rise = scheme_splits["cost"] - scheme_splits["best cost"]
    fall = (scheme_splits["start"] - scheme_splits["best cost"]).clip(lower=0)
    is_rising = rise > RISE_TOLERANCE * fall
    if 2 * is_rising.sum() <= len(scheme_splits):
        return ""
    if len(scheme_splits) > 1:
        count, median = f"{is_rising.sum()} of {len(scheme_splits)}", rise[is_rising].median()
        return f"on {count} splits, by {median:.3g}, their median"
    row = scheme_splits.iloc[0]  # the only split
    where = f"{unit.one} {passes.count_text(row['at'])}" if row["at"] else "its start"
    return f"from {row['best cost']:.4g} at {where} to {row['cost']:.4g}"
