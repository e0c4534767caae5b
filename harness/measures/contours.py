"""The cost on a plane of weights: a grid around the path of the best step size and the minimum."""

from typing import NamedTuple

import numpy as np

from normbench.engine.hessian import Hessian
from normbench.measures import points
from normbench.measures.contract import (
    BEST_STEP,
    LINEAR_OR_CONVEX,
    Array,
    Findings,
    FinishedJob,
    JudgedDescent,
    Measure,
)
from normbench.measures.inputs import names_of, weights_of_least_cost
from normbench.normalizers.decomposition import fix_signs
from normbench.theory import spectra

CONTOUR_SIDE_BOUNDS = (21, 61)  # cells along one side, by what they cost
PRODUCT_BUDGET = 1e11  # multiplications that a grid may take
MODELS_PER_CHUNK = 64  # evaluated together
MAX_DENSE_SIZE = 2000  # weights: the eigenvectors of a matrix of that size take seconds
MAX_DIRECTIONS = 24  # eigendirections whose excess is measured
HALVINGS = 20  # step lengths that are tried along each, every one half of the last
CURVATURE_TOLERANCE = 1e-3  # relative: curvatures that look equal in a picture
# Shares of the excess and of the gradient at the start, below which the end is at the least cost.
EXCESS_TOLERANCE = 1e-9
GRADIENT_TOLERANCE = 1e-12
MAX_SQUARE_CONDITION = 100.0  # beyond it, the axes have different scales
MAX_PLANE_WEIGHTS = 3  # with so few weights, the path of every step size lies in the picture
CONTOUR_PATH_LENGTH = 50  # iterations of such a path, evenly on a log scale
END, LEAST = "the end of the path", "the least cost"
HALF_WIDTH = 0.65  # of the window, as a share of the extent of the path


class Plane(NamedTuple):
    """A plane of weights.

    Attributes:
        origin: A point of the plane, `(n,)`.
        directions: Two orthogonal unit vectors, `(2, n)`.
        names: The names of the two directions.
        held: A sentence on the one weight that is held constant, and its value; may be empty.
    """

    origin: Array
    directions: Array
    names: tuple[str, str]
    held: str = ""


def take(job: FinishedJob) -> Findings:
    """Return the costs over a plane.

    The plane: bias and weight of a single feature; the two weights of two features; otherwise the
    stiffest direction of the Hessian, and of the others the one with most excess left at the end.
    It goes through the least cost, where weights that attain it are known, else through the end.
    `a`, `b` (G,), `cost` (G, G): row i is at b[i], column j at a[j]; `path` (k, 2), projected on
    the plane, with `iteration` and `path_cost` (k,); `minimum` (2,), or (0,) where none is known,
    and `least` () the least cost; `condition` () of the Hessian on the plane, at the least cost or
    the end, NaN without curvature; `names` (2,) of the axes; `held` (), the weight that is held
    constant; `through` (), the point of the plane in words; `step_size` (). Of two features also
    the points that `points` returns, the `point_names` (2,) of their coordinates, their `target`
    and `class_names`. Of at most 3 weights also what `_trace_paths` returns. No arrays where no
    step size represents the scheme.
    """
    descent = job.descent
    if descent.best is None:
        return Findings()
    walk = descent.recorded_path
    weights = walk.weights.reshape(len(walk.weights), -1).astype(np.float64)
    minimum = weights_of_least_cost(descent)
    through = weights[-1] if minimum is None else minimum
    plane = _plane(descent, weights, minimum, names_of(job))
    path = (weights - plane.origin) @ plane.directions.T
    # Where the minimum is on the plane; of shape (0,) where it is unknown.
    least = np.zeros(0) if minimum is None else (minimum - plane.origin) @ plane.directions.T
    plane_hessian = _plane_hessian(descent, plane, through)
    # Two where the cost is curved in every direction of the plane, else fewer.
    values = spectra.eigenvalues_above_rounding(np.linalg.eigvalsh(plane_hessian), 2)
    side = int(
        np.clip(
            np.sqrt(PRODUCT_BUDGET / (len(job.points_cache.x) * weights.shape[1])),
            *CONTOUR_SIDE_BOUNDS,
        )
    )
    a, b = _window(np.vstack([path, least.reshape(-1, 2)]), plane_hessian, side)
    point_arrays: dict[str, Array] = {}
    if job.z.shape[1] == 2:
        drawn = points.take(job).arrays
        point_arrays = {name: drawn[name] for name in ("points", "target", "class_names")}
        point_arrays["point_names"] = drawn["names"]
    return Findings(
        arrays={
            **point_arrays,
            "a": a,
            "b": b,
            "cost": _costs(descent, plane, a, b),
            "path": path,
            "iteration": walk.iteration,
            "path_cost": walk.cost,
            "minimum": least,
            "least": np.array(descent.judging_context.minimum),
            "condition": np.array(values[0] / values[1] if len(values) == 2 else np.nan),
            "names": np.array(plane.names),
            "held": np.array(plane.held),
            "through": np.array(END if minimum is None else LEAST),
            "step_size": np.array(descent.best_step.step_size),
            **(
                _trace_paths(descent, plane, minimum)
                if weights.shape[1] <= MAX_PLANE_WEIGHTS
                else {}
            ),
        }
    )


