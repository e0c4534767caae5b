"""Points in memory maps: the same descents as of points in memory, and nothing left behind."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import PCA

from normbench.choices import build, import_target, options
from normbench.costs import multiclass_softmax
from normbench.datasets import UserError, make_dataset
from normbench.datasets.bundled import breast_cancer, diabetes, digits, iris, wine
from normbench.datasets.on_disk import points
from normbench.engine.scheme import fit_scheme
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.normalizers.decomposition import PointsCache
from tests import door
from tests.cases import names
from tests.door import mapped

STEP_SIZES = (0.01, 0.1, 1.0)
SCHEMES = [name for name in names("normalizer") if name not in ("chain", "power")]
# One of a number a feature, one that turns, and one that is no affine map.
QUICK = ("standard", "pca_sphere", "quantile")


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


def ran(data, name, cost="softmax", read=False, **more):
    if read:
        data = replace(data, x=mapped(data.x), x_test=mapped(data.x_test))
    # Points in memory maps are not refined by themselves.
    settings = {"step_sizes": STEP_SIZES, "iterations": 60, "refine": False} | more
    job = Job(
        dataset=data,
        cost=import_target("cost", options("cost", cost)["_target_"]),
        normalizer=scheme(name) if isinstance(name, str) else name,
        optimizer=build("optimizer", options("optimizer", "gradient_descent")),
        settings=Settings(**settings),
    )
    return run(job)


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


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SCHEMES],
)
def test_histories_are_those_of_points_in_memory(rng, name):
    x, y = cloud(rng, condition=1e6)
    held = np.arange(len(x)) % 4 == 0
    data = made(x[~held], y[~held], x_test=x[held], y_test=y[held])
    whole, other = (ran(data, name, read=read) for read in (False, True))
    assert [step.verdict for step in whole.steps] == [step.verdict for step in other.steps]
    assert_same_histories(whole, other, rtol=1e-10)


class Plain:
    """A user's scheme without scikit-learn's base classes."""

    def fit(self, X):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


@pytest.mark.parametrize(
    ("one", "settings"),
    [
        ("standard", {"batch": 70, "iterations": 5}),
        ("standard", {"batch": 70, "batch_order": "replacement", "iterations": 5}),
        ("standard", {"precision": "float32"}),
        ("pca_sphere", {"precision": "float32"}),
        ("pca_sphere", {"start": "same_function", "starts": 2}),
        ("minmax", {"start": "normal", "starts": 2}),
        (Plain(), {}),
    ],
)
def test_other_settings_have_the_histories_of_points_in_memory(rng, one, settings):
    is_single = "precision" in settings
    data = made(*cloud(rng, offset=3.0), **({"precision": "float32"} if is_single else {}))
    whole, other = (ran(data, one, read=read, **settings) for read in (False, True))
    assert_same_histories(whole, other, rtol=1e-4 if is_single else 1e-10)


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
def test_all_that_is_found_is_found_of_a_memory_map(load, cost):
    data = load()
    for name in ("identity", "standard", "pca_sphere"):
        assert_same_findings(ran(data, name, cost), ran(data, name, cost, read=True))


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


@pytest.mark.parametrize("name", [*SCHEMES, "chain", "power"])
def test_a_scheme_learns_of_blocks_what_it_learns_of_all(rng, name, monkeypatch):
    """And nothing of other points that it has learned of before."""
    two_columns = 8 * 700_000
    monkeypatch.setattr("normbench.engine.scheme.available_bytes", lambda: two_columns)
    x, _ = cloud(rng, count=20_000, condition=100.0, offset=5.0)
    whole, blocks = scheme(name).fit(x), scheme(name)
    fit_scheme(blocks, mapped(10 * x[:900]), PointsCache(mapped(10 * x[:900])))
    read = mapped(x)
    fit_scheme(blocks, read, PointsCache(read))
    np.testing.assert_allclose(
        blocks.transform(x[:50]), whole.transform(x[:50]), rtol=1e-9, atol=1e-10
    )


def test_a_scheme_that_needs_all_points_says_that_they_do_not_fit(rng, monkeypatch):
    x, _ = cloud(rng)
    monkeypatch.setattr("normbench.datasets.values.available_bytes", lambda: 1000)
    with pytest.raises(UserError, match="PCA, which learns from all points at once: takes"):
        fit_scheme(PCA(), mapped(x), PointsCache(mapped(x)))


@pytest.mark.parametrize("l2", [0.0, 0.2, np.diag(np.arange(1.0, 7.0)) + 0.1])
def test_second_derivatives_are_those_of_points_in_memory(rng, l2):
    x, y = cloud(rng, classes=3, offset=1e6)
    expected, found = (
        door.problem(multiclass_softmax, door.points_under(scheme("pca_sphere"), z), y, True, l2, 3)
        for z in (x, mapped(x))
    )
    weights, direction = rng.standard_normal((2, 3, 7))
    expected, found = expected.hessian(weights), found.hessian(weights)
    near = {"atol": 1e-9 * np.abs(expected.matrix()).max()}
    np.testing.assert_allclose(found.matrix(), expected.matrix(), **near)
    np.testing.assert_allclose(found.times(direction), expected.times(direction), **near)


def test_a_file_that_changes_during_the_descent_fails_the_job(rng, tmp_path):
    x, y = cloud(rng)
    file = tmp_path / "x.npy"
    np.save(file, x)
    opened = points.open_map("dataset.path=x.npy", file)
    job = Job(
        dataset=replace(made(x, y), x=opened),
        cost=import_target("cost", "normbench.costs.softmax"),
        normalizer=scheme("identity"),
        optimizer=build("optimizer", options("optimizer", "gradient_descent")),
        settings=Settings(STEP_SIZES, 3),
    )
    run(job)
    with pytest.raises(UserError, match=r"dataset.path=x.npy: was changed while the sweep ran"):
        run(job, lambda iteration: os.utime(file, ns=(1, iteration)))


def test_a_memory_map_leaves_no_file_and_says_where_there_is_no_room(tmp_path, monkeypatch):
    monkeypatch.setattr(points, "_folder", [tmp_path / "sweep" / "1"])
    rows = np.arange(12.0).reshape(6, 2)
    written = points.write_map(iter([rows[:4], rows[4:]]), (6, 2), "float32")
    np.testing.assert_array_equal(written, rows)
    assert list(Path(tmp_path).iterdir()) == []
    with pytest.raises(UserError, match=rf"1e\+06 GB of them are written to {tmp_path}, whose"):
        points.write_map([], (10**12, 125), "float64")


def test_the_pages_of_blocks_are_given_back():
    def resident():
        lines = Path("/proc/self/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("RssFile"))

    if not resident():
        pytest.skip("the system does not tell")
    x = points.write_map((np.zeros((1000, 1000)) for _ in range(4)), (4000, 1000), "float64")
    before = resident()
    assert sum(block.sum() for _, block in points.iterate_blocks(x, 100)) == 0
    assert resident() - before < 4000
    assert x.sum() == 0
    assert resident() - before > 20_000
