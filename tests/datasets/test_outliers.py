"""Outliers among training points: where they were asked for, and as large as asked."""

import numpy as np
import pytest

from normbench.datasets import Sampling, hold_out_fold, make_dataset
from normbench.datasets.sampling import with_outliers

X = np.random.default_rng(6).standard_normal((400, 5)) * [1, 10, 0.1, 3, 1] + 7
DATA = make_dataset(
    *("made", X, np.arange(400) % 2),
    class_names=["no", "yes"],
    source="-",
    x_test=X[:10],
    y_test=np.arange(10) % 2,
)


def test_cells_are_a_share_of_all_entries_and_targets_and_test_points_stay():
    data = with_outliers(DATA, "cells", 0.03, 100, seed=0)
    assert np.count_nonzero(data.x != X) == 60
    assert len(np.unique(np.nonzero(data.x != X)[1])) == 5
    np.testing.assert_array_equal(data.y, DATA.y)
    np.testing.assert_array_equal(data.x_test, DATA.x_test)
    assert data.fingerprint != DATA.fingerprint


def test_points_are_whole_rows():
    data = with_outliers(DATA, "points", 0.03, 100, seed=0)
    changed = (data.x != X).sum(axis=1)
    assert sorted(set(changed)) == [0, 5]
    assert (changed == 5).sum() == 12


@pytest.mark.parametrize("kind", ["cells", "points"])
def test_they_are_as_large_as_they_were_asked_for(kind):
    moved = with_outliers(DATA, kind, 1, 100, seed=0).x - X
    # Of 400 draws a feature a deviation is known to 4 percent.
    np.testing.assert_allclose(moved.std(axis=0), 100 * X.std(axis=0), rtol=0.15)
    twice = with_outliers(DATA, kind, 1, 200, seed=0).x - X
    np.testing.assert_allclose(twice, 2 * moved, rtol=1e-9)


def test_the_seed_draws_them():
    first, again = (with_outliers(DATA, "cells", 0.1, 100, seed=1) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != with_outliers(DATA, "cells", 0.1, 100, seed=2).fingerprint
    assert with_outliers(DATA, None, 0.1, 100, seed=1) is DATA


def test_points_that_a_fold_holds_out_have_none():
    own = make_dataset("made", X, np.arange(400) % 2, class_names=["no", "yes"], source="-")
    data = Sampling(folds=4, outliers="points", outlier_share=0.5).apply(own)
    there = hold_out_fold(data, 0, 1)
    known = {row.tobytes() for row in X}
    assert all(row.tobytes() in known for row in there.x_test)
    assert sum(row.tobytes() not in known for row in there.x) == 150


def test_of_a_share_of_less_than_one_there_is_one():
    data = with_outliers(DATA, "points", 1e-5, 100, seed=0)
    assert np.count_nonzero((data.x != X).any(axis=1)) == 1
