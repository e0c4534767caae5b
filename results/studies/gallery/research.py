"""The numbers of the studies in `conf/experiment/research`."""

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import evidence
from normbench.results.compare.reached import excess_left, first_held
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import at_cost, of_only

KIND, SCALE = names.setting("dataset.kind"), names.setting("dataset.scale")


def broken_data(sweep: Sweep) -> dict[str, float]:
    """Return `KIND_SCALE_FORMULA_QUANTITY`, and `worst_FORMULA_QUANTITY`, the largest of all.

    What `record=[formulas]` kept of each job; the worst of those that are finite.
    """
    schemes = sweep.of_role(names.SCHEME).set_index("label")
    found: dict[str, float] = {}
    for label, parts in sweep.arrays(sweep.of_role(names.SCHEME), "formulas").items():
        place = f"{schemes.loc[label, KIND]}_{float(schemes.loc[label, SCALE]):g}"
        for quantity in set(parts) - {"formula"}:
            for formula, value in zip(parts["formula"], parts[quantity]):
                found[f"{place}_{formula}_{quantity}"] = float(value)
                worst = f"worst_{formula}_{quantity}"
                found[worst] = max(found.get(worst, 0.0), float(value))  # NaN is no larger
    return found


def centring_alone(sweep: Sweep) -> dict[str, float]:
    """Return centring's share of the logarithmic gain of standardizing, by data set.

    `log(identity / centre) / log(identity / standard)`, of condition numbers.
    """
    rows = sweep.of_role(names.SCHEME)
    table = rows.pivot(
        index=names.DATASET.column, columns="normalizer", values=names.CONDITION.column
    )
    return {
        str(name): math.log(row["identity"] / row["centre"])
        / math.log(row["identity"] / row["standard"])
        for name, row in table.iterrows()
    }


# After so many iterations: by what is left to descend on the training points, and by the error.
BY = {"descent_": names.FOLDS_TRAIN_COST, "error_": names.FOLDS_ERROR}


def does_the_choice_matter(sweep: Sweep) -> dict[str, float]:
    """Return places and ranks by `descent` and by `error`, and what the choice is worth.

    `BY_place_SCHEME`, `BY_rank_SCHEME`, `BY_low_SCHEME`, `BY_high_SCHEME`: its place, its mean rank
    and the interval, see `ranks`. `BY_lead`: the second's low minus the first's high, above 0 where
    the intervals are apart. `agreement`: the rank correlation of both mean ranks. `spread`: the
    largest over the data sets of the worst scheme's error minus the best's; `harm`: that of the
    worst scheme's error minus the error without one.
    """
    found: dict[str, float] = {}
    orders = {}
    for by, metric in BY.items():
        table = orders[by] = ranks(sweep, metric)
        for place, (name, row) in enumerate(table.iterrows(), 1):
            found[f"{by}place_{name}"] = float(place)
            found |= {f"{by}{key}_{name}": float(value) for key, value in row.items()}
        found[f"{by}lead"] = float(table["low"].iloc[1] - table["high"].iloc[0])
    first, second = (orders[by]["rank"] for by in BY)
    found["agreement"] = float(first.corr(second, method="spearman"))
    rows = sweep.of_role(names.SCHEME)
    errors = rows.pivot(
        index=names.DATASET.column, columns="normalizer", values=names.FOLDS_ERROR.column
    )
    found["spread"] = float((errors.max(axis=1) - errors.min(axis=1)).max())
    found["harm"] = float((errors.max(axis=1) - errors["identity"]).max())
    return found


def ranks(sweep: Sweep, metric: names.Metric) -> pd.DataFrame:
    """Return one row a scheme, the best first: its mean `rank`, and the interval `low` to `high`.

    Schemes are ranked on each data set and seed, equal ones sharing the mean of their ranks. The
    five folds of a seed share their data: a seed is one value, its mean rank over the data sets,
    and the interval of its median is over the seeds. It says what other splits of these data sets
    would change, and nothing of other data sets.
    """
    rows = [
        (row[names.DATASET.column], seed, row["normalizer"], value)
        for row in as_rows(sweep.of_role(names.SCHEME))
        for seed, value in sweep.series(row["run_id"], names.of_seed(metric).key).items()
    ]
    table = pd.DataFrame(rows, columns=["data", "seed", "scheme", "value"])
    table["rank"] = table.groupby(["data", "seed"])["value"].rank()
    by_seed = table.groupby(["scheme", "seed"])["rank"].mean().unstack()
    low, high = evidence.interval(by_seed.to_numpy())
    mean = np.asarray(by_seed.mean(axis=1))
    found = pd.DataFrame({"rank": mean, "low": low, "high": high}, index=by_seed.index)
    return found.sort_values("rank")


Array = NDArray[np.float64]
BUDGETS = {100: 25, 200: 50, 400: 100}  # iterations, and the step size, a quarter of them


