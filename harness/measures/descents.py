"""What a descent is like: curvature, 2/L, layers, predictions, batches, and networks inside."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.datasets.on_disk.points import is_in_memory
from normbench.engine.hessian import MAX_MATRIX_WEIGHTS, Hessian
from normbench.engine.problem import Problem
from normbench.measures.contract import (
    BEST_STEP,
    NOT_LINEAR,
    UNKNOWN,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    gradient_at,
    measure,
    scheduled_step_sizes,
)
from normbench.normalizers.decomposition import moment_rows, singular_values
from normbench.settings import FITTED, RUNNING_STATISTICS, WINDOW_STATISTICS
from normbench.theory import batches as limits
from normbench.theory import sizes, spectra
from normbench.theory.analysis import Directions, largest_curvature
from normbench.theory.least_cost import weights_of
from normbench.verdicts.judging import Step

BATCHES = (
    "a step sees a batch of the points: finer step sizes and shadows were not descended, and any "
    "2/L is that of all points"
)
MOVING = (
    "statistics={statistics}: costs are those of all points under the scheme of the latest step, "
    "whose function moves without a step; theory and other measures are of statistics=fitted"
)
CURVATURE_ITERATIONS = 25  # whose curvature is measured
MAX_DENSE_CURVATURE = 600  # the Hessian of a network of that size takes about a second
SOFT_POSITION = 0.1  # a direction is soft where a step goes less than a tenth of the way
# A gradient that shrank to this share of the first is rounding in half of its digits.
ROUNDED_GRADIENT = {"float64": 1e-8, "float32": 1e-3}
NO_LIVE_DIRECTIONS = "the cost has no curvature at the start, or curves down along some direction"
MAX_BATCHES = 50  # of the first pass, whose disturbance is measured
MAX_LAYER_ITERATIONS = 501  # whose layers are measured
LAYER_METRICS = (names.LAYER_GRADIENT, names.LAYER_RANK, names.LAYER_NORM, names.LAYER_COSINE)
NO_NETWORK = "is for networks, such as model=mlp"
LAYERS_ITERATIONS = 60  # whose layers are measured
MAX_COSINE_LAYERS = 100  # each takes a gradient of all layers: the work is their number squared
NORMS_ITERATIONS = 500  # at most, whose norms are kept
NO_SUCH_WEIGHTS = "weight_norms: multiples of the weights of a layer are another function here"


@measure(depends_on=BEST_STEP)
def curvature_at_best(job: FinishedJob) -> Findings:
    """Return the largest curvature and 2/L at the best weights of the first start.

    They say why steps above 2/L work, as does the array of the eigenvalues (n,) above rounding of
    the Hessian there, decreasing. That exists in plain descent with few enough weights for the
    Hessian as a matrix, and differs from the one at the start unless the curvature is the same
    everywhere (`exact`). No findings where there is no threshold to compare with, and none that
    cannot be computed.
    """
    descent = job.descent
    theory, setting, train = descent.theory, descent.settings.theory, descent.train
    if theory.threshold is None or not sizes.allows_second_derivatives(setting, train):
        return Findings()
    lipschitz, _ = largest_curvature(train, descent.best_weights)
    metrics = curvature_metrics(names.LIPSCHITZ_BEST, names.THRESHOLD_BEST, lipschitz)
    if not descent.plain or theory.exact or not sizes.allows_matrix(setting, train):
        return Findings(metrics)
    values = live_eigenvalues(train.hessian(descent.best_weights))
    return Findings(metrics, arrays={names.CURVATURES_BEST.key: values})


@measure("sharpness", depends_on=BEST_STEP)
def sharpness(job: FinishedJob) -> Findings:
    """Return the sharpness at every iteration, or at 25 of them where it takes long.

    The sharpness is `step L / 2`, with L the largest curvature at the weights, and the step size of
    that iteration. Below 1 a step lowers the cost. A run whose sharpness stays near 1 is where the
    curvature just allows its step size. That holds of plain gradient descent: a note says so for
    other rules. No findings where the curvature is unknown at every such iteration, and a note in
    their place where the optimizer finds its own step sizes.
    """
    descent = job.descent
    if descent.optimizer.gridless:  # its step size is a placeholder
        return Findings(notes=("sharpness: the optimizer finds its own step sizes",))
    setting = descent.settings.theory
    weights = int(np.prod(descent.train.shape))
    is_quick = weights <= MAX_MATRIX_WEIGHTS and sizes.allows(setting, 0, len(job.z) * weights)
    is_whole = setting == "full" or is_quick
    path = descent.path if is_whole else descent.path.spread(CURVATURE_ITERATIONS)
    curvatures = [largest_curvature(descent.train, weights)[0] for weights in path.weights]
    largest = np.array(curvatures, dtype=np.float64)  # NaN in place of None
    is_known = ~np.isnan(largest)
    if not is_known.any():
        return Findings()
    iteration = path.iteration[is_known]
    values = scheduled_step_sizes(descent, iteration) * largest[is_known] / 2
    note = "the sharpness is of plain gradient descent: 1 is no limit of this optimizer's steps"
    return Findings(
        series={names.SHARPNESS.key: (iteration, values)},
        notes=() if descent.plain else (note,),
    )


@measure("curvature", depends_on=BEST_STEP)
def curvature(job: FinishedJob) -> Findings:
    """Return the extreme eigenvalues at k iterations of the best step size, from the first start.

    They are series by iteration: the largest; the smallest, which is negative where the cost curves
    down; and the condition number, the largest over the smallest of the eigenvalues that are
    positive and above rounding. Of more than 600 weights Lanczos finds the two ends of the spectrum
    alone, and no condition number.
    """
    path = job.descent.path.spread(CURVATURE_ITERATIONS)
    rows = [measure_curvature(job.descent.train.hessian(weights)) for weights in path.weights]
    metrics = (names.CURVATURE_LARGEST, names.CURVATURE_SMALLEST, names.CURVATURE_CONDITION)
    # A series holds finite numbers alone: the condition number may be NaN at all iterations.
    return Findings(
        series={
            metric.key: (path.iteration[np.isfinite(column)], column[np.isfinite(column)])
            for metric, column in zip(metrics, np.array(rows).T)
            if np.isfinite(column).any()
        }
    )


def measure_curvature(hessian: Hessian) -> tuple[float, float, float]:
    """Return the largest and the smallest eigenvalue of a Hessian, and its condition number.

    The condition number is that of the eigenvalues that are positive and above rounding; NaN where
    there are none, and for Hessians that are too large for a matrix.
    """
    if hessian.size > MAX_DENSE_CURVATURE:
        from scipy.sparse.linalg import ArpackError

        try:
            return *hessian.extremes(), UNKNOWN
        except ArpackError:  # Lanczos's method did not converge
            return UNKNOWN, UNKNOWN, UNKNOWN
    values = np.linalg.eigvalsh(hessian.matrix()).astype(np.float64)
    live = spectra.eigenvalues_above_rounding(values, len(values))
    condition = float(live[0] / live[-1]) if len(live) else UNKNOWN
    return float(values[-1]), float(values[0]), condition


@measure()
def thresholds(job: FinishedJob) -> Findings:
    """Return L, the threshold 2/L, the condition number and rank of the spectrum, and their basis.

    Numbers that theory does not know are left out or NaN, and a note says why. The basis, a tag,
    says which curvature the threshold comes from. The effective rank is that of the covariance of
    the points under the scheme.
    """
    descent = job.descent
    theory, optimizer, linear = descent.theory, descent.optimizer, descent.train.linear
    metrics = {
        names.LIPSCHITZ.key: UNKNOWN if theory.lipschitz is None else theory.lipschitz,
        names.THRESHOLD.key: theory.threshold or UNKNOWN,
        **curvature_metrics(names.LIPSCHITZ_START, names.THRESHOLD_START, theory.at_start),
    }
    if linear is not None and linear.traits.curvature is not None:
        metrics[names.COST_CURVATURE.key] = linear.traits.curvature
    notes = []
    spectrum = theory.spectrum
    if spectrum is not None:
        metrics[names.SPECTRUM_LARGEST.key] = spectrum.largest
        # A condition number needs every eigenvalue; of one with lost directions it has a bound.
        if spectrum.is_complete and not spectrum.lost:
            metrics[names.CONDITION.key] = spectrum.condition_number
            metrics[names.RANK.key] = spectrum.rank
        elif spectrum.is_complete:
            metrics[names.CONDITION_LIMIT.key] = spectra.LIMIT
        if theory.moments is not None:
            variances = singular_values(theory.moments.factor.root) ** 2
            metrics[names.EFFECTIVE_RANK.key] = spectra.effective_rank(variances)
    if optimizer.note:
        notes.append(optimizer.note)
    if theory.threshold and not optimizer.plain:
        notes.append("2/L speaks of plain gradient descent, not of this optimizer")
    tags = {
        names.BASIS.key: theory.threshold_source if theory.threshold else "none",
        names.PLAIN.key: str(descent.plain).lower(),
    }
    if not descent.plan.sees_all_points:
        notes.append(BATCHES)
        statistics = descent.settings.statistics
        if statistics in (RUNNING_STATISTICS, WINDOW_STATISTICS):
            notes.append(MOVING.format(statistics=statistics))
        tags[names.BATCHED.key] = str(optimizer.plain).lower()
    return Findings(metrics, tags, notes=tuple(notes))


def curvature_metrics(
    largest: names.Metric, threshold: names.Metric, lipschitz: float | None
) -> dict[str, float]:
    """Return the values of two metrics by their keys, a largest curvature L and its threshold 2/L.

    There are none where L is unknown, None.
    """
    if lipschitz is None:
        return {}
    return {largest.key: lipschitz, threshold.key: spectra.step_threshold(lipschitz)}


def live_eigenvalues(hessian: Hessian) -> Array:
    """Return the eigenvalues of a Hessian above rounding, decreasing."""
    values = np.asarray(np.linalg.eigvalsh(hessian.matrix()), dtype=np.float64)
    return spectra.eigenvalues_above_rounding(values, len(values))


@measure("hessian")
def hessian(job: FinishedJob) -> Findings:
    """Return the live eigenvalues of the Hessian, decreasing, and its condition numbers.

    `start`: at the first start. `minimum`: at the weights of the least cost under this scheme,
    empty where no weights attain the least cost, or none are known. The numbers
    `theory/condition_start` and `theory/condition_minimum`: the largest over the smallest. A note
    in their place for scores that are not linear, and for more weights than theory decomposes.
    """
    descent = job.descent
    linear, scores = descent.train.linear, descent.least.scores
    if linear is None or not sizes.allows_matrix(descent.settings.theory, linear):
        reason = NOT_LINEAR if linear is None else sizes.LEFT_OUT
        return Findings(notes=(f"hessian: {reason}",))
    eigenvalues = {
        "start": live_eigenvalues(linear.hessian(descent.start[0])),
        "minimum": np.empty(0),
    }
    if scores is not None and not descent.least.at_infinity:
        weights = weights_of(scores, linear.points)
        eigenvalues["minimum"] = live_eigenvalues(linear.hessian(weights))
    keys = (names.CONDITION_START.key, names.CONDITION_MINIMUM.key)
    conditions = [spectra.Spectrum(values).condition_number for values in eigenvalues.values()]
    return Findings(dict(zip(keys, conditions)), arrays=eigenvalues)


@measure("landing", depends_on=BEST_STEP)
def landing(job: FinishedJob) -> Findings:
    """Return the positions of the steps of the best step size, from the first start.

    A step from w to v = w + d lands at position `(g(w) - g(v))'d / g(w)'d` of the parabola that has
    the slopes of the cost at both ends of the step: 0 is its start, 1 its minimum, 2 as high as the
    start. That is the parabola of the cost itself for least squares. A plain step of size a lands
    at `a h` along an eigendirection of curvature h. After *alpha* of Schneider, Dangel, Hennig
    (2021), Cockpit, section 3.2, which counts from -1 and fits noisy slopes.

    `iteration` (k,) and `position` (k,): the iteration from which each step starts, and where the
    step lands along itself. Of plain descent also `direction` (n,), the positions `a h` along the
    eigendirections of the Hessian at the start, the stiffest first, which is left out where the
    Hessian is too large to decompose.
    Numbers: the median position, and the share of soft directions, those of a position below 0.1.
    """
    descent = job.descent
    iteration, position = _step_positions(descent)
    arrays = {"iteration": iteration, "position": position}
    metrics = {names.LANDING.key: float(np.median(position))} if len(position) else {}
    is_plain = descent.plain and descent.theory.threshold is not None
    directions = descent.at_start.directions if is_plain else None
    if directions is not None and len(directions.curvature):
        arrays["direction"] = descent.best_step.step_size * directions.curvature
        metrics[names.LANDING_SOFT.key] = float(np.mean(arrays["direction"] < SOFT_POSITION))
    return Findings(metrics, arrays=arrays)


def _step_positions(descent: JudgedDescent) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the iterations `(k,)` from which steps start, and the positions of these steps `(k,)`.

    Steps whose gradient is rounding, or whose slope along the step is 0, are left out.
    """
    path = descent.path
    gradient = gradient_at(descent.train, path.weights[0])
    # A gradient of less than this length is rounding.
    lowest_length = ROUNDED_GRADIENT[descent.start.dtype.name] * np.linalg.norm(gradient)
    positions: dict[int, float] = {}
    for row in range(1, len(path.iteration)):
        gradient_before, gradient = gradient, gradient_at(descent.train, path.weights[row])
        step = (path.weights[row].astype(np.float64) - path.weights[row - 1]).ravel()
        slope = gradient_before @ step
        follows = path.iteration[row] == path.iteration[row - 1] + 1
        if follows and slope and np.linalg.norm(gradient_before) > lowest_length:
            positions[int(path.iteration[row - 1])] = float(1 - gradient @ step / slope)
    return np.array([*positions], dtype=np.int64), np.array([*positions.values()])


