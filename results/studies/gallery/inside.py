"""The numbers of the studies in `conf/experiment/research` on normalization inside models."""

import math
from ast import literal_eval
from typing import Any

import numpy as np

from normbench import names
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep
from normbench.results.studies.gallery import Array, jobs_with, last_costs
from normbench.results.studies.gallery.batches import Descent, descents
from normbench.results.studies.gallery.networks import HIDDEN, INSIDE, START_SCALE_SETTING

MODEL_AFFINE, AFFINE_STEP = names.setting("model.affine"), names.setting("model.affine_step")
MODEL_EPSILON, L2_SETTING = names.setting("model.epsilon"), names.setting("cost.l2")
OPTIMIZER_SETTING = names.setting("optimizer")
CONDITION_SETTING = names.setting("dataset.condition_number")
BATCH_SETTING, METHOD_SIGNS = names.setting("batch"), names.setting("model.signs")
NEWTON_ITERATIONS = names.setting("model.newton_iterations")
FIT_ON_SETTING = names.setting("dataset.fit_on")
HELD_OUT_SHARE = names.setting("dataset.test_fraction")
MOST_POINTS = 50  # training points, of 60
STABLE = 0.95  # of the sharpness times half the step size, where 1 is the edge of stability
LARGE_STEP = 1e3  # from here on a normalized linear model levels above its least cost
SHARED_STEP = "shared"  # gain and shift have the run's step size


def bn_any_step(sweep: Sweep) -> dict[str, float]:
    """Return how the descents of a normalized linear model end, by the treatment of gain and shift.

    AFFINE is the treatment: `solved`, `absent`, `own` (gain and shift have their own step size) or
    `shared` (they have the run's). `infinite_AFFINE`: the number of runs with a final cost that is
    not finite. `up_AFFINE`: the number of runs that do not end below their start, including those.
    `first_AFFINE`: the smallest step size of the runs counted by `up_AFFINE`. `least_left_AFFINE`,
    `most_left_AFFINE`: the smallest and the largest share of the starting excess that is left at
    step sizes of 1000 or more, not for `shared`; the excess is above the lowest cost of the
    descent.
    """
    numbers: dict[str, float] = {}
    for descent in descents(sweep):
        affine = _affine(descent)
        if affine is None:  # a copy of another job
            continue
        ends, starts = descent.costs[:, -1], descent.costs[:, 0]
        is_up, is_infinite = ~(ends < starts), ~np.isfinite(ends)  # NaN counts as up
        infinite = f"infinite_{affine}"
        numbers[infinite] = numbers.get(infinite, 0.0) + float(is_infinite.sum())
        numbers[f"up_{affine}"] = numbers.get(f"up_{affine}", 0.0) + float(is_up.sum())
        first = float(descent.step_sizes[is_up].min(initial=np.inf))
        numbers[f"first_{affine}"] = min(numbers.get(f"first_{affine}", np.inf), first)
        if affine == SHARED_STEP:  # the share that is left is not stated for it
            continue
        lowest = np.nanmin(descent.costs)
        left = ((ends - lowest) / (starts - lowest))[descent.step_sizes >= LARGE_STEP]
        least, most = f"least_left_{affine}", f"most_left_{affine}"
        numbers[least] = min(numbers.get(least, np.inf), float(left.min()))
        numbers[most] = max(numbers.get(most, 0.0), float(left.max()))
    return numbers


def _affine(descent: Descent) -> str | None:
    """Return the treatment of gain and shift in a job: AFFINE in the keys of `bn_any_step`.

    It is None for a job that sets a step size for gain and shift although they take no steps. That
    job repeats the one without this setting.
    """
    affine = str(descent.job[MODEL_AFFINE])
    has_own_step = str(descent.job[AFFINE_STEP]) != "None"
    # `True`: gain and shift are trained.
    if affine == "True":
        return "own" if has_own_step else SHARED_STEP
    if has_own_step:
        return None
    return "solved" if affine == "solved" else "absent"


