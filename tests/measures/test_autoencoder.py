"""The linear autoencoder: its gradient, and what it finds under each scheme."""

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from normbench.costs import least_squares
from normbench.datasets import UserError, make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures.points import reconstruct
from normbench.normalizers import PCASphere, ZCASphere
from normbench.optimizers import gradient_descent

RNG = np.random.default_rng(8)
TURN = np.linalg.qr(RNG.standard_normal((6, 6)))[0]
X = RNG.standard_normal((300, 6)) * [3, 1, 0.8, 0.6, 0.4, 0.2] @ TURN


def found(scheme, x=X):
    data = make_dataset("made", x, source="-")
    settings = Settings((1.0,), iterations=0, record=("autoencoder",))
    job = Job(data, least_squares, scheme, gradient_descent(), settings)
    return run(job).arrays["autoencoder"]


def test_the_gradient_is_that_of_the_cost():
    moments, weights = X.T @ X / len(X), RNG.standard_normal((2, 6))
    cost, gradient = reconstruct(moments, weights)
    built = np.outer(X @ weights[0], weights[0])
    assert cost[0] == pytest.approx(((X - built) ** 2).sum(axis=1).mean(), rel=1e-12)
    for place in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[place] = 1e-6
        ends = [reconstruct(moments, weights + sign * step)[0][place[0]] for sign in (1, -1)]
        # Central differences: measured 1e-8 off.
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(gradient[place], rel=1e-5, abs=1e-6)


def test_centred_points_give_the_principal_axis_and_lose_what_it_leaves():
    parts = found(StandardScaler(with_std=False))
    assert parts["overlap"].min() > 1 - 1e-6
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    assert parts["lost"] == pytest.approx(values[:-1].sum() / values.sum(), rel=1e-6)


def test_points_far_from_the_origin_give_their_mean():
    away = np.linalg.svd(X)[2][-1]  # at right angles to the principal axis
    parts = found(FunctionTransformer(), X + 50 * away)
    assert parts["overlap"].max() < 0.01


@pytest.mark.parametrize("scheme", [PCASphere(), ZCASphere()])
def test_sphered_points_give_any_axis_and_sooner(scheme):
    parts = found(scheme)
    # 100 starts, the overlap's deviation 0.18: measured 0.01 off.
    assert parts["overlap"].mean() == pytest.approx(1 / 6, abs=0.06)
    assert parts["lost"] == pytest.approx(5 / 6, rel=1e-4)
    assert parts["iterations"].max() < np.median(found(StandardScaler())["iterations"]) < 500


def test_many_features_are_refused():
    with pytest.raises(UserError, match="record=autoencoder: needs 1 to 256 features; made"):
        found(StandardScaler(), RNG.standard_normal((9, 257)))
