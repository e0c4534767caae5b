"""Points that are read by blocks, and schemes folded into the weights: the same descents."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer

from normbench.choices import build, import_target, options
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import breast_cancer, diabetes, digits, iris, wine
from normbench.datasets.on_disk import points
from normbench.datasets.on_disk.points import Points
from normbench.engine.fast import blocked, hessian, reading, triangle
from normbench.engine.fast.blocked import Blocked
from normbench.engine.scheme.learned import fit_by_blocks
from normbench.engine.scheme.probed import AffineMap, sample_rows
from normbench.engine.scheme.under import Under, choose_fold
from normbench.engine.settings import Settings
from normbench.job import Job, PointsCaches, run
from normbench.normalizers.decomposition import (
    Decompositions,
    compute_mean,
    mean_and_covariance,
    surrogate_rows,
)
from normbench.route import fastest_route
from tests import door
from tests.cases import names

STEP_SIZES = (0.01, 0.1, 1.0)
WAYS = ({}, {"fold": True}, {"read": True})
SCHEMES = [name for name in names("normalizer") if name not in ("chain", "power")]
# One of a number a feature, one that turns, and one that is no affine map: it is applied by blocks.
QUICK = ("standard", "pca_sphere", "quantile")
EACH_WAY = [
    pytest.param(name, way, marks=() if name in QUICK else pytest.mark.slow)
    for number, name in enumerate(SCHEMES)
    for way in (("fold", "read")[number % 2 :][:1] if name not in QUICK else ("fold", "read"))
]


class Read(Points):
    """An array, as points that are read."""

    def __init__(self, x, broken_at=None):
        self.x, self.shape, self.dtype, self.broken_at = x, x.shape, x.dtype, broken_at
        self.largest = 0

    def read(self, first, last, out=None):
        if self.broken_at is not None and last > self.broken_at:
            raise UserError("points.npy: changed")
        self.largest = max(self.largest, last - first)
        if out is None:
            return self.x[first:last].copy()
        out[: last - first] = self.x[first:last]
        return out[: last - first]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(points, "BLOCK_BYTES", 1 << 12)


def scheme(name):
    return build("normalizer", options("normalizer", name))


def cloud(rng, count=900, condition=1e3, offset=0.0, classes=2):
    """Return points of a covariance of this condition number, and classes that overlap."""
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    x = rng.standard_normal((count, 6)) * np.geomspace(1, condition**-0.5, 6) @ turn
    drawn = x @ turn.T[0] + rng.standard_normal(count)
    y = np.digitize(drawn, np.quantile(drawn, np.arange(1, classes) / classes))
    return x + offset, y


def made(x, y, classes=2, **more):
    labels = [f"c{number}" for number in range(classes)]
    return make_dataset("cloud", x, y, source="made", class_names=labels, **more)


def ran(data, name, cost="softmax", fold=False, read=False, **more):
    if read:
        data = replace(data, x=Read(data.x), x_test=Read(data.x_test))
    # Points that are read are not refined by themselves.
    settings = {"step_sizes": STEP_SIZES, "iterations": 60, "refine": False} | more
    job = Job(
        dataset=data,
        cost=import_target("cost", options("cost", cost)["_target_"]),
        normalizer=scheme(name) if isinstance(name, str) else name,
        optimizer=build("optimizer", options("optimizer", "gradient_descent")),
        settings=Settings(fold=fold, **settings),
    )
    return run(job, shared=PointsCaches())


def histories(outcome):
    return {
        (step.step_size, name): values
        for step in outcome.steps
        for name, values in step.histories.items()
    }


def assert_same_histories(one, other, rtol):
    mine, theirs = histories(one), histories(other)
    assert mine.keys() == theirs.keys()
    for key, values in mine.items():
        np.testing.assert_allclose(values, theirs[key], rtol=rtol, atol=rtol, err_msg=str(key))


@pytest.mark.parametrize(("name", "way"), EACH_WAY)
def test_histories_are_those_of_points_in_memory(rng, name, way):
    x, y = cloud(rng, condition=1e6)
    held = np.arange(len(x)) % 4 == 0
    data = made(x[~held], y[~held], x_test=x[held], y_test=y[held])
    whole, other = ran(data, name), ran(data, name, **{way: True})
    assert [step.verdict for step in whole.steps] == [step.verdict for step in other.steps]
    assert_same_histories(whole, other, rtol=1e-10)  # measured: 2e-13


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])  # at 1e6 the offset is just still folded
def test_an_offset_costs_no_digits(rng, offset):
    x, y = cloud(rng, count=300, condition=10.0, offset=offset)
    for name in ("standard", "minmax", "robust", "zca_sphere", "cholesky"):
        settings = {"iterations": 20, "theory": "none"}  # which takes seconds where digits are few
        whole, *others = (ran(made(x, y), name, **settings, **way) for way in WAYS)
        for other in others:
            assert_same_histories(whole, other, rtol=1e-10)  # measured: 1e-11
    z = door.points_under(scheme("standard"), Read(x))
    assert z.fold.centre.any() == (offset > 1e6)


@pytest.mark.parametrize("way", ["fold", "read"])
@pytest.mark.parametrize("name", ["standard", "pca_sphere"])
def test_float32_keeps_its_digits(rng, name, way):
    x, y = cloud(rng, condition=1e3)
    data = made(x, y, precision="float32")
    whole, other = (ran(data, name, precision="float32", **m) for m in ({}, {way: True}))
    assert_same_histories(whole, other, rtol=1e-4)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("load", "cost"),
    [
        (breast_cancer, "softmax"),
        pytest.param(iris, "multiclass_softmax", marks=pytest.mark.slow),
        (wine, "multiclass_softmax"),
        pytest.param(digits, "multiclass_softmax", marks=pytest.mark.slow),
        (diabetes, "least_squares"),
    ],
)
def test_all_that_is_found_is_found_of_points_that_are_not_copied(load, cost):
    data = load()
    for name in ("identity", "standard", "pca_sphere"):
        whole, *others = (ran(data, name, cost, **way) for way in WAYS)
        for other in others:
            assert_same_findings(whole, other)


def assert_same_findings(whole, other):
    assert whole.findings.tags == other.findings.tags
    metrics, others = whole.findings.metrics, other.findings.metrics
    assert metrics.keys() == others.keys()
    for key, value in metrics.items():
        if "seconds" not in key:  # at rounding level: a gradient's norm, and what is dead
            np.testing.assert_allclose(value, others[key], rtol=1e-7, atol=1e-13, err_msg=key)
    for key, (steps, values) in whole.findings.series.items():
        np.testing.assert_array_equal(steps, other.findings.series[key][0])
        size = np.abs(values).max()
        np.testing.assert_allclose(
            values, other.findings.series[key][1], rtol=1e-7, atol=1e-12 * size, err_msg=key
        )
    for mine, theirs in zip(whole.steps, other.steps):
        assert mine.verdict == theirs.verdict
        assert mine.metrics.keys() == theirs.metrics.keys()


@pytest.mark.parametrize("start", ["same_function", "normal"])
def test_other_starts_are_the_same(rng, start):
    x, y = cloud(rng)
    for name in ("pca_sphere", "minmax"):
        whole, read = (ran(made(x, y), name, start=start, starts=2, read=w) for w in (False, True))
        assert_same_histories(whole, read, rtol=1e-10)
    with pytest.raises(UserError, match="no affine map"):
        ran(made(x, y), "quantile", start="same_function", read=True)


@pytest.mark.parametrize("l2_in", ["transformed", "features"])
def test_a_penalty_is_on_the_same_weights(rng, l2_in):
    x, y = cloud(rng, classes=3)
    found = []
    for read in (False, True):
        data = made(x, y, classes=3)
        job = Job(
            dataset=replace(data, x=Read(x)) if read else data,
            cost=import_target("cost", options("cost", "multiclass_softmax")["_target_"]),
            normalizer=scheme("pca_sphere"),
            optimizer=build("optimizer", options("optimizer", "adam")),
            settings=Settings(STEP_SIZES, 40, start="normal", theory="full"),
            l2=0.01,
            l2_in=l2_in,
        )
        found.append(run(job))
    assert_same_histories(*found, rtol=1e-9)
    least, other = (outcome.findings.metrics["theory/minimum"] for outcome in found)
    assert least == pytest.approx(other, rel=1e-9)


def test_what_is_recorded_is_of_some_points_and_says_so(rng, monkeypatch):
    monkeypatch.setattr("normbench.measures.contract.MAX_SHOWN_POINTS", 100)
    x, y = cloud(rng)
    record = ("points", "biplot", "components", "spectrum", "contours", "hessian", "features")
    wide = made(x[:, :1], y)
    whole, read = (ran(made(x, y), "standard", record=record, read=w) for w in (False, True))
    assert "101 of 900 points are shown" in read.findings.tags["theory_note"]
    assert "are shown" not in whole.findings.tags.get("theory_note", "")
    assert read.arrays.keys() == whole.arrays.keys()
    assert len(read.arrays["features"]["values"]) == 101
    np.testing.assert_allclose(
        read.arrays["spectrum"]["after"], whole.arrays["spectrum"]["after"], rtol=1e-10
    )
    for word, part in (("points", "axes"), ("points", "mean"), ("biplot", "shares")):
        mine, theirs = (np.abs(found.arrays[word][part]) for found in (read, whole))
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    for place in ("start", "minimum"):
        np.testing.assert_allclose(
            read.arrays["hessian"][place], whole.arrays["hessian"][place], rtol=1e-6
        )
    assert ran(wide, "standard", record=("fit",), read=True).arrays["fit"]


def test_a_shown_point_is_among_those_that_are_shown(rng, monkeypatch):
    monkeypatch.setattr("normbench.measures.contract.MAX_SHOWN_POINTS", 50)
    x, y = cloud(rng)
    for read in (False, True):
        shown = ran(made(x, y), "pca", record=("components",), shown_point=777, read=read)
        np.testing.assert_array_equal(
            shown.arrays["components"]["original"], x[777].astype(np.float32)
        )


# The rule that chooses how points are read


def test_a_map_is_folded_whole_or_about_its_centre_or_not(rng):
    x = rng.standard_normal((256, 3))
    mean = np.full(3, 1e8)
    near = AffineMap(np.ones(3), np.ones(3), np.zeros(3))
    assert not choose_fold(near, x + 1, np.float64).centre.any()
    far = AffineMap(np.ones(3), mean, np.zeros(3))
    np.testing.assert_array_equal(choose_fold(far, x + mean, np.float64).centre, mean)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    for condition, folds in ((1e4, True), (1e16, False)):
        small = condition**-0.5
        thin = x * [1.0, 1.0, small] @ turn.T
        sphere = AffineMap(turn.T / np.array([1.0, 1.0, small])[:, None], np.zeros(3), np.zeros(3))
        assert (choose_fold(sphere, thin, np.float64) is not None) == folds
    dropped = AffineMap(np.diag([1.0, 1.0, 0.0]), np.zeros(3), np.zeros(3))
    assert choose_fold(dropped, x, np.float64) is not None  # a direction without terms loses none


def test_a_scheme_that_loses_digits_is_applied_to_the_blocks(rng):
    x, _ = cloud(rng, condition=3e14)
    sphere = build("normalizer", {**options("normalizer", "pca_sphere"), "ridge": 0.0})
    z = door.points_under(sphere, Read(x))
    assert z.map is not None
    assert z.fold is None
    cost = import_target("cost", "normbench.costs.softmax")
    problem = door.problem(cost, z, np.ones(900), True)
    assert problem.multiplied is z


def test_the_plain_engine_takes_no_fold(rng):
    x, y = cloud(rng)
    job_parts = {"dataset": made(x, y), "cost": import_target("cost", "normbench.costs.softmax")}
    job = Job(
        **job_parts,
        normalizer=scheme("standard"),
        optimizer=build("optimizer", options("optimizer", "gradient_descent")),
        settings=Settings(STEP_SIZES, 5, fold=True),
        engine="plain",
    )
    with pytest.raises(UserError, match="engine=plain: takes points that are in memory"):
        run(job)


# Statistics


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_statistics_of_blocks_are_those_of_the_whole(rng, offset):
    x, _ = cloud(rng, count=9000, condition=1e4, offset=offset)
    mean, covariance = mean_and_covariance(Read(x))
    centred = x - x[0]
    exact = np.array([np.sum(column.astype(np.longdouble)) for column in centred.T]) / len(x)
    np.testing.assert_allclose(
        mean - x[0], np.asarray(exact, float), rtol=1e-12, atol=2e-8 * (offset > 0)
    )
    expected = np.cov((centred - np.asarray(exact, float)).T, bias=True)
    size = np.abs(expected).max()
    np.testing.assert_allclose(covariance, expected, rtol=1e-12, atol=1e-12 * size)
    few = surrogate_rows(Read(x), compute_mean(Read(x)))
    assert len(few) == 7
    np.testing.assert_allclose(few.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(few.T @ few / len(few), expected, rtol=1e-12, atol=1e-12 * size)


@pytest.mark.parametrize("name", [*SCHEMES, "chain", "power"])
def test_a_scheme_learns_of_blocks_what_it_learns_of_all(rng, name, monkeypatch):
    monkeypatch.setattr(
        "normbench.engine.scheme.learned.available_bytes", lambda: 8 * 700_000
    )  # 2 columns
    """And nothing of other points that it has learned of before."""
    x, _ = cloud(rng, count=20_000, condition=100.0, offset=5.0)
    whole, blocks = scheme(name).fit(x), scheme(name)
    fit_by_blocks(blocks, Read(10 * x[:900]), Decompositions(Read(10 * x[:900])))
    read = Read(x)
    fit_by_blocks(blocks, read, Decompositions(read))
    np.testing.assert_allclose(
        blocks.transform(x[:50]), whole.transform(x[:50]), rtol=1e-9, atol=1e-10
    )
    if name not in ("power", "robust"):
        assert read.largest <= 10_000


def test_a_scheme_that_needs_all_points_says_that_they_do_not_fit(rng, monkeypatch):
    x, _ = cloud(rng)
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: 1000)
    with pytest.raises(UserError, match="PCA, which learns from all points at once: takes"):
        fit_by_blocks(PCA(), Read(x), Decompositions(Read(x)))
    monkeypatch.setattr("normbench.engine.scheme.learned.available_bytes", lambda: 1000)
    with pytest.raises(UserError, match="RobustScaler: sorts a column of 900 points"):
        fit_by_blocks(scheme("robust"), Read(x), Decompositions(Read(x)))


class Own(TransformerMixin, BaseEstimator):
    """A user's scheme, affine, which says nothing of itself."""

    def fit(self, X, y=None):
        self.mean_, self.size_ = X.mean(axis=0), np.abs(X).max(axis=0)
        return self

    def transform(self, X):
        return (X - self.mean_) / self.size_


