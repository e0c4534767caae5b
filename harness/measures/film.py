"""The film of a scheme: points, cost and descent while the features become its coordinates."""

from typing import NamedTuple

import numpy as np

from normbench.engine.problem import Problem
from normbench.engine.scheme.probed import AffineMap, probe
from normbench.measures.contract import UNKNOWN, Array, Findings, FinishedJob, measure
from normbench.measures.planes import weights_of_least_cost
from normbench.measures.points import coordinate_names, principal_directions, sample
from normbench.normalizers.morph import Frames, make_frames
from normbench.theory.analysis import Theory, theorize
from normbench.theory.spectra import gram

FILM_SIDE_BOUNDS = (31, 121)  # cells along one side, by their work
ITERATION_BOUNDS = (100, 1000)  # bounds of a descent, by their work
SCORE_BUDGET = 2e8  # of the grid, and of the descents: a second or two each
PATH_ITERATIONS = 100
FILM_PATH_LENGTH = 24  # of these iterations, close together at first
TARGET_EXCESS = 0.01  # of the excess of the start
MARGINS = (1.6, 2.4, 3.6, 5.4)  # of the grid around the paths: the first that holds BORDER
BORDER = 2.0  # times the excess of the start: the highest contour
UNIT_CIRCLE = np.exp(1j * np.linspace(0, 2 * np.pi, 32, endpoint=False))[:, None].view(float)
DIRECTIONS = ("direction 1", "direction 2")
EXCESS_TOLERANCE = 1e-9  # of the cost of the start: a smaller excess is rounding
LINE_TOLERANCE = 1e-12  # relative: points that lie on a line


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

    def cost_range(self, origin: Array) -> tuple[float, float]:
        """Return two costs between which the contours lie, both on the plane of the grid.

        Args:
            origin: The weights of the scheme (3,) at the origin of the grid.

        Returns:
            The cost at the origin, and the cost at the start with the bias of the origin, by which
            it lies on the plane.
        """
        lowest, level = self.costs(np.array([origin, np.r_[origin[0], self.start[1:]]]))
        return float(lowest), float(level)

    @property
    def max_iterations(self) -> int:
        """The largest number of iterations of each frame's descent, by the size of the job."""
        affordable = SCORE_BUDGET / (len(self.problem.points) * len(self.maps))
        return int(np.clip(affordable, *ITERATION_BOUNDS))


@measure(
    "film",
    suits=lambda data: data.x.shape[1] == 2,
    needs="two features, which a picture can show",
)
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
    along, directions, costs = _make_grid(scene, path, origin)
    inverse_maps = np.linalg.inv(scene.maps)
    indices, target_arrays = sample(job.dataset)
    # The last key frame is the scheme itself, whose coordinates have names of their own.
    labels = [DIRECTIONS if mixed else job.dataset.feature_names for mixed in frames.mixed[:-1]]
    spectra = [theory.spectrum for theory in scene.theories]
    lowest, level = scene.cost_range(origin)
    return Findings(
        arrays={
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
                [s.condition_number if s and s.is_complete else UNKNOWN for s in spectra]
            ),
            "path": path @ inverse_maps,
            "iteration": iteration,
            "path_cost": cost,
            "iterations": reached,
            "most": np.array(scene.max_iterations),
            "through": np.array(
                "the end of the last path" if minimizer is None else "the least cost"
            ),
            "origin": (origin @ inverse_maps)[:, 1:],
            "basis": (directions @ inverse_maps)[:, :, 1:],
            "along": along,
            "cost": costs,
            "lowest": np.array(lowest),
            "level": np.array(level),
        }
    )


def _make_scene(job: FinishedJob) -> Scene | str:
    """Return the scene of the film, or the reason why there is none.

    The reason is returned and not raised: it becomes a note, and the other measures are still
    taken.
    """
    train, x, linear = job.descent.train, job.dataset.x, job.descent.train.linear
    if linear is None:
        return "is for model=linear, and these scores are not linear in the weights"
    if train.shape[0] > 1:
        return "it is of costs of one score a point, and here each class has a score"
    affine = probe(job.scheme, x, job.z)
    if affine is None:
        return "the scheme is no affine map of the features"
    if not _is_plane(affine, x):
        return "the scheme does not keep two directions of the points"
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
    scene = Scene(problem, frames, maps, start, theories)
    start_cost = float(scene.costs(start[None])[0])
    excess = start_cost - job.descent.judging_context.minimum
    if excess <= EXCESS_TOLERANCE * abs(start_cost):
        return "the start has the least cost, and descent has nowhere to go"
    return scene


