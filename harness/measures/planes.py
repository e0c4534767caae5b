"""Pictures in two dimensions: paths, contours, boundaries, curves, and the film of a scheme."""

from typing import Any, NamedTuple

import numpy as np

from normbench.datasets import Dataset
from normbench.engine.hessian import Hessian
from normbench.engine.problem import Problem
from normbench.engine.scheme import AffineMap, probe
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
    spread_iterations,
)
from normbench.measures.points import coordinate_names, points, sample
from normbench.names import ATTAINED
from normbench.normalizers.decomposition import fix_signs
from normbench.normalizers.morph import Frames, make_frames
from normbench.theory import spectra
from normbench.theory.analysis import Theory, theorize
from normbench.theory.least_cost import weights_of

BOUNDARY_SIDE = 160  # cells along one side
CURVE = 400  # points of the curve of one feature
CONTOUR_SIDE_BOUNDS = (21, 61)  # cells along one side, by what they cost
PRODUCT_BUDGET = 1e11  # multiplications that a grid may take
MAX_DENSE_SIZE = 2000  # weights: the eigenvectors of a matrix of that size take seconds
CURVATURE_TOLERANCE = 1e-3  # relative: curvatures that look equal in a picture
EXCESS_TOLERANCE = 1e-9  # share of the excess of the start, below which the end is the least cost
MAX_SQUARE_CONDITION = 100.0  # beyond it, the axes have different scales
MAX_PLANE_WEIGHTS = 3  # with so few weights, the path of every step size lies in the picture
CONTOUR_PATH_LENGTH = 51  # iterations of such a path, close together at first
HALF_WIDTH = 0.65  # of the window, as a share of the extent of the path
FILM_SIDE = 121  # cells along one side
MAX_ITERATIONS = 1000  # of the descent of a frame
PATH_ITERATIONS = 100
FILM_PATH_LENGTH = 25  # of these iterations, close together at first
TARGET_EXCESS = 0.01  # of the excess of the start
MARGINS = (1.6, 2.4, 3.6, 5.4)  # of the grid around the paths: the first that holds BORDER
BORDER = 2.0  # times the excess of the start: the highest contour
UNIT_CIRCLE = np.exp(1j * np.linspace(0, 2 * np.pi, 32, endpoint=False))[:, None].view(float)
DIRECTIONS = ("direction 1", "direction 2")
LINE_TOLERANCE = 1e-6  # relative: points that lie on a line


def lacks_classes(dataset: Dataset, scheme: Any) -> str:
    """Say that a boundary needs classes."""
    return "" if dataset.classes > 1 else "classes"


def lacks_one_score(dataset: Dataset, scheme: Any) -> str:
    """Say that a curve needs one score, or the difference of two."""
    return "" if dataset.classes <= 2 else "real targets or two classes"


@measure("path", depends_on=BEST_STEP)
def path(job: FinishedJob) -> Findings:
    """Return the weights along the descent of the best step size, from the first start.

    `iteration` (k,), `weights` (k, *shape), `cost` (k,) and `step_size` (). The iterations are all,
    or evenly thinned ones where the path would be too large.
    """
    step_size = np.array(job.descent.best_step.step_size)
    return Findings(arrays={**job.descent.recorded_path._asdict(), "step_size": step_size})


