"""What the step sizes of a job came to: verdicts, targets, finer step sizes, held-out errors."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets import hold_out_fold
from normbench.datasets.on_disk.points import Points, as_array, is_in_memory
from normbench.engine.descent import Histories
from normbench.engine.problem import Problem
from normbench.engine.rounds import Rounds
from normbench.engine.settings import Settings
from normbench.measures.contract import (
    BEST_STEP,
    RULES,
    STEP_VERDICTS,
    UNKNOWN,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    measure,
)
from normbench.normalizers.decomposition import PointsCache
from normbench.theory.analysis import theorize
from normbench.theory.least_cost import find_least_cost
from normbench.verdicts import convergence, judging
from normbench.verdicts.convergence import Rules, shadow_tolerance_share
from normbench.verdicts.judging import JudgingContext, Shadows, Step, find_fastest
from normbench.verdicts.search import (
    DECIDED_BY_ROUNDING,
    Fewest,
    Search,
    bound_iterations,
    coarse_numbers,
    critical_step,
    fewest_iterations,
    fine_numbers,
    lattice_number,
    step_size_of,
)

REPORTED, EASIER = "1e-2", "1e-1"  # the target that is reported; where none reaches it, the easier
MAX_SMALL_PRODUCTS = 1e9  # of points and weights, over a descent that takes about a second
# The fields of `JudgingContext` that are recorded, by the names of their arrays.
NUMBER_FIELDS = ("minimum", "reference", "epsilon", "fit_seconds", "seconds_a_step")
COUNT_FIELDS = {
    "points": "compared_points",
    "batch": "batch",
    "records_per_pass": "records_per_pass",
}


def judge_descent(
    train: Problem,
    settings: Settings,
    rules: Rules,
    search: Search,
    start: Array,
    rounds: Rounds,
    histories: Histories,
    points_cache: PointsCache,
    seconds: tuple[float, float],
) -> JudgedDescent:
    """Judge the grid of a job: compute its theory and least cost, then the verdicts.

    Args:
        train: The training problem.
        settings: The settings of the descent.
        rules: The rules of judging.
        search: The settings of the search for the critical step size.
        start: The starting weights, `(starts, *shape)`.
        rounds: Descends further runs.
        histories: The histories of the grid.
        points_cache: The moments of the points of the data set, before the scheme.
        seconds: The seconds of the fit of the scheme, and of the descent of the grid.

    Returns:
        The judged descent.
    """
    theory = theorize(train, start[0], settings.theory)
    epsilon = float(np.finfo(start.dtype).eps)
    at_zero_weights = train.evaluate(np.zeros_like(start[:1]), with_gradient=False)
    reference = float(at_zero_weights.costs[0])
    # A positively homogeneous cost grows with the length of the weights, and so cannot compare
    # runs; the number of misclassified points does not change with that length.
    linear = train.linear
    compares_counts = linear and linear.traits.positively_homogeneous and train.classify
    compared_points = len(linear.targets) if linear and compares_counts else 0
    lowest = _find_lowest(histories, epsilon)
    # No run may have come below zero weights. Where counts are compared, the cost there is 0.
    if not compared_points and np.isfinite(reference):
        lowest = min(lowest, reference)
    proof = find_separating_weights(histories)
    solver_inputs = (train, points_cache, lowest, settings.theory, proof, theory.moments)
    least = find_least_cost(*solver_inputs)
    # Every finite cost but the start's took a step; with batches, a record's part of a pass.
    steps_made = int(np.isfinite(histories.cost).sum()) - len(histories.cost)
    has_tie = theory.exact and rounds.optimizer.plain and rounds.plan.batches is None
    context = JudgingContext(
        rules=rules,
        minimum=min(least.value, lowest),  # no higher than the lowest cost seen
        reference=reference,
        # At 2/L exactly, plain descent on a quadratic cost neither falls nor rises.
        tie_step_size=theory.threshold if has_tie else None,
        epsilon=epsilon,
        fit_seconds=seconds[0],
        # Records were counted: an iteration is `records_per_pass` of them.
        seconds_a_step=seconds[1] * settings.records_per_pass / max(1, steps_made),
        compared_points=compared_points,
        batch=settings.batch or 0,
        records_per_pass=settings.records_per_pass,
    )
    steps = judge_runs(histories, settings.step_sizes, context)
    best, chosen = judging.find_shown_step(steps, settings.shown_step)
    outcome = (theory, least, context, steps, best, chosen)
    return JudgedDescent(
        train, rounds.optimizer, settings, search, start, rounds, histories, *outcome
    )


def histories_by_key(histories: Histories) -> dict[str, NDArray[np.float64]]:
    """Return the histories `(R, K + 1)` of a descent, by the keys under which they are logged.

    Histories of misclassifications or of test points that do not exist are left out.
    """
    costs = (histories.cost, histories.misclassifications)
    test_costs = (histories.test_cost, histories.test_misclassifications)
    by_metric = zip(names.HISTORIES, (*costs, *test_costs))
    return {metric.key: history for metric, history in by_metric if history is not None}


def shadows_of(histories: Histories, context: JudgingContext) -> Shadows | None:
    """Return the last costs of the shadows of R runs, and their iterations to each target.

    A shadow is a run repeated from a start perturbed by rounding. Shadows record costs alone, so
    that targets of misclassified points count as unreached.

    Args:
        histories: The histories of the runs, with the costs of the shadows that some runs have.
        context: Holds the targets.

    Returns:
        Arrays `(R, M)`, with M the largest number of shadows of a run: NaN pads runs of fewer, and
        infinity stands for a shadow that diverged or misses the target. None without any shadow.
    """
    if not histories.shadows:
        return None
    shape = len(histories.cost), max(len(costs) for costs in histories.shadows.values())
    ends = np.full(shape, np.nan)
    iterations = {name: np.full(shape, np.nan) for name in context.targets}
    for run, costs in histories.shadows.items():
        ends[run, : len(costs)] = np.where(np.isnan(costs[:, -1]), np.inf, costs[:, -1])
        for name, goal in context.targets.items():
            arrivals = [convergence.arrival_iteration(cost, goal) for cost in costs]
            is_reached = np.isfinite(arrivals) & (not context.compared_points)
            iterations[name][run, : len(costs)] = np.where(is_reached, arrivals, np.inf)
    return Shadows(ends, iterations)


def judge_runs(
    histories: Histories, step_sizes: Sequence[float], context: JudgingContext
) -> tuple[Step, ...]:
    """Return a `Step` for each step size of some histories."""
    runs, shadows = histories_by_key(histories), shadows_of(histories, context)
    return judging.judge_steps(runs, histories.diverged_at, step_sizes, context, shadows)


def _find_lowest(histories: Histories, epsilon: float) -> float:
    """Return the lowest recorded cost of all runs; infinite where none is finite.

    Left out are runs whose end rounding decides: they end elsewhere than their shadows, the same
    runs from starts perturbed by rounding. Where all runs are such runs, all count.

    Args:
        histories: The histories of the grid.
        epsilon: Machine epsilon of the runs' type.
    """
    cost = histories.cost
    with np.errstate(all="ignore"):
        lowest_by_run = np.nanmin(cost, axis=1, initial=np.inf)
        tolerance = shadow_tolerance_share(epsilon) * (cost[:, 0] - lowest_by_run.min())
        is_reproducible = np.ones(len(cost), bool)
        for run, shadows in histories.shadows.items():
            distances = np.abs(shadows[:, -1] - cost[run, -1])
            is_reproducible[run] = np.all(distances <= tolerance[run])
    counted = lowest_by_run[is_reproducible] if is_reproducible.any() else lowest_by_run
    return float(counted.min(initial=np.inf))


def find_separating_weights(histories: Histories) -> Array | None:
    """Return weights that misclassify no training point, by which the least cost may be proved 0.

    They are the last weights of the run of lowest last cost among those that misclassify no point
    at their end; None where every run misclassifies some, and for real targets.
    """
    counts = histories.misclassifications
    if counts is None or not np.any(counts[:, -1] == 0):
        return None
    ends = np.where(counts[:, -1] == 0, histories.cost[:, -1], np.inf)
    return np.asarray(histories.weights[np.argmin(ends)])


@measure()
def histories(job: FinishedJob) -> Findings:
    """Return the histories of S step sizes, each from A starts, of K iterations, as arrays.

    `step_sizes` (S,). The recorded histories by the keys under which they are logged,
    (S, A, K + 1), NaN from the iteration at which a run stopped being finite. `diverged_at` (S, A)
    is that iteration, -1 for a finite run. Where any run has a shadow, the same run from a start
    perturbed by rounding: `shadows` (S, A, M), the last costs of shadows, and `shadows_reached`
    (S, A, M, T), their iterations to each target. `minimum`, `reference` (the cost at zero
    weights), `tie` (NaN for none), `epsilon`, `fit_seconds`, `seconds_a_step`, `points`, `batch`,
    `records_per_pass`, each (): see `JudgingContext`. A tag marks an optimizer that finds its own
    step sizes: its recorded step size 1 is a placeholder.
    """
    descent = job.descent
    context = descent.judging_context
    runs = histories_by_key(descent.histories) | {"diverged_at": descent.histories.diverged_at}
    shadows = shadows_of(descent.histories, context)
    if shadows is not None:
        reached = [shadows.reached[name] for name in names.TARGETS]
        runs |= {"shadows": shadows.ends, "shadows_reached": np.stack(reached, -1)}
    by_step = (len(descent.steps), len(descent.start))
    fields = {name: name for name in NUMBER_FIELDS} | COUNT_FIELDS
    return Findings(
        tags={names.GRIDLESS.key: "true"} if descent.optimizer.gridless else {},
        arrays={
            "step_sizes": np.array([step.step_size for step in descent.steps]),
            **{name: array.reshape(*by_step, *array.shape[1:]) for name, array in runs.items()},
            **{name: np.array(getattr(context, field)) for name, field in fields.items()},
            "tie": np.array(context.tie_step_size or np.nan),
        },
    )


def rejudge_histories(arrays: Mapping[str, Array], rules: Rules) -> tuple[Step, ...]:
    """Judge recorded histories again, by other rules.

    Args:
        arrays: The recorded arrays of `histories`, by their names.
        rules: The thresholds of the verdicts.

    Returns:
        A `Step` for each step size, in their recorded order.
    """
    tie = float(arrays["tie"])
    numbers: dict[str, Any] = {name: float(arrays[name]) for name in NUMBER_FIELDS}
    # A count that an older record lacks has the default of `JudgingContext`.
    numbers |= {field: int(arrays[name]) for name, field in COUNT_FIELDS.items() if name in arrays}
    context = JudgingContext(rules, tie_step_size=None if np.isnan(tie) else tie, **numbers)
    # The runs, one for each step size and start, in one row: (R, K + 1).
    runs = {
        metric.key: arrays[metric.key].reshape(-1, arrays[metric.key].shape[-1])
        for metric in names.HISTORIES
        if metric.key in arrays
    }
    shadows = None  # recorded only where some run has one
    if "shadows" in arrays:
        ends = arrays["shadows"].reshape(-1, arrays["shadows"].shape[-1])
        counts = arrays["shadows_reached"].reshape(*ends.shape, -1)
        shadows = Shadows(ends, dict(zip(names.TARGETS, np.moveaxis(counts, -1, 0))))
    sizes = [float(size) for size in arrays["step_sizes"]]
    return judging.judge_steps(runs, arrays["diverged_at"].reshape(-1), sizes, context, shadows)


@measure(depends_on=STEP_VERDICTS)
def grid(job: FinishedJob) -> Findings:
    """Return the findings of the grid of a job, see `summarize_grid`."""
    return summarize_grid(job.descent.steps, job.descent.chosen)


def summarize_grid(steps: Sequence[Step], chosen: bool) -> Findings:
    """Return the largest convergent and falling step sizes, and how many step sizes converged.

    A tag for each of the two largest says whether no larger step size failed, so that the grid ends
    too early to show the limit (`censored`).

    Args:
        steps: The judged step sizes of the grid.
        chosen: Whether the setting `shown_step` chose the step size that represents the scheme;
            the tag `step_chosen` then says so.
    """
    convergent, falling = judging.largest_convergent(steps), judging.largest_falling(steps)
    metrics = {
        names.LARGEST_CONVERGENT.key: convergent.step_size or UNKNOWN,
        names.LARGEST_FALLING.key: falling.step_size or UNKNOWN,
        names.STEPS_LEVELLED.key: sum(step.verdict == names.CONVERGED for step in steps),
    }
    tags = {
        names.CENSORED.key: str(convergent.censored).lower(),
        names.CENSORED_FALLING.key: str(falling.censored).lower(),
        **({names.STEP_CHOSEN.key: "true"} if chosen else {}),
    }
    return Findings(metrics, tags)


@measure()
def least_cost(job: FinishedJob) -> Findings:
    """Return the least cost, its gradient norm, its source, and the targets that follow from it.

    The targets are counts where step sizes are compared by misclassified points, and a tag says so.
    Otherwise they are costs.
    """
    least, context = job.descent.least, job.descent.judging_context
    # No higher than the lowest recorded cost, as the targets that runs are judged by.
    metrics = {names.MINIMUM.key: context.minimum, names.MINIMUM_GRADIENT.key: least.gradient_norm}
    metrics |= {names.target(name).key: goal for name, goal in context.targets.items()}
    tags = {
        names.MINIMUM_SOURCE.key: least.source,
        names.MINIMUM_REACHED.key: str(least.is_solved).lower(),
        names.AT_INFINITY.key: str(least.at_infinity).lower(),
        names.MINIMUM_CASE.key: least.case,
    }
    if context.compared_points:
        tags[names.COMPARED.key] = names.MISCLASSIFICATIONS
    return Findings(metrics, tags)


@measure(on_request=True, depends_on=RULES)
def critical(job: FinishedJob) -> Findings:
    """Return the bracket of the critical step size, and the number of descents of the search.

    The critical step size is the smallest that fails, see `Judgement.fails`; each round of the
    bisection descends a few step sizes. An end of the bracket is NaN where nothing passed, or
    nothing failed. The tag says whether the search ended without a failure, so that the bracket has
    no upper end. Nothing where the user did not ask for it.
    """
    descent = job.descent
    if not descent.search.critical:
        return Findings()

    def fails(step_sizes: Sequence[float]) -> list[bool]:
        """Descend step sizes from all starts; return for each whether it was too large."""
        histories = descent.rounds.descend(step_sizes, is_grid=False)
        steps = judge_runs(histories, step_sizes, descent.judging_context)
        return [step.judgement.fails for step in steps]

    threshold = descent.theory.threshold or np.inf
    first = threshold if np.isfinite(threshold) else descent.settings.step_sizes[0]
    # Half of it: the first descent then has step sizes on both sides of 2/L.
    bracket = critical_step(fails, first / 2, descent.search.width)
    metrics = {
        names.CRITICAL.key: bracket.lower or np.nan,
        names.CRITICAL_UPPER.key: bracket.upper or np.nan,
        names.CRITICAL_DESCENTS.key: bracket.descents,
    }
    return Findings(metrics, {names.CENSORED_CRITICAL.key: str(bracket.upper is None).lower()})


@measure()
def targets(job: FinishedJob) -> Findings:
    """Return iterations and seconds to each target, the step size, and a bound of the iterations.

    They are those of the best step size for the target, and NaN where no step size reaches it. Step
    sizes beside the grid lie on a lattice `10^(n/16)` and are named by the number n, see
    `verdicts.search`. `refined_step_sizes` (S,) are these step sizes, with their training costs
    `refined_cost` (S, A, K + 1) from A starts. The tag `refined` is JSON: `numbers`, the lattice
    numbers of these step sizes; for each target, the iterations of each step size; `targets`, the
    targets whose number of iterations is that of finer step sizes, or which finer ones were found
    not to reach either; and `by_rounding`, the numbers of the step sizes whose runs rounding
    decides, where there are any.
    """
    descent = job.descent
    # By lattice number, which is no integer for a step size of the grid beside the lattice.
    grid = {lattice_number(step.step_size): step for step in descent.steps}
    tried, finer_costs = dict(grid), dict[int, Array]()
    windows = _descend_finer(job, tried, finer_costs)
    metrics: dict[str, float] = {}
    counts = {target: _count_iterations(tried, target) for target in names.TARGETS}
    refined = []
    for target, target_counts in counts.items():
        window = windows.get(target)
        # None where no step size of the window reaches it, or only isolated ones do.
        fewest = fewest_iterations(target_counts, window) if window else None
        best = min(sorted(grid), key=lambda number: target_counts[number])
        is_reached = np.isfinite(target_counts[best])
        if fewest or (window == [] and not is_reached):
            refined.append(target)
        elif is_reached:  # by the grid alone; other step sizes still bound the iterations
            bounded = bound_iterations(target_counts[best], best, target_counts)
            fewest = bounded._replace(step_size=grid[best].step_size)  # as the user wrote it
        metrics |= _target_metrics(descent, tried, target, fewest)
    if not refined and not finer_costs:
        return Findings(metrics)
    numbers = sorted(finer_costs)
    finite_counts = {
        target: [counts[target][n] if np.isfinite(counts[target][n]) else None for n in numbers]
        for target in names.TARGETS
    }
    facts = {"numbers": numbers, **finite_counts, "targets": refined}
    unsure = [number for number in numbers if tried[number].verdict == names.BY_ROUNDING]
    if unsure:
        facts[DECIDED_BY_ROUNDING] = unsure
    arrays = {}
    if numbers:
        arrays["refined_step_sizes"] = np.array([step_size_of(n) for n in numbers])
        arrays["refined_cost"] = np.stack([finer_costs[number] for number in numbers])
    return Findings(metrics, {names.REFINED.key: json.dumps(facts)}, arrays=arrays)


def _descend_finer(
    job: FinishedJob, tried: dict[float, Step], finer_costs: dict[int, Array]
) -> dict[str, list[int]]:
    """Descend coarse step sizes around the best of the grid, then fine ones around these.

    Args:
        job: The finished job.
        tried: The steps by lattice number, to which the finer ones are added.
        finer_costs: Gets the training costs (A, K + 1) of the finer step sizes, by lattice number.

    Returns:
        By target, the lattice numbers of its fine step sizes; empty where no coarse one reaches
        the target. Targets that are not refined are left out, as are all where no run is ranked.
    """
    descent = job.descent

    def descend(numbers_by_target: Iterable[list[int]]) -> None:
        """Descend and add those step sizes that were not tried."""
        missing = sorted(set(chain.from_iterable(numbers_by_target)) - tried.keys())
        if missing:
            sizes = [step_size_of(number) for number in missing]
            histories = descent.rounds.descend(sizes, is_grid=False)
            tried.update(zip(missing, judge_runs(histories, sizes, descent.judging_context)))
            costs = histories.cost.reshape(len(sizes), len(descent.start), -1)
            finer_costs.update(zip(missing, costs))

    windows = {}
    for target in _refined_targets(job):
        best = find_fastest(descent.steps, names.reached(target))
        if best is None:  # the grid misses the target
            best = find_fastest(descent.steps, names.TO_LOWEST)
        if best is not None:
            windows[target] = coarse_numbers(descent.steps[best].step_size)
    descend(windows.values())
    for target, numbers in windows.items():
        counts = _count_iterations({number: tried[number] for number in numbers}, target)
        centre = min(counts, key=lambda number: counts[number])
        windows[target] = fine_numbers(int(centre)) if counts[centre] < np.inf else []
    descend(windows.values())
    return windows


def _refined_targets(job: FinishedJob) -> Iterable[str]:
    """Return the targets to which finer step sizes are tried.

    They are all with `refine=true`. With `auto` it is the one that is reported; where the grid
    misses it, both that may be, if the descent is small. None are where points are read from a
    disk, since they would be read again for each descent.
    """
    descent, settings = job.descent, job.descent.settings
    if settings.refine is False or settings.iterations == 0 or descent.optimizer.gridless:
        return ()
    if settings.refine is True:
        return names.TARGETS
    if not is_in_memory(job.dataset.x):
        return ()
    if find_fastest(descent.steps, names.reached(REPORTED)) is not None:
        return (REPORTED,)
    weights = descent.start.size * len(descent.steps)  # of all runs
    is_small = weights * settings.iterations * len(job.dataset.x) <= MAX_SMALL_PRODUCTS
    return (EASIER, REPORTED) if is_small else ()


def _count_iterations(tried: Mapping[float, Step], target: str) -> dict[float, float]:
    """Return the iterations to a target by lattice number, infinite where it is not reached."""
    key = names.reached(target).key
    counts = {number: step.metrics.get(key, UNKNOWN) for number, step in sorted(tried.items())}
    return {number: np.inf if np.isnan(count) else count for number, count in counts.items()}


def _target_metrics(
    descent: JudgedDescent,
    tried: Mapping[float, Step],
    target: str,
    fewest: Fewest | None,
) -> dict[str, float]:
    """Return the metrics of a target, by their keys.

    Args:
        descent: The judged descent, which has the seconds of the fit and of an iteration.
        tried: All step sizes that were tried, by lattice number, for the quartiles over the starts.
        target: The name of the target.
        fewest: The fewest iterations to the target; None where no step size reaches it.
    """
    iterations, size, least = fewest or (UNKNOWN, UNKNOWN, UNKNOWN)
    context = descent.judging_context
    metrics = {
        names.best_step_for_target(target).key: size,
        names.reached(target).key: iterations,
        names.reached(target, "seconds").key: (
            context.fit_seconds + iterations * context.seconds_a_step
        ),
        names.least(target).key: least,
    }
    step_metrics = tried[lattice_number(size)].metrics if fewest else {}
    for unit in names.MEASURES:
        for quartile_name in names.QUARTILES:
            quartile = names.quartile(names.reached(target, unit), quartile_name).key
            # A single start has no quartiles. Of several, an unreached target has NaN.
            if quartile in step_metrics or len(descent.start) > 1:
                metrics[quartile] = step_metrics.get(quartile, UNKNOWN)
    return metrics


@measure(on_request=True, depends_on=BEST_STEP)
def folds(job: FinishedJob) -> Findings:
    """Return the error and the cost of held-out points at the last iteration, by seed.

    Numbers are the means over the seeds; series hold one value for each seed. The training cost of
    a seed is the mean over its folds. The step size is the one that represents the scheme. For each
    fold the scheme is fitted, and the cost is descended, on the points outside the fold and on
    their noisy copies, if any. The error of a seed is that of all points, each under the descent
    that held it out. The folds of one seed share their data, so that a seed gives one value.
    Several starts are averaged. Nothing of a data set without folds.
    """
    data = job.dataset
    if not data.folds:
        return Findings()
    assert job.descend_dataset is not None
    misclassified, cost, train_cost = np.zeros((3, len(data.folds)))  # by seed
    # `data.folds` has for each seed the fold of every point, (P,).
    for seed, fold_of_point in enumerate(data.folds):
        fold_count = fold_of_point.max() + 1
        for fold in range(fold_count):
            fold_data = hold_out_fold(data, seed, fold)
            histories = job.descend_dataset(fold_data, job.descent.best_step.step_size)
            assert histories.test_cost is not None
            train_cost[seed] += histories.cost[:, -1].mean() / fold_count
            # Weighted by the points held out, so that the sum over P is a mean over all points.
            cost[seed] += len(fold_data.x_test) * histories.test_cost[:, -1].mean()
            if histories.test_misclassifications is not None:
                misclassified[seed] += histories.test_misclassifications[:, -1].mean()
    points, seeds = len(data.folds[0]), np.arange(len(data.folds))
    values_by_metric = {names.FOLDS_COST: cost / points, names.FOLDS_TRAIN_COST: train_cost}
    if data.classes:
        values_by_metric[names.FOLDS_ERROR] = misclassified / points
    return Findings(
        {metric.key: float(values.mean()) for metric, values in values_by_metric.items()},
        series={
            names.of_seed(metric).key: (seeds, values)
            for metric, values in values_by_metric.items()
        },
    )


@measure()
def own_units(job: FinishedJob) -> Findings:
    """Return the cost and the root mean square error of each step size at its last iteration.

    Both are of the training points, and of the test points if there are any. Predictions are mapped
    back by the inverse of the scheme of the targets, and compared with the targets in their own
    units, without the penalty. Numbers are medians over the starts. A step size with a run that
    stopped being finite has none, as has a job whose targets are under no scheme, or whose scores
    are not linear.
    """
    own_targets, descent = job.dataset.own_targets, job.descent
    if own_targets is None or descent.train.linear is None:
        return Findings()
    values = dict(zip((names.OWN_COST, names.OWN_ERROR), _evaluate(job, job.z, own_targets.y)))
    if job.z_test is not None and len(job.z_test):
        test_values = _evaluate(job, job.z_test, own_targets.y_test)
        values |= zip((names.OWN_TEST_COST, names.OWN_TEST_ERROR), test_values)
    # The runs of a step size, one for each start, are consecutive.
    by_step = (-1, len(descent.start))
    medians = {key: np.median(runs.reshape(by_step), axis=1) for key, runs in values.items()}
    is_finite = (descent.histories.diverged_at < 0).reshape(by_step).all(axis=1)
    return Findings(
        of_steps={
            int(n): {metric.key: float(row[n]) for metric, row in medians.items()}
            for n in np.flatnonzero(is_finite)
        }
    )


def _evaluate(job: FinishedJob, points: Points, y: Array) -> tuple[Array, Array]:
    """Return the mean cost and the root mean square error of each run, in the targets' own units.

    Args:
        job: The finished job, whose R runs are evaluated at their last weights.
        points: Points under the scheme (p, M).
        y: The targets of these points in their own units (p,).

    Returns:
        Costs `(R,)` and errors `(R,)`.
    """
    own_targets, linear = job.dataset.own_targets, job.descent.train.linear
    assert own_targets is not None
    assert linear is not None
    runs, x = job.descent.histories.weights, as_array(points)
    costs, squares = np.zeros((2, len(runs)))
    # The last weights of a run that diverged are huge or not finite; `own_units` leaves it out.
    with np.errstate(over="ignore", invalid="ignore"):
        for run, weights in enumerate(runs):
            predictions = own_targets.invert(linear.scores(weights, x)[0])
            # A cost takes scores (R, C, p) and returns sums over the points, one for each run.
            costs[run] = linear.cost(predictions[None, None], y)[0]
            squares[run] = np.sum((predictions - y) ** 2)
    return costs / len(y), np.sqrt(squares / len(y))
