"""Compare the speed of schemes: paired tests, performance profiles and ranks.

Every table is computed from the table of `reached.time_to_target`, which has one value a problem,
split and scheme.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import evidence
from normbench.results.compare.problems import PROBLEM_COLUMNS
from normbench.results.compare.reached import time_to_target
from normbench.results.store.runs import Sweep

Array = NDArray[np.float64]
TARGET_NAMES = tuple(names.TARGETS)
FASTER, SLOWER, OPEN, NEITHER = "faster", "slower", "none", "neither reached it"
NOT_JUDGED = "not judged"  # a pair on test points of which a descent has not arrived
SPEED_CONCLUSIONS = {1: FASTER, -1: SLOWER, 0: OPEN}


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """Return median and quartiles over the splits of each scheme.

    They are order statistics and never lie between two values: a split that does not reach the
    target is infinite, and is not averaged with one that does.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        One row an experiment, setting and scheme. `step` is the best step size for the target, the
        median over the splits that reach it. `range` is a text, from the least value that a step
        size between those tried might have to the value at the best step size tried, both medians;
        it is None where the least value of a split is unknown or no lower. The column `setting` is
        left out where no settings were varied.
    """
    rows = []
    for (*problem, scheme), split_rows in table.groupby([*PROBLEM_COLUMNS, "scheme"], sort=False):
        q1, median, q3 = np.quantile(split_rows["value"], [0.25, 0.5, 0.75], method="higher")
        row = {**dict(zip(PROBLEM_COLUMNS, problem)), "scheme": scheme, "splits": len(split_rows)}
        step = split_rows["step"].quantile(0.5, interpolation="higher")
        bounds = split_rows["least"].where(np.isfinite(split_rows["value"]), np.inf)
        least = np.quantile(bounds, 0.5, method="higher")  # NaN if a bound is NaN
        row |= {"step": step, "median": median, "q1": q1, "q3": q3}
        # A least value of NaN, which is unknown, is not below the median either.
        rows.append({**row, "range": f"{least:.3g} to {median:.4g}" if least < median else None})
    columns = [*PROBLEM_COLUMNS, "scheme", "splits", "step", "median", "q1", "q3", "range"]
    return with_settings(pd.DataFrame(rows, columns=columns))


def with_settings(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without the column `setting` where no setting was varied."""
    return table if (table["setting"] != "").any() else table.drop(columns="setting")


def compare_pairs(table: pd.DataFrame, least: int = 1) -> pd.DataFrame:
    """Return who is faster: one row a pair of schemes, experiment and setting.

    The conclusions of a table hold together, see `evidence.judge`. No pair has the conclusion that
    a scheme is slower if the best step size of that scheme is at an end of the step sizes tried.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.
        least: The number of splits that a pair must share; other pairs are left out.

    Returns:
        A table with the columns

        - setting: only where settings were varied;
        - splits: the number of splits that both schemes were run on;
        - neither: the number of splits on which neither scheme reaches the target. They have no
          order, and do not count in the columns that follow;
        - wins: the share of splits on which the first scheme is faster; a tie is half a win;
        - ratio: the median of the second scheme's value over the first's, with the confidence
          interval `low` to `high`;
        - conclusion: on the first scheme, `faster` or `slower`; `none` where the interval holds 1,
          there are too few splits for an interval, or the slower scheme's grid ends too early; or
          `neither reached it`;
        - ends lower: which scheme ends with less of the excess, and on how many of the splits
          that neither reaches.
    """
    pairs = list(_pairs(table, max(least, 1)))
    columns = [*PROBLEM_COLUMNS, "scheme", "against", "splits", "neither"]
    columns += ["wins", "ratio", "low", "high", "conclusion", "ends lower"]
    if not pairs:
        return with_settings(pd.DataFrame(columns=columns))
    # NaN for a split on which neither scheme reaches the target.
    log_ratios = [evidence.log_ratios(*values.T) for _, values, _ in pairs]
    conclusions = evidence.judge(evidence.pad_pairs(log_ratios))
    at_grid_end = table.loc[table["end"] != "", [*PROBLEM_COLUMNS, "scheme"]]
    schemes_at_grid_end = set(at_grid_end.itertuples(index=False))
    rows = []
    for index, (row, _, excess) in enumerate(pairs):
        pair_ratios = log_ratios[index]
        ordered_ratios = pair_ratios[~np.isnan(pair_ratios)]
        direction = int(conclusions.direction[index])
        conclusion = SPEED_CONCLUSIONS[direction] if len(ordered_ratios) else NEITHER
        problem = tuple(row[name] for name in PROBLEM_COLUMNS)
        slower_schemes = {FASTER: row["against"], SLOWER: row["scheme"]}
        # Beyond the end of its grid the slower scheme may be the faster one.
        if (*problem, slower_schemes.get(conclusion)) in schemes_at_grid_end:
            conclusion = OPEN
        rows.append(
            {
                **row,
                "splits": len(pair_ratios),
                "neither": len(pair_ratios) - len(ordered_ratios),
                "wins": evidence.win_share(ordered_ratios),
                "ratio": float(np.exp(evidence.median(pair_ratios))),
                "low": float(np.exp(conclusions.low[index])),
                "high": float(np.exp(conclusions.high[index])),
                "conclusion": conclusion,
                "ends lower": _lower_end(row, excess[np.isnan(pair_ratios)]),
            }
        )
    pair_table = with_settings(pd.DataFrame(rows, columns=columns))
    # Two columns say nothing where a scheme of each pair reaches the target on every split.
    unordered_columns = [] if pair_table["neither"].any() else ["neither", "ends lower"]
    return pair_table.drop(columns=unordered_columns)