@measure("boundary", depends_on=BEST_STEP, features=(2, 2), lacks=lacks_classes)
def boundary(job: FinishedJob) -> Findings:
    """Return the classes over the plane, by the best step's last weights of the first start.

    `a`, `b` (G,): the two features of the cells' centres, as they are in the data. `predicted`
    (G, G): class indices; row i is at b[i], column j at a[j]. `points` (p, 2), at most 2,000, with
    `target` and `class_names`; `names` (2,) of the features; `misclassified` (), the number of
    training points that this run misclassifies, NaN where it diverged. A network that normalizes
    points together uses the statistics of the training points here, or its running ones if it keeps
    them.
    """
    dataset, descent = job.dataset, job.descent
    low, high = dataset.x.min(axis=0), dataset.x.max(axis=0)
    beyond = 0.1 * np.where(high > low, high - low, 1.0)  # on both sides; 1.0: a constant feature
    a, b = np.linspace(low - beyond, high + beyond, BOUNDARY_SIDE).T
    cells = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    z = np.asarray(job.scheme.transform(cells), dtype=descent.start.dtype)
    predicted = predict_classes(descent.train.scores(descent.best_weights, z))
    indices, target_arrays = sample(dataset)
    counts = descent.histories.misclassifications
    assert counts is not None  # of classes
    arrays = {
        "a": a.astype(np.float64),
        "b": b.astype(np.float64),
        "predicted": predicted.reshape(len(b), len(a)).astype(np.int16),
        "points": dataset.x[indices].astype(np.float64),
        "names": np.array(dataset.feature_names, dtype=np.str_),
        "misclassified": np.array(counts[descent.best_run, -1]),
        **target_arrays,
    }
    return Findings(arrays=arrays)


def predict_classes(scores: Array) -> Array:
    """Return the class indices `(p,)` of scores `(C, p)`; of one score, 1 where it is positive."""
    return np.asarray(scores[0] > 0 if len(scores) == 1 else scores.argmax(axis=0))


@measure("fit", depends_on=BEST_STEP, features=(1, 1), lacks=lacks_one_score)
def fit(job: FinishedJob) -> Findings:
    """Return the curve of the best step's last weights from the first start, under the scheme.

    `x` (G,): values of the feature. `prediction` (G,): the score, for real targets; for two
    classes, counted as -1 and +1, the score of least squares, which is fitted to these numbers, and
    of other costs the mean label `tanh(s / 2) = 2 sigma(s) - 1` that the softmax cost's model has
    at a difference s of scores. `points` (p, 2): features and targets in the same units, at most
    2,000.
    """
    dataset, descent = job.dataset, job.descent
    low, high = float(dataset.x.min()), float(dataset.x.max())
    beyond = 0.05 * (high - low)
    x = np.linspace(low - beyond, high + beyond, CURVE)
    z = np.asarray(job.scheme.transform(x[:, None]), dtype=np.float64)
    scores = descent.train.scores(descent.best_weights, z)
    target, prediction = dataset.y.astype(np.float64), scores[0]
    if dataset.classes:
        target = 2 * target - 1  # class 0 becomes -1
        if len(scores) == 2:
            prediction = np.tanh((scores[1] - scores[0]) / 2)
        elif not descent.train.traits.squares:
            prediction = np.tanh(scores[0] / 2)
    indices, _ = sample(dataset)
    drawn = np.column_stack([dataset.x[indices, 0], target[indices]])
    return Findings(arrays={"x": x, "prediction": prediction, "points": drawn})


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

    def project(self, weights: Array) -> Array:
        """Return the coordinates (.., 2) of flat weights (.., n)."""
        return (weights - self.origin) @ self.directions.T


