"""A surrogate has the moments of points, and is none."""

import numpy as np
import pytest

from normbench import costs
from normbench.normalizers.decomposition import Surrogate, mean_and_covariance
from tests import door


def test_a_surrogate_is_no_points():
    rng = np.random.default_rng(0)
    surrogate = Surrogate(rng.standard_normal((9, 4)))
    with pytest.raises((TypeError, AttributeError)):
        door.problem(costs.softmax, surrogate, np.ones(9), True).evaluate(np.zeros((1, 1, 5)))
    with pytest.raises(TypeError):
        surrogate[:3]


def test_a_surrogate_has_the_moments_of_its_rows():
    rows = np.random.default_rng(1).standard_normal((9, 4)) + 3
    mean, covariance = mean_and_covariance(rows)
    surrogate, turn = Surrogate(rows), np.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(surrogate.mean, mean, rtol=1e-14)
    np.testing.assert_allclose(surrogate.variances, np.diag(covariance), rtol=1e-13)
    np.testing.assert_allclose(surrogate.mapped(turn).mean, turn @ mean, rtol=1e-13)
    some = np.array([3, 1])
    np.testing.assert_allclose(surrogate.features(some).mean, surrogate.mean[some], rtol=1e-14)
