"""The cost over a plane of weights, on a grid around the path and the least cost."""

from typing import NamedTuple

import numpy as np

from normbench.engine.hessian import Hessian
from normbench.measures import points
from normbench.measures.contract import BEST, Array, Descended, Findings, Finished, Measure
from normbench.measures.inputs import least_weights, names_of
from normbench.normalizers.decomposition import fix_signs
from normbench.theory import spectra
from normbench.theory.analysis import curvature_work
from normbench.theory.budget import Work

GRID = (21, 61)  # cells along one side, by what they cost
GRID_PRODUCTS = 1e11  # multiplications that a grid may take
AT_ONCE = 64  # models that are evaluated together
DENSE = 2000  # weights: the eigenvectors of a matrix of that size take seconds
TRIED, HALVED = 24, 20  # directions whose excess is measured, and how near it is looked for
ALIKE = 1e-3  # relative: curvatures that a picture does not tell apart
NOTHING = 1e-9  # of the start's excess: what is left of it is rounding
ZERO = 1e-12  # of the start's gradient, as well
ROUND = 100.0  # condition number: beyond, the axes have scales of their own
FEW = 3  # weights: of so few every step size's path lies in the picture
KEPT = 50  # weights of such a path, evenly on a log scale
END, LEAST = "the end of the path", "the least cost"
MARGIN = 0.65  # of the window's extent, to either side of its middle


class Plane(NamedTuple):
    """A plane of weights.

    origin `(n,)`; directions `(2, n)`, of length 1, across each other; names: of the two; held:
    which single weight is held at what.
    """

    origin: Array
    directions: Array
    names: tuple[str, str]
    held: str = ""


def take(made: Finished) -> Findings:
    """Return the costs over a plane.

    The plane: bias and weight of a single feature; the two weights of two features; otherwise the
    stiffest direction of the Hessian, and of the others the one with most excess left at the end.
    It goes through the least cost, where some weights are known to have it, else through the end.
    `a`, `b` (G,), `cost` (G, G) with b along the rows; `path` (k, 2), projected on the plane, with
    `iteration` and `path_cost` (k,); `minimum` (2,), or (0,) where none is known, and `least` ()
    the least cost; `condition` () of the Hessian on the plane, at the least cost or the end, NaN
    without curvature; `names` (2,) of the axes; `held` (), which single weight is held at
    what; `through` (), what the plane goes through; `step_size` (). Of two features also the points
    that `points` returns, their `target` and `class_names`. Of at most 3 weights also what `_paths`
    returns.
    """
    here = made.descent
    if here.best is None:
        return Findings()
    walk = here.walk
    weights = walk.weights.reshape(len(walk.weights), -1).astype(np.float64)
    minimum = least_weights(here)
    at = weights[-1] if minimum is None else minimum
    plane = _plane(here, weights, minimum, names_of(made))
    along = (weights - plane.origin) @ plane.directions.T
    least = np.zeros(0) if minimum is None else (minimum - plane.origin) @ plane.directions.T
    curved = _curved(here, plane, at)
    values = spectra.live(np.linalg.eigvalsh(curved), 2)
    side = int(np.clip(np.sqrt(GRID_PRODUCTS / (len(made.known.x) * weights.shape[1])), *GRID))
    a, b = _window(np.vstack([along, least.reshape(-1, 2)]), curved, side)
    shown = points.take(made).arrays if made.z.shape[1] == 2 else {}
    return Findings(
        arrays={
            **{name: shown[name] for name in ("points", "target", "class_names") if shown},
            "a": a,
            "b": b,
            "cost": _costs(here, plane, a, b),
            "path": along,
            "iteration": walk.iteration,
            "path_cost": walk.cost,
            "minimum": least,
            "least": np.array(here.bench.minimum),
            "condition": np.array(values[0] / values[1] if len(values) == 2 else np.nan),
            "names": np.array(plane.names),
            "held": np.array(plane.held),
            "through": np.array(END if minimum is None else LEAST),
            "step_size": np.array(here.best_step.step_size),
            **(_paths(here, plane, minimum) if weights.shape[1] <= FEW else {}),
        }
    )