@measure("contours", depends_on=BEST_STEP)
def contours(job: FinishedJob) -> Findings:
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
    and `class_names`. Of at most 3 weights also what `_trace_paths` returns. A note in their place
    for a network whose cost is not convex.
    """
    descent = job.descent
    train = descent.train
    if train.linear is None and not train.convex:
        return Findings(notes=(f"contours: {NOT_LINEAR}",))
    walk = descent.recorded_path
    weights = walk.weights.reshape(len(walk.weights), -1).astype(np.float64)
    minimum = weights_of_least_cost(descent)
    through = weights[-1] if minimum is None else minimum
    plane = _plane(descent, weights, minimum, coordinate_names(job))
    path_on_plane = plane.project(weights)
    # Where the minimum is on the plane; of shape (0,) where it is unknown.
    least = np.zeros(0) if minimum is None else plane.project(minimum)
    hessian = train.hessian(through.reshape(train.shape))
    products = [hessian.times(row.reshape(hessian.shape)).ravel() for row in plane.directions]
    plane_hessian = plane.directions @ np.transpose(products)  # (2, 2)
    # Two where the cost is curved in every direction of the plane, else fewer.
    values = spectra.eigenvalues_above_rounding(np.linalg.eigvalsh(plane_hessian), 2)
    condition = values[0] / values[1] if len(values) == 2 else np.nan
    affordable = np.sqrt(PRODUCT_BUDGET / (len(job.points_cache.x) * weights.shape[1]))
    a, b = _window(
        np.vstack([path_on_plane, least.reshape(-1, 2)]),
        plane_hessian,
        condition,
        int(np.clip(affordable, *CONTOUR_SIDE_BOUNDS)),
    )
    costs = []
    for row in np.stack(np.meshgrid(a, b), axis=-1):  # one of the grid, which bounds the memory
        models = (plane.origin + row @ plane.directions).astype(descent.start.dtype)
        models = models.reshape(-1, *train.shape)
        costs.append(train.evaluate(models, with_gradient=False).costs)
    arrays = {
        "a": a,
        "b": b,
        "cost": np.array(costs),
        "path": path_on_plane,
        "iteration": walk.iteration,
        "path_cost": walk.cost,
        "minimum": least,
        "least": np.array(descent.judging_context.minimum),
        "condition": np.array(condition),
        "names": np.array(plane.names),
        "held": np.array(plane.held),
        "through": np.array("the end of the path" if minimum is None else "the least cost"),
        "step_size": np.array(descent.best_step.step_size),
    }
    if job.z.shape[1] == 2:
        drawn = points.take(job).arrays
        arrays |= {name: drawn[name] for name in ("points", "target", "class_names")}
        arrays["point_names"] = drawn["names"]
    if weights.shape[1] <= MAX_PLANE_WEIGHTS:
        arrays |= _trace_paths(descent, plane, minimum)
    return Findings(arrays=arrays)


def weights_of_least_cost(descent: JudgedDescent) -> Array | None:
    """Return the weights of the least cost, flat `(C (M + 1),)`.

    None where no weights attain it or none are known, and for scores that are not linear.
    """
    least, linear = descent.least, descent.train.linear
    if least.case != ATTAINED or least.scores is None or linear is None:
        return None
    return weights_of(least.scores, linear.points).ravel()


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
    train, starts = descent.train, len(descent.start)
    iterations = spread_iterations(descent.settings.records, CONTOUR_PATH_LENGTH)
    rows = {k: row for row, k in enumerate(iterations.tolist())}
    paths = np.full((len(descent.steps) * starts, len(iterations), 2), np.nan)

    def observe(k: int, alive: Array, weights: Array) -> None:
        """Project the weights of the remaining runs on the plane."""
        paths[alive, rows[k]] = plane.project(weights.reshape(len(weights), -1).astype(np.float64))

    descent.rounds.replay(descent.settings.step_sizes, rows, observe)
    arrays = {"paths_at": iterations, "paths": paths[::starts]}
    # Only then does a formula give the weights of any step size and iteration.
    is_quadratic = train.linear is not None and train.linear.traits.quadratic
    if minimum is not None and descent.plain and is_quadratic:
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
    if size <= MAX_PLANE_WEIGHTS:  # bias and weight of one feature, or the two weights of two
        axes = ("bias", *(f"weight of {name}" for name in names))[-2:]
        # A bias that is only rounding is written as 0.
        bias = origin[0] if abs(origin[0]) > 1e-12 * np.abs(weights).max() else 0.0
        held = f"bias held at {bias:.3g}" if size == MAX_PLANE_WEIGHTS else ""
        middle = np.r_[origin[: size - 2], 0.0, 0.0]
        return Plane(middle, np.eye(size)[-2:], (axes[0], axes[1]), held)
    hessian = descent.train.hessian(origin.reshape(descent.train.shape))
    if hessian.is_zero:
        # A cost of flat pieces has no curvature to choose by: the plane that the path uses most.
        directions = np.linalg.svd(weights - origin, full_matrices=False)[2]
        directions = np.vstack([directions, np.eye(2, size)])[:2]  # a path of one point has one
        return Plane(origin, directions, ("along the path", "second direction of the path"))
    return Plane(origin, *_choose_directions(descent, hessian, weights))


def _choose_directions(
    descent: JudgedDescent, hessian: Hessian, weights: Array
) -> tuple[Array, tuple[str, str]]:
    """Return the stiffest direction and the one with most remaining excess, and their names.

    The excess is `g^2 / (2 h)` of the quadratic model, of the gradient g at the end of the path.
    Where the path ends at the least cost, it is that of the start.

    Args:
        descent: The judged descent.
        hessian: The Hessian at the point of the plane, not 0.
        weights: The path of the best step size, `(k, n)`.

    Returns:
        Two orthogonal unit vectors, `(2, n)`, and their names.
    """
    excess = descent.recorded_path.cost[[0, -1]] - descent.judging_context.minimum
    has_arrived = bool(descent.least.is_solved and excess[1] <= EXCESS_TOLERANCE * excess[0])
    model = weights[0 if has_arrived else -1].reshape(descent.train.shape)
    slope = gradient_at(descent.train, model.astype(descent.start.dtype))
    if hessian.size <= MAX_DENSE_SIZE:
        values, vectors = np.linalg.eigh(hessian.matrix())
    else:
        values, vectors = hessian.krylov_eigenpairs(slope)
    count = len(spectra.eigenvalues_above_rounding(values, hessian.size))
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    # Directions of about equal curvature span one eigenspace: `first` is where each space begins.
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - CURVATURE_TOLERANCE)])
    spaces = np.split(vectors, first[1:], axis=1)
    stiffest, *softer = (_project_slope(space, slope) for space in spaces)
    if softer:
        second = softer[np.argmax((softer @ slope) ** 2 / values[first[1:]])]
        name = f"direction with most excess cost {'at the start' if has_arrived else 'left'}"
    else:
        # Any direction across the stiffest: the first that keeps more than half of its length.
        across = np.vstack([vectors.T, np.eye(2, len(stiffest))])
        across = across - np.outer(across @ stiffest, stiffest)
        second = across[np.argmax(np.linalg.norm(across, axis=1) > 0.5)]
        name = "another direction, as stiff" if count > 1 else "a direction without curvature"
    rows = np.array([stiffest, second / np.linalg.norm(second)])
    return fix_signs(rows), ("most curved direction", name)


def _project_slope(space: Array, slope: Array) -> Array:
    """Return the unit projection of a gradient on an eigenspace (n, k); any vector if it is 0."""
    projection = space @ (space.T @ slope)
    length = float(np.linalg.norm(projection))
    return projection / length if length > 0 else space[:, 0]


def _window(
    inside: Array, plane_hessian: Array, condition: float, side: int
) -> tuple[Array, Array]:
    """Return the grid along both axes of the plane, around some of its points.

    The window is a square unless the contours are too elongated for one. Then each axis has a scale
    of its own, and both show about the same costs.

    Args:
        inside: Points of the plane that the window must contain, `(k, 2)`.
        plane_hessian: The Hessian on the plane, `(2, 2)`.
        condition: Its condition number; NaN with fewer than two curvatures: contours then do not
            close, and no scale fits them.
        side: The number of grid points G along each axis.

    Returns:
        The coordinates along the first and along the second axis, `(G,)` each.
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    extent = high - low
    half = np.full(2, HALF_WIDTH * extent.max())
    if condition > MAX_SQUARE_CONDITION:
        # Of equal cost, a move along b is `ratio` times one along a. An axis on which the path is
        # short shows at least a tenth of what the other axis shows, so converted.
        ratio = np.sqrt(plane_hessian[0, 0] / plane_hessian[1, 1])
        half = HALF_WIDTH * np.maximum(extent, 0.1 * extent[::-1] * [1 / ratio, ratio])
    half = np.where(half > 0, half, half.max() or 1.0)  # a path of one point has no extent
    middle = (low + high) / 2
    a, b = (m + np.linspace(-h, h, side) for m, h in zip(middle, half))
    return a, b