def large_steps(sweep: Sweep) -> dict[str, float]:
    """Return `bound`, and `cost_K`: the cost after K iterations of step K / 4.

    bound: the largest `margin^2 step (k - s) cost(k)` over all step sizes and k > s, where s is the
    iteration from which on the cost stays under 1 / step.
    """
    points = of_only(sweep, "points")
    size = margin(points["points"], points["target"])
    costs = {
        float(step): part[names.TRAIN_COST.key].to_numpy()
        for step, part in sweep.histories(sweep.of_role(names.STEP)).groupby("step_size")
    }
    found = {f"cost_{count}": float(costs[step][count]) for count, step in BUDGETS.items()}
    return found | {"bound": max(_largest(step, cost, size) for step, cost in costs.items())}


def _largest(step: float, cost: Array, size: float) -> float:
    late = np.flatnonzero(cost >= 1 / step)
    first = int(late[-1]) + 1 if len(late) else 0
    k = np.arange(first + 1, len(cost))
    return float(np.max(size**2 * step * (k - first) * cost[k], initial=0.0))


def margin(x: Array, y: Array) -> float:
    """Return the largest margin of points x (P, N) of two classes, the bias among the weights.

    `max over |w| = 1 of min over p of y_p w [1, x_p]`, from the shortest v with all
    `y_p v [1, x_p] >= 1`: it is `1 / |v|`.
    """
    from scipy.optimize import minimize

    signed = np.where(y == y.max(), 1.0, -1.0)[:, None] * np.c_[np.ones(len(x)), x]
    rule = {"type": "ineq", "fun": lambda v: signed @ v - 1, "jac": lambda v: signed}
    first = np.linalg.lstsq(signed, np.ones(len(x)), rcond=None)[0]
    options = {"ftol": 1e-14, "maxiter": 1000}
    found = minimize(
        lambda v: v @ v,
        first,
        jac=lambda v: 2 * v,
        method="SLSQP",
        constraints=rule,
        options=options,
    )
    return float(1 / np.linalg.norm(found.x))


def large_steps_ridge(sweep: Sweep) -> dict[str, float]:
    """Return the exponents `small` and `large` of the iterations in kappa, with their intervals.

    kappa is `L / (2 l2)`. The iterations are those from which on `cost - least cost <= l2`: `small`
    at the smallest step size, `large` at the one that takes the fewest. An exponent is the slope of
    least squares through the logarithms over the ridges; `NAME_low` to `NAME_high` holds it with 95
    percent, if the logarithms scatter about a line normally (Student's t).
    """
    from scipy.stats import linregress, t

    rows = []
    for job in as_rows(sweep.of_role(names.SCHEME)):
        steps = sweep.of_role(names.STEP)
        histories = sweep.histories(steps[steps["parent"] == job["run_id"]])
        l2 = float(job[names.setting("cost.l2")])
        goal = float(job[names.MINIMUM.column]) + l2
        counts = {
            float(step): max(first_held(dict(enumerate(part[names.TRAIN_COST.key])), goal), 1.0)
            for step, part in histories.groupby("step_size")
        }
        kappa = float(job[names.LIPSCHITZ.column]) / (2 * l2)
        rows.append((kappa, counts[min(counts)], min(counts.values())))
    kappa, small, large = np.log(np.array(rows)).T
    found: dict[str, float] = {}
    for name, counts in (("small", small), ("large", large)):
        line = linregress(kappa, counts)
        reach = float(t.ppf(0.975, len(kappa) - 2)) * line.stderr
        found |= {name: line.slope, f"{name}_low": line.slope - reach}
        found[f"{name}_high"] = line.slope + reach
    return found


def ridge_dial(sweep: Sweep) -> dict[str, float]:
    """Return `error_RIDGE`: the share of test points misclassified where the training cost is 0.3.

    Of ridges that come there, between the iterations about that cost.
    """
    rows = at_cost(sweep, 0.3).dropna(subset="missed")
    ridges = rows[names.setting("normalizer.ridge")].astype(float)
    return {f"error_{ridge:g}": float(error) for ridge, error in zip(ridges, rows["missed"])}


GOAL = 0.104  # cost


def penalty_and_scaling(sweep: Sweep) -> dict[str, float]:
    """Return the relative spread of the least cost over the schemes, by whose weights l2 has."""
    rows = sweep.of_role(names.SCHEME)
    least = rows[names.MINIMUM.column].groupby(rows[names.setting("cost.l2_in")])
    return {str(of): float(own.max() / own.min() - 1) for of, own in least}


def preconditioning(sweep: Sweep) -> dict[str, float]:
    """Return the largest `|cost / other cost - 1|` of all step sizes and iterations, by optimizer.

    `gradient_descent`: preconditioned by a sphering on raw points, against plain on sphered ones.
    `adam`: on raw points, against sphered ones.
    """
    steps = sweep.of_role(names.STEP)
    cost = names.TRAIN_COST.key
    histories = sweep.histories(steps, [cost])
    optimizers = dict(zip(steps["run_id"], steps[names.OPTIMIZER.column]))
    histories["optimizer"] = histories["run_id"].map(optimizers)
    wide = histories.pivot(
        index=["step_size", "iteration"], columns=["optimizer", "normalizer"], values=cost
    )
    pairs = {
        "gradient_descent": [("preconditioned", "identity"), ("gradient_descent", "pca_sphere")],
        "adam": [("adam", "identity"), ("adam", "pca_sphere")],
    }
    return {
        name: float((wide[one] / wide[other] - 1).abs().max())
        for name, (one, other) in pairs.items()
    }