def _trace_paths(descent: JudgedDescent, plane: Plane, minimum: Array | None) -> dict[str, Array]:
    """Return the path of every step size on the plane, from the first start, thinned.

    Args:
        descent: The judged descent; its runs are descended again.
        plane: The plane of the picture.
        minimum: The weights `(n,)` of the least cost; None where none are known.

    Returns:
        `paths_at` (k,), iterations; `paths` (S, k, 2), NaN from where a run stopped being finite.
        Of plain descent on a quadratic with a known minimum also `curvature` (n,) and `swing`
        (n, 2): after k steps of size h the weights are at the minimum plus the sum of
        `(1 - h curvature)^k swing`.
    """
    last = descent.settings.records
    iterations = np.geomspace(1, max(last, 1), CONTOUR_PATH_LENGTH).round().astype(int)
    iterations = np.unique(np.r_[0, iterations])
    iterations = iterations[iterations <= last]
    rows = {k: row for row, k in enumerate(iterations.tolist())}
    starts = len(descent.start)
    paths = np.full((len(descent.steps) * starts, len(iterations), 2), np.nan)

    def observe(k: int, alive: Array, weights: Array) -> None:
        """Project the weights of the remaining runs on the plane."""
        flat = weights.reshape(len(weights), -1).astype(np.float64)
        paths[alive, rows[k]] = (flat - plane.origin) @ plane.directions.T

    descent.rounds.replay(descent.settings.step_sizes, rows, observe)
    arrays = {"paths_at": iterations, "paths": paths[::starts]}
    train = descent.train
    quadratic = train.linear is not None and train.linear.traits.quadratic
    # Only then does a formula give the weights of any step size and iteration.
    if minimum is not None and descent.plain and quadratic:
        values, vectors = np.linalg.eigh(train.hessian(minimum.reshape(train.shape)).matrix())
        offset = (descent.start[0].ravel() - minimum) @ vectors
        arrays |= {"curvature": values, "swing": (vectors * offset).T @ plane.directions.T}
    return arrays


def _plane(
    descent: JudgedDescent, weights: Array, minimum: Array | None, names: tuple[str, ...]
) -> Plane:
    """Return the plane of the picture, through the minimum, or else through the end of the path.

    It is the plane of all weights, or of all but the bias, where there are few. Otherwise curvature
    and remaining excess choose it, or the path where the cost has no curvature.

    Args:
        descent: The judged descent.
        weights: The path of the best step size, `(k, n)`.
        minimum: The weights `(n,)` of the least cost; None where none are known.
        names: The names of the coordinates of the scheme.
    """
    size = weights.shape[1]
    origin = weights[-1] if minimum is None else minimum
    if size == 2:  # one feature: the plane holds all weights
        return Plane(np.zeros(2), np.eye(2), ("bias", f"weight of {names[0]}"))
    if size == 3:  # two features
        first, second = (f"weight of {name}" for name in names)
        # A bias that is only rounding is written as 0.
        bias = origin[0] if abs(origin[0]) > 1e-12 * np.abs(weights).max() else 0.0
        held = f"bias held at {bias:.3g}"
        return Plane(np.array([origin[0], 0.0, 0.0]), np.eye(3)[1:], (first, second), held)
    hessian = descent.train.hessian(origin.reshape(descent.train.shape))
    if hessian.is_zero:
        # A cost of flat pieces has no curvature to choose by: the plane that the path uses most.
        directions = np.linalg.svd(weights - origin, full_matrices=False)[2]
        directions = np.vstack([directions, np.eye(2, size)])[:2]  # a path of one point has one
        return Plane(origin, directions, ("along the path", "second direction of the path"))
    return Plane(origin, *_choose_directions(descent, hessian, weights, minimum))


