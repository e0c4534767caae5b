"""The curvature of the cost, and what follows from it: 2/L, directions, predicted histories."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from normbench import names
from normbench.engine.hessian import MAX_MATRIX_WEIGHTS, Hessian
from normbench.measures.contract import (
    BEST_STEP,
    NOT_LINEAR,
    STRETCH_LENGTH,
    UNKNOWN,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    OfStep,
    gradient_at,
    measure,
    scheduled_step_sizes,
    stretched_iterations,
)
from normbench.normalizers.decomposition import singular_values
from normbench.settings import RUNNING_STATISTICS, WINDOW_STATISTICS
from normbench.theory import sizes, spectra
from normbench.theory.analysis import (
    UNIFORM_TOLERANCE,
    Directions,
    largest_curvature,
)
from normbench.theory.least_cost import weights_of
from normbench.verdicts.judging import Step

BATCHES = (
    "a step sees a batch of the points: 2/L is that of all points, and neither finer step sizes "
    "nor shadows were descended"
)
NETWORK_BATCHES = "a step sees a batch of the points: no shadows were descended"
MOVING = (
    "statistics={statistics}: costs are those of all points under the scheme of the latest step, "
    "whose function moves without a step; theory and other measures are of statistics=fitted"
)
STRETCHES = 7  # of iterations whose sharpness is computed where it takes long
CURVATURE_ITERATIONS = 25  # whose curvature is measured
MAX_DENSE_CURVATURE = 600  # the Hessian of a network of that size takes about a second
ALL_EIGENVALUES = (
    f"the condition number of the curvature, which takes every eigenvalue, is of "
    f"{MAX_DENSE_CURVATURE} weights at most; its largest and smallest eigenvalue are recorded"
)
MAX_HESSIAN_WEIGHTS = 2000  # the eigenvalues then take seconds
SOFT_POSITION = 0.1  # a direction is soft where a step goes less than a tenth of the way
# A gradient that shrank to this share of the first is rounding in half of its digits.
ROUNDED_GRADIENT = {"float64": 1e-8, "float32": 1e-3}
MAX_LAYER_ITERATIONS = 501  # whose layers are measured
MAX_SCORES = 10_000_000  # in memory at the same time


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
    """Return the sharpness at every iteration, or at stretches of three where it takes long.

    The sharpness is `step L / 2`, with L the largest curvature at the weights, and the step size of
    that iteration. Below 1 a step lowers the cost. A run whose sharpness stays near 1 is where the
    curvature just allows its step size. That holds of plain gradient descent: a note says so for
    other rules. No findings where the curvature is unknown at every such iteration, and a note in
    their place where the optimizer finds its own step sizes.
    """
    descent = job.descent
    if descent.optimizer.gridless:  # its step size is a placeholder
        return Findings(notes=("sharpness: the optimizer finds its own step sizes",))
    theory, weights = descent.settings.theory, int(np.prod(descent.train.shape))
    is_quick = weights <= MAX_MATRIX_WEIGHTS and sizes.allows(theory, 0, len(job.z) * weights)
    last = descent.settings.records
    stretches = last + 1 if theory == "full" or is_quick else STRETCHES
    path = descent.path.at(stretched_iterations(last, STRETCH_LENGTH * stretches))
    curvatures = [largest_curvature(descent.train, weights)[0] for weights in path.weights]
    is_known = np.array([lipschitz is not None for lipschitz in curvatures], dtype=bool)
    if not is_known.any():
        return Findings()
    iteration = path.iteration[is_known]
    largest = np.array([lipschitz for lipschitz in curvatures if lipschitz is not None])
    values = scheduled_step_sizes(descent, iteration) * largest / 2
    note = "the sharpness is of plain gradient descent: 1 is no limit of this optimizer's steps"
    return Findings(
        series={names.SHARPNESS.key: (iteration, values)},
        notes=() if descent.plain else (note,),
    )


@measure("curvature", depends_on=BEST_STEP)
def curvature(job: FinishedJob) -> Findings:
    """Return the extreme eigenvalues at k iterations of the best step size, from the first start.

    `iteration` (k,), `largest` and `smallest` (k,), which is negative where the cost curves down;
    `condition` (k,), the largest over the smallest of the eigenvalues that are positive and above
    rounding, from the Hessian as a matrix; NaN for many weights, whose extreme eigenvalues are
    found by Lanczos, and where no eigenvalue is positive. The same numbers are series by iteration.
    A matrix takes as many products as there are weights; Lanczos finds the ends of the spectrum
    alone, and the smallest positive eigenvalue lies among those near 0. A note in place of all of
    them where the cost has no second derivative.
    """
    descent = job.descent
    path = descent.path.spread(descent.settings.records, CURVATURE_ITERATIONS)
    try:
        rows = [measure_curvature(descent.train.hessian(weights)) for weights in path.weights]
    except (ValueError, TypeError, NotImplementedError) as error:  # autograd's, see engine.hessian
        note = f"curvature: autograd has no second derivative of the cost ({error})"
        return Findings(notes=(note,))
    iteration, columns = path.iteration, np.array(rows).T
    metrics = (names.CURVATURE_LARGEST, names.CURVATURE_SMALLEST, names.CURVATURE_CONDITION)
    # A series holds finite numbers alone: the condition number may be NaN at all iterations.
    series = {
        metric.key: (iteration[np.isfinite(column)], column[np.isfinite(column)])
        for metric, column in zip(metrics, columns)
        if np.isfinite(column).any()
    }
    arrays = dict(zip(("largest", "smallest", "condition"), columns))
    is_dense = int(np.prod(descent.train.shape)) <= MAX_DENSE_CURVATURE
    return Findings(
        series=series,
        arrays={"iteration": iteration, **arrays},
        notes=() if is_dense else (ALL_EIGENVALUES,),
    )


def measure_curvature(hessian: Hessian) -> tuple[float, float, float]:
    """Return the largest and the smallest eigenvalue of a Hessian, and its condition number.

    The condition number is that of the eigenvalues that are positive and above rounding; NaN where
    there are none, and for Hessians that are too large for a matrix. All three are NaN where a
    second derivative overflows.
    """
    if hessian.size > MAX_DENSE_CURVATURE:
        from scipy.sparse.linalg import ArpackError

        try:
            return *hessian.extremes(), UNKNOWN
        except ArpackError:  # Lanczos's method did not converge
            return UNKNOWN, UNKNOWN, UNKNOWN
    matrix = hessian.matrix()
    if not np.isfinite(matrix).all():
        return UNKNOWN, UNKNOWN, UNKNOWN
    values = np.linalg.eigvalsh(matrix).astype(np.float64)
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
            notes.append(
                f"the condition number is more than {spectra.LIMIT:.2g}: directions are "
                "lost in rounding, so that rank and predicted histories are not told"
            )
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
    if descent.plan.order:  # empty where every update sees all points
        # The scores are not linear, nor the cost convex: there is no 2/L for the note to speak of.
        is_network = linear is None and not descent.train.convex
        notes.append(NETWORK_BATCHES if is_network else BATCHES)
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


@measure(
    "hessian",
    # The scheme is not fitted yet, so that the size is a bound: a scheme may give fewer features,
    # and a cost one score of two classes.
    suits=lambda data: (data.x.shape[1] + 1) * max(data.classes, 1) <= MAX_HESSIAN_WEIGHTS,
    needs=f"at most {MAX_HESSIAN_WEIGHTS} weights, since a larger matrix takes minutes",
)
def hessian(job: FinishedJob) -> Findings:
    """Return the live eigenvalues of the Hessian, decreasing, and its condition numbers.

    `start`: at the first start. `minimum`: at the weights of the least cost under this scheme,
    empty where no weights attain the least cost, or none are known. The numbers
    `theory/condition_start` and `theory/condition_minimum`: the largest over the smallest.
    """
    descent = job.descent
    linear, scores = descent.train.linear, descent.least.scores
    if linear is None:
        return Findings(notes=(f"hessian: {NOT_LINEAR}",))
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


@measure()
def windows(job: FinishedJob) -> Findings:
    """Return the eigendirections above rounding of the Hessian at the first start, stiffest first.

    A step size trains a direction of curvature h within K iterations where `|1 - a h|^K <= 1/e`:
    from `(1 - e^(-1/K)) / h` to `(1 + e^(-1/K)) / h`. Directions of equal curvature are one entry:
    their eigenvectors are arbitrary within their space. `window_curvature` (n,): the eigenvalues h.
    `window_share` (n,): how much of the start's excess lies along each in the quadratic model
    there, `g^2 / (2 h)`. `window_times` (n,): the number of directions of that curvature. No arrays
    but for plain descent with a threshold 2/L, where the Hessian is too large a matrix to
    decompose, or has no eigenvalue above rounding.
    """
    descent = job.descent
    if not descent.plain or descent.theory.threshold is None:
        return Findings()
    directions = descent.at_start.directions
    if directions is None or not len(directions.curvature):
        return Findings()
    values = directions.curvature
    shares = excess_along(job, directions, descent.start[:1])[0]
    # The index at which each group of equal curvatures begins.
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - UNIFORM_TOLERANCE)])
    return Findings(
        arrays={
            "window_curvature": values[first],
            "window_share": np.add.reduceat(shares, first),
            "window_times": directions.multiplicity * np.diff(np.r_[first, len(values)]),
        }
    )


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
    eigendirections of the Hessian at the start, the stiffest first, and `times` (), the number of
    directions that each entry stands for; neither where the Hessian is too large to decompose.
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
        arrays["times"] = np.array(directions.multiplicity)
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

    `layer_curvature` (n,), `layer_share` (n,): the excess along each, as a cost. `layer_times` ():
    the number of directions that each layer stands for. Where plain descent on a quadratic does not
    give the later layers exactly, they are measured: `layer_ends` (S, n), the shares at the last
    weights of each step size, NaN where these are not finite; `layer_path` (k, n), the shares along
    the descent of the best step size at iterations `layer_at` (k,); and `layer_step` (), that step
    size. Nothing with `theory=none`.
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
        "layer_times": np.array(directions.multiplicity),
    }
    # Eigenvalues of a uniform curvature come from the accurate spectrum of theory.
    is_accurate = descent.at_start.uniform_curvature is not None
    if not (descent.theory.exact and descent.plain and is_accurate):
        by_start = (len(descent.steps), -1, *descent.start.shape[1:])  # (S, starts, *shape)
        last_weights = descent.histories.weights.reshape(by_start)[:, 0]  # of the first start
        arrays["layer_ends"] = _normalized(excess_along(job, directions, last_weights))
        if descent.best is not None:
            walk = descent.recorded_path
            count = len(walk.iteration)
            spread = np.linspace(0, count - 1, min(count, MAX_LAYER_ITERATIONS))
            thinned = np.unique(spread.round().astype(int))
            shares = excess_along(job, directions, walk.weights[thinned])
            arrays |= {"layer_path": _normalized(shares), "layer_at": walk.iteration[thinned]}
            arrays["layer_step"] = np.array(descent.best_step.step_size)
    return Findings(arrays=arrays)


def reason_against_layers(descent: JudgedDescent) -> str:
    """Return the reason why a descent has no layers; empty where it has layers."""
    if descent.optimizer.gridless:
        return "the optimizer finds its own step sizes"
    if not descent.settings.iterations:
        return "no step was made"
    if not descent.train.convex and descent.train.linear is None:
        return "layers are of linear models, and these scores are not linear in the weights"
    if not descent.train.convex:
        return "the cost curves down along some direction of the start"
    no_curvature = "the cost has no curvature at the start"
    if descent.theory.threshold is None:
        return no_curvature
    directions = descent.at_start.directions
    if directions is None:
        return f"the Hessian, no multiple of the points' Gram matrix, is {sizes.LEFT_OUT}"
    if not len(directions.curvature):
        return no_curvature
    return "the cost curves down along some direction of the start" if directions.indefinite else ""


def excess_along(job: FinishedJob, directions: Directions, weights: Array) -> Array:
    """Return the excess `(R, n)` along each direction in the quadratic model, `g^2 / (2 h)`.

    Args:
        job: The finished job.
        directions: The n directions at the start, with their curvatures h.
        weights: R models `(R, *shape)`; the gradient g is that at each. They are evaluated in
            chunks, which bound the memory.
    """
    train = job.descent.train
    chunk_size = max(1, MAX_SCORES // max(1, train.shape[0] * len(job.z)))
    rows = []
    for first in range(0, len(weights), chunk_size):
        gradient = train.evaluate(weights[first : first + chunk_size]).gradient
        assert gradient is not None
        rows.append(directions.squared_components(gradient) / (2 * directions.curvature))
    return np.concatenate(rows)


def _normalized(shares: Array) -> Array:
    """Return rows (R, n) divided by their sums, in float32; NaN where a sum is 0 or not finite."""
    total = shares.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isfinite(total), shares / total, np.nan).astype(np.float32)


@measure()
def predictions(job: FinishedJob) -> Findings:
    """Return the predicted history and iterations to targets of each step size below `2/L`.

    They are known exactly for plain descent on a quadratic whose spectrum is resolved. The arrays
    hold what predictions are computed from: `eigenvalues` (n,), those of the Hessian above
    rounding, and `excess` (starts, n), the excess of each start along each eigenvector.
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
    return Findings(
        arrays={
            "eigenvalues": problems[0].values,
            "excess": np.array([problem.excess_by_direction for problem in problems]),
        },
        of_steps={
            number: predict(descent, problems, step)
            for number, step in enumerate(descent.steps)
            if step.step_size < (theory.threshold or 0.0)
        },
    )


def predict(descent: JudgedDescent, problems: Sequence[spectra.Quadratic], step: Step) -> OfStep:
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
    metrics = {}
    for name, goal in descent.judging_context.targets.items():
        gap = goal - descent.judging_context.minimum
        counts = [spectra.predicted_iterations(problem, size, gap) for problem in problems]
        metrics[names.predicted(name).key] = float(np.median(counts))
    measured = step.histories[names.TRAIN_COST.key]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.abs(predicted[: len(measured)] - measured) / np.abs(measured)
    finite_errors = errors[np.isfinite(errors)]
    if len(finite_errors):
        metrics[names.PREDICTION_ERROR.key] = float(finite_errors.max())
    return OfStep(metrics, {names.PREDICTED_COST.key: predicted})
