"""Which scheme is faster, by how much, and how sure that is: pairs, profiles, ranks.

The tables are made from that of `reached.reached`: one value a problem, split and scheme.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import evidence
from normbench.results.compare.problems import PLACE
from normbench.results.compare.reached import reached
from normbench.results.store.runs import Sweep

Array = NDArray[np.float64]
TARGETS = tuple(names.TARGETS)
FASTER, SLOWER, OPEN, NEITHER = "faster", "slower", "none", "neither reached it"
CONCLUSIONS = {1: FASTER, -1: SLOWER, 0: OPEN}


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row an experiment, setting and scheme: median and quartiles over its splits.

    step: its best step size for the target, the median over the splits that reach it. range: from
    what a step size between those tried might take at least to what the step takes, medians too;
    None where that is not known of a split. A column `setting` is there where there are several.
    Order statistics, never between two values, so that an unreached split is infinite and is not
    averaged with one that was reached.
    """
    rows = []
    for (*place, scheme), part in table.groupby([*PLACE, "scheme"], sort=False):
        q1, median, q3 = np.quantile(part["value"], [0.25, 0.5, 0.75], method="higher")
        row = {**dict(zip(PLACE, place)), "scheme": scheme, "splits": len(part)}
        step = part["step"].quantile(0.5, interpolation="higher")
        bounds = part["least"].where(np.isfinite(part["value"]), np.inf)
        least = np.quantile(bounds, 0.5, method="higher")  # NaN where one of them is
        row |= {"step": step, "median": median, "q1": q1, "q3": q3}
        rows.append({**row, "range": f"{least:.3g} to {median:.4g}" if least < median else None})
    columns = [*PLACE, "scheme", "splits", "step", "median", "q1", "q3", "range"]
    return with_settings(pd.DataFrame(rows, columns=columns))