def _paths(here: Descended, plane: Plane, minimum: Array | None) -> dict[str, Array]:
    """Return the path of every step size on the plane, from the first start, thinned.

    `paths_at` (k,), iterations; `paths` (S, k, 2), NaN from where a run stopped being finite. Of
    plain descent on a quadratic with n weights also `curvature` (n,) and `swing` (n, 2): after k
    steps of size h the weights are at the minimum plus the sum of (1 - h curvature)^k swing.
    """
    last = here.settings.iterations
    at = np.unique(np.r_[0, np.geomspace(1, max(last, 1), KEPT).round().astype(int)])
    at = at[at <= last]
    rows = {k: n for n, k in enumerate(at.tolist())}
    paths = np.full((len(here.steps), len(at), 2), np.nan)

    def observe(k: int, alive: Array, weights: Array) -> None:
        if k in rows:
            flat = weights.reshape(len(weights), -1).astype(np.float64)
            paths[alive, rows[k]] = (flat - plane.origin) @ plane.directions.T

    here.again([step.step_size for step in here.steps], here.start[:1], observe)
    found = {"paths_at": at, "paths": paths}
    train = here.train
    quadratic = train.linear is not None and train.linear.traits.quadratic
    if minimum is not None and here.plain and quadratic:
        values, vectors = np.linalg.eigh(train.hessian(minimum.reshape(train.shape)).matrix())
        away = (here.start[0].ravel() - minimum) @ vectors
        found |= {"curvature": values, "swing": (vectors * away).T @ plane.directions.T}
    return found


def _plane(here: Descended, weights: Array, minimum: Array | None, names: tuple[str, ...]) -> Plane:
    """Return the plane for a path (k, n)."""
    size = weights.shape[1]
    origin = weights[-1] if minimum is None else minimum
    if size == 2:
        return Plane(np.zeros(2), np.eye(2), ("bias", f"weight of {names[0]}"))
    if size == 3:
        first, second = (f"weight of {name}" for name in names)
        bias = origin[0] if abs(origin[0]) > 1e-12 * np.abs(weights).max() else 0.0
        held = f"bias held at {bias:.3g}"
        return Plane(np.array([origin[0], 0.0, 0.0]), np.eye(3)[1:], (first, second), held)
    hessian = here.train.hessian(origin.reshape(here.train.shape))
    if hessian.is_zero:
        # A cost of flat pieces has no curvature to choose by: the plane that the path uses most.
        directions = np.linalg.svd(weights - origin, full_matrices=False)[2]
        directions = np.vstack([directions, np.eye(2, size)])[:2]
        return Plane(origin, directions, ("along the path", "second direction of the path"))
    return Plane(origin, *_chosen(here, hessian, weights, minimum))


def _chosen(
    here: Descended, hessian: Hessian, weights: Array, minimum: Array | None
) -> tuple[Array, tuple[str, str]]:
    """Return the stiffest direction and the one with most excess left, `(2, n)`; their names.

    Where nothing is left at the end, the one with most excess at the start.
    """
    slopes = [_slope(here, hessian, one, minimum) for one in (weights[0], weights[-1])]
    done = _done(here, slopes)
    slope, point = (slopes[0], weights[0]) if done else (slopes[1], weights[-1])
    if hessian.size <= DENSE:
        values, vectors = np.linalg.eigh(hessian.matrix())
    else:
        values, vectors = hessian.near(slope)
    count = len(spectra.live(values, hessian.size))
    values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    first = np.flatnonzero(np.r_[True, values[1:] < values[:-1] * (1 - ALIKE)])
    spaces = np.split(vectors, first[1:], axis=1)
    stiffest = _along(spaces[0], slope)
    if len(spaces) == 1:
        across = np.vstack([vectors.T, np.eye(2, len(stiffest))])
        across = across - np.outer(across @ stiffest, stiffest)
        other = across[np.argmax(np.linalg.norm(across, axis=1) > 0.5)]
        name = "another direction, as stiff" if count > 1 else "a direction without curvature"
    else:
        rest = np.array([_along(space, slope) for space in spaces[1:]])
        other = _most(here, rest, values[first[1:]], slope, None if minimum is not None else point)
        name = f"direction with most excess cost {'at the start' if done else 'left'}"
    rows = np.array([stiffest, other / np.linalg.norm(other)])
    return fix_signs(rows), ("most curved direction", name)


