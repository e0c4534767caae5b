"""Sparse points descend as the same points with their zeros do, in the memory of what is stored."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

import normbench
from normbench import costs
from normbench.choices import build, on_columns, options
from normbench.datasets import UserError, make_dataset, split
from normbench.engine.settings import Settings
from normbench.job import Job, check, run
from normbench.normalizers import PCASphere
from normbench.optimizers import gradient_descent
from tests import door
from tests.benchmarks import sparse_rows
from tests.cases import pairs

SCHEMES = {
    "identity": lambda: build("normalizer", options("normalizer", "identity")),
    "maxabs": MaxAbsScaler,
    "scaled": lambda: StandardScaler(with_mean=False),
    "standard": StandardScaler,
    "centre": lambda: StandardScaler(with_std=False),
}
COSTS = {"softmax": 2, "multiclass_softmax": 3, "least_squares": 0}


def dataset(classes, points=90, features=25):
    rng = np.random.default_rng(1)
    matrix = sparse.random_array((points, features), density=0.2, rng=rng, format="csr")
    matrix.data *= np.arange(1.0, matrix.nnz + 1) % 7 + 1
    scores = matrix @ rng.standard_normal((features, max(classes, 1)))
    names = [str(index) for index in range(classes)] or None
    y = scores.argmax(axis=1) if classes > 2 else scores[:, 0]
    y = (y > 0).astype(int) if classes == 2 else y
    data = make_dataset("drawn", matrix, y, class_names=names, source="drawn")
    return data, replace(data, x=matrix.toarray())


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(
    ("scheme", "cost", "precision"),
    pairs(scheme=SCHEMES, cost=COSTS, precision=["float64", "float32"]),
)
def test_the_histories_are_those_of_the_dense_points(scheme, cost, precision):
    settings = Settings((0.01, 0.3), iterations=30, precision=precision, refine=False)
    data, _ = dataset(COSTS[cost])
    data = split(data, 0.2, 0)
    dense = replace(data, x=data.x.toarray(), x_test=data.x_test.toarray())
    outcomes = [
        run(
            Job(points, getattr(costs, cost), SCHEMES[scheme](), gradient_descent(), settings, 0.01)
        )
        for points in (data, dense)
    ]
    tolerance = 1e-10 if precision == "float64" else 2e-4  # measured: 4e-14, 3e-6
    for ours, theirs in zip(*(outcome.steps for outcome in outcomes)):
        for key, history in ours.histories.items():
            if "cost" in key:
                np.testing.assert_allclose(history, theirs.histories[key], rtol=tolerance)


@pytest.mark.parametrize("cost", COSTS)
def test_theory_is_that_of_the_dense_points(cost):
    settings = Settings((0.1,), iterations=10, theory="full", refine=False)
    found = [
        run(Job(points, getattr(costs, cost), StandardScaler(), gradient_descent(), settings))
        for points in dataset(COSTS[cost])
    ]
    metrics = [outcome.findings.metrics for outcome in found]
    for key in ("theory/condition_number", "theory/lipschitz", "theory/minimum"):
        assert metrics[0].get(key) == pytest.approx(metrics[1].get(key), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("cost", COSTS)
def test_the_hessian_is_that_of_the_dense_points(cost):
    problems = []
    for data in dataset(COSTS[cost]):
        z = door.points_under(StandardScaler(), data.x)
        targets = data.y if COSTS[cost] == 3 else 2.0 * (data.y > 0) - 1
        arguments = targets, COSTS[cost] > 0, 0.1, max(1, COSTS[cost] if COSTS[cost] > 2 else 1)
        problems.append(door.problem(getattr(costs, cost), z, *arguments))
    weights = np.random.default_rng(0).standard_normal(problems[0].shape)
    ours, theirs = (problem.hessian(weights) for problem in problems)
    direction = np.random.default_rng(1).standard_normal(problems[0].shape)
    np.testing.assert_allclose(ours.times(direction), theirs.times(direction), atol=1e-12)
    np.testing.assert_allclose(ours.matrix(), theirs.matrix(), atol=1e-12)
    assert not ours.is_zero


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (RobustScaler(), "RobustScaler: would fill sparse points.* or standard, on all columns$"),
        (PCASphere(), "PCASphere: would fill sparse points"),
        (build("normalizer", options("normalizer", "quantile")), "would fill sparse points"),
        (on_columns(MaxAbsScaler(), "numeric"), "MaxAbsScaler: .*, on all columns$"),
    ],
)
def test_a_scheme_that_would_fill_the_points_is_refused_before_it_is_fitted(scheme, message):
    data, dense = dataset(2)
    settings = Settings((0.1,), iterations=1)
    job = Job(data, costs.softmax, scheme, gradient_descent(), settings)
    with pytest.raises(UserError, match=message):
        check(job)
    check(replace(job, dataset=dense))


def test_compare_takes_a_sparse_matrix_and_says_what_it_does_not():
    data, dense = dataset(2)
    settings = {"step_sizes": [0.1], "iterations": 20}
    ours = normbench.compare(data.x.csr, data.y, "softmax", ["standard", "maxabs"], **settings)
    theirs = normbench.compare(dense.x, data.y, "softmax", ["standard", "maxabs"], **settings)
    np.testing.assert_allclose(ours.frame.cost, theirs.frame.cost, rtol=1e-12)
    with pytest.raises(UserError, match="is no affine map of dense features"):
        normbench.compare(data.x.csr, data.y, "softmax", "maxabs", start="same_function")


def test_batches_and_parts_are_those_of_the_dense_points():
    data, dense = dataset(2)
    settings = Settings((0.1, 1.0), iterations=3, batch=20, refine=False)
    schemes = StandardScaler(), StandardScaler()
    outcomes = [
        run(Job(points, costs.softmax, scheme, gradient_descent(), settings))
        for points, scheme in zip((data, dense), schemes)
    ]
    for ours, theirs in zip(*(outcome.steps for outcome in outcomes)):
        for key, history in ours.histories.items():
            np.testing.assert_allclose(history, theirs.histories[key], rtol=1e-10)
    assert outcomes[0].findings.tags == outcomes[1].findings.tags


@pytest.mark.slow
def test_a_descent_takes_at_most_four_times_the_memory_of_the_points():
    assert sparse_rows.memory(*sparse_rows.points()) < sparse_rows.MAX_MEMORY  # measured: 2.0
