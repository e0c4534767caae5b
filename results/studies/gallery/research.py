"""The numbers of the studies in `conf/experiment/research`."""

import math
from statistics import median

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.compare import evidence
from normbench.results.compare.reached import excess_left
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import (
    Array,
    Row,
    arrays_of_only_scheme,
    at_cost,
    iterations_to,
    jobs_with,
    keyed,
    step_runs,
)

LANDING_ROUNDING = 1e-6  # relative, of a position: gradients shrink to 1e-8 of the first
DATA_KIND, DATA_SCALE = names.setting("dataset.kind"), names.setting("dataset.scale")


def broken_data(sweep: Sweep) -> dict[str, float]:
    """Return `KIND_SCALE_FORMULA_QUANTITY`, as each job with `record=[formulas]` recorded it.

    `worst_FORMULA_QUANTITY` is the largest finite value of all jobs.
    """
    numbers: dict[str, float] = {}
    for job, arrays in jobs_with(sweep, "formulas"):
        data_name = f"{job[DATA_KIND]}_{float(job[DATA_SCALE]):g}"
        # `formula` has the names; each other array has a number for each name.
        for quantity in set(arrays) - {"formula"}:
            for formula, value in zip(arrays["formula"], arrays[quantity]):
                numbers[f"{data_name}_{formula}_{quantity}"] = float(value)
                worst = f"worst_{formula}_{quantity}"
                numbers[worst] = max(numbers.get(worst, 0.0), float(value))  # NaN is no larger
    return numbers


def centring_alone(sweep: Sweep) -> dict[str, float]:
    """Return centring's share of the logarithmic gain of standardizing, by data set.

    `log(identity / centre) / log(identity / standard)`, of condition numbers.
    """
    rows = sweep.of_role(names.SCHEME)
    table = rows.pivot(
        index=names.DATASET.column, columns="normalizer", values=names.CONDITION.column
    )
    gains = np.log(table["identity"] / table["standard"])
    return keyed(np.log(table["identity"] / table["centre"]) / gains, "{}")


# The criteria of the ranking: the final training cost, and the error on held-out folds.
CRITERIA = {"descent_": names.FOLDS_TRAIN_COST, "error_": names.FOLDS_ERROR}


def does_the_choice_matter(sweep: Sweep) -> dict[str, float]:
    """Return how schemes rank by two criteria, and how much the choice among them matters.

    BY is `descent` or `error`, see `CRITERIA`. `BY_place_SCHEME`, `BY_rank_SCHEME`,
    `BY_low_SCHEME`, `BY_high_SCHEME`: the position in the ranking, the mean rank and its confidence
    interval, see `ranks`. `BY_lead`: the low end of the second scheme's interval minus the high end
    of the first one's, above 0 where the intervals are disjoint. `agreement`: the rank
    correlation of both mean ranks. `spread`: the largest difference, over the data sets, of the
    worst scheme's error minus the best scheme's. `harm`: the same of the worst scheme's error minus
    the error without a scheme.
    """
    numbers: dict[str, float] = {}
    tables = {}
    for prefix, metric in CRITERIA.items():
        table = tables[prefix] = ranks(sweep, metric)
        for position, (name, row) in enumerate(table.iterrows(), 1):
            numbers[f"{prefix}place_{name}"] = float(position)
            numbers |= {f"{prefix}{key}_{name}": float(value) for key, value in row.items()}
        # Low and high ranks: the second scheme's best against the first one's worst.
        numbers[f"{prefix}lead"] = float(table["low"].iloc[1] - table["high"].iloc[0])
    by_descent, by_error = (tables[prefix]["rank"] for prefix in CRITERIA)
    numbers["agreement"] = float(by_descent.corr(by_error, method="spearman"))
    rows = sweep.of_role(names.SCHEME)
    errors = rows.pivot(
        index=names.DATASET.column, columns="normalizer", values=names.FOLDS_ERROR.column
    )
    numbers["spread"] = float((errors.max(axis=1) - errors.min(axis=1)).max())
    numbers["harm"] = float((errors.max(axis=1) - errors["identity"]).max())
    return numbers


