"""The numbers of the studies in `conf/experiment/research` on batches."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import passes
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import Array, farthest_from_one, iterations_to, jobs_with

ROUNDED_SHARE = 1e-12  # of the starting excess: a smaller excess is rounding error


class Descent(NamedTuple):
    """A job's row, its step sizes (S,), and costs (S, K + 1) of its first start at every record."""

    job: Mapping[Any, Any]
    step_sizes: Array
    costs: Array

    @property
    def batch(self) -> int:
        """The points that a step sees."""
        return int(passes.batch_size(self.job))

    @property
    def excess(self) -> Array:
        """The costs above the least cost, (S, K + 1)."""
        return self.costs - number_in(self.job, names.MINIMUM.column)


def descents(sweep: Sweep) -> list[Descent]:
    """Return the descents of a sweep's jobs; a job without recorded arrays is left out."""
    return [  # the costs (S, K + 1) are those of the first start
        Descent(row, arrays["step_sizes"], arrays[names.TRAIN_COST.key][:, 0])
        for row, arrays in jobs_with(sweep, names.DESCENT_ARRAYS)
    ]


def passes_to(descent: Descent, share: float, least_cost: float | None = None) -> float:
    """Return the fewest passes over all step sizes until a share of the starting excess is left.

    It is infinite where no step size gets there.

    Args:
        descent: The descent.
        share: The share of the starting excess.
        least_cost: The cost from which the excess is measured; None for the recorded one.
    """
    records = passes.records_per_pass(descent.job)
    # (S, K + 1), one history a step size.
    excesses = descent.excess if least_cost is None else descent.costs - least_cost
    counts = [iterations_to(excess, share * excess[0]) for excess in excesses]
    return min(counts) / records


def critical_batch(sweep: Sweep) -> dict[str, float]:
    """Return the batch at which the largest stable step size bends, by scheme and features.

    `SCHEME_FEATURES` and `theory_SCHEME_FEATURES`: the measured knee and theory's, see `knees`.
    `worst`: the largest factor between a measured knee and theory's, 1 or more. `equal`: the ratio
    of the knee of standard to that of identity, for the number of features at which it is farthest
    from 1.
    """
    measured, theory = knees(sweep)
    ratios = [knee / theory[key] for key, knee in measured.items()]
    return {
        **measured,
        **{f"theory_{key}": knee for key, knee in theory.items()},
        "worst": max(max(ratio, 1 / ratio) for ratio in ratios),
        "equal": farthest_from_one(_standard_over_identity(measured)),
    }


def critical_batch_offset(sweep: Sweep) -> dict[str, float]:
    """Return the knees `SCHEME_FEATURES` of `knees` for points with an offset.

    `apart`: the smallest ratio of the knee of standard to that of identity.
    """
    measured, _ = knees(sweep)
    return measured | {"apart": min(_standard_over_identity(measured))}


def knees(sweep: Sweep) -> tuple[dict[str, float], dict[str, float]]:
    """Return the measured knee and theory's, each by `SCHEME_FEATURES`.

    The measured knee is the k that fits `a(P) m / (k + m - 1)` to the largest steps a(m) of
    `stable_runs`, by least squares of logarithms. m is the number of points of a batch, and P that
    of all points. Theory's knee is recorded by the jobs with batches.
    """
    stable: dict[str, dict[int, float]] = {}
    theory: dict[str, float] = {}
    for descent in descents(sweep):
        key = f"{descent.job['normalizer']}_{descent.job[names.setting('dataset.features')]}"
        is_stable = stable_runs(descent.excess)
        stable.setdefault(key, {})[descent.batch] = float(descent.step_sizes[is_stable].max())
        if passes.is_batched(descent.job):
            theory[key] = number_in(descent.job, names.KNEE.column)
    return {key: fit_knee(steps) for key, steps in stable.items()}, theory


def _standard_over_identity(measured: Mapping[str, float]) -> list[float]:
    """Return the ratio of the knee of standard to that of identity for each number of features.

    Args:
        measured: Knees by `SCHEME_FEATURES`.
    """
    return [
        knee / measured[key.replace("standard", "identity")]
        for key, knee in measured.items()
        if key.startswith("standard")
    ]


