"""The products of a step: piece by piece they are the same."""

from dataclasses import replace

import numpy as np
import pytest
import threadpoolctl

from normbench.engine.fast import blocked, products
from normbench.engine.fast.blocked import Blocked
from tests.cases import COSTS, classifies, formula
from tests.cases import FEW_CASES as CASES


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("points", [0, 1, 7, 20, 41, 50])
@pytest.mark.parametrize("rows", [1, 3, 10])
def test_pieces_sum_to_the_whole(rows, points, dtype, rng):
    x = rng.standard_normal((41, 6)).astype(dtype)
    weights = rng.standard_normal((rows, 6)).astype(dtype)
    near = 1e-13 if dtype == np.float64 else 1e-5
    memory = np.full((rows, 45), np.nan, dtype)
    scores, slopes = memory[:, 2:43], np.full((rows, 6), np.nan, dtype)
    products.multiply_points(weights, x, scores, points)
    np.testing.assert_allclose(scores, weights @ x.T, rtol=near, atol=near)
    assert np.isnan(np.delete(memory, np.s_[2:43], axis=1)).all()
    assert products.multiply_derivative(scores, x, slopes, points) is slopes
    np.testing.assert_allclose(slopes, scores @ x, rtol=near, atol=near)


def test_pieces_are_small_and_only_where_they_pay(monkeypatch):
    monkeypatch.setattr(products, "_has_small_kernels", lambda: True)
    for rows, features in ((2, 784), (9, 784), (16, 300), (9, 4000)):
        points = products.scores_piece_size(rows, features, 8)
        assert 0 < points * rows <= products.MAX_SMALL_SCORES
        assert points * rows * features <= products.MAX_SMALL_PRODUCT
        assert products.slopes_piece_size(rows, 60) * rows * 60 <= products.MAX_SMALL_PRODUCT
    assert products.scores_piece_size(32, 784, 4) > products.scores_piece_size(32, 784, 8) == 0
    assert products.scores_piece_size(1, 784, 4) == products.scores_piece_size(33, 784, 4) == 0
    assert products.scores_piece_size(9, 30, 4) == products.scores_piece_size(9, 20_000, 4) == 0
    assert products.slopes_piece_size(9, 64) > products.slopes_piece_size(81, 64) > 50
    assert products.slopes_piece_size(9, 80) > products.slopes_piece_size(9, 81) == 0
    assert products.slopes_piece_size(1, 64) == products.slopes_piece_size(200, 30) == 0
    assert products.slopes_piece_size(9, 10) == products.slopes_piece_size(162, 64) == 0
    monkeypatch.setattr(products, "_has_small_kernels", lambda: False)
    assert products.scores_piece_size(10, 784, 4) == products.slopes_piece_size(10, 64) == 0


@pytest.mark.parametrize(("kernels", "taken"), [("SkylakeX", True), ("Haswell", False)])
def test_pieces_are_for_kernels_that_take_small_factors(kernels, taken, monkeypatch):
    pools = [{"user_api": "openmp"}, {"user_api": "blas", "architecture": kernels}]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: pools)
    assert products._has_small_kernels.__wrapped__() == taken


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_an_objective_is_the_same_in_pieces(name, classes, dtype, rng, monkeypatch):
    x = rng.standard_normal((300, 4)).astype(dtype)
    targets = rng.integers(0, classes, 300) if classes > 1 else np.sign(x[:, 0])
    train = Blocked(COSTS[name], x, targets, classifies(COSTS[name], classes), 0.1)
    weights = rng.standard_normal((3, classes, 5)).astype(dtype)
    monkeypatch.setattr(products, "_has_small_kernels", lambda: False)
    whole, own = train.evaluate(weights), formula(COSTS[name])
    monkeypatch.setattr(products, "scores_piece_size", lambda rows, features, itemsize: 5)
    monkeypatch.setattr(products, "slopes_piece_size", lambda rows, features: 7)
    monkeypatch.setattr(blocked, "BLOCK_BYTES", 4000)
    taken = []
    pieces_of = products._split_points
    monkeypatch.setattr(products, "_split_points", lambda *of: taken.append(of) or pieces_of(*of))
    pieces = train.evaluate(weights)
    assert taken
    taken.clear()
    replace(train, cost=own).evaluate(weights)  # a cost of the user's own: on all threads at once
    assert not taken
    # Measured: 1e-15 and 4e-7.
    near = {"rtol": 1e-13, "atol": 1e-14} if dtype == np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(pieces.costs, whole.costs, **near)
    np.testing.assert_allclose(pieces.gradient, whole.gradient, **near)
    np.testing.assert_array_equal(pieces.misclassifications, whole.misclassifications)
    assert pieces.gradient.dtype == dtype


@pytest.mark.parametrize("begin", [0, 5])
@pytest.mark.parametrize("points", [1, 2, 7, 10, 11, 40, 41])
def test_blocks_are_as_few_as_fit_and_of_one_size(points, begin):
    """Every other part's first block is a half."""
    most = 10
    sizes = {}
    for number in (0, 1):
        spans = blocked.split_span((number, slice(begin, begin + points)), most)
        ends = [begin, *(span.stop for span in spans)]
        assert [span.start for span in spans] == ends[:-1]
        assert ends[-1] == begin + points
        sizes[number] = np.diff(ends)
    assert len(sizes[0]) == np.ceil(points / most)
    assert max(sizes[0]) <= most
    assert max(sizes[0]) - min(sizes[0]) < len(sizes[0])
    assert points == 1 or sizes[1][0] == -(-max(sizes[0]) // 2)
    assert len(blocked.split_span((0, slice(0, points)), 0)) == points