def _choose_directions(
    descent: JudgedDescent, hessian: Hessian, weights: Array, minimum: Array | None
) -> tuple[Array, tuple[str, str]]:
    """Return the stiffest direction and the one with most remaining excess, and their names.

    Where no excess remains at the end, the second is the one with most excess at the start.

    Args:
        descent: The judged descent.
        hessian: The Hessian at the point of the plane, not 0.
        weights: The path of the best step size, `(k, n)`.
        minimum: The weights `(n,)` of the least cost; None where none are known.

    Returns:
        Two orthogonal unit vectors, `(2, n)`, and their names.
    """
    start_slope, end_slope = (
        _slope(descent, hessian, end_weights, minimum) for end_weights in (weights[0], weights[-1])
    )
    at_least_cost = _is_at_least_cost(descent, start_slope, end_slope)
    # Where the second direction is chosen by the excess: at the end, if any remains there.
    slope, point = (start_slope, weights[0]) if at_least_cost else (end_slope, weights[-1])
    if hessian.size <= MAX_DENSE_SIZE:
        values, vectors = np.linalg.eigh(hessian.matrix())
    else:
        values, vectors = hessian.krylov_eigenpairs(slope)
    count = len(spectra.eigenvalues_above_rounding(values, hessian.size))
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    # Directions of about equal curvature span one eigenspace: `first` is where each space begins.
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - CURVATURE_TOLERANCE)])
    spaces = np.split(vectors, first[1:], axis=1)
    stiffest = _project_slope(spaces[0], slope)
    if len(spaces) == 1:
        # Any direction across the stiffest: the first that keeps more than half of its length.
        across = np.vstack([vectors.T, np.eye(2, len(stiffest))])
        across = across - np.outer(across @ stiffest, stiffest)
        second = across[np.argmax(np.linalg.norm(across, axis=1) > 0.5)]
        name = "another direction, as stiff" if count > 1 else "a direction without curvature"
    else:
        softer = np.array([_project_slope(space, slope) for space in spaces[1:]])
        # With a known minimum, the slope is that of the quadratic model, and so is the excess.
        fall_from = None if minimum is not None else point
        second = _direction_of_most_excess(descent, softer, values[first[1:]], slope, fall_from)
        name = f"direction with most excess cost {'at the start' if at_least_cost else 'left'}"
    rows = np.array([stiffest, second / np.linalg.norm(second)])
    return fix_signs(rows), ("most curved direction", name)


def _is_at_least_cost(descent: JudgedDescent, start_slope: Array, end_slope: Array) -> bool:
    """Return whether the path ends at the least cost, or, where that is unknown, without gradient.

    start_slope, end_slope: the gradients `(n,)` at the start and at the end of the path.
    """
    if not descent.least.is_solved:
        return bool(np.linalg.norm(end_slope) <= GRADIENT_TOLERANCE * np.linalg.norm(start_slope))
    start_excess, end_excess = descent.recorded_path.cost[[0, -1]] - descent.judging_context.minimum
    return bool(end_excess <= EXCESS_TOLERANCE * start_excess)


def _direction_of_most_excess(
    descent: JudgedDescent, directions: Array, values: Array, slope: Array, point: Array | None
) -> Array:
    """Return the eigendirection (n,) along which most excess remains.

    Without a point, the excess is `g^2 / (2 h)` of the quadratic model. With a point, the first
    `MAX_DIRECTIONS` by that model are compared by their largest fall of the cost from the point.
    The fall is that of the model's step to its minimum, or of that step halved repeatedly: where a
    cost grows no faster than a line, the minimum of the model is too far away.

    Args:
        descent: The descent.
        directions: The k eigendirections, `(k, n)`.
        values: Their eigenvalues h, `(k,)`.
        slope: The gradient g, `(n,)`.
        point: The weights `(n,)` from which the cost falls; None for the model's excess.

    Returns:
        One of the directions.
    """
    along = directions @ slope
    shares = along**2 / (2 * values)
    if point is None:
        return directions[np.argmax(shares)]
    candidates = np.argsort(-shares, kind="stable")[:MAX_DIRECTIONS]
    fractions = np.r_[0.0, 0.5 ** np.arange(HALVINGS)]
    costs = [
        _evaluate(descent, point - np.outer(fractions * along[n] / values[n], directions[n]))
        for n in candidates
    ]
    falls = [np.nanmax(cost[0] - cost) for cost in costs]  # the first cost is that at the point
    return directions[candidates[int(np.argmax(falls))]]