def _done(here: Descended, slopes: list[Array]) -> bool:
    """Return whether nothing is left at the end of the path: by the least cost, where it is known.

    slopes: the gradients at the start and at the end.
    """
    if not here.least.reached:
        return bool(np.linalg.norm(slopes[1]) <= ZERO * np.linalg.norm(slopes[0]))
    began, left = here.walk.cost[[0, -1]] - here.bench.minimum
    return bool(left <= NOTHING * began)


def _most(
    here: Descended, directions: Array, values: Array, slope: Array, point: Array | None
) -> Array:
    """Return that of k eigendirections (k, n), of eigenvalues (k,), which holds most excess.

    `g^2 / (2 h)` in the quadratic model. From a point (n,), of those that the model gives most, the
    one along which the cost falls most: a cost may grow no faster than a line, and the model's
    least cost then lies too far away. It is halved as often as needed.
    """
    along = directions @ slope
    shares = along**2 / (2 * values)
    if point is None:
        return directions[np.argmax(shares)]
    some = np.argsort(-shares, kind="stable")[:TRIED]
    near = np.r_[0.0, 0.5 ** np.arange(HALVED)]
    costs = [
        _evaluated(here, point - np.outer(near * along[n] / values[n], directions[n])) for n in some
    ]
    falls = [np.nanmax(cost[0] - cost) for cost in costs]
    return directions[some[int(np.argmax(falls))]]


def _slope(here: Descended, hessian: Hessian, weights: Array, minimum: Array | None) -> Array:
    """Return the gradient `(n,)` at weights: in the quadratic model at the least cost, if known."""
    if minimum is not None:
        return hessian.times((weights - minimum).reshape(hessian.shape)).ravel()
    one = weights.reshape(1, *here.train.shape).astype(here.start.dtype)
    gradient = here.train.evaluate(one).gradient
    assert gradient is not None
    return gradient.ravel().astype(np.float64)


def _along(space: Array, slope: Array) -> Array:
    """Return a unit direction of an eigenspace (n, k): along a gradient, if that has any in it."""
    made = space @ (space.T @ slope)
    length = float(np.linalg.norm(made))
    return made / length if length > 0 else space[:, 0]


def _curved(here: Descended, plane: Plane, at: Array) -> Array:
    """Return the Hessian on the plane, `(2, 2)`, at weights (n,)."""
    hessian = here.train.hessian(at.reshape(here.train.shape))
    products = [hessian.times(one.reshape(hessian.shape)).ravel() for one in plane.directions]
    return plane.directions @ np.transpose(products)


def _window(inside: Array, curved: Array, side: int) -> tuple[Array, Array]:
    """Return the grid along both axes, around points (k, 2); curved: the Hessian there, `(2, 2)`.

    A square where contours are not too long for one. Else each axis has a scale of its own, and
    both show about the same costs.
    """
    low, high = inside.min(axis=0), inside.max(axis=0)
    extent = high - low
    values = spectra.live(np.linalg.eigvalsh(curved), 2)
    if len(values) == 2 and values[0] > ROUND * values[1]:
        across = np.sqrt(curved[0, 0] / curved[1, 1])
        half = MARGIN * np.maximum(extent, 0.1 * extent[::-1] * [1 / across, across])
    else:
        half = np.full(2, MARGIN * extent.max())
    half = np.where(half > 0, half, half.max() or 1.0)  # a path of one point has no extent
    middle = (low + high) / 2
    a, b = (m + np.linspace(-h, h, side) for m, h in zip(middle, half))
    return a, b


def _costs(here: Descended, plane: Plane, a: Array, b: Array) -> Array:
    """Return the costs on the grid, `(len(b), len(a))`."""
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    costs = [
        _evaluated(here, plane.origin + part @ plane.directions)
        for part in np.array_split(grid, max(1, len(grid) // AT_ONCE))
    ]
    return np.concatenate(costs).reshape(len(b), len(a))


def _evaluated(here: Descended, weights: Array) -> Array:
    """Return the costs (k,) of weights (k, n)."""
    models = weights.astype(here.start.dtype).reshape(-1, *here.train.shape)
    return here.train.evaluate(models, with_gradient=False).costs


def _work(made: Finished) -> Work:
    work = curvature_work(made.descent.train)
    size = min(int(np.prod(made.descent.train.shape)), DENSE)
    return work._replace(memory=work.memory + 24.0 * size**2)


MEASURE = Measure(take, record="contours", what="contours", work=_work, follows=BEST)