class Scene(NamedTuple):
    """One cost in the coordinates of every frame.

    Attributes:
        problem: The cost in the coordinates of the scheme, float64.
        film: The F frames.
        maps: Maps T of weights `(F, 3, 3)`: weights v of a frame, bias first, are the weights `v T`
            of the scheme.
        start: The first start of the job, in the weights of the scheme `(3,)`.
        theories: The theory of each frame.
    """

    problem: Problem
    film: Frames
    maps: Array
    start: Array
    theories: tuple[Theory, ...]

    def costs(self, weights: Array) -> Array:
        """Return the costs (k,) of weights (k, 3) of the scheme."""
        # One score a point: the weights of k models are (k, 1, 3).
        return self.problem.evaluate(weights[:, None], with_gradient=False).costs


@measure("film", features=(2, 2))
def film(job: FinishedJob) -> Findings:
    """Return the film, in which the points, the cost and the descent move through F frames.

    The features become the scheme's coordinates as in `normbench.normalizers.morph`: `centre`
    (2,), `matrix` (F, 2, 2), `image`, `signs` (F, 2), `keys` (k,) with their labels `words` (k,),
    the `names` (k, 2) of the coordinates at each key frame. `points` (p, 2) are the features, at
    most 2,000, with `target` (p,) and `class_names` (C,).

    The cost is one function of bias and two weights in every frame; an l2 penalizes the weights of
    the scheme. Each frame has its L of theory, `lipschitz` (F,); its condition number with the
    bias, `condition` (F,); and plain descent at step 1/L from the first start of the job: `path`
    (F, n, 3), bias first, at `iteration` (n,), with `path_cost` (F, n), and `iterations` (F,) to
    one percent of the excess of the start, -1 for more than `most` ().

    Contours need two weights. The bias is held constant in the coordinates of the scheme, as in
    `contours`: at that of the least cost, or of the end of the last path (`through` () says which).
    In the coordinates of another frame the bias then depends on the weights, so that every frame
    shows one function of two weights. Where a scheme centres, least squares has its lowest bias
    everywhere there. The effect of shifting the points is therefore visible in the path and the
    numbers, not in the contours. Costs `cost` (g, g) at positions y on the grid `along` (g,), which
    are the weights `origin` (F, 2) plus `y basis` (F, 2, 2) of a frame; `lowest` () at the origin,
    `level` () at the two weights of the start. Without a film a note has the reason.
    """
    scene = _make_scene(job)
    if isinstance(scene, str):
        return Findings(notes=(f"film: {scene}",))
    frames, minimum = scene.film, job.descent.judging_context.minimum
    start_cost = float(scene.costs(scene.start[None])[0])
    target = minimum + TARGET_EXCESS * (start_cost - minimum)
    # The threshold is 2/L; `_make_scene` refuses a job in which a frame has none.
    lipschitz = np.array([2 / (theory.threshold or np.nan) for theory in scene.theories])
    iteration, path, cost, reached = _descend_frames(scene, 1 / lipschitz, target)
    minimizer = weights_of_least_cost(job.descent)
    origin = path[-1, -1] if minimizer is None else minimizer
    # The second has the bias of the first, by which it lies on the plane of the grid, too.
    lowest, level = scene.costs(np.array([origin, np.r_[origin[0], scene.start[1:]]]))
    border_cost = lowest + BORDER * (level - lowest)
    along, directions, costs = _make_grid(scene, path, origin, border_cost)
    inverse_maps = np.linalg.inv(scene.maps)
    indices, target_arrays = sample(job.dataset)
    # The last key frame is the scheme itself, whose coordinates have names of their own.
    labels = [DIRECTIONS if mixed else job.dataset.feature_names for mixed in frames.mixed[:-1]]
    hessians = [theory.spectrum for theory in scene.theories]
    arrays = {
        # The centre of the map, which `probe` puts at the mean.
        "centre": job.dataset.x.mean(axis=0, dtype=np.float64),
        "matrix": frames.matrix,
        "image": frames.image,
        "signs": frames.signs,
        "keys": frames.keys,
        "words": np.array(frames.labels),
        "names": np.array([*labels, coordinate_names(job)], dtype=np.str_),
        "points": job.dataset.x[indices].astype(np.float64),
        **target_arrays,
        "lipschitz": lipschitz,
        "condition": np.array(
            [s.condition_number if s and s.is_complete else UNKNOWN for s in hessians]
        ),
        "path": path @ inverse_maps,
        "iteration": iteration,
        "path_cost": cost,
        "iterations": reached,
        "most": np.array(MAX_ITERATIONS),
        "through": np.array("the end of the last path" if minimizer is None else "the least cost"),
        "origin": (origin @ inverse_maps)[:, 1:],
        "basis": (directions @ inverse_maps)[:, :, 1:],
        "along": along,
        "cost": costs,
        "lowest": np.array(lowest),
        "level": np.array(level),
    }
    return Findings(arrays=arrays)


