"""What a figure needs beyond histories: the arrays that `record` asks for, small enough to keep."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normbench.datasets import Dataset, UserError
from normbench.engine.descent import descend
from normbench.engine.problem import Objective
from normbench.measures import record_inputs
from normbench.measures.record_inputs import some
from normbench.normalizers.spectrum import mean_and_covariance
from normbench.optimizers import Optimizer

Array = NDArray[Any]
Arrays = dict[str, Array]
OF_A_DESCENT = ("path", "contours", "fit")
MOST_COMPONENTS = 64
MOST_FEATURES = 4096  # of an image, or of a spectrum
PATH_NUMBERS = 500_000  # of a path of weights: 4 MB
GRID = (21, 61)  # cells along one side of a contour plot, by what they cost
GRID_PRODUCTS = 1e11  # multiplications that a grid may take


@dataclass(frozen=True)
class Descent:
    """The best run of a job, ready to be descended again. start: `(1, C, N + 1)`, bias first."""

    objective: Objective
    optimizer: Optimizer
    start: Array
    step_size: float
    iterations: int


def without_descent(record: tuple[str, ...], iterations: int) -> bool:
    """Return whether a job only fits its scheme and records: `iterations=0`, with a record."""
    return bool(record) and iterations == 0


def check(record: tuple[str, ...], iterations: int, dataset: Dataset, scheme: Any) -> None:
    """Raise `UserError` where a record cannot be made."""
    needs = [name for name in record if name in OF_A_DESCENT]
    if needs and iterations == 0:
        raise UserError(
            f"record={needs[0]}: is of a descent, and iterations=0 makes none; "
            f"set iterations or leave {needs[0]} out"
        )
    if "fit" in record:
        record_inputs.check_fit(dataset)
    if "projection" in record:
        record_inputs.check_projection(dataset, scheme)
    features = dataset.x.shape[1]
    if features > MOST_FEATURES and {"components", "spectrum"} & set(record):
        raise UserError(
            f"record={','.join(record)}: components and spectrum are for {MOST_FEATURES} features "
            f"at most; {dataset.name} has {features}"
        )
    if "components" in record and not hasattr(scheme, "inverse_transform"):
        raise UserError(
            f"record=components: normalizer {type(scheme).__name__} has no inverse_transform to "
            "turn a component into an image with; leave components out or choose another scheme"
        )


def arrays(
    record: tuple[str, ...], dataset: Dataset, scheme: Any, z: Array, descent: Descent | None
) -> Mapping[str, Arrays]:
    """Return what was asked for: named arrays, under the name in `record`.

    scheme: fitted; z: the training points under it, (P, M). descent: the best run, None where
    there is none (its records are left out then). All arrays are numbers or strings.
    """
    makers: dict[str, Callable[[], Arrays]] = {
        "points": lambda: points(dataset, z, _names(dataset, scheme, z)),
        "features": lambda: record_inputs.features(z, _names(dataset, scheme, z)),
        "projection": lambda: record_inputs.projection(dataset, scheme, z),
        "components": lambda: components(dataset, scheme, z),
        "spectrum": lambda: spectrum(dataset, scheme, z),
    }
    made = {name: makers[name]() for name in record if name in makers}
    if descent is not None and set(record) & set(OF_A_DESCENT):
        walked = path(descent)
        if "path" in record:
            made["path"] = walked
        if "contours" in record:
            made["contours"] = contours(descent, walked, _names(dataset, scheme, z))
        if "fit" in record:
            made["fit"] = record_inputs.fit(dataset, scheme, walked["weights"][-1])
    return made


def path(descent: Descent) -> Arrays:
    """Return the weights along the best run's first start, descended once more.

    `iteration` (k,), `weights` (k, C, N + 1), `cost` (k,) and `step_size` (). Iterations are
    thinned evenly, first and last kept, where all would be more than 4 MB.
    """
    room = max(2, PATH_NUMBERS // descent.start.size)
    last = descent.iterations
    kept = np.unique(np.linspace(0, last, min(last + 1, room)).round().astype(int))
    wanted, seen = set(kept.tolist()), []

    def observe(k: int, alive: Array, weights: Array) -> None:
        if k in wanted and len(alive):
            seen.append((k, weights[0].copy()))

    histories = descend(
        descent.objective,
        None,
        descent.optimizer,
        descent.start,
        np.array([descent.step_size]),
        last,
        observe=observe,
    )
    iteration = np.array([k for k, _ in seen])
    return {
        "iteration": iteration,
        "weights": np.array([weights for _, weights in seen]),
        "cost": histories.cost[0, iteration],
        "step_size": np.array(descent.step_size),
    }


def contours(descent: Descent, walked: Arrays, names: tuple[str, ...]) -> Arrays:
    """Return the cost over a plane of weights, on a square grid that holds the whole path.

    The plane: bias and weight of a single feature; the two weights of two features, the bias at
    its final value; otherwise the two stiffest directions of the Hessian at the end, through the
    end, the path projected on it. `a`, `b` (G,), `cost` (G, G) with b along the rows, `path`
    (k, 2), `iteration` (k,), `names` (2,) of the axes, `step_size` ().
    """
    weights = walked["weights"].reshape(len(walked["weights"]), -1).astype(np.float64)
    end = weights[-1]
    origin, directions, labels = _plane(descent, weights, names)
    along = (weights - origin) @ directions.T
    low, high = along.min(axis=0), along.max(axis=0)
    half = 0.65 * float((high - low).max()) or 1.0  # a path of one point has no extent
    side = _side(descent, end.size)
    a, b = (middle + np.linspace(-half, half, side) for middle in (low + high) / 2)
    grid = np.stack(np.meshgrid(a, b), axis=-1).reshape(-1, 2)
    shape = (-1, *descent.start.shape[1:])
    costs = [
        descent.objective.evaluate(
            (origin + part @ directions).astype(descent.start.dtype).reshape(shape), False
        ).costs
        for part in np.array_split(grid, max(1, len(grid) // 64))
    ]
    return {
        "a": a,
        "b": b,
        "cost": np.concatenate(costs).reshape(side, side),
        "path": along,
        "iteration": walked["iteration"],
        "names": np.array(labels),
        "step_size": walked["step_size"],
    }


def _plane(descent: Descent, weights: Array, names: tuple[str, ...]) -> tuple[Array, Array, Any]:
    """Return a point (n,) on the plane, its two unit directions (2, n), and their names."""
    end, size = weights[-1], weights.shape[1]
    if size == 2:
        return np.zeros(2), np.eye(2), ("bias", f"weight of {names[0]}")
    if size == 3:
        origin = np.array([end[0], 0.0, 0.0])
        return origin, np.eye(3)[1:], tuple(f"weight of {name}" for name in names)
    hessian = descent.objective.hessian(end.reshape(descent.start.shape[1:]))
    if not hessian.is_zero:
        return end, hessian.leading(2), ("stiffest direction", "second stiffest direction")
    # A cost of flat pieces has no curvature to choose by: the plane that the path uses most.
    directions = np.linalg.svd(weights - end, full_matrices=False)[2]
    directions = np.vstack([directions, np.eye(2, size)])[:2]
    return end, directions, ("along the path", "second direction of the path")


def _side(descent: Descent, size: int) -> int:
    products = len(descent.objective.x) * size
    return int(np.clip(np.sqrt(GRID_PRODUCTS / products), *GRID))


def points(dataset: Dataset, z: Array, names: tuple[str, ...]) -> Arrays:
    """Return the training points under the scheme in two coordinates, at most 2,000 of them.

    `points` (p, 2): the two features of the scheme, or the two leading principal directions of
    more; of a single feature, feature and target. `names` (2,); `mean` (2,); `axes` (2, 2), a
    principal axis a row, one standard deviation long, or (0, 2) of a single feature; `target`
    (p,), class indices, real targets, or zeros; `class_names` (C,).
    """
    kept = some(len(z))
    target = dataset.y if len(dataset.y) else np.zeros(len(z))
    labels = list(names)
    if z.shape[1] == 1:
        flat = np.column_stack([z[:, 0], target]).astype(np.float64)
        labels += ["target" if len(dataset.y) else ""]
    elif z.shape[1] == 2:
        flat = z.astype(np.float64)
    else:
        # Not centred: where the points lie is part of what a scheme does.
        flat = z @ _eigen(z)[1][:2].T
        labels = ["principal direction 1", "principal direction 2"]
    deviations, directions = _eigen(flat)
    axes = deviations[:, None] * directions
    return {
        "points": flat[kept],
        "names": np.array(labels[:2]),
        "mean": flat.mean(axis=0),
        "axes": axes if z.shape[1] > 1 else axes[:0],
        "target": target[kept],
        "class_names": np.array(dataset.class_names, dtype=np.str_),
    }


def components(dataset: Dataset, scheme: Any, z: Array) -> Arrays:
    """Return what each coordinate of the scheme adds to a point, and a point built up from them.

    `components` (m, N): the point of the inputs that a unit along coordinate i adds, scaled to
    length 1; m at most 64. `count` (K,) numbers of coordinates, `built` (K, N) the first training
    point from so many of them, `original` (N,). The scheme has an `inverse_transform`.
    """
    width = z.shape[1]
    first = min(width, MOST_COMPONENTS)
    origin = _back(scheme, np.zeros((1, width)))
    added = _back(scheme, np.eye(first, width)) - origin
    lengths = np.linalg.norm(added, axis=1, keepdims=True)
    count = np.unique(np.concatenate([[0], np.geomspace(1, width, 24).round().astype(int)]))
    masked = np.where(np.arange(width) < count[:, None], z[0].astype(np.float64), 0.0)
    return {
        "components": (added / np.where(lengths > 0, lengths, 1.0)).astype(np.float32),
        "count": count,
        "built": _back(scheme, masked).astype(np.float32),
        "original": dataset.x[0].astype(np.float32),
    }


def _back(scheme: Any, coordinates: Array) -> Array:
    return np.asarray(scheme.inverse_transform(coordinates), dtype=np.float64)


def spectrum(dataset: Dataset, scheme: Any, z: Array) -> Arrays:
    """Return the eigenvalues of the covariance before (N,) and after (M,) the scheme, decreasing.

    `dead` (): how many directions carry nothing but rounding before the scheme, those at most N
    times machine epsilon of the largest. `ridge` (): the scheme's own, NaN where it has none.
    `identity_gap` (): how far the points after the scheme are from centred and sphered.
    """
    before, after = (_eigenvalues(part) for part in (dataset.x, z))
    floor = len(before) * np.finfo(np.float64).eps * before[0]
    ridge = getattr(scheme, "ridge", None)
    return {
        "before": before,
        "after": after,
        "dead": np.array(np.count_nonzero(before <= floor)),
        "ridge": np.array(np.nan if ridge is None else float(ridge)),
        "identity_gap": np.array(record_inputs.identity_gap(z)),
    }


def _eigenvalues(x: Array) -> Array:
    with np.errstate(over="ignore"):  # of points around 1e160, whose variance is no number
        return _eigen(x)[0] ** 2


def _eigen(x: Array) -> tuple[Array, Array]:
    """Return the standard deviations (N,), decreasing, along the principal directions (N, N), rows.

    The points are scaled first, so that large ones do not overflow.
    """
    scale = float(np.abs(x).max()) or 1.0
    values, vectors = np.linalg.eigh(mean_and_covariance(x / scale)[1])
    return scale * np.sqrt(np.maximum(values[::-1], 0.0)), vectors.T[::-1]


def _names(dataset: Dataset, scheme: Any, z: Array) -> tuple[str, ...]:
    """Return a name for each coordinate of the scheme: its own, or the feature's."""
    with suppress(AttributeError, ValueError):  # a link of a chain may have none
        return tuple(scheme.get_feature_names_out(np.array(dataset.feature_names, dtype=object)))
    if z.shape[1] == len(dataset.feature_names):
        return dataset.feature_names
    return tuple(f"coordinate {n + 1}" for n in range(z.shape[1]))