def ranks(sweep: Sweep, metric: names.Metric) -> pd.DataFrame:
    """Return the mean `rank` of each scheme with a confidence interval `low` to `high`.

    Schemes are ranked on each data set and seed; equal schemes share the mean of their ranks. The
    seed is the unit of the sample, because the folds of a seed share their data: its value is the
    mean rank over the data sets. The interval of the median over the seeds covers other splits of
    these data sets, and not other data sets.

    Args:
        sweep: The sweep.
        metric: The metric of the folds, recorded as a series over the seeds.

    Returns:
        One row a scheme, the best first.
    """
    rows = [
        (row[names.DATASET.column], seed, row["normalizer"], value)
        for row in as_rows(sweep.of_role(names.SCHEME))
        for seed, value in sweep.series(row["run_id"], names.of_seed(metric).key).items()
    ]
    table = pd.DataFrame(rows, columns=["data", "seed", "scheme", "value"])
    table["rank"] = table.groupby(["data", "seed"])["value"].rank()
    # One row a scheme, one column a seed.
    by_seed = table.groupby(["scheme", "seed"])["rank"].mean().unstack()
    low, high = evidence.interval(by_seed.to_numpy())
    mean = np.asarray(by_seed.mean(axis=1))
    intervals = pd.DataFrame({"rank": mean, "low": low, "high": high}, index=by_seed.index)
    return intervals.sort_values("rank")


# By number of iterations: the step size, a quarter of them.
STEP_SIZES_BY_BUDGET = {100: 25, 200: 50, 400: 100}


def large_steps(sweep: Sweep) -> dict[str, float]:
    """Return `bound`, and `cost_K`, the cost after K iterations of step size K / 4.

    `bound`: the largest `margin^2 step (k - s) cost(k)` over all step sizes and k > s, where s is
    the first iteration from which the cost stays below 1 / step.
    """
    points = arrays_of_only_scheme(sweep, "points")
    size = margin(points["points"], points["target"])
    costs = {run.step_size: run.costs for run in step_runs(sweep)}
    numbers = {
        f"cost_{count}": float(costs[step][count]) for count, step in STEP_SIZES_BY_BUDGET.items()
    }
    return numbers | {
        "bound": max(_largest_bound(step, cost, size) for step, cost in costs.items())
    }


def _largest_bound(step: float, cost: Array, size: float) -> float:
    """Return the `bound` of `large_steps` for one descent.

    Args:
        step: The step size.
        cost: The cost at each iteration (K + 1,).
        size: The margin of the points.
    """
    iterations_above = np.flatnonzero(cost >= 1 / step)
    # s of `large_steps`; there is no k beyond it, and the bound is 0, if the last cost is above.
    first = int(iterations_above[-1]) + 1 if len(iterations_above) else 0
    k = np.arange(first + 1, len(cost))
    return float(np.max(size**2 * step * (k - first) * cost[k], initial=0.0))


def margin(x: Array, y: Array) -> float:
    """Return the largest margin of the points of two classes, with the bias among the weights.

    The margin is `max over |w| = 1 of min over p of y_p w [1, x_p]`. It is `1 / |v|` for the
    shortest v with `y_p v [1, x_p] >= 1` for all points.

    Args:
        x: The points `(P, N)`.
        y: Their targets `(P,)`, of two values.

    Returns:
        The margin.
    """
    from scipy.optimize import minimize

    # Row p is y_p [1, x_p], with y_p = 1 or -1.
    signed = np.where(y == y.max(), 1.0, -1.0)[:, None] * np.c_[np.ones(len(x)), x]
    # The search for the shortest v starts where all products are nearest to 1.
    constraint = {"type": "ineq", "fun": lambda v: signed @ v - 1, "jac": lambda v: signed}
    start = np.linalg.lstsq(signed, np.ones(len(x)), rcond=None)[0]
    options = {"ftol": 1e-14, "maxiter": 1000}
    solution = minimize(
        lambda v: v @ v,
        start,
        jac=lambda v: 2 * v,
        method="SLSQP",
        constraints=constraint,
        options=options,
    )
    return float(1 / np.linalg.norm(solution.x))