def _make_scene(job: FinishedJob) -> Scene | str:
    """Return the scene of the film, or the reason why there is none.

    The reason is returned and not raised: it becomes a note, and the other measures are still
    taken.
    """
    train, x, linear = job.descent.train, job.dataset.x, job.descent.train.linear
    if linear is None or train.shape[0] > 1:
        return "is of linear models with one score a point, and so of two classes or real targets"
    affine = probe(job.scheme, x, job.z)
    if affine is None or not _is_plane(affine, x):
        return "the scheme is no affine map that keeps two directions of the points"
    frames = make_frames(affine.matrix, affine.centre, affine.image, x.std(axis=0, dtype=float))
    if frames is None:
        return "the scheme leaves the points as they are"
    centred = x - affine.centre
    problem = linear.on(centred @ affine.matrix.T + affine.image, linear.l2)
    # The coordinates of a frame are `M z + n`, with those of the scheme z, so that scores
    # `b + w (M z + n)` are `(b + w n) + (w M) z`.
    maps = np.zeros((len(frames.matrix), 3, 3))
    maps[:, 0, 0] = 1
    maps[:, 1:, 1:] = frames.matrix @ np.linalg.inv(affine.matrix)
    maps[:, 1:, 0] = frames.image - maps[:, 1:, 1:] @ affine.image
    start = job.descent.start[0].astype(np.float64).ravel()
    theories = tuple(
        _theorize_frame(problem, frame_map, centred @ matrix.T + image, start)
        for frame_map, matrix, image in zip(maps, frames.matrix, frames.image)
    )
    if any(theory.threshold is None for theory in theories):
        return "the cost has no largest curvature L, and so no step of 1/L"
    return Scene(problem, frames, maps, start, theories)