def test_the_map_of_a_scheme_that_says_nothing_is_found(rng):
    x, y = cloud(rng, offset=3.0)
    z = door.points_under(Own(), Read(x))
    assert isinstance(z, Under)
    assert z.fold is not None
    assert_same_histories(ran(made(x, y), Own()), ran(made(x, y), Own(), read=True), rtol=1e-10)


class Plain:
    """A user's scheme without scikit-learn's base classes."""

    def fit(self, X):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


def test_a_scheme_without_base_classes_is_folded(rng):
    x, y = cloud(rng, offset=3.0)
    whole, fold = (ran(made(x, y), Plain(), fold=fold) for fold in (False, True))
    assert_same_histories(whole, fold, rtol=1e-10)


# Problems


def problems(rng, cost, classes, l2=0.0, offset=0.0):
    x, y = cloud(rng, count=700, classes=max(2, classes), offset=offset)
    y = y if classes > 1 else 2.0 * y - 1
    function = import_target("cost", options("cost", cost)["_target_"])
    out = []
    for given, fold in ((x, False), (x, True), (Read(x), False)):
        z = door.points_under(scheme("pca_sphere"), given, fold=fold)
        out.append(door.problem(function, z, y, cost != "least_squares", l2, classes))
    return out


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("l2", [0.0, 0.2, np.diag(np.arange(1.0, 7.0)) + 0.1])
def test_second_derivatives_are_those_of_points_in_memory(rng, l2, offset, monkeypatch):
    for kept in (0, 1 << 20):
        monkeypatch.setattr(hessian, "MAX_CACHE_BYTES", kept)
        whole, *others = problems(rng, "multiclass_softmax", 3, l2, offset)
        weights, direction = rng.standard_normal((2, 3, 7))
        expected = whole.hessian(weights)
        size = np.abs(expected.matrix()).max()
        for other in others:
            found = other.hessian(weights)
            assert found.shape == expected.shape
            assert not found.is_zero
            np.testing.assert_allclose(found.matrix(), expected.matrix(), atol=1e-9 * size)
            np.testing.assert_allclose(
                found.times(direction), expected.times(direction), atol=1e-9 * size
            )
            assert found.largest() == pytest.approx(expected.largest(), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_least_squares_becomes_a_triangle_in_one_reading(rng, offset):
    whole, fold, read = problems(rng, "least_squares", 1, offset=offset)
    assert triangle.pays_off(read, 1, 1)
    weights = rng.standard_normal((4, 1, 7))
    expected = whole.evaluate(weights)
    for problem in (fold, read):
        found = triangle.make_triangle(problem).evaluate(weights)
        np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-10)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-8, atol=1e-10)


