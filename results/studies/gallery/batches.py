"""The numbers of the studies in `conf/experiment/research` on batches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.results.compare import passes
from normbench.results.compare.reached import first_iteration_below
from normbench.results.store.rows import as_rows, number_in
from normbench.results.store.runs import Sweep

Array = NDArray[np.float64]
ROUNDED_SHARE = 1e-12  # of the starting excess: below, an excess is of rounding


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
    """Return the descents of a sweep's jobs."""
    jobs = []
    for experiment in sweep.experiments:  # of which each has labels of its own
        rows = sweep.of_role(names.SCHEME, experiment)
        arrays = sweep.arrays(rows, names.DESCENT_ARRAYS)
        for row in as_rows(rows):
            if (group := arrays.get(row["label"])) is not None:
                costs = group[names.TRAIN_COST.key][:, 0]
                jobs.append(Descent(row, group["step_sizes"], costs))
    return jobs


def passes_to(descent: Descent, share: float, least_cost: float | None = None) -> float:
    """Return the fewest passes, of all step sizes, to a share of the starting excess.

    Args:
        descent: The descent.
        share: The share.
        least_cost: The cost from which the excess is measured; None for the recorded one.
    """
    records = passes.records_per_pass(descent.job)
    excesses = descent.excess if least_cost is None else descent.costs - least_cost
    counts = [
        first_iteration_below(dict(enumerate(excess)), share * excess[0]) for excess in excesses
    ]
    return min(counts) / records


def critical_batch(sweep: Sweep) -> dict[str, float]:
    """Return the knee of the largest stable step over the batch, by scheme, features and offset.

    `SCHEME_FEATURES_OFFSET`: the k that fits `a(P) m / (k + m - 1)` to the largest steps a(m) of
    `stable_runs`, by least squares of logarithms. `worst`: the largest ratio of that
    to theory's, or of theory's to that. `apart_OFFSET`: the smallest ratio of the knee of standard
    to that of identity; `equal`: the largest one without an offset.
    """
    stable: dict[str, dict[int, float]] = {}
    theory: dict[str, float] = {}
    for descent in descents(sweep):
        features = descent.job[names.setting("dataset.features")]
        offset = float(descent.job[names.setting("dataset.offset")])
        key = f"{descent.job['normalizer']}_{features}_{offset:g}"
        is_stable = stable_runs(descent.excess)
        stable.setdefault(key, {})[descent.batch] = float(descent.step_sizes[is_stable].max())
        if passes.is_batched(descent.job):
            theory[key] = number_in(descent.job, names.KNEE.column)
    numbers = {key: fit_knee(steps) for key, steps in stable.items()}
    ratios = [max(knee / theory[key], theory[key] / knee) for key, knee in numbers.items()]
    apart = {
        offset: [
            knee / numbers[key.replace("standard", "identity")]
            for key, knee in numbers.items()
            if key.startswith("standard") and key.endswith(f"_{offset}")
        ]
        for offset in ("0", "3")
    }
    extremes = {"worst": max(ratios), "equal": max(apart["0"]), "apart": min(apart["3"])}
    return numbers | {f"theory_{key}": knee for key, knee in theory.items()} | extremes


def stable_runs(excess: Array) -> NDArray[np.bool_]:
    """Return which runs end below their start, and not above their lowest by over ten times.

    Args:
        excess: The excess of each run, (S, K + 1), NaN where it diverged.

    Returns:
        A mask (S,). An excess of rounding level is not compared.
    """
    rounding = ROUNDED_SHARE * excess[:, 0]
    lowest = np.maximum(np.fmin.reduce(excess, axis=1), rounding)
    last: Array = excess[:, -1]
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
        return float(
            np.sum((logs - logs[-1] - np.log(batches / (np.exp(log_knee) + batches - 1))) ** 2)
        )

    return float(
        np.exp(minimize_scalar(misfit, bounds=(0, np.log(batches[-1])), method="bounded").x)
    )


