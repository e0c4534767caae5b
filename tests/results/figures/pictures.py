"""Figures of hand-made numbers, which take each branch of their code: no store, no descent."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from normbench import names
from normbench.results.compare import comparisons
from normbench.results.compare.merging import REPEATS
from normbench.results.figures import (
    batch_sizes,
    boundary,
    by_layer,
    colours,
    components,
    contours,
    data,
    excess,
    exemplars,
    features,
    film,
    fit,
    formulas,
    histories,
    landing,
    loadings,
    melt,
    phase_diagram,
    profiles,
    projection,
    reconstruction,
    sharpness,
    spectrum,
    step_sizes,
    weighted,
    windows,
)
from normbench.results.figures.base import style
from normbench.results.figures.film import playing
from normbench.results.figures.film.reel import Reel
from tests.results.compare import test_comparisons
from tests.results.figures import test_contour_ellipses, test_formulas, test_melt
from tests.results.figures.test_figures import bowl
from tests.results.figures.test_landmarks import POINTS, of_data
from tests.results.figures.test_step_figures import scheme

RNG = np.random.default_rng(11)
COLUMN, SLIDE = style.FORMATS["column"], style.FORMATS["slide"]
COST, TEST_COST = names.TRAIN_COST.key, names.TEST_COST.key
WRONG, TEST_WRONG = names.TRAIN_MISCLASSIFICATIONS.key, names.TEST_MISCLASSIFICATIONS.key
PIXELS = RNG.standard_normal((12, 16))
COUNTS = np.array([1, 2, 3, 5, 7, 9, 11, 13, 16])


def rows(count: int = 2, **columns: Any) -> pd.DataFrame:
    """Return the rows of schemes `a`, `b` and so on."""
    schemes = ["identity", "standard", "pca_sphere", "zca_sphere"]
    labels = [chr(ord("a") + number) for number in range(count)]
    known = {"label": labels, "run_id": labels, "normalizer": (schemes * count)[:count]}
    return pd.DataFrame(known | {"verdict": "converged", names.STEP_TAG.column: "0.25"} | columns)


def of_schemes(module: Any, *arrays: dict[str, Any], **options: Any) -> Figure:
    """Return a figure of recorded arrays, one scheme each."""
    schemes = rows(len(arrays))
    figure: Figure = module.draw(dict(zip(schemes["label"], arrays)), schemes, "title", **options)
    return figure


def images(kept: int, **more: Any) -> dict[str, Any]:
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


def of_histories(costs: dict[str, Sequence[float]], runs: Any, options: Any, **columns: Any) -> Any:
    """Return a figure of histories."""
    return histories.draw(history(costs, **columns), rows(len(costs), **runs), "title", **options)


FALLING = {"a": 2.0 * 0.7 ** np.arange(12), "b": 2.0 * 0.4 ** np.arange(12)}
SLOW = {"a": np.linspace(2, 1, 12), "b": np.linspace(2, 0.9, 12)}
RISEN = {"a": 2.0 * 30.0 ** np.arange(8), "b": np.linspace(2, 1, 12)}
LOST = {"a": 2.0 * 30.0 ** np.arange(8), "b": 3.0 * 1e9 ** np.arange(5)}
TO_ZERO = {"a": np.array([2.0, 50.0, 1.0, 0.0]), "b": np.array([2.0, 1.0, 0.5, 0.2])}
UNEVEN = {"a": 2.0 * 0.5 ** np.arange(5), "b": 2.0 * 0.99 ** np.arange(460)}
MANY = {chr(ord("a") + n): (3.0 - n // 2 / 3) * 0.8 ** np.arange(9) for n in range(8)}
POINTS_OF = {"train_points": 60, "test_points": 20}
TESTED = {TEST_COST: lambda cost: 1.1 * cost, TEST_WRONG: lambda cost: np.round(9 * cost)}
BANDS = {names.quartile(names.TRAIN_COST, "q1").key: lambda cost: 0.9 * cost}
BANDS |= {names.quartile(names.TRAIN_COST, "q3").key: lambda cost: 1.2 * cost}
COUNTED = {WRONG: lambda cost: np.round(20 * cost)}
OVERFLOW = {names.REASON.column: "stopped being finite"}
SECONDS = {names.FIT_SECONDS.column: [0.5, 2.0], names.SECONDS_A_STEP.column: [0.25, 0.125]}
STARTS = {names.setting("starts"): "5", REPEATS: "3 splits"}
DIVERGED = {"verdict": [names.DIVERGED, "converged"]}
LONG = [f"a scheme with a long label, part={n}" for n in range(2)]


def of_sharpness(values: dict[str, Sequence[float]], **options: Any) -> Any:
    """Return a figure of the sharpness along the path."""
    table = history(values).rename(columns={COST: sharpness.SHARPNESS})
    return sharpness.draw(table, rows(len(values)), "title", **options)


def of_profiles() -> Any:
    """Return performance profiles of three schemes, one of which solves half of the problems."""
    table = test_comparisons.table(
        **{"a": [10, 12, 9, 30], "b, ridge=1": [20, 5, 9, 8], "c": [50, np.inf, 9, np.inf]}
    )
    return profiles.draw(comparisons.profile(table), "title")


def of_batches(shape: Any, **columns: Any) -> Any:
    """Return a figure of three sizes of a batch under two schemes."""
    table = pd.DataFrame({"scheme": ["a"] * 3 + ["b"] * 3, "batch": [1, 10, 100] * 2})
    table["stable"], table["passes"] = [0.1, 0.5, 0.9, 0.2, 1.0, 2.0], [3, 4, 30, 0, 9, 60]
    table["updates"] = table["passes"] * 100 / table["batch"]
    table = table.assign(**{"records": 10, "knee": 11.0, "normalizer": table["scheme"]})
    table = table.assign(**{"grid_end": table["stable"] == 0.9, **columns})
    return batch_sizes.draw(table, "title", shape=shape)


def eigenvalues(after: Sequence[float], ridge: float) -> dict[str, Any]:
    """Return the arrays of a spectrum of six directions, two of them dead."""
    before = np.array([90.0, 4.0, 1.0, 0.02, 1e-17, 0.0])
    return {"before": before, "after": np.array(after), "dead": 2, "ridge": ridge}


def in_space(kept: int, targets: bool) -> dict[str, Any]:
    """Return points in space with their images on a plane or a line."""
    points = np.random.default_rng(4).standard_normal((15, 3)) * [3, 2, 1] + 5
    directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][:kept]
    centred = points - points.mean(axis=0)
    arrays = {"points": points, "back": centred @ directions.T @ directions + points.mean(axis=0)}
    arrays |= {"kept": np.array(kept), "lost": np.array(0.0712345)}
    arrays |= {"target": np.arange(15) % 2, "names": np.array(["x", "$y", "z"])}
    return arrays | {"class_names": np.array(["no", "yes"] if targets else [])}


def with_points(cost: Any, **more: Any) -> dict[str, Any]:
    """Return arrays of contours, and of the points above them."""
    return cost | of_data(POINTS) | {"names": np.array(["weight of x", "weight of y"])} | more


def curved(height: float) -> dict[str, Any]:
    """Return a cost that is no bowl of ellipses."""
    arrays: dict[str, Any] = bowl(height, condition=32.0)
    return arrays | {"cost": np.log1p(arrays["cost"]), "step_size": 0.125}


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


def of_windows(count: int, shape: Any, **more: Any) -> Any:
    """Return step-size windows of many directions."""
    steps, schemes = grid(9, **{names.setting("iterations"): "50", **more})
    curvature = np.geomspace(400, 0.02, count)
    arrays = {
        windows.WINDOW_CURVATURE: curvature,
        windows.WINDOW_SHARE: 1 / np.arange(1, count + 1),
    }
    arrays |= {windows.WINDOW_TIMES: np.arange(count) % 3 + 1}
    ends = {windows.BEST_CURVATURES: curvature[::2] / 2}
    arrays_by_label = {"a": arrays, "b": arrays | ends, "c": arrays | ends}
    return windows.draw(arrays_by_label, schemes, steps, "title", shape=shape)


def of_layers(shape: Any, measured: bool, count: int = 3, **columns: Any) -> Any:
    """Return the picture of layers of some schemes."""
    curvature = [8.0, 8.0, 2.0, 0.5, 0.49, 0.05]
    arrays = {
        chr(ord("a") + n): test_melt.parts(
            curvature, [4.0, 1.0, 3.0 + n, 0.01, 0.02, 2.0], measured=measured
        )
        for n in range(count)
    }
    schemes, steps = test_melt.table(arrays, **columns)
    if measured:
        steps.loc[steps[names.STEP_SIZE.column] == 0.01, "verdict"] = names.BY_ROUNDING
    return melt.draw(arrays, schemes, steps, "title", shape=shape)


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


def of_frame(frame: int, signs: tuple[int, int]) -> Any:
    """Return a frame of a film as it is drawn for a GIF."""
    size = (playing.GIF_SHAPE.width, playing.FRAME_HEIGHT)
    with style.figure_style(playing.GIF_SHAPE):
        figure = Figure(figsize=size, dpi=playing.GIF_SHAPE.dpi)
        stage = playing._GifStage(figure, Reel(film_arrays(signs)), "a title, of several words")
        stage.show(1)
        stage.show(frame)
    return figure


LANDED = {"position": np.array([-0.5, 0.1, 0.9, 1.4, 2.1, 7.0])}
TABLED = {"names": np.array([f"feature number {n} of many" for n in range(25)])}
TABLED |= {"entries": np.linalg.qr(np.random.default_rng(2).standard_normal((25, 25)))[0]}
TABLED |= {"deviations": np.geomspace(9, 0.1, 25), "shares": np.array([0.6, 0.2])}
TABLED |= {"loadings": TABLED["entries"][:, :2] * [9.0, 4.0]}
PLANE = {"cloud": POINTS, "at": POINTS[:25], "images": np.abs(np.resize(PIXELS, (25, 16)))}
PLANE |= {"wanted": np.array([(x, y) for y in (5, 4, 3, 2, 1) for x in (-4, -1, 0, 1, 7)])}
CURVES = {"x": np.linspace(0, 4, 9), "points": POINTS[:9]}
SPREAD = {"values": PIXELS[:9, :3] * [1, 5, 0.1], "all": np.array(7)}
SPREAD |= {"names": np.array(["short", "$dollars", "a name of more than 18 letters"])}


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
    """Return the phase diagram of two schemes of the inputs with two networks each, and another."""
    steps, schemes = grid(9)
    labels = ["identity, model.normalize=none", "standard, model.normalize=none"]
    labels.append("identity, model.normalize=batch, model.place=after")
    renamed = dict(zip("abc", labels))
    steps, schemes = (rows.replace({"label": renamed}) for rows in (steps, schemes))
    return phase_diagram.draw(steps, schemes.drop(columns=step_sizes.THRESHOLD), "title")


PICTURES: dict[str, Callable[[], Any]] = {
    "fit": lambda: of_schemes(
        fit, *(CURVES | {"prediction": CURVES["x"] ** power} for power in (1, 2, 2.01, 2.02))
    ),
    "features": lambda: of_schemes(features, SPREAD, SPREAD | {"all": np.array(3)}),
    "by_layer": lambda: of_schemes(by_layer, *map(of_layers_of_network, (4, 4, 6))),
    "by_layer, one": lambda: of_schemes(by_layer, of_layers_of_network(1), shape=COLUMN),
    "boundary": lambda: of_schemes(boundary, of_boundary(0.2), of_boundary(0.9)),
    "phase_diagram, networks": of_networks,
    "landing": lambda: of_schemes(landing, LANDED, LANDED | {"direction": np.array([0.5, 9])}),
    "loadings": lambda: of_schemes(loadings, TABLED),
    "loadings, two": lambda: of_schemes(loadings, *[TABLED] * 3, shape=COLUMN),
    "profiles": of_profiles,
    "batch_sizes": lambda: of_batches(style.SCREEN),
    "batch_sizes, column": lambda: of_batches(COLUMN, records=2, knee=np.nan),
    "components": lambda: of_schemes(components, images(9), images(5), component_count=9),
    "reconstruction": lambda: of_schemes(reconstruction, images(9), images(5)),
    "weighted": lambda: of_schemes(weighted, images(9), images(5)),
    "exemplars": lambda: of_schemes(exemplars, PLANE),
    "spectrum": lambda: of_schemes(
        spectrum, eigenvalues([1, 1, 1, 0.5], 1e-3), eigenvalues([9, 1, 0, 0], 1e-7)
    ),
    "spectrum, column": lambda: of_schemes(spectrum, eigenvalues([1, 1], 0.0), shape=COLUMN),
    "sharpness": lambda: of_sharpness({"a": [0.2, 0.9, 0.7, 1.2], "b": [0.5] * 4}),
    "sharpness, wide": lambda: of_sharpness({"a": [40, 3, 1e-3, 2.0], "b": [0.5, 0.0, 1, 1]}),
    "sharpness, later": lambda: of_sharpness({"a": [0.5] * 9, "b": [0.9] * 5}, first=3),
    "sharpness, none": lambda: of_sharpness({"a": [np.nan] * 3}),
    "contours": lambda: of_schemes(
        contours,
        with_points(test_contour_ellipses.plane(40.0)),
        with_points(test_contour_ellipses.plane(900.0, wide=84.0), held="bias held at 2"),
    ),
    "contours, curved": lambda: of_schemes(contours, curved(1.0), curved(1e-3), shape=COLUMN),
    "contours, no minimum": lambda: of_schemes(
        contours, curved(9.0) | {"minimum": np.empty(0), "path_cost": [0.0]}
    ),
    "projection, space": lambda: of_schemes(projection, in_space(2, True), in_space(1, True)),
    "projection, one": lambda: of_schemes(projection, in_space(2, False)),
    "formulas": lambda: of_schemes(
        formulas, test_formulas.PARTS, test_formulas.PARTS | {"iterations": np.array([5, 1000])}
    ),
    "colours": lambda: of_schemes(
        colours,
        {"picture": np.abs(PIXELS).reshape(8, 8, 3) * 90, "aligned": PIXELS[:, :3] * 20}
        | {"round": PIXELS[:, 3:6] * 9},
    ),
    "film": lambda: of_schemes(film, film_arrays((1, -1))),
    "film, column": lambda: of_schemes(film, film_arrays((1, 1)), shape=COLUMN),
    "film, a frame": lambda: of_frame(2, (-1, 1)),
    "data, one class": lambda: of_schemes(data, of_data(POINTS), of_data(POINTS * [1, 0.01], 1)),
    "histories": lambda: of_histories(
        FALLING, POINTS_OF | STARTS, {}, **TESTED, **BANDS, **COUNTED
    ),
    "histories, excess": lambda: of_histories(
        FALLING,
        {excess.SLOPE: [0.5, np.nan], names.MINIMUM_REACHED.column: "false"},
        {"scale": "excess"},
        **COUNTED,
    ),
    "histories, linear": lambda: of_histories(SLOW, {REPEATS: "3 splits"}, {"shape": COLUMN}),
    "histories, log": lambda: of_histories(SLOW, {}, {"scale": "log"}, **COUNTED, **TESTED),
    "histories, risen": lambda: of_histories(RISEN, DIVERGED | OVERFLOW, {}, **COUNTED),
    "histories, lost": lambda: of_histories(
        LOST, {"verdict": names.DIVERGED} | OVERFLOW, {}, **COUNTED
    ),
    "histories, to zero": lambda: of_histories(TO_ZERO, {names.GRIDLESS.column: "true"}, {}),
    "histories, uneven": lambda: of_histories(UNEVEN, {}, {"first": 1}),
    "histories, seconds": lambda: of_histories(FALLING, SECONDS, {"by": "seconds"}),
    "histories, equal": lambda: of_histories(
        MANY, {}, {}, **{WRONG: lambda cost: np.round(200.0 * (cost - 0.3).clip(0))}
    ),
    "histories, long": lambda: of_histories(FALLING, {"label": LONG}, {}, **COUNTED),
    "histories, none": lambda: of_histories(SLOW, {}, {"first": 99}),
    "phase_diagram, limits": lambda: phase_diagram.draw(*grid(9), "title"),
    "phase_diagram, many": lambda: phase_diagram.draw(*grid(41, **{REPEATS: "4 splits"}), "title"),
    "step_sizes, slide": lambda: step_sizes.draw(*grid(9), "title", shape=SLIDE),
    "windows, exact": lambda: of_windows(5, style.SCREEN, **{names.BASIS.column: names.EXACT}),
    "windows, many": lambda: of_windows(90, COLUMN, **{names.MINIMUM_REACHED.column: "false"}),
    "melt": lambda: of_layers(style.SCREEN, measured=False),
    "melt, measured": lambda: of_layers(SLIDE, measured=True),
    "melt, eight": lambda: of_layers(COLUMN, False, 8, **{names.MINIMUM_REACHED.column: "false"}),
}