def test_runs_that_do_not_fit_together_go_one_after_the_other(rng, monkeypatch):
    whole, _, read = problems(rng, "multiclass_softmax", 3, 0.1)
    weights = rng.standard_normal((5, 3, 7))
    expected = whole.evaluate(weights)
    size = blocked.ARRAYS_PER_RUN * 8 * 3 * 7
    monkeypatch.setattr(blocked, "SMALL_STACK_BYTES", 0)
    monkeypatch.setattr(
        blocked, "available_bytes", lambda: 2 * size / blocked.ARRAY_SHARE
    )  # two at a time
    for problem in (whole, read):
        assert problem._runs_per_pass(5) == 2
        for with_gradient in (True, False):
            found = problem.evaluate(weights, with_gradient)
            np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-12)
            np.testing.assert_array_equal(found.misclassifications, expected.misclassifications)
            assert (found.gradient is not None) == with_gradient
        np.testing.assert_allclose(problem.evaluate(weights).gradient, expected.gradient, atol=1e-9)


def test_a_change_amid_a_descent_ends_it(rng):
    x, y = cloud(rng)
    data = made(x, y)
    broken = Read(x)
    job = Job(
        dataset=replace(data, x=broken),
        cost=import_target("cost", "normbench.costs.softmax"),
        normalizer=scheme("standard"),
        optimizer=build("optimizer", options("optimizer", "gradient_descent")),
        settings=Settings(STEP_SIZES, 50),
    )

    def progress(iteration):
        if iteration == 5:
            broken.broken_at = 300

    with pytest.raises(UserError, match=r"points\.npy: changed"):
        run(job, progress)