def _pairs(table: pd.DataFrame, least: int) -> Iterator[tuple[dict[str, Any], Array, Array]]:
    """Yield the pairs of schemes of each problem.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.
        least: The number of splits that both schemes must share; other pairs are left out.

    Yields:
        The cells of the pair's row that name its problem and its schemes, the values `(splits, 2)`
        and the excesses `(splits, 2)` on the splits that both schemes were run on.
    """
    for problem, problem_rows in table.groupby(PROBLEM_COLUMNS, sort=False):
        values, excess = (_pivot_schemes(problem_rows, column) for column in ("value", "excess"))
        for first, second in combinations(values.columns, 2):
            # NaN: a scheme was not run on that split.
            pair_values = values[[first, second]].dropna()
            if len(pair_values) >= least:
                row = {**dict(zip(PROBLEM_COLUMNS, problem)), "scheme": first, "against": second}
                pair_excess = excess.loc[pair_values.index, [first, second]]
                yield row, pair_values.to_numpy(), pair_excess.to_numpy()


def _lower_end(row: dict[str, Any], excess: Array) -> str | None:
    """Return the cell `ends lower` of a pair, such as `standard, 3 of 4`.

    Args:
        row: The names of the schemes, under `scheme` and `against`.
        excess: The final excess `(splits, 2)` on the splits where neither reaches the target.

    Returns:
        The scheme that ends lower on more splits, or `equal`; None without such splits. Excesses
        tie up to `names.TIED`.
    """
    if not len(excess):
        return None
    # Of two runs that diverged the difference is NaN, which counts for neither scheme.
    with np.errstate(invalid="ignore"):
        excess_difference = excess[:, 1] - excess[:, 0]
    counts = {
        row["scheme"]: int((excess_difference > names.TIED).sum()),
        row["against"]: int((excess_difference < -names.TIED).sum()),
    }
    largest_count = max(counts.values())
    best = [name for name, count in counts.items() if count == largest_count]
    return f"{best[0]}, {largest_count} of {len(excess)}" if len(best) == 1 else "equal"


def compare_pairs_over_splits(sweep: Sweep, target: str = "1e-2") -> pd.DataFrame:
    """Return the comparisons of pairs of schemes over the splits of a sweep, see `compare_pairs`.

    Args:
        sweep: The sweep, which keeps the table: it is computed once.
        target: The share of the excess to which iterations are counted.

    Returns:
        One row for each pair with two splits or more.
    """
    return sweep.get_or_compute(
        ("repeated", target), lambda: compare_pairs(time_to_target([sweep], target), least=2)
    )


def boundary_schemes(pairs: pd.DataFrame) -> frozenset[str]:
    """Return the schemes that would be shown to be slower, if their grids did not end too early.

    Their pairs have no conclusion although the confidence interval of the ratio leaves out 1, see
    `compare_pairs`.

    Args:
        pairs: One row a pair of schemes, from `compare_pairs`.
    """
    is_open = pairs["conclusion"] == OPEN
    slower = [
        *pairs.loc[is_open & (pairs["low"] > 1), "against"],
        *pairs.loc[is_open & (pairs["high"] < 1), "scheme"],
    ]
    return frozenset(slower)