def what_batches_buy(sweep: Sweep) -> dict[str, float]:
    """Return how many times fewer passes a batch takes than all points, at the best step sizes.

    `gain_SCHEME_BATCH`: the ratio of passes to 1e-4 of the starting excess. `law`: the ratio of the
    gain to `P / (m + k)`, k the knee of theory, that is farthest from 1, of the batches 16 and 256
    and the schemes that do not sphere. `most`: the largest ratio of a gain to the iterations of the
    full batch.
    """
    counts: dict[tuple[str, int], float] = {}
    knees: dict[str, float] = {}
    for descent in descents(sweep):
        scheme = str(descent.job["normalizer"])
        counts[scheme, descent.batch] = passes_to(descent, 1e-4)
        if passes.is_batched(descent.job):
            knees[scheme] = number_in(descent.job, names.KNEE.column)
    points = max(batch for _, batch in counts)
    gains = {
        (scheme, batch): counts[scheme, points] / count
        for (scheme, batch), count in counts.items()
        if batch < points
    }
    laws = [
        gain * (batch + knees[scheme]) / points
        for (scheme, batch), gain in gains.items()
        if batch > 1 and scheme != "pca_sphere"
    ]
    return {
        **{f"gain_{scheme}_{batch}": gain for (scheme, batch), gain in gains.items()},
        "law": max(laws, key=lambda ratio: abs(np.log(ratio))),
        "most": max(gain / counts[scheme, points] for (scheme, _), gain in gains.items()),
    }


def what_batches_buy_classes(sweep: Sweep) -> dict[str, float]:
    """Return how many times fewer passes the best batch takes than all points, by data set.

    `gain_DATA_SCHEME`: the ratio of passes to 1e-1 of the starting excess above the lowest cost
    seen, 0 where no batch gets there; all points that do not take one more than there are.
    `standard_over_sphered`: the smallest ratio of two gains.
    """
    jobs = descents(sweep)
    gains: dict[str, float] = {}
    data_sets = sorted({str(descent.job[names.DATASET.column]) for descent in jobs})
    for data in data_sets:
        of_data = [descent for descent in jobs if descent.job[names.DATASET.column] == data]
        lowest = min(float(np.nanmin(descent.costs)) for descent in of_data)
        for scheme in sorted({str(descent.job["normalizer"]) for descent in of_data}):
            counts = {
                descent.batch: passes_to(descent, 1e-1, lowest)
                for descent in of_data
                if descent.job["normalizer"] == scheme
            }
            full = min(counts.pop(max(counts)), of_data[0].costs.shape[1])
            gains[f"{data}_{scheme}"] = full / min(counts.values())
    ratios = [gains[f"{data}_standard"] / gains[f"{data}_pca_sphere"] for data in data_sets]
    numbers = {f"gain_{key}": gain for key, gain in gains.items()}
    return numbers | {"standard_over_sphered": min(ratios)}


def noise_floor(sweep: Sweep) -> dict[str, float]:
    """Return how far above the formula's noise floor constant steps hover, by order and step.

    `ORDER_STEP`: the ratio of the mean excess, over the last 200 records and the seeds of the
    order, to the predicted `theory/noise_floor`.
    """
    steps = sweep.of_role(names.STEP)
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

    `cost_SCHEME_BATCH`: the lowest last cost of all step sizes. `zca_law`: the recorded disturbance
    of zca_sphere times 3 m / N, the farthest from 1, of batches from 4 N to P / 16.
    `standard_law`: that of standard times m / 1.5, of batches up to P / 16.
    """
    numbers: dict[str, float] = {}
    laws: dict[str, list[float]] = {"zca_law": [], "standard_law": []}
    for descent in descents(sweep):
        scheme, batch = str(descent.job["normalizer"]), descent.batch
        numbers[f"cost_{scheme}_{batch}"] = float(np.nanmin(descent.costs[:, -1]))
        features = int(descent.job[names.setting("dataset.features")])
        disturbance = number_in(descent.job, names.DISTURBANCE.column)
        if 16 * batch > int(
            descent.job[passes.TRAIN_POINTS]
        ):  # so few batches have all points' own
            continue
        if scheme == "zca_sphere" and batch >= 4 * features:
            laws["zca_law"].append(disturbance * 3 * batch / features)
        if scheme == "standard":
            laws["standard_law"].append(disturbance * batch / 1.5)
    return numbers | {
        key: max(ratios, key=lambda ratio: abs(np.log(ratio))) for key, ratios in laws.items()
    }


def online_scaling(sweep: Sweep) -> dict[str, float]:
    """Return `slope_POINTS`, three times the slope of the fitted line over that of the targets."""
    rows = sweep.of_role(names.SCHEME)
    fits = sweep.arrays(rows, "fit")
    numbers = {}
    for row in as_rows(rows):
        fit = fits[row["label"]]
        slope = np.polyfit(fit["x"], fit["prediction"], 1)[0]
        inputs, targets = fit["points"].T
        exact_slope = np.polyfit(inputs, targets, 1)[0]
        numbers[f"slope_{row[names.setting('dataset.points')]}"] = float(3 * slope / exact_slope)
    return numbers