def test_blocks_come_in_order_and_stay_until_the_next(rng):
    x = rng.standard_normal((103, 3))
    spans = [slice(first, min(first + 10, 103)) for first in range(0, 103, 10)]
    memory = {}
    for _ in range(2):
        seen = []
        for span, rows in reading.read_spans(Read(x), spans, memory, 0):
            np.testing.assert_array_equal(rows, x[span])
            seen.append(rows.copy())
        np.testing.assert_array_equal(np.concatenate(seen), x)
    assert list(reading.read_spans(Read(x), [], memory, 0)) == []


class Counted(Read):
    """Points that know how many rows were read of them."""

    rows_read = 0

    def read(self, first, last, out=None):
        self.rows_read += last - first
        return super().read(first, last, out)


@pytest.mark.parametrize(
    ("name", "passes"),
    [("identity", 0), ("standard", 1), ("minmax", 2), ("pca_sphere", 2), ("zca_cor", 2)],
)
def test_a_statistic_is_a_pass_over_the_points(rng, name, passes):
    x = Counted(cloud(rng, count=9000)[0])
    door.points_under(scheme(name), x)
    # Beside some rows on which the scheme is tried. A scheme that centres has a mean, too.
    assert x.rows_read // len(x) == passes


def test_a_descent_reads_the_points_once_a_step(rng):
    x, y = cloud(rng)

    counted = Counted(x)
    z = door.points_under(scheme("zca_sphere"), counted)
    cost = import_target("cost", "normbench.costs.softmax")
    problem = door.problem(cost, z, 2.0 * y - 1, True)
    weights = rng.standard_normal((5, 1, 7))
    optimizer = build("optimizer", options("optimizer", "gradient_descent"))
    route = fastest_route("fast", problem, None, weights, optimizer, (5, 10))
    counted.rows_read = 0
    route.train.evaluate(weights)
    assert counted.rows_read == len(x)
    assert isinstance(route.train, Blocked)