@measure()
def layers(job: FinishedJob) -> Findings:
    """Return the layers of the first start, the stiffest first; or a tag with the reason for none.

    A layer is an eigendirection of the Hessian at the start, of curvature h. Its thickness is the
    excess along it in the quadratic model, `g^2 / (2 h)`. For least squares, K iterations of plain
    descent leave exactly `(1 - a h)^(2K)` of it. For other costs and optimizers the layers at given
    weights are measured: `g^2 / (2 h)` with the gradient there, as shares of their sum. The
    alternative, to sum the drops `-1/2 (g_k + g_k+1) (w_k+1 - w_k)` of all iterations by direction,
    misses the recorded drop by 66 to 1,518 percent at large steps.

    `layer_curvature` (n,), `layer_share` (n,): the excess along each, as a cost. Where plain
    descent on a quadratic does not give the later layers exactly, they are measured: `layer_ends`
    (S, n), the shares at the last weights of each step size, NaN where these are not finite;
    `layer_path` (k, n), the shares along the descent of the best step size at iterations `layer_at`
    (k,); and `layer_step` (), that step size. Nothing with `theory=none`.
    """
    descent = job.descent
    if descent.settings.theory == "none":
        return Findings()
    reason = reason_against_layers(descent)
    directions = None if reason else descent.at_start.directions
    if directions is None:
        return Findings(tags={names.NO_LAYERS.key: reason})
    arrays = {
        "layer_curvature": directions.curvature,
        "layer_share": excess_along(job, directions, descent.start[:1])[0],
    }
    # Eigenvalues of a uniform curvature come from the accurate spectrum of theory.
    is_accurate = descent.at_start.uniform_curvature is not None
    if not (descent.theory.exact and descent.plain and is_accurate):
        last_weights = descent.histories.weights[:: len(descent.start)]  # of the first start
        arrays["layer_ends"] = _normalized(excess_along(job, directions, last_weights))
        if descent.best is not None:
            path = descent.path.spread(MAX_LAYER_ITERATIONS)
            shares = excess_along(job, directions, path.weights)
            arrays |= {"layer_path": _normalized(shares), "layer_at": path.iteration}
            arrays["layer_step"] = np.array(descent.best_step.step_size)
    return Findings(arrays=arrays)


