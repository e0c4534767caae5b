"""Problems that wrap Problems: every subset, in the declared order, gives the plain numbers."""

from itertools import product

import numpy as np
import pytest

from normbench import costs
from normbench.engine.fast import blocked, packed, wrappers
from normbench.engine.fast.blocked import Blocked, Folded
from normbench.engine.problem import Objective

POINTS, CLASSES, RUNS = 200, 3, 4
ORDER = [0, 1, 0, 2, 3, 3, 1]  # the column of each feature
WRAPPERS = ("columns", "fewer", "packed")
SUBSETS = list(product([False, True], repeat=3))
PENALTIES = {
    "none": 0.0,
    "one": 0.3,
    "matrix": np.cov(np.random.default_rng(8).normal(size=(7, 9))),
}


def named(subset):
    return "+".join(name for name, used in zip(WRAPPERS, subset) if used) or "none"


class Counting:
    """Points of a block, whose products are counted by points."""

    def __init__(self, inner, seen):
        self.inner, self.seen = inner, seen

    def scores(self, weights, out):
        self.seen["scores"] += out.shape[1]
        self.inner.scores(weights, out)

    def gradient(self, derivative, out, scratch, begun):
        self.seen["gradient"] += derivative.shape[1]
        self.inner.gradient(derivative, out, scratch, begun)


@pytest.fixture(autouse=True)
def worthwhile(monkeypatch):
    """Wrap small points, too, in several blocks and parts."""
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", 0)
    monkeypatch.setattr(blocked, "PARALLEL_WORK", 1)
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: 2)
    monkeypatch.setattr(blocked, "BLOCK_BYTES", 4000)
    monkeypatch.setattr(packed, "SCORES_BYTES", 4000)


def wrapped(subset, dtype, l2, rng):
    """Return the plain Problem and its equal in these wrappers."""
    columns, fewer, packs = subset
    x = rng.standard_normal((POINTS, 4))[:, ORDER].astype(dtype)
    targets = rng.integers(0, CLASSES, POINTS)
    parts = (targets, True, l2, CLASSES)
    inner = Blocked(costs.multiclass_softmax, x, *parts)
    plain = Objective(*vars(inner).values())
    quick = wrappers.merge(inner) if columns else inner
    quick = wrappers.drop_last_class(quick) if fewer else quick
    return plain, wrappers.with_packed_points(quick, RUNS) if packs else quick


def layers(problem):
    while hasattr(problem, "inner"):
        yield problem
        problem = problem.inner


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("l2", PENALTIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("subset", SUBSETS, ids=named)
def test_any_subset_gives_the_plain_numbers_in_one_pass_over_the_points(
    subset, dtype, l2, monkeypatch
):
    if subset[2] and not packed.is_installed():
        pytest.skip("the package mkl is not there")
    rng = np.random.default_rng(4)
    l2 = PENALTIES[l2]
    plain, quick = wrapped(subset, dtype, l2, rng)
    assert len(list(layers(quick))) == sum(subset)
    assert quick.rows_per_run == CLASSES - subset[1]
    assert quick.multiplied.shape[1] == (4 if subset[0] else len(ORDER))
    assert quick.shape == plain.shape
    weights = rng.standard_normal((RUNS, *plain.shape)).astype(dtype)
    before = quick.multiplied.copy()
    seen = dict.fromkeys(("scores", "gradient"), 0)
    kind = type(quick)
    factors = kind.factors

    def counted(self, *of):
        for span, block in factors(self, *of):
            yield span, Counting(block, seen) if self is quick else block

    monkeypatch.setattr(kind, "factors", counted)
    mine, theirs = quick.evaluate(weights), plain.evaluate(weights)
    assert seen == {"scores": POINTS, "gradient": POINTS}
    # Measured: 2e-15 and 2e-6.
    near = {"rtol": 1e-12, "atol": 1e-13} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(mine.costs, theirs.costs, **near)
    np.testing.assert_allclose(mine.gradient, theirs.gradient, **near)
    np.testing.assert_array_equal(mine.misclassifications, theirs.misclassifications)
    assert mine.gradient.dtype == dtype
    alone = quick.evaluate(weights, with_gradient=False)
    assert seen == {"scores": 2 * POINTS, "gradient": POINTS}
    np.testing.assert_array_equal(alone.costs, mine.costs)
    hessians = [one.hessian(weights[0]).matrix() for one in (quick, plain)]
    np.testing.assert_allclose(*hessians, **near)
    np.testing.assert_array_equal(quick.multiplied, before)


@pytest.mark.parametrize("subset", SUBSETS, ids=named)
def test_a_diverging_run_leaves_the_others_alone(subset):
    if subset[2] and not packed.is_installed():
        pytest.skip("the package mkl is not there")
    rng = np.random.default_rng(5)
    plain, quick = wrapped(subset, np.float64, 0.0, rng)
    weights = rng.standard_normal((RUNS, *plain.shape))
    weights[1] = np.inf
    mine, theirs = quick.evaluate(weights), plain.evaluate(weights)
    others = [0, 2, 3]
    np.testing.assert_allclose(mine.costs[others], theirs.costs[others], rtol=1e-12)
    np.testing.assert_allclose(mine.gradient[others], theirs.gradient[others], atol=1e-12)
    assert not np.isfinite(mine.costs[1])


def test_the_loop_over_blocks_is_in_one_place():
    for kind in (Folded, wrappers.WithoutLastClass, wrappers.PackedPoints):
        assert kind.evaluate is Blocked.evaluate
        assert kind._walk_points is Blocked._walk_points