def large_steps_ridge(sweep: Sweep) -> dict[str, float]:
    """Return `small` and `large`, the exponents a for which the iterations grow as kappa^a.

    kappa is `L / (2 l2)`. The iterations are counted until `cost - least cost <= l2` holds for
    good: `small` at the smallest step size, `large` at the step size with the fewest iterations. An
    exponent is the slope of the least-squares line through the logarithms, over the penalties.
    `NAME_low` to `NAME_high` is its 95 percent confidence interval, for residuals of a normal
    distribution (Student's t).
    """
    from scipy.stats import linregress, t

    runs = step_runs(sweep)
    rows = []
    for job in as_rows(sweep.of_role(names.SCHEME)):
        l2 = float(job[names.setting("cost.l2")])
        goal = float(job[names.MINIMUM.column]) + l2
        # By step size; 0 counts as 1, so that it has a logarithm.
        counts = {
            run.step_size: max(iterations_to(run.costs, goal), 1.0)
            for run in runs
            if run.job["run_id"] == job["run_id"]
        }
        kappa = float(job[names.LIPSCHITZ.column]) / (2 * l2)
        # At the smallest step size, and at the best one.
        rows.append((kappa, counts[min(counts)], min(counts.values())))
    kappa, small, large = np.log(np.array(rows)).T
    numbers: dict[str, float] = {}
    for name, counts in (("small", small), ("large", large)):
        line = linregress(kappa, counts)
        half_width = float(t.ppf(0.975, len(kappa) - 2)) * line.stderr
        numbers |= {name: line.slope, f"{name}_low": line.slope - half_width}
        numbers[f"{name}_high"] = line.slope + half_width
    return numbers


def ridge_dial(sweep: Sweep) -> dict[str, float]:
    """Return `error_RIDGE`, the share of misclassified test points at a training cost of 0.3.

    It is interpolated between iterations, see `at_cost`, for ridges that reach the cost.
    """
    rows = at_cost(sweep, 0.3).dropna(subset="missed")
    ridges = rows[names.setting("normalizer.ridge")].astype(float)
    return keyed(rows["missed"].set_axis(ridges), "error_{:g}")


LBFGS_TARGET = 1e-4  # share of the starting excess


def lbfgs_and_scaling(sweep: Sweep) -> dict[str, float]:
    """Return the evaluations that L-BFGS takes to 1e-4 of the excess, summed over the tables.

    L2IN says which weights are penalized, `transformed` or `features`. `L2IN_SCHEME`: that sum; a
    run that does not reach the target counts with all its evaluations. `L2IN_gain`: the sum of
    identity over that of standard. `L2IN_saved`: the share of the evaluations of standard that
    pca_sphere saves.
    """
    numbers: dict[str, float] = {}
    for job, _, costs in step_runs(sweep):
        least_cost = job[names.MINIMUM.column]
        goal = least_cost + LBFGS_TARGET * (costs[0] - least_cost)
        # A run that does not get there counts with all its evaluations.
        count = min(iterations_to(costs, goal), len(costs) - 1)
        key = f"{job[names.setting('cost.l2_in')]}_{job['normalizer']}"
        numbers[key] = numbers.get(key, 0.0) + count
    for l2_in in ("transformed", "features"):
        standard = numbers[f"{l2_in}_standard"]
        numbers[f"{l2_in}_gain"] = numbers[f"{l2_in}_identity"] / standard
        numbers[f"{l2_in}_saved"] = 1 - numbers[f"{l2_in}_pca_sphere"] / standard
    return numbers


GOAL_COST = 0.104  # the training cost to which `rotations` counts


def penalty_and_scaling(sweep: Sweep) -> dict[str, float]:
    """Return how the two places of the penalty differ, from the minima over five splits.

    `L2IN`: the largest relative spread of the least cost over the schemes of a split.
    `errors_L2IN_SCHEME`: misclassified test points, the sum over the splits.
    `coefficients_SCHEME`: the median of `|w - v| / |v|`, of the weights without the bias, in the
    coordinates of the scheme; w is the minimum with the penalty on the transformed weights, v with
    the penalty on the weights of the features.
    """
    rows = sweep.of_role(names.SCHEME)
    split, l2_in = names.setting("dataset.split_seed"), names.setting("cost.l2_in")
    minima = rows.groupby([l2_in, split])[names.MINIMUM.column]
    numbers = keyed((minima.max() / minima.min() - 1).groupby(level=0).max(), "{}")
    errors = rows.groupby([l2_in, "normalizer"])[names.FINAL_TEST_MISCLASSIFICATIONS.column].sum()
    numbers |= keyed(errors, "errors_{}_{}")
    # By scheme, split and place of the penalty: the last weights (classes, features), no bias.
    weights = {
        (job["normalizer"], job[split], job[l2_in]): arrays["weights"][-1, :, 1:]
        for job, arrays in jobs_with(sweep, "path")
    }
    distances: dict[str, list[float]] = {}
    for name, seed in {key[:2] for key in weights}:  # each scheme on each split
        ours, features = (weights[name, seed, key] for key in ("transformed", "features"))
        distance = np.linalg.norm(ours - features) / np.linalg.norm(features)
        distances.setdefault(name, []).append(float(distance))
    return numbers | {f"coefficients_{name}": median(each) for name, each in distances.items()}