def reason_against_layers(descent: JudgedDescent) -> str:
    """Return the reason why a descent has no layers; empty where it has layers."""
    train, theory = descent.train, descent.theory
    if descent.optimizer.gridless:
        return "the optimizer finds its own step sizes"
    if not descent.settings.iterations:
        return "no step was made"
    if train.linear is None and not train.convex:
        return "layers are of linear models, and these scores are not linear in the weights"
    if not train.convex or theory.threshold is None:
        return NO_LIVE_DIRECTIONS
    directions = descent.at_start.directions
    if directions is None:
        return f"the Hessian, no multiple of the points' Gram matrix, is {sizes.LEFT_OUT}"
    has_layers = len(directions.curvature) and not directions.indefinite
    return "" if has_layers else NO_LIVE_DIRECTIONS


def excess_along(job: FinishedJob, directions: Directions, weights: Array) -> Array:
    """Return the excess `(R, n)` along each direction in the quadratic model, `g^2 / (2 h)`.

    Args:
        job: The finished job.
        directions: The n directions at the start, with their curvatures h.
        weights: R models `(R, *shape)`; the gradient g is that at each.
    """
    gradient = job.descent.train.evaluate(weights).gradient
    assert gradient is not None
    return directions.squared_components(gradient) / (2 * directions.curvature)