def _is_plane(affine: AffineMap, x: Array) -> bool:
    """Return whether points (P, 2) span the plane, before a map and after it: not on a line."""
    if affine.matrix.shape != (2, 2):
        return False
    spread = x.std(axis=0) + np.finfo(float).tiny
    # Features are scaled to variance 1, so that units play no part.
    matrices = ((x - affine.centre) / spread, affine.matrix * spread)
    return all(np.linalg.matrix_rank(matrix, rtol=LINE_TOLERANCE) == 2 for matrix in matrices)


def _theorize_frame(problem: Problem, frame_map: Array, x: Array, start: Array) -> Theory:
    """Return the theory of a frame.

    Args:
        problem: The cost in the coordinates of the scheme.
        frame_map: The map T `(3, 3)` from the weights of the frame to those of the scheme.
        x: The points in the coordinates of the frame (P, 2).
        start: The start in the weights of the scheme `(3,)`.
    """
    l2 = problem.l2
    if np.any(l2):
        # The penalty is on the weights of the scheme: on those of the frame it is a matrix.
        slopes = frame_map[1:, 1:]
        l2 = slopes @ (l2 if np.ndim(l2) == 2 else l2 * np.eye(2)) @ slopes.T
    frame_start = start @ np.linalg.inv(frame_map)
    return theorize(problem.on(x, l2), frame_start[None], "full")