def rotations(sweep: Sweep) -> dict[str, float]:
    """Return `OPTIMIZER_fewest` and `OPTIMIZER_most`: iterations over the rotations.

    Of a rotation, those from which on the cost is at most 0.104, at the step size that takes the
    fewest; infinite where none comes there.
    """
    steps = sweep.of_role(names.STEP)
    histories = sweep.histories(steps, [names.TRAIN_COST.key])
    counts = {
        run_id: first_held(dict(enumerate(part[names.TRAIN_COST.key])), GOAL)
        for run_id, part in histories.groupby("run_id")
    }
    best = steps.assign(count=steps["run_id"].map(counts)).groupby(
        [names.OPTIMIZER.column, "parent"]
    )["count"]
    found: dict[str, float] = {}
    for optimizer, own in best.min().groupby(level=0):
        found |= {f"{optimizer}_fewest": float(own.min()), f"{optimizer}_most": float(own.max())}
    return found


def scaling_with_adam(sweep: Sweep) -> dict[str, float]:
    """Return `OPTIMIZER_SCHEME`: the share of the start's excess that the best step size leaves."""
    rows = as_rows(sweep.of_role(names.SCHEME))
    return {
        f"{row[names.OPTIMIZER.column]}_{row['normalizer']}": excess_left(row, row) for row in rows
    }


def six_whitenings_one_curve(sweep: Sweep) -> dict[str, float]:
    """Return the largest `|cost / cost under pca_sphere - 1|`, of all step sizes and iterations.

    `whitenings`: of the five that are full; `with_ledoit_wolf`: of that one too.
    """
    table = sweep.histories(sweep.of_role(names.STEP), [names.TRAIN_COST.key])
    cost = names.TRAIN_COST.key
    wide = table.pivot(index=["step_size", "iteration"], columns="normalizer", values=cost)
    apart = (wide.div(wide["pca_sphere"], axis=0) - 1).abs().max()
    return {
        "whitenings": float(apart.drop("ledoit_wolf").max()),
        "with_ledoit_wolf": float(np.max(apart)),
    }


def solver_buys(sweep: Sweep) -> dict[str, float]:
    """Return `DATASET_SCHEME_reached`: 1 where lbfgs comes to 1e-2 of the excess, else 0."""
    rows = sweep.of_role(names.SCHEME)
    own = rows[rows[names.OPTIMIZER.column] == "lbfgs"]
    count = own[names.reached("1e-2").column]
    keys = own[names.DATASET.column] + "_" + own["normalizer"]
    return {f"{key}_reached": float(pd.notna(value)) for key, value in zip(keys, count)}


def statistics_before_the_split(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME_POINTS`: by how much the cross-validated error is off.

    That fitted on all points minus that fitted on the training points of each fold, the mean over
    the subsets.
    """
    rows = sweep.of_role(names.SCHEME)
    keys = ["normalizer", names.setting("dataset.points"), names.FIT_ON]
    means = rows.groupby(keys)[names.FOLDS_ERROR.column].mean().unstack()
    off = means["all"] - means["train"]
    return {f"{scheme}_{points}": float(value) for (scheme, points), value in off.items()}


def where_the_gain_is(sweep: Sweep) -> dict[str, float]:
    """Return `kept_SCHEME`: the share of the gain over identity that is left at the minimum.

    `log(identity / scheme)` of the condition numbers at the minimum, over that at the start.
    """
    rows = sweep.of_role(names.SCHEME).set_index("normalizer")
    start, end = (rows[one.column] for one in (names.CONDITION_START, names.CONDITION_MINIMUM))
    return {
        f"kept_{name}": math.log(end["identity"] / end[name])
        / math.log(start["identity"] / start[name])
        for name in rows.index.drop("identity")
    }


SIZES = (100, 300, 450, 500, 600, 1200)  # of training points, to rounding


def whitening_and_generalization(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME_FIT_cost_POINTS` and `SCHEME_FIT_error_POINTS`, of the test points.

    Where the training cost first is 0.1; error: the share that is misclassified. FIT: whose
    statistics the scheme learnt, `train` or `all`. POINTS: those to train on. `SCHEME_FIT_peak`:
    those that have the largest error.
    """
    found: dict[str, float] = {}
    largest: dict[str, float] = {}
    for row in as_rows(at_cost(sweep, 0.1).dropna(subset="missed")):  # of equal ones the first
        place = f"{row['normalizer']}_{row[names.FIT_ON]}"
        points = SIZES[np.abs(np.subtract(SIZES, row["train_points"])).argmin()]
        found[f"{place}_cost_{points}"] = float(row["test_cost"])
        found[f"{place}_error_{points}"] = float(row["missed"])
        if row["missed"] > largest.get(place, -1.0):
            largest[place], found[f"{place}_peak"] = row["missed"], float(points)
    return found