def _is_plane(affine: AffineMap, x: Array) -> bool:
    """Return whether points (P, 2) span the plane, before a map and after it: not on a line."""
    if affine.matrix.shape != (2, 2):
        return False
    spread = x.std(axis=0)
    # Deviations are square roots of eigenvalues: the tolerance of these is LINE_TOLERANCE. A
    # constant feature has deviation 0.
    deviations, _ = principal_directions((x - affine.centre) / (spread + np.finfo(float).tiny))
    # Those of the map from features scaled to variance 1, so that units play no part.
    lengths = np.linalg.svd(affine.matrix * spread, compute_uv=False)
    return bool(
        deviations[1] > LINE_TOLERANCE**0.5 * deviations[0]
        and lengths[1] > LINE_TOLERANCE * lengths[0]
    )


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
    spread = np.geomspace(1, PATH_ITERATIONS, FILM_PATH_LENGTH).round().astype(int)
    iteration = np.unique(np.r_[0, spread])
    # The row of the paths that each of these iterations fills.
    rows = {int(k): row for row, k in enumerate(iteration)}
    path, cost = np.zeros((count, len(rows), 3)), np.zeros((count, len(rows)))
    step_matrices = steps[:, None, None] * (scene.maps.transpose(0, 2, 1) @ scene.maps)  # s T' T
    reached, active = np.full(count, -1), np.arange(count)
    weights = np.repeat(scene.start[None, None], count, axis=0)
    for k in range(scene.max_iterations + 1):
        evaluation = scene.problem.evaluate(weights[active])
        assert evaluation.gradient is not None
        if k in rows:
            path[active, rows[k]], cost[active, rows[k]] = weights[active, 0], evaluation.costs
        reached[active[(evaluation.costs <= target) & (reached[active] < 0)]] = k
        weights[active] -= evaluation.gradient @ step_matrices[active]
        if k >= PATH_ITERATIONS:  # the paths are complete: only the counts are still wanted
            active = np.flatnonzero(reached < 0)
            if not len(active):
                break
    return iteration, path, cost, reached


def _make_grid(scene: Scene, paths: Array, origin: Array) -> tuple[Array, Array, Array]:
    """Return the cost on a grid over the two weights of the scheme, its bias held constant.

    The units of the coordinates make the points' second moments the identity, so that few cells
    resolve long valleys, too. The grid contains all paths, and the contours around them if they
    close.

    Args:
        scene: The cost and the start.
        paths: The paths of all frames, in the weights of the scheme (F, n, 3).
        origin: The weights of the scheme (3,) at the middle of the grid; their bias is held.

    Returns:
        The g coordinates along either axis (g,); the directions `(2, 3)`, by which coordinates y
        are the weights `origin + y directions`; and the costs `(g, g)`, rows by the second
        coordinate.
    """
    values, vectors = np.linalg.eigh(gram(scene.problem.points)[1:, 1:])
    basis = (vectors / np.sqrt(values)).T
    directions = np.insert(basis, 0, 0.0, axis=1)
    coordinates = (paths[:, :, 1:] - origin[1:]) @ np.linalg.inv(basis)
    lowest, level = scene.cost_range(origin)
    radius = float(np.linalg.norm(coordinates, axis=2).max())
    border_cost = lowest + BORDER * (level - lowest)
    # Widen the grid until all costs on the circle exceed the highest contour; if none does, the
    # widest stays.
    for margin in MARGINS:
        half = margin * radius
        if scene.costs(origin + half * UNIT_CIRCLE @ directions).min() >= border_cost:
            break
    side = int(np.clip(np.sqrt(SCORE_BUDGET / len(scene.problem.points)), *FILM_SIDE_BOUNDS))
    ticks = np.linspace(-1, 1, side)
    along = half * ticks * np.abs(ticks)  # closer together in the middle
    cells = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
    # One row of the grid at a time: this bounds the memory.
    costs = np.concatenate(
        [scene.costs(chunk) for chunk in np.array_split(origin + cells @ directions, side)]
    )
    return along, directions, costs.reshape(side, side)