IMAGE_TARGET_SHARE = 3e-2  # share of the starting excess


def per_image_or_per_pixel(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME`, the iterations to 3e-2 of the excess at the step size with the fewest.

    They are counted until the excess stays at or below that share, and are infinite where no step
    size of the grid reaches it.
    """
    numbers = dict.fromkeys(sweep.of_role(names.SCHEME)["normalizer"], math.inf)
    for job, _, costs in step_runs(sweep):
        # The cost at that share; it lies between two recorded targets.
        goal = np.interp(IMAGE_TARGET_SHARE, *_excess_shares(job))
        scheme = job["normalizer"]
        numbers[scheme] = min(numbers[scheme], iterations_to(costs, float(goal)))
    return numbers


def _excess_shares(job: Row) -> tuple[list[float], list[float]]:
    """Return the shares of the excess in `names.TARGETS`, rising, and a job's costs at them.

    The two lists are the points between which `np.interp` gives the cost at any other share.
    """
    shares = sorted(names.TARGETS.items(), key=lambda item: item[1])
    costs = [float(job[names.target(name).column]) for name, _ in shares]
    return [share for _, share in shares], costs


def preconditioning(sweep: Sweep) -> dict[str, float]:
    """Return the largest `|cost / other cost - 1|` of all step sizes and iterations, by optimizer.

    `gradient_descent`: descent on raw points, preconditioned by a sphering, against plain descent
    on sphered points. `adam`: on raw points, against sphered points.
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
        name: float((wide[first] / wide[second] - 1).abs().max())
        for name, (first, second) in pairs.items()
    }


def rotations(sweep: Sweep) -> dict[str, float]:
    """Return `OPTIMIZER_fewest` and `OPTIMIZER_most`, the range of iterations over the rotations.

    The iterations of a rotation are counted until the cost stays at or below 0.104, at the step
    size that takes the fewest; they are infinite where no step size reaches that cost.
    """
    counts = pd.DataFrame(
        [
            (job[names.OPTIMIZER.column], job["run_id"], iterations_to(costs, GOAL_COST))
            for job, _, costs in step_runs(sweep)
        ],
        columns=["optimizer", "job", "count"],
    )
    # A job is a rotation under an optimizer.
    best = counts.groupby(["optimizer", "job"])["count"].min().groupby(level=0)
    return keyed(best.min(), "{}_fewest") | keyed(best.max(), "{}_most")


def scaling_with_adam(sweep: Sweep) -> dict[str, float]:
    """Return `OPTIMIZER_SCHEME`, the remaining share of the excess at the best step size."""
    rows = as_rows(sweep.of_role(names.SCHEME))
    return {
        f"{row[names.OPTIMIZER.column]}_{row['normalizer']}": excess_left(row, row) for row in rows
    }


def six_whitenings_one_curve(sweep: Sweep) -> dict[str, float]:
    """Return the largest `|cost / cost under pca_sphere - 1|`, of all step sizes and iterations.

    `whitenings`: over the five full whitenings. `with_ledoit_wolf`: over `ledoit_wolf` too.
    """
    table = sweep.histories(sweep.of_role(names.STEP), [names.TRAIN_COST.key])
    cost = names.TRAIN_COST.key
    # One column a scheme, compared with that of pca_sphere row by row.
    wide = table.pivot(index=["step_size", "iteration"], columns="normalizer", values=cost)
    deviations = (wide.div(wide["pca_sphere"], axis=0) - 1).abs().max()
    return {
        "whitenings": float(deviations.drop("ledoit_wolf").max()),
        "with_ledoit_wolf": float(np.max(deviations)),
    }


def solver_buys(sweep: Sweep) -> dict[str, float]:
    """Return `DATASET_SCHEME_reached`: 1 if L-BFGS reaches 1e-2 of the excess, else 0."""
    rows = sweep.of_role(names.SCHEME)  # of other optimizers too
    lbfgs_runs = rows[rows[names.OPTIMIZER.column] == "lbfgs"]
    iterations = lbfgs_runs[names.reached("1e-2").column]
    keys = lbfgs_runs[names.DATASET.column] + "_" + lbfgs_runs["normalizer"]
    return {f"{key}_reached": float(pd.notna(value)) for key, value in zip(keys, iterations)}


def sparse_features(sweep: Sweep) -> dict[str, float]:
    """Return `gap`: the largest `|sparse / dense - 1|` of the costs of a scheme's best run."""
    rows = sweep.of_role(names.SCHEME)
    is_sparse = rows[names.setting("dataset.sparse")].astype(str).str.lower() == "true"
    # The costs of sparse and of dense points, by scheme and iteration.
    costs = [
        sweep.histories(part).set_index(["normalizer", "iteration"])[names.TRAIN_COST.key]
        for part in (rows[is_sparse], rows[~is_sparse])
    ]
    return {"gap": float((costs[0] / costs[1] - 1).abs().max())}


def statistics_before_the_split(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME_POINTS`, the bias of the cross-validated error, by number of points.

    The bias is the error with the scheme fitted on all points minus the error with the scheme
    fitted on the training points of each fold, the mean over the subsets.
    """
    rows = sweep.of_role(names.SCHEME)
    keys = ["normalizer", names.setting("dataset.points"), names.FIT_ON]
    means = rows.groupby(keys)[names.FOLDS_ERROR.column].mean().unstack()
    biases = means["all"] - means["train"]
    return {f"{scheme}_{points}": float(value) for (scheme, points), value in biases.items()}


def where_a_step_lands(sweep: Sweep) -> dict[str, float]:
    """Return `outside`, the number of steps with a position outside the range of the directions.

    A position is where a step lands on its parabola: 0 at the start, 1 at the minimum; of a
    direction of curvature h, it is the step size times h.

    In plain descent on a quadratic, the position of a step is a mean of the positions of the
    directions, so that it is in their range but for rounding.
    """
    outside = 0.0
    for landing in sweep.arrays(sweep.of_role(names.SCHEME), "landing").values():
        low, high = landing["direction"].min(), landing["direction"].max()
        inside = np.clip(landing["position"], low, high)
        outside += np.sum(np.abs(landing["position"] - inside) > LANDING_ROUNDING * high)
    return {"outside": outside}


def where_the_gain_is(sweep: Sweep) -> dict[str, float]:
    """Return `kept_SCHEME`, the share of the gain over identity that remains at the minimum.

    It is `log(identity / scheme)` of the condition numbers at the minimum over that at the start.
    """
    rows = sweep.of_role(names.SCHEME).set_index("normalizer")
    start, end = (
        rows[metric.column] for metric in (names.CONDITION_START, names.CONDITION_MINIMUM)
    )
    return {
        f"kept_{name}": math.log(end["identity"] / end[name])
        / math.log(start["identity"] / start[name])
        for name in rows.index.drop("identity")
    }


TRAINING_SIZES = (100, 300, 450, 500, 600, 1200)  # numbers of training points, rounded


def whitening_and_generalization(sweep: Sweep) -> dict[str, float]:
    """Return `SCHEME_FIT_cost_POINTS` and `SCHEME_FIT_error_POINTS` on the test points.

    They are taken where the training cost first is 0.1; the error is the share of misclassified
    points. FIT: the points that the scheme was fitted on, `train` or `all`. POINTS: the number of
    training points. `SCHEME_FIT_peak`: the number of training points with the largest error.
    """
    numbers: dict[str, float] = {}
    largest: dict[str, float] = {}
    for row in as_rows(at_cost(sweep, 0.1).dropna(subset="missed")):
        scheme_name = f"{row['normalizer']}_{row[names.FIT_ON]}"
        # The nearest rounded size: a test fraction does not leave exactly that many points.
        points = TRAINING_SIZES[np.abs(np.subtract(TRAINING_SIZES, row["train_points"])).argmin()]
        numbers[f"{scheme_name}_cost_{points}"] = float(row["test_cost"])
        numbers[f"{scheme_name}_error_{points}"] = float(row["missed"])
        if row["missed"] > largest.get(scheme_name, -1.0):  # the first of equal errors
            largest[scheme_name], numbers[f"{scheme_name}_peak"] = row["missed"], float(points)
    return numbers


def whitening_in_seconds(sweep: Sweep) -> dict[str, float]:
    """Return `fit_in_iterations`, the additional time that fitting pca_sphere takes.

    It is the seconds of its fit minus those of standard's, over the seconds of an iteration under
    standard.
    """
    rows = sweep.of_role(names.SCHEME).set_index("normalizer")
    fits = rows[names.FIT_SECONDS.column].astype(float)
    iteration = float(rows[names.SECONDS_A_STEP.column]["standard"])
    return {"fit_in_iterations": (fits["pca_sphere"] - fits["standard"]) / iteration}
