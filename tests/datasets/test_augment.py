"""Noisy copies of training points: their shape is the one that was asked for."""

import numpy as np
import pytest

from normbench.datasets import UserError, augmented, make_dataset
from normbench.datasets.parts import folded

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
    made = augmented(DATA, kind, copies, share, seed=0)
    return made.x[len(X) :] - np.tile(X, (copies, 1))


def covariance(x):
    return np.cov(x.T, bias=True)


def test_points_come_first_and_copies_keep_their_targets():
    made = augmented(DATA, "aligned", 3, 0.2, seed=0)
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
    aligned = augmented(DATA, "aligned", 100, 0.2, seed=0).x
    conditions = [np.linalg.cond(covariance(x)) for x in (X, aligned)]
    assert conditions[1] == pytest.approx(conditions[0], rel=0.03)


def test_round_noise_is_as_large_and_alike_in_all_directions():
    variance = 0.04 * np.trace(covariance(X)) / 3
    assert covariance(noise("round")) == pytest.approx(variance * np.eye(3), abs=0.03 * variance)


def test_the_seed_and_the_share_make_the_noise():
    first, again = (augmented(DATA, "round", 1, 0.2, seed=1) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != augmented(DATA, "round", 1, 0.2, seed=2).fingerprint
    assert noise("round", 1, 0.4) == pytest.approx(2 * noise("round", 1, 0.2))


def test_large_points_do_not_overflow_and_types_stay():
    huge = make_dataset("huge", X * 1e148, source="-")
    assert np.isfinite(augmented(huge, "aligned", 1, 0.2, seed=0).x).all()
    small = make_dataset("small", X.astype(np.float32), source="-", precision="float32")
    assert augmented(small, "round", 1, 0.2, seed=0).x.dtype == np.float32


def test_without_a_kind_there_are_no_copies():
    assert augmented(DATA, None, 5, 0.2, seed=0) is DATA


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("square", 1, 0.2), r"dataset\.augment=square: must be one of aligned, round"),
        (("round", 0, 0.2), r"dataset\.augment_copies=0: must be 1 or more"),
        (("round", 1, 0), r"dataset\.augment_noise=0: must be a finite number, above 0"),
        (("round", 10**12, 0.2), r"dataset\.augment_copies=1000000000000: takes"),
        ((None, 1, -1), r"dataset\.augment_noise=-1"),
    ],
)
def test_a_mistake_is_told(arguments, words):
    with pytest.raises(UserError, match=words):
        augmented(DATA, *arguments, seed=0)


def test_copies_are_not_held_out():
    plain = make_dataset("plain", X, source="-")
    with pytest.raises(UserError, match=r"dataset\.augment=round: cross-validation"):
        augmented(folded(plain, 5, 1, 0), "round", 1, 0.2, seed=0)
