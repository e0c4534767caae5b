"""What a descent is judged with: its lowest cost, and the work that theory may take beside it."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from normbench.costs import least_squares
from normbench.datasets import make_dataset
from normbench.engine.settings import Settings
from normbench.job import Job, run
from normbench.measures import judged
from normbench.optimizers import gradient_descent
from normbench.verdicts.convergence import shadow_tolerance_share

EPSILON = float(np.finfo(np.float64).eps)


def lowest(cost, shadows):
    """Return the lowest cost of runs, some with shadows that end at so much more or less."""
    cost = np.array(cost)
    ends = {run: cost[run, -1] + np.array(moved)[:, None] for run, moved in shadows.items()}
    histories = SimpleNamespace(cost=cost, shadows=ends)
    return judged._lowest(histories, EPSILON)


def test_the_lowest_cost_is_of_runs_whose_end_rounding_does_not_decide():
    cost = [[5.0, 4.0, 4.0], [5.0, 2.0, 3.0], [5.0, 3.5, 3.6]]
    excess = 5.0 - 2.0  # of the start above the lowest of all runs
    far = shadow_tolerance_share(EPSILON) * excess
    assert lowest(cost, {}) == 2.0
    assert lowest(cost, {1: [0.9 * far, -0.9 * far]}) == 2.0
    assert lowest(cost, {1: [0.9 * far, -1.1 * far]}) == 3.5
    assert lowest(cost, {1: [1.1 * far], 2: [1.1 * far]}) == 4.0
    assert lowest(cost, {run: [1.1 * far] for run in range(3)}) == 2.0  # all: none is left out
    # A cost that is far from 0 at both ends leaves the excess as it is.
    high = (np.array(cost) + 1000).tolist()
    assert lowest(high, {1: [0.9 * far]}) == 1002.0
    assert lowest(high, {1: [1.5 * far]}) == 1003.5


def test_runs_that_diverge_have_no_lowest_cost_where_they_are_no_numbers():
    assert lowest([[5.0, np.nan, np.nan], [5.0, 4.0, np.inf]], {}) == 4.0
    assert lowest([[np.nan, np.nan]], {}) == np.inf


def made(features, **settings):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((30, features))
    y = x.sum(axis=1) + rng.standard_normal(30)
    data = make_dataset("drawn", x, y, source="-")
    settings = {"iterations": 6, "theory": "auto", "refine": False, **settings}
    return Job(data, least_squares, StandardScaler(), gradient_descent(), Settings(**settings))


@pytest.mark.parametrize(("features", "has_paths"), [(2, True), (3, False)])
def test_only_two_features_and_a_bias_have_every_path_in_the_picture(features, has_paths):
    found = run(made(features, step_sizes=(0.1, 0.2), record=("contours",)))
    assert "cost" in found.arrays["contours"]
    assert ("paths" in found.arrays["contours"]) == has_paths
