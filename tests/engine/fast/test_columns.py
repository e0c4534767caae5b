"""Equal columns of the points: found to the bit, and multiplied once without a difference."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench import compare, route
from normbench.datasets.dataset import make_dataset
from normbench.engine.fast import columns, wrappers
from normbench.engine.fast.blocked import Blocked
from normbench.engine.fast.columns import find_distinct_columns
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.optimizers import gradient_descent
from tests.cases import COSTS, classifies
from tests.cases import FEW_CASES as CASES

POINTS = 300
ORDER = [0, 1, 0, 2, 3, 3, 1, 4, 0]  # the column of each feature
MIXED = np.cov(np.random.default_rng(8).standard_normal((len(ORDER), 40)))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture(autouse=True)
def worthwhile(monkeypatch):
    """Merge small points too, moved and compared a few at a time."""
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", 0)
    monkeypatch.setattr(columns, "FIRST_BLOCK_POINTS", 5)
    monkeypatch.setattr("normbench.normalizers.decomposition.CENTRED_POINTS_PER_BLOCK", 70)


def repeated(rng, dtype=np.float64):
    x = rng.standard_normal((POINTS, 5)).astype(dtype)
    x[:, 3] = 0
    return np.ascontiguousarray(x[:, ORDER])


def test_columns_that_differ_in_one_point_are_different(rng):
    x = repeated(rng)
    found = find_distinct_columns(x)
    np.testing.assert_array_equal(found.first, [0, 1, 3, 4, 7])
    np.testing.assert_array_equal(found.column_of_feature, ORDER)
    for point in (0, 4, 5, 69, 70, POINTS - 1):  # of every block
        changed = x.copy()
        changed[point, 2] += 1e-9
        np.testing.assert_array_equal(find_distinct_columns(changed).first, [0, 1, 2, 3, 4, 7])
        # Feature 8 is still a copy of feature 0.
        assert find_distinct_columns(changed).column_of_feature[8] == 0
    changed = x.copy()
    changed[-1, 0] = 7  # the first of the three: the others are still copies of each other
    np.testing.assert_array_equal(find_distinct_columns(changed).first, [0, 1, 2, 3, 4, 7])


def test_columns_that_agree_in_later_points_alone_are_different(rng):
    x = rng.standard_normal((POINTS, 2))[:, [0, 0, 1, 1]]
    x[5:] = 0
    np.testing.assert_array_equal(find_distinct_columns(x).first, [0, 2])
    for _ in range(30):
        x = rng.integers(0, 2, (8, 6)).astype(float)
        np.testing.assert_array_equal(
            find_distinct_columns(x).first, np.sort(np.unique(x, axis=1, return_index=True)[1])
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "l2", [0.3, np.linspace(0, 1, len(ORDER)), MIXED], ids=["one", "each", "matrix"]
)
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_merged_columns_give_the_same_derivatives(name, classes, l2, dtype, rng):
    x = repeated(rng, dtype)
    targets = rng.integers(0, classes, POINTS) if classes > 1 else np.sign(x[:, 1] + x[:, 7])
    train = Blocked(COSTS[name], x, targets, classifies(COSTS[name], classes), l2, classes)
    weights = rng.standard_normal((3, classes, len(ORDER) + 1)).astype(dtype)
    before, here, hessian = x.copy(), train.evaluate(weights), train.hessian(weights[0])
    direction = rng.standard_normal(hessian.shape)
    second, turned = hessian.matrix(), hessian.times(direction)
    quick = wrappers.merge(train)
    assert quick.multiplied.shape == (POINTS, 5)
    assert quick.points is x
    there, merged = quick.evaluate(weights), quick.hessian(weights[0])
    assert quick.shape == train.shape == merged.shape
    assert merged.is_zero == hessian.is_zero
    found, product = merged.matrix(), merged.times(direction)
    np.testing.assert_array_equal(x, before)
    # Measured: 5e-16 and 3e-7; 5e-16 and 2e-7.
    near = {"rtol": 1e-13, "atol": 1e-14} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(there.costs, here.costs, **near)
    np.testing.assert_allclose(there.gradient, here.gradient, **near)
    np.testing.assert_allclose(found, second, **near)
    np.testing.assert_allclose(product, turned, **near)
    np.testing.assert_array_equal(there.misclassifications, here.misclassifications)
    assert there.gradient.dtype == dtype


def test_points_without_copies_are_left_alone_and_copies_that_do_not_fit(rng, monkeypatch):
    x = rng.standard_normal((POINTS, 5))
    train = Blocked(COSTS["least_squares"], x, x[:, 0].copy(), classify=False)
    assert wrappers.merge(train) is train
    train = Blocked(COSTS["least_squares"], repeated(rng), x[:, 0].copy(), classify=False)
    assert wrappers.merge(train) is not train
    with monkeypatch.context() as less:
        less.setattr(wrappers, "available_bytes", lambda: 8 * POINTS * 5 / wrappers.ARRAY_SHARE - 1)
        assert wrappers.merge(train) is train
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", 10**6)
    assert wrappers.merge(train) is train


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("optimizer", ["gradient_descent", "adam", "newton", "line_search"])
def test_a_comparison_is_the_same_with_merged_columns(rng, optimizer, monkeypatch):
    x = repeated(rng)
    before, seen = x.copy(), []
    y = x[:, 1] + 0.5 * rng.standard_normal(POINTS) > 0
    folded = columns.Columns.fold
    monkeypatch.setattr(
        columns.Columns, "fold", lambda self, weights: seen.append(1) or folded(self, weights)
    )

    def histories(merged_from):
        monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", merged_from)
        return compare(
            x,
            y,
            normalizers=["identity", "standard", "pca_sphere"],
            step_sizes=[0.1, 1],
            iterations=20,
            optimizer=optimizer,
        )

    apart = histories(10**6)
    assert not seen
    together = histories(0)
    assert seen
    np.testing.assert_array_equal(x, before)
    np.testing.assert_allclose(together.cost, apart.cost, rtol=1e-9)
    assert (together.misclassifications == apart.misclassifications).all()
    assert (together.verdict == apart.verdict).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("scheme", [FunctionTransformer(), StandardScaler()])
def test_a_job_merges_the_points_and_test_points_by_their_own_copies(
    rng, scheme, precision, monkeypatch
):
    x, x_test = (repeated(rng).astype(precision) for _ in range(2))
    x_test[:, 8] = x_test[:, 7]  # copies that the training points do not have
    y, y_test = ((part[:, 1] > 0).astype(int) for part in (x, x_test))
    data = make_dataset(
        "copies",
        x,
        y,
        source="drawn",
        x_test=x_test,
        y_test=y_test,
        class_names=("no", "yes"),
        precision=precision,
    )
    before = data.x.copy(), data.x_test.copy()
    job = Job(
        dataset=data,
        cost=COSTS["softmax"],
        normalizer=scheme,
        optimizer=gradient_descent(),
        settings=Settings(step_sizes=(0.1, 1.0), iterations=20, precision=precision),
    )
    seen, merge = [], route.merge
    monkeypatch.setattr(route, "merge", lambda given: seen.append(merge(given)) or seen[-1])
    together = run(job)
    assert [made.columns.column_of_feature[8] == 0 for made in seen] == [True, False]
    monkeypatch.setattr(wrappers, "MIN_POINT_ENTRIES", 10**6)
    apart = run(job)
    for array, kept in zip((data.x, data.x_test), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    near = 1e-10 if precision == "float64" else 1e-4
    for one, other in zip(together.steps, apart.steps, strict=True):
        assert one.verdict == other.verdict
        for metric in ("train/cost", "test/cost"):
            np.testing.assert_allclose(one.histories[metric], other.histories[metric], rtol=near)