def indistinguishable_schemes(
    pairs: pd.DataFrame, best: Sequence[str], conclusions: Sequence[str] = (OPEN, NEITHER)
) -> list[str]:
    """Return the schemes that are not shown to differ from every one of the best schemes.

    Args:
        pairs: One row a pair of schemes, from `compare_pairs` here or in `heldout`.
        best: The schemes with the best value.
        conclusions: The conclusions of pairs that are not shown to differ.

    Returns:
        The schemes outside `best` for which some pair with a scheme of `best` has one of these.
    """
    schemes = pairs[["scheme", "against"]].to_numpy()
    is_best = np.isin(schemes, list(best))
    # Pairs of one best scheme and one other scheme.
    undecided = pairs["conclusion"].isin(conclusions).to_numpy() & (is_best.sum(axis=1) == 1)
    return list(dict.fromkeys(schemes[undecided][~is_best[undecided]]))


def assurance(pairs: pd.DataFrame, sample: str = "splits") -> str:
    """Return the confidence of a table of pairs in words, or how many splits it needs.

    Args:
        pairs: One row a pair, from `compare_pairs` here or in `heldout`; at least one.
        sample: What is repeated, as a plural noun: splits of the data, or orders of its batches.
    """
    pairs = pairs[pairs["conclusion"] != NOT_JUDGED]
    count = len(pairs)
    if not count:
        return "no conclusion: no pair of schemes has arrived"
    needed_splits = evidence.fewest_values(count)
    # Splits on which neither scheme reaches the target have no order and support no conclusion.
    most_splits = int((pairs["splits"] - pairs.get("neither", 0)).max())
    if most_splits < needed_splits:
        requirement = f"{count} pairs of schemes need" if count > 1 else "1 pair of schemes needs"
        return (
            f"no conclusion: {requirement} at least {needed_splits} {sample} "
            f"(2 x 0.5^{needed_splits} <= 0.05 / {count}); there are {most_splits}"
        )
    correction = ", by Holm's correction" if count > 1 else ""
    return (
        f"95 % confidence for the whole table{correction}, for {sample} of this data set; fewer "
        f"than {needed_splits} {sample} can show nothing"
    )


