"""Noisy copies of training points: their shape is the one that was asked for."""

import numpy as np
import pandas as pd
import pytest

from normbench.datasets import Sampling, hold_out_fold, make_dataset
from normbench.datasets.sampling import add_noisy_copies, hold_out
from normbench.datasets.tables import TableOptions, table_dataset

RNG = np.random.default_rng(6)
X = RNG.standard_normal((400, 3)) @ np.array([[9, 1, 0], [0, 2, 1], [0, 0, 0.1]]) + 5
DATA = make_dataset(
    *("made", X, np.arange(400) % 2),
    class_names=["no", "yes"],
    source="-",
    x_test=X[:10],
    y_test=np.arange(10) % 2,
)


def noise(kind, copies=100, share=0.2):
    made = add_noisy_copies(DATA, kind, copies, share, seed=0)
    return made.x[len(X) :] - np.tile(X, (copies, 1))


def covariance(x):
    return np.cov(x.T, bias=True)


def test_points_come_first_and_copies_keep_their_targets():
    made = add_noisy_copies(DATA, "aligned", 3, 0.2, seed=0)
    assert (made.x[:400] == X).all()
    assert made.x.shape == (1600, 3)
    assert (made.y == np.tile(DATA.y, 4)).all()
    assert (made.x_test == DATA.x_test).all()
    assert made.fingerprint != DATA.fingerprint
    assert len(np.unique(made.x, axis=0)) == 1600  # each has a draw of its own


def test_aligned_noise_has_the_shape_of_the_points():
    # 40,000 draws: measured 0.004 of the largest entry off.
    found, wanted = covariance(noise("aligned")), 0.04 * covariance(X)
    root = np.linalg.cholesky(np.linalg.inv(wanted))
    assert root.T @ found @ root == pytest.approx(np.eye(3), abs=0.03)
    aligned = add_noisy_copies(DATA, "aligned", 100, 0.2, seed=0).x
    conditions = [np.linalg.cond(covariance(x)) for x in (X, aligned)]
    assert conditions[1] == pytest.approx(conditions[0], rel=0.03)


def test_round_noise_is_as_large_and_alike_in_all_directions():
    variance = 0.04 * np.trace(covariance(X)) / 3
    assert covariance(noise("round")) == pytest.approx(variance * np.eye(3), abs=0.03 * variance)


def test_the_seed_and_the_share_make_the_noise():
    first, again = (add_noisy_copies(DATA, "round", 1, 0.2, seed=1) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != add_noisy_copies(DATA, "round", 1, 0.2, seed=2).fingerprint
    assert noise("round", 1, 0.4) == pytest.approx(2 * noise("round", 1, 0.2))


def test_large_points_do_not_overflow_and_types_stay():
    huge = make_dataset("huge", X * 1e148, source="-")
    assert np.isfinite(add_noisy_copies(huge, "aligned", 1, 0.2, seed=0).x).all()
    small = make_dataset("small", X.astype(np.float32), source="-", precision="float32")
    assert add_noisy_copies(small, "round", 1, 0.2, seed=0).x.dtype == np.float32


FEW = make_dataset("few", X[:60], DATA.y[:60], class_names=["no", "yes"], source="-")


@pytest.mark.parametrize(("kind", "fit_on"), [("aligned", "all"), ("round", "train")])
def test_a_fold_trains_on_its_own_points_and_copies_of_them_alone(kind, fit_on):
    drawn = Sampling(
        folds=5, repeats=2, split_seed=3, augment=kind, augment_copies=3, fit_on=fit_on
    )
    data = drawn.apply(FEW)
    assert data.x.shape == (240, 3)
    for repeat, numbers in enumerate(data.folds):
        assert numbers.shape == (60,)
        for number in range(5):
            held = numbers == number
            there = hold_out_fold(data, repeat, number)
            by_hand = add_noisy_copies(hold_out(FEW, held), kind, 3, 0.2, seed=3 + repeat)
            for name in ("x", "y", "x_test", "y_test"):
                np.testing.assert_array_equal(getattr(there, name), getattr(by_hand, name))
            assert there.fit_on == fit_on
            assert there.fingerprint == by_hand.fingerprint
            np.testing.assert_array_equal(there.x_test, FEW.x[held])
            np.testing.assert_array_equal(there.x[: (~held).sum()], FEW.x[~held])
            assert len(there.x) == 4 * (~held).sum()


def test_the_gaps_of_a_fold_are_filled_by_its_own_points_before_they_are_copied():
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 50.0, 7.0, np.nan] * 5, "y": list("pqqppq") * 5})
    options = TableOptions(fill="median", target=-1)
    table = table_dataset("t", frame, options, source="made")
    data = Sampling(folds=3, augment="round", augment_noise=1e-9).apply(table)
    for number in range(3):
        there = hold_out_fold(data, 0, number)
        own = frame["a"][data.folds[0] != number]
        filled = own.fillna(own.median())
        np.testing.assert_allclose(there.x[:, 0], [*filled, *filled], atol=1e-6)