def _normalized(shares: Array) -> Array:
    """Return rows (R, n) divided by their sums, in float32; NaN where a sum is 0 or not finite."""
    total = shares.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(total), shares / total, np.nan).astype(np.float32)


@measure()
def predictions(job: FinishedJob) -> Findings:
    """Return the predicted history and iterations to targets of each step size below `2/L`.

    They are known exactly for plain descent on a quadratic whose spectrum is resolved.
    """
    descent = job.descent
    theory, spectrum, linear = descent.theory, descent.theory.spectrum, descent.train.linear
    is_quadratic = theory.exact and descent.plain and theory.threshold
    if not is_quadratic or linear is None or spectrum is None or not spectrum.is_complete:
        return Findings()
    # False of NaN, too: some directions are then lost in rounding.
    if not spectrum.condition_number <= spectra.MAX_PREDICTED_CONDITION:
        return Findings()
    at_start = linear.evaluate(descent.start)
    assert at_start.gradient is not None
    problems = [
        spectra.quadratic(spectrum, float(cost), gradient)
        for cost, gradient in zip(at_start.costs, at_start.gradient.astype(np.float64))
    ]
    steps = enumerate(descent.steps)
    return Findings(
        of_steps={
            number: predict(descent, problems, step)
            for number, step in steps
            if step.step_size < (theory.threshold or 0.0)
        }
    )