def with_settings(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without its column of settings where nothing was varied."""
    return table if (table["setting"] != "").any() else table.drop(columns="setting")


def paired(table: pd.DataFrame, least: int = 1) -> pd.DataFrame:
    """Return one row a pair of schemes, experiment and setting: who is faster, by splits.

    table: from `reached`. least: how many splits two schemes must share; the others are left out.
    Columns: setting, where there are several; splits that both were run on; neither: of these,
    those on which neither reaches the target, which have no order and do not count in what
    follows; wins, the share on which the first is faster (a tie is half a win); ratio, the median
    of the second's value over the first's, and the interval `low` to `high` of it; conclusion:
    `faster`, `slower`, `none` where the interval holds 1 or there are too few splits for one, or
    `neither reached it`; ends lower: of the splits that neither reaches, who ends with less of
    the excess, on how many. The conclusions of a table hold together: see `evidence.judge`. There
    is none on a scheme whose best step size is at an end of those that were tried.
    """
    pairs = list(_pairs(table, max(least, 1)))
    columns = [*PLACE, "scheme", "against", "splits", "neither"]
    columns += ["wins", "ratio", "low", "high", "conclusion", "ends lower"]
    if not pairs:
        return with_settings(pd.DataFrame(columns=columns))
    ratios = [evidence.log_ratios(*values.T) for _, values, _ in pairs]
    logs = evidence.side_by_side(ratios)
    found = evidence.judge(logs)
    rows, ends = [], set(table.loc[table["end"] != "", [*PLACE, "scheme"]].itertuples(index=False))
    for number, (row, _, excess) in enumerate(pairs):
        own = ratios[number]
        decided = own[~np.isnan(own)]
        conclusion = CONCLUSIONS[int(found.direction[number])] if len(decided) else NEITHER
        place = tuple(row[name] for name in PLACE)
        if conclusion != NEITHER and {(*place, row["scheme"]), (*place, row["against"])} & ends:
            conclusion = OPEN
        rows.append(
            {
                **row,
                "splits": len(own),
                "neither": len(own) - len(decided),
                "wins": evidence.wins(decided),
                "ratio": float(np.exp(evidence.median(own))),
                "low": float(np.exp(found.low[number])),
                "high": float(np.exp(found.high[number])),
                "conclusion": conclusion,
                "ends lower": _ends_lower(row, excess[np.isnan(own)]),
            }
        )
    made = with_settings(pd.DataFrame(rows, columns=columns))
    return made if made["neither"].any() else made.drop(columns=["neither", "ends lower"])


def _pairs(table: pd.DataFrame, least: int) -> Iterator[tuple[dict[str, Any], Array, Array]]:
    """Yield each pair's place and names, and its values and excesses `(splits, 2)`."""
    for place, part in table.groupby(PLACE, sort=False):
        values, excess = (_wide(part, column) for column in ("value", "excess"))
        for one, other in combinations(values.columns, 2):
            two = values[[one, other]].dropna()
            if len(two) >= least:
                row = {**dict(zip(PLACE, place)), "scheme": one, "against": other}
                yield row, two.to_numpy(), excess.loc[two.index, [one, other]].to_numpy()


def _ends_lower(row: dict[str, Any], excess: Array) -> str | None:
    """Return who of two ends with less of the excess `(splits, 2)`, and on how many splits."""
    if not len(excess):
        return None
    with np.errstate(invalid="ignore"):
        less = excess[:, 1] - excess[:, 0]
    counts = {
        row["scheme"]: int((less > names.TIED).sum()),
        row["against"]: int((less < -names.TIED).sum()),
    }
    most = max(counts.values())
    best = [name for name, count in counts.items() if count == most]
    return f"{best[0]}, {most} of {len(excess)}" if len(best) == 1 else "equal"


def repeated(sweep: Sweep) -> pd.DataFrame:
    """Return the pairs of a sweep, by iterations to 1e-2, that several splits make."""
    return sweep.get_or_compute("repeated", lambda: paired(reached([sweep]), least=2))


def not_told_apart(pairs: pd.DataFrame, best: Sequence[str]) -> list[str]:
    """Return the schemes that a table of pairs does not show to be behind every one of the best."""
    sides = pairs[["scheme", "against"]].to_numpy()
    ours = np.isin(sides, list(best))
    undecided = pairs["conclusion"].isin([OPEN, NEITHER]).to_numpy() & (ours.sum(axis=1) == 1)
    return list(dict.fromkeys(sides[undecided][~ours[undecided]]))


def assurance(pairs: pd.DataFrame) -> str:
    """Return how sure the conclusions of a table from `paired` are, or what they would need."""
    count = len(pairs)
    needed = evidence.fewest(count)
    most = int((pairs["splits"] - pairs.get("neither", 0)).max())
    if most < needed:
        need = f"{count} pairs of schemes need" if count > 1 else "1 pair of schemes needs"
        return (
            f"no conclusion: {need} at least {needed} splits "
            f"(2 x 0.5^{needed} <= 0.05 / {count}); there are {most}"
        )
    correction = ", by Holm's correction" if count > 1 else ""
    return (
        f"95 % confidence for the whole table{correction}, for splits of this data set; fewer than "
        f"{needed} splits can show nothing"
    )


def _wide(table: pd.DataFrame, column: str = "value") -> pd.DataFrame:
    """Return one row a problem and split and one column a scheme, in their first order."""
    schemes = list(dict.fromkeys(table["scheme"]))
    return table.pivot(index=[*PLACE, "split"], columns="scheme", values=column)[schemes]


def _shared(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return values and excesses, wide, of the problems that every scheme was run on."""
    values = _wide(table).dropna()
    return values, _wide(table, "excess").loc[values.index]


def profile(table: pd.DataFrame) -> pd.DataFrame:
    """Return performance profiles, tidy: scheme, factor, share.

    share: of the problems that the scheme brings to the target within factor times the value of
    the best scheme; at factor infinity, those that it brings there at all. table: from `reached`;
    each experiment counts once, whatever its splits; all problems that every scheme was run on
    count, those that none solves too (see `unsolved`); empty where none solves any. Dolan, More,
    "Benchmarking optimization software with performance profiles", Mathematical Programming 91
    (2002).
    """
    wide, _ = _shared(table)
    if not np.isfinite(wide.to_numpy(dtype=float)).any():
        return pd.DataFrame(columns=["scheme", "factor", "share"])
    values = wide.to_numpy()
    least = values[values > 0].min(initial=1.0)
    values = np.maximum(values, least)
    best = values.min(axis=1, keepdims=True)
    factors = values / np.where(np.isfinite(best), best, 1.0)
    points = np.unique(np.r_[1.0, factors[np.isfinite(factors)]])
    weights = _weights(wide)
    rows = [
        {"scheme": name, "factor": point, "share": float(weights @ (factors[:, column] <= point))}
        for column, name in enumerate(wide.columns)
        for point in points
    ]
    return pd.DataFrame(rows)


def _weights(wide: pd.DataFrame) -> Array:
    """Return what each row counts `(n,)`: every problem the same, shared by its splits."""
    sizes = wide.groupby(level=PLACE)[wide.columns[0]].transform("size")
    return np.asarray(1 / (sizes * wide.groupby(level=PLACE).ngroups), dtype=float)


def unsolved(table: pd.DataFrame) -> tuple[int, int]:
    """Return on how many problems and splits no scheme reaches the target, and of how many.

    Of those that every scheme was run on.
    """
    wide, _ = _shared(table)
    return int(np.isinf(wide.to_numpy(dtype=float)).all(axis=1).sum()), len(wide)


def ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rank of each scheme (columns) on each problem and split (rows).

    1 is the fastest. Those that do not reach the target come last, in the order of the excess
    that they end with. Equal ones share the mean of their ranks.
    """
    values, excess = _shared(table)
    order = [
        _ordered(own, left)
        for own, left in zip(values.to_numpy(dtype=float), excess.to_numpy(dtype=float))
    ]
    frame = pd.DataFrame(order, index=values.index, columns=values.columns)
    return frame.rank(axis=1, method="average")


def _ordered(values: Array, excess: Array) -> Array:
    """Return numbers in the order of values `(n,)`, the infinite ones by their excess."""
    lost = np.isinf(values)
    order = np.empty(len(values))
    order[~lost] = values[~lost]
    groups = evidence.tied(excess[lost], names.TIED)
    order[lost] = 1 + (values[~lost].max() if (~lost).any() else 0) + groups
    return order


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row an experiment and one column a scheme: the mean rank over its problems."""
    return ranked(table).groupby(level="experiment").mean()


def leaderboard(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row a scheme, the best first: mean rank, median rank and its interval, shares.

    Each experiment counts once, by the mean rank over its problems and splits; a single experiment
    by its splits. `low` to `high`: an interval of the median rank, at the level of 5 percent for
    all schemes together; NaN where there are too few. solved: share of problems brought to the
    target; won: share of problems on which no scheme was faster.
    """
    order = ranked(table)
    if order.empty:
        return pd.DataFrame(columns=["scheme", "rank", "median", "low", "high", "solved", "won"])
    means = order.groupby(level="experiment").mean()
    units = (means if len(means) > 1 else order).to_numpy().T
    low, high = evidence.interval(units, evidence.LEVEL / len(units))
    values, _ = _shared(table)
    weights, solved = _weights(values), np.isfinite(values.to_numpy(dtype=float))
    won = solved & (values.to_numpy() == values.min(axis=1).to_numpy()[:, None])
    board = pd.DataFrame(
        {
            "scheme": list(order.columns),
            "rank": means.mean().to_numpy(),
            "median": evidence.median(units),
            "low": low,
            "high": high,
            "solved": weights @ solved,
            "won": weights @ won,
            "problems": values.groupby(level=PLACE).ngroups,
            "splits": len(values),
        }
    )
    return board.sort_values(["rank", "scheme"], ignore_index=True)
