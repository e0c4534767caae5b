"""Small parts of the engine by their formulas: sizes, bounds, words, work on threads."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from normbench.costs import softmax
from normbench.engine.batches import Batches
from normbench.engine.fast import threads, triangle
from normbench.engine.fast.threaded_network import PARALLEL_ACTIVATIONS, ThreadedNetwork
from normbench.engine.problem import (
    SAMPLE_POINTS,
    ZERO_SCORE,
    Objective,
    bound_rounding,
    measure_sizes,
)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_sizes_are_those_of_the_first_points_with_their_one(rng):
    x = rng.standard_normal((SAMPLE_POINTS + 50, 3))
    x[SAMPLE_POINTS:] *= 1e6
    with_ones = np.column_stack([np.ones(SAMPLE_POINTS), x[:SAMPLE_POINTS]])
    expected = np.sqrt(np.mean(with_ones**2, axis=0))
    np.testing.assert_allclose(measure_sizes(x), expected, rtol=1e-14)
    expected = np.sqrt(np.mean(with_ones[:7] ** 2, axis=0))
    np.testing.assert_allclose(measure_sizes(x[:7].astype(np.float32)), expected, rtol=1e-6)
    assert measure_sizes(np.zeros((4, 2))).tolist() == [1, 0, 0]


def test_scores_are_the_bias_and_the_weighted_features(rng):
    problem = Objective(softmax, rng.standard_normal((5, 2)), np.ones(5), True)
    scores = problem.scores(np.array([[10.0, 1.0, 2.0], [-3.0, 0.0, 4.0]]), np.eye(2))
    assert scores.tolist() == [[11.0, 12.0], [-3.0, 1.0]]


@pytest.mark.parametrize(("dtype", "share"), [("float64", 1e-10), ("float32", 1e-6)])
def test_a_bound_of_rounding_is_a_share_of_the_largest_score(rng, dtype, share):
    weights = rng.standard_normal((3, 2, 4)).astype(dtype)
    weights[1] *= -100
    sizes = np.array([1.0, 1e9, 0.0, 1e-3])
    expected = [share * np.sqrt(8) * (np.abs(run) @ sizes).max() for run in weights]
    assert bound_rounding(weights, sizes) == pytest.approx(expected, rel=1e-6)
    assert ZERO_SCORE[dtype] == share


def test_units_of_the_features_change_no_bound_of_rounding(rng):
    x, weights = rng.standard_normal((9, 3)), rng.standard_normal((2, 2, 4))
    units = np.array([1e9, 1.0, 1e-6])
    in_units = weights / np.r_[1.0, units]
    np.testing.assert_allclose(
        bound_rounding(in_units, measure_sizes(x * units)),
        bound_rounding(weights, measure_sizes(x)),
        rtol=1e-14,
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "32 shuffled 0 1"),
        ({"stretch": 8}, "32 shuffled 0 1"),
        ({"order": "cyclic", "seed": 5, "records": 3}, "32 cyclic 5 3"),
    ],
)
def test_a_checkpoint_holds_what_the_order_of_batches_depends_on(more, text):
    assert Batches(100, 32, **more).description == text


@pytest.mark.parametrize(
    ("joins_last", "updates", "before"),
    [(False, 4, [0, 1, 2, 4, 5, 6, 8]), (True, 3, [0, 1, 2, 3, 4, 5, 6])],
)
def test_records_of_a_pass_are_at_equal_numbers_of_updates(joins_last, updates, before):
    batches = Batches(97, 32, records=3, joins_last=joins_last)
    assert batches.updates_per_pass == updates
    assert [batches.updates_before(record) for record in range(7)] == before


def test_a_number_whose_square_overflows_is_found_in_any_array():
    most = triangle.MAX_SQUARABLE
    fine, high = np.array([-0.9 * most, 0.9 * most]), np.array([0.0, 1.1 * most])
    assert triangle.can_be_squared(fine)
    assert triangle.can_be_squared(fine, fine)
    for bad in (high, -high, np.array([most]), np.array([-most]), np.array([np.nan])):
        assert not triangle.can_be_squared(fine, bad)
        assert not triangle.can_be_squared(bad, fine)


@pytest.fixture
def limits(monkeypatch):
    """Return what the library was limited to, one entry each time."""
    asked = []

    @contextmanager
    def limit(**of):
        asked.append(of)
        yield

    pools = [{"user_api": "blas", "num_threads": 6}]
    controller = SimpleNamespace(limit=limit, info=lambda: pools)
    monkeypatch.setattr(threads, "_controller", lambda: controller)
    return asked


@pytest.mark.parametrize("free", [1, 5, 6, 9])
@pytest.mark.parametrize("is_large", [True, False])
def test_the_library_is_limited_for_few_numbers_and_on_a_busy_machine(
    limits, monkeypatch, free, is_large
):
    looks, is_busy = [], free < 6
    monkeypatch.setattr(threads, "count_free_cores", lambda: looks.append(1) or free)
    numbers = threads.MAX_ONE_THREAD_ENTRIES - (not is_large)
    with threads.limit_threads(numbers):
        limited = {"limits": free if is_large else 1, "user_api": "blas"}
        assert limits == ([] if is_large and not is_busy else [limited])
        # The library's own setting stays known: points are split as on an idle machine.
        assert threads._unlimited == ([6] if is_large and is_busy else [])
        assert threads.available_threads() == 6
    assert threads._unlimited == []
    assert len(looks) == is_large
    with pytest.raises(ZeroDivisionError), threads.limit_threads(numbers):
        raise ZeroDivisionError
    assert threads._unlimited == []


@pytest.mark.parametrize(
    ("runs", "share", "more", "safe", "spans"),
    [
        (7, 3, 0, True, [(0, 2), (2, 4), (4, 7)]),
        (7, 3, -1, True, [(0, 3), (3, 7)]),
        (7, 1, 0, True, [(0, 3), (3, 7)]),
        (7, 1, -1, True, [(0, 7)]),
        (7, 99, 0, True, [(0, 2), (2, 4), (4, 7)]),
        (7, 3, 0, False, [(0, 7)]),
        (2, 9, 0, True, [(0, 1), (1, 2)]),
    ],
)
def test_runs_of_a_network_are_shared_among_threads_where_there_are_many_activations(
    limits, monkeypatch, runs, share, more, safe, spans
):
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    monkeypatch.setattr(threads, "_pool", threads._pool.__wrapped__)
    groups = [SimpleNamespace(shape=(units, 2)) for units in (3, 5)]
    network = SimpleNamespace(layout=SimpleNamespace(groups=groups), is_thread_safe=safe)
    # Points with that many times the activations from which a second thread pays, and some more.
    count = -(-share * PARALLEL_ACTIVATIONS // (5 * runs)) + more
    workspace = {}
    found = ThreadedNetwork._share(
        network, lambda span, memory: (span, id(memory)), runs, count, workspace
    )
    assert [(span.start, span.stop) for span, _ in found] == spans
    assert [place for _, place in found] == [
        id(workspace["thread", number]) for number in range(len(spans))
    ]
    (again, *_) = ThreadedNetwork._share(
        network, lambda span, memory: id(memory), runs, count, workspace
    )
    assert again == found[0][1]
    assert len(ThreadedNetwork._share(network, lambda *of: of, runs, count, None)) == len(spans)
