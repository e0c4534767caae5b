"""The film of a scheme: points, cost and descent while the features become its coordinates."""

from typing import NamedTuple

import numpy as np

from normbench.datasets import Dataset
from normbench.engine.problem import Linear, Workspace
from normbench.engine.scheme.probed import Probed, probe
from normbench.measures.contract import Array, Findings, Finished, Measure
from normbench.measures.inputs import (
    least_weights,
    names_of,
    principal,
    some,
    targets_of,
    work_of_curvature,
)
from normbench.normalizers.morph import Frames, make_frames
from normbench.theory.analysis import Theory, theorize
from normbench.theory.budget import Budget, Work
from normbench.theory.spectra import gram

GRID = (31, 121)  # cells along one side, by what they cost
MOST = (100, 1000)  # iterations, by what they cost
SCORES = 2e8  # that the grid may take, and the descents: a second or two each
SHOWN = 100  # iterations of the paths
KEPT = 24  # of them, close together at first
TARGET = 0.01  # of the start's excess
MARGINS = (1.6, 2.4, 3.6, 5.4)  # of the grid around the paths: the first that holds BORDER
BORDER = 2.0  # times the excess of the start's weights: the highest contour
AROUND = np.exp(1j * np.linspace(0, 2 * np.pi, 32, endpoint=False))[:, None].view(float)
DIRECTIONS = ("direction 1", "direction 2")
NOTHING = 1e-9  # of the start's cost: an excess that is rounding
FLAT = 1e-12  # relative: points that lie on a line
UNLIMITED = Work(float("inf"), float("inf"))


class Scene(NamedTuple):
    """One cost seen in the coordinates of every frame.

    problem: in the scheme's coordinates, float64. maps `(F, 3, 3)`: weights v of a frame, bias
    first, are the weights `v T` of the scheme. start `(3,)`: the job's first, in the scheme's
    weights. theories: of each frame.
    """

    problem: Linear
    film: Frames
    maps: Array
    start: Array
    theories: tuple[Theory, ...]

    def costs(self, weights: Array) -> Array:
        """Return the costs (k,) of weights (k, 3) of the scheme."""
        return self.problem.evaluate(weights[:, None], with_gradient=False).costs

    def ends(self, origin: Array) -> tuple[float, float]:
        """Return the costs at weights (3,), and with their bias at the start's two weights."""
        lowest, level = self.costs(np.array([origin, np.r_[origin[0], self.start[1:]]]))
        return float(lowest), float(level)


def take(made: Finished) -> Findings:
    """Return the film, in which the points, the cost and the descent move through F frames.

    The features become the scheme's coordinates as in `normbench.normalizers.morph`: `centre`
    (2,), `matrix` (F, 2, 2), `image`, `signs` (F, 2), `keys` (k,) with `words` (k,), the `names`
    (k, 2) of the coordinates. `points` (p, 2) are the features, with `target` and `class_names`.

    The cost is one function, of bias and two weights, in every frame; with an l2, that of the
    scheme's weights. Each frame has its L, `lipschitz` (F,), as theory has it; its `condition`
    (F,), with the bias; and plain descent at step 1/L from the job's first start, the same
    function: `path` (F, n, 3), bias first, at `iteration` (n,), with `path_cost` (F, n), and
    `iterations` (F,) to one percent of the start's excess, -1 for more than `most` ().

    Contours need two weights. The bias is held in the scheme's own coordinates, as `contours` holds
    it: at that of the least cost (or of the end of the last frame's path; `through` () says which).
    In those of another frame it then goes with the weights, so that every frame shows one function
    of two weights; where a scheme centres, least squares has its lowest bias everywhere there. What
    moving the points does is therefore seen in the path and the numbers, not in the contours. Costs
    `cost` (g, g) over places y on the grid `along` (g,), which are the weights `origin` (F, 2) plus
    `y basis` (F, 2, 2) of a frame; `lowest` () at the origin, `level` () at the start's two
    weights. Without a film a note says why.
    """
    scene = _scene(made)
    if isinstance(scene, str):
        return Findings(notes=(f"film: {scene}",))
    here, film = made.descended, scene.film
    assert here is not None
    began = float(scene.costs(scene.start[None])[0])
    target = here.bench.minimum + TARGET * (began - here.bench.minimum)
    lipschitz = np.array([2 / (theory.threshold or np.nan) for theory in scene.theories])
    iteration, path, cost, reached = _descended(scene, 1 / lipschitz, target)
    known = least_weights(here)
    origin = path[-1, -1] if known is None else known
    along, directions, costs = _plane(scene, path, origin)
    back = np.linalg.inv(scene.maps)
    kept = some(len(made.z))
    features = made.dataset.feature_names
    labels = [DIRECTIONS if mixed else features for mixed in film.mixed[:-1]]
    lowest, level = scene.ends(origin)
    return Findings(
        arrays={
            "centre": made.dataset.x.mean(axis=0, dtype=np.float64),
            "matrix": film.matrix,
            "image": film.image,
            "signs": film.signs,
            "keys": film.keys,
            "words": np.array(film.labels),
            "names": np.array([*labels, names_of(made)], dtype=np.str_),
            "points": made.dataset.x[kept].astype(np.float64),
            **targets_of(made.dataset, kept),
            "lipschitz": lipschitz,
            "condition": np.array([_condition(theory) for theory in scene.theories]),
            "path": path @ back,
            "iteration": iteration,
            "path_cost": cost,
            "iterations": reached,
            "most": np.array(_most(scene)),
            "through": np.array("the end of the last path" if known is None else "the least cost"),
            "origin": (origin @ back)[:, 1:],
            "basis": (directions @ back)[:, :, 1:],
            "along": along,
            "cost": costs,
            "lowest": np.array(lowest),
            "level": np.array(level),
        }
    )