def stable_runs(excess: Array) -> NDArray[np.bool_]:
    """Return which runs are stable: they end below their start, and near their lowest excess.

    Args:
        excess: The excess of each run, (S, K + 1), NaN where it diverged.

    Returns:
        A mask (S,): whether the last excess is below the starting excess and below ten times the
        lowest one, which counts as at least the rounding error, `ROUNDED_SHARE` of the start.
    """
    rounding = ROUNDED_SHARE * excess[:, 0]
    lowest = np.maximum(np.fmin.reduce(excess, axis=1), rounding)
    last: Array = excess[:, -1]  # NaN, of a run that diverged, is not below anything
    return (last < excess[:, 0]) & (last < 10 * lowest)


def fit_knee(steps: Mapping[int, float]) -> float:
    """Return the k that fits `a(P) m / (k + m - 1)` to stable steps a(m), m up to P.

    Args:
        steps: The largest stable step by batch.

    Returns:
        The knee k, by least squares of logarithms.
    """
    from scipy.optimize import minimize_scalar

    batches = np.array(sorted(steps), dtype=float)
    logs = np.log([steps[int(batch)] for batch in batches])

    def misfit(log_knee: float) -> float:
        """Return the sum of squared residuals of the logarithms; a(P) is measured, not fitted."""
        return float(
            np.sum((logs - logs[-1] - np.log(batches / (np.exp(log_knee) + batches - 1))) ** 2)
        )

    # k is from 1 to P.
    return float(
        np.exp(minimize_scalar(misfit, bounds=(0, np.log(batches[-1])), method="bounded").x)
    )


BOUGHT_SHARES = {"1e-3": 1e-3, "1e-4": 1e-4}  # of the starting excess, by their names


def what_batches_buy(sweep: Sweep) -> dict[str, float]:
    """Return how many times fewer passes a batch takes than all points, at the best step sizes.

    `gain_SCHEME_BATCH_SHARE`: that gain, the passes of the full batch over those of the batch until
    that share of the starting excess is left. `law_SHARE`: the ratio of the gain to `P / (m + k)`
    that is farthest from 1, where k is the knee of theory, over the batches m of more than one
    point and the schemes other than pca_sphere. `fewest_SCHEME`: the fewest passes of a batch to
    1e-4; if they are less than 1, the gain is larger than the iterations of the full batch.
    """
    gains: dict[tuple[str, int, str], float] = {}
    laws: dict[str, list[float]] = {share: [] for share in BOUGHT_SHARES}
    fewest: dict[str, float] = {}
    jobs = descents(sweep)
    points = max(descent.batch for descent in jobs)
    for share, value in BOUGHT_SHARES.items():
        counts = {
            (str(descent.job["normalizer"]), descent.batch): passes_to(descent, value)
            for descent in jobs
        }
        for descent in jobs:
            scheme, batch = str(descent.job["normalizer"]), descent.batch
            if batch == points:  # the full batch is what the others are compared with
                continue
            gain = gains[scheme, batch, share] = counts[scheme, points] / counts[scheme, batch]
            if share == "1e-4":
                fewest[scheme] = min(fewest.get(scheme, np.inf), counts[scheme, batch])
            if batch > 1 and scheme != "pca_sphere":
                knee = number_in(descent.job, names.KNEE.column)
                laws[share].append(gain * (batch + knee) / points)  # over the law P / (m + k)
    return {
        **{
            f"gain_{scheme}_{batch}_{share}": gain for (scheme, batch, share), gain in gains.items()
        },
        **{f"law_{share}": farthest_from_one(ratios) for share, ratios in laws.items()},
        **{f"fewest_{scheme}": count for scheme, count in fewest.items()},
    }


RATIO_SCHEMES = ("standard", "pca_sphere")