def _pivot_schemes(table: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Return one row a problem and split and one column a scheme, in order of appearance.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.
        column: The column of the table that fills the cells; NaN where a scheme has no row.
    """
    schemes = list(dict.fromkeys(table["scheme"]))
    return table.pivot(index=[*PROBLEM_COLUMNS, "split"], columns="scheme", values=column)[schemes]


def _shared_problems(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return wide tables of values and excesses for the splits that every scheme was run on.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        Two tables from `_pivot_schemes` with the same rows.
    """
    values = _pivot_schemes(table).dropna()
    return values, _pivot_schemes(table, "excess").loc[values.index]


def profile(table: pd.DataFrame) -> pd.DataFrame:
    """Return performance profiles in long form.

    Each problem that every scheme was run on counts once, whatever its number of splits; problems
    that no scheme solves count too (see `unsolved`).

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        A table with the columns `scheme`, `factor` and `share`. `share` is the share of problems
        that the scheme brings to the target within `factor` times the value of the best scheme; at
        the largest factor it is the share of all problems that the scheme solves. Empty where no
        scheme solves any problem.

    References:
        Dolan and More, Benchmarking optimization software with performance profiles, Mathematical
        Programming 91 (2002).
    """
    values_by_scheme, _ = _shared_problems(table)
    if not np.isfinite(values_by_scheme.to_numpy(dtype=float)).any():
        return pd.DataFrame(columns=["scheme", "factor", "share"])
    values = values_by_scheme.to_numpy()
    # A value of 0 has no ratio: it counts as the smallest positive value, or 1 if that is smaller.
    smallest_value = values[values > 0].min(initial=1.0)
    values = np.maximum(values, smallest_value)
    best_values = values.min(axis=1, keepdims=True)
    # Where no scheme solves a problem, its factors stay infinite instead of NaN.
    factors = values / np.where(np.isfinite(best_values), best_values, 1.0)
    points = np.unique(np.r_[1.0, factors[np.isfinite(factors)]])
    weights = _weights(values_by_scheme)
    rows = [
        {"scheme": name, "factor": point, "share": float(weights @ (factors[:, column] <= point))}
        for column, name in enumerate(values_by_scheme.columns)
        for point in points
    ]
    return pd.DataFrame(rows)


def _weights(values_by_scheme: pd.DataFrame) -> Array:
    """Return the weight of each row `(n,)`: equal for problems, and for the splits of a problem.

    Args:
        values_by_scheme: One row a problem and split, from `_pivot_schemes`.

    Returns:
        Weights with the sum 1.
    """
    sizes = values_by_scheme.groupby(level=PROBLEM_COLUMNS)[values_by_scheme.columns[0]].transform(
        "size"
    )
    return np.asarray(
        1 / (sizes * values_by_scheme.groupby(level=PROBLEM_COLUMNS).ngroups), dtype=float
    )


def unsolved(table: pd.DataFrame) -> tuple[int, int]:
    """Return the number of splits on which no scheme reaches the target, and the number of splits.

    Only splits that every scheme was run on count, over all problems.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.
    """
    values_by_scheme, _ = _shared_problems(table)
    return int(np.isinf(values_by_scheme.to_numpy(dtype=float)).all(axis=1).sum()), len(
        values_by_scheme
    )


def ranks_by_problem(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rank of each scheme (columns) on each problem and split (rows).

    Rank 1 is the fastest. Schemes that do not reach the target come last, ordered by their final
    excess. Equal schemes share the mean of their ranks.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        The ranks, for the problems and splits that every scheme was run on.
    """
    values, excess = _shared_problems(table)
    sort_keys = [
        _sort_keys(split_values, split_excess)
        for split_values, split_excess in zip(
            values.to_numpy(dtype=float), excess.to_numpy(dtype=float)
        )
    ]
    frame = pd.DataFrame(sort_keys, index=values.index, columns=values.columns)
    return frame.rank(axis=1, method="average")


def _sort_keys(values: Array, excess: Array) -> Array:
    """Return finite sort keys of schemes: the values, then the infinite ones ordered by excess.

    Infinite values whose excesses are equal up to `names.TIED` have equal keys.

    Args:
        values: The iterations or seconds to the target of each scheme `(n,)`.
        excess: The final excess of each scheme `(n,)`.

    Returns:
        The keys `(n,)`, smaller for faster schemes.
    """
    unreached = np.isinf(values)
    sort_keys = np.empty(len(values))
    sort_keys[~unreached] = values[~unreached]
    tie_ranks = evidence.tie_ranks(excess[unreached], names.TIED)
    # Above all reached values.
    sort_keys[unreached] = 1 + (values[~unreached].max() if (~unreached).any() else 0) + tie_ranks
    return sort_keys


def mean_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean rank over the problems and splits of each experiment, by scheme.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        One row an experiment, one column a scheme.
    """
    return ranks_by_problem(table).groupby(level="experiment").mean()


def leaderboard(table: pd.DataFrame) -> pd.DataFrame:
    """Return the schemes ordered by their mean rank, the best first.

    Each experiment counts once, by the mean rank over its problems and splits; a single experiment
    counts by its splits.

    Args:
        table: One row a problem, split and scheme, from `time_to_target`.

    Returns:
        One row a scheme: the mean `rank`; the `median` rank with its confidence interval `low` to
        `high`, at the level of 5 percent for all schemes together and NaN where the experiments
        are too few; `solved`, the share of problems brought to the target; `won`, the share of
        problems on which no scheme was faster; and, equal in all rows, the numbers of `problems`
        and `splits` that count.
    """
    rank_table = ranks_by_problem(table)
    if rank_table.empty:
        return pd.DataFrame(columns=["scheme", "rank", "median", "low", "high", "solved", "won"])
    means = rank_table.groupby(level="experiment").mean()
    # One row a scheme, one column a unit of the sample: an experiment, or a split of the only one.
    unit_ranks = (means if len(means) > 1 else rank_table).to_numpy().T
    # Bonferroni's correction: the intervals of all schemes hold together.
    low, high = evidence.interval(unit_ranks, evidence.LEVEL / len(unit_ranks))
    values, _ = _shared_problems(table)
    weights, is_solved = _weights(values), np.isfinite(values.to_numpy(dtype=float))
    is_won = is_solved & (values.to_numpy() == values.min(axis=1).to_numpy()[:, None])
    board = pd.DataFrame(
        {
            "scheme": list(rank_table.columns),
            "rank": means.mean().to_numpy(),
            "median": evidence.median(unit_ranks),
            "low": low,
            "high": high,
            "solved": weights @ is_solved,
            "won": weights @ is_won,
            "problems": values.groupby(level=PROBLEM_COLUMNS).ngroups,
            "splits": len(values),
        }
    )
    return board.sort_values(["rank", "scheme"], ignore_index=True)
