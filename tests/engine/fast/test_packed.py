"""Packed points: the same products, costs and histories, where the library for them is there."""

import ctypes
import importlib.metadata
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import optimizers
from normbench.command.startup import kernels
from normbench.datasets import make_dataset, values
from normbench.engine.fast import blocked, packed, processor, products, wrappers
from normbench.engine.fast.blocked import Blocked
from normbench.engine.fast.packed import Packed
from normbench.engine.settings import Settings
from normbench.job import Job, run
from tests.cases import COSTS, classifies, formula
from tests.cases import FEW_CASES as CASES

POINTS, FEATURES = 300, 5
PRECISIONS = [np.float64, np.float32]
INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu\n"
needs_library = pytest.mark.skipif(not packed.is_installed(), reason="the package mkl is not there")


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def worthwhile(monkeypatch):
    """Pack small points, too, in many blocks, and on any processor."""
    monkeypatch.setattr(packed, "is_used", packed.is_installed)
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", 0)
    monkeypatch.setattr(packed, "MIN_FEATURES", 1)
    monkeypatch.setattr(packed, "SCORES_BYTES", 3000)


@pytest.fixture
def fresh():
    """Forget which library was found, before and after."""
    cached = packed.find_library, packed._library, packed.is_used
    for found in cached:
        found.cache_clear()
    yield
    for found in cached:
        found.cache_clear()


def on_processor(lines, monkeypatch, tmp_path):
    """Have the processor described so."""
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
    processor.CPUINFO.write_text(lines)


def problem(name, classes, rng, dtype=np.float64):
    x = rng.standard_normal((POINTS, FEATURES)).astype(dtype)
    targets = rng.integers(0, classes, POINTS) if classes > 1 else np.sign(x[:, 0])
    counted = classifies(COSTS[name], classes)
    train = Blocked(COSTS[name], x, targets, counted, 0.1, classes)
    return train, rng.standard_normal((4, classes, FEATURES + 1)).astype(dtype)


def assert_near(mine, theirs, dtype):
    # Measured: 4e-15 and 9e-7.
    near = {"rtol": 1e-13, "atol": 1e-13} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(mine.costs, theirs.costs, **near)
    np.testing.assert_allclose(mine.gradient, theirs.gradient, **near)
    np.testing.assert_array_equal(mine.misclassifications, theirs.misclassifications)
    assert mine.gradient.dtype == dtype


@needs_library
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("rows", [1, 2, 10, 40])
@pytest.mark.parametrize("points", [1, 7, 33])
def test_products_are_those_of_numpy(points, rows, dtype, rng):
    """Under other numbers of rows than they were packed for, and in the memory that is given."""
    x = rng.standard_normal((50, 6)).astype(dtype)
    block, plain = (
        Packed(x, slice(9, 9 + points), 10, True),
        products.Plain(x[9 : 9 + points], 0, 0),
    )
    weights = rng.standard_normal((rows, 7)).astype(dtype)
    near = {"rtol": 1e-13, "atol": 1e-13} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-5}
    mine, theirs = (np.full((rows + 1, points), np.nan, dtype) for _ in "12")
    block.scores(weights, mine[:rows])
    plain.scores(weights, theirs[:rows])
    np.testing.assert_allclose(mine, theirs, **near)
    derivative = theirs[:rows]
    mine, theirs = (np.full((rows + 1, 7), np.nan, dtype) for _ in "12")
    for begun in (False, True, True):
        for factors, out in ((block, mine), (plain, theirs)):
            factors.gradient(derivative, out[:rows], np.empty((rows, 7), dtype), begun)
        np.testing.assert_allclose(mine, theirs, **near)
    assert np.isnan(mine[-1]).all()
    assert Packed(x, slice(0, 9), 10, False)._as_is is None  # the scores alone: one copy


@needs_library
def test_a_row_that_is_not_finite_leaves_the_others_alone(rng):
    x = rng.standard_normal((40, 6))
    block, weights = Packed(x, slice(0, 40), 3, True), rng.standard_normal((3, 7))
    scores, gradient = np.empty((3, 40)), np.empty((3, 7))
    expected = weights[[0, 2], 1:] @ x.T + weights[[0, 2], :1]
    weights[1, 3] = np.inf
    block.scores(weights, scores)
    np.testing.assert_allclose(scores[[0, 2]], expected, rtol=1e-13, atol=1e-13)
    assert np.isinf(scores[1]).all()
    block.gradient(scores, gradient, gradient, False)
    np.testing.assert_allclose(gradient[[0, 2], 1:], expected @ x, rtol=1e-12, atol=1e-12)
    assert not np.isfinite(gradient[1]).any()


@needs_library
def test_memory_that_does_not_fit_is_refused(rng):
    """The library would read or write beyond it."""
    block = Packed(rng.standard_normal((9, 6)), slice(0, 9), 2, True)
    fit, out = rng.standard_normal((2, 7)), np.empty((2, 9))
    block.scores(fit, out)
    for weights, into in (
        (fit[:, 1:].copy(), out),
        (rng.standard_normal((2, 14))[:, ::2], out),
        (fit.astype(np.float32), out),
        (fit, out.astype(np.float32)),
        (fit, out[:1]),
        (fit, np.empty((9, 2)).T),
    ):
        with pytest.raises(AssertionError):
            block.scores(weights, into)


