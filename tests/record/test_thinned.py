"""A history too long for MLflow: some points are there, all of them in the arrays."""

from itertools import pairwise

import numpy as np
import pytest

from normbench import compare, names
from normbench.record.thinned import FIRST, MAX_POINTS, thinned_indices


@pytest.mark.parametrize("count", [1, 1000, 1001])
def test_a_short_history_keeps_all(count):
    assert thinned_indices(np.zeros(count)).tolist() == list(range(count))


@pytest.mark.parametrize("count", [1002, 5000, 100_001])
def test_extremes_the_beginning_and_both_ends_stay(count):
    values = np.random.default_rng(count).standard_normal(count)
    kept = thinned_indices(values)
    assert len(kept) <= MAX_POINTS
    assert (np.diff(kept) > 0).all()
    assert kept[:FIRST].tolist() == list(range(FIRST))
    assert kept[-1] == count - 1
    assert {np.argmin(values), np.argmax(values)} <= set(kept.tolist())
    # Even on a log axis: no gap is wide there.
    assert (kept[1:] / np.maximum(kept[:-1], 1)).max() < 3
    if count > 5000:
        spans = np.array_split(np.arange(FIRST, count), 20)
        assert all(len(np.intersect1d(span, kept)) > 3 for span in spans)


def test_the_extremes_of_each_span_are_those_that_one_finds_point_by_point():
    """A hundred points, then 449 spans that are even on a log axis, and the last point."""
    count = 20_000
    values = np.random.default_rng(3).standard_normal(count)
    ends = sorted({round(100 * (count / 100) ** (number / 449)) for number in range(450)})
    kept = {*range(100), count - 1}
    for first, last in pairwise(ends):
        span = range(first, last)
        kept |= {min(span, key=values.__getitem__), max(span, key=values.__getitem__)}
    assert thinned_indices(values).tolist() == sorted(kept)


@pytest.fixture(scope="module")
def long():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 2)), rng.integers(0, 2, 30)
    return compare(x, y, "softmax", ["standard"], [1e-3, 0.1, 1.0], 2500)


@pytest.mark.slow
def test_what_is_read_is_the_whole_history(long):
    """Every point of every step, from the arrays; the store's client has fewer."""
    frame, sweep = long.frame, long.sweep
    assert len(frame) == 3 * 2501
    (parts,) = sweep.arrays(sweep.of_role(names.SCHEME), names.DESCENT_ARRAYS).values()
    for number, (_, rows) in enumerate(frame.groupby("step_size")):
        assert rows.iteration.tolist() == list(range(2501))
        np.testing.assert_array_equal(rows.cost, parts["train/cost"][number, 0])
        np.testing.assert_array_equal(
            rows.misclassifications, parts["train/misclassifications"][number, 0]
        )
    best = long.histories
    assert len(best) == 2501
    for run_id in sweep.of_role(names.STEP)["run_id"]:
        told = sweep.series(run_id, "train/cost")
        assert 500 < len(told) <= MAX_POINTS
    assert set(sweep.of_role(names.STEP)[names.THINNED.column]) == {"true"}


def test_medians_over_starts_are_not_thinned():
    """They are kept nowhere else."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((20, 2)), rng.integers(0, 2, 20)
    found = compare(x, y, "softmax", ["standard"], [0.1], 1100, start="normal", starts=2)
    assert len(found.frame) == 1101
    assert names.THINNED.column not in found.sweep.runs
    (step,) = found.sweep.of_role(names.STEP)["run_id"]
    assert len(found.sweep.series(step, "train/cost")) == 1101
