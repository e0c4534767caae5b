"""No conclusion hangs on the offset of the grid, or on the last digit of the data."""

import numpy as np
import pytest
from sklearn import datasets

from normbench import names
from normbench.costs import least_squares, multiclass_softmax, softmax
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from tests import door

SCHEMES = ("centre", "standard", "robust", "ledoit_wolf", "pca_sphere")
OFFSETS = np.arange(8) / 8
COMPARISONS = 100


def classes(bunch, count=None):
    wanted = bunch.target < (count or bunch.target.max() + 1)
    return bunch.data[wanted], bunch.target[wanted]


def drawn():
    """Return points of very different scales, and real targets that follow them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 8)) * 10.0 ** rng.uniform(-2, 2, 8) + 3 * rng.standard_normal(8)
    return x, (x - x.mean(axis=0)) @ (rng.standard_normal(8) / x.std(axis=0))


def problems():
    """Return (name, points, targets, cost) of twelve problems."""
    cancer, iris, wine = datasets.load_breast_cancer(), datasets.load_iris(), datasets.load_wine()
    digits, diabetes = datasets.load_digits(), datasets.load_diabetes()
    x, y = drawn()
    noise = 2.0 * np.random.default_rng(1).standard_normal(len(y))
    return [
        ("breast_cancer", *classes(cancer), softmax),
        ("breast_cancer_squares", *classes(cancer), least_squares),
        ("iris", *classes(iris), multiclass_softmax),
        ("iris_squares", *classes(iris), least_squares),
        ("iris_two", *classes(iris, 2), softmax),
        ("wine", *classes(wine), multiclass_softmax),
        ("wine_squares", *classes(wine), least_squares),
        ("wine_two", *classes(wine, 2), softmax),
        ("digits", *classes(digits), multiclass_softmax),
        ("diabetes", diabetes.data, diabetes.target, least_squares),
        ("gaussian", x, (y + noise > 0).astype(int), softmax),  # the classes overlap
        ("gaussian_squares", x, y, least_squares),
    ]


PROBLEMS = {name: parts for name, *parts in problems()}


def data_of(x, y):
    kinds = len(np.unique(y))
    class_names = [f"class {n}" for n in range(kinds)] if y.dtype.kind == "i" else None
    return make_dataset("data", x, y, class_names=class_names, source="-")


def compared(x, y, cost, sizes, schemes, iterations=100, refine=True, shared=None):
    """Return outcomes by scheme; shared: what jobs on the same points need compute only once."""
    dataset = data_of(x, y)
    shared = shared or door.Cache(dataset.x)
    settings = Settings(tuple(sizes), iterations, refine=refine)
    return {scheme: door.judge(dataset, cost, scheme, settings, shared)[1] for scheme in schemes}


def fastest(outcomes):
    """Return who reaches each target in the fewest iterations."""
    winners = {}
    for target in names.TARGETS:
        key = names.reached(target).key
        counts = {scheme: found.findings.metrics[key] for scheme, found in outcomes.items()}
        least = np.nanmin([*counts.values(), np.inf])
        winners[target] = [scheme for scheme, count in counts.items() if count == least]
    return winners


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "offsets"),
    [
        *(("iris", OFFSETS[::3]), ("diabetes", OFFSETS[::3])),
        *(pytest.param(name, OFFSETS, marks=pytest.mark.whole) for name in PROBLEMS),
    ],
)
def test_the_offset_of_the_grid_changes_no_conclusion(name, offsets):
    x, y, cost = PROBLEMS[name]
    shared = door.Cache(x)
    grids = [10.0 ** (np.arange(-5, 3) + offset) for offset in offsets]
    every = [fastest(compared(x, y, cost, grid, SCHEMES, shared=shared)) for grid in grids]
    assert all(found == every[0] for found in every), every


def moved(x, rng):
    """Return points, each number by one unit in its last place, up or down."""
    return np.nextafter(x, np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf))


def drawn_comparison(number):
    """Return points, targets, cost, grid and two schemes of one of many random comparisons."""
    rng = np.random.default_rng(number)
    x, y, cost = PROBLEMS[rng.choice([*PROBLEMS])]
    kept = rng.permutation(len(x))[: min(len(x), 400)]
    sizes = 10.0 ** (np.arange(-4, 3, rng.choice([0.25, 0.5, 1.0])) + rng.random())
    schemes = [*rng.choice([*SCHEMES, "zca_sphere", "minmax", "pca"], 2, replace=False)]
    return x[kept], y[kept], cost, sizes, schemes, rng


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n < 3 else pytest.mark.whole) for n in range(COMPARISONS)],
)
def test_the_last_digit_of_the_data_changes_no_conclusion(number):
    x, y, cost, sizes, schemes, rng = drawn_comparison(number)
    one = compared(x, y, cost, sizes, schemes, refine="auto")
    other = compared(moved(x, rng), y, cost, sizes, schemes, refine="auto")
    assert fastest(one) == fastest(other)
    for scheme in schemes:
        before, after = one[scheme], other[scheme]
        assert before.best == after.best
        assert [step.verdict for step in before.steps] == [step.verdict for step in after.steps]