def _descend_frames(scene: Scene, steps: Array, target: float) -> tuple[Array, Array, Array, Array]:
    """Return plain descents of every frame, all in the weights of the scheme.

    The step `v <- v - s g T'` of the weights v of a frame, with the gradient g of the scheme, is
    `u <- u - s g T' T` of the weights `u = v T` of the scheme. All frames thus descend one cost,
    and differ in their paths alone.

    Args:
        scene: The cost, the maps T and the start.
        steps: The step size s of each frame (F,).
        target: The cost at which a descent has arrived.

    Returns:
        The n iterations of the paths `(n,)`, the weights there `(F, n, 3)`, the costs there
        `(F, n)`, and the first iteration at which each cost is at most the target `(F,)`, -1 where
        there is none.
    """
    count = len(scene.maps)
    iteration = spread_iterations(PATH_ITERATIONS, FILM_PATH_LENGTH)
    # The row of the paths that each of these iterations fills.
    rows = {int(k): row for row, k in enumerate(iteration)}
    path, cost = np.zeros((count, len(rows), 3)), np.zeros((count, len(rows)))
    step_matrices = steps[:, None, None] * (scene.maps.transpose(0, 2, 1) @ scene.maps)  # s T' T
    reached = np.full(count, -1)
    weights = np.repeat(scene.start[None, None], count, axis=0)
    for k in range(MAX_ITERATIONS + 1):
        evaluation = scene.problem.evaluate(weights)
        assert evaluation.gradient is not None
        if k in rows:
            path[:, rows[k]], cost[:, rows[k]] = weights[:, 0], evaluation.costs
        reached[(evaluation.costs <= target) & (reached < 0)] = k
        weights = weights - evaluation.gradient @ step_matrices
        if k >= PATH_ITERATIONS and (reached >= 0).all():
            break
    return iteration, path, cost, reached


def _make_grid(
    scene: Scene, paths: Array, origin: Array, border_cost: float
) -> tuple[Array, Array, Array]:
    """Return the cost on a grid over the two weights of the scheme, its bias held constant.

    The units of the coordinates make the points' second moments the identity, so that few cells
    resolve long valleys, too. The grid contains all paths, and the contours around them if they
    close.

    Args:
        scene: The cost and the start.
        paths: The paths of all frames, in the weights of the scheme (F, n, 3).
        origin: The weights of the scheme (3,) at the middle of the grid; their bias is held.
        border_cost: The cost of the highest contour.

    Returns:
        The g coordinates along either axis (g,); the directions `(2, 3)`, by which coordinates y
        are the weights `origin + y directions`; and the costs `(g, g)`, rows by the second
        coordinate.
    """
    values, vectors = np.linalg.eigh(spectra.gram(scene.problem.points)[1:, 1:])
    basis = (vectors / np.sqrt(values)).T
    directions = np.insert(basis, 0, 0.0, axis=1)
    coordinates = (paths[:, :, 1:] - origin[1:]) @ np.linalg.inv(basis)
    # A descent that starts at the least cost goes nowhere.
    radius = float(np.linalg.norm(coordinates, axis=2).max()) or 1.0
    # Widen the grid until all costs on the circle exceed the highest contour; if none does, the
    # widest stays.
    for margin in MARGINS:
        half = margin * radius
        if scene.costs(origin + half * UNIT_CIRCLE @ directions).min() >= border_cost:
            break
    ticks = np.linspace(-1, 1, FILM_SIDE)
    along = half * ticks * np.abs(ticks)  # closer together in the middle
    # One row of the grid at a time: this bounds the memory.
    costs = [
        scene.costs(origin + row @ directions)
        for row in np.stack(np.meshgrid(along, along), axis=-1)
    ]
    return along, directions, np.array(costs)