def scale_invariance(sweep: Sweep) -> dict[str, float]:
    """Return how descents change if the start is scaled by c and the step size by c^2.

    `OPTIMIZER_CHANGE_c`: the largest relative difference of the costs to those of the unscaled
    descent, over all records. CHANGE is `none`, `epsilon`, `l2` or `both`.
    `norms_OPTIMIZER_CHANGE`: the smallest ratio of the length of the weights in a record to that in
    the record before, at the best step size, over all c.
    """
    runs: dict[tuple[str, str], dict[float, Descent]] = {}
    numbers: dict[str, float] = {}
    for descent in descents(sweep):
        # Jobs of one key differ in the scale of the start alone.
        key = str(descent.job[OPTIMIZER_SETTING]), _change(descent.job)
        runs.setdefault(key, {})[float(descent.job[START_SCALE_SETTING])] = descent
    for (optimizer, change), of_scale in runs.items():
        for scale in sorted(of_scale)[1:]:  # the first is 1, the unscaled start
            scaled, own = of_scale[scale], of_scale[1.0]
            # The one pair of step sizes, of the unscaled and of the scaled start, that correspond.
            (pair,) = (
                (i, j)
                for i, size in enumerate(own.step_sizes)
                for j, larger in enumerate(scaled.step_sizes)
                if np.isclose(size * scale**2, larger, rtol=1e-9)
            )
            differences = np.abs(scaled.costs[pair[1]] / own.costs[pair[0]] - 1)
            numbers[f"{optimizer}_{change}_{scale:g}"] = float(differences.max())
    for job, arrays in jobs_with(sweep, "path"):
        lengths = np.linalg.norm(arrays["weights"], axis=-1)
        name = f"norms_{job[OPTIMIZER_SETTING]}_{_change(job)}"
        smallest = float((lengths[1:] / lengths[:-1]).min())
        numbers[name] = min(numbers.get(name, np.inf), smallest)
    return numbers


def _change(job: Any) -> str:
    """Return which of epsilon and l2 a job has: CHANGE in the keys of `scale_invariance`.

    Each of them breaks the invariance to the scale of the weights.

    Returns:
        `epsilon`, `l2`, `both` or `none`.
    """
    changes = [
        name
        for name, key in (("epsilon", MODEL_EPSILON), ("l2", L2_SETTING))
        if float(job[key]) > 0
    ]
    return "both" if len(changes) == 2 else "".join(changes) or "none"


def edge_of_stability(sweep: Sweep) -> dict[str, float]:
    """Return statistics of s, the sharpness times half the step size, along descents by scheme.

    Each descent has one step size. At the step size for which s is from 1 to 2 at the start:
    `median_SCHEME`, `low_SCHEME` and `high_SCHEME` are the median and the 5 and 95 percent
    quantiles over the second half of the iterations, and `arrival_SCHEME` is the recorded iteration
    from which s stays at 0.95 or above, infinite if there is none. `arrivals_apart`: the latest
    arrival minus the earliest. `small_SCHEME`: the largest s in the second half of the iterations
    at smaller step sizes.
    """
    numbers: dict[str, float] = {}
    for row in as_rows(sweep.of_role(names.SCHEME)):
        series = sweep.series(row["run_id"], names.SHARPNESS.key)
        if not series:  # the job recorded no sharpness
            continue
        iterations = np.array(sorted(series))
        values = np.array([series[k] for k in iterations])
        scheme, tail = row["normalizer"], values[iterations >= iterations[-1] / 2]
        # The value at the start says which step size this is: below the edge of stability, or from
        # 1 to 2; of larger ones nothing is returned.
        if values[0] < 1:
            numbers[f"small_{scheme}"] = max(numbers.get(f"small_{scheme}", 0.0), float(tail.max()))
        elif values[0] <= 2:
            numbers[f"median_{scheme}"] = float(np.median(tail))
            numbers[f"low_{scheme}"], numbers[f"high_{scheme}"] = np.quantile(tail, [0.05, 0.95])
            below = np.flatnonzero(values < STABLE)
            after = int(below[-1]) + 1 if len(below) else 0  # past the end if the last is below
            numbers[f"arrival_{scheme}"] = float([*iterations, np.inf][after])
    arrivals = [number for name, number in numbers.items() if name.startswith("arrival_")]
    return numbers | {"arrivals_apart": max(arrivals) - min(arrivals)}