@needs_library
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_bits_do_not_hang_on_where_the_factors_lie(dtype, rng):
    """A descent that is taken up again has its weights elsewhere."""
    block = Packed(rng.standard_normal((203, 31)).astype(dtype), slice(0, 203), 13, True)
    weights = rng.standard_normal((13, 32)).astype(dtype)
    seen = []
    for offset in range(8):
        room = np.empty(13 * 32 + 8, dtype)
        placed = room[offset : offset + 13 * 32].reshape(13, 32)
        placed[...] = weights
        scores, gradient = np.empty((13, 203), dtype), np.empty((13, 32), dtype)
        block.scores(placed, scores)
        block.gradient(scores, gradient, gradient, False)
        seen.append((scores.tobytes(), gradient.tobytes()))
    assert len(set(seen)) == 1


@pytest.mark.quick_cases(5)
@needs_library
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_a_problem_is_the_same(name, classes, threads, dtype, rng, monkeypatch, worthwhile):
    """With the last class left out, under fewer runs than there were, and for costs alone."""
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: threads)
    monkeypatch.setattr(blocked, "PARALLEL_WORK", 1)
    train, weights = problem(name, classes, rng, dtype)
    train = wrappers.drop_last_class(train)
    quick = wrappers.pack(train, len(weights), steps=100)
    if not hasattr(COSTS[name], "fused"):
        assert quick is train
        return
    assert len(quick.blocks) > threads
    assert [b.span.start for b in quick.blocks[1:]] == [b.span.stop for b in quick.blocks[:-1]]
    assert len(quick.thread_spans(len(weights))) == threads
    assert_near(quick.evaluate(weights), train.evaluate(weights), dtype)
    assert_near(quick.evaluate(weights[:2]), train.evaluate(weights[:2]), dtype)
    many = 3 * len(quick.blocks)
    monkeypatch.setattr(blocked.threads, "available_threads", lambda: many)
    assert_near(quick.evaluate(weights), train.evaluate(weights), dtype)
    alone = wrappers.pack(train, len(weights), steps=100, with_gradient=False)
    costs = alone.evaluate(weights, with_gradient=False).costs
    np.testing.assert_allclose(costs, quick.evaluate(weights).costs, rtol=1e-6)
    one = quick.hessian(weights[0]).matrix(), train.hessian(weights[0]).matrix()
    np.testing.assert_array_equal(*one)


@needs_library
def test_other_points_of_the_same_cost_are_not_the_packed_ones(rng, worthwhile):
    train, weights = problem("softmax", 1, rng)
    other = wrappers.pack(train, 4, steps=100).on(2 * train.x, 0.0)
    expected = replace(train, x=2 * train.x, l2=0.0).evaluate(weights)
    np.testing.assert_array_equal(other.evaluate(weights).gradient, expected.gradient)


def test_a_blocks_scores_fit_the_cache():
    assert packed.points_per_block(100, 784, 8) == packed.SCORES_BYTES // 800
    assert packed.points_per_block(200, 784, 4) == packed.points_per_block(100, 784, 8)
    assert packed.points_per_block(2, 10**6, 8) == packed.POINTS_BYTES // (8 * (10**6 + 1))
    assert packed.points_per_block(10**9, 784, 8) == 1