def _scene(made: Finished) -> Scene | str:
    """Return what the film is of, or why there is none."""
    here = made.descent
    train, x = here.train, made.dataset.x
    if train.linear is None or train.shape[0] > 1:
        return "it is of costs of one score a point, and here each class has a score"
    found = probe(made.scheme, x, made.z)
    if found is None:
        return "the scheme is no affine map of the features"
    if not _is_plane(found, x):
        return "the scheme does not keep two directions of the points"
    film = make_frames(found.matrix, found.centre, found.image, x.std(axis=0, dtype=np.float64))
    if film is None:
        return "the scheme leaves the points as they are"
    centred = x - found.centre
    linear = train.linear
    problem = linear.on(centred @ found.matrix.T + found.image, linear.l2)
    maps = _maps(film, found)
    start = here.start[0].astype(np.float64).ravel()
    theories = tuple(
        _theory(problem, each, centred @ matrix.T + image, start)
        for each, matrix, image in zip(maps, film.matrix, film.image)
    )
    if any(theory.threshold is None for theory in theories):
        return "the cost has no largest curvature L, and so no step of 1/L"
    scene = Scene(problem, film, maps, start, theories)
    began = float(scene.costs(start[None])[0])
    if began - here.bench.minimum <= NOTHING * abs(began):
        return "the start has the least cost, and descent has nowhere to go"
    return scene


def _is_plane(found: Probed, x: Array) -> bool:
    """Return whether a map keeps two coordinates, of points that do not lie on a line."""
    if found.matrix.shape != (2, 2):
        return False
    deviations, _ = principal((x - found.centre) / (x.std(axis=0) + np.finfo(float).tiny))
    lengths = np.linalg.svd(found.matrix * x.std(axis=0), compute_uv=False)
    return bool(deviations[1] > FLAT**0.5 * deviations[0] and lengths[1] > FLAT * lengths[0])


def _maps(film: Frames, found: Probed) -> Array:
    """Return what makes a frame's weights the scheme's, `(F, 3, 3)`.

    A frame's coordinates are `M z + n` of the scheme's z, so that scores `b + w (M z + n)` are
    `(b + w n) + (w M) z`.
    """
    maps = np.zeros((len(film.matrix), 3, 3))
    maps[:, 0, 0] = 1
    maps[:, 1:, 1:] = film.matrix @ np.linalg.inv(found.matrix)
    maps[:, 1:, 0] = film.image - maps[:, 1:, 1:] @ found.image
    return maps