def rank_and_gradients(sweep: Sweep) -> dict[str, float]:
    """Return ranks and gradients of the layers at the start, as `QUANTITY_INSIDE_START_LAYERS`.

    START is the scale of the start, LAYERS the number of hidden layers. `rank`: the participation
    ratio of the last hidden layer's values. `root`: that over the root of its number of units.
    `growth`: the geometric mean of the squared gradient of a layer over that of the next one, over
    the hidden layers without the first and the last.
    """
    numbers: dict[str, float] = {}
    for job, arrays in jobs_with(sweep, "by_layer"):
        units = literal_eval(job[HIDDEN])
        key = f"{job[INSIDE]}_{job[START_SCALE_SETTING]}_{len(units)}"
        rank = float(arrays[names.LAYER_RANK.key][0, len(units) - 1])
        # At the start (record 0), of the hidden layers without the first and the last.
        squares = arrays[names.LAYER_GRADIENT.key][0, 1 : len(units) - 1] ** 2
        numbers[f"rank_{key}"] = rank
        numbers[f"root_{key}"] = rank / math.sqrt(units[-1])
        steps = len(squares) - 1  # from the first of these layers to the last
        if steps > 0 and squares.min() > 0:
            numbers[f"growth_{key}"] = float((squares[0] / squares[-1]) ** (1 / steps))
    return numbers


def small_batches(sweep: Sweep) -> dict[str, float]:
    """Return the training cost over that of the plain network after equally many updates, by batch.

    `INSIDE_BATCH`: that ratio of the lowest final costs over the step sizes, where a final cost is
    the median over the starts. `loss_of_small`: for batch normalization, the ratio at the smallest
    batch over the ratio at the largest.
    """
    lowest = {}  # by the normalization inside and the batch
    for row, costs in last_costs(sweep):
        lowest[str(row[INSIDE]), str(row[BATCH_SETTING])] = float(np.nanmin(costs))
    numbers = {
        f"{inside}_{batch}": cost / lowest["none", batch]
        for (inside, batch), cost in lowest.items()
    }
    sizes = sorted({int(batch) for _, batch in lowest})
    return numbers | {"loss_of_small": numbers[f"batch_{sizes[0]}"] / numbers[f"batch_{sizes[-1]}"]}


def whitening_inside(sweep: Sweep) -> dict[str, float]:
    """Return final costs of the methods of whitening relative to ZCA.

    `METHOD_SIGNS`: the lowest final cost over the step sizes, over that of ZCA. `stalls`: the
    smallest ratio, over the step sizes, of the final cost of PCA with free signs to that of ZCA at
    the same step size. `newton_T`: the lowest final cost with T iterations of Newton's method, over
    that with the most iterations.
    """
    # By method, signs and iterations of Newton's method: the last costs (S,).
    costs: dict[tuple[str, str, int], Array] = {}
    for row, last in last_costs(sweep):
        key = str(row[INSIDE]), str(row[METHOD_SIGNS]), int(row[NEWTON_ITERATIONS])
        costs[key] = last
    counts = sorted({count for method, _, count in costs if method == "newton"})
    numbers: dict[str, float] = {}
    for (method, signs, count), last in costs.items():
        if method == "newton":
            most = costs[method, signs, counts[-1]]
            numbers[f"newton_{count}"] = float(np.nanmin(last) / np.nanmin(most))
        else:
            zca = costs["zca", signs, count]
            numbers[f"{method}_{signs}"] = float(np.nanmin(last) / np.nanmin(zca))
            if (method, signs) == ("pca", "free"):
                numbers["stalls"] = float(np.nanmin(last / zca))
    return numbers


def whitened_networks(sweep: Sweep) -> dict[str, float]:
    """Return `FITTED_POINTS`, the share of misclassified test points over all splits.

    FITTED: the points that the scheme was fitted on, `train` or `all`. POINTS: the number of
    training points, or `most` for all splits with 50 training points or more.
    """
    missed: dict[str, list[Any]] = {}
    for row in as_rows(sweep.of_role(names.SCHEME)):
        points = int(row["train_points"])
        # Misclassified test points, and all test points.
        pair = row[names.FINAL_TEST_MISCLASSIFICATIONS.column], row["test_points"]
        # A job counts for its own number of points, and perhaps for `most`.
        for size in [str(points), *(["most"] if points >= MOST_POINTS else [])]:
            missed.setdefault(f"{row[FIT_ON_SETTING]}_{size}", []).append(pair)
    # All misclassified test points over all test points.
    return {key: float(np.divide(*np.sum(pairs, axis=0))) for key, pairs in missed.items()}
