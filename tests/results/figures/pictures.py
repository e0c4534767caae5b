"""Figures of hand-made numbers, which take each branch of their code: no store, no descent.

Each row of `PICTURES` returns a function that draws the figure: with other options where the caller
gives some, as `shape`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from normbench import names
from normbench.results.compare import comparisons, passes
from normbench.results.compare.merging import REPEATS
from normbench.results.figures import (
    contours,
    descent,
    drawing,
    film,
    histories,
    images,
    melt,
    phase_diagram,
    settings,
    step_sizes,
)
from normbench.results.figures import points as of_points
from normbench.results.figures.base import material, style
from normbench.results.store.looks import LOOKS
from normbench.results.store.runs import Sweep
from tests.results.compare import test_comparisons
from tests.results.made import runs

RNG = np.random.default_rng(11)
COLUMN, PAGE, SLIDE, SCREEN = (
    style.FORMATS[name] for name in ("column", "page", "slide", "screen")
)
COST, TEST_COST = names.TRAIN_COST.key, names.TEST_COST.key
WRONG, TEST_WRONG = names.TRAIN_MISCLASSIFICATIONS.key, names.TEST_MISCLASSIFICATIONS.key
SIZES = [0.01, 0.1, 1.0, 10.0]
PIXELS = RNG.standard_normal((12, 16))
COUNTS = np.array([1, 2, 3, 5, 7, 9, 11, 13, 16])
TURN = np.array([[0.6, -0.8], [0.8, 0.6]])
POINTS = np.random.default_rng(7).standard_normal((40, 2)) * [5.0, 1.0] @ TURN + [3.0, -2.0]


def rows(count: int = 2, **columns: Any) -> pd.DataFrame:
    """Return the rows of schemes `a`, `b` and so on."""
    schemes = ["identity", "standard", "pca_sphere", "zca_sphere"]
    labels = [chr(ord("a") + number) for number in range(count)]
    known = {"label": labels, "run_id": labels, "normalizer": (schemes * count)[:count]}
    return pd.DataFrame(known | {"verdict": "converged", names.STEP_TAG.column: "0.25"} | columns)


def of_schemes(draw: Any, *arrays: Any, columns: Any = None, **options: Any) -> Any:
    """Return what draws a figure of recorded arrays, one scheme each."""
    schemes = rows(len(arrays), **(columns or {}))
    return partial(draw, dict(zip(schemes["label"], arrays)), schemes, "title", **options)


def of_sweep(name: str, sweep: Sweep) -> Any:
    """Return what draws a figure of a sweep made by hand."""

    def draw(shape: style.Shape = SCREEN) -> Any:
        return drawing.figure(sweep, "x", name, material.Options(shape=shape))

    return draw


def image_arrays(kept: int, **more: Any) -> dict[str, Any]:
    """Return arrays of a scheme of images of 16 pixels."""
    arrays = {"components": PIXELS[:kept], "points": PIXELS[3:7], "under": PIXELS[5:9] ** 2}
    arrays |= {"pixels": np.array(kept > 5), "original": PIXELS[0], "origin": PIXELS[1] / 2}
    arrays |= {"weights": np.linspace(-3, 2, kept), "count": COUNTS[:kept]}
    arrays |= {"built": PIXELS[:kept] * 0.5, "share": np.linspace(0.1, 0.987, kept)}
    return arrays | more


def history(costs: dict[str, Sequence[float]], **columns: Any) -> pd.DataFrame:
    """Return histories of runs; columns: functions of the costs."""
    tables = []
    for run_id, values in costs.items():
        table = pd.DataFrame({"run_id": run_id, "iteration": range(len(values)), COST: values})
        tables.append(table.assign(**{key: of(table[COST]) for key, of in columns.items()}))
    return pd.concat(tables, ignore_index=True)


def of_histories(costs: Any, runs: Any = None, columns: Any = None, **options: Any) -> Any:
    """Return what draws a figure of histories; runs, columns: more of the runs and histories."""
    known = rows(len(costs), **(runs or {}))
    return partial(histories.draw, history(costs, **(columns or {})), known, "title", **options)


FALLING = {"a": 2.0 * 0.7 ** np.arange(12), "b": 2.0 * 0.4 ** np.arange(12)}
SLOW = {"a": np.linspace(2, 1, 12), "b": np.linspace(2, 0.9, 12)}
SHORTER = {"a": np.linspace(2, 1, 12), "b": np.linspace(2, 1.5, 5)}
RISEN = {"a": 2.0 * 30.0 ** np.arange(8), "b": np.linspace(2, 1, 12)}
LOST = {"a": 2.0 * 30.0 ** np.arange(8), "b": 3.0 * 1e9 ** np.arange(5)}
TO_ZERO = {"a": np.array([2.0, 50.0, 1.0, 0.0]), "b": np.array([2.0, 1.0, 0.5, 0.2])}
UNEVEN = {"a": 2.0 * 0.5 ** np.arange(5), "b": 2.0 * 0.99 ** np.arange(460)}
NOT_SO_UNEVEN = {"a": 2.0 * 0.5 ** np.arange(24), "b": 2.0 * 0.99 ** np.arange(461)}
MANY = {chr(ord("a") + n): (3.0 - n // 2 / 3) * 0.8 ** np.arange(9) for n in range(8)}
TWELVE = {chr(ord("a") + n): (1 + 0.01 * n) * 0.5 ** np.arange(3) for n in range(12)}
SQUASHED = {"a": np.full(20, 3.0), "b": np.full(20, 5.0), "c": np.full(20, 400.0)}
POINTS_OF = {"train_points": 60, "test_points": 20}
TESTED = {TEST_COST: lambda cost: 1.1 * cost, TEST_WRONG: lambda cost: np.round(9 * cost)}
BANDS = {names.quartile(names.TRAIN_COST, "q1").key: lambda cost: 0.9 * cost}
BANDS |= {names.quartile(names.TRAIN_COST, "q3").key: lambda cost: 1.2 * cost}
COUNTED = {WRONG: lambda cost: np.round(20 * cost)}
OVERFLOW = {names.REASON.column: "the cost or its gradient stopped being finite at step 2"}
SECONDS = {names.FIT_SECONDS.column: [0.5, 2.0], names.SECONDS_A_STEP.column: [0.25, 0.125]}
BATCHED = {passes.BATCH_SETTING: "30", passes.RECORDS: "2", passes.TRAIN_POINTS: 100.0}
STARTS = {names.setting("starts"): "5", REPEATS: "3 splits"}
DIVERGED = {"verdict": [names.DIVERGED, "converged"]}
LONG = [f"a scheme with a long label, part={n}" for n in range(2)]
SLOPES = {histories.SLOPE: [0.5, np.nan], names.MINIMUM_REACHED.column: "false"}


def of_sharpness(values: Any, columns: Any = None, **options: Any) -> Any:
    """Return what draws a figure of the sharpness along the path."""
    table = history(values).rename(columns={COST: descent.SHARPNESS})
    return partial(
        descent.draw_sharpness, table, rows(len(values), **(columns or {})), "title", **options
    )


def of_profiles() -> Any:
    """Return what draws profiles of three schemes, one of which solves half of the problems."""
    table = test_comparisons.table(
        **{"a": [10, 12, 9, 30], "b, ridge=1": [20, 5, 9, 8], "c": [50, np.inf, 9, np.inf]}
    )
    return partial(settings.draw_profiles, comparisons.profile(table), "title")


def of_batches(**columns: Any) -> Any:
    """Return what draws a figure of three sizes of a batch under two schemes."""
    table = pd.DataFrame({"scheme": ["a"] * 3 + ["b"] * 3, "batch": [1, 10, 100] * 2})
    table["stable"], table["passes"] = [0.1, 0.5, 0.9, 0.2, 1.0, 2.0], [3, 4, 30, 0, 9, 60]
    table["updates"] = table["passes"] * 100 / table["batch"]
    table = table.assign(**{"records": 10, "knee": 11.0, "normalizer": table["scheme"]})
    table = table.assign(**{"grid_end": table["stable"] == 0.9, **columns})
    return partial(settings.draw_batch_sizes, table, "title")


def batched_sweep(*counts: float, knee: float = 11.0, sizes: Any = ("1", "10", "None")) -> Sweep:
    """Return a sweep of two schemes on 100 points: the second takes twice the passes."""
    jobs = [
        ("x", scheme, {1.0: (factor * count, 0.001)}, {"batch": size})
        for factor, scheme in ((1, "standard"), (2, "pca_sphere"))
        for count, size in zip(counts, sizes)
    ]
    frame = runs(*jobs).runs.assign(train_points=100)
    return Sweep("-", "s", frame.assign(**{names.KNEE.column: knee}))


def varied_sweep(*more: Any, **params: Any) -> Sweep:
    """Return a sweep of two schemes, each with three numbers of points."""
    jobs = [
        ("x", scheme, {1.0: (3, n + cost)}, {"dataset.points": value})
        for n, scheme in enumerate(("standard", "pca_sphere"))
        for cost, value in zip((0.1, 0.3, 0.2), ("1000", "50", "200"))
    ]
    made: Sweep = runs(*jobs, *more, **params)
    return made


def two_problems() -> Sweep:
    """Return two problems: `a` is fast, `b` does not reach the target or diverges, `c` fails."""
    never = np.inf
    made = runs(
        *(("x", "a", {1.0: (3, 0.001)}), ("x", "b", {1.0: (never, 0.5)}), ("x", "c", None)),
        *(("y", "a", {1.0: (9, 0.0)}), ("y", "b", {1.0: (never, 1.0)}), ("y", "c", None)),
        iterations="10",
    )
    rows = made.runs
    rows[names.MINIMUM_REACHED.column] = "true"
    own = (rows["experiment"] == "y") & (rows["normalizer"] == "b")
    rows.loc[own, "verdict"] = "diverged"
    return Sweep("-", "s", rows)


def split_problems() -> Sweep:
    """Return two problems of three splits each, whose counts are 1, 2, 4 and ten more."""
    jobs = [
        (
            *("x" if extra == 0 else "y", scheme, {1.0: (count + extra, 0.01 * count)}),
            {"data": f"{extra}{split}", "dataset.split_seed": f"{split}"},
        )
        for extra in (0, 10)
        for scheme in "ab"
        for split, count in enumerate((1, 2, 4))
    ]
    return Sweep("-", "s", runs(*jobs).runs)


def many_problems() -> Sweep:
    """Return four problems of twelve schemes."""
    known = list(LOOKS)[:12]
    jobs = [(name, s, {1.0: (3 + n, 0.001)}) for name in "wxyz" for n, s in enumerate(known)]
    return Sweep("-", "s", runs(*jobs).runs)


def eigenvalues(after: Sequence[float], ridge: float) -> dict[str, Any]:
    """Return the arrays of a spectrum of six directions, two of them dead."""
    before = np.array([90.0, 4.0, 1.0, 0.02, 1e-17, 0.0])
    return {"before": before, "after": np.array(after), "dead": 2, "ridge": ridge}


def in_space(kept: int, classes: Sequence[str] = ("no", "yes")) -> dict[str, Any]:
    """Return points in space with their images on a plane or a line."""
    points = np.random.default_rng(4).standard_normal((15, 3)) * [3, 2, 1] + 5
    directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:kept]
    centred = points - points.mean(axis=0)
    arrays = {"points": points, "back": centred @ directions.T @ directions + points.mean(axis=0)}
    arrays |= {"kept": np.array(kept), "lost": np.array(0.0712345)}
    arrays |= {"target": np.arange(15) % max(len(classes), 1)}
    return arrays | {"names": np.array(["x", "$y", "z"]), "class_names": np.array(classes)}


def of_data(points: Any, classes: int = 2) -> dict[str, Any]:
    """Return points in two features, in classes."""
    axes = np.array([[3.0, -1.0], [0.2, 0.5]])
    kept = {"points": points, "mean": points.mean(axis=0), "axes": axes}
    kept |= {"names": np.array(["x", "y"]), "target": np.arange(len(points)) % max(classes, 1)}
    return kept | {"class_names": np.arange(classes).astype(str)}


def bowl(height: float, **more: Any) -> dict[str, Any]:
    """Return contours over a bowl: its height at the edge; the least cost, 0, in the middle."""
    side = np.linspace(-1, 1, 51)
    radius = np.hypot(*np.meshgrid(side, side))
    path = np.array([[0.6, 0.0], [0.1, 0.0]])
    arrays = {"a": side, "b": side, "cost": height * radius**2, "path": path, "step_size": 1.0}
    arrays |= {"minimum": np.zeros(2), "least": 0.0, "path_cost": [0.36], "condition": np.nan}
    arrays |= {"held": "", "through": "the least cost", "iteration": np.arange(2)}
    return {**arrays, "names": np.array(["u", "v"]), **more}


def valley(
    condition: float = 1e6, wide: float = 1.0, tall: float = 1.0, cost: Any = None
) -> dict[str, Any]:
    """Return a valley that runs aslant through the panel, on the grid that a job keeps."""
    a, b = np.linspace(-wide, wide, 41), np.linspace(-tall, tall, 41)
    c, s = np.cos(0.3), np.sin(0.3)
    u, v = np.meshgrid(a / wide, b / tall)
    values = (c * u + s * v) ** 2 * condition + (c * v - s * u) ** 2 + 3.0
    values = values if cost is None else cost(values)
    path = np.array([[0.9 * wide, 0.5 * tall], [0.0, 0.0]])
    return {
        **{"a": a, "b": b, "cost": values, "least": 3.0, "path": path},
        **{"path_cost": np.array([values.max() / 2, 3.0]), "iteration": np.array([0, 1])},
        **{"minimum": np.zeros(2), "names": np.array(["x", "y"]), "condition": condition},
        **{"held": "", "step_size": 0.1},
    }


def with_points(cost: Any, **more: Any) -> dict[str, Any]:
    """Return arrays of contours, and of the points above them."""
    return cost | of_data(POINTS) | {"names": np.array(["weight of x", "weight of y"])} | more


def curved(height: float) -> dict[str, Any]:
    """Return a cost that is no bowl of ellipses."""
    arrays: dict[str, Any] = bowl(height, condition=32.0)
    return arrays | {"cost": np.log1p(arrays["cost"]), "step_size": 0.125}


def table(label: str, verdicts: Any, costs: Any) -> pd.DataFrame:
    """Return the rows of four step sizes of a scheme."""
    known = {step_sizes.STEP_SIZE: SIZES, step_sizes.FINAL_COST: costs}
    return pd.DataFrame({"label": label, "verdict": verdicts} | known)


def scheme(label: str, threshold: float = np.nan, best: Any = "1", **more: Any) -> dict[str, Any]:
    """Return the row of a scheme."""
    known = {"label": label, "normalizer": label, step_sizes.THRESHOLD: threshold}
    return known | {names.STEP_TAG.column: best, material.START_COST_COLUMN: 1.0} | more


GOALS = {names.MINIMUM.column: 0.0, names.target("1e-1").column: 0.1}
# Three shadows of each step size: of the third three ends, of the fourth one that stopped early.
SHADOWS = np.array([[np.nan] * 3, [np.nan] * 3, [0.05, 0.4, 0.2], [0.3, np.inf, 0.7]])[:, None]
CHAOS = ["not converged", "converged", names.BY_ROUNDING, names.BY_ROUNDING]


def grid(count: int, **more: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of many step sizes of three schemes, and those of the schemes."""
    sizes = np.geomspace(1e-4, 1e2, count)
    tables = []
    for number, label in enumerate("abc"):
        verdict = np.where(sizes < 10.0**-number, "not converged", "converged")
        verdict = np.where(sizes > 10.0 ** (1 - number), names.CYCLING, verdict)
        verdict[-2:] = names.DIVERGED
        table = pd.DataFrame({"label": label, "verdict": verdict, step_sizes.STEP_SIZE: sizes})
        tables.append(table.assign(**{step_sizes.FINAL_COST: 0.02 + 1 / (1 + 300 * sizes)}))
    known = {names.MINIMUM.column: 0.01, names.target("1e-1").column: 0.109, **more}
    limits = {step_sizes.LARGEST_CONVERGENT: sizes[count // 2], names.CENSORED.column: "true"}
    best = f"{sizes[count // 2]:g}"
    schemes = [scheme("a", 5e4, best, **known), scheme("b", 3e-7, best, **known, **limits)]
    schemes += [scheme("c", 0.3, best, **known, **limits | {names.CENSORED.column: "false"})]
    return pd.concat(tables), pd.DataFrame(schemes)


def of_grid(module: Any, count: int = 9, **columns: Any) -> Any:
    """Return what draws a figure of many step sizes of three schemes."""
    return partial(module.draw, *grid(count, **columns), "title")


def of_steps(module: Any, censored: str, **more: Any) -> Any:
    """Return what draws every verdict, 2/L, the largest step that converges and a best one."""
    verdicts = ["not converged", "converged", names.BY_ROUNDING, "diverged"]
    others = ["cycling", "converged", "not converged", "not converged"]
    steps = pd.concat(
        [table("a", verdicts, [0.9, 0.1, 0.2, np.nan]), table("b", others, [0.5, 0.1, 3.0, 900.0])]
    )
    limits = {step_sizes.LARGEST_CONVERGENT: 0.1, names.CENSORED.column: censored} | more
    known = pd.DataFrame([scheme(label, 2.0, best="0.1", **limits) for label in "ab"])
    if module is phase_diagram:
        return partial(module.draw, steps, known, "")
    refined = {"refined_step_sizes": np.array([0.2]), "refined_cost": np.full((1, 1, 5), 0.05)}
    arrays = {"step_sizes": np.array(SIZES), "shadows": SHADOWS, **refined}
    return partial(module.draw, steps, known, "", {"a": arrays, "b": arrays})


def of_lost_steps(module: Any) -> Any:
    """Return what draws a scheme that diverged everywhere, and another that did at the end."""
    verdicts = ["not converged", "converged", "not converged", "diverged"]
    steps = pd.concat(
        [table("a", ["diverged"] * 4, [1e300] * 4), table("b", verdicts, [0.9, 0.1, 50.0, 1e9])]
    )
    known = pd.DataFrame([scheme("a", 1e-9, best=None), scheme("b", best="0.1")])
    return partial(module.draw, steps, known, "")


def of_equal_schemes() -> Any:
    """Return what draws the rows of four schemes, two of which are equal."""
    verdicts = ["not converged", "converged", "converged", "diverged"]
    steps = pd.concat([table(name, verdicts, [0.9, 0.1, 0.1, np.nan]) for name in "abcd"])
    known = [scheme("a", 3.0), scheme("b"), scheme("c", 0.5), scheme("d", 3.0 * (1 + 1e-9))]
    return partial(phase_diagram.draw, steps, pd.DataFrame(known), "title")


LAYER_ITERATIONS = 10


def layer_arrays(
    curvature: Any, share: Any, sizes: Any = (0.01, 0.1, 1.0), measured: bool = False
) -> dict[str, Any]:
    """Return what a job of least squares keeps of layers; measured: as if by gradients."""
    curvature, share = np.array(curvature, dtype=float), np.array(share, dtype=float)
    sizes = np.array(sizes)
    k = np.arange(LAYER_ITERATIONS + 1)
    with np.errstate(over="ignore"):
        left = share * (1 - sizes[:, None, None] * curvature) ** (2.0 * k[:, None])
    arrays = {"layer_curvature": curvature, "layer_share": share}
    arrays |= {names.TRAIN_COST.key: left.sum(axis=2)[:, None], "minimum": np.array(0.0)}
    arrays["step_sizes"] = sizes
    if measured:
        arrays["layer_ends"] = left[:, -1] / left[:, -1].sum(axis=1, keepdims=True)
        arrays |= {"layer_at": k, "layer_step": np.array(sizes[1])}
        arrays["layer_path"] = left[1] / left[1].sum(axis=1, keepdims=True)
    return arrays


def layer_table(labels: Any, **columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of schemes with layers, and those of their step sizes."""
    known = {names.STEP_TAG.column: "0.1", "normalizer": "pca", "verdict": "not converged"}
    known |= {names.setting("iterations"): str(LAYER_ITERATIONS), **columns}
    schemes = pd.DataFrame([{"label": label, "run_id": label, **known} for label in labels])
    steps = pd.DataFrame(
        {"label": label, names.STEP_SIZE.column: size, "verdict": "not converged"}
        for label in labels
        for size in (0.01, 0.1, 1.0)
    )
    return schemes, steps


def of_melt(arrays: Any, decided: bool = False, lacking: Sequence[str] = (), **columns: Any) -> Any:
    """Return what draws the picture of layers.

    decided: rounding decides the smallest step size. lacking: schemes without arrays.
    """
    schemes, steps = layer_table([*arrays, *lacking], **columns)
    if decided:
        steps.loc[steps[names.STEP_SIZE.column] == 0.01, "verdict"] = names.BY_ROUNDING
    return partial(melt.draw, arrays, schemes, steps, "title, of several words")


def of_layers(measured: bool, count: int = 3, **columns: Any) -> Any:
    """Return what draws the layers of some schemes."""
    curvature = [8.0, 8.0, 2.0, 0.5, 0.49, 0.05]
    arrays = {
        chr(ord("a") + n): layer_arrays(
            curvature, [4.0, 1.0, 3.0 + n, 0.01, 0.02, 2.0], measured=measured
        )
        for n in range(count)
    }
    return of_melt(arrays, measured, **columns)


def of_peak() -> Any:
    """Return what draws a measured scheme whose excess rises above its start on the way."""
    arrays = layer_arrays([5.0, 0.5], [1.0, 3.0], measured=True)
    arrays[names.TRAIN_COST.key][1, :, 3] *= 3.0
    return of_melt({"a": arrays})


def film_arrays(signs: tuple[int, int]) -> dict[str, Any]:
    """Return a film of three frames, two of them key frames: points are centred, then scaled."""
    along = np.linspace(-3, 3, 13)
    path = np.stack([np.linspace(0, 1, 6), np.linspace(2, 0.5, 6), np.linspace(-1, 0.2, 6)], axis=1)
    scales = np.array([[1.0, 1.0], [0.8, 1.5], [0.5, 2.0]])
    arrays = of_data(POINTS) | {"centre": POINTS.mean(axis=0), "keys": np.array([0, 2])}
    arrays |= {"names": np.array([["x", "y"], ["x scaled", "y scaled"]])}
    arrays |= {
        "matrix": np.eye(2) * scales[:, None],
        "image": POINTS.mean(axis=0) * [[1], [0.5], [0]],
    }
    arrays |= {"words": np.array(["raw", "scaled by 2"]), "signs": np.array([[1, 1], signs, signs])}
    arrays |= {
        "origin": np.array([[0.5, 0.2], [0.4, 0.3], [0.3, 0.4]]),
        "basis": np.eye(2) / scales[:, None],
    }
    arrays |= {
        "path": path * np.array([1.0, 0.9, 0.8])[:, None, None],
        "iteration": np.arange(6) ** 2,
    }
    arrays |= {
        "along": along,
        "cost": 1 + along**2 + 2 * along[:, None] ** 2,
        "lowest": 1.0,
        "level": 7.0,
    }
    arrays |= {"lipschitz": np.array([9.0, 4.0, 1e-3]), "condition": np.array([50.0, np.nan, 1.5])}
    arrays |= {
        "iterations": np.array([1234, -1, 7]),
        "most": np.array(5000),
        "through": "the least cost",
    }
    return arrays


LANDED = {"position": np.array([-0.5, 0.1, 0.9, 1.4, 2.1, 7.0])}
TABLED = {"names": np.array([f"feature number {n} of many" for n in range(25)])}
TABLED |= {"entries": np.linalg.qr(np.random.default_rng(2).standard_normal((25, 25)))[0]}
TABLED |= {"deviations": np.geomspace(9, 0.1, 25), "shares": np.array([0.6, 0.2])}
TABLED |= {"loadings": TABLED["entries"][:, :2] * [9.0, 4.0]}
PLANE = {"cloud": POINTS, "at": POINTS[:25], "images": np.abs(np.resize(PIXELS, (25, 16)))}
PLANE |= {"wanted": np.array([(x, y) for y in (5, 4, 3, 2, 1) for x in (-4, -1, 0, 1, 7)])}
CURVES = {"x": np.linspace(0, 4, 9), "points": POINTS[:9]}
SPREAD = {"values": PIXELS[:9, :3] * [1, 5, 0.1], "all": np.array(7)}
SPREAD |= {"names": np.array(["short", "$dollars", "abcdefghijklmnopq$ a year"])}
THIRTY = {"values": np.random.default_rng(1).random((9, 30)), "all": np.array(64)}
THIRTY |= {"names": np.array([f"feature {n}" for n in range(30)])}
ARROWS = of_data(POINTS) | {"loadings": np.eye(2), "shares": np.array([0.9, 0.1])}
FEW_ARROWS = ARROWS | {"loadings": np.array([[1.0, 0], [0.06, 0], [0, 0.04], [0, 0]])}
FEW_ARROWS |= {"names": np.array(["one", "two", "three", "four"])}
FAR_ARROWS = ARROWS | {"points": np.where(np.arange(40)[:, None] == 3, [0, 60], POINTS)}
FORMULAS = {
    "formula": np.array(["standard_textbook", "sphere_ours"]),
    "mean": np.array([np.nan, 0.5]),
    "off": np.array([np.nan, 1e-5]),
    "iterations": np.array([np.nan, 7]),
}
EXACT = FORMULAS | {"iterations": np.array([3, 1000]), "off": np.array([2.0, 1e-15])}
EXACT |= {"mean": np.array([0, 0])}
EQUAL_AND_THIN = layer_arrays(
    [8.0, 8.0 * (1 - 1e-9), 4.0, 2.0, 1.9, 1.8, 1.0], [30.0, 20.0, 0.1, 29.6, 0.1, 0.1, 20.1]
)


def of_layers_of_network(depth: int) -> dict[str, Any]:
    """Return what is recorded of the layers of a network at three iterations."""
    layers = np.arange(1.0, depth + 1)
    falling = {
        metric.key: np.stack([2.0**-layers, 3.0**-layers, 1 / layers]) * number
        for number, metric in enumerate((names.LAYER_GRADIENT, names.LAYER_NORM), start=1)
    }
    rank = {names.LAYER_RANK.key: np.stack([1 + layers / 9, layers, 2 * layers])}
    cosine = np.stack([np.ones(depth), 1 - layers / 20, np.full(depth, np.nan)])
    return falling | rank | {names.LAYER_COSINE.key: cosine, "iteration": np.array([0, 5, 9])}


def of_boundary(slope: float) -> dict[str, Any]:
    """Return three classes over a plane, which sloping lines part."""
    a, b = np.linspace(-6, 9, 40), np.linspace(0, 7, 40)
    height = b[:, None] - slope * a
    arrays = of_data(POINTS) | {"class_names": np.array(["no", "yes", "both"])}
    arrays |= {"predicted": (height > 2).astype(int) + (height > 4), "a": a, "b": b}
    return arrays | {"names": np.array(["x", "$y"])}


def of_networks() -> Any:
    """Return what draws two schemes of the inputs with two networks each, and another."""
    steps, schemes = grid(9)
    labels = ["identity, model.normalize=none", "standard, model.normalize=none"]
    labels.append("identity, model.normalize=batch, model.place=after")
    renamed = dict(zip("abc", labels))
    steps, schemes = (rows.replace({"label": renamed}) for rows in (steps, schemes))
    return partial(phase_diagram.draw, steps, schemes.drop(columns=step_sizes.THRESHOLD), "title")


UNLABELLED = of_data(POINTS, 0) | {"target": np.zeros(40)}
FLAT = of_data(POINTS, 0) | {"axes": np.zeros((0, 2)), "target": POINTS[:, 1]}
SCALED = {names.SCALES.column: "true"}
NOT_SOLVED = {names.MINIMUM_REACHED.column: "false"}
AT_INFINITY = {names.MINIMUM_CASE.column: "strictly separable"}
CHOSEN = {names.STEP_CHOSEN.column: "true"}
BY_COUNTS = {names.COMPARED.column: names.MISCLASSIFICATIONS}
OUTSIDE = {"minimum": np.empty(0), "through": "the end of the path"}

PICTURES: dict[str, Callable[[], Any]] = {
    "biplot": lambda: of_schemes(of_points.draw_biplot, ARROWS, ARROWS),
    "biplot, arrows": lambda: of_schemes(
        of_points.draw_biplot, FEW_ARROWS, FAR_ARROWS | UNLABELLED
    ),
    "fit": lambda: of_schemes(
        descent.draw_fit,
        *(CURVES | {"prediction": CURVES["x"] ** power} for power in (1, 2, 2.01, 2.02)),
    ),
    "features": lambda: of_schemes(of_points.draw_features, SPREAD, SPREAD | {"all": np.array(3)}),
    "features, thirty": lambda: of_schemes(of_points.draw_features, *[THIRTY] * 4, shape=SLIDE),
    "by_layer": lambda: of_schemes(descent.draw_by_layer, *map(of_layers_of_network, (4, 4, 6))),
    "by_layer, one": lambda: of_schemes(
        descent.draw_by_layer, of_layers_of_network(1), shape=COLUMN
    ),
    "boundary": lambda: of_schemes(
        descent.draw_boundary, of_boundary(0.2), of_boundary(0.9) | {"misclassified": np.array(7.0)}
    ),
    "landing": lambda: of_schemes(
        descent.draw_landing, LANDED, LANDED | {"direction": np.array([0.5, 9])}
    ),
    "landing, no circles": lambda: of_schemes(descent.draw_landing, LANDED, shape=COLUMN),
    "loadings": lambda: of_schemes(of_points.draw_loadings, TABLED),
    "loadings, two": lambda: of_schemes(of_points.draw_loadings, *[TABLED] * 3, shape=COLUMN),
    "profiles": of_profiles,
    "batch_sizes": of_batches,
    "batch_sizes, column": lambda: partial(of_batches(records=2, knee=np.nan), shape=COLUMN),
    "batch_sizes, of a sweep": lambda: of_sweep("batch_sizes", batched_sweep(3, 4, 30)),
    "batch_sizes, bounds": lambda: of_sweep("batch_sizes", batched_sweep(1, 4, 30)),
    "components": lambda: of_schemes(
        images.draw_components, image_arrays(9), image_arrays(5), component_count=9
    ),
    "components, eight": lambda: of_schemes(
        images.draw_components, image_arrays(9), component_count=8
    ),
    "reconstruction": lambda: of_schemes(
        images.draw_reconstruction, image_arrays(9), image_arrays(5)
    ),
    "weighted": lambda: of_schemes(images.draw_weighted, image_arrays(9), image_arrays(5)),
    "weighted, two": lambda: of_schemes(images.draw_weighted, image_arrays(2)),
    "exemplars": lambda: of_schemes(images.draw_exemplars, PLANE),
    "dial": lambda: of_sweep("dial", varied_sweep()),
    "overview": lambda: of_sweep("overview", two_problems()),
    "overview, splits": lambda: of_sweep("overview", split_problems()),
    "overview, many": lambda: of_sweep("overview", many_problems()),
    "spectrum": lambda: of_schemes(
        of_points.draw_spectrum, eigenvalues([1, 1, 1, 0.5], 1e-3), eigenvalues([9, 1, 0, 0], 1e-7)
    ),
    "spectrum, column": lambda: of_schemes(
        of_points.draw_spectrum, *[eigenvalues([1, 1], 0.0)] * 6, shape=COLUMN
    ),
    "sharpness": lambda: of_sharpness({"a": [0.2, 0.9, 0.7, 1.2], "b": [0.5] * 4}),
    "sharpness, wide": lambda: of_sharpness({"a": [40, 3, 1e-3, 2.0], "b": [0.5, 0.0, 1, 1]}),
    "sharpness, band": lambda: of_sharpness({"a": [0.5, 1.5] * 4}),
    "sharpness, later": lambda: of_sharpness({"a": [0.5] * 9, "b": [0.9] * 5}, first=3),
    "sharpness, batches": lambda: of_sharpness({"a": [0.5] * 9}, BATCHED, first=2),
    "sharpness, none": lambda: of_sharpness({"a": [np.nan] * 3}),
    "contours": lambda: of_schemes(
        contours.draw,
        with_points(valley(40.0)),
        with_points(valley(900.0, wide=84.0), held="bias held at 2"),
    ),
    "contours, tall": lambda: of_schemes(contours.draw, valley(2.0, tall=50.0), valley(2.0)),
    "contours, page": lambda: of_schemes(
        contours.draw, with_points(bowl(1.0)), columns={"label": ["pca, ridge=0.0001"]}, shape=PAGE
    ),
    "contours, curved": lambda: of_schemes(contours.draw, curved(1.0), curved(1e-3), shape=COLUMN),
    "contours, names": lambda: of_schemes(
        contours.draw, with_points(bowl(1.0), point_names=np.array(["height", "weight"]))
    ),
    "contours, no minimum": lambda: of_schemes(
        contours.draw, curved(9.0) | {"minimum": np.empty(0), "path_cost": [0.0]}
    ),
    "contours, infinity": lambda: of_schemes(
        contours.draw, bowl(1.0, **OUTSIDE), columns=AT_INFINITY
    ),
    "projection, classes": lambda: of_schemes(
        of_points.draw_projection,
        of_data(POINTS) | {"kept": np.array(2), "lost": 0.0, "back": POINTS + 0.1},
    ),
    "projection": lambda: of_schemes(of_points.draw_projection, in_space(2), in_space(1)),
    "projection, one": lambda: of_schemes(
        of_points.draw_projection, in_space(2, ()), in_space(2, ["no"])
    ),
    "formulas": lambda: of_schemes(of_points.draw_formulas, FORMULAS, EXACT),
    "formulas, points": lambda: of_schemes(of_points.draw_formulas, FORMULAS, dict(FORMULAS)),
    "colours": lambda: of_schemes(
        images.draw_colours,
        {"picture": np.abs(PIXELS).reshape(8, 8, 3) * 90, "aligned": PIXELS[:, :3] * 20}
        | {"round": PIXELS[:, 3:6] * 9},
    ),
    "film": lambda: of_schemes(film.draw, film_arrays((1, -1))),
    "film, column": lambda: of_schemes(film.draw, film_arrays((1, 1)), shape=COLUMN),
    "data": lambda: of_schemes(
        of_points.draw_data, of_data(POINTS), of_data(POINTS), columns=SCALED
    ),
    "data, one class": lambda: of_schemes(
        of_points.draw_data, of_data(POINTS), of_data(POINTS * [1, 0.01], 1)
    ),
    "data, ten classes": lambda: of_schemes(of_points.draw_data, *[of_data(POINTS, 10)] * 4),
    "data, no classes": lambda: of_schemes(of_points.draw_data, UNLABELLED, FLAT, columns=SCALED),
    "histories": lambda: of_histories(FALLING, POINTS_OF | STARTS, TESTED | BANDS | COUNTED),
    "histories, excess": lambda: of_histories(FALLING, SLOPES, COUNTED, scale="excess"),
    "histories, linear": lambda: of_histories(SLOW, {REPEATS: "3 splits"}, scale="linear"),
    "histories, log": lambda: of_histories(SLOW, {}, COUNTED | TESTED, scale="log"),
    "histories, column": lambda: of_histories(SHORTER, {}, COUNTED, shape=COLUMN),
    "histories, page": lambda: of_histories(FALLING, {}, COUNTED, shape=PAGE),
    "histories, slide": lambda: of_histories(FALLING, {}, COUNTED, shape=SLIDE),
    "histories, screen": lambda: of_histories(FALLING, {}, COUNTED, shape=SCREEN),
    "histories, risen": lambda: of_histories(RISEN, DIVERGED | OVERFLOW, COUNTED),
    "histories, risen to 1e300": lambda: of_histories({"a": [1, 1e150, 1e300], "b": [1, 0.2]}),
    "histories, lost": lambda: of_histories(LOST, {"verdict": names.DIVERGED} | OVERFLOW, COUNTED),
    "histories, to zero": lambda: of_histories(TO_ZERO, {names.GRIDLESS.column: "true"}),
    "histories, first iteration": lambda: of_histories(UNEVEN, first=1),
    "histories, uneven": lambda: of_histories(UNEVEN, DIVERGED),
    "histories, not uneven": lambda: of_histories(NOT_SO_UNEVEN),
    "histories, squashed": lambda: of_histories(SQUASHED, {}, {WRONG: lambda cost: cost}),
    "histories, by seconds": lambda: of_histories(FALLING, SECONDS, by="seconds"),
    "histories, by iterations": lambda: of_histories(FALLING, BATCHED, by="iterations"),
    "histories, by passes": lambda: of_histories(FALLING, BATCHED, by="passes", first=2),
    "histories, by updates": lambda: of_histories(FALLING, BATCHED, by="updates"),
    "histories, equal": lambda: of_histories(
        MANY, {}, {WRONG: lambda cost: np.round(200.0 * (cost - 0.3).clip(0))}
    ),
    "histories, twelve": lambda: of_histories(TWELVE, {}, COUNTED),
    "histories, long": lambda: of_histories(FALLING, {"label": LONG}, COUNTED),
    "histories, none": lambda: of_histories(SLOW, first=99),
    "phase_diagram": lambda: of_steps(phase_diagram, "false"),
    "phase_diagram, equal": of_equal_schemes,
    "phase_diagram, limits": lambda: of_grid(phase_diagram),
    "phase_diagram, lost": lambda: of_lost_steps(phase_diagram),
    "phase_diagram, many": lambda: of_grid(phase_diagram, 41, **{REPEATS: "4 splits"}),
    "phase_diagram, shown": lambda: of_steps(phase_diagram, "true", **CHOSEN),
    "phase_diagram, networks": of_networks,
    "step_sizes": lambda: of_steps(step_sizes, "false"),
    "step_sizes, censored": lambda: of_steps(step_sizes, "true"),
    "step_sizes, counted": lambda: of_steps(step_sizes, "true", **BY_COUNTS),
    "step_sizes, lost": lambda: of_lost_steps(step_sizes),
    "step_sizes, many": lambda: of_grid(step_sizes, 200),
    "step_sizes, slide": lambda: partial(of_grid(step_sizes), shape=SLIDE),
    "melt": lambda: of_layers(measured=False),
    "melt, measured": lambda: partial(of_layers(measured=True), shape=SLIDE),
    "melt, eight": lambda: partial(of_layers(False, 8, **NOT_SOLVED), shape=COLUMN),
    "melt, peak": of_peak,
    "melt, merged": lambda: of_melt({"a": EQUAL_AND_THIN}, lacking="b"),
    "melt, shown": lambda: of_melt(
        {"a": layer_arrays([5.0, 0.5], [1.0, 9.0], sizes=(0.02, 0.1, 0.3))},
        **CHOSEN,
        **{names.setting("start"): "normal"},
    ),
}


def outline(marker: Any) -> tuple[float, ...]:
    """Return the outline of a marker, equal for all names and paths of one shape."""
    shape = MarkerStyle(marker)
    vertices = shape.get_path().transformed(shape.get_transform()).vertices
    return tuple(np.round(vertices, 3).ravel())


def draw(name: str, **options: Any) -> Figure:
    """Draw a picture."""
    figure: Figure = PICTURES[name]()(**options)
    return figure


def marked(axis: Any, label: str) -> list[Any]:
    """Return the lines of a panel with a label, which legends do not show."""
    return [line for line in axis.lines if line.get_label() == f"_{label}"]


def curves(axis: Any) -> dict[str, Any]:
    """Return the curves of a panel by their labels; those of helpers begin with an underscore."""
    return {line.get_label(): line for line in axis.lines if line.get_label()[0] != "_"}


def texts(axis: Any) -> list[str]:
    """Return the texts of a panel."""
    return [text.get_text() for text in axis.texts]