def what_batches_buy_classes(sweep: Sweep) -> dict[str, float]:
    """Return how many times fewer passes the best batch takes than all points, by data set.

    `gain_DATA_SCHEME`: the ratio of passes to 1e-1 of the starting excess above the lowest cost
    seen, 0 where no batch gets there. Where all points do not get there, they count as one pass
    more than the descent has. `leads_DATA_SCHEME`: see `pass_of_lead`. `standard_over_sphered`: the
    smallest ratio, over the data sets, of the gain of standard to that of pca_sphere; NaN where
    both are 0 on a data set.
    """
    jobs = descents(sweep)
    gains: dict[str, float] = {}
    leads: dict[str, float] = {}
    data_sets = sorted({str(descent.job[names.DATASET.column]) for descent in jobs})
    for data in data_sets:
        of_data = [descent for descent in jobs if descent.job[names.DATASET.column] == data]
        lowest = min(float(np.nanmin(descent.costs)) for descent in of_data)
        for scheme in sorted({str(descent.job["normalizer"]) for descent in of_data}):
            of_scheme = [descent for descent in of_data if descent.job["normalizer"] == scheme]
            counts = {descent.batch: passes_to(descent, 1e-1, lowest) for descent in of_scheme}
            leads[f"leads_{data}_{scheme}"] = pass_of_lead(of_scheme)
            largest = max(of_scheme, key=lambda descent: descent.batch)
            count = (largest.costs.shape[1] - 1) // passes.records_per_pass(largest.job)  # passes K
            # The passes of the largest batch; K + 1 if it does not get there.
            full = min(counts.pop(largest.batch), count + 1)
            gains[f"{data}_{scheme}"] = full / min(counts.values())
    standard, sphered = (
        np.array([gains[f"{data}_{name}"] for data in data_sets]) for name in RATIO_SCHEMES
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # the gain is 0 where no batch gets there
        ratio = float(np.min(standard / sphered))
    numbers = {f"gain_{key}": gain for key, gain in gains.items()} | leads
    return numbers | {"standard_over_sphered": ratio}


def pass_of_lead(jobs: Sequence[Descent]) -> float:
    """Return the first pass at whose end no smaller batch has a lower cost than the largest one.

    A smaller one may be lower again later. The cost of a batch after a pass is the lowest over its
    step sizes. The result is infinite where a smaller batch has a lower cost after every pass.

    Args:
        jobs: The descents of one data set and scheme, one a batch.
    """
    lowest = {
        descent.batch: np.nanmin(descent.costs[:, :: passes.records_per_pass(descent.job)], axis=0)
        for descent in jobs
    }
    full = lowest.pop(max(lowest))  # the costs of the largest batch
    # Index 0 of `full` is the start, so that the first pass has the index 1.
    leading = np.flatnonzero(full[1:] <= np.min([*lowest.values()], axis=0)[1:])
    return float(leading[0] + 1) if len(leading) else float("inf")


def noise_floor(sweep: Sweep) -> dict[str, float]:
    """Return the excess of constant steps over the predicted noise floor, by order and step size.

    `ORDER_STEP`: the ratio of the mean excess, over the last 200 records and the seeds of the
    order, to the predicted `theory/noise_floor`.
    """
    steps = sweep.of_role(names.STEP)
    # The prediction by the id of the scheme run and the step size as text.
    floors = {
        (row["parent"], f"{float(row[names.STEP_TAG.column]):g}"): number_in(
            row, names.NOISE_FLOOR.column
        )
        for row in as_rows(steps)
    }
    ratios: dict[str, list[float]] = {}
    for descent in descents(sweep):
        order = descent.job[names.setting("batch_order")]
        for size, excess in zip(descent.step_sizes, descent.excess):
            floor = floors[descent.job["run_id"], f"{size:g}"]
            ratios.setdefault(f"{order}_{size:g}", []).append(float(excess[-200:].mean()) / floor)
    return {key: float(np.mean(values)) for key, values in ratios.items()}


def batch_statistics(sweep: Sweep) -> dict[str, float]:
    """Return what statistics of each batch cost, by scheme and batch.

    `cost_SCHEME_BATCH`: the lowest last cost of all step sizes. `zca_law`, `standard_law`: see
    `disturbances`.
    """
    numbers = {
        f"cost_{descent.job['normalizer']}_{descent.batch}": float(np.nanmin(descent.costs[:, -1]))
        for descent in descents(sweep)
    }
    # Without the number of features, of which this study has one.
    ratios = {key.partition("_")[0]: value for key, value in disturbances(sweep).items()}
    return numbers | {f"{scheme}_law": ratio for scheme, ratio in ratios.items()}


def disturbances(sweep: Sweep) -> dict[str, float]:
    """Return the ratio of a recorded disturbance to its law, by `SCHEME_FEATURES`.

    Of the ratios over the batches, the one that is farthest from 1. The law for a batch of m of the
    P points with N features is `N / (3 m)` for zca_sphere, if m is 2 N or more, and `1.5 / m` for
    standard. Batches of more than P / 16 points are left out, because their statistics are nearly
    those of all points.
    """
    ratios: dict[str, list[float]] = {}
    for row in as_rows(sweep.of_role(names.SCHEME)):
        features, batch = int(row[names.setting("dataset.features")]), passes.batch_size(row)
        laws = {"standard": 1.5 / batch}
        if batch >= 2 * features:
            laws["zca_sphere"] = features / (3 * batch)
        scheme = str(row["normalizer"])
        if scheme in laws and 16 * batch <= number_in(row, passes.TRAIN_POINTS):
            ratio = number_in(row, names.DISTURBANCE.column) / laws[scheme]
            ratios.setdefault(f"{scheme}_{features}", []).append(ratio)
    return {key: farthest_from_one(values) for key, values in ratios.items()}


def online_scaling(sweep: Sweep) -> dict[str, float]:
    """Return the slope of the fitted line relative to the least-squares slope, times 3.

    The source's line has the slope 3. `slope_POINTS`: of the recorded descent. `loop_POINTS`,
    `slow_POINTS`: of `online_line` over the recorded points, with the same step size for slope and
    intercept, and with a tenth of it for the intercept; only where all points are recorded, that
    is for up to 2,000 points.
    """
    rows = sweep.of_role(names.SCHEME)
    fits = sweep.arrays(rows, "fit")
    numbers = {}
    for row in as_rows(rows):
        fit = fits[row["label"]]
        count = str(row[names.setting("dataset.points")])
        slope = np.polyfit(fit["x"], fit["prediction"], 1)[0]  # of the line that the job drew
        inputs, targets = fit["points"].T
        exact_slope = np.polyfit(inputs, targets, 1)[0]
        numbers[f"slope_{count}"] = float(3 * slope / exact_slope)
        if len(inputs) < int(count):  # only some of the points are recorded
            continue
        step_size = float(row[names.STEP_TAG.column])
        for name, share in (("loop", 1.0), ("slow", 0.1)):
            slope = online_line(inputs, targets, step_size, share * step_size)
            numbers[f"{name}_{count}"] = float(3 * slope / exact_slope)
    return numbers


def online_line(inputs: Array, targets: Array, step_size: float, intercept_step: float) -> float:
    """Return the slope of a line after one pass of steps of one point each, in the points' order.

    An input is scaled by the minimum and maximum of those up to it; to 0 where these are equal.

    Args:
        inputs: The inputs `(P,)`.
        targets: The targets `(P,)`.
        step_size: The step size of the weight, for the squared error of a point.
        intercept_step: That of the intercept.

    Returns:
        The slope for the inputs as they are, under the last minimum and maximum.
    """
    lowest, highest = np.minimum.accumulate(inputs), np.maximum.accumulate(inputs)
    weight = intercept = 0.0
    for x, y, low, high in zip(inputs, targets, lowest, highest):
        scaled = (x - low) / (high - low) if high > low else 0.0
        gradient = 2 * (weight * scaled + intercept - y)
        weight -= step_size * gradient * scaled
        intercept -= intercept_step * gradient
    return float(weight / (highest[-1] - lowest[-1]))