def predict(
    descent: JudgedDescent, problems: Sequence[spectra.Quadratic], step: Step
) -> dict[str, Any]:
    """Return the predictions for a step size, medians over the starts, and their error.

    The error is the largest relative one over the iterations at which the measured cost is not 0; a
    run that stopped being finite has fewer iterations.

    Args:
        descent: The judged descent.
        problems: The quadratic cost of each start, in the eigenvectors of its Hessian.
        step: The judged step size.
    """
    iterations, size = descent.settings.iterations, step.step_size
    histories = [spectra.predicted_history(problem, size, iterations) for problem in problems]
    predicted = np.median(histories, axis=0)
    findings: dict[str, Any] = {names.PREDICTED_COST.key: predicted}
    for name, goal in descent.judging_context.targets.items():
        gap = goal - descent.judging_context.minimum
        counts = [spectra.predicted_iterations(problem, size, gap) for problem in problems]
        findings[names.predicted(name).key] = float(np.median(counts))
    measured = step.histories[names.TRAIN_COST.key]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.abs(predicted[: len(measured)] - measured) / np.abs(measured)
    finite_errors = errors[np.isfinite(errors)]
    if len(finite_errors):
        findings[names.PREDICTION_ERROR.key] = float(finite_errors.max())
    return findings


@measure()
def batches(job: FinishedJob) -> Findings:
    """Return the knee of a batch; of least squares also limits of the step, and noise floors.

    The knee is the batch size from which larger batches gain little. `mean |x|^2 / lambda_max` of
    points `[1 x]` is that of least squares, whose curvature is the same at all points; for other
    costs it is a guide. The exact limit of the step, stable in mean square, is that of the order in
    which batches are drawn. The noise floor is the excess around which a constant step size
    settles; `theory.batches.noise_floor` knows it for draws with replacement, and so takes the
    limit of these. Nothing but for plain descent in batches of a cost of linear scores without a
    penalty, whose spectrum is known.
    """
    descent = job.descent
    linear, batch, spectrum = descent.train.linear, descent.settings.batch, descent.theory.spectrum
    has_theory = descent.optimizer.plain and linear is not None and not np.any(linear.l2)
    if batch is None or spectrum is None or linear is None or not has_theory:
        return Findings()
    # The spectrum is that of the Gram matrix times the bound of the cost's curvature, if any.
    largest = spectrum.largest / (linear.traits.curvature or 1.0)
    trace = gram_trace(linear)
    knee = limits.knee(largest, trace)
    metrics = {names.KNEE.key: knee}
    if not linear.traits.squares or linear.shape[0] > 1:
        return Findings(metrics)
    lipschitz = 2 * largest  # the Hessian of least squares is 2 times the Gram matrix
    metrics[names.BATCH_STEP.key] = limits.approximate_step(lipschitz, knee, batch)
    points, width = len(linear.targets), linear.shape[1]
    is_exact = is_in_memory(linear.points) and linear.points.dtype == np.float64
    if width > limits.MAX_MOMENT_WEIGHTS or not is_exact:
        return Findings(metrics)
    if not sizes.allows(descent.settings.theory, 0, points * width * (width + 1) // 2):
        return Findings(metrics, notes=(f"exact limits of the batch {sizes.LEFT_OUT}",))
    extended = np.column_stack([np.ones(points), linear.points])
    without_replacement, with_replacement = limits.mean_square_steps(extended, batch)
    is_replaced = descent.settings.batch_order == "replacement"
    metrics[names.BATCH_STEP_EXACT.key] = with_replacement if is_replaced else without_replacement
    # The least cost is the mean squared residual at the minimum: the variance of the noise.
    noise = descent.judging_context.minimum
    floors = [
        limits.noise_floor(step.step_size, noise, trace, batch, with_replacement)
        for step in descent.steps
    ]
    of_steps = {
        number: {names.NOISE_FLOOR.key: floor}
        for number, floor in enumerate(floors)
        if np.isfinite(floor)  # infinite for a step size that is not stable
    }
    return Findings(metrics, of_steps=of_steps)


def gram_trace(linear: Problem) -> float:
    """Return the trace of the Gram matrix of points `[1 x]`: their mean squared length."""
    rows = moment_rows(linear.points)
    mean = rows.mean(axis=0, dtype=np.float64)
    return 1 + float(np.sum(rows.var(axis=0, dtype=np.float64) + mean**2))


@measure()
def disturbance(job: FinishedJob) -> Findings:
    """Return how far the statistics of a batch move its points, relative to the points' size.

    It is the mean squared distance between the points under the statistics of their batch and under
    those of all points, over the mean square of the latter. The means are over the points of the
    first batches, and over the features. No number where all points are 0, and where the statistics
    do not move with the batches.
    """
    plan = job.descent.plan
    if job.descent.settings.statistics == FITTED:
        return Findings()
    assert plan.batches is not None
    assert plan.statistics is not None
    squared_distances, squares = 0.0, 0.0
    for update in range(min(plan.batches.updates_per_pass, MAX_BATCHES)):
        fitted = job.z[plan.batches.points_of(update)]  # under the statistics of all points
        normalized = plan.statistics.of_batch(update)  # None: those of all points stay in force
        squares += float(np.sum(fitted**2))
        if normalized is not None:
            squared_distances += float(np.sum((normalized - fitted) ** 2))
    return Findings({names.DISTURBANCE.key: squared_distances / squares} if squares else {})


@measure("by_layer", depends_on=BEST_STEP)
def by_layer(job: FinishedJob) -> Findings:
    """Return what each of L layers does at k iterations of the best step size's first run.

    `iteration` (k,), and (k, L) each: `layer_gradient_norm`, of the weights, biases, gains and
    shifts; `layer_rank`, the participation ratio of the values; `layer_norm`, their root mean
    square over units and points; `layer_cosine`, NaN at the last iteration, where a gradient is 0,
    and of more than `MAX_COSINE_LAYERS` layers. The values of a layer are those that the next one
    takes, and the scores of the last. Gradients are those of the recorded cost; the layers move
    until the next record, a step of all points or what the batches of a pass do.

    A layer's weights have one gradient before a step, and another after the *other* layers made it:
    the cosine between both says how far a layer's direction depends on the layers around it. After
    Santurkar, Tsipras, Ilyas, Madry (2018), How Does Batch Normalization Help Optimization?,
    section 2.2, where only the layers before move.
    """
    descent, network = job.descent, job.descent.train
    if network.linear is not None:
        return Findings(notes=(f"by_layer: {NO_NETWORK}",))
    measured = descent.path.spread(LAYERS_ITERATIONS)
    has_cosines = find_owners(network).max() < MAX_COSINE_LAYERS
    rows = []
    for k, weights in zip(measured.iteration, measured.weights):
        following = descent.path.weights[descent.path.iteration == k + 1]
        rows.append(measure_layers(network, weights, following[:1] if has_cosines else ()))
    columns = zip(LAYER_METRICS, np.array(rows).swapaxes(0, 1))
    arrays = {metric.key: column for metric, column in columns}
    return Findings(arrays={"iteration": measured.iteration, **arrays})


def measure_layers(network: Problem, weights: Array, following: Sequence[Array] = ()) -> Array:
    """Return the `LAYER_METRICS` of each of L layers at weights `(D,)`: `(4, L)`.

    They are the norm of the gradient, the participation ratio of the values, their root mean
    square, and the cosine of the gradients before and after the other layers moved.

    Args:
        network: The network of the training points.
        weights: The weights `(D,)`.
        following: The weights `(D,)` of the next record; empty where cosines are NaN.
    """
    # Values `(H, P)` of each layer; gradient and owners `(D,)`, one entry for each weight.
    values_by_layer = [
        values.astype(np.float64) for values in network.model.layer_outputs(network, weights)
    ]
    owners, gradient = find_owners(network), gradient_at(network, weights)
    rows = []
    for layer, values in enumerate(values_by_layer):
        is_own, cosine = owners == layer, UNKNOWN
        length = np.linalg.norm(gradient[is_own])
        for after in following:
            second = gradient_at(network, np.where(is_own, weights, after))[is_own]
            lengths = length * np.linalg.norm(second)
            cosine = gradient[is_own] @ second / lengths if lengths > 0 else UNKNOWN
        rows.append([length, participation_ratio(values), np.sqrt(np.mean(values**2)), cosine])
    return np.array(rows).T


def participation_ratio(values: Array) -> float:
    """Return `(tr M)^2 / tr M^2` of `M = h h' / P`, of a layer's values h `(H, P)`; NaN for zeros.

    The second moments M are not centred. The ratio is a rank without a threshold: from 1, where all
    points have one direction, to H. After Daneshmand et al. (2020), Batch Normalization Provably
    Avoids Rank Collapse.
    """
    units, points = values.shape
    # Both products have the same trace and the same sum of squares: the smaller one is computed.
    moments = values @ values.T if units <= points else values.T @ values
    squares = float(np.sum(moments**2))
    return float(np.trace(moments) ** 2 / squares) if squares > 0 else UNKNOWN


def find_owners(network: Problem) -> NDArray[np.int64]:
    """Return the index of the layer of each weight `(D,)`; -1 for running statistics.

    Running statistics stand after the trained weights in the flat array, and are not descended.
    """
    layout = network.model.layout(network)
    counts = [np.prod(shape) for shape in layout.shapes.values()]
    owners = np.repeat([layer for layer, _ in layout.shapes], counts)
    owners[layout.trained :] = -1
    return owners


@measure("weight_norms", depends_on=BEST_STEP)
def weight_norms(job: FinishedJob) -> Findings:
    """Return the norms of G sets of scale-invariant weights at k iterations, from the first start.

    Where values are normalized, `c w` is the same function for every c > 0. The gradient at `c w`
    is that at w over c, and orthogonal to w: plain steps never shrink `|w|`, and a step of size a
    turns w as a step of size `a / |w|^2` turns `w / |w|`, the *effective step*. After van Laarhoven
    (2017), L2 Regularization versus Batch and Weight Normalization; Arora, Li, Lyu (2019),
    Theoretical Analysis of Auto Rate-Tuning by Batch Normalization.

    `iteration` (k,), `layer` (G,), `weight_norm` and `effective_step` (k, G). A set is what
    `scale_invariant_weights` of the model says: a unit's weights under batch and weight
    normalization, those of a layer or a group of units where these are normalized together.
    Epsilon, which breaks the invariance, is neglected. The step size is that of the run at that
    iteration, with its schedule. A note in place of the arrays where the model has no such set.
    """
    descent, network = job.descent, job.descent.train
    if network.linear is not None:
        return Findings(notes=(f"weight_norms: {NO_NETWORK}",))
    sets = network.model.mlp.scale_invariant_weights(network.model.layout(network))
    if not sets:
        return Findings(notes=(NO_SUCH_WEIGHTS,))
    path = descent.path.spread(NORMS_ITERATIONS)
    weights = path.weights.astype(np.float64)
    lengths = np.column_stack([np.linalg.norm(weights[:, indices], axis=1) for _, indices in sets])
    with np.errstate(divide="ignore"):  # weights of norm 0 have an infinite effective step
        effective = scheduled_step_sizes(descent, path.iteration)[:, None] / lengths**2
    arrays = {names.WEIGHT_NORM.key: lengths, names.EFFECTIVE_STEP.key: effective}
    layer = np.array([layer for layer, _ in sets])
    return Findings(arrays={"iteration": path.iteration, "layer": layer, **arrays})