@pytest.mark.parametrize("subsample", [None, 500])
def test_quantiles_are_learned_from_a_sample_or_from_all(rng, subsample):
    x, _ = cloud(rng)
    whole, read = (QuantileTransformer(n_quantiles=50, subsample=subsample) for _ in range(2))
    fit_by_blocks(read, Read(x), Decompositions(Read(x)))
    if subsample is None:
        np.testing.assert_array_equal(read.transform(x), whole.fit(x).transform(x))
    assert np.isfinite(read.transform(x)).all()


@pytest.mark.parametrize("way", ["fold", "read"])
@pytest.mark.parametrize("bend", [np.abs, np.square])
def test_two_points_do_not_make_a_scheme_affine(rng, bend, way):
    x, y = cloud(rng)
    x[:2] = np.abs(x[0])  # on one side of the bend, and equal
    with pytest.raises(UserError, match=r"start=same_function: .* is no affine map"):
        ran(made(x, y), FunctionTransformer(bend), start="same_function", **{way: True})


@pytest.mark.parametrize("way", ["fold", "read"])
def test_a_scheme_that_bends_at_a_few_points_is_not_folded(rng, way):
    x, y = cloud(rng, count=5000)
    sampled = sample_rows(len(x))
    x[sampled] = np.clip(x[sampled], -1, 1)
    outlier = np.setdiff1d(np.arange(len(x)), sampled)[7]
    x[outlier] = 50.0
    clip = FunctionTransformer(lambda rows: np.clip(rows, -5, 5))
    whole, other = ran(made(x, y), clip), ran(made(x, y), clip, **{way: True})
    assert_same_histories(whole, other, rtol=1e-10)