def test_only_what_pays_is_packed(rng, monkeypatch):
    monkeypatch.setattr(packed, "is_used", lambda: True)
    monkeypatch.setattr(packed.threads, "available_threads", lambda: 3)
    monkeypatch.setattr(packed, "available_cores", lambda: 2)
    x = rng.standard_normal((10, packed.MIN_FEATURES))
    assert packed.pays_off(x, 2, packed.MIN_STEPS, True)
    assert not packed.pays_off(x, 1, packed.MIN_STEPS, True)  # one row is a product with a vector
    assert not packed.pays_off(x[:, 1:], 2, packed.MIN_STEPS, True)
    assert not packed.pays_off(x, 2, packed.MIN_STEPS - 1, True)
    monkeypatch.setattr(packed, "available_bytes", lambda: int(1.9 * x.nbytes / values.ARRAY_SHARE))
    assert not packed.pays_off(x, 2, packed.MIN_STEPS, True)  # two copies
    assert packed.pays_off(x, 2, packed.MIN_STEPS, False)  # one, for the scores
    monkeypatch.setattr(packed, "available_bytes", lambda: 2 * x.nbytes / values.ARRAY_SHARE)
    assert packed.pays_off(x, 2, packed.MIN_STEPS, True)
    with monkeypatch.context() as less:
        less.setattr(packed, "MAX_COPIES_BYTES", 2 * x.nbytes - 1)
        assert not packed.pays_off(x, 2, packed.MIN_STEPS, True)
        assert packed.pays_off(x, 2, packed.MIN_STEPS, False)
    monkeypatch.setattr(packed.threads, "available_threads", lambda: 1)  # two jobs side by side
    assert not packed.pays_off(x, 2, packed.MIN_STEPS, True)
    assert packed.pays_off(x[: len(x) // 2], 2, packed.MIN_STEPS, True)
    monkeypatch.setattr(packed, "is_used", lambda: False)
    assert not packed.pays_off(x, 2, packed.MIN_STEPS, True)


def test_small_points_and_costs_of_the_users_own_are_not_packed(rng, monkeypatch):
    monkeypatch.setattr(packed, "pays_off", lambda *_: True)
    monkeypatch.setattr(packed, "blocks", lambda *_: ("packed",))
    train, _ = problem("softmax", 1, rng)
    assert wrappers.pack(train, 4, steps=100) is train
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", POINTS * FEATURES)
    assert wrappers.pack(train, 4, steps=100).blocks == ("packed",)
    own = replace(train, cost=formula(train.cost))
    assert wrappers.pack(own, 4, steps=100) is own


@pytest.mark.quick_cases(3)
@needs_library
@pytest.mark.parametrize("optimizer", [optimizers.gradient_descent(), optimizers.adam()])
@pytest.mark.parametrize("scheme", [FunctionTransformer(), StandardScaler()])
def test_a_job_is_the_same(rng, scheme, optimizer, monkeypatch, worthwhile):
    """The training points are packed for both products, the test points for their scores."""
    x, y = rng.standard_normal((POINTS, FEATURES)), rng.integers(0, 3, POINTS)
    data = make_dataset("made", x, y, class_names=["a", "b", "c"], source="-")
    data = replace(data, x=x[:-90], y=y[:-90], x_test=x[-90:], y_test=y[-90:])
    settings = Settings((0.01, 0.1, 1e9), iterations=50)  # a run that diverges leaves the stack
    made = Job(data, COSTS["multiclass_softmax"], scheme, optimizer, settings)
    seen, pack = [], packed.blocks
    monkeypatch.setattr(packed, "blocks", lambda *given: seen.append(given[3]) or pack(*given))
    monkeypatch.setattr(packed, "MIN_STEPS", 51)
    plain = run(made)
    assert not seen
    monkeypatch.setattr(packed, "MIN_STEPS", 50)
    quick = run(made)
    assert seen == [True, False]
    for mine, theirs in zip(quick.steps, plain.steps, strict=True):
        assert mine.verdict == theirs.verdict
        for name, history in mine.histories.items():
            # Measured: 3e-15, of the runs that settle.
            if mine.step_size < 1:
                np.testing.assert_allclose(history, theirs.histories[name], rtol=1e-10)


class Absent:
    """The packages that are installed, without the library's."""

    PackageNotFoundError = importlib.metadata.PackageNotFoundError

    def __init__(self, *files):
        self.found = files

    def files(self, name):
        if not self.found:
            raise self.PackageNotFoundError(name)
        return self.found


class File(PurePosixPath):
    def locate(self):
        return self


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    "files", [[], ["x/licence"], ["broken/libmkl_rt.so.3"], ["gone/mkl_rt.2.dll"]]
)
def test_without_a_library_that_loads_numpys_own_is_used(files, monkeypatch, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "libmkl_rt.so.3").write_text("no library")
    found = [File(tmp_path / file) for file in files]
    monkeypatch.setattr(packed.importlib, "metadata", Absent(*found))
    on_processor(INTEL, monkeypatch, tmp_path)
    assert not packed.is_installed()
    assert not packed.is_used()


@pytest.mark.usefixtures("fresh")
def test_a_library_without_the_calls_is_not_used(monkeypatch):
    monkeypatch.setattr(packed, "find_library", lambda: "libc.so.6")
    assert ctypes.CDLL("libc.so.6")
    assert packed._library.__wrapped__() is None


@needs_library
@pytest.mark.usefixtures("fresh")
def test_the_library_is_told(monkeypatch, tmp_path):
    on_processor(INTEL, monkeypatch, tmp_path)
    told = f"mkl {packed.version()} for packed points"
    assert kernels.describe_blas().endswith(told)
    assert kernels.describe_blas().count("mkl") == 1


@needs_library
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("lines", ["", "vendor_id\t: AuthenticAMD\nmodel name\t: GenuineIntel\n"])
def test_other_makers_processors_multiply_by_numpys_own(lines, monkeypatch, tmp_path):
    """Where packed points are slower."""
    on_processor(lines, monkeypatch, tmp_path)
    assert packed.is_installed()
    assert not packed.is_used()
    assert "mkl" not in kernels.describe_blas()


@pytest.mark.usefixtures("fresh")
def test_without_the_library_nothing_is_told_of_it(monkeypatch, tmp_path):
    on_processor(INTEL, monkeypatch, tmp_path)
    monkeypatch.setattr(packed.importlib, "metadata", Absent())
    assert "packed" not in kernels.describe_blas()