def _theory(problem: Linear, into: Array, x: Array, start: Array) -> Theory:
    """Return the theory of a frame: its points x (P, 2), its map, the start of the scheme."""
    l2 = problem.l2
    if np.any(l2):
        slopes = into[1:, 1:]
        l2 = slopes @ (l2 if np.ndim(l2) == 2 else l2 * np.eye(2)) @ slopes.T
    own = start @ np.linalg.inv(into)
    return theorize(problem.on(x, l2), own[None], Budget(UNLIMITED))


def _condition(theory: Theory) -> float:
    found = theory.spectrum
    return found.condition_number if found is not None and found.is_complete else float("nan")


def _most(scene: Scene) -> int:
    """Return how many iterations a descent of every frame may take."""
    return int(np.clip(SCORES / (len(scene.problem.points) * len(scene.maps)), *MOST))


def _descended(scene: Scene, steps: Array, target: float) -> tuple[Array, Array, Array, Array]:
    """Return plain descents of every frame, at step sizes (F,), all in the scheme's weights.

    Iterations `(n,)`, the weights there `(F, n, 3)`, the costs `(F, n)`, and the iterations to the
    target `(F,)`, -1 for more than were made.

    `v <- v - s g T'` of a frame's weights v, with the scheme's gradient g, is `u <- u - s g T' T`
    of its weights `u = v T`: so the cost that is descended is one, and only the way differs.
    """
    most, count = _most(scene), len(scene.maps)
    iteration = np.unique(np.r_[0, np.geomspace(1, SHOWN, KEPT).round().astype(int)])
    rows = {int(k): row for row, k in enumerate(iteration)}
    path, cost = np.zeros((count, len(rows), 3)), np.zeros((count, len(rows)))
    turned = steps[:, None, None] * (scene.maps.transpose(0, 2, 1) @ scene.maps)
    reached, left = np.full(count, -1), np.arange(count)
    weights, memory = np.repeat(scene.start[None, None], count, axis=0), Workspace()
    for k in range(most + 1):
        now = scene.problem.evaluate(weights[left], workspace=memory)
        assert now.gradient is not None
        if k in rows:
            path[left, rows[k]], cost[left, rows[k]] = weights[left, 0], now.costs
        reached[left[(now.costs <= target) & (reached[left] < 0)]] = k
        weights[left] -= now.gradient @ turned[left]
        if k >= SHOWN:
            left = np.flatnonzero(reached < 0)
            if not len(left):
                break
    return iteration, path, cost, reached


def _plane(scene: Scene, paths: Array, origin: Array) -> tuple[Array, Array, Array]:
    """Return the cost over the plane of the scheme's two weights, through weights (3,).

    A place y, of coordinates out of the first array (g,), is the scheme's weights `origin + y
    directions`, directions `(2, 3)` the second; the third are the costs `(g, g)`, by rows of the
    second coordinate. In units in which the points have the Gram matrix I, so that a few cells are
    enough for long valleys, too. The grid holds all paths (F, n, 3), and the contours around them
    if they close.
    """
    values, vectors = np.linalg.eigh(gram(scene.problem.points)[1:, 1:])
    basis = (vectors / np.sqrt(values)).T
    directions = np.insert(basis, 0, 0.0, axis=1)
    places = (paths[:, :, 1:] - origin[1:]) @ np.linalg.inv(basis)
    lowest, level = scene.ends(origin)
    for margin in MARGINS:
        half = margin * float(np.linalg.norm(places, axis=2).max())
        if scene.costs(origin + half * AROUND @ directions).min() >= lowest + BORDER * (
            level - lowest
        ):
            break
    side = int(np.clip(np.sqrt(SCORES / len(scene.problem.points)), *GRID))
    share = np.linspace(-1, 1, side)
    along = half * share * np.abs(share)  # closer together in the middle
    grid = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
    costs = np.concatenate(
        [scene.costs(part) for part in np.array_split(origin + grid @ directions, side)]
    )
    return along, directions, costs.reshape(side, side)


def _unfit(dataset: Dataset) -> str:
    if dataset.x.shape[1] == 2:
        return ""
    picture = "is of two features, which a picture can show"
    return f"{picture}; {dataset.name} has {dataset.x.shape[1]}"


MEASURE = Measure(take, record="film", what="film", work=work_of_curvature, unfit=_unfit)