def _slope(
    descent: JudgedDescent, hessian: Hessian, weights: Array, minimum: Array | None
) -> Array:
    """Return the gradient `(n,)` of the cost at weights `(n,)`.

    Where the minimum `(n,)` is known, it is the gradient of the quadratic model around the minimum:
    the Hessian times the distance from there.
    """
    if minimum is not None:
        return hessian.times((weights - minimum).reshape(hessian.shape)).ravel()
    model = weights.reshape(1, *descent.train.shape).astype(descent.start.dtype)
    gradient = descent.train.evaluate(model).gradient
    assert gradient is not None
    return gradient.ravel().astype(np.float64)


def _project_slope(space: Array, slope: Array) -> Array:
    """Return the unit projection of a gradient on an eigenspace (n, k); any vector if it is 0."""
    projection = space @ (space.T @ slope)
    length = float(np.linalg.norm(projection))
    return projection / length if length > 0 else space[:, 0]


def _plane_hessian(descent: JudgedDescent, plane: Plane, weights: Array) -> Array:
    """Return the Hessian at weights (n,) in the two coordinates of the plane, `D H D'` `(2, 2)`.

    D `(2, n)` holds the directions of the plane.
    """
    hessian = descent.train.hessian(weights.reshape(descent.train.shape))
    products = [
        hessian.times(direction.reshape(hessian.shape)).ravel() for direction in plane.directions
    ]
    return plane.directions @ np.transpose(products)


def _window(inside: Array, plane_hessian: Array, side: int) -> tuple[Array, Array]:
    """Return the grid along both axes of the plane, around some of its points.

    The window is a square unless the contours are too elongated for one. Then each axis has a scale
    of its own, and both show about the same costs.

    Args:
        inside: Points of the plane that the window must contain, `(k, 2)`.
        plane_hessian: The Hessian on the plane, `(2, 2)`.
        side: The number of grid points G along each axis.

    Returns:
        The coordinates along the first and along the second axis, `(G,)` each.
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    extent = high - low
    values = spectra.eigenvalues_above_rounding(np.linalg.eigvalsh(plane_hessian), 2)
    # With fewer than two curvatures contours do not close, and no scale fits them.
    if len(values) == 2 and values[0] > MAX_SQUARE_CONDITION * values[1]:
        # Of equal cost, a move along b is `ratio` times one along a. An axis on which the path is
        # short shows at least a tenth of what the other axis shows, so converted.
        ratio = np.sqrt(plane_hessian[0, 0] / plane_hessian[1, 1])
        half = HALF_WIDTH * np.maximum(extent, 0.1 * extent[::-1] * [1 / ratio, ratio])
    else:
        half = np.full(2, HALF_WIDTH * extent.max())
    half = np.where(half > 0, half, half.max() or 1.0)  # a path of one point has no extent
    middle = (low + high) / 2
    a, b = (m + np.linspace(-h, h, side) for m, h in zip(middle, half))
    return a, b


def _costs(descent: JudgedDescent, plane: Plane, a: Array, b: Array) -> Array:
    """Return the costs on the grid of coordinates a and b of the plane, `(len(b), len(a))`."""
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    costs = [
        _evaluate(descent, plane.origin + chunk @ plane.directions)
        for chunk in np.array_split(grid, max(1, len(grid) // MODELS_PER_CHUNK))
    ]
    return np.concatenate(costs).reshape(len(b), len(a))


def _evaluate(descent: JudgedDescent, weights: Array) -> Array:
    """Return the training costs (k,) of k models, with flat weights (k, n)."""
    models = weights.astype(descent.start.dtype).reshape(-1, *descent.train.shape)
    return descent.train.evaluate(models, with_gradient=False).costs


MEASURE = Measure(
    take,
    record="contours",
    model_kind=LINEAR_OR_CONVEX,
    depends_on=BEST_STEP,
)
